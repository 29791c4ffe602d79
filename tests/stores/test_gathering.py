"""A thread that is packed as it is read is the thread that a list would have given, in its order and with its cursors."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from studio.assets import sample_folder
from studio.history.gathered import Gathered
from studio.history.packed import Packed
from studio.overlay import Overlay
from studio.session import Session
from studio.stores import open_store
from studio.stores.sqlite import SqliteStore
from tests.factories import saver_at
from tests.stores.test_sqlite import change
from tests.test_overlay import insert


def opened(path: Path) -> SqliteStore:
    store = open_store(str(path))
    assert isinstance(store, SqliteStore)
    return store


def same_as_listed(store: SqliteStore) -> int:
    """How many rows the gathered threads of a store have, each as it is listed."""
    rows = 0
    for keys in store.threads():
        listed = store.checkpoints(keys.thread_id)
        found = store.gather(keys.thread_id)
        assert found is not None
        assert list(found.headers) == [header for _, header in listed]
        assert found.end == listed[-1][0]
        assert [found.before(cursor) for cursor, _ in listed] == list(range(len(listed)))
        assert all(found.headers.find(one.checkpoint_ns, one.checkpoint_id) == at for at, (_, one) in enumerate(listed))
        rows += len(listed)
    return rows


def test_real_threads_with_forks_and_subgraphs_are_gathered_as_they_are_listed(shop: Path) -> None:
    samples = sorted(sample_folder().glob("*.sqlite"))
    assert len(samples) > 1
    assert all(same_as_listed(opened(path)) for path in [shop, *samples])


@pytest.mark.parametrize("batch", [1, 3, 1024])
def test_rows_that_were_stored_in_another_order_come_in_that_order(
    shop: Path, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.stores.queries.BATCH", batch)
    monkeypatch.setattr("studio.history.packed.BATCH", batch)
    connection = sqlite3.connect(shop)
    rowids = [rowid for (rowid,) in connection.execute("SELECT rowid FROM checkpoints ORDER BY rowid")]
    places = random.Random(7).sample(range(1000, 2000), len(rowids))
    connection.executemany("UPDATE checkpoints SET rowid = ? WHERE rowid = ?", zip(places, rowids, strict=True))
    connection.commit()
    connection.close()
    assert same_as_listed(opened(shop)) == len(rowids)


def test_a_reading_that_is_overtaken_starts_from_the_first_row(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(shop)
    before = store.checkpoints("done")
    monkeypatch.setattr("studio.stores.queries.BATCH", 1)
    take, taken = Gathered.take, 0

    def overtaken(self: Gathered, found: list[object]) -> bool:
        nonlocal taken
        taken += 1
        if taken == 2:
            insert(shop, "done", parent=before[-1][1].checkpoint_id)
        return take(self, found)  # type: ignore[arg-type]

    monkeypatch.setattr(Gathered, "take", overtaken)
    found = store.gather("done")
    assert found is not None
    listed = store.checkpoints("done")
    assert len(listed) == len(before) + 1
    assert list(found.headers) == [header for _, header in listed]
    assert taken >= len(before) + len(listed)


def test_a_failed_reading_leaves_the_tree_to_be_read_again(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session.open(str(shop))
    try:
        with monkeypatch.context() as patch:
            patch.setattr(Packed, "add", lambda self, headers: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                session.tree("done")
        assert [h.address for h in session.tree("done").headers()] == [h.address for _, h in opened(shop).checkpoints("done")]
    finally:
        session.close()


def test_repeated_and_empty_ids_are_listed_instead_so_that_they_are_told(shop: Path) -> None:
    change(
        shop,
        "CREATE TABLE c AS SELECT * FROM checkpoints",
        "DROP TABLE checkpoints",
        "ALTER TABLE c RENAME TO checkpoints",
        "INSERT INTO checkpoints SELECT * FROM checkpoints WHERE thread_id = 'paused' LIMIT 1",
        "UPDATE checkpoints SET checkpoint_id = '' WHERE rowid = (SELECT max(rowid) FROM checkpoints WHERE thread_id = 'done')",
    )
    store = opened(shop)
    assert store.gather("paused") is None
    assert store.gather("done") is None
    session = Session.open(str(shop))
    try:
        assert len(session.tree("paused")) == len(store.checkpoints("paused")) - 1
        assert {problem.kind for problem in session.problems()} >= {"duplicate-id"}
    finally:
        session.close()


def test_rows_of_the_scratch_file_stand_behind_those_of_the_base(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "scratch.sqlite"
    with saver_at(path) as saver:
        saver.setup()
    base = opened(shop)
    known = [header for _, header in base.checkpoints("done")]
    insert(path, "done", ident=known[1].checkpoint_id)
    for _ in range(2):
        insert(path, "done", parent=known[1].checkpoint_id)
    overlay = Overlay(base, opened(path))
    listed, found = overlay.checkpoints("done"), overlay.gather("done")
    assert found is not None
    assert list(found.headers) == [header for _, header in listed]
    assert [header.origin for header in found.headers][-3:] == ["base", "scratch", "scratch"]
    assert found.end == listed[-1][0]
    assert found.base_rows == len(known)
    for cursor, _ in listed:
        for near in (cursor - 1, cursor, cursor + 1):
            assert found.before(near) == sum(one < near for one, _ in listed)
