"""promote: what it shows before, what it asks, what it prints, how it ends."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Studio
from tests.factories import folder_snapshot


@pytest.fixture
def forked(studio: Studio, shop: Path) -> str:
    """The id of a fork of the shop file's thread `done`."""
    row = next(r for r in studio("tree", shop, "--thread", "done", "--json").doc["rows"] if r["next"] == ["approve"])
    made = studio("fork", shop, row["number"], "--thread", "done", "--set", "/price=39.0", "--json").doc
    return str(made["checkpoint_id"])


def ids(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT checkpoint_id FROM checkpoints")}


def test_a_dry_run_shows_each_row_and_both_heads_and_adds_nothing(studio: Studio, shop: Path, forked: str) -> None:
    before = folder_snapshot(shop.parent)
    found = studio("promote", shop, "s1", "--thread", "done", "--dry-run")
    assert found.code == 0
    for words in (f"#s1  {forked}  fork", "0 writes", "below #", "beside #", "head   #", f"#s1 {forked} afterwards"):
        assert words in found.out
    assert "nothing was added" in found.out
    doc = studio("promote", shop, "s1", "--thread", "done", "--dry-run", "--json").doc
    assert doc["added"] is False and [row["checkpoint_id"] for row in doc["rows"]] == [forked]
    assert (doc["rows"][0]["kind"], doc["writes"], doc["head_after"]) == ("fork", 0, forked)
    assert doc["head_before"] in ids(shop) and doc["head_before"] != forked
    assert folder_snapshot(shop.parent) == before


def test_without_a_yes_nothing_is_added(studio: Studio, shop: Path, forked: str) -> None:
    before = folder_snapshot(shop.parent)
    found = studio("promote", shop, "s1", "--thread", "done")
    assert found.code == 2 and "adds 1 checkpoint to" in found.err and "--yes" in found.err
    assert forked in found.out, "the rows are shown before the question"
    assert folder_snapshot(shop.parent) == before


def test_the_branch_is_added_and_counts_as_the_files_own(studio: Studio, shop: Path, forked: str) -> None:
    old = ids(shop)
    doc = studio("promote", shop, "s1", "--thread", "done", "--yes", "--json").doc
    assert (doc["added"], doc["stored_in"], doc["surprises"]) == (True, str(shop), [])
    assert ids(shop) == old | {forked}
    row = next(r for r in studio("tree", shop, "--thread", "done", "--json").doc["rows"] if r["checkpoint_id"] == forked)
    assert (row["number"], row["origin"], row["is_head"]) == ("s1", "base", True)
    again = studio("promote", shop, "s1", "--thread", "done", "--yes")
    assert again.code == 1 and "in the file already" in again.err


def test_a_refusal_is_one_line_and_ends_with_1(studio: Studio, shop: Path, forked: str) -> None:
    with closing(sqlite3.connect(shop)) as connection, connection:
        connection.execute("CREATE TRIGGER tidy AFTER INSERT ON checkpoints BEGIN DELETE FROM writes; END")
    before = folder_snapshot(shop.parent)
    for extra in (["--yes"], ["--dry-run"]):
        found = studio("promote", shop, "s1", "--thread", "done", *extra)
        assert found.code == 1 and "tidy" in found.err and len(found.err.splitlines()) == 2 and not found.out
    assert folder_snapshot(shop.parent) == before
