"""A session reads a real file as one tree, explains each change, finds texts, grows, and leaves no trace."""

from __future__ import annotations

import gc
import shutil
import threading
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command

from studio.errors import OpenError, RefError, UsageError
from studio.model import Address
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.stores.sqlite_file import turn
from studio.tagged import get
from studio.tree import CheckpointTree
from tests.factories import config, folder_snapshot, saver_at, shop_builder


def labels(session: Session, thread: str) -> list[str]:
    return [row.label for row in session.tree(thread).rows()]


def test_looking_at_everything_changes_nothing_in_the_folder(shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    session = Session.open(str(shop))
    for thread in session.threads():
        tree = session.tree(thread.thread_id)
        for row in tree.rows():
            session.state(row.checkpoint.address)
            session.compare(row.checkpoint.address)
    list(session.search("kettle"))
    session.close()
    assert folder_snapshot(shop.parent) == before


def test_every_row_agrees_with_the_history_that_langgraph_reports(shop: Path, tmp_path: Path) -> None:
    session = Session.open(str(shop))
    copy = tmp_path / "copy.sqlite"
    shutil.copy(shop, copy)
    with saver_at(copy) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        for thread in ("done", "paused", "failed", "forked"):
            history = list(graph.get_state_history(config(thread)))
            assert len(session.tree(thread)) == len(history)
            for snapshot in history:
                at = Address(thread, "", snapshot.config["configurable"]["checkpoint_id"])
                state = session.state(at)
                assert sorted(map(str, state.next or ())) == sorted(snapshot.next)
                assert state.checkpoint.step == snapshot.metadata["step"]
                assert state.checkpoint.source == snapshot.metadata["source"]
                parent = snapshot.parent_config["configurable"]["checkpoint_id"] if snapshot.parent_config else None
                assert state.checkpoint.parent_checkpoint_id == parent
                assert sorted(t.id or "" for t in state.tasks) == sorted(t.id for t in snapshot.tasks)
                assert sorted(i.id or "" for t in state.tasks for i in t.interrupts) == sorted(i.id for i in snapshot.interrupts)
    session.close()


def test_a_row_is_called_by_the_nodes_that_made_it(shop: Path) -> None:
    session = Session.open(str(shop))
    assert labels(session, "done") == ["input", "__start__", "look_up", "docs ∥ web", "join", "grade ×2", "approve", "publish"]
    assert [row.status for row in session.tree("failed").rows()][-1] == "failed"
    assert [row.status for row in session.tree("paused").rows()][-1] == "paused"
    session.close()


def test_a_langgraph_copy_names_the_checkpoint_it_equals(shop: Path) -> None:
    session = Session.open(str(shop))
    tree = session.tree("forked")
    copies = [row for row in tree.rows() if row.origin_checkpoint_id]
    assert [row.label for row in copies] == ["copy of #5"]
    assert tree.row(Address("forked", "", copies[0].origin_checkpoint_id or "")).number == "5"
    session.close()


def test_each_change_names_the_task_whose_write_made_it(shop: Path) -> None:
    session = Session.open(str(shop))
    changes = session.compare(session.resolve("3", "done")).changes
    authors = {change.path: [author.node for author in change.authors] for change in changes}
    assert authors["/price"] == ["web"]
    notes = {
        str(change.after): [author.node for author in change.authors] for change in changes if change.path.startswith("/notes")
    }
    flat = {text: nodes for text, nodes in notes.items() if "docs: ok" in text or "web: 49.90" in text}
    assert flat
    assert all(author.basis == "writes" for change in changes for author in change.authors)
    session.close()


def test_a_diff_over_several_steps_names_who_wrote_last_on_the_way(shop: Path) -> None:
    session = Session.open(str(shop))
    comparison = session.compare(session.resolve("head", "done"), session.resolve("2", "done"))
    assert {change.channel: [a.node for a in change.authors] for change in comparison.changes}["approved"] == ["approve"]
    session.close()


class Lines(TypedDict, total=False):
    n: int
    lines: Annotated[
        list[str],
        DeltaChannel(lambda state, writes: [*state, *(x for write in writes for x in write)], list, snapshot_frequency=3),
    ]


def test_search_finds_what_delta_channels_hold_at_paths_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "delta.sqlite"
    builder: StateGraph[Any] = StateGraph(Lines)
    builder.add_node("step", lambda state: {"n": state["n"] + 1, "lines": [f"line {state['n'] + 1} of ten"]})
    builder.add_edge(START, "step")
    builder.add_conditional_edges("step", lambda state: "step" if state["n"] < 7 else END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"n": 0, "lines": ["begin"]}, config("t"))
    session = Session.open(str(path))
    hits = list(session.search("line "))
    assert [(hit.path, hit.excerpt) for hit in hits] == [(f"/lines/{n}", f"line {n} of ten") for n in range(1, 8)]
    for hit in hits:
        assert get(dict(session.state(hit.address).values), hit.path) == hit.excerpt
        above = session.tree("t").parent(hit.address)
        assert above is None or hit.excerpt not in session.state(above).values.get("lines", [])
    assert list(session.search("value")) == []
    session.close()


