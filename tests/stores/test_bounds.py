"""Damage that asks for more than can be done: keys that cannot be found again, and gaps of any size."""

from __future__ import annotations

import sqlite3
from itertools import count
from pathlib import Path

import pytest

from studio.stores import salvage
from studio.stores.sqlite import SqliteStore
from tests.stores.test_damage import EACH, PAGE, THREADS, lost_in, many, overwrite, pages

__all__ = ["many"]


def test_a_checkpoint_that_only_a_disordered_index_lists_is_told_the_time_of_its_id(shop: Path) -> None:
    expected = SqliteStore(str(shop)).outline("done")
    connection = sqlite3.connect(shop)
    size = connection.execute("PRAGMA page_size").fetchone()[0]
    connection.close()
    (number,) = pages(shop, "leaf:sqlite_autoindex_checkpoints_1")
    content = bytearray(shop.read_bytes())
    page = memoryview(content)[(number - 1) * size : number * size]
    cells = range(8, 8 + 2 * int.from_bytes(page[3:5], "big"), 2)
    there = {at: bytes(page[at : at + 2]) for at in cells}
    offsets = {at: int.from_bytes(there[at], "big") for at in cells}
    done = [at for at in cells if b"done" in bytes(page[offsets[at] : offsets[at] + 12])]
    for at, other in zip(done, reversed(done), strict=True):
        page[at : at + 2] = there[other]  # a walk through the thread meets each entry, a search by key misses the outer ones
    shop.write_bytes(content)
    found = SqliteStore(str(shop)).outline("done")
    assert expected is not None and found is not None
    assert sorted(found.links) == sorted(expected.links)
    assert found.first_at is not None and found.last_at is not None
    assert (found.first_at[:19], found.last_at[:19]) == (str(expected.first_at)[:19], str(expected.last_at)[:19])


@pytest.mark.parametrize("bound", ["rows", "time"])
def test_a_gap_of_any_size_in_a_damaged_table_is_given_up_in_bounds(
    many: Path, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    far = 1 << 62
    connection = sqlite3.connect(many)
    connection.execute(
        "INSERT INTO checkpoints (rowid, thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata)"
        " VALUES (?, 't9', '', '0000', 'msgpack', x'80', '{}')",
        (far,),
    )
    connection.commit()
    connection.close()
    overwrite(many, pages(many, "leaf:checkpoints")[-2:-1])
    lost = lost_in(many, "checkpoints")
    ticks = count()

    def clock() -> float:
        """Looked at before each row that is tried alone."""
        now = next(ticks)
        assert now < 20_000, "it does not end"
        return float(now if bound == "time" else 0)

    monkeypatch.setattr(salvage, "monotonic", clock)
    monkeypatch.setattr(salvage, "SECONDS", 50.0)
    monkeypatch.setattr(salvage, "PROBE_MOST", 500 if bound == "rows" else 1_000_000)
    store = SqliteStore(str(many))
    found = [cursor for keys in list(store.threads()) for cursor, _ in store.checkpoints(keys.thread_id)]
    assert lost
    assert sorted(found) == [*sorted(set(range(1, THREADS * EACH + 1)) - lost), far]
    assert any(f"{len(lost)} rows cannot be read" in problem.message for problem in store.problems())
    assert next(ticks) < (100 if bound == "time" else 5000)


def test_row_numbers_that_fall_behind_a_gap_do_not_lead_back_before_it(many: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leaves = pages(many, "leaf:checkpoints")
    overwrite(many, [*leaves[1:4], leaves[-1]])
    lost = lost_in(many, "checkpoints")
    fallen = {_set_row_number(many, leaf, number) for leaf, number in zip(leaves[-3:-1], sorted(lost), strict=False)}
    ticks = count()

    def clock() -> float:
        """Looked at before each row that is tried alone."""
        assert next(ticks) < 20_000, "it goes round and round"
        return 0.0

    monkeypatch.setattr(salvage, "monotonic", clock)
    store = SqliteStore(str(many))
    found = {cursor for keys in list(store.threads()) for cursor, _ in store.checkpoints(keys.thread_id)}
    assert found == set(range(1, THREADS * EACH + 1)) - lost - fallen


def _set_row_number(path: Path, page: int, number: int) -> int:
    """Give the only row of a leaf page another number of at most 14 bits; returns the one that it had."""
    content = bytearray(path.read_bytes())
    start = (page - 1) * PAGE
    assert int.from_bytes(content[start + 3 : start + 5], "big") == 1
    at = start + int.from_bytes(content[start + 8 : start + 10], "big")
    while content[at] & 0x80:  # the length of the row stands before its number, both in groups of seven bits
        at += 1
    had = (content[at + 1] & 0x7F) << 7 | content[at + 2]
    content[at + 1 : at + 3] = (0x80 | number >> 7, number & 0x7F)
    path.write_bytes(content)
    return had
