"""Forks of files that the real SqliteSaver wrote, run on by the real LangGraph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.types import Command

from studio import value
from studio.errors import PatchError, RefError
from studio.model import Address
from studio.requests import ForkRequest
from studio.tagged import get as tagged_get
from studio.tagged import to_tagged
from tests.factories import folder_snapshot, shop_builder
from tests.forks import graphs
from tests.forks.helpers import change, rows, studio_on


def shop_graph(saver: Any) -> Any:
    return shop_builder().compile(checkpointer=saver)


@pytest.fixture
def order(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    return graphs.make(tmp_path / "base" / "order.sqlite", graphs.order_graph, {"item": "kettle", "count": 3})


def test_an_edited_value_reaches_the_nodes_and_changes_the_route(order: Path) -> None:
    before = folder_snapshot(order.parent)
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"), {"/count": 9})
        assert (made.recipe, made.next, made.verified, made.surprises) == ("set", ("b",), True, ())
        assert made.stored_in == studio.scratch.path
    found, ran = graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)
    assert ran == ["b", "d"]
    assert (found["count"], found["price"], found["log"]) == (9, 18.0, ["a", "b", "d"])
    assert found["note"] == "d: Size Money Customer set datetime, 10 EUR"
    assert folder_snapshot(order.parent) == before


def test_fields_inside_stored_objects_are_edited_and_keep_their_types(order: Path) -> None:
    with studio_on(order) as studio:
        point = studio.before("c")
        edits = {"/cost/amount": 99, "/customer/name": "Grace", "/customer/tags/0": "old"}
        made = studio.fork(point, edits)
        assert made.verified
    found, ran = graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)
    assert ran == ["c"]
    assert found["cost"] == graphs.Money(99)
    assert found["customer"] == graphs.Customer(name="Grace", tags=["old"])
    assert found["note"] == "c: Size Money Customer set datetime, 99 EUR"


def test_a_copy_is_the_same_point_again_beside_its_origin(order: Path) -> None:
    with studio_on(order) as studio:
        origin = studio.before("b")
        made = studio.fork(origin)
        old, new = studio.store.raw([origin])[origin], studio.store.raw([made.address])[made.address]
        assert new.header.parent_checkpoint_id == old.header.parent_checkpoint_id
        assert (new.header.source, new.header.step) == ("fork", (old.header.step or 0) + 1)
        was, now = value.decode(old.tag, old.blob), value.decode(new.tag, new.blob)
        for key in ("channel_values", "channel_versions", "versions_seen", "v"):
            assert value.encode("msgpack", was[key]) == value.encode("msgpack", now[key])
        assert now["updated_channels"] is None
        assert studio.scratch.origins()[made.address][0] == origin
        assert made.recipe == "copy" and made.forked_from == origin and made.root == made.address
    assert graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)[1] == ["b", "c"]


def test_untouched_channels_keep_their_bytes(order: Path) -> None:
    with studio_on(order) as studio:
        origin = studio.before("c")
        made = studio.fork(origin, {"/price": 1.5})
        raws = studio.store.raw([origin, made.address])
        was, now = (value.decode(raws[at].tag, raws[at].blob)["channel_values"] for at in (origin, made.address))
        assert list(was) == list(now)
        changed = [name for name in was if value.encode("msgpack", was[name]) != value.encode("msgpack", now[name])]
        assert changed == ["price"]


def test_the_run_needs_no_checkpoint_id_since_a_fork_sorts_last(order: Path) -> None:
    with studio_on(order) as studio:
        made = studio.fork(studio.before("a"), {"/count": 8})
    found, ran = graphs.run(made.stored_in, graphs.order_graph, "t", None)
    assert (ran, found["count"]) == (["a", "b", "d"], 8)


def test_ten_forks_of_one_point_are_ten_siblings(order: Path) -> None:
    with studio_on(order) as studio:
        origin = studio.before("b")
        made = [studio.fork(origin, {"/count": number}) for number in range(10, 20)]
        headers = {header.address: header for _, header in studio.store.checkpoints("t")}
        parents = {headers[one.address].parent_checkpoint_id for one in made}
        assert parents == {headers[origin].parent_checkpoint_id}
        assert [one.address.checkpoint_id for one in made] == sorted({one.address.checkpoint_id for one in made})
        assert all(studio.scratch.origins()[one.address][0] == origin for one in made)
        assert [studio.explainer.state(one.address).values["count"] for one in made] == list(range(10, 20))


def test_a_finished_thread_goes_on_from_another_node(order: Path) -> None:
    with studio_on(order) as studio:
        head = studio.points()[-1]
        assert studio.explainer.state(head).next == ()
        made = studio.fork(head, {"/count": 1}, goto="b")
        assert (made.recipe, made.next, made.verified) == ("set+goto", ("b",), True)
    found, ran = graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)
    assert ran == ["b", "c"]
    assert (found["price"], found["log"]) == (2.0, ["a", "b", "c", "b", "c"])


def test_going_to_the_end_leaves_nothing_to_run(order: Path) -> None:
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"), goto="__end__")
        assert made.next == () and made.verified
    assert graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)[1] == []


def test_a_new_thread_holds_the_fork_alone(order: Path) -> None:
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"), {"/count": 9}, new_thread="what if")
        assert made.address.thread_id == "what if" and made.parent_checkpoint_id is None and made.verified
        assert len(studio.points("what if")) == 1
        with pytest.raises(PatchError, match="thread 'what if' already"):
            studio.fork(studio.before("b"), new_thread="what if")
        with pytest.raises(PatchError, match="thread 't' already"):
            studio.fork(made.address, new_thread="t")
    assert graphs.run(made.stored_in, graphs.order_graph, "what if", None)[1] == ["b", "d"]


def test_a_fork_can_be_forked_again(order: Path) -> None:
    with studio_on(order) as studio:
        first = studio.fork(studio.before("b"), {"/count": 9})
        second = studio.fork(first.address, {"/item": "pot"})
        assert second.parent_checkpoint_id == first.parent_checkpoint_id
        assert studio.scratch.origins()[second.address][0] == first.address
    found, _ = graphs.run(second.stored_in, graphs.order_graph, "t", second.address.checkpoint_id)
    assert (found["item"], found["count"]) == ("pot", 9)


def test_a_removed_channel_is_gone_for_the_nodes(order: Path) -> None:
    with studio_on(order) as studio:
        made = studio.fork(studio.before("c"), unset=["/price"])
        assert made.verified
        assert "price" not in studio.explainer.state(made.address).values
    assert "price" not in graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)[0]


def test_a_channel_that_was_never_set_can_be_set_and_is_warned_about(order: Path) -> None:
    with studio_on(order) as studio:
        point = studio.before("b")
        known, strange = studio.preview(point, {"/note": "hello"}), studio.preview(point, {"/zzz": 1})
        assert not any("never had" in line for line in known.warnings)
        assert any("'zzz'" in line for line in strange.warnings)
        made = studio.fork(point, {"/note": "hello", "/zzz": 1})
        assert made.verified
    found, _ = graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)
    assert "zzz" not in found


def test_a_preview_shows_the_change_and_writes_nothing(order: Path) -> None:
    with studio_on(order) as studio:
        shown = studio.preview(studio.before("c"), {"/count": "three", "/cost/amount": 1})
        assert shown.refused is None and shown.next == ("c",)
        assert [(one.path, one.before, one.after) for one in shown.changes] == [("/count", 3, "three"), ("/cost/amount", 10, 1)]
        assert shown.expect is not None and shown.expect["count"] == "three"
        assert "/count was integer and becomes text." in shown.warnings
        assert not studio.scratch.exists()


def test_a_choice_that_code_made_before_the_edit_is_pointed_out(order: Path) -> None:
    graphs.make(order, graphs.order_graph, {"item": "pot", "count": 30})  # a second turn, in which b chose d
    with studio_on(order) as studio:
        shown = studio.preview(studio.before("c"), {"/count": 9})
        assert "b had already chosen c: the edit does not change that choice." in shown.warnings


@pytest.mark.parametrize(
    ("values", "options", "reason"),
    [
        ({"/nothing/here": 1}, {}, "nothing"),
        ({"/cost/amount/deeper": 1}, {}, "amount"),
        ({"": {}}, {}, "channel"),
        ({"/count": {"$type": "x.Y", "$ext": "no"}}, {}, ""),
        ({}, {"goto": "nowhere"}, "nowhere"),
        ({}, {"unset": ["/missing"]}, "missing"),
        ({}, {"new_thread": "\0"}, "name"),
    ],
)
def test_an_impossible_fork_is_refused_with_a_reason_and_writes_nothing(
    order: Path, values: dict[str, Any], options: dict[str, Any], reason: str
) -> None:
    with studio_on(order) as studio:
        shown = studio.preview(studio.before("c"), values, **options)
        assert shown.refused and reason in shown.refused
        with pytest.raises(PatchError):
            studio.fork(studio.before("c"), values, **options)
        assert not studio.scratch.exists()


def test_a_checkpoint_that_is_not_there_is_no_refusal_but_an_error(order: Path) -> None:
    with studio_on(order) as studio:
        for act in (studio.forker.preview, studio.forker.fork):
            with pytest.raises(RefError):
                act(ForkRequest(Address("t", "", "1f000000-0000-6000-8000-000000000000")))


@pytest.mark.parametrize(("tag", "word"), [("pickle", "pickle"), ("msgpack+aes", "encrypted")])
def test_what_cannot_be_read_is_not_forked(order: Path, tag: str, word: str) -> None:
    with studio_on(order) as studio:
        point = studio.before("c")
    change(order, "UPDATE checkpoints SET type = ? WHERE checkpoint_id = ?", tag, point.checkpoint_id)
    with studio_on(order) as studio:
        assert word in (studio.preview(point).refused or "")


def test_a_newer_format_is_not_forked(order: Path) -> None:
    with studio_on(order) as studio:
        point = studio.before("c")
        raw = studio.store.raw([point])[point]
    record = {**value.decode(raw.tag, raw.blob), "v": 9}
    blob = value.encode("msgpack", record)
    change(order, "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", blob, point.checkpoint_id)
    with studio_on(order) as studio:
        assert "format 9" in (studio.preview(point).refused or "")
        with pytest.raises(PatchError, match="format 9"):
            studio.fork(point)


def test_as_node_candidates_begin_with_what_update_state_would_take(order: Path) -> None:
    with studio_on(order) as studio:
        assert studio.forker.as_node_candidates(studio.before("c"))[0] == "b"
        assert studio.forker.as_node_candidates(studio.before("a"))[0] == "__start__"
        assert set(studio.forker.goto_candidates(studio.before("a"))) >= {"a", "b", "c"}


# ---- joins, sends, questions, errors


@pytest.fixture
def joined(tmp_path: Path) -> Path:
    return graphs.make(tmp_path / "join.sqlite", graphs.join_graph, {"item": "x"})


def test_going_back_before_a_full_join_does_not_run_the_join_beside(joined: Path) -> None:
    with studio_on(joined) as studio:
        point = studio.before("joined")
        made = studio.fork(point, goto="left")
        assert made.next == ("left",) and made.verified
    _, ran = graphs.run(made.stored_in, graphs.join_graph, "t", made.address.checkpoint_id)
    assert ran == ["left", "joined", "last", "tail"]


def test_going_elsewhere_from_a_full_join_leaves_it_empty(joined: Path) -> None:
    with studio_on(joined) as studio:
        made = studio.fork(studio.before("joined"), goto="last")
        assert made.verified
    assert graphs.run(made.stored_in, graphs.join_graph, "t", made.address.checkpoint_id)[1] == ["last", "tail"]


def test_a_join_can_be_the_node_to_go_to(joined: Path) -> None:
    with studio_on(joined) as studio:
        made = studio.fork(studio.points()[-1], goto="joined")
        assert made.verified
    assert graphs.run(made.stored_in, graphs.join_graph, "t", made.address.checkpoint_id)[1] == ["joined", "last", "tail"]


def test_a_deferred_node_can_be_the_node_to_go_to(joined: Path) -> None:
    with studio_on(joined) as studio:
        made = studio.fork(studio.before("start"), goto="tail")
        assert made.next == ("tail",) and made.verified
    assert graphs.run(made.stored_in, graphs.join_graph, "t", made.address.checkpoint_id)[1] == ["tail"]


@pytest.fixture
def sent(tmp_path: Path) -> Path:
    return graphs.make(tmp_path / "send.sqlite", graphs.send_graph, {"item": "x"})


def test_pending_sends_run_again_after_a_copy_and_are_dropped_by_a_goto(sent: Path) -> None:
    with studio_on(sent) as studio:
        point = studio.before("work", "work", "work")
        copied, gone = studio.fork(point), studio.fork(point, goto="done")
        assert copied.next == ("work", "work", "work") and gone.next == ("done",) and copied.verified and gone.verified
    _, ran = graphs.run(copied.stored_in, graphs.send_graph, "t", copied.address.checkpoint_id)
    assert sorted(ran) == ["done", "work 1", "work 2", "work 3"]
    assert graphs.run(gone.stored_in, graphs.send_graph, "t", gone.address.checkpoint_id)[1] == ["done"]


def test_the_argument_of_a_pending_send_can_be_edited(sent: Path) -> None:
    with studio_on(sent) as studio:
        point = studio.before("work", "work", "work")
        change = {"/__pregel_tasks/1/1/n": 22}
        assert [one.path for one in studio.preview(point, change).changes] == ["/__pregel_tasks/1"]
        whole = to_tagged(tagged_get(studio.explainer.state(point).editable, "/__pregel_tasks/1"))
        whole["args"][1]["n"] = "2"  # type: ignore[index, call-overload]
        told = studio.preview(point, {"/__pregel_tasks/1": whole}).warnings
        assert any("/__pregel_tasks/1/1/n" in one and "integer" in one and "text" in one for one in told), told
        made = studio.fork(point, change)
        assert made.verified and made.next == ("work", "work", "work")
        fewer = studio.fork(point, {}, unset=("/__pregel_tasks/0",))
        assert fewer.verified and fewer.next == ("work", "work")
        with pytest.raises(PatchError, match="list of Sends"):
            studio.fork(point, {"/__pregel_tasks/0": "work"})
    _, ran = graphs.run(made.stored_in, graphs.send_graph, "t", made.address.checkpoint_id)
    assert sorted(ran) == ["done", "work 1", "work 22", "work 3"]


def test_a_fork_of_a_waiting_question_asks_it_again_with_the_edited_value(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "ask.sqlite", graphs.ask_graph, {"item": "kettle"})
    with studio_on(path) as studio:
        point = studio.before("ask", "beside")
        shown = studio.preview(point, {"/item": "pot"})
        assert "beside had finished from this point; a fork runs the whole step again." in shown.warnings
        assert "ask asks its question again." in shown.warnings
        made = studio.fork(point, {"/item": "pot"})
        assert sorted(map(str, made.next or ())) == ["ask", "beside"] and made.verified
    found, ran = graphs.run(made.stored_in, graphs.ask_graph, "t", made.address.checkpoint_id)
    assert sorted(ran) == ["ask", "beside"]
    assert found["__interrupt__"][0].value == {"sell": "pot"}
    found, ran = graphs.run(made.stored_in, graphs.ask_graph, "t", None, Command(resume="yes"))
    assert ran == ["ask", "after"] and "answer yes" in found["log"]


def test_a_failed_step_is_repaired(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "fail.sqlite", graphs.failing_graph, {"item": "x", "count": 0})
    with studio_on(path) as studio:
        head = studio.points()[-1]
        assert studio.explainer.state(head).status == "failed"
        made = studio.fork(head, {"/count": 5})
        assert made.next == ("charge",) and made.verified
        assert studio.explainer.state(made.address).status == "ready"
    found, ran = graphs.run(made.stored_in, graphs.failing_graph, "t", made.address.checkpoint_id)
    assert ran == ["charge", "last"] and found["log"] == ["first", "charge", "last"]


def test_messages_are_edited_by_id(shop: Path) -> None:
    with studio_on(shop) as studio:
        point = studio.before("approve", thread="done")
        flattened = studio.preview(point, {"/messages/0": "hello"}).warnings
        assert any("HumanMessage and becomes text" in line for line in flattened)
        made = studio.fork(point, {"/messages/id:tool-1/content": "39.90", "/price": 39.9})
        assert made.verified
    graphs.run(made.stored_in, shop_graph, "done", made.address.checkpoint_id)
    found, _ = graphs.run(made.stored_in, shop_graph, "done", None, Command(resume="yes"))
    assert [message.content for message in found["messages"]][-2:] == ["39.90", "kettle costs 39.9"]
    assert [type(message).__name__ for message in found["messages"]][-2:] == ["ToolMessage", "AIMessage"]


def test_each_point_of_a_thread_with_everything_in_it_can_be_copied(shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    with studio_on(shop) as studio:
        for thread in ("done", "paused", "failed", "forked"):
            for point in studio.points(thread):
                made = studio.fork(point)
                assert made.verified, (thread, point, made.surprises)
    assert folder_snapshot(shop.parent) == before
    assert rows(made.stored_in, "SELECT count(*) FROM writes") == [(0,)]