def test_search_in_one_thread_reads_no_other(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session.open(str(shop))
    read: list[str | None] = []
    scan = session.overlay.scan
    monkeypatch.setattr(session.overlay, "scan", lambda thread: (read.append(thread), scan(thread))[1])
    found = list(session.search("price of the kettle", "paused", others=False))
    assert {hit.address.thread_id for hit in found} == {"paused"} == set(read)
    session.close()


def test_search_keeps_no_tree_of_the_threads_it_went_through(shop: Path) -> None:
    def trees() -> int:
        gc.collect()
        return sum(isinstance(one, CheckpointTree) for one in gc.get_objects())

    session = Session.open(str(shop))
    before = trees()
    hits = list(session.search("price of the kettle"))
    assert len({hit.address.thread_id for hit in hits}) == 4
    assert trees() == before
    assert all(hit.number == session.tree(hit.address.thread_id).number(hit.address) for hit in hits)
    session.close()


def test_search_finds_each_value_once_in_the_open_thread_first(shop: Path) -> None:
    session = Session.open(str(shop))
    hits = list(session.search("the price of the kettle", "paused"))
    assert hits[0].address.thread_id == "paused"
    assert hits[0].path == "/messages/0/content"
    assert len([hit for hit in hits if hit.address.thread_id == "paused"]) == 1
    priced = [hit.address.thread_id for hit in session.search("49.9", "done") if hit.path == "/price"]
    assert priced == ["done", "forked", "paused"]
    assert list(session.search("nowhere in this file")) == []
    session.close()


def test_a_checkpoint_that_another_process_writes_appears_in_the_open_tree(shop: Path) -> None:
    session = Session.open(str(shop))
    tree = session.tree("paused")
    session.refresh()
    rows = len(tree)
    with saver_at(shop) as saver:
        shop_builder().compile(checkpointer=saver).invoke(Command(resume="yes"), config("paused"))
    assert session.refresh()
    assert len(tree) == rows + 2
    assert tree.rows()[-1].status == "done"
    assert not session.refresh()
    session.close()


def test_subscribers_hear_of_growth_within_a_second(shop: Path) -> None:
    import threading

    session = Session.open(str(shop))
    session.tree("paused")
    grew = threading.Event()
    stop = session.subscribe(lambda name: grew.set() if name == "tree" else None)
    session.refresh()
    with saver_at(shop) as saver:
        shop_builder().compile(checkpointer=saver).invoke(Command(resume="yes"), config("paused"))
    assert grew.wait(5)
    stop()
    session.close()


def test_forks_of_ours_are_drawn_from_their_origin_and_called_by_what_they_set(shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    session = Session.open(str(shop))
    origin = session.resolve("5", "done")
    made = session.fork(ForkRequest(origin, Patch({"/price": 59.0})))
    again = session.fork(ForkRequest(origin))
    assert made.verified
    assert again.verified
    rows = {row.number: row for row in session.tree("done").rows()}
    assert (rows["s1"].label, rows["s1"].parent_number, rows["s1"].channels) == ("set /price", "5", ("price",))
    assert (rows["s2"].label, rows["s2"].parent_number) == ("copy of #5", "5")
    assert session.tree("done").head == session.resolve("7", "done")
    session.close()
    fresh = Session.open(str(shop))
    assert [row.number for row in fresh.tree("done").rows()][-2:] == ["s1", "s2"]
    fresh.close()
    assert folder_snapshot(shop.parent) == before


def test_what_cannot_be_opened_or_found_says_so(shop: Path, tmp_path: Path) -> None:
    with pytest.raises(OpenError):
        Session.open(str(tmp_path / "missing.sqlite"))
    assert not (tmp_path / "missing.sqlite").exists()
    session = Session.open(str(shop))
    with pytest.raises(RefError):
        session.tree("no such thread")
    with pytest.raises(UsageError) as several:
        session.resolve("head")
    assert set(several.value.candidates) == {"done", "failed", "forked", "paused"}
    with pytest.raises(RefError):
        session.state(Address("done", "", "nope"))
    session.close()


def test_a_fork_inside_a_subgraph_stands_once_below_its_new_root(tmp_path: Path) -> None:
    samples = Path(__file__).parents[1] / "sample_threads" / "research_team.sqlite"
    path = tmp_path / "research_team.sqlite"
    shutil.copy(samples, path)
    session = Session.open(str(path))
    inner = session.resolve("3.9", "street-trees")
    made = session.fork(ForkRequest(inner))
    tree = session.tree("street-trees")
    numbers = [row.number for row in tree.rows()]
    assert len(numbers) == len(set(numbers)) == len(tree)
    row = tree.row(made.address)
    assert row.number.startswith(tree.number(made.root) + ".")
    assert row.origin_checkpoint_id == inner.checkpoint_id
    session.close()


def test_the_command_for_the_same_view_names_the_scratch_file_that_was_given(shop: Path, tmp_path: Path) -> None:
    given = str(tmp_path / "mine.sqlite")
    for scratch, words in ((None, []), (given, ["--scratch", given])):
        session = Session.open(str(shop), scratch=scratch)
        assert session.view_options == words
        session.close()


def test_a_look_that_asks_for_the_scratch_file_does_not_wait_for_a_refresh_that_waits_for_the_look(
    shop: Path, tmp_path: Path
) -> None:
    with closing(Session.open(str(shop), scratch=str(tmp_path / "s.sqlite"))) as session:
        found: list[object] = []

        def look() -> None:
            with turn(str(shop)):
                other = threading.Thread(target=session.refresh, daemon=True)
                other.start()
                other.join(0.3)  # it has the session now, and waits for this look to end
                found.append(session.scratch)

        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        looking.join(20)
        assert found, "both wait for ever"
