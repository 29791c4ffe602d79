"""The list of threads tells what a person needs to find the right one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages

from studio.explain import Explainer
from studio.explain.glance import Glance
from studio.model import Address, Thread
from studio.overlay import Overlay
from studio.overview import TEXT_LIMIT, own_metadata, texts, threads
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.stores import open_store
from studio.stores.outline import Outline, summed
from tests.factories import config, make_states, saver_at, shop_builder
from tests.forks.helpers import change
from tests.test_overlay import insert, scratch  # noqa: F401 - a fixture


def listed(path: Path, with_scratch: Path | None = None) -> dict[str, Thread]:
    store = Overlay(open_store(str(path)), open_store(str(with_scratch)) if with_scratch else None)
    return {thread.thread_id: thread for thread in threads(store, Explainer(store))}


def test_status_and_head_are_what_langgraph_would_resume(shop: Path) -> None:
    found = listed(shop)
    assert {name: thread.status for name, thread in found.items()} == {
        "done": "done", "failed": "failed", "forked": "done", "paused": "paused",
    }  # fmt: skip
    copy = shop.parent.parent / "copy.sqlite"
    copy.write_bytes(shop.read_bytes())
    with saver_at(copy) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        for name, thread in found.items():
            at: Any = config(name)
            now = graph.get_state(at)
            assert thread.head == now.config["configurable"]["checkpoint_id"]
            listed_there = list(saver.list(at))
            parents = {entry.checkpoint["id"]: entry.parent_config for entry in listed_there}
            assert thread.checkpoints == len(listed_there)
            assert thread.roots == tuple(sorted(ident for ident, parent in parents.items() if parent is None))
            used = {parent["configurable"]["checkpoint_id"] for parent in parents.values() if parent}
            assert thread.heads == tuple(sorted(set(parents) - used))
            times = [entry.checkpoint["ts"] for entry in listed_there]
            assert (thread.first_at, thread.last_at) == (min(times), max(times))


def test_texts_are_the_first_and_the_last_of_a_person(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "two.sqlite"
    path.write_bytes(shop.read_bytes())
    with saver_at(path) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage("and of the pot?", id="human-2")]}, config("done"))
    found = listed(path)
    assert (found["done"].first_text, found["done"].last_text) == ("what is the price of the kettle?", "and of the pot?")
    assert found["paused"].first_text == found["paused"].last_text == "what is the price of the kettle?"


def test_what_a_program_put_into_the_metadata_is_shown_and_nothing_of_langgraph_s(tmp_path: Path) -> None:
    class Chat(TypedDict):
        messages: Annotated[list[Any], add_messages]

    path = tmp_path / "a.sqlite"
    with saver_at(path) as saver:
        builder: StateGraph[Any] = StateGraph(Chat)
        builder.add_node("answer", lambda state: {"messages": [AIMessage("hello")]})
        builder.add_edge(START, "answer")
        builder.add_edge("answer", END)
        settings: Any = {"configurable": {"thread_id": "t", "user_id": "u-7"}, "metadata": {"plan": "gold", "retries": 2}}
        builder.compile(checkpointer=saver).invoke({"messages": [HumanMessage("hi")]}, settings)
    assert listed(path)["t"].metadata == {"user_id": "u-7", "plan": "gold", "retries": 2}


def test_values_that_are_no_scalars_are_left_out_of_the_metadata() -> None:
    stored = {"source": "loop", "step": 1, "a": None, "b": [1], "c": {"d": 1}, "langgraph_node": "x", "__x": 1, "ok": True}
    assert own_metadata(stored) == {"ok": True}


def test_the_list_streams(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Overlay(open_store(str(shop)))
    explainer = Explainer(store)
    asked: list[str] = []
    glances = explainer.glances

    def noting(addresses: Sequence[Address]) -> dict[Address, Glance]:
        asked.extend(address.thread_id for address in addresses)
        return glances(addresses)

    monkeypatch.setattr(explainer, "glances", noting)
    stream = threads(store, explainer)
    assert next(stream).thread_id == "done"
    assert asked == ["done"]
    assert len(list(stream)) == 3


def test_forks_in_the_scratch_file_are_counted_and_lead_only_threads_of_their_own(shop: Path, scratch: Path) -> None:  # noqa: F811
    fork = insert(scratch, "done")
    alone = insert(scratch, "elsewhere")
    found = listed(shop, scratch)
    assert found["done"].scratch_checkpoints == 1
    assert found["done"].head == listed(shop)["done"].head
    assert fork.checkpoint_id in found["done"].roots
    assert (found["elsewhere"].scratch_checkpoints, found["elsewhere"].head) == (1, alone.checkpoint_id)
    assert found["failed"].scratch_checkpoints == 0


def test_a_thread_without_a_root_namespace_has_no_head(shop: Path) -> None:
    connection = sqlite3.connect(shop)
    connection.execute("UPDATE checkpoints SET checkpoint_ns = 'sub:1' WHERE thread_id = 'done'")
    connection.commit()
    connection.close()
    thread = listed(shop)["done"]
    assert (thread.head, thread.status, thread.roots, thread.heads) == (None, "unknown", (), ())
    assert thread.namespaces == ("sub:1",)
    assert thread.checkpoints > 0


def test_a_state_that_cannot_be_read_has_an_unknown_status_and_keeps_its_line(shop: Path) -> None:
    connection = sqlite3.connect(shop)
    connection.execute("UPDATE checkpoints SET checkpoint = x'ff', type = 'msgpack+aes' WHERE thread_id = 'done'")
    connection.commit()
    connection.close()
    thread = listed(shop)["done"]
    assert thread.status == "unknown"
    assert (thread.first_text, thread.last_text) == (None, None)
    assert thread.head is not None


def test_roots_and_heads_follow_the_links_alone() -> None:
    def ends(*links: tuple[str, str | None]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        found = summed(Outline(tuple(("", *link) for link in links), 0, None, None))
        return found.roots, found.heads

    assert ends(("b", "a"), ("a", None), ("c", "a"), ("d", "gone")) == (("a", "d"), ("b", "c", "d"))
    assert ends(("a", "a"), ("b", "c"), ("c", "b"), ("tail", "c")) == ((), ("tail",))
    assert ends() == ((), ())


def test_texts_of_other_kinds_of_messages() -> None:
    blocks = [{"type": "text", "text": "a"}, {"type": "image"}, "b"]
    plain = [
        {"role": "system", "content": "s"},
        {"role": "user", "content": "u"},
        {"type": "ai", "content": "no"},
        {"type": "human", "content": blocks},
    ]
    assert texts({"chat": plain}) == ("u", "a b")
    assert texts({"messages": [{"role": "assistant", "content": "only the model"}]}) == (None, None)
    silent = [{"role": "user", "content": "  "}, {"role": "assistant", "content": ""}]
    assert texts({"notes": ["x"], "messages": silent}) == (None, None)
    first, last = texts({"messages": [{"role": "user", "content": "x" * 9000}]})
    assert first == last
    assert first is not None
    assert len(first) == TEXT_LIMIT
    assert texts({"messages": "none", "n": 1, "d": {"content": 1}}) == (None, None)


def test_the_head_stays_the_one_of_the_file_after_a_fork_into_the_scratch_file(shop: Path) -> None:
    before = listed(shop)["done"]
    with closing(Session.open(str(shop))) as session:
        for _ in range(2):
            session.fork(ForkRequest(session.resolve("head~1", "done"), Patch({})))
        with_forks = next(thread for thread in session.threads() if thread.thread_id == "done")
        tree = session.tree("done")
        assert tree.head == Address("done", "", str(with_forks.head))
    assert (with_forks.head, with_forks.status, with_forks.scratch_checkpoints) == (before.head, "done", 2)
    assert len(with_forks.heads) == 3


def test_a_thread_that_is_deleted_while_the_list_is_made_is_left_out(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(shop))
    keys = list(store.threads())
    change(shop, "DELETE FROM checkpoints WHERE thread_id = 'failed'")
    monkeypatch.setattr(store, "threads", lambda: iter(keys))
    assert [thread.thread_id for thread in threads(store, Explainer(store))] == ["done", "forked", "paused"]


def test_times_are_the_earliest_and_the_latest_where_a_clock_stepped_back(tmp_path: Path) -> None:
    path = make_states(tmp_path / "a.sqlite", {"x": 1}, {"x": 2}, {"x": 3}, thread_id="t")
    early, late = "2024-01-01T00:00:00+00:00", "2999-01-01T00:00:00+00:00"
    with closing(sqlite3.connect(path)) as connection, connection:
        for time, which in ((late, "min"), (early, "max")):
            (identity, blob) = connection.execute(f"SELECT {which}(checkpoint_id), checkpoint FROM checkpoints").fetchone()
            stored = {**ormsgpack.unpackb(blob, ext_hook=lambda code, data: ormsgpack.Ext(code, data)), "ts": time}
            connection.execute(
                "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (ormsgpack.packb(stored), identity)
            )
    thread = listed(path)["t"]
    assert (thread.first_at, thread.last_at) == (early, late)
