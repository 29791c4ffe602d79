"""Tool calls without an answer, answers without a call, both in the wrong order: told where they stand, and nowhere else."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from tests.cli.conftest import Studio, studio  # noqa: F401 - a fixture
from tests.factories import config, saver_at
from tests.web.conftest import client_of


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], operator.add]
    plain: Annotated[list[Any], operator.add]


def calling(*idents: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "find_bus", "args": {"line": 4, **args}, "id": ident} for ident in idents])


def answer(ident: str) -> ToolMessage:
    return ToolMessage("ok", tool_call_id=ident)


def stored(path: Path, *messages: AnyMessage, tools: Any = None, **more: Any) -> Path:
    """One finished step whose state holds these messages; `tools` runs after it."""
    builder: StateGraph[Any] = StateGraph(Chat)
    builder.add_node("model", lambda state: {"messages": list(messages), **more})
    builder.add_edge(START, "model")
    if tools is not None:
        builder.add_node("tools", tools)
        builder.add_edge("model", "tools")
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver)
        try:
            graph.invoke({}, config("t"))
        except RuntimeError:
            pass
    return path


def told(studio: Studio, path: Path, ref: str = "head") -> dict[str, str]:  # noqa: F811
    problems = studio("show", path, ref, "--json").doc["problems"]
    return {one["kind"]: f"{one['where'].partition('/')[2]} {one['message']}" for one in problems}


def test_a_call_that_nobody_answered_is_open_and_named_with_its_arguments(studio: Studio, tmp_path: Path) -> None:  # noqa: F811
    path = stored(
        tmp_path / "t.sqlite", HumanMessage("go"), calling("call_a", "call_b", api_key="sk-live-1234"), answer("call_a")
    )
    found = told(studio, path)
    assert list(found) == ["open-tool-call"]
    assert found["open-tool-call"].startswith("messages/1 the tool call find_bus(line=4, api_key=")
    assert "call_b" in found["open-tool-call"] and "sk-live" not in found["open-tool-call"]
    assert "has no answer" in studio("show", path, "head").out
    assert any(one["kind"] == "open-tool-call" for doc in studio("export", path).lines for one in doc["problems"])


def test_a_call_whose_tools_run_next_is_not_open_until_they_have_failed(studio: Studio, tmp_path: Path) -> None:  # noqa: F811
    def fine(state: Chat) -> dict[str, Any]:
        return {"messages": [answer("call_a")]}

    def broken(state: Chat) -> dict[str, Any]:
        raise RuntimeError("no bus")

    def asking(state: Chat) -> dict[str, Any]:
        return {"messages": [ToolMessage(interrupt("may I?"), tool_call_id="call_a")]}

    messages = (HumanMessage("go"), calling("call_a"))
    done = stored(tmp_path / "fine.sqlite", *messages, tools=fine)
    assert told(studio, done) == told(studio, done, "head~1") == {}
    assert told(studio, stored(tmp_path / "asking.sqlite", *messages, tools=asking)) == {}
    assert list(told(studio, stored(tmp_path / "broken.sqlite", *messages, tools=broken))) == ["open-tool-call"]


def test_a_call_that_a_later_message_leaves_behind_is_open_whatever_runs_next(studio: Studio, tmp_path: Path) -> None:  # noqa: F811
    def asking(state: Chat) -> dict[str, Any]:
        return {"messages": [AIMessage(interrupt("more?"))]}

    path = stored(tmp_path / "t.sqlite", calling("call_a"), HumanMessage("never mind"), tools=asking)
    assert list(told(studio, path)) == ["open-tool-call"]


def test_answers_out_of_place_are_told_apart(studio: Studio, tmp_path: Path) -> None:  # noqa: F811
    early = stored(tmp_path / "early.sqlite", answer("call_a"), calling("call_a"))
    assert {kind: text.split()[0] for kind, text in told(studio, early).items()} == {"tool-answer-before-call": "messages/0"}
    orphan = stored(tmp_path / "orphan.sqlite", HumanMessage("go"), answer("call_x"))
    assert list(told(studio, orphan)) == ["orphan-tool-answer"]
    twice = stored(tmp_path / "twice.sqlite", calling("call_a"), answer("call_a"), answer("call_a"))
    assert list(told(studio, twice)) == ["duplicate-tool-answer"]


def test_one_id_in_two_turns_is_two_calls(studio: Studio, tmp_path: Path) -> None:  # noqa: F811
    turns = (calling("call_1"), answer("call_1"), AIMessage("one"), calling("call_1"), answer("call_1"))
    assert told(studio, stored(tmp_path / "fine.sqlite", *turns)) == {}
    found = told(studio, stored(tmp_path / "open.sqlite", *turns[:4]))
    assert found["open-tool-call"].startswith("messages/3 ")


@pytest.mark.parametrize("content", [{"content": None}, {}])
def test_plain_maps_in_any_channel_are_read_as_messages(studio: Studio, tmp_path: Path, content: Any) -> None:  # noqa: F811
    call = {"id": "call_p", "type": "function", "function": {"name": "refund", "arguments": '{"order": 4711}'}}
    plain = [{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [call], **content}]
    found = told(studio, stored(tmp_path / "t.sqlite", plain=plain))
    assert found["open-tool-call"].startswith("plain/1 the tool call refund(")
    plain.append({"role": "tool", "tool_call_id": "call_p", "content": "ok"})
    assert told(studio, stored(tmp_path / "u.sqlite", plain=plain)) == {}


def test_the_pages_mark_the_call_where_it_stands(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", HumanMessage("go"), calling("call_a", "call_b"), answer("call_a"))
    with client_of(path) as client:
        chat = client.get("/f/t.sqlite?thread=t&tab=conversation").text
        assert chat.count("no answer</span>") == 1
        for tab in ("changes", "state"):
            assert "has no answer (call_b)" in client.get(f"/f/t.sqlite?thread=t&tab={tab}").text
