"""Two branches side by side: aligned by the tasks that ran, with the first difference and the messages of both."""

from __future__ import annotations

import json
import operator
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send

from studio.branches import Branches, StepPair, Wrote, side_by_side, wrote
from studio.chats import MOST_MESSAGES, chats
from studio.cli import main
from studio.model import Address
from studio.requests import ForkRequest, Patch
from studio.session import Session
from tests.factories import config, saver_at

SAMPLES = Path(__file__).parents[1] / "sample_threads"


class Work(TypedDict, total=False):
    turns: int
    done: Annotated[list[str], operator.add]
    messages: Annotated[list[AnyMessage], add_messages]


def looping() -> StateGraph[Any]:
    """plan → work as often as `turns` says → report."""

    def work(state: Work) -> dict[str, Any]:
        return {"done": [f"turn {len(state.get('done', ())) + 1}"]}

    builder: StateGraph[Any] = StateGraph(Work)
    builder.add_node("plan", lambda state: {"messages": [AIMessage(f"{state['turns']} turns")]})
    builder.add_node("work", work)
    builder.add_node("report", lambda state: {"messages": [AIMessage("all done")]})
    builder.add_edge(START, "plan")
    builder.add_edge("plan", "work")
    builder.add_conditional_edges("work", lambda state: "work" if len(state["done"]) < state["turns"] else "report")
    builder.add_edge("report", END)
    return builder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Thread `t`: two turns, and a branch from the start with three; thread `other` shares nothing with it."""
    path = tmp_path / "branches.sqlite"
    with saver_at(path) as saver:
        graph = looping().compile(checkpointer=saver)
        given = {"turns": 2, "messages": [HumanMessage("go on", id="human")]}
        graph.invoke(given, config("t"))
        start = next(one.config for one in graph.get_state_history(config("t")) if one.next == ("plan",))
        graph.invoke(None, graph.update_state(start, {"turns": 3}, as_node=START))
        graph.invoke(given, config("other"))
    return path


def ends(session: Session, thread: str = "t") -> list[Address]:
    tree = session.tree(thread)
    return [row.checkpoint.address for row in tree.rows() if not tree.children(row.checkpoint.address)]


def labels(session: Session, found: Branches) -> list[tuple[str | None, str | None, bool | None]]:
    def label(at: Address | None) -> str | None:
        return None if at is None else session.row(at).label

    return [(label(pair.left), label(pair.right), pair.same) for pair in found.steps]


def test_a_superstep_more_on_one_side_moves_nothing_else(file: Path) -> None:
    with closing(Session.open(str(file))) as session:
        left, right = ends(session)
        found = side_by_side(session, left, right)
        assert found.ancestor is not None and session.state(found.ancestor).next == ("plan",)
        steps = labels(session, found)
        assert [pair[:2] for pair in steps if pair[1] is not None and pair[0] is not None] == [
            ("plan", "plan"), ("work", "work"), ("work", "work"), ("report", "report"),
        ]  # fmt: skip
        assert [pair[1] for pair in steps if pair[0] is None][1:] == ["work"]  # behind the edit itself
        assert steps[-1] == ("report", "report", True)
        assert found.first == 0 and found.cut == 0


def test_the_first_difference_is_the_value_that_was_set_and_what_follows_is_told_apart(file: Path) -> None:
    with closing(Session.open(str(file))) as session:
        found = side_by_side(session, *ends(session))
        plans = next(pair for pair in found.steps if pair.left is not None and session.row(pair.left).label == "plan")
        assert (plans.same, plans.path) == (False, "/messages/1")
        works = [pair for pair in found.steps if pair.left is not None and session.row(pair.left).label == "work"]
        assert [pair.same for pair in works] == [True, True]
        assert {change.path for change in found.ends.changes} >= {"/turns", "/done/2"}


def test_messages_are_paired_by_id_then_by_what_they_say_then_by_who_speaks(file: Path) -> None:
    with closing(Session.open(str(file))) as session:
        found = side_by_side(session, *ends(session))
        assert [pair.how for pair in found.chats.pairs] == ["same", "changed", "same"]


def test_threads_without_a_common_checkpoint_are_compared_from_their_beginnings(file: Path) -> None:
    with closing(Session.open(str(file))) as session:
        found = side_by_side(session, ends(session)[0], ends(session, "other")[0])
        assert found.ancestor is None
        assert all(pair.left is not None and pair.right is not None for pair in found.steps)
        assert found.first is None  # they did the same


class Trip(TypedDict, total=False):
    stops: list[str]
    detour: bool
    tired: int
    log: Annotated[list[str], operator.add]


@pytest.fixture
def trips(tmp_path: Path) -> Iterator[Session]:
    """start → (detour) → a visit for each stop, in parallel → home; with a scratch file for forks."""
    builder: StateGraph[Any] = StateGraph(Trip)
    builder.add_node("start", lambda state: {"log": ["off"], "tired": 0})
    builder.add_node("detour", lambda state: {"log": ["round the hill"]})
    builder.add_node("plan", lambda state: {"tired": 1})
    builder.add_node("visit", lambda stop: {"log": [f"saw {stop}"]})
    builder.add_node("home", lambda state: {"log": ["there"]})
    builder.add_edge(START, "start")
    builder.add_conditional_edges("start", lambda state: "detour" if state.get("detour") else "plan", ["detour", "plan"])
    builder.add_edge("detour", "plan")
    builder.add_conditional_edges("plan", lambda state: [Send("visit", stop) for stop in state["stops"]], ["visit"])
    builder.add_edge("visit", "home")
    builder.add_edge("home", END)
    path = tmp_path / "trips.sqlite"
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"stops": ["sea", "hill"]}, config("straight"))
        graph.invoke({"stops": ["hill", "sea"]}, config("reversed"))
        graph.invoke({"stops": ["sea", "hill"], "detour": True}, config("around"))
    with closing(Session.open(str(path), scratch=str(tmp_path / "scratch.sqlite"))) as session:
        yield session


def test_parallel_tasks_in_another_order_did_the_same(trips: Session) -> None:
    found = side_by_side(trips, trips.resolve("head", "straight"), trips.resolve("head", "reversed"))
    assert labels(trips, found)[-2:] == [("visit ×2", "visit ×2", True), ("home", "home", True)]
    assert [change.op for change in found.ends.changes if change.channel == "log"], "the order of the list is told at the ends"


def test_a_step_that_wrote_the_same_at_a_later_place_of_a_list_did_the_same(trips: Session) -> None:
    found = side_by_side(trips, trips.resolve("head", "straight"), trips.resolve("head", "around"))
    assert labels(trips, found)[-5:] == [
        ("start", "start", True), (None, "detour", None), ("plan", "plan", True),
        ("visit ×2", "visit ×2", True), ("home", "home", True),
    ]  # fmt: skip


def test_a_fork_stands_beside_what_it_was_made_from_in_its_thread_and_in_a_new_one(trips: Session) -> None:
    origin, head = trips.resolve("#3", "straight"), trips.resolve("head", "straight")
    for thread in (None, "trial"):
        fork = trips.fork(ForkRequest(origin, patch=Patch({"/tired": 9}), new_thread=thread)).address
        found = side_by_side(trips, head, fork)
        assert found.ancestor == trips.tree("straight").parent(origin)
        assert found.steps[0] == StepPair(origin, fork, False, "/tired", trips.state(origin).values["tired"], 9)
        assert wrote(trips, found.steps[0]) == (
            (Wrote("/tired", trips.state(origin).values["tired"], False, False),),
            (Wrote("/tired", 9, False, False),),
        )
        again = trips.fork(ForkRequest(fork, patch=Patch({"/detour": True}))).address
        first = side_by_side(trips, head, again).steps[0]
        assert (first.left, first.right) == (origin, again)


def test_the_same_point_again_is_the_same(trips: Session) -> None:
    origin = trips.resolve("#3", "straight")
    found = side_by_side(trips, origin, trips.fork(ForkRequest(origin)).address)
    assert [pair.same for pair in found.steps] == [True] and found.first is None and not found.ends.changes


def test_what_a_step_wrote_alone_comes_before_what_both_wrote(trips: Session) -> None:
    found = side_by_side(trips, trips.resolve("head", "straight"), trips.resolve("head", "around"))
    first = next(pair for pair in found.steps if pair.left is not None and pair.right is not None and pair.same is False)
    left, right = wrote(trips, first)
    assert [one.path for one in right] == ["/detour", "/stops"] and [one.shared for one in right] == [False, True]
    assert [one.path for one in left] == ["/stops"] and left[0].shared


def test_chats_are_aligned_by_what_is_said_where_each_run_gives_new_ids() -> None:
    def said(role: str, text: str, ident: str) -> dict[str, str]:
        return {"role": role, "content": text, "id": ident}

    left = [said("user", "hello", "a1"), said("assistant", "hi", "a2"), said("user", "bye", "a3"), said("assistant", "bye", "a4")]
    right = [
        said("user", "hello", "b1"),
        said("assistant", "hi there", "b2"),
        said("tool", "ping", "b3"),
        said("user", "bye", "b4"),
    ]
    found = chats({"talk": left}, {"talk": right})
    assert found.channel == "talk"
    assert [(pair.left_at, pair.right_at, pair.how) for pair in found.pairs] == [
        (0, 0, "same"), (1, 1, "changed"), (None, 2, "right"), (2, 3, "same"), (3, None, "left"),
    ]  # fmt: skip
    long = [said("user", f"line {index}", f"c{index}") for index in range(5_000)]
    found = chats({"talk": long}, {"talk": [*long, said("user", "more", "d")]})
    assert len(found.pairs) == 5_001 and found.pairs[-1].how == "right" and found.cut == 0
    assert chats({"talk": long}, {"other": 1}).cut == 5_000 - MOST_MESSAGES


@pytest.mark.parametrize("sample", ["support_agent", "research_team"])
def test_each_superstep_stands_once_and_in_its_order_and_a_branch_is_the_same_as_itself(sample: str) -> None:
    with closing(Session.open(str(SAMPLES / f"{sample}.sqlite"))) as session:
        for thread in session.threads():
            tops = [at for at in ends(session, thread.thread_id) if not at.checkpoint_ns]
            for left in tops:
                own = side_by_side(session, left, left)
                assert own.steps == () and own.first is None and not own.ends.changes
                for right in tops:
                    found = side_by_side(session, left, right)
                    for side in ("left", "right"):
                        steps = [at for pair in found.steps if (at := getattr(pair, side)) is not None]
                        branch = session.tree(thread.thread_id).branch(left if side == "left" else right)
                        shared = branch.index(found.ancestor) + 1 if found.ancestor is not None else 0
                        assert steps == branch[shared:]


def test_the_command_prints_both_sides_and_says_by_its_exit_code_whether_they_differ(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with closing(Session.open(str(file))) as session:
        left, right = ends(session)
    words = ["compare", str(file), left.checkpoint_id, right.checkpoint_id, "--thread", "t"]
    assert main([*words, "--exit-code"]) == 1
    text = capsys.readouterr().out
    assert "they part after #1" in text and "first difference" in text and "= assistant: all done" in text
    assert main([*words, "--json"]) == 0
    doc = json.loads(capsys.readouterr().out)
    assert doc["ancestor"]["number"] == "1" and doc["first_divergence"] == 0
    assert [step["same"] for step in doc["steps"]][-1] is True
    assert {one["how"] for one in doc["messages"]} == {"same", "changed"}
    assert main(["compare", str(file), left.checkpoint_id, left.checkpoint_id, "--thread", "t", "--exit-code"]) == 0
