"""What looks like a database in a folder and cannot be opened is told, file by file, and hides no other."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from starlette.testclient import TestClient

from studio.locations import one_file
from studio.stores import folder as folders
from studio.web import create_app
from tests.cli.conftest import Studio
from tests.factories import folder_snapshot
from tests.stores.transcripts.sessions import Book
from tests.stores.writers import left_behind
from tests.tui.driving import driven, opened


def malformed(path: Path, shop: Path) -> None:
    path.write_bytes(shop.read_bytes()[:100] + b"\xff" * 20380)


def only_a_log(path: Path, shop: Path) -> None:
    shutil.copy(shop, path)
    left_behind(path, "PRAGMA journal_mode=wal", "add new 1")
    path.unlink()


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE users (name)")


def beside_a_strange_log(path: Path, shop: Path) -> None:
    other = path.with_name("other")
    left_behind(other, "PRAGMA journal_mode=wal", "CREATE TABLE users (name)")
    shutil.copy(shop, path)
    other.with_name("other-wal").rename(f"{path}-wal")
    other.with_name("other-shm").unlink()
    other.unlink()


def without_rowid(path: Path, shop: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        columns = "thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata"
        key = "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)"
        connection.execute(f"CREATE TABLE checkpoints ({columns}, {key}) WITHOUT ROWID")


LOST: dict[str, tuple[Callable[[Path, Path], object], str, str]] = {
    "malformed": (malformed, "damaged", "lost.sqlite is damaged"),
    "zero bytes": (lambda path, shop: path.write_bytes(b""), "empty", "zero bytes"),
    "zero-filled": (lambda path, shop: path.write_bytes(bytes(20480)), "zero-filled", "nothing but zero bytes"),
    "cut": (lambda path, shop: path.write_bytes(shop.read_bytes()[:16]), "not-a-database", "only 16 bytes"),
    "git": (lambda path, shop: path.write_text("version https://git-lfs.github.com/spec/v1\n"), "not-a-database", "LFS pointer"),
    "a log alone": (only_a_log, "missing", "only its -wal and -shm"),
    "a strange log": (beside_a_strange_log, "wal-disagrees", "no checkpoint tables; its tables are users"),
    "without rowid": (without_rowid, "without-rowid", "WITHOUT ROWID"),
    "a dead link": (lambda path, shop: path.symlink_to(path.parent / "gone"), "missing", "There is no file"),
    "a pipe": (lambda path, shop: os.mkfifo(path), "not-a-file", "is a pipe"),
}


@pytest.mark.parametrize("kind", LOST)
def test_a_lost_database_is_a_problem_of_its_folder(shop: Path, studio: Studio, kind: str) -> None:
    make, slug, word = LOST[kind]
    lost = shop.with_name("lost.sqlite")
    make(lost, shop)
    before = folder_snapshot(shop.parent) if kind not in ("a pipe", "a dead link") else None
    answer = studio("ls", shop.parent, "--json")
    assert answer.code == 0
    assert {thread["location"] for thread in answer.doc["threads"]} == {str(shop)}
    (problem,) = answer.doc["problems"]
    assert (problem["kind"], problem["where"]) == (slug, str(lost)) and word in problem["message"]
    assert f"! {slug} " in studio("ls", shop.parent).out
    for command in (["tree", shop.parent, "--thread", "done"], ["show", shop.parent, "head", "--thread", "done"]):
        assert str(lost) in [problem["where"] for problem in studio(*command, "--json").doc["problems"]]
    alone = studio("ls", shop.parent, "--file", "lost.sqlite")
    assert alone.code == 3 and word in alone.err
    assert studio("ls", shop.parent, "--file", shop.name, "--json").doc["problems"] == []
    assert before is None or folder_snapshot(shop.parent) == before
    shop.unlink()
    answer = studio("ls", shop.parent)
    assert answer.code == 3 and word in answer.err


def test_what_is_simply_something_else_is_no_problem(shop: Path, studio: Studio) -> None:
    foreign(shop.with_name("app.db"))
    (shop.parent / "notes.txt").write_bytes(b"")
    (shop.parent / "levels.db").mkdir()
    (shop.parent / "session.jsonl").write_bytes(b"")
    assert studio("ls", shop.parent, "--json").doc["problems"] == []


def test_several_lost_databases_are_all_named_where_nothing_else_is_there(tmp_path: Path, shop: Path, studio: Studio) -> None:
    folder = tmp_path / "lost"
    folder.mkdir()
    malformed(folder / "a.sqlite", shop)
    (folder / "b.db").write_bytes(b"")
    foreign(folder / "c.db")
    answer = studio("ls", folder)
    assert answer.code == 3 and "a.sqlite is damaged" in answer.err and "b.db is empty" in answer.err


def test_a_lost_database_leaves_a_folder_of_transcripts_one_location(tmp_path: Path, studio: Studio) -> None:
    folder = tmp_path / "sessions"
    folder.mkdir()
    for name in ("baking", "cooking"):
        book = Book()
        book.prompt(f"Start {name}")
        book.answer("Done.")
        book.write(folder, name)
    whole = studio("ls", folder, "--json").doc
    (folder / "index.db").write_bytes(b"")
    found = studio("ls", folder, "--json").doc
    assert [one["thread_id"] for one in found["threads"]] == [one["thread_id"] for one in whole["threads"]]
    assert [(one["kind"], one["where"]) for one in found["problems"]] == [("empty", str(folder / "index.db"))]


def test_in_a_folder_each_damaged_place_says_its_file(shop: Path, studio: Studio) -> None:
    twin = shop.with_name("twin.sqlite")
    shutil.copy(shop, twin)
    with closing(sqlite3.connect(twin)) as connection, connection:
        connection.execute("UPDATE checkpoints SET checkpoint_id = '' WHERE rowid = 1")
        connection.execute("DELETE FROM checkpoints WHERE rowid > 1")
    alone = studio("ls", twin, "--json").doc["problems"]
    assert alone and not any("twin.sqlite" in problem["where"] for problem in alone)
    told = studio("ls", shop.parent, "--json").doc["problems"]
    assert [problem["where"] for problem in told] == [f"twin.sqlite, {problem['where']}" for problem in alone]
    text = studio("ls", shop.parent).out
    assert f"twin.sqlite, {alone[0]['where']}"[:60] in text


def test_a_folder_with_too_many_entries_says_so(shop: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    assert studio("ls", shop.parent, "--json").doc["problems"] == []
    monkeypatch.setattr(folders, "MAX_ENTRIES", 1)
    (shop.parent / "copy.sqlite").write_bytes(shop.read_bytes())
    (problem,) = studio("ls", shop.parent, "--json").doc["problems"]
    assert problem["kind"] == "folder-too-large"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become someone else")
def test_a_database_that_may_not_be_read_is_named(shop: Path) -> None:
    for parent in shop.resolve().parents:
        if any(part.startswith("pytest-of-") for part in parent.parts):
            parent.chmod(0o755)
    closed = shop.with_name("closed.sqlite")
    shutil.copy(shop, closed)
    closed.chmod(0)
    program = (
        "import os, sys, studio.locations as l, studio.stores.sqlite, studio.stores.transcripts.store, studio.stores.lone;"
        "os.setgid(65534); os.setuid(65534); print(l.files_of(sys.argv[1]))"
    )
    call = [sys.executable, "-c", program, str(shop.parent)]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert str(shop) in done.stdout and f"where='{closed}'" in done.stdout, done.stderr
    assert "closed.sqlite cannot be read: permission denied" in done.stdout
    shop.unlink()
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert "closed.sqlite cannot be read: permission denied" in done.stderr.splitlines()[-1]


async def test_the_terminal_lists_what_is_lost_beside_the_file(shop: Path, tmp_path: Path) -> None:
    (shop.parent / "lost.sqlite").write_bytes(bytes(9000))
    inside = one_file(str(shop.parent))
    with opened(Path(inside.files[0]), tmp_path / "s.sqlite") as session:
        session.lost_beside = inside.problems
        async with driven(session, session.resolve("head", "done"), size=(120, 70)) as drive:
            await drive.loaded()
            await drive.press("5")
            await drive.shows("lost.sqlite holds nothing but zero bytes")


def test_the_browser_lists_what_is_lost_beside_the_files(shop: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    (shop.parent / "lost.sqlite").write_bytes(bytes(9000))
    word = "lost.sqlite holds nothing but zero bytes"
    pages: list[str] = []

    def serve(sessions: Any, *rest: Any) -> None:
        with TestClient(create_app(sessions, token=""), base_url="http://127.0.0.1") as client:
            pages.append(BeautifulSoup(client.get("/").text, "html.parser").text)
            pages.append(BeautifulSoup(client.get("/f/shop.sqlite?thread=done").text, "html.parser").text)

    monkeypatch.setattr("studio.web.serve", serve)
    assert studio("web", shop.parent).code == 0
    assert word in pages[0] and word in pages[1]
    shutil.copy(shop, shop.with_name("twin.sqlite"))
    assert studio("web", shop.parent).code == 0
    assert pages[2].count(word) == 1


@pytest.mark.skipif(not Path("/proc/kmsg").exists(), reason="only Linux has it")
@pytest.mark.parametrize("location", ["/proc/kmsg", "/proc", "/proc/self/environ"])
def test_what_the_system_makes_up_is_not_read(location: str) -> None:
    call = [sys.executable, "-m", "studio", "ls", location]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode == 3
    assert done.stderr.startswith("studio: ")


def test_what_is_no_file_is_named(tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("ear")
        for name, word in ((tmp_path / "pipe", "a pipe"), ("ear", "a socket"), ("/dev/null", "a device")):
            answer = studio("ls", name)
            assert answer.code == 3 and f"is {word}" in answer.err
