"""What must hold for any order, any cut and any bytes; growth; and the contract of a store."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studio.errors import StudioError
from studio.model import Address
from studio.session import Session
from studio.stores.transcripts.store import TranscriptStore
from tests.stores.transcripts.sessions import SESSION, Book, bakery, call

ANY_TIME = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def links(path: Path) -> set[tuple[str, str, str | None]]:
    store = TranscriptStore(str(path))
    return {
        (header.checkpoint_ns, header.checkpoint_id, header.parent_checkpoint_id)
        for keys in store.threads()
        for _, header in store.checkpoints(keys.thread_id)
    }


def branching() -> Book:
    book = bakery()
    book.prompt("And the yeast?", parent=book.records[-2]["parentUuid"])
    book.answer("Eighty grams.")
    return book


@ANY_TIME
@given(seed=st.integers(0, 10_000))
def test_records_in_any_order_give_the_same_supersteps(tmp_path: Path, seed: int) -> None:
    book = branching()
    turns = {frozenset(_members(book.write(tmp_path)))}
    random.Random(seed).shuffle(book.records)
    assert {frozenset(_members(book.write(tmp_path)))} == turns


def _members(path: Path) -> set[tuple[frozenset[str], frozenset[str]]]:
    """(records of a turn, records of its parent)"""
    store = TranscriptStore(str(path))
    list(store.threads())
    one = store.transcript(SESSION)
    assert one is not None
    woven = one.woven

    def records(ident: str | None) -> frozenset[str]:
        return frozenset(woven.records[at].id for at in woven.turns[ident].records) if ident in woven.turns else frozenset()

    return {(records(turn.id), records(turn.parent)) for turn in woven.turns.values()}


@ANY_TIME
@given(cut=st.integers(1, len("\n".join(branching().lines()))))
def test_a_file_cut_anywhere_loses_at_most_its_last_record(tmp_path: Path, cut: int) -> None:
    lines = branching().lines()
    text = "".join(line + "\n" for line in lines)[:cut]
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text(text)
    whole = text.count("\n") + any(text.endswith(line) for line in lines)
    store = TranscriptStore(str(path)) if whole else None
    if store is None:
        return
    list(store.threads())
    one = store.transcript(SESSION)
    assert one is not None
    assert len(one.woven.records) == whole


@ANY_TIME
@given(data=st.binary(max_size=600), at=st.integers(0, 2000), replaced=st.booleans())
def test_any_bytes_never_raise_anything_but_words(tmp_path: Path, data: bytes, at: int, replaced: bool) -> None:
    text = "".join(line + "\n" for line in bakery().lines()).encode()
    path = tmp_path / "any.jsonl"
    path.write_bytes(data if not replaced else text[:at] + data + text[at + len(data) :])
    try:
        session = Session.open(str(path))
    except StudioError:
        return
    for thread in list(session.threads()):
        tree = session.tree(thread.thread_id) if thread.checkpoints else None
        for row in tree.rows() if tree is not None else ():
            session.compare(row.checkpoint.address)
    session.close()


def test_a_growing_file_shows_new_turns_and_keeps_the_numbers_of_the_old(tmp_path: Path) -> None:
    book = bakery()
    lines = book.lines()
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_text("".join(line + "\n" for line in lines[:7]) + lines[7][:40])
    session = Session.open(str(path))
    session.refresh()
    before = {row.checkpoint.checkpoint_id: row.number for row in session.tree(SESSION).rows()}
    assert [problem.kind for problem in session.problems()] == ["torn-line"]
    with path.open("a") as file:
        file.write(lines[7][40:] + "\n" + "".join(line + "\n" for line in lines[8:]))
    assert session.refresh()
    after = {row.checkpoint.checkpoint_id: row.number for row in session.tree(SESSION).rows()}
    assert before.items() <= after.items()
    assert len(after) == 7
    assert session.problems() == []
    assert session.resolve("head", SESSION).checkpoint_id == book.records[-1]["uuid"]
    session.close()


def test_the_store_keeps_its_contract(tmp_path: Path) -> None:
    book = branching()
    path = book.write(tmp_path)
    store = TranscriptStore(str(path))
    (keys,) = store.threads()
    found = store.checkpoints(SESSION)
    cursors = [cursor for cursor, _ in found]
    assert cursors == sorted(set(cursors))
    for at, cursor in enumerate(cursors):
        assert list(store.checkpoints(SESSION, cursor)) == list(found[at + 1 :])
    assert keys.checkpoints == len(found) == len(list(store.scan(SESSION)))
    raws = store.raw([header.address for _, header in found])
    records = [record for raw in raws.values() for record in json.loads(raw.blob)]
    assert sorted(record["uuid"] for record in records) == sorted(record["uuid"] for record in book.records)
    assert store.raw([Address(SESSION, "", "no such turn"), Address("no such thread", "", "x")]) == {}
    token, census = store.token(), store.census(SESSION, cursors[-1], 0)
    assert store.token() == token
    book.prompt("More.")
    book.write(tmp_path)
    assert store.token() != token
    assert [header.source for _, header in store.checkpoints(SESSION, cursors[-1])] == ["input"]
    assert store.census(SESSION, cursors[-1], 0) == census
    assert store.writes([found[0][1].address]) == {}
    store.close()


def test_one_bad_file_of_a_folder_hides_no_other(tmp_path: Path) -> None:
    bakery().write(tmp_path)
    (tmp_path / "noise.jsonl").write_bytes(b"\x00\xff not a line\n")
    (tmp_path / "empty.jsonl").write_bytes(b"")
    store: Any = TranscriptStore(str(tmp_path))
    assert [keys.thread_id for keys in store.threads()] == [SESSION]
    assert sorted(problem.kind for problem in store.problems()) == ["empty-file", "left-aside"]


def test_a_subagents_file_that_comes_later_is_taken_in(tmp_path: Path) -> None:
    book = Book()
    book.prompt("Use a helper.")
    book.answer(call("call_task", "Task", prompt="Count.", description="count"))
    session = Session.open(str(book.write(tmp_path)))
    session.refresh()
    assert len(session.tree(SESSION)) == 2
    helper = Book(prefix="b")
    helper.prompt("Count.", isSidechain=True)
    helper.write(tmp_path / SESSION / "subagents", "agent-h1")
    assert session.refresh()
    assert [row.number for row in session.tree(SESSION).rows()] == ["0", "0.1", "1"]
    session.close()
