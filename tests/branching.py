"""Threads with two branches for the tests that put them side by side, made by the real graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from tests.factories import config, saver_at

SECRET = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF"
HOSTILE = "look \u202egnp.exe\x1b[31m <script>alert(1)</script> [bold]x[/bold]"


class Talk(TypedDict, total=False):
    tone: str
    turns: int
    key_seen: str
    messages: Annotated[list[AnyMessage], add_messages]


def talk_graph(saver: Any) -> Any:
    """listen → say as often as `turns` says → close; a rude tone says other words, and `apologize` follows."""

    def say(state: Talk) -> dict[str, Any]:
        turn = sum(isinstance(one, AIMessage) for one in state["messages"])
        words = "as short as can be" if state.get("tone") == "rude" else "with kind regards and all my heart"
        return {"messages": [AIMessage(f"This is answer {turn}, given {words}.")], "key_seen": f"turn {turn} saw {SECRET}"}

    def on(state: Talk) -> str:
        said = sum(isinstance(one, AIMessage) for one in state["messages"])
        return "say" if said < state["turns"] else "apologize" if state.get("tone") == "rude" else "close"

    builder: StateGraph[Any] = StateGraph(Talk)
    builder.add_node("listen", lambda state: {"tone": "kind"})
    builder.add_node("say", say)
    builder.add_node("apologize", lambda state: {"messages": [AIMessage(f"Sorry. {HOSTILE} {SECRET}")]})
    builder.add_node("close", lambda state: {"messages": [AIMessage("Good bye.")]})
    builder.add_edge(START, "listen")
    builder.add_edge("listen", "say")
    builder.add_conditional_edges("say", on, ["say", "apologize", "close"])
    builder.add_edge("apologize", "close")
    builder.add_edge("close", END)
    return builder.compile(checkpointer=saver)


def make_talk(path: Path, turns: int, rude_from: int) -> Path:
    """Thread `talk`: a kind branch of so many turns, and one that turns rude at `rude_from` by `update_state`."""
    with saver_at(path) as saver:
        graph = talk_graph(saver)
        settings = {**config("talk"), "recursion_limit": turns + 10}
        graph.invoke({"turns": turns, "messages": [HumanMessage(f"hello, my key is {SECRET}", id="hello")]}, settings)
        history = list(graph.get_state_history(settings))
        point = next(one for one in history if one.next == ("say",) and len(one.values["messages"]) == rude_from + 1)
        graph.invoke(
            None, {**graph.update_state(point.config, {"tone": "rude"}, as_node="listen"), "recursion_limit": turns + 10}
        )
    return path
