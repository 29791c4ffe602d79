"""What one query tells of many threads is what each thread's own headers tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.model import Address
from studio.stores.outline import of_headers, summed
from studio.stores.sqlite import SqliteStore
from tests.factories import make_states
from tests.stores.test_sqlite import change

THREADS = 24
ODD = {
    "two branches": "UPDATE checkpoints SET parent_checkpoint_id = (SELECT min(checkpoint_id) FROM checkpoints c WHERE "
    "c.thread_id = checkpoints.thread_id) WHERE parent_checkpoint_id IS NOT NULL AND thread_id = 't03'",
    "a checkpoint is gone": "DELETE FROM checkpoints WHERE rowid = (SELECT rowid FROM checkpoints WHERE thread_id = 't03' "
    "ORDER BY checkpoint_id LIMIT 1 OFFSET 1)",
    "a loop": "UPDATE checkpoints SET parent_checkpoint_id = checkpoint_id WHERE thread_id = 't03'",
    "a loop and a root that is the last": "UPDATE checkpoints SET parent_checkpoint_id = CASE WHEN checkpoint_id = (SELECT "
    "max(checkpoint_id) FROM checkpoints c WHERE c.thread_id = 't03') THEN NULL ELSE checkpoint_id END WHERE thread_id = 't03'",
    "two roots": "UPDATE checkpoints SET parent_checkpoint_id = NULL WHERE thread_id = 't03'",
    "another namespace": "UPDATE checkpoints SET checkpoint_ns = 'x:1' WHERE parent_checkpoint_id IS NULL AND thread_id = 't03'",
    "ids of another kind": "UPDATE checkpoints SET checkpoint_id = substr(checkpoint_id, 2) WHERE thread_id = 't03'",
    "an id that is no text": "UPDATE checkpoints SET checkpoint_id = CAST(checkpoint_id AS BLOB) WHERE thread_id = 't03' "
    "AND parent_checkpoint_id IS NULL",
    "a clock that stepped": "UPDATE checkpoints SET checkpoint_id = 'f' || substr(checkpoint_id, 2) WHERE thread_id = 't03' "
    "AND parent_checkpoint_id IS NULL",
    "a name that is not ASCII": "UPDATE checkpoints SET thread_id = 'té' WHERE thread_id = 't03'",
    "a comma in a parent": "UPDATE checkpoints SET parent_checkpoint_id = ',' WHERE thread_id = 't03'",
    "encrypted": "UPDATE checkpoints SET type = 'msgpack+aes' WHERE thread_id = 't03'",
    "state as text": "UPDATE checkpoints SET checkpoint = 'é', type = 'json' WHERE thread_id = 't03'",
    "no metadata": "UPDATE checkpoints SET metadata = NULL WHERE thread_id = 't03'",
}


@pytest.fixture
def many(tmp_path: Path) -> Path:
    path = tmp_path / "many.sqlite"
    for number in range(THREADS):
        make_states(path, {"messages": ["a"]}, {"messages": ["a", "b"]}, {"messages": []}, thread_id=f"t{number:02d}")
    return path


def told(path: Path) -> dict[str, bool]:
    """Thread -> whether the one query told of it; each that it did tell is compared with the thread's headers."""
    store = SqliteStore(str(path))
    batch = list(store.threads())
    found = store.summaries(batch)
    for thread, summary in found.items():
        whole = summed(of_headers(header for _, header in store.checkpoints(thread)))
        head = Address(thread, "", str(summary.latest))
        last = summary.last_at or store.raw([head])[head].header.created_at
        assert (summary.roots, summary.heads, summary.latest) == (whole.roots, whole.heads, whole.latest)
        assert (summary.size_bytes, summary.first_at, last) == (whole.size_bytes, whole.first_at, whole.last_at)
        assert summary.encrypted == whole.encrypted
    return {keys.thread_id: keys.thread_id in found for keys in batch}


def test_plain_threads_are_all_told_by_one_query(many: Path) -> None:
    assert told(many) == {f"t{number:02d}": True for number in range(THREADS)}


@pytest.mark.parametrize("kind", ODD)
def test_a_thread_of_another_kind_is_told_right_or_left_to_its_own_query(many: Path, kind: str) -> None:
    change(many, ODD[kind])
    found = told(many)
    assert all(found[thread] for thread in found if thread not in ("t03", "té"))


def test_a_table_without_an_index_is_told_the_same(many: Path) -> None:
    change(many, "CREATE TABLE c AS SELECT * FROM checkpoints", "DROP TABLE checkpoints", "ALTER TABLE c RENAME TO checkpoints")
    assert all(told(many).values())


def test_many_rows_at_once_are_those_that_are_found_one_by_one(many: Path) -> None:
    change(many, "UPDATE checkpoints SET thread_id = 'té' WHERE thread_id = 't05'")
    store = SqliteStore(str(many))
    addresses = [header.address for keys in store.threads() for _, header in store.checkpoints(keys.thread_id)]
    plain = [address for address in addresses if address.thread_id.isascii()]
    for asked in (plain, addresses, [*plain, Address("t01", "", "gone"), Address("none", "x", "")]):
        alone = SqliteStore(str(many))
        assert store.raw(asked) == {one: row for address in asked for one, row in alone.raw([address]).items()}
        assert store.writes(asked) == {one: under for address in asked for one, under in alone.writes([address]).items()}
    assert len(store.raw(addresses)) == len(addresses)
