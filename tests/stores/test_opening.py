"""What cannot be opened is said in one line, and nothing is created."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from studio.errors import OpenError
from studio.stores import open_store, sqlite_file
from studio.stores.sqlite import SqliteStore
from studio.stores.view import View
from tests.factories import folder_snapshot
from tests.stores.writers import left_behind


def refusal(location: Path | str) -> OpenError:
    with pytest.raises(OpenError) as caught:
        open_store(str(location))
    error = caught.value
    assert "\n" not in error.message
    assert "\n" not in error.hint
    assert error.exit_code == 3
    return error


def test_a_missing_path_is_not_created(tmp_path: Path) -> None:
    path = tmp_path / "no" / "such.sqlite"
    assert refusal(path).slug == "missing"
    assert list(tmp_path.iterdir()) == []


def test_a_log_without_its_database_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite-wal").write_bytes(b"x")
    error = refusal(tmp_path / "a.sqlite")
    assert error.slug == "missing"
    assert "-wal" in error.message


def test_side_files_name_their_database(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    assert str(shop) in refusal(f"{shop}-wal").hint


@pytest.mark.parametrize(
    ("content", "slug", "word"),
    [
        (b"", "empty", "zero bytes"),
        (bytes(20480), "zero-filled", "nothing but zero bytes"),
        (bytes(5000) + b"x", "zero-filled", "empty header"),
        (b'{"type":"user"}\n', "not-a-database", "JSON"),
        (b"hello, this is text\n", "not-a-database", "text"),
        (b"-- PostgreSQL database dump\nCREATE TABLE x ();\n", "not-a-database", "SQL script"),
        (b"\x1f\x8b\x08\x00rest", "not-a-database", "gzip"),
        (b"PK\x03\x04rest", "not-a-database", "zip"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "not-a-database", "LFS pointer"),
        (bytes(range(1, 255)) * 20, "not-a-database", "encrypted"),
        (b"SQLite format 3\0", "not-a-database", "ends inside its header"),
    ],
)
def test_other_content_is_named(tmp_path: Path, content: bytes, slug: str, word: str) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(content)
    before = folder_snapshot(tmp_path)
    error = refusal(path)
    assert (error.slug, word in error.message) == (slug, True), error.message
    assert folder_snapshot(tmp_path) == before


def test_a_header_followed_by_nonsense_is_damage(tmp_path: Path, shop: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_bytes(shop.read_bytes()[:100] + os.urandom(20380))
    assert refusal(path).slug == "damaged"


def test_pipes_and_devices_are_refused_without_opening_them(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe").slug == "not-a-file"
    assert refusal("/dev/null").slug == "not-a-file"


def test_a_url_is_refused_without_repeating_what_may_be_secret() -> None:
    error = refusal("postgresql://user:word@host/db")
    assert error.slug == "unknown-scheme"
    assert "word" not in error.message


@pytest.mark.parametrize(
    ("sql", "word"),
    [
        ("", "without any table"),
        ("CREATE TABLE users (id INTEGER)", "users"),
        ("CREATE TABLE checkpoints (id INTEGER, name TEXT)", "not with LangGraph's columns"),
        ("CREATE TABLE agent_sessions (id); CREATE TABLE agent_messages (id)", "OpenAI Agents SDK"),
        (
            "CREATE TABLE checkpoints (thread_id TEXT PRIMARY KEY, checkpoint_id TEXT, parent_checkpoint_id TEXT, "
            "checkpoint BLOB, metadata BLOB) WITHOUT ROWID",
            "WITHOUT ROWID",
        ),
    ],
)
def test_a_database_without_checkpoint_tables_says_what_it_holds(tmp_path: Path, sql: str, word: str) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(f"PRAGMA user_version=1; {sql}")
    connection.close()
    error = refusal(path)
    slug = "without-rowid" if word == "WITHOUT ROWID" else "no-checkpoint-tables"
    assert (error.slug, word in error.message) == (slug, True), error.message


def test_tables_without_rows_are_no_error(shop: Path) -> None:
    connection = sqlite3.connect(shop)
    connection.executescript("DELETE FROM checkpoints; DELETE FROM writes")
    connection.close()
    store = open_store(str(shop))
    assert list(store.threads()) == []
    assert list(store.scan()) == []
    assert store.checkpoints("done") == []
    assert store.problems() == []


def test_a_folder_with_one_database_opens_it(shop: Path) -> None:
    (shop.parent / "notes.txt").write_text("hello")
    (shop.parent / "broken.sqlite").write_bytes(b"")
    assert open_store(str(shop.parent)).location == str(shop)


def test_a_folder_with_several_databases_lists_them(shop: Path) -> None:
    other = shop.with_name("other.sqlite")
    other.write_bytes(shop.read_bytes())
    error = refusal(shop.parent)
    assert error.slug == "several"
    assert error.candidates == (str(other), str(shop))


def test_a_folder_without_databases_says_so(tmp_path: Path) -> None:
    assert refusal(tmp_path).slug == "empty-folder"


def test_odd_file_names_are_opened(shop: Path) -> None:
    path = shop.with_name("a b?c#d%20e&f.sqlite")
    shop.rename(path)
    assert len(list(open_store(str(path)).threads())) == 4


def test_a_file_that_goes_away_is_an_open_error_and_can_come_back(shop: Path) -> None:
    store = open_store(str(shop))
    away = shop.with_name("away")
    shop.rename(away)
    with pytest.raises(OpenError):
        store.checkpoints("done")
    away.rename(shop)
    assert store.checkpoints("done")


def test_a_log_of_an_older_state_is_reported_and_can_be_ignored(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "DELETE FROM checkpoints WHERE thread_id = 'done'")
    store = SqliteStore(str(shop))
    assert store.checkpoints("done") == []
    (problem,) = store.problems()
    assert problem.kind == "wal-disagrees"
    assert SqliteStore(str(shop), ignore_wal=True).checkpoints("done")


def test_a_log_that_only_adds_is_no_problem(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    assert open_store(str(shop)).problems() == []


def test_a_log_that_may_not_be_read_is_refused_with_the_way_to_read_the_file_without_it(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    Path(f"{shop}-shm").unlink()

    def denied(path: str) -> bool:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(sqlite_file, "has_commit", denied)
    with pytest.raises(OpenError, match="permission denied") as error:
        open_store(str(shop))
    assert "--without-wal" in error.value.hint
    with closing(open_store(str(shop), View(without_wal=True))) as store:
        assert "new" not in {keys.thread_id for keys in store.threads()}
