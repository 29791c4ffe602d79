"""One bad page, row or id never hides another: everything readable is returned, the rest is counted and located."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from studio.errors import OpenError
from studio.model import Address
from studio.stores import open_store
from studio.stores.salvage import ranges
from studio.stores.sqlite import SqliteStore
from tests.factories import folder_snapshot, saver_at

PAGE = 512
THREADS = 6
EACH = 40


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """Small pages, so that rows, their overflow and the indexes lie on pages of their own."""
    folder = tmp_path / "many"
    folder.mkdir()
    path = folder / "many.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA page_size={PAGE}")
    with saver_at(tmp_path / "schema.sqlite") as saver:
        saver.setup()
        for (sql,) in saver.conn.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall():
            connection.execute(sql)
    for number in range(EACH):
        for thread in range(THREADS):
            parent = f"{number - 1:04}" if number else None
            blob = bytes([0x81, 0xA1, 0x76, 4]) + bytes(random.Random(number).randbytes(1408))  # a leaf and two overflow pages
            metadata = f'{{"source": "loop", "step": {number}, "parents": {{}}}}'.encode()
            keys = (f"t{thread}", f"{number:04}")
            connection.execute("INSERT INTO checkpoints VALUES (?, '', ?, ?, 'msgpack', ?, ?)", (*keys, parent, blob, metadata))
            connection.execute("INSERT INTO writes VALUES (?, '', ?, 'task', '', 0, 'n', 'msgpack', ?)", (*keys, b"\x01" * 700))
    connection.commit()
    connection.close()
    return path


def pages(path: Path, kind: str) -> list[int]:
    """Page numbers by what they hold: `leaf:NAME`, `overflow:NAME`, `internal:NAME`."""
    wanted, _, name = kind.partition(":")
    connection = sqlite3.connect(path)
    try:
        query = "SELECT pageno FROM dbstat WHERE name = ? AND pagetype = ? ORDER BY pageno"
        rows = connection.execute(query, (name, wanted)).fetchall()
    except sqlite3.OperationalError:
        pytest.skip("this build of SQLite cannot tell what a page holds")
    finally:
        connection.close()
    return [row[0] for row in rows]


def overwrite(path: Path, numbers: list[int], content: bytes = b"\xff" * PAGE) -> None:
    with open(path, "r+b") as file:
        for number in numbers:
            file.seek((number - 1) * PAGE)
            file.write(content)


def read(path: Path) -> tuple[SqliteStore, list[Address]]:
    before = folder_snapshot(path.parent)
    store = SqliteStore(str(path))
    found = []
    for keys in list(store.threads()):
        found += [header.address for _, header in store.checkpoints(keys.thread_id)]
        store.write_headers(keys.thread_id)
    raws = store.raw(found)
    assert list(raws) == found
    assert sorted(raw.header.address for raw in store.scan()) == sorted(found)
    store.writes(found)
    assert folder_snapshot(path.parent) == before
    return store, found


def lost_in(path: Path, table: str, column: str = "thread_id") -> set[int]:
    """Rowids that cannot be read one by one, by an independent look."""
    connection = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    lost = set()
    for rowid in range(1, THREADS * EACH + 1):
        try:
            if connection.execute(f"SELECT {column} FROM {table} NOT INDEXED WHERE rowid = ?", (rowid,)).fetchone() is None:
                lost.add(rowid)
        except sqlite3.DatabaseError:
            lost.add(rowid)
    connection.close()
    return lost


@pytest.mark.parametrize("kind", ["leaf:checkpoints", "internal:checkpoints"])
@pytest.mark.parametrize("content", [b"\xff" * PAGE, bytes(PAGE)], ids=["ones", "zeros"])
def test_damaged_pages_cost_only_their_own_rows(many: Path, kind: str, content: bytes) -> None:
    root = pages(many, "internal:checkpoints")[0]
    chosen = [number for number in pages(many, kind) if number != root][1:3]
    overwrite(many, chosen, content)
    lost = lost_in(many, "checkpoints")
    store, addresses = read(many)
    assert lost
    assert len(addresses) == THREADS * EACH - len(lost)
    problems = [problem for problem in store.problems() if problem.where == "table checkpoints"]
    assert [problem.kind for problem in problems] == ["damaged"]
    assert f"{len(lost)} rows cannot be read" in problems[0].message
    assert ranges(lost) in problems[0].message
    assert "threads t" in problems[0].message  # the index still knows whose they were


@pytest.mark.parametrize("table", ["checkpoints", "writes"])
@pytest.mark.parametrize("name", [b"t0", b"t5"])
def test_an_index_that_leads_to_other_rows_is_not_followed(many: Path, table: str, name: bytes) -> None:
    expected = {thread: SqliteStore(str(many)).checkpoints(thread) for thread in ("t0", "t3", "t5")}
    writes = SqliteStore(str(many)).write_headers("t3")
    for number in pages(many, f"leaf:sqlite_autoindex_{table}_1"):
        page = many.read_bytes()[(number - 1) * PAGE : number * PAGE]
        if page.count(b"t3") > 3 and page.count(b"t2") == page.count(b"t4") == 0:
            overwrite(many, [number], page.replace(b"t3", name, 2).replace(name, b"t3", 1))
            break
    store, addresses = read(many)
    assert len(addresses) == len(set(addresses)) == THREADS * EACH
    assert {thread: store.checkpoints(thread) for thread in expected} == expected
    assert store.write_headers("t3") == writes
    found = [(problem.kind, problem.where) for problem in store.problems()]
    assert found == [("index-disagrees", f"table {table}")] or name == b"t5"  # a key that is too large ends the search early


def entries_of_another_thread(path: Path, name: bytes, instead: bytes) -> None:
    """Give entries of the index of the writes another thread, each entry still leading to the row that it led to."""
    for kind in ("leaf", "internal"):
        for number in pages(path, f"{kind}:sqlite_autoindex_writes_1"):
            page = path.read_bytes()[(number - 1) * PAGE : number * PAGE]
            overwrite(path, [number], page.replace(name, instead))


@pytest.mark.parametrize("ask", [SqliteStore.writes_end, SqliteStore.write_bytes])
def test_what_is_counted_in_an_index_that_leads_to_other_rows_is_not_believed(
    many: Path, ask: Callable[[SqliteStore, str], object]
) -> None:
    expected = ask(SqliteStore(str(many)), "t3")
    for number in pages(many, "leaf:sqlite_autoindex_writes_1"):
        page = many.read_bytes()[(number - 1) * PAGE : number * PAGE]
        if page.count(b"t3") > 3:  # what stands between them in pages above still leads here
            overwrite(many, [number], page.replace(b"t3", b"t0"))
    store = SqliteStore(str(many))
    assert ask(store, "t3") in (expected, None)  # a number that nothing sure tells is not told
    assert [(problem.kind, problem.where) for problem in store.problems()] == [("index-disagrees", "table writes")]


def test_a_namespace_is_only_named_where_the_rows_of_a_thread_have_it(many: Path) -> None:
    entries_of_another_thread(many, b"t5", b"t9")
    store = SqliteStore(str(many))
    assert store.written_namespaces("t9") == ()
    assert store.written_namespaces("t5") == ("",)
    assert [(problem.kind, problem.where) for problem in store.problems()] == [("index-disagrees", "table writes")]


def test_a_damaged_index_costs_nothing(many: Path) -> None:
    overwrite(many, pages(many, "leaf:sqlite_autoindex_checkpoints_1")[2:4])
    overwrite(many, pages(many, "leaf:sqlite_autoindex_writes_1")[2:4])
    store, addresses = read(many)
    assert len(addresses) == THREADS * EACH
    assert all(len(rows) == 1 for rows in store.writes(addresses).values())
    assert store.problems() == []


def test_a_damaged_index_and_table_still_give_the_rest(many: Path) -> None:
    overwrite(many, pages(many, "leaf:sqlite_autoindex_checkpoints_1")[2:4])
    overwrite(many, pages(many, "leaf:checkpoints")[5:8])
    lost = lost_in(many, "checkpoints")
    _, addresses = read(many)
    assert len(addresses) == THREADS * EACH - len(lost)


def test_a_state_that_is_lost_keeps_its_place_in_the_tree(many: Path) -> None:
    overwrite(many, pages(many, "overflow:checkpoints")[10:14])
    expected = lost_in(many, "checkpoints", "metadata")
    assert expected
    store, addresses = read(many)
    assert len(addresses) == THREADS * EACH
    raws = [raw for raw in store.raw(addresses).values() if not raw.blob]
    assert len(raws) == len(expected)
    assert all(raw.header.step is None for raw in raws)
    assert all(int(raw.header.checkpoint_id) == 0 or raw.header.parent_checkpoint_id for raw in raws)
    assert {problem.kind for problem in store.problems()} == {"damaged"}


def test_damaged_writes_do_not_touch_the_checkpoints(many: Path) -> None:
    overwrite(many, pages(many, "leaf:writes")[4:6])
    lost = lost_in(many, "writes")
    store, addresses = read(many)
    assert len(addresses) == THREADS * EACH
    assert sum(len(rows) for rows in store.writes(addresses).values()) == THREADS * EACH - len(lost)
    assert [problem.where for problem in store.problems()] == ["table writes"]


def test_a_damaged_index_of_the_writes_still_tells_their_namespaces_in_the_middle_of_other_reads(many: Path) -> None:
    overwrite(many, pages(many, "leaf:sqlite_autoindex_writes_1"))
    store = SqliteStore(str(many))
    found = store.together(lambda: [store.written_namespaces(f"t{number}") for number in range(THREADS)])
    assert found == [("",)] * THREADS


@pytest.mark.parametrize("share", [0.3, 0.5, 0.8, 0.97])
def test_a_truncated_file_shows_what_is_there(many: Path, share: float) -> None:
    content = many.read_bytes()
    many.write_bytes(content[: int(len(content) * share)])
    store, addresses = read(many)
    assert {"truncated", "damaged"} <= {problem.kind for problem in store.problems()}
    padded = many.parent.parent / "padded.sqlite"
    padded.write_bytes(many.read_bytes().ljust(len(content), b"\0"))
    assert len(addresses) == THREADS * EACH - len(lost_in(padded, "checkpoints"))
    assert addresses or share < 0.5


def test_a_truncated_file_is_told_from_one_whose_end_is_in_the_log(shop: Path) -> None:
    assert open_store(str(shop)).problems() == []


@pytest.mark.parametrize("seed", range(12))
def test_random_damage_never_raises_anything_but_an_open_error(many: Path, seed: int) -> None:
    chance = random.Random(seed)
    content = bytearray(many.read_bytes())
    for _ in range(chance.choice([1, 5, 40])):
        start = chance.randrange(100, len(content))
        length = chance.choice([1, 4, 100, 3000])
        content[start : start + length] = chance.randbytes(min(length, len(content) - start))
    many.write_bytes(content)
    try:
        store = open_store(str(many))
    except OpenError:
        return
    for keys in list(store.threads()):
        addresses = [header.address for _, header in store.checkpoints(keys.thread_id)]
        store.write_headers(keys.thread_id)
        store.raw(addresses)
        store.writes(addresses)
        list(store.scan_writes(keys.thread_id, ["n"]))
    list(store.scan())
    store.problems()


def test_ranges_are_short() -> None:
    assert ranges([9, 1, 2, 3, 4]) == "1-4, 9"
    assert ranges([]) == ""


def test_a_file_cut_anywhere_lists_no_thread_that_was_not_there_and_none_twice(many: Path, shop: Path, tmp_path: Path) -> None:
    """Zeros stand for what is missing: an index that lies in them gives rows without keys, and no error."""
    cut = tmp_path / "cut" / "cut.sqlite"
    cut.parent.mkdir()
    for path, step in ((shop, 509), (many, 7919)):
        store = SqliteStore(str(path))
        there = {keys.thread_id: keys.checkpoints for keys in store.threads()}
        store.close()
        whole = path.read_bytes()
        for size in range(8 * PAGE, len(whole), step):
            cut.write_bytes(whole[:size])
            try:
                store = SqliteStore(str(cut))
            except OpenError:
                continue  # its schema is cut
            listed = list(store.threads())
            names = [keys.thread_id for keys in listed]
            assert len(set(names)) == len(names)
            assert set(names) <= set(there)
            for keys in listed:
                found = store.checkpoints(keys.thread_id)
                assert len(found) <= keys.checkpoints <= there[keys.thread_id]
                assert len(store.raw([header.address for _, header in found])) == len(found)
            store.close()
