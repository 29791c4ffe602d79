"""Make the databases that the benchmarks measure, with the real SqliteSaver.

    python benchmarks/generate.py long  OUT.sqlite [5000]    one thread, a rolling window of 50 messages (about 130 MB)
    python benchmarks/generate.py wide  OUT.sqlite [2000]    many threads of two short turns (about 80 MB)
    python benchmarks/generate.py delta OUT.sqlite [5000]    one thread, its messages in a delta channel (about 40 MB)
    python benchmarks/generate.py deep  OUT.sqlite [100000]  one very long thread with a small state (about 250 MB)

The last one runs a real graph for its first checkpoints and then goes on with copies of their rows, each with ids, steps and
versions of its own, since running so long a thread would take hours.

Deterministic but for ids and times. Needs langgraph and langgraph-checkpoint-sqlite; no network.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph

from studio.explain.ids import task_id

SENTENCE = "Checkpoints accumulate while the agent weighs one tool against another and writes its reasons down at length. " * 3


def last_fifty(before: list[Any] | None, new: list[Any]) -> list[Any]:
    return ((before or []) + new)[-50:]


class Rolling(TypedDict, total=False):
    count: int
    messages: Annotated[list[Any], last_fifty]


class Turn(TypedDict, total=False):
    messages: Annotated[list[Any], last_fifty]
    plan: str
    facts: dict[str, Any]
    turns: int


def all_of(before: list[Any] | None, writes: list[list[Any]]) -> list[Any]:
    return [*(before or []), *(message for write in writes for message in write)]


class Growing(TypedDict, total=False):
    count: int
    messages: Annotated[list[Any], DeltaChannel(all_of)]


def said(i: int) -> HumanMessage | AIMessage:
    return (HumanMessage if i % 2 else AIMessage)(f"{i}: {SENTENCE}", id=f"m{i}")


def long(saver: SqliteSaver, checkpoints: int) -> None:
    builder: StateGraph[Any] = StateGraph(Rolling)
    builder.add_node("work", lambda state: {"count": state["count"] + 1, "messages": [said(state["count"] + 1)]})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: END if state["count"] >= checkpoints - 2 else "work", ["work", END])
    graph = builder.compile(checkpointer=saver)
    start: Any = {"count": 0, "messages": [said(i) for i in range(50)]}
    graph.invoke(start, {"configurable": {"thread_id": "long"}, "recursion_limit": checkpoints + 10})


def wide(saver: SqliteSaver, threads: int) -> None:
    builder: StateGraph[Any] = StateGraph(Turn)
    builder.add_node("plan", lambda state: {"plan": "p" * 200, "messages": [said(1)]})
    builder.add_node("look_up", lambda state: {"facts": {"numbers": list(range(30))}})
    builder.add_node("reply", lambda state: {"turns": (state.get("turns") or 0) + 1, "messages": [said(2)]})
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "look_up")
    builder.add_edge("look_up", "reply")
    builder.add_edge("reply", END)
    graph = builder.compile(checkpointer=saver)
    for i in range(threads):
        for turn in range(2):
            question: Any = {"messages": [HumanMessage(f"question {turn} of customer {i}")]}
            graph.invoke(question, {"configurable": {"thread_id": f"customer-{i:05d}"}})


def delta(saver: SqliteSaver, checkpoints: int) -> None:
    builder: StateGraph[Any] = StateGraph(Growing)
    builder.add_node("work", lambda state: {"count": state["count"] + 1, "messages": [said(state["count"] + 1)]})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: END if state["count"] >= checkpoints - 2 else "work", ["work", END])
    graph = builder.compile(checkpointer=saver)
    start: Any = {"count": 0, "messages": [said(0)]}
    graph.invoke(start, {"configurable": {"thread_id": "delta"}, "recursion_limit": checkpoints + 10})


def deep(saver: SqliteSaver, checkpoints: int) -> None:
    builder: StateGraph[Any] = StateGraph(Turn)
    builder.add_node("work", lambda state: {"turns": (state.get("turns") or 0) + 1, "plan": f"step {state.get('turns')}"})
    builder.add_edge(START, "work")
    builder.add_conditional_edges("work", lambda state: "work" if state["turns"] < 10 else END, ["work", END])
    graph = builder.compile(checkpointer=saver)
    where: Any = {"configurable": {"thread_id": "deep", "checkpoint_ns": ""}}
    start: Any = {"messages": [HumanMessage("count", id="m0")]}
    graph.invoke(start, where, interrupt_before=["work"])
    for _ in range(4):
        graph.invoke(None, where, interrupt_before=["work"])
    last = saver.get_tuple(where)
    assert last is not None
    above = next(saver.list(where, before=last.config, limit=1))
    pattern = [(channel, value) for _, channel, value in above.pending_writes or []]
    parent, state, step = last.checkpoint["id"], last.checkpoint, int(last.metadata["step"])
    lines: Any = saver.conn
    known = lines.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
    dumps, began = saver.serde.dumps_typed, datetime.now(UTC)
    for _ in range(checkpoints - known):
        step += 1
        turns = step
        own = str(uuid6(clock_seq=step & 0x3FFF))
        version = f"{step + 2:032d}.{step * 7919 % 10**16:016d}"
        task = task_id(4, parent, "", "work", step, "pull", ["branch:to:work"])
        for index, (channel, value) in enumerate(pattern):
            kept = turns if channel == "turns" else f"step {turns - 1}" if channel == "plan" else value
            row = ("deep", "", parent, task, "~__pregel_pull, work", index, channel, *dumps(kept))
            lines.execute("INSERT INTO writes (" + WRITE_COLUMNS + ") VALUES (?,?,?,?,?,?,?,?,?)", row)
        seen = {**state["versions_seen"], "work": {"branch:to:work": state["channel_versions"]["branch:to:work"]}}
        versions = {**state["channel_versions"], **dict.fromkeys(("turns", "plan", "branch:to:work"), version)}
        values = {**state["channel_values"], "turns": turns, "plan": f"step {turns - 1}"}
        now = (began + timedelta(milliseconds=step)).isoformat()
        state = {**state, "id": own, "ts": now, "channel_values": values, "channel_versions": versions, "versions_seen": seen}
        metadata = json.dumps({"source": "loop", "step": step, "parents": {}}).encode()
        lines.execute("INSERT INTO checkpoints VALUES (?,?,?,?,?,?,?)", ("deep", "", own, parent, *dumps(state), metadata))
        parent = own


WRITE_COLUMNS = "thread_id, checkpoint_ns, checkpoint_id, task_id, task_path, idx, channel, type, value"

KINDS = {"long": (long, 5000), "wide": (wide, 2000), "delta": (delta, 5000), "deep": (deep, 100_000)}


def generate(kind: str, path: Path, size: int | None = None) -> None:
    """Write a database of a kind to `path`, which must not exist yet."""
    make, default = KINDS[kind]
    connection = sqlite3.connect(path, check_same_thread=False)
    connection.execute("PRAGMA synchronous=OFF")
    make(SqliteSaver(connection), size or default)
    connection.commit()
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    generate(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
