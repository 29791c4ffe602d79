"""Real LangGraph graphs and real saver files for the tests: small, scripted, without a model or a network."""

from __future__ import annotations

import hashlib
import operator
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, Send, interrupt


@contextmanager
def saver_at(path: Path | str) -> Iterator[SqliteSaver]:
    """A real SqliteSaver on a file; closes its connection, so that no `-wal` is left."""
    connection = sqlite3.connect(path, check_same_thread=False)
    try:
        yield SqliteSaver(connection)
    finally:
        connection.close()


def config(thread_id: str, checkpoint_id: str | None = None, ns: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {"thread_id": thread_id, "checkpoint_ns": ns}
    if checkpoint_id is not None:
        found["checkpoint_id"] = checkpoint_id
    return {"configurable": found}


def folder_snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    """Name -> (sha256, mtime) of every file: looking must change none and add none."""
    return {
        str(file.relative_to(folder)): (hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_mtime_ns)
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


class ShopState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    item: str
    price: float
    notes: Annotated[list[str], operator.add]
    approved: Any
    fail: bool


def shop_builder() -> StateGraph[Any]:
    """look_up (tool call) -> web ∥ docs -> join -> Send grade ×N -> approve (interrupt) -> publish; `fail` makes docs raise."""

    def look_up(state: ShopState) -> dict[str, Any]:
        call = {"name": "price_of", "args": {"item": state.get("item", "kettle")}, "id": "call_1"}
        return {"messages": [AIMessage("", id="ai-1", tool_calls=[call])], "item": state.get("item", "kettle")}

    def web(state: ShopState) -> dict[str, Any]:
        return {"notes": ["web: 49.90"], "messages": [ToolMessage("49.90", tool_call_id="call_1", id="tool-1")], "price": 49.9}

    def docs(state: ShopState) -> dict[str, Any]:
        if state.get("fail"):
            raise RuntimeError("the docs are down")
        return {"notes": ["docs: ok"]}

    def fan(state: ShopState) -> list[Send]:
        return [Send("grade", {"note": note}) for note in state["notes"]]

    def grade(state: dict[str, str]) -> dict[str, Any]:
        return {"notes": ["graded " + state["note"]]}

    def approve(state: ShopState) -> dict[str, Any]:
        answer = interrupt({"question": f"sell {state.get('item')} for {state.get('price')}?"})
        return {"approved": answer}

    def publish(state: ShopState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"{state.get('item')} costs {state.get('price')}", id="ai-2")]}

    builder: StateGraph[Any] = StateGraph(ShopState)
    for node in (look_up, web, docs, grade, approve, publish):
        builder.add_node(node.__name__, node)  # type: ignore[call-overload]
    builder.add_node("join", lambda state: {})
    builder.add_edge(START, "look_up")
    builder.add_edge("look_up", "web")
    builder.add_edge("look_up", "docs")
    builder.add_edge(["web", "docs"], "join")
    builder.add_conditional_edges("join", fan, ["grade"])
    builder.add_edge("grade", "approve")
    builder.add_edge("approve", "publish")
    builder.add_edge("publish", END)
    return builder


def make_shop(path: Path | str) -> Path:
    """A file with threads `done`, `paused`, `failed` and `forked` (update_state and __copy__, both run on)."""
    with saver_at(path) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        ask = {"messages": [HumanMessage("what is the price of the kettle?", id="human-1")]}
        graph.invoke(ask, config("done"))
        graph.invoke(Command(resume="yes"), config("done"))
        graph.invoke(ask, config("paused"))
        try:
            graph.invoke({**ask, "fail": True}, config("failed"))
        except RuntimeError:
            pass
        graph.invoke(ask, config("forked"))
        graph.invoke(Command(resume="yes"), config("forked"))
        before_approve = next(s for s in graph.get_state_history(config("forked")) if s.next == ("approve",))
        edited = graph.update_state(before_approve.config, {"price": 59.0}, as_node="grade")
        graph.invoke(None, edited)
        copied = graph.update_state(before_approve.config, None, as_node="__copy__")
        graph.invoke(None, copied)
        graph.invoke(Command(resume="no"), config("forked"))
    return Path(path)


def make_states(path: Path | str, *states: dict[str, Any], thread_id: str = "made") -> Path:
    """A thread that the real saver wrote: one checkpoint per given state, each the child of the one before."""
    with saver_at(path) as saver:
        at = config(thread_id)
        for step, values in enumerate(states):
            made = {**empty_checkpoint(), "channel_values": values, "channel_versions": dict.fromkeys(values, step + 1)}
            at = saver.put(at, made, {"source": "loop", "step": step, "parents": {}}, made["channel_versions"])  # type: ignore[arg-type, typeddict-item]
    return Path(path)
