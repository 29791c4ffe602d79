"""The program that runs a user's graph, in the user's own interpreter.

Started by path (`python -u child.py`), never imported: the studio is not importable here. It and the `child_*.py` files beside
it need the standard library and the user's LangGraph, and are valid for Python 3.9.

    stdin    one line of JSON, the request; then the pipe stays open, and its end means that the studio is gone
    stdout   one JSON object per line, the events; moved to a private descriptor at once, so that `print` cannot disturb it
    stderr   whatever the user's code prints or logs

A request has `op` = `inspect`, `run`, `update_state` or `preview_update`, and `graph` (file or module, attr, project_dir, env
...). Events are `ready`, `checkpoint`, `task`, `task_result`, `log`, `part` (of a value, for a preview) and, last and exactly
once, `end` with status done, paused or failed.
"""

from __future__ import annotations

import sys

# This folder comes first on the import path since the program was started by path; its modules must not shadow the user's.
HERE = sys.path.pop(0)

import asyncio  # noqa: E402
import contextlib  # noqa: E402
import importlib.util  # noqa: E402
import json  # noqa: E402
import os  # noqa: E402
import select  # noqa: E402
import signal  # noqa: E402
import sqlite3  # noqa: E402
import threading  # noqa: E402
import time  # noqa: E402
import typing  # noqa: E402
from collections.abc import Coroutine  # noqa: E402
from typing import Any  # noqa: E402

_EXIT_SECONDS = 5.0
_EVENT_BYTES = 1_000_000
_ITEMS = 200
"""Entries of a list that are kept of an event longer than that."""


def _sibling(name: str) -> Any:
    """Load a file of this folder under a name that no user module has."""
    spec = importlib.util.spec_from_file_location("_studio_" + name, os.path.join(HERE, name + ".py"))
    if spec is None or spec.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


loading = _sibling("child_graph")
types = _sibling("child_types")
driving = _sibling("child_driver")
reporting = _sibling("child_report")
schema = _sibling("child_schema")
_sibling("child_topology")
running = _sibling("child_run")
updating = _sibling("child_update")


class Events:
    """Writes events to the private pipe; safe for threads; silent once nobody reads."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._ended = False

    def send(self, event: str, **data: Any) -> None:
        line = json.dumps({"event": event, **data}, default=repr).encode("ascii") + b"\n"
        if len(line) > _EVENT_BYTES:
            line = json.dumps({"event": event, **shortened(data)}, default=repr).encode("ascii") + b"\n"
        with self._lock:
            if self._ended:
                return
            self._ended = event == "end"
            with contextlib.suppress(OSError):
                while line:
                    line = line[os.write(self._fd, line) :]


def shortened(value: Any) -> Any:
    """An event's data with long texts and lists cut: many questions, or names as long as books."""
    if isinstance(value, str):
        return loading.cut(value, 2_000)
    if isinstance(value, (list, tuple)):
        return [shortened(item) for item in value[:_ITEMS]]
    return {key: shortened(item) for key, item in value.items()} if isinstance(value, dict) else value


def take_over_pipes() -> tuple[str, int, Events]:
    """Read the request, then keep stdout for events alone. Returns (request line, what is left of stdin, events)."""
    chunks: list[bytes] = []
    while not (chunks and chunks[-1].endswith(b"\n")):
        chunk = os.read(0, 1 << 20)
        if not chunk:
            break
        chunks.append(chunk)
    control = os.dup(0)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    events = Events(os.dup(1))
    os.dup2(2, 1)
    return b"".join(chunks).decode(), control, events


def watch_studio(control: int) -> None:
    """End the whole process group when the studio dies, even while user code holds the interpreter in an endless loop.

    A small forked process waits for the end of stdin; it ends itself with this process.
    """
    if not hasattr(os, "fork") or os.getpgrp() != os.getpid():
        return
    gone, _alive = os.pipe()  # the write end closes when this process ends, however it ends
    if os.fork():
        os.close(gone)
        return
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for fd in {*range(64)} - {control, gone}:  # above all the pipes, whose end the studio waits for
        with contextlib.suppress(OSError):
            os.close(fd)
    while True:
        ready, _, _ = select.select([control, gone], [], [])
        if gone in ready:
            os._exit(0)
        if not os.read(control, 4096):
            os.killpg(os.getpgrp(), signal.SIGKILL)


