"""Base and scratch are one store, and what the file holds wins."""

from __future__ import annotations

import sqlite3
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base.id import uuid6

from studio.model import Address, Checkpoint
from studio.overlay import Overlay
from studio.stores import open_store
from tests.factories import saver_at


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    folder = tmp_path / "scratch"
    folder.mkdir()
    path = folder / "scratch.sqlite"
    with saver_at(path) as saver:
        saver.setup()
    return path


def insert(
    path: Path, thread: str, ident: str | None = None, parent: str | None = None, ns: str = "", writes: tuple[str, ...] = ()
) -> Address:
    """A checkpoint row, and writes under it."""
    address = Address(thread, ns, ident or str(uuid6(clock_seq=1)))
    connection = sqlite3.connect(path)
    connection.execute(
        "INSERT INTO checkpoints VALUES (?, ?, ?, ?, 'msgpack', ?, ?)",
        (thread, ns, address.checkpoint_id, parent, b"\x81\xa1v\x04", b'{"source": "fork", "step": 1, "parents": {}}'),
    )
    for channel in writes:
        connection.execute(
            "INSERT INTO writes VALUES (?, ?, ?, 'task', '', 0, ?, 'null', x'')", (thread, ns, address.checkpoint_id, channel)
        )
    connection.commit()
    connection.close()
    return address


def headers(store: Overlay, thread: str) -> list[Checkpoint]:
    return [header for _, header in store.checkpoints(thread)]


def test_without_a_scratch_file_the_base_is_shown_as_it_is(shop: Path) -> None:
    base = open_store(str(shop))
    overlay = Overlay(base)
    assert list(overlay.threads()) == list(base.threads())
    assert headers(overlay, "done") == [header for _, header in base.checkpoints("done")]
    assert list(overlay.scan()) == list(base.scan())
    assert overlay.scratch is None
    assert (overlay.location, overlay.kind, overlay.layout) == (base.location, base.kind, base.layout)
    assert overlay.capabilities == base.capabilities


def test_a_fork_stands_behind_the_base_rows_and_says_where_it_is(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    before = headers(overlay, "done")
    fork = insert(scratch, "done", parent=before[2].parent_checkpoint_id, writes=("notes",))
    found = headers(overlay, "done")
    assert found[:-1] == before
    assert (found[-1].address, found[-1].origin) == (fork, "scratch")
    assert overlay.raw([fork])[fork].header.origin == "scratch"
    assert [row.origin for row in overlay.writes([fork])[fork]] == ["scratch"]
    assert {row.origin for _, row in overlay.write_headers("done")} == {"base", "scratch"}
    assert [row.origin for row in overlay.scan_writes("done", ["notes"])][-1] == "scratch"
    keys = next(keys for keys in overlay.threads() if keys.thread_id == "done")
    assert (keys.checkpoints, keys.latest) == (len(found), fork.checkpoint_id)


def test_a_row_that_is_in_both_is_the_base_s_and_its_scratch_writes_are_not_shown(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    before, rows = headers(overlay, "done"), list(overlay.write_headers("done"))
    address = before[3].address
    insert(scratch, "done", address.checkpoint_id, writes=("other",))
    assert headers(overlay, "done") == before
    assert list(overlay.write_headers("done")) == rows
    assert all(row.channel != "other" for row in overlay.writes([address]).get(address, ()))
    assert overlay.raw([address])[address].header.origin == "base"
    assert list(overlay.scan_writes("done", ["other"])) == []
    scanned = [raw.header.address for raw in overlay.scan("done")]
    assert scanned == [header.address for header in before]
    assert next(keys for keys in overlay.threads() if keys.thread_id == "done").checkpoints == len(before)
    finished = before[-1].address
    insert(scratch, "done", finished.checkpoint_id, writes=("other",))
    assert overlay.writes([finished]) == {}


def test_scratch_writes_under_a_missing_checkpoint_of_the_base_are_no_problem(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    address = headers(overlay, "done")[-1].address
    insert(scratch, "done", address.checkpoint_id, writes=("other",))
    connection = sqlite3.connect(scratch)
    connection.execute("DELETE FROM checkpoints")
    connection.commit()
    connection.close()
    overlay.write_headers("done")
    list(overlay.threads())
    assert overlay.problems() == []


def test_cursors_give_each_row_once_whichever_file_grows(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    seen = list(overlay.checkpoints("done"))
    for path in (scratch, shop, scratch, scratch, shop):
        added = insert(path, "done", writes=("notes",))
        cursor = max(cursor for cursor, _ in seen)
        new = overlay.checkpoints("done", cursor)
        assert [header.address for _, header in new] == [added]
        assert new[0][0] > cursor
        seen += new
    writes = overlay.write_headers("done")
    assert [cursor for cursor, _ in writes] == sorted(cursor for cursor, _ in writes)
    assert overlay.write_headers("done", writes[-1][0]) == []


def test_threads_of_both_files_are_listed_in_the_order_of_their_ids(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    for thread in ("aaa", "eee", "zzz", "done"):
        insert(scratch, thread)
    insert(scratch, "paused", ns="sub:1")
    found = list(overlay.threads())
    assert [keys.thread_id for keys in found] == ["aaa", "done", "eee", "failed", "forked", "paused", "zzz"]
    assert overlay.namespaces("paused") == ("", "sub:1") == found[5].namespaces
    base = next(keys for keys in open_store(str(shop)).threads() if keys.thread_id == "paused")
    assert found[5].latest == base.latest  # a subgraph's checkpoint is not what would be resumed
    runs = [thread for thread, _ in groupby(raw.header.thread_id for raw in overlay.scan())]
    assert sorted(runs) == [keys.thread_id for keys in found]  # the rows of a thread stand together
    assert len(list(overlay.scan())) == sum(keys.checkpoints for keys in found)
    assert [header.origin for header in headers(overlay, "zzz")] == ["scratch"]


def test_a_scratch_file_may_come_later_and_go_again(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)))
    before, token = headers(overlay, "done"), overlay.token()
    fork = insert(scratch, "done")
    overlay.set_scratch(open_store(str(scratch)))
    assert overlay.token() != token
    assert headers(overlay, "done")[-1].address == fork
    scratch.unlink()
    assert headers(overlay, "done") == before
    assert overlay.scratch is None
    assert overlay.token() == token


def test_the_token_follows_both_files(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    tokens = [overlay.token()]
    for path in (shop, scratch):
        insert(path, "done")
        tokens.append(overlay.token())
    assert len(set(tokens)) == 3
    assert overlay.token() == tokens[-1]


def test_outlines_count_both_files(shop: Path, scratch: Path) -> None:
    overlay = Overlay(open_store(str(shop)), open_store(str(scratch)))
    before = overlay.outline("done")
    fork = insert(scratch, "done")
    whole = overlay.outline("done")
    assert whole.links == (*before.links, ("", fork.checkpoint_id, None))
    assert whole.size_bytes > before.size_bytes
    assert (whole.first_at, whole.last_at) == (before.first_at, headers(overlay, "done")[-1].created_at)


def test_closing_closes_both(shop: Path, scratch: Path) -> None:
    closed: list[str] = []

    class Noting:
        def __init__(self, store: Any) -> None:
            self._store = store

        def __getattr__(self, name: str) -> Any:
            return getattr(self._store, name)

        def close(self) -> None:
            closed.append(self._store.location)
            self._store.close()

    Overlay(Noting(open_store(str(shop))), Noting(open_store(str(scratch)))).close()
    assert sorted(closed) == sorted([str(shop), str(scratch)])
