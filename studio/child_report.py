"""What a run tells while it goes: LangGraph's stream as events, custom events and a model's tokens as lines of the log.

Standard library and the user's LangGraph only, valid for Python 3.9: `child.py` loads this file by path.
"""

from __future__ import annotations

import inspect as inspection
import json
import sys
import typing
from collections.abc import Iterable
from typing import Any

driving = sys.modules["_studio_child_driver"]

_VALUE_LIMIT = 20_000
_LINES = 200
"""Custom events, and lines of what models say, that are told in one run."""
_LINE_LENGTH = 400


def jsonable(value: Any) -> Any:
    """A value for an event: JSON where it is, else its `repr`, cut when long. The store holds the exact one."""
    try:
        text = json.dumps(value, default=lambda other: getattr(other, "model_dump", lambda: repr(other))())
    except Exception:
        text = json.dumps(repr(value))
    return json.loads(text) if len(text) <= _VALUE_LIMIT else text[:_VALUE_LIMIT] + "…"


def stream_options(driver: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `stream` that this release knows. Raises Failure for a context that it cannot take.

    With a number of `steps` LangGraph stops after each superstep, and `run` lets it go on.
    """
    graph = driver.graph
    known = inspection.signature(graph.stream).parameters
    try:
        from langgraph.types import StreamMode

        modes = typing.get_args(StreamMode)
    except ImportError:
        modes = ()
    wanted = [mode for mode in ("checkpoints", "tasks") if mode in modes] or ["debug"]
    wanted += [mode for mode in ("custom", "messages") if mode in modes]
    options: dict[str, Any] = {"stream_mode": wanted}
    # Every checkpoint is stored before the next step begins: a state that is shown is a state that was.
    for name, value in (("durability", "sync"), ("checkpoint_during", True), ("subgraphs", True)):
        if name in known and not (name == "checkpoint_during" and "durability" in options):
            options[name] = value
    for name in ("interrupt_before", "interrupt_after"):
        if request.get(name):
            options[name] = list(request[name])
    if request.get("steps"):
        options["interrupt_after"] = "*"
    given = driver.value(request["context"]) if request.get("context") else {}
    if given and "context" not in known:
        raise driving.Failure("context", "LangGraph {} knows no context".format(driving.version_of("langgraph")))
    schema = getattr(graph, "context_schema", None)
    if "context" in known:
        fields = set(getattr(schema, "model_fields", None) or getattr(schema, "__annotations__", None) or ())
        stored = {key: value for key, value in (request.get("configurable") or {}).items() if key in fields}
        if stored or given:
            options["context"] = {**stored, **given}
    return options


def is_breakpoint(graph: Any, request: dict[str, Any], ran: Iterable[str], following: Iterable[str]) -> bool:
    """Whether a run that stops after each superstep anyway stands before or after a node to stop at, asked for or the graph's."""

    def meets(which: str, names: Iterable[str]) -> bool:
        wanted = request.get("interrupt_" + which) or getattr(graph, "interrupt_{}_nodes".format(which), None) or ()
        return wanted == "*" or not set(wanted).isdisjoint(names)

    return meets("before", following) or meets("after", ran)


class Tokens:
    """What models say, joined from their tokens into lines: a secret that is split between two tokens is masked as one."""

    def __init__(self, events: Any) -> None:
        self.events = events
        self.lines = 0
        self.dropped = 0
        self.open: dict[tuple[str, str, str], str] = {}
        """(namespace, node, id of the message) -> the begun line."""

    def add(self, message: Any, metadata: dict[str, Any], where: str) -> None:
        if not type(message).__name__.startswith("AIMessage"):
            return
        key = where, str(metadata.get("langgraph_node") or ""), str(getattr(message, "id", None))
        text = self.open.pop(key, "") + said(getattr(message, "content", ""))
        *whole, rest = text.split("\n")
        while len(rest) > _LINE_LENGTH:
            cut = rest.rfind(" ", 1, _LINE_LENGTH)
            cut = cut if cut > 0 else _LINE_LENGTH
            whole.append(rest[:cut])
            rest = rest[cut:]
        for line in whole:
            self.tell(key, line)
        if rest:
            self.open[key] = rest

    def tell(self, key: tuple[str, str, str], line: str) -> None:
        if not line.strip():
            return
        self.lines += 1
        if self.lines > _LINES:
            self.dropped += 1
        else:
            self.events.send("log", stream="model", checkpoint_ns=key[0], node=key[1], text=line)

    def flush(self) -> None:
        """Tell the begun lines as they are, and how many were not told."""
        for key, line in self.open.items():
            self.tell(key, line)
        self.open.clear()
        if self.dropped:
            text = "… {:,} more lines of what models said not shown".format(self.dropped)
            self.events.send("log", stream="studio", text=text)
            self.dropped = 0


def said(content: Any) -> str:
    """The text of a message's content: a string, or the text blocks of a list."""
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else ()
    texts = [block if isinstance(block, str) else block.get("text") for block in blocks if isinstance(block, (str, dict))]
    return "".join(text for text in texts if isinstance(text, str))


class Reporter:
    """Turns LangGraph's stream into events; the events are a nudge to look, so they carry names and no state."""

    def __init__(self, events: Any, thread_id: str, kept: set[str]) -> None:
        self.events = events
        self.thread_id = thread_id
        self.kept = kept
        """Ids of tasks that finished before: LangGraph announces them too, but they do not run."""
        self.custom = 0
        self.tokens = Tokens(events)
        self.ran: set[str] = set()
        """Nodes of the root graph that finished since this was emptied."""

    def item(self, item: Any) -> None:
        ns: Any = ()
        if isinstance(item, tuple) and len(item) == 3:
            ns, mode, payload = item
        elif isinstance(item, tuple) and len(item) == 2:
            mode, payload = item
        else:
            mode, payload = "debug", item
        if mode == "debug" and isinstance(payload, dict) and "payload" in payload:
            mode, payload = payload.get("type"), payload["payload"]
        where = "|".join(ns) if isinstance(ns, (tuple, list)) else str(ns)
        if mode in ("checkpoints", "checkpoint"):
            self.checkpoint(payload)
        elif mode in ("tasks", "task", "task_result"):
            self.task(payload, where)
        elif mode == "custom":
            self.custom += 1
            if self.custom <= _LINES:
                self.events.send("log", stream="custom", checkpoint_ns=where, text=json.dumps(jsonable(payload)))
        elif mode == "messages" and isinstance(payload, (tuple, list)) and len(payload) == 2:
            self.tokens.add(payload[0], payload[1] if isinstance(payload[1], dict) else {}, where)

    def flush(self) -> None:
        """Tell what is still kept back, at the end of a stream."""
        self.tokens.flush()
        if self.custom > _LINES:
            text = "… {:,} more custom events not shown".format(self.custom - _LINES)
            self.events.send("log", stream="studio", text=text)
            self.custom = _LINES

    def checkpoint(self, payload: dict[str, Any]) -> None:
        conf = (payload.get("config") or {}).get("configurable", {})
        metadata = payload.get("metadata") or {}
        self.events.send(
            "checkpoint", thread_id=self.thread_id, checkpoint_ns=conf.get("checkpoint_ns", ""),
            checkpoint_id=conf.get("checkpoint_id") or conf.get("thread_ts"), step=metadata.get("step"),
            source=metadata.get("source"), next=list(payload.get("next") or ()),
        )  # fmt: skip

    def task(self, payload: dict[str, Any], where: str) -> None:
        if payload.get("id") in self.kept:
            return
        known = {"id": payload.get("id"), "name": payload.get("name"), "checkpoint_ns": where}
        if "result" in payload or "error" in payload or "interrupts" in payload:
            self.tokens.flush()
            if not where:
                self.ran.add(str(payload.get("name")))
            result, error = payload.get("result") or {}, payload.get("error")
            written = result if isinstance(result, dict) else [pair[0] for pair in result if isinstance(pair, (tuple, list))]
            self.events.send(
                "task_result", **known, channels=[str(channel) for channel in written],
                error=None if error is None else str(error)[:_VALUE_LIMIT], interrupts=len(payload.get("interrupts") or ()),
            )  # fmt: skip
        else:
            self.events.send("task", **known, triggers=[str(trigger) for trigger in payload.get("triggers") or ()])
