"""A diff between two branches: each value's author is found along the path on which it changed, and its side is said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from studio.model import Address
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.tui.panes import changes as pane
from studio.tui.point import load
from studio.web.links import Place
from studio.web.views.changes import changes as page
from tests.cli.conftest import Studio, studio  # noqa: F401
from tests.factories import config, make_states, saver_at

SAMPLES = Path(__file__).resolve().parents[1] / "sample_threads"
THREAD = "refund-4711"


@pytest.fixture
def support(tmp_path: Path) -> Iterator[Session]:
    found = Session.open(str(SAMPLES / "support_agent.sqlite"), scratch=str(tmp_path / "s.sqlite"))
    yield found
    found.close()


def authors(session: Session, after: Address, before: Address) -> dict[str, list[tuple[str | None, str, str]]]:
    changes = session.compare(after, before).changes
    return {change.path: [(one.node, one.basis, one.side) for one in change.authors] for change in changes}


def test_what_only_the_other_branch_changed_is_its_authors(support: Session) -> None:
    origin, head = support.resolve("#4", THREAD), support.resolve("head", THREAD)
    fork = support.fork(ForkRequest(origin, patch=Patch({"/order/total": 49.9}))).address
    found = authors(support, head, fork)
    assert found["/order/total"] == [(None, "source", "before")]
    assert found["/approval"] == [("ask_approval", "writes", "after")]
    assert authors(support, fork, head)["/approval"] == [("ask_approval", "writes", "before")]
    assert authors(support, fork, head)["/order/total"] == [(None, "source", "after")]


def test_a_diff_back_to_an_ancestor_names_who_wrote_what_is_not_there_yet(support: Session) -> None:
    found = authors(support, support.resolve("#4", THREAD), support.resolve("head", THREAD))
    assert found["/refund"] == [("plan_refund", "writes", "before")]
    assert not any(basis == "none" for one in found.values() for _, basis, _ in one)


def test_a_fork_in_a_thread_of_its_own_is_followed_to_what_it_was_made_from(support: Session) -> None:
    origin, head = support.resolve("#4", THREAD), support.resolve("head", THREAD)
    fork = support.fork(ForkRequest(origin, patch=Patch({"/order/total": 49.9}), new_thread="trial")).address
    found = authors(support, head, fork)
    assert found["/order/total"] == [(None, "source", "before")]
    assert found["/approval"] == [("ask_approval", "writes", "after")]
    assert authors(support, fork, origin)["/order/total"] == [(None, "source", "after")]


class Counting(TypedDict, total=False):
    tick: int
    kept: str


def make_long(path: Path, ticks: int) -> Path:
    """`keep` writes `kept` once, `count` then only counts, superstep after superstep."""
    builder: StateGraph[Any] = StateGraph(Counting)
    builder.add_node("keep", lambda state: {"kept": "b"})
    builder.add_node("count", lambda state: {"tick": state["tick"] + 1})
    builder.add_edge(START, "keep")
    builder.add_edge("keep", "count")
    builder.add_conditional_edges("count", lambda state: "count" if state["tick"] < ticks else END, ["count", END])
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"tick": 0, "kept": "a"}, {**config("long"), "recursion_limit": ticks + 9})
    return path


def test_the_author_is_found_however_many_supersteps_that_left_the_value_alone_lie_between(tmp_path: Path) -> None:
    path = make_long(tmp_path / "long.sqlite", 60)
    with closing(Session.open(str(path), scratch=str(tmp_path / "l.sqlite"))) as session:
        fork = session.fork(ForkRequest(session.resolve("#1"), patch=Patch({"/kept": "c"}))).address
        found = authors(session, session.resolve("head"), fork)
        assert found == {"/kept": [("keep", "writes", "after")], "/tick": [("count", "writes", "after")]}


def test_where_not_every_superstep_was_looked_at_nobody_is_named_by_guess(tmp_path: Path) -> None:
    states = [{"tick": 0, "kept": "a"}, {"tick": 1, "kept": "b"}, *({"tick": tick, "kept": "b"} for tick in range(2, 60))]
    path = make_states(tmp_path / "long.sqlite", *states)
    with closing(Session.open(str(path), scratch=str(tmp_path / "l.sqlite"))) as session:
        fork = session.fork(ForkRequest(session.resolve("#0"), patch=Patch({"/kept": "c"}))).address
        assert authors(session, session.resolve("head"), fork)["/kept"] == [(None, "none", "after")]


def test_every_front_end_says_on_whose_way_it_was_made(support: Session, tmp_path: Path, studio: Studio) -> None:  # noqa: F811
    fork = support.fork(ForkRequest(support.resolve("#4", THREAD), patch=Patch({"/order/total": 49.9}))).address
    head, tree = support.resolve("head", THREAD), support.tree(THREAD)
    said = studio("diff", SAMPLES / "support_agent.sqlite", "s1", "head", "--thread", THREAD, "--scratch", tmp_path / "s.sqlite")
    assert "~ /order/total  49.9 → 499.0  by edit on the way to #s1\n" in said.out
    lines = [str(line.content) for line in pane.build(load(support, tree, head, fork), tree)]
    assert "edited by hand on the way to s1" in lines
    place = Place("support_agent", THREAD, head.checkpoint_id, base=fork.checkpoint_id)
    groups = page(place, support.compare(head, fork), support.state(head), tree).groups
    assert ("Edited by hand", "set in a fork on the way to #s1") in [(group.title, group.note) for group in groups]
    assert ("ask_approval", "changed approval") in [(group.title, group.note) for group in groups]
