"""A state that cannot be read is not an empty one: what changed beside it is not known, in every command."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from tests.cli.conftest import Studio


@pytest.fixture
def broken(shop: Path) -> tuple[Path, int]:
    """The shop with one blob of `done` cut in the middle, and the number of its checkpoint."""
    connection = sqlite3.connect(shop)
    rows = connection.execute("SELECT rowid FROM checkpoints WHERE thread_id = 'done' ORDER BY checkpoint_id").fetchall()
    connection.execute("UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 60) WHERE rowid = ?", rows[3])
    connection.commit()
    connection.close()
    return shop, 3


def diff(studio: Studio, path: Path, *more: object) -> tuple[int, dict[str, object]]:
    answer = studio("diff", path, *more, "--thread", "done", "--json", "--exit-code")
    return answer.code, answer.doc


def test_a_diff_to_or_from_a_state_that_cannot_be_read_names_no_change_and_no_author(
    studio: Studio, broken: tuple[Path, int]
) -> None:
    path, at = broken
    for more in ([at], [at + 1], [at - 1, at + 2], [at, at + 2], [at, at]):
        code, found = diff(studio, path, *more)
        if at not in more and at + 1 not in more:  # both sides of it can be read
            assert found["unknown"] is None and found["changes"]
            continue
        assert found["changes"] == [] and found["explained"] == {}
        assert str(found["unknown"]).startswith("What changed is not known")
        assert code == 1
    text = studio("diff", path, at, "--thread", "done").out
    assert "not known" in text and "0 changes" not in text


def test_an_export_says_where_changes_are_not_known(studio: Studio, broken: tuple[Path, int]) -> None:
    path, at = broken
    lines = studio("export", path, "--thread", "done").lines
    unknown = [line["number"] for line in lines if line.get("unknown")]
    assert unknown == [str(at), str(at + 1)]
    assert all(not line["changes"] for line in lines if line.get("unknown"))


def test_branches_that_end_in_a_state_that_cannot_be_read_are_not_called_the_same(
    studio: Studio, broken: tuple[Path, int]
) -> None:
    path, at = broken
    fork = studio("fork", path, at - 1, "--thread", "done", "--set", "/price=1.0", "--json")
    assert fork.code == 0, fork.err
    for side in ([at, fork.doc["checkpoint_id"]], [at, at]):
        answer = studio("compare", path, *side, "--thread", "done", "--json", "--exit-code")
        assert answer.doc["unknown"] and answer.doc["changes"] == [] and answer.doc["messages"] == []
        assert answer.code == 1
    assert "not known" in studio("compare", path, at, fork.doc["checkpoint_id"], "--thread", "done").out


def test_the_writer_of_a_value_is_not_looked_for_behind_a_state_that_cannot_be_read(
    studio: Studio, broken: tuple[Path, int]
) -> None:
    """Across several supersteps, the closed one may have written any of them."""
    path, at = broken
    _, found = diff(studio, path, at - 1, at + 2)
    changes = found["changes"]
    assert isinstance(changes, list) and changes
    before = {change["path"] for change in diff(studio, path, at - 1)[1]["changes"]}  # type: ignore[attr-defined]
    since = {change["path"] for change in diff(studio, path, at + 2)[1]["changes"]}  # type: ignore[attr-defined]
    closed = [change for change in changes if change["path"] not in since | before]
    assert closed and all(author["node"] is None for change in closed for author in change["authors"])


def test_a_search_says_what_it_could_not_look_into(studio: Studio, broken: tuple[Path, int]) -> None:
    path, _ = broken
    answer = studio("search", path, "no such text", "--json")
    assert answer.doc["hits"] == []
    (told,) = [one for one in answer.doc["problems"] if one["kind"] == "not-searched"]
    assert told["where"] == "thread done" and "1 checkpoint (damaged)" in told["message"]
    text = studio("search", path, "no such text")
    assert text.out == "nothing found\n"
    assert "masked values are not searched" in text.err and "1 checkpoint (damaged)" in text.err
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM checkpoints WHERE length(checkpoint) = 60")
    connection.commit()
    connection.close()
    assert not [one for one in studio("search", path, "no such text", "--json").doc["problems"] if one["kind"] == "not-searched"]


def test_a_list_says_why_a_thread_is_not_known(studio: Studio, shop: Path) -> None:
    connection = sqlite3.connect(shop)
    connection.execute(
        "UPDATE checkpoints SET checkpoint = x'c1c1' WHERE checkpoint_id = "
        "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'done')"
    )
    connection.commit()
    connection.close()
    threads = {one["thread_id"]: one for one in studio("ls", shop, "--json").doc["threads"]}
    assert threads["done"]["status"] == "unknown" and "cannot be read" in threads["done"]["unread"]
    assert threads["paused"]["unread"] is None
    (line,) = [line for line in studio("ls", shop).out.splitlines() if line.startswith("done")]
    assert "not known" in line and "the state cannot be read: damaged" in line
