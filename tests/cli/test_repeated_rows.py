"""A table without a primary key can hold a checkpoint twice: every list counts it once and says so."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from studio.stores import open_store
from studio.stores.layout import Layout
from studio.stores.sqlite import SqliteStore
from tests.cli.conftest import Studio
from tests.stores.test_table_sets import change

COPIED = (
    "CREATE TABLE c AS SELECT * FROM checkpoints",
    "DROP TABLE checkpoints",
    "ALTER TABLE c RENAME TO checkpoints",
)
TWICE = "INSERT INTO checkpoints SELECT * FROM checkpoints WHERE thread_id = 'paused' ORDER BY checkpoint_id LIMIT 1 OFFSET 1"


@pytest.mark.parametrize(
    "index",
    ["", "CREATE INDEX i ON checkpoints (thread_id, checkpoint_ns, checkpoint_id)", "a partial one", "a key that is NULL"],
)
def test_a_checkpoint_that_is_stored_twice_is_told_and_counted_once_in_every_list(shop: Path, studio: Studio, index: str) -> None:
    rows = {thread["thread_id"]: thread for thread in studio("ls", shop, "--json").doc["threads"]}
    change(shop, *COPIED, TWICE)
    if index.startswith("CREATE"):
        change(shop, index)
    elif index == "a partial one":
        unique = "CREATE UNIQUE INDEX i ON checkpoints (thread_id, checkpoint_ns, checkpoint_id) WHERE thread_id <> 'paused'"
        change(shop, unique)
    elif index:
        change(shop, "UPDATE checkpoints SET thread_id = NULL WHERE thread_id = 'failed'")
    listed = studio("ls", shop, "--json").doc
    mine = next(thread for thread in listed["threads"] if thread["thread_id"] == "paused")
    tree = studio("tree", shop, "--thread", "paused", "--all-ns", "--json").doc
    assert mine["checkpoints"] == len(tree["rows"]) == rows["paused"]["checkpoints"]
    assert [mine[name] for name in ("roots", "heads", "head")] == [rows["paused"][name] for name in ("roots", "heads", "head")]
    told = [problem for problem in listed["problems"] if problem["kind"] == "duplicate-id"]
    assert told == [problem for problem in tree["problems"] if problem["kind"] == "duplicate-id"] and len(told) == 1
    assert told[0]["where"].startswith("thread paused, checkpoint ")
    assert "! duplicate-id thread paused" in studio("ls", shop).out


def test_a_table_with_its_primary_key_is_not_searched_for_repeated_rows(shop: Path) -> None:
    def may_repeat(connection: sqlite3.Connection, layout: Layout) -> bool:
        return layout.checkpoints.may_repeat

    store = SqliteStore(str(shop))
    assert not store.peek(may_repeat)
    store.close()
    with closing(sqlite3.connect(shop)) as connection, connection:
        for statement in COPIED:
            connection.execute(statement)
    store = SqliteStore(str(shop))
    assert store.peek(may_repeat)
    store.close()


def test_a_copied_table_without_a_repeated_row_has_no_problem(shop: Path) -> None:
    change(shop, *COPIED)
    store = open_store(str(shop))
    assert sum(keys.checkpoints for keys in store.threads()) == len(list(store.scan()))
    assert store.problems() == []
