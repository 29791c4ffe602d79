"""Forks inside subgraphs, subgraphs with a memory of their own, and delta channels, run on by the real LangGraph."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.errors import PatchError
from tests.factories import folder_snapshot
from tests.forks import graphs
from tests.forks.helpers import change, rows, studio_on


@pytest.fixture
def nested(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    return graphs.make(tmp_path / "base" / "nested.sqlite", graphs.nested_graph, {"item": "x", "log": []})


@pytest.mark.parametrize(
    ("depth", "node", "ran"),
    [
        (1, "deep", ["d1", "d2", "in2", "close"]),
        (1, "in2", ["in2", "close"]),
        (2, "d1", ["d1", "d2", "in2", "close"]),
        (2, "d2", ["d2", "in2", "close"]),
    ],
)
def test_an_edit_inside_a_subgraph_survives_the_run(nested: Path, depth: int, node: str, ran: list[str]) -> None:
    before = folder_snapshot(nested.parent)
    with studio_on(nested) as studio:
        ns = studio.namespaces()[depth]
        origin = studio.before(node, ns=ns)
        made = studio.fork(origin, {"/note": "EDIT"})
        assert made.verified and made.recipe == "subgraph" and made.next == (node,)
        assert len(made.created) == depth + 1
        assert made.root == made.created[0] and made.root.checkpoint_ns == ""
        assert made.address == made.created[-1] and made.address.checkpoint_ns != ns
        assert made.parent_checkpoint_id is None
        assert studio.scratch.origins()[made.address][0] == origin
        ids = [one.checkpoint_id for one in made.created]
        assert ids == sorted(ids)
        parents = studio.explainer.state(made.address).metadata["parents"]
        assert parents == {one.checkpoint_ns: one.checkpoint_id for one in made.created[:-1]}
    found, really = graphs.run(made.stored_in, graphs.nested_graph, "t", None)
    assert really == ran
    assert "in2 saw EDIT" in found["log"]
    assert folder_snapshot(nested.parent) == before


def test_another_node_of_a_subgraph_can_run_next_even_when_it_had_finished(nested: Path) -> None:
    with studio_on(nested) as studio:
        ns = studio.namespaces()[1]
        made = studio.fork(studio.points(ns=ns)[-1], {"/note": "EDIT"}, goto="in2")
        assert made.verified and made.next == ("in2",)
    found, ran = graphs.run(made.stored_in, graphs.nested_graph, "t", None)
    assert ran == ["in2", "close"] and found["log"][-2:] == ["in2 saw EDIT", "close"]


def test_a_fork_inside_a_subgraph_can_go_to_a_new_thread(nested: Path) -> None:
    with studio_on(nested) as studio:
        made = studio.fork(studio.before("in2", ns=studio.namespaces()[1]), {"/note": "EDIT"}, new_thread="n")
        assert made.verified and {one.thread_id for one in made.created} == {"n"}
    assert graphs.run(made.stored_in, graphs.nested_graph, "n", None)[1] == ["in2", "close"]


def test_one_of_two_subgraphs_that_were_sent_is_forked_alone(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "sent.sqlite", graphs.sent_subgraph, {"item": "x", "log": []})
    with studio_on(path) as studio:
        inner = [ns for ns in studio.namespaces() if ns]
        assert len(inner) == 2
        for ns in inner:
            made = studio.fork(studio.before("two", ns=ns), {"/note": "EDIT"})
            assert made.verified
            found, ran = graphs.run(made.stored_in, graphs.sent_subgraph, "t", None)
            assert ran == ["two EDIT"]  # the other one keeps what it had done
            assert "EDIT" in found["log"] and {"one 1", "one 2"} & set(found["log"])


def test_a_subgraph_whose_task_id_cannot_be_reproduced_is_not_forked(nested: Path) -> None:
    with studio_on(nested) as studio:
        ns = studio.namespaces()[1]
    other = "sub:00000000-1111-2222-3333-444444444444"
    change(nested, "UPDATE checkpoints SET checkpoint_ns = ? WHERE checkpoint_ns = ?", other, ns)
    with studio_on(nested) as studio, pytest.raises(PatchError, match="cannot be reproduced"):
        studio.fork(studio.points(ns=other)[1])


def test_a_subgraph_without_its_calling_checkpoint_is_not_forked(nested: Path) -> None:
    with studio_on(nested) as studio:
        ns = studio.namespaces()[1]
    change(nested, "DELETE FROM checkpoints WHERE checkpoint_ns = ''")
    with studio_on(nested) as studio, pytest.raises(PatchError, match="is not in the file"):
        studio.fork(studio.points(ns=ns)[1])


# ---- memory


@pytest.fixture
def remembering(tmp_path: Path) -> Path:
    path = tmp_path / "memory.sqlite"
    for _ in range(3):
        graphs.make(path, graphs.memory_graph, {"item": "x"})
    return path


def test_a_subgraph_with_a_memory_remembers_what_it_knew_at_that_time(remembering: Path) -> None:
    with studio_on(remembering) as studio:
        calls = [at for at in studio.points() if studio.explainer.state(at).next == ("call",)]
        second = calls[1]
        assert any("own memory" in line for line in studio.preview(second).warnings)
        made = studio.fork(second)
        assert made.verified and made.created == (made.address,)
        copies = rows(made.stored_in, "SELECT count(*) FROM checkpoints WHERE checkpoint_ns = 'call'")
        assert copies == [(3,)]  # of the first turn alone
    found, ran = graphs.run(made.stored_in, graphs.memory_graph, "t", made.address.checkpoint_id)
    assert ran == ["call", "write"] and found["log"][-1] == "calls 2"


def test_the_memory_goes_along_to_a_new_thread(remembering: Path) -> None:
    with studio_on(remembering) as studio:
        turns = [at for at in studio.points() if studio.explainer.state(at).next == ("turn",)]
        made = studio.fork(turns[2], new_thread="n")
        assert made.verified
    assert graphs.run(made.stored_in, graphs.memory_graph, "n", None)[0]["log"][-1] == "calls 3"


def test_a_memory_can_be_edited_itself(remembering: Path) -> None:
    with studio_on(remembering) as studio:
        made = studio.fork(studio.before("write", ns="call"), {"/count": 40})
        assert made.verified and made.address.checkpoint_ns == "call"
    found, ran = graphs.run(made.stored_in, graphs.memory_graph, "t", None)
    assert ran == ["call", "write"] and found["log"][-1] == "calls 41"


# ---- delta channels

WHOLE = ["start", "one after 1", "two after 2", "three after 3"]


@pytest.fixture
def delta(tmp_path: Path) -> Path:
    return graphs.make(tmp_path / "delta.sqlite", graphs.delta_graph, {"lines": ["start"]})


@pytest.mark.parametrize("thread", [None, "n"])
def test_a_delta_channel_keeps_its_value_in_the_scratch_file(delta: Path, thread: str | None) -> None:
    with studio_on(delta) as studio:
        made = studio.fork(studio.before("three"), {"/turns": 9}, new_thread=thread)
        assert made.verified
        assert studio.explainer.state(made.address).values["lines"] == WHOLE[:3]
    with studio_on(made.stored_in) as alone:
        assert alone.explainer.state(made.address).values["lines"] == WHOLE[:3]
    found, ran = graphs.run(made.stored_in, graphs.delta_graph, thread or "t", made.address.checkpoint_id)
    assert ran == ["three"] and found["lines"] == WHOLE


def test_texts_that_are_not_utf8_go_along_with_the_rows_that_a_fork_needs(delta: Path) -> None:
    odd = "SELECT hex(checkpoint_id), hex(task_path), hex(channel) FROM writes WHERE task_path != '' ORDER BY 1, 2, 3"
    change(delta, "UPDATE writes SET task_path = CAST(task_path || x'C3FF' AS TEXT)")
    change(delta, "UPDATE writes SET channel = CAST(x'ED80' AS TEXT) WHERE channel LIKE 'branch:%'")
    with studio_on(delta) as studio:
        made = studio.fork(studio.points()[-1], {"/turns": 9})
        assert made.verified, made.surprises
        assert studio.explainer.state(made.address).values["lines"] == WHOLE
    assert rows(made.stored_in, odd)
    assert set(rows(made.stored_in, odd)) <= set(rows(delta, odd))


def test_an_edited_delta_channel_is_stored_whole(delta: Path) -> None:
    with studio_on(delta) as studio:
        made = studio.fork(studio.before("three"), {"/lines/1": "EDIT"})
        assert made.verified
    found, _ = graphs.run(made.stored_in, graphs.delta_graph, "t", made.address.checkpoint_id)
    assert found["lines"] == ["start", "EDIT", "two after 2", "three after 3"]


def test_a_part_of_a_value_that_cannot_be_rebuilt_is_not_edited(delta: Path) -> None:
    with studio_on(delta) as studio:
        point = studio.before("three")
    first = rows(delta, "SELECT min(checkpoint_id) FROM checkpoints")[0][0]
    change(delta, "DELETE FROM checkpoints WHERE checkpoint_id = ?", first)
    with studio_on(delta) as studio:
        assert "cannot be rebuilt" in (studio.preview(point, {"/lines/0": "x"}).refused or "")
        assert studio.preview(point, {"/lines": ["x"]}).refused is None
        assert "cannot be removed" in (studio.preview(point, unset=["/lines"]).refused or "")
