"""A list of a folder from what was kept of it: the same as a fresh one, and true of the files as they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from studio.cli.documents import Documents
from studio.session import Session
from studio.stores.transcripts import cards, finding
from studio.stores.transcripts.source import Source
from tests.stores.transcripts.sessions import Book, bakery, call


@pytest.fixture(autouse=True)
def two_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "MANY", 2)
    monkeypatch.setattr(finding, "_heads", {})


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that were read whole."""
    found: list[str] = []
    before = Source.read

    def noted(self: Source, take: Any, *, go_on: bool = False) -> None:
        found.append(self.name)
        before(self, take, go_on=go_on)

    monkeypatch.setattr(Source, "read", noted)
    return found


def project(tmp_path: Path) -> Path:
    """Three sessions, one of them with a subagent, one with a bad line, and a file of no bytes."""
    folder = tmp_path / "project"
    bakery().write(folder)
    book = Book("5e55101d-0000-4000-8000-000000000002", "b")
    book.prompt("Use a helper. " + "Please. " * 100)
    book.answer(call("call_task", "Task", prompt="Count.", description="count"))
    book.note(type="custom-title", customTitle="Helpers")
    book.write(folder)
    helper = Book(book.session, "c")
    helper.prompt("Count.", isSidechain=True)
    helper.write(folder / book.session / "subagents", "agent-h1")
    other = Book("5e55101d-0000-4000-8000-000000000003", "d")
    other.prompt("Anything left?")
    with other.write(folder).open("a") as file:
        file.write("{no json}\n")
    (folder / "5e55101d-0000-4000-8000-000000000004.jsonl").write_bytes(b"")
    return folder


def listed(folder: Path) -> list[Any]:
    session = Session.open(str(folder))
    documents = Documents(False)
    found: list[Any] = [documents.thread(thread) for thread in session.threads()]
    found.append(sorted(map(str, documents.problems(session.problems()))))
    session.close()
    return found


def kept(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "data").rglob("*.list"))


def test_an_unchanged_folder_is_listed_without_reading_a_session(tmp_path: Path, read: list[str]) -> None:
    folder = project(tmp_path)
    first = listed(folder)
    assert len(first) == 4
    read.clear()
    assert listed(folder) == first
    assert [name for name in read if not name.endswith("4.jsonl")] == []
    assert kept(tmp_path)[0].stat().st_mode & 0o777 == 0o600


def test_only_what_changed_is_read_again(tmp_path: Path, read: list[str]) -> None:
    folder = project(tmp_path)
    listed(folder)
    book = bakery()
    book.prompt("One more thing.")
    path = book.write(folder)
    read.clear()
    found = listed(folder)
    assert [name for name in read if not name.endswith("4.jsonl")] == [path.name]
    assert any(thread["last_text"] == "One more thing." for thread in found[:-1])
    kept(tmp_path)[0].unlink()
    assert listed(folder) == found


def test_a_rewritten_file_of_the_same_size_and_time_is_read_again(tmp_path: Path) -> None:
    folder = project(tmp_path)
    listed(folder)
    path = folder / "5e55101d-0000-4000-8000-000000000003.jsonl"
    times = path.stat()
    path.write_text(path.read_text().replace("Anything", "Everyhing"))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert any(thread["first_text"] == "Everyhing left?" for thread in listed(folder)[:-1])


def test_sessions_and_subagents_that_come_and_go_are_seen(tmp_path: Path) -> None:
    folder = project(tmp_path)
    listed(folder)
    (folder / "5e55101d-0000-4000-8000-000000000003.jsonl").unlink()
    helper = Book("5e55101d-0000-4000-8000-000000000002", "e")
    helper.prompt("Weigh.", isSidechain=True)
    helper.write(folder / helper.session / "subagents", "agent-h2")
    book = Book("5e55101d-0000-4000-8000-000000000005", "f")
    book.prompt("A new one.")
    book.write(folder)
    found = listed(folder)
    kept(tmp_path)[0].unlink()
    assert found == listed(folder)
    assert {len(thread["namespaces"]) for thread in found[:-1]} == {1, 3}


def test_a_session_opens_whole_after_a_list_from_what_was_kept(tmp_path: Path) -> None:
    folder = project(tmp_path)
    listed(folder)
    session = Session.open(str(folder))
    threads = list(session.threads())
    for thread in threads:
        tree = session.tree(thread.thread_id)
        assert len(tree) == thread.checkpoints
        assert session.resolve("head", thread.thread_id).checkpoint_id == thread.head
    assert [thread.thread_id for thread in session.threads()] == [thread.thread_id for thread in threads]
    session.close()


@pytest.mark.parametrize("damage", ["cut", "flip", "other"])
def test_a_damaged_list_is_as_if_it_were_not_there(tmp_path: Path, damage: str) -> None:
    folder = project(tmp_path)
    first = listed(folder)
    (path,) = kept(tmp_path)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[len(data) // 2 :]
    elif damage == "flip":
        data[len(data) // 2] ^= 1
    else:
        data = bytearray(b"something else")
    path.write_bytes(data)
    assert listed(folder) == first


def test_of_a_few_small_sessions_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards, "MANY", 20)
    listed(project(tmp_path))
    assert kept(tmp_path) == []


def test_a_named_subagents_file_stays_alone_after_it_grew(tmp_path: Path) -> None:
    folder = project(tmp_path)
    home = folder / "5e55101d-0000-4000-8000-000000000002" / "subagents"
    helper = Book("5e55101d-0000-4000-8000-000000000002", "e")
    helper.prompt("Weigh.", isSidechain=True)
    path = helper.write(home, "agent-h2")
    session = Session.open(str(path))
    (thread,) = session.threads()
    assert thread.checkpoints == 1
    other = Book("5e55101d-0000-4000-8000-000000000002", "f")
    other.prompt("Count again.", isSidechain=True)
    other.write(home, "agent-h3")
    session.refresh()
    (thread,) = session.threads()
    assert thread.checkpoints == 1
    session.close()
