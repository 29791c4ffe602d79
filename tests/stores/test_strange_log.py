"""A `-wal` that hides what the file holds is told, whatever it shows instead; one that only adds is not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from studio.model import Problem
from studio.stores import hidden, open_store
from studio.stores.view import View
from tests.factories import folder_snapshot
from tests.stores.writers import left_behind, writer

MAKE = "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"  # noqa: E501


@pytest.fixture(params=["each key", "by threads"], autouse=True)
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways to compare, on the same small files; 4 keys are fewer than any of these files has."""
    if request.param == "by threads":
        monkeypatch.setattr(hidden, "MOST_KEYS", 4)
    return str(request.param)


def told(shop: Path) -> list[Problem]:
    before = folder_snapshot(shop.parent)
    store = open_store(str(shop))
    found = [problem for problem in store.problems() if problem.kind == "wal-disagrees"]
    store.close()
    assert folder_snapshot(shop.parent) == before
    return found


def test_the_log_of_another_database_with_more_rows_is_told(shop: Path) -> None:
    other = shop.parent / "other"
    left_behind(other, "PRAGMA journal_mode=wal", MAKE, *(f"add strange {number}" for number in range(90)))
    for suffix in ("-wal", "-shm"):
        Path(f"{other}{suffix}").rename(f"{shop}{suffix}")
    other.unlink()
    store = open_store(str(shop))
    assert [keys.thread_id for keys in store.threads()] == ["strange"]
    store.close()
    alone = open_store(str(shop), View(without_wal=True))
    number = len(list(alone.scan()))
    alone.close()
    (problem,) = told(shop)
    assert problem.where == f"{shop}-wal" and "--without-wal" in problem.message and "another one" in problem.message
    assert 4 < number < 90
    assert str(number) in problem.message or problem.message.startswith("At least")


@pytest.mark.parametrize(
    "changes",
    [
        ["DELETE FROM checkpoints WHERE thread_id = 'done'"],
        ["DELETE FROM checkpoints WHERE thread_id = 'done'", *(f"add new {number}" for number in range(60))],
        ["UPDATE checkpoints SET thread_id = 'renamed' WHERE thread_id = 'done'"],
        [
            "DELETE FROM checkpoints WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'done')",
            "add done 0",
        ],
    ],
)
def test_a_log_that_hides_checkpoints_is_told_however_many_it_adds(shop: Path, changes: list[str]) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", *changes)
    assert len(told(shop)) == 1


def test_a_log_that_only_adds_is_not_told(shop: Path) -> None:
    left_behind(
        shop, "PRAGMA journal_mode=wal", "add new 1", "add done 1f", "add done 0", "UPDATE checkpoints SET metadata = '{}'"
    )
    assert told(shop) == []


def test_a_log_that_breaks_the_file_is_told_with_the_way_past_it(shop: Path, size: str) -> None:
    """Pages of a larger database over a smaller one: some of what they lead to is not there."""
    other = shop.parent / "other.sqlite"
    rows = [f"add strange {number}" for number in range(900)]
    change = "UPDATE checkpoints SET checkpoint_id = checkpoint_id || 'x' WHERE checkpoint_id > '800'"
    left_behind(other, "PRAGMA journal_mode=wal", MAKE, *rows, "PRAGMA wal_checkpoint(TRUNCATE)", change)
    os.replace(f"{other}-wal", f"{shop}-wal")
    os.unlink(f"{other}-shm")
    other.unlink()
    (problem,) = told(shop)
    assert "--without-wal" in problem.message
    assert "damaged" in problem.message or size == "by threads"


def test_a_program_at_work_that_deletes_is_not_told_by_whatever_path_the_file_is_named(shop: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(shop)
    with writer(shop) as other:
        other("PRAGMA journal_mode=wal")
        other("DELETE FROM checkpoints WHERE thread_id = 'done'")
        assert told(shop) == []
        store = open_store(str(link))
        assert [problem.kind for problem in store.problems()] == []
        store.close()
