"""Delta channels: what no checkpoint holds is rebuilt as LangGraph rebuilds it, and marked."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite

from studio.explain import Explainer
from studio.explain.reducers import merge_indexed, merge_messages
from studio.model import Address
from studio.session import Session
from studio.value import decode
from tests.explain.graphs import assert_like_langgraph, explained, graph_of, head
from tests.factories import config, saver_at


def extend(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(item for write in writes for item in write)]


def merge(state: list[Any], writes: list[Any]) -> list[Any]:
    for write in writes:
        state = add_messages(state, write)  # type: ignore[assignment]
    return state


class Lines(TypedDict, total=False):
    n: int
    lines: Annotated[list[str], DeltaChannel(extend, list, snapshot_frequency=3)]


class Talk(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(merge, list, snapshot_frequency=50)]


def counting(last: int) -> StateGraph[Any]:
    def step(state: Any) -> dict[str, Any]:
        n = state["n"] + 1
        return {"n": n, "lines": [f"line {n}"]}

    graph = graph_of({"step": step}, [("__start__", "step")], Lines)
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] < last else "__end__")
    return graph


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def test_every_state_is_whole_and_marked_exact_where_it_was_rebuilt(path: Path) -> None:
    graph = counting(8)
    with saver_at(path) as saver:
        graph.compile(checkpointer=saver).invoke({"n": 0, "lines": ["first"]}, config("t"))
    states = assert_like_langgraph(path, graph, defaults=("lines",))
    assert states[-1].values["lines"] == ["first", *(f"line {n}" for n in range(1, 9))]
    assert {how for state in states for how in state.rebuilt.values()} == {"exact"}
    assert sum("lines" in state.rebuilt for state in states) > sum("lines" not in state.rebuilt for state in states) > 0


def test_any_order_of_asking_gives_the_same_values(path: Path) -> None:
    with saver_at(path) as saver:
        counting(7).compile(checkpointer=saver).invoke({"n": 0, "lines": []}, config("t"))
    with explained(path) as explainer:
        addresses = [header.address for _, header in explainer.store.checkpoints("t")]
        forward = [explainer.state(address).values for address in addresses]
        explainer.forget()
        backward = [explainer.state(address).values for address in reversed(addresses)]
        streamed = [state.values for state in explainer.states(explainer.store.scan("t"))]
    assert forward == list(reversed(backward)) == streamed


def test_edits_removals_and_a_whole_replacement_of_messages(path: Path) -> None:
    graph = graph_of(
        {
            "add": lambda state: {"messages": [AIMessage("draft", id="m1"), AIMessage("other", id="m2")]},
            "edit": lambda state: {"messages": AIMessage("better", id="m1")},
            "drop": lambda state: {"messages": [RemoveMessage("m0")]},
            "anew": lambda state: {"messages": Overwrite([HumanMessage("only", id="m9")])},
        },
        [("__start__", "add"), ("add", "edit"), ("edit", "drop"), ("drop", "anew")],
        Talk,
    )
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"messages": [HumanMessage("hi", id="m0")]}, config("t"))
        wanted = [s.values.get("messages", []) for s in reversed(list(compiled.get_state_history(config("t"))))]
    with explained(path) as explainer:
        states = list(explainer.states(explainer.store.scan("t")))
    shown = [[(m.fields["id"], m.fields["content"]) for m in state.values.get("messages", [])] for state in states]
    assert shown == [[(m.id, m.content) for m in messages] for messages in wanted]
    assert {how for state in states for how in state.rebuilt.values()} == {"exact"}


def test_forks_of_a_delta_thread_keep_to_their_own_branch(path: Path) -> None:
    graph = counting(5)
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"n": 0, "lines": ["first"]}, config("t"))
        third = next(s for s in compiled.get_state_history(config("t")) if s.values.get("n") == 2)
        edited = compiled.update_state(third.config, {"lines": ["by hand"]}, as_node="step")
        compiled.invoke(None, edited)
        compiled.invoke(None, third.config)
        copied = compiled.update_state(third.config, None, as_node="__copy__")
        compiled.invoke(None, copied)
    assert_like_langgraph(path, graph, defaults=("lines",))


def last_three(state: list[str], writes: list[list[str]]) -> list[str]:
    return sorted([*state, *(item for write in writes for item in write)])[-3:]


class Few(TypedDict, total=False):
    n: int
    lines: Annotated[list[str], DeltaChannel(last_three, list, snapshot_frequency=4)]


def test_a_reducer_that_a_stored_snapshot_contradicts_is_a_guess_everywhere(path: Path) -> None:
    """Also before its first snapshot, and behind its last."""

    def step(state: Any) -> dict[str, Any]:
        n = state["n"] + 1
        return {"n": n, "lines": [f"line {9 - n}"]}

    graph = graph_of({"step": step}, [("__start__", "step")], Few)
    graph.add_conditional_edges("step", lambda state: "step" if state["n"] < 10 else "__end__")
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"n": 0, "lines": ["line 9"]}, config("t"))
        oracle = {
            one.config["configurable"]["checkpoint_id"]: one.values.get("lines")
            for one in compiled.get_state_history(config("t"))
        }
    with explained(path) as explainer:
        told = {"exact": 0, "ambiguous": 0, "stored": 0}
        states = list(explainer.states(explainer.store.scan("t")))
        for state in [*states, *reversed(states)]:
            address = state.checkpoint.address
            alone = Explainer(explainer.store).state(address)
            assert alone.rebuilt == state.rebuilt
            how = state.rebuilt.get("lines", "stored")
            told[how] += 1
            if how != "ambiguous":
                assert state.values.get("lines", []) == oracle[address.checkpoint_id]
        assert told["ambiguous"] > 8
        assert told["stored"] > 2


def test_a_chain_without_its_beginning_is_unavailable_not_wrong(path: Path) -> None:
    import sqlite3

    with saver_at(path) as saver:
        counting(2).compile(checkpointer=saver).invoke({"n": 0, "lines": ["first"]}, config("t"))
    with explained(path) as explainer:
        first = explainer.store.checkpoints("t")[0][1].checkpoint_id
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (first,))
    connection.close()
    with explained(path) as explainer:
        state = head(explainer)
        second = explainer.state(Address("t", "", explainer.store.checkpoints("t")[0][1].checkpoint_id))
    assert second.rebuilt == {"lines": "unavailable"}
    assert "lines" not in second.values
    assert [problem.kind for problem in second.problems] == ["rebuilt-unavailable"]
    assert state.values["n"] == 2


def broken(path: Path, statement: str, at: int) -> str:
    """Change a recorded thread of five steps at its n-th checkpoint; the id of that checkpoint."""
    import sqlite3

    with saver_at(path) as saver:
        graph = graph_of({"say": lambda state: {"messages": [AIMessage("yes", id="ai-1")]}}, [("__start__", "say")], Talk)
        for turn in range(3):
            graph.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi", id=f"h-{turn}")]}, config("t"))
    with explained(path) as explainer:
        found = explainer.store.checkpoints("t")[at][1].checkpoint_id
    with sqlite3.connect(path) as connection:
        assert connection.execute(statement, (found,)).rowcount
    connection.close()
    return found


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM checkpoints WHERE checkpoint_id = ?", "not in this file"),
        ("UPDATE checkpoints SET type = 'msgpack+aes' WHERE checkpoint_id = ?", "cannot be read"),
        ("DELETE FROM writes WHERE checkpoint_id = ? AND channel = 'messages'", "not in this file"),
    ],
)
def test_what_is_missing_of_a_delta_channel_is_named_and_no_short_list_is_shown(path: Path, statement: str, words: str) -> None:
    missing = broken(path, statement, 4)
    with explained(path) as explainer:
        state = head(explainer)
    assert "messages" not in state.values
    assert missing in state.unrebuilt["messages"] and words in state.unrebuilt["messages"]
    assert state.rebuilt["messages"] == "unavailable"


def test_a_channel_that_cannot_be_rebuilt_was_neither_added_nor_removed(path: Path) -> None:
    broken(path, "DELETE FROM checkpoints WHERE checkpoint_id = ?", 4)
    with closing(Session.open(str(path))) as session:
        tree = session.tree("t")
        for row in tree.rows():
            found = session.compare(row.checkpoint.address)
            lost = "messages" in session.state(row.checkpoint.address).unrebuilt
            assert not (lost and [change for change in found.changes if change.channel == "messages"])
            assert not lost or any(problem.kind == "rebuilt-unavailable" for problem in found.problems)


def test_the_three_ways_a_value_came_are_told_at_the_channel(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from studio.cli import main
    from tests.web.conftest import client_of

    broken(path, "DELETE FROM checkpoints WHERE checkpoint_id = ?", 4)
    assert main(["show", str(path), "2"]) == main(["show", str(path), "head"]) == 0
    out = capsys.readouterr().out
    assert "(rebuilt)" in out and "rebuilt = not stored here" in out
    assert "messages  not rebuildable: its stored changes begin at or before" in out
    with client_of(path) as client:
        page = client.get(f"/f/{path.name}?thread=t&tab=state").text
    assert ">not rebuildable</span>" in page and "which is not in this file" in page


def stored(message: AnyMessage) -> Any:
    return decode(*JsonPlusSerializer().dumps_typed(message))


@given(
    st.lists(st.tuples(st.integers(0, 30), st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=3)), max_size=12)
)
def test_branches_that_share_what_is_known_of_places_keep_their_own_messages(
    steps: list[tuple[int, list[tuple[str, bool]]]],
) -> None:
    """Each step goes on from one of the lists so far; the same ids come to stand elsewhere in each branch."""
    grown: list[tuple[Any, dict[str, int] | None]] = [([], None)]
    for number, (at, ops) in enumerate(steps):
        before, place = grown[at % len(grown)]
        write = [stored(RemoveMessage(ident) if gone else AIMessage(f"{number}", id=ident)) for ident, gone in ops]
        kept = list(before)
        together, place = merge_indexed(before, [write], place)
        assert before == kept
        assert together == merge_messages(before, [write])
        grown.append((together, place))
