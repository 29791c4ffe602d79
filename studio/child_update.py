"""Write as one node, or as several in one superstep: `update_state` of the user's own LangGraph, or a preview of it.

A preview does the same on a database in memory, filled with the rows of the request, and sends back what became of each channel.

Standard library and the user's LangGraph only, valid for Python 3.9: `child.py` loads this file by path.
"""

from __future__ import annotations

import base64
import sys
import typing
from collections.abc import Iterable
from typing import Any

loading = sys.modules["_studio_child_graph"]
driving = sys.modules["_studio_child_driver"]
running = sys.modules["_studio_child_run"]

Failure = driving.Failure

END, INPUT, START, COPY = "__end__", "__input__", "__start__", "__copy__"
_PART = 600_000
"""Characters of a value in one event."""
_NO_MERGE = ("LastValue", "LastValueAfterFinish", "EphemeralValue", "AnyValue", "UntrackedValue")
"""Channels that take a new value as it is."""
_ONE_BY_ONE = "write as one node after the other: each write is a fork of the last one"
_SET = "set the state instead: final values go past every reducer"


class Update(typing.NamedTuple):
    """What one node would return. `values` are as the graph gets them: replacing ones are wrapped."""

    as_node: typing.Optional[str]
    values: Any
    plain: Any


def asked_for(driver: Any) -> list[Update]:
    """The updates of the request."""
    found = []
    for one in driver.request.get("updates") or [driver.request]:
        plain = driver.value(one["values"]) if one.get("values") else None
        replacing = one.get("overwrite") or ()
        found.append(Update(one.get("as_node"), replaced(driver.graph, plain, replacing) if replacing else plain, plain))
    return found


def overwrite_class() -> Any:
    """LangGraph's `Overwrite`; None in a release without it."""
    try:
        from langgraph.types import Overwrite
    except ImportError:
        return None
    return Overwrite


def replaced(graph: Any, values: Any, channels: Iterable[str]) -> Any:
    """The values of an update with those of some channels marked to replace what is there instead of being merged into it."""
    if not isinstance(values, dict):
        raise Failure("update", "the update names no channels, so none of them can be replaced", hint=_SET)
    mark = overwrite_class()
    if mark is None:
        version = driving.version_of("langgraph")
        raise Failure("update", "LangGraph {} has no Overwrite".format(version), hint=_SET)
    found = dict(values)
    for name in channels:
        if name not in values:
            raise Failure("update", "the update has no value for {!r} to replace it by".format(name), hint="")
        if name in graph.channels and merges(graph.channels[name]):
            found[name] = mark(values[name])
    return found


def merges(channel: Any) -> bool:
    """Whether a channel puts a new value together with what it holds."""
    return type(channel).__name__ not in _NO_MERGE


async def perform(driver: Any, updates: list[Update]) -> dict[str, Any]:
    """Update the checkpoint of the request and return where the new one is. Raises Failure with LangGraph's own reason."""
    request = driver.request
    config = driver.config(request["checkpoint_id"], request.get("checkpoint_ns") or "")
    if any(one.as_node == COPY for one in updates):
        raise Failure("update", "__copy__ is no node", hint="the same point again is a fork without --as-node")
    try:
        if len(updates) == 1:
            made = await driver.update_state(config, updates[0].values, updates[0].as_node)
        else:
            made = await together(driver, config, updates)
    except Exception as error:
        if type(error).__name__ != "InvalidUpdateError":
            raise
        raise Failure("update", str(error) or loading.describe(error), **await advice(driver, config, updates)) from error
    return typing.cast("dict[str, Any]", made["configurable"])


async def together(driver: Any, config: dict[str, Any], updates: list[Update]) -> Any:
    try:
        from langgraph.types import StateUpdate
    except ImportError as error:
        version = driving.version_of("langgraph")
        reason = "LangGraph {} cannot write as several nodes in one superstep".format(version)
        raise Failure("update", reason, hint=_ONE_BY_ONE) from error
    return await driver.bulk_update_state(config, [StateUpdate(one.values, one.as_node) for one in updates])


async def advice(driver: Any, config: dict[str, Any], updates: list[Update]) -> dict[str, Any]:
    """What to do about an update that LangGraph refused: the nodes to choose from, or another act."""
    nodes = [name for name in driver.graph.nodes if name != START]
    if any(one.as_node is None for one in updates):
        return {"candidates": await last_nodes(driver, config) or nodes}
    if any(one.as_node == END and one.values is not None for one in updates):
        return {"hint": "nothing is written as __end__: leave the values out, or write as the last node"}
    known = {*nodes, START, INPUT, END}
    return {} if all(one.as_node in known for one in updates) else {"candidates": nodes}


