"""The sidecar: what the studio keeps about a store, beside its scratch file and never in the store.

The runs with their plan and outcome, and the audit: every write to a user's own store with the
rows it added. Imported lazily, since it brings sqlite-utils.
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlite_utils
from msgspec import Struct
from sqlite_utils.db import NotFoundError

from studio.errors import StudioError
from studio.interrupted import lives, this_process
from studio.model import Address
from studio.stores.rows import lenient, placed
from studio.stores.sqlite_file import turn

BUSY_SECONDS = 2.0
"""How long another studio may keep the sidecar; it writes single rows."""
_KEY = ("thread_id", "checkpoint_ns", "checkpoint_id")
_TABLES: dict[str, tuple[dict[str, type], tuple[str, ...]]] = {
    "runs": (
        {"id": str, "thread_id": str, "checkpoint_ns": str, "checkpoint_id": str, "plan": str, "status": str, "outcome": str,
         "started_at": str, "ended_at": str, "studio": str},
        ("id",),
    ),
    "audit": (
        {"id": int, "store": str, "act": str, "thread_id": str, "checkpoint_ns": str, "checkpoint_id": str, "added": str,
         "carried_rows": int, "status": str, "started_at": str, "ended_at": str},
        ("id",),
    ),
    "studio_origins": (
        {**dict.fromkeys(_KEY, str), **{f"origin_{name}": str for name in _KEY}, "origin_sha256": str, "created_at": str},
        _KEY,
    ),
    "studio_updates": ({**dict.fromkeys(_KEY, str), "written": str, "created_at": str}, _KEY),
}  # fmt: skip


class RunRecord(Struct, frozen=True):
    """A run as it was planned and how it ended; `status` is `running` until then, `interrupted` where nobody follows it now."""

    id: str
    address: Address
    plan: Any
    status: str
    outcome: Any
    started_at: str
    ended_at: str | None


class AuditEntry(Struct, frozen=True):
    """One write to a user's own store. `status` is `begun` (and stays so when the studio was killed in the middle), `done`,
    or `refused`: the store did not take it."""

    id: int
    store: str
    act: str
    origin: Address
    added: tuple[Address, ...]
    carried_rows: int
    status: str
    started_at: str
    ended_at: str | None


class Notes:
    """The sidecar of one store. Reading makes no file; the first thing kept makes it (0600, in a 0700 folder)."""

    def __init__(self, path: str) -> None:
        self.path = path

    # ---- runs

    def begin_run(self, run_id: str, address: Address, plan: Mapping[str, Any]) -> None:
        with self._open() as db:
            _insert(
                db, "runs",
                {"id": run_id, **_row(address), "plan": _json(plan), "status": "running", "outcome": None,
                 "started_at": _now(), "ended_at": None, "studio": this_process()},
            )  # fmt: skip

    def end_run(self, run_id: str, status: str, outcome: Mapping[str, Any] | None = None) -> None:
        with self._open() as db:
            db.table("runs").update(run_id, {"status": status, "outcome": _json(outcome), "ended_at": _now()})

    def runs(self, thread_id: str | None = None) -> list[RunRecord]:
        """Runs of a thread, or all, oldest first."""
        where, values = ("thread_id = ?", [thread_id]) if thread_id is not None else ("1", [])
        return [
            RunRecord(
                row["id"], _address(row), _from_json(row["plan"]), _status(row), _from_json(row["outcome"]),
                row["started_at"], row["ended_at"],
            )
            for row in self._read("runs", where, values, "started_at, rowid")
        ]  # fmt: skip

    # ---- writes to a user's own store

    def audit_begin(self, store: str, act: str, origin: Address, added: Sequence[Address], carried_rows: int = 0) -> int:
        """Say what is about to be added to a user's store; returns the entry's number for `audit_done`.

        Raises StudioError when that cannot be kept; then nothing may be written.
        """
        try:
            with self._open() as db:
                table = _insert(
                    db, "audit",
                    {"store": store, "act": act, **_row(origin), "added": _keys(added), "carried_rows": carried_rows,
                     "status": "begun", "started_at": _now(), "ended_at": None},
                )  # fmt: skip
                return int(str(table.last_pk))
        except StudioError as error:
            message = f"Nothing was written to {store}, since the audit of it cannot be kept. {error.message}"
            raise StudioError(message, "Make that file writable, or leave out --in-place.", "no-audit") from error

    def audit_done(self, entry: int, added: Sequence[Address] | None = None) -> None:
        """Complete an entry, with what was added where that was not known before."""
        found = {} if added is None else {"added": _keys(added)}
        with self._open() as db:
            db.table("audit").update(entry, {**found, "status": "done", "ended_at": _now()})

    def audit_refused(self, entry: int) -> None:
        """The store did not take what was begun: nothing was added."""
        with self._open() as db:
            db.table("audit").update(entry, {"added": _keys(()), "status": "refused", "ended_at": _now()})

    def audit(self) -> list[AuditEntry]:
        """Every write to a user's store, oldest first."""
        return [
            AuditEntry(
                row["id"], row["store"], row["act"], _address(row), tuple(Address(*key) for key in json.loads(row["added"])),
                row["carried_rows"], row["status"], row["started_at"], row["ended_at"],
            )
            for row in self._read("audit", "1", [], "id")
        ]  # fmt: skip

    def record_origin(self, new: Address, origin: Address, sha256: str) -> None:
        """The origin of a fork in the user's own file (forks in the scratch file keep theirs there)."""
        with self._open() as db:
            came_from = {f"origin_{name}": text for name, text in _row(origin).items()}
            _insert(db, "studio_origins", {**_row(new), **came_from, "origin_sha256": sha256, "created_at": _now()})

    def record_update(self, at: Address, written: Sequence[tuple[str, Sequence[str]]]) -> None:
        """As which nodes a row in the user's own file was written."""
        with self._open() as db:
            _insert(db, "studio_updates", {**_row(at), "written": json.dumps(written), "created_at": _now()})

    # ---- the file

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite_utils.Database]:
        try:
            Path(self.path).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
            with turn(self.path), contextlib.closing(sqlite3.connect(self.path, timeout=BUSY_SECONDS)) as connection:
                connection.text_factory = lenient
                db = sqlite_utils.Database(connection)
                for name, (columns, key) in _TABLES.items():
                    db.table(name).create(columns, pk=key if len(key) > 1 else key[0], if_not_exists=True)
                with connection:
                    yield db
        except NotFoundError as error:
            reason = "the row that was to be completed is no longer there"
            raise StudioError(f"Notes cannot be kept in {self.path}: {reason}.", slug="notes") from error
        except (OSError, sqlite3.Error) as error:
            raise StudioError(f"Notes cannot be kept in {self.path}: {str(error).rstrip('.')}.", slug="notes") from error

    def _read(self, table: str, where: str, values: Sequence[Any], order: str) -> list[dict[str, Any]]:
        if not os.path.isfile(self.path):
            return []
        with self._open() as db:
            return list(db.table(table).rows_where(where, values, order_by=order))


def _status(row: Mapping[str, Any]) -> str:
    interrupted = row["status"] == "running" and not lives(row.get("studio") or "")
    return "interrupted" if interrupted else str(row["status"])


def _insert(db: sqlite_utils.Database, table: str, row: Mapping[str, Any]) -> sqlite_utils.db.Table:
    """A row in the place of one with the same key. A path or an id that is not UTF-8 is stored as the bytes that it is."""
    bound = {name: placed(value, "") for name, value in row.items()}
    places = {name: place for name, (place, _) in bound.items() if place != "?"}
    return db.table(table).insert(
        {name: value for name, (_, value) in bound.items()}, replace=True, alter=True, conversions=places
    )


def _row(address: Address) -> dict[str, str]:
    return {"thread_id": address.thread_id, "checkpoint_ns": address.checkpoint_ns, "checkpoint_id": address.checkpoint_id}


def _address(row: Mapping[str, Any]) -> Address:
    return Address(row["thread_id"], row["checkpoint_ns"], row["checkpoint_id"])


def _keys(addresses: Sequence[Address]) -> str:
    return json.dumps([[one.thread_id, one.checkpoint_ns, one.checkpoint_id] for one in addresses])


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, default=str)


def _from_json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
