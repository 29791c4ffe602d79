"""Keys that are NULL, bytes or numbers, as copied tables hold them, are shown as their text, found by it, and told."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import msgspec
import pytest

from studio.stores.sqlite import SqliteStore
from tests.cli.conftest import Studio, studio

__all__ = ["studio"]

UPDATES = {
    "no thread id": "thread_id = CASE thread_id WHEN 'done' THEN NULL ELSE thread_id END",
    "a thread id in bytes": "thread_id = CASE thread_id WHEN 'done' THEN CAST(thread_id AS BLOB) ELSE thread_id END",
    "no namespace": "checkpoint_ns = nullif(checkpoint_ns, '')",
    "ids in bytes": "checkpoint_id = CAST(checkpoint_id AS BLOB)",
}


def copy_of(source: Path, path: Path, change: str) -> Path:
    """The tables of the real saver without their constraints, as `CREATE TABLE ... AS SELECT` makes them."""
    shutil.copy(source, path)
    connection = sqlite3.connect(path)
    for table in ("checkpoints", "writes"):
        connection.execute(f"CREATE TABLE copy AS SELECT * FROM {table}")
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"ALTER TABLE copy RENAME TO {table}")
        connection.execute(f"UPDATE {table} SET {change}")
    connection.commit()
    connection.close()
    return path


def seen(path: Path, **called: str) -> dict[str, object]:
    """All that a store tells of each thread; `called` gives a thread another name."""
    store = SqliteStore(str(path))
    try:
        out: dict[str, object] = {}
        for keys in store.threads():
            name = called.get(keys.thread_id, keys.thread_id)
            headers = [header for _, header in store.checkpoints(keys.thread_id)]
            addresses = [header.address for header in headers]
            raws, writes = store.raw(addresses), store.writes(addresses)
            assert list(raws) == addresses
            out[name] = (
                msgspec.structs.replace(keys, thread_id=name),
                [(one.checkpoint_ns, one.checkpoint_id, one.parent_checkpoint_id, one.step) for one in headers],
                store.namespaces(keys.thread_id),
                [(raws[address].blob, writes.get(address)) for address in addresses],
                sorted(store.task_keys(keys.thread_id)),
                len(store.write_headers(keys.thread_id)),
            )
        return out
    finally:
        store.close()


@pytest.mark.parametrize("change", UPDATES)
def test_rows_whose_keys_are_no_text_are_all_found_by_their_text(change: str, shop: Path, tmp_path: Path) -> None:
    path = copy_of(shop, tmp_path / "copied.sqlite", UPDATES[change])
    name = "" if change == "no thread id" else "done"
    assert seen(path, **{"": "done"}) == seen(shop)
    store = SqliteStore(str(path))
    assert [keys.thread_id for keys in store.threads()] == sorted([name, "failed", "forked", "paused"])
    assert [problem.kind for problem in store.problems()] == ["odd-key", "odd-key"]
    store.close()


def test_numbers_as_thread_ids_are_as_good_as_their_text(shop: Path, tmp_path: Path) -> None:
    path = copy_of(shop, tmp_path / "copied.sqlite", "checkpoint_ns = checkpoint_ns")
    connection = sqlite3.connect(path)
    for table in ("checkpoints", "writes"):
        text = connection.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()[0]
        connection.execute(f"ALTER TABLE {table} RENAME TO old")
        connection.execute(text.replace("thread_id TEXT", "thread_id INTEGER"))
        connection.execute("UPDATE old SET thread_id = '42' WHERE thread_id = 'done'")
        connection.execute(f"INSERT INTO {table} SELECT * FROM old")
        connection.execute("DROP TABLE old")
    connection.commit()
    assert connection.execute("SELECT count(*) FROM checkpoints WHERE typeof(thread_id) = 'integer'").fetchone() == (8,)
    connection.close()
    assert seen(path, **{"42": "done"}) == seen(shop)
    store = SqliteStore(str(path))
    assert [problem.kind for problem in store.problems()] == []
    store.close()


def test_a_key_in_bytes_is_found_where_columns_are_as_the_saver_makes_them(shop: Path) -> None:
    whole = seen(shop)
    connection = sqlite3.connect(shop)
    for table in ("checkpoints", "writes"):
        connection.execute(f"UPDATE {table} SET thread_id = CAST(thread_id AS BLOB) WHERE thread_id = 'paused'")
    connection.commit()
    connection.close()
    assert seen(shop) == whole


def test_a_row_without_a_namespace_is_shown_and_forked(studio: Studio, shop: Path, tmp_path: Path) -> None:
    path = copy_of(shop, tmp_path / "copied.sqlite", UPDATES["no namespace"])
    answer = studio("fork", path, "#3", "--thread", "done", "--set", "/price=3.0", "--json")
    assert answer.code == 0
    rows = studio("tree", path, "--thread", "done", "--json").doc["rows"]
    assert [row["checkpoint_id"] for row in rows if row["origin"] == "scratch"] == [answer.doc["checkpoint_id"]]
    for row in rows:
        assert studio("show", path, row["checkpoint_id"], "--json").code == 0