async def update_state(driver: Any, events: Any) -> dict[str, Any]:
    """Write values as nodes would: reducers apply, and the nodes' edges decide what is next."""
    updates = asked_for(driver)
    ns = driver.request.get("checkpoint_ns") or ""
    as_node = updates[0].as_node or await default_node(driver, driver.config(driver.request["checkpoint_id"], ns))
    conf = await perform(driver, updates)
    result = {"checkpoint_id": conf.get("checkpoint_id") or conf.get("thread_ts"), "checkpoint_ns": conf.get("checkpoint_ns", ns)}
    told = {"as_node": as_node, "dropped": dropped(driver, updates), "channels": running.channel_kinds(driver.graph)}
    return {"status": "done", "result": {**result, **told}}


async def preview_update(driver: Any, events: Any) -> dict[str, Any]:
    """Do the same in memory, and send what every channel that changed holds afterwards, as LangGraph would store it."""
    request, updates = driver.request, asked_for(driver)
    ns = request.get("checkpoint_ns") or ""
    config = driver.config(request["checkpoint_id"], ns)
    as_node = updates[0].as_node or await default_node(driver, config)
    before = stored(driver, await driver.get_state(config))
    conf = await perform(driver, updates)
    ident = conf.get("checkpoint_id") or conf.get("thread_ts")
    snapshot = await driver.get_state(driver.config(ident, conf.get("checkpoint_ns", ns)))
    after = stored(driver, snapshot)
    for name, (tag, data) in after.items():
        if before.get(name) != (tag, data):
            send(events, name, tag, data)
    result = {
        "next": list(snapshot.next), "gone": [name for name in before if name not in after], "as_node": as_node,
        "merged": merged(driver, updates, before, after), "can_replace": overwrite_class() is not None,
        "dropped": dropped(driver, updates), "channels": running.channel_kinds(driver.graph),
    }  # fmt: skip
    return {"status": "done", "result": result}


Stored = typing.Dict[str, typing.Tuple[str, bytes]]


def stored(driver: Any, snapshot: Any) -> Stored:
    """Channel -> (tag, bytes) of the values of a snapshot. A graph with one unnamed channel has it under `__root__`."""
    values = snapshot.values if isinstance(snapshot.values, dict) else {"__root__": snapshot.values}
    return {str(name): driver.plain.dumps_typed(value) for name, value in values.items()}


def send(events: Any, name: str, tag: str, data: bytes) -> None:
    """A value of any size, in events of a bearable one."""
    text = base64.b64encode(data).decode("ascii")
    for start in range(0, max(1, len(text)), _PART):
        events.send("part", name=name, tag=tag, data=text[start : start + _PART])


def merged(driver: Any, updates: list[Update], before: Stored, after: Stored) -> list[str]:
    """Channels that held something, and hold it together with what was written now, rather than what was written."""
    found = []
    for name in dict.fromkeys(name for one in updates if isinstance(one.plain, dict) for name in one.plain):
        channel = driver.graph.channels.get(name)
        if channel is None or not merges(channel) or name not in before or name not in after:
            continue
        was = driver.plain.loads_typed(before[name])
        if isinstance(was, (list, dict, set, tuple, str)) and not was:
            continue
        written = [one.plain[name] for one in updates if isinstance(one.plain, dict) and name in one.plain]
        wrapped = any(isinstance(one.values, dict) and one.values.get(name) is not one.plain.get(name) for one in updates
                      if isinstance(one.plain, dict) and name in one.plain)  # fmt: skip
        if not wrapped and all(driver.plain.dumps_typed(value) != after[name] for value in written):
            found.append(name)
    return found


def dropped(driver: Any, updates: list[Update]) -> list[str]:
    """Names that were written to and that the graph has no channel for: LangGraph passes them over."""
    if driver.request.get("checkpoint_ns"):
        return []
    names = (str(name) for one in updates if isinstance(one.plain, dict) for name in one.plain)
    return [name for name in dict.fromkeys(names) if name not in driver.graph.channels]


async def default_node(driver: Any, config: dict[str, Any]) -> str | None:
    """The node that LangGraph takes when none is named; None where it refuses to choose."""
    nodes = [name for name in driver.graph.nodes if name != START]
    last = await last_nodes(driver, config)
    if len(driver.graph.nodes) == 1:
        return str(next(iter(driver.graph.nodes)))
    return last[0] if len(last) == 1 and (last[0] in nodes or last[0] == START) else None


async def last_nodes(driver: Any, config: dict[str, Any]) -> list[str]:
    """The nodes that made a checkpoint: those that saw the highest version. Only between them LangGraph cannot choose."""
    seen = (await driver.checkpoint(config) or {}).get("versions_seen") or {}
    newest = {name: max(versions.values()) for name, versions in seen.items() if name in driver.graph.nodes and versions}
    return sorted(name for name, version in newest.items() if version == max(newest.values()))
