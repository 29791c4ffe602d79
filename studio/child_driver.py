"""One graph on one database, for the child process: LangGraph's own saver on the file, and its sync or async methods.

Standard library and the user's LangGraph only, valid for Python 3.9: `child.py` loads this file by path.
"""

from __future__ import annotations

import base64
import contextlib
import sqlite3
import sys
import typing
from collections.abc import AsyncIterator, Iterator
from typing import Any

types = sys.modules["_studio_child_types"]

_BUSY_SECONDS = 30.0
_CONTROL = ("__error__", "__error_source_node__", "__interrupt__", "__resume__", "__scheduled__")
"""Channels of rows that are no result of a task."""


_WITHOUT = "fork it by setting the state, which needs no LangGraph, and run the fork with the program that wrote the file"


class Failure(Exception):
    """A run that cannot start or go on, for a reason that is not the user's exception."""

    def __init__(self, kind: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.kind = kind
        self.more = more


def version_of(package: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def require_langgraph() -> None:
    try:
        import langgraph.graph  # noqa: F401
    except ImportError as error:
        hint = f"choose another one with --python, or: {sys.executable} -m pip install langgraph langgraph-checkpoint-sqlite"
        raise Failure("saver", f"{sys.executable} has no LangGraph ({error})", hint=hint) from error


def saver_class(is_async: bool) -> Any:
    try:
        if is_async:
            from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

            return AsyncSqliteSaver
        from langgraph.checkpoint.sqlite import SqliteSaver

        return SqliteSaver
    except ImportError as error:
        install = f"{sys.executable} -m pip install langgraph-checkpoint-sqlite"
        raise Failure("saver", f"{sys.executable} has no SQLite saver for LangGraph ({error})", hint=install) from error


def serializer(gate: Any) -> Any:
    try:
        from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
    except ImportError as error:
        reason = "LangGraph {} is too old for the studio to run it: 0.2 is the oldest".format(version_of("langgraph"))
        raise Failure("saver", reason, hint=_WITHOUT) from error
    return types.guarded(JsonPlusSerializer, gate)


def require_layout(database: str, rows: dict[str, Any] | None) -> None:
    """Raises Failure for a file in the layout of LangGraph 0.1, which no later one reads."""
    if rows is None:
        connection = sqlite3.connect(database, timeout=_BUSY_SECONDS)
        try:
            columns = {row[1] for row in connection.execute("PRAGMA table_info(checkpoints)")}
        finally:
            connection.close()
    else:
        columns = {name for table in rows["tables"] for name in table["columns"]}
    if "thread_ts" in columns and "checkpoint_id" not in columns:
        reason = "this file was written by LangGraph 0.1, and LangGraph {} cannot read it".format(version_of("langgraph"))
        raise Failure("saver", reason, hint=_WITHOUT)


def encrypting(serde: Any) -> Any:
    """LangGraph's own encryption around a serializer, with the key of LANGGRAPH_AES_KEY; it reads clear rows as well."""
    try:
        from langgraph.checkpoint.serde.encrypted import EncryptedSerializer

        return EncryptedSerializer.from_pycryptodome_aes(serde)
    except ImportError as error:
        reason = f"{sys.executable} cannot write encrypted rows ({error})"
        raise Failure("saver", reason, hint=f"{sys.executable} -m pip install pycryptodome") from error


class Driver:
    """One graph on one database, by its sync or its async methods; the same coroutines serve both."""

    def __init__(self, graph: Any, saver: Any, is_async: bool, request: dict[str, Any]) -> None:
        graph.checkpointer = saver
        self.graph = graph
        self.is_async = is_async
        self.serde = saver.serde
        self.plain = getattr(saver.serde, "serde", saver.serde)
        """The same without encryption."""
        self.database = request["database"]
        self.request = request

    def config(self, checkpoint_id: str | None = None, ns: str = "") -> dict[str, Any]:
        conf = dict(self.request.get("configurable") or {}, thread_id=self.request["thread_id"], checkpoint_ns=ns)
        if checkpoint_id:
            conf["checkpoint_id"] = checkpoint_id
            if (version_of("langgraph") or "").startswith("0.1."):
                conf["thread_ts"] = checkpoint_id
        config = {"configurable": conf}
        if self.request.get("recursion_limit"):
            config["recursion_limit"] = self.request["recursion_limit"]
        return config

    async def stream(self, given: Any, config: dict[str, Any], **options: Any) -> AsyncIterator[Any]:
        if self.is_async:
            async for item in self.graph.astream(given, config, **options):
                yield item
        else:
            for item in self.graph.stream(given, config, **options):
                yield item

    async def get_state(self, config: dict[str, Any]) -> Any:
        return await self.graph.aget_state(config) if self.is_async else self.graph.get_state(config)

    async def update_state(self, config: dict[str, Any], values: Any, as_node: str | None) -> Any:
        if self.is_async:
            return await self.graph.aupdate_state(config, values, as_node=as_node)
        return self.graph.update_state(config, values, as_node=as_node)

    async def bulk_update_state(self, config: dict[str, Any], updates: list[Any]) -> Any:
        """Several updates in one superstep."""
        if self.is_async:
            return await self.graph.abulk_update_state(config, [updates])
        return self.graph.bulk_update_state(config, [updates])

    async def checkpoint(self, config: dict[str, Any]) -> Any:
        """The stored checkpoint as LangGraph reads it; None when there is none."""
        saver = self.graph.checkpointer
        found = await saver.aget_tuple(config) if self.is_async else saver.get_tuple(config)
        return found.checkpoint if found is not None else None

    def value(self, encoded: dict[str, Any]) -> Any:
        """A value of the request: plain JSON, or msgpack that LangGraph's own serializer (behind the gate) turns into objects."""
        if "msgpack" in encoded:
            return self.serde.loads_typed(("msgpack", base64.b64decode(encoded["msgpack"])))
        return encoded["json"]

    def rows(self, sql: str, *parameters: Any) -> list[Any]:
        connection = sqlite3.connect(self.database, timeout=_BUSY_SECONDS)
        try:
            with connection:
                return connection.execute(sql, parameters).fetchall()
        finally:
            connection.close()

    def head(self) -> str | None:
        """The newest checkpoint of the root namespace, which LangGraph would resume."""
        columns = {row[1] for row in self.rows("PRAGMA table_info(checkpoints)")}
        ident = "checkpoint_id" if "checkpoint_id" in columns else "thread_ts"
        root = " AND checkpoint_ns = ''" if "checkpoint_ns" in columns else ""
        found = self.rows(f"SELECT max({ident}) FROM checkpoints WHERE thread_id = ?{root}", self.request["thread_id"])
        return typing.cast("str | None", found[0][0])

    def finished(self) -> set[str]:
        """Ids of the tasks of the head, and of the subgraphs called from it, that have a result already."""
        head = self.head()
        if head is None or "checkpoint_id" not in {row[1] for row in self.rows("PRAGMA table_info(writes)")}:
            return set()
        marks = ", ".join("?" * len(_CONTROL))
        sql = f"SELECT DISTINCT task_id FROM writes WHERE thread_id = ? AND checkpoint_id >= ? AND channel NOT IN ({marks})"
        return {row[0] for row in self.rows(sql, self.request["thread_id"], head, *_CONTROL)}


def versions() -> dict[str, Any]:
    strict = False
    with contextlib.suppress(ImportError):
        from langgraph.checkpoint.serde import _msgpack

        strict = bool(getattr(_msgpack, "STRICT_MSGPACK_ENABLED", False))
    return {
        "python": ".".join(map(str, sys.version_info[:3])), "executable": sys.executable, "strict_mode": strict,
        "langgraph": version_of("langgraph"), "checkpoint": version_of("langgraph-checkpoint"),
        "sqlite": version_of("langgraph-checkpoint-sqlite"),
    }  # fmt: skip


@contextlib.asynccontextmanager
async def opened_saver(
    database: str, gate: Any, is_async: bool, encrypted: bool = False, rows: dict[str, Any] | None = None
) -> AsyncIterator[Any]:
    """LangGraph's own saver on a file, with the guarded serializer; `encrypted`: what it stores is encrypted.

    `rows` are put into the database first, which is then one in memory.
    """
    cls, plain = saver_class(is_async), serializer(gate)
    require_layout(database, rows)
    serde = encrypting(plain) if encrypted else plain
    connection: Any
    if is_async:
        import aiosqlite

        connection = await aiosqlite.connect(database, timeout=_BUSY_SECONDS)
    else:
        connection = sqlite3.connect(database, check_same_thread=False, timeout=_BUSY_SECONDS)
    try:
        for sql, cells in statements(rows) if rows is not None else ():
            if is_async:
                await connection.execute(sql, cells)
            else:
                connection.execute(sql, cells)
        saver = cls(connection, serde=serde)
        if hasattr(saver, "jsonplus_serde"):  # older releases read metadata with a serializer of its own
            saver.jsonplus_serde = plain
        yield saver
    finally:
        if is_async:
            await connection.close()
        else:
            connection.close()


def statements(rows: dict[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """What makes the tables of a request and fills them; bytes came as `{"b64": ...}`."""
    for table in rows["tables"]:
        yield table["sql"], []
        names = ", ".join('"' + name.replace('"', '""') + '"' for name in table["columns"])
        sql = "INSERT INTO {} ({}) VALUES ({})".format(table["name"], names, ", ".join("?" * len(table["columns"])))
        for row in table["rows"]:
            yield sql, [base64.b64decode(cell["b64"]) if isinstance(cell, dict) else cell for cell in row]