class Operation:
    """One request, from loading the graph to the end event."""

    def __init__(self, request: dict[str, Any], events: Events) -> None:
        self.request = request
        self.events = events
        self.gate = types.TypeGate(request.get("trusted") or ())
        self.driver: Any = None

    def perform(self) -> dict[str, Any]:
        os.environ["LANGGRAPH_STRICT_MSGPACK"] = "true"  # read once, when LangGraph is imported
        loading.prepare(self.request["graph"])
        driving.require_langgraph()
        found, self.module = loading.import_attribute(self.request["graph"])
        config = {"configurable": dict(self.request.get("configurable") or {}, thread_id=self.request.get("thread_id", ""))}
        if loading.needs_loop(found):
            return asyncio.run(self._build_in_loop(found, config))
        with contextlib.ExitStack() as stack:
            graph = loading.build(found, config, stack)
            if loading.needs_async(graph):
                return asyncio.run(self._with_graph(graph, True))
            return without_loop(self._with_graph(graph, False))

    async def _build_in_loop(self, found: Any, config: dict[str, Any]) -> dict[str, Any]:
        async with contextlib.AsyncExitStack() as stack:
            return await self._with_graph(await loading.abuild(found, config, stack), True)

    async def _with_graph(self, graph: Any, is_async: bool) -> dict[str, Any]:
        names = types.schema_names(graph)
        names |= types.lend_to_main(names, self.module)
        self.gate.allow(names)
        known = driving.versions()
        self.events.send("ready", **known, **{"async": is_async})
        if self.request["op"] == "inspect":
            described = running.inspect(graph, self.request, names, self.gate.allowed, is_async)
            described["channel_types"] = schema.channel_types(graph)
            described["schema_version"] = schema.schema_version(graph, self.module)
            return {"status": "done", "result": {**known, **described, "module": self.module}}
        operation = {
            "run": running.run, "update_state": updating.update_state, "preview_update": updating.preview_update,
        }[self.request["op"]]  # fmt: skip
        encrypted, rows = bool(self.request.get("encrypted")), self.request.get("rows")
        async with driving.opened_saver(self.request["database"], self.gate, is_async, encrypted, rows) as saver:
            self.driver = driving.Driver(graph, saver, is_async, self.request)
            return typing.cast("dict[str, Any]", await operation(self.driver, self.events))

    def end(self) -> dict[str, Any]:
        """The end event's fields; every way to fail ends here."""
        ended: dict[str, Any] = {}
        try:
            ended = self.perform()
        except driving.Failure as error:
            ended = failed(error.kind, str(error), **error.more)
        except loading.LoadError as error:
            spec = self.request["graph"]
            where = spec.get("file") or spec["module"]
            message = str(error) if where in str(error) else f"{where}:{spec['attr']}: {error}"
            ended = failed("load", message, traceback=error.detail, place=error.place)
        except types.BlockedTypes as error:
            ended = failed("types", str(error), types=error.names)
        except BaseException as error:
            text = str(error) or loading.describe(error)
            trace, place = loading.user_traceback(error), loading.user_place(error)
            ended = failed("run", text, type=type(error).__name__, traceback=trace, place=place)
        ended["head"] = None
        if self.driver is not None:
            with contextlib.suppress(sqlite3.Error):
                ended["head"] = self.driver.head()
        return ended


def failed(kind: str, message: str, **more: Any) -> dict[str, Any]:
    """`kind` = load, saver, types, answers, update or run."""
    error = {"kind": kind, "type": "", "message": loading.cut(message), "traceback": "", **more}
    return {"status": "failed", "error": error}


def without_loop(coroutine: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    """Run a coroutine that never waits, with no event loop around: a sync node may call `asyncio.run` itself."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return typing.cast("dict[str, Any]", stop.value)
    raise RuntimeError("a sync graph waited for an event loop")


def leave() -> None:
    """Exit as usual, but do not wait for threads that the user's code left behind."""

    def force() -> None:
        time.sleep(_EXIT_SECONDS)
        os._exit(0)

    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()
    threading.Thread(target=force, daemon=True).start()


def main() -> None:
    line, control, events = take_over_pipes()
    request = json.loads(line)
    if request.get("watch"):
        watch_studio(control)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    events.send("end", **Operation(request, events).end())
    leave()


if __name__ == "__main__":
    main()
