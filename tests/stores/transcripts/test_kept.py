"""What is kept of a large file in the data folder changes nothing but the time, and holds only for the bytes it was made of."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studio.cli.documents import Documents
from studio.session import Session
from studio.stores.transcripts import keeping, kept
from studio.stores.transcripts.source import Source
from tests.stores.transcripts.sessions import SESSION, Book, bakery, call
from tests.stores.transcripts.test_formats import Rollout, baker, write


@pytest.fixture(autouse=True)
def every_file_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "LARGE", 1)


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Where each pass over a file began."""
    found: list[int] = []
    read: Callable[..., None] = Source.read

    def noted(self: Source, take: Any, *, go_on: bool = False) -> None:
        found.append(self.complete if go_on else 0)
        read(self, take, go_on=go_on)

    monkeypatch.setattr(Source, "read", noted)
    return found


def shown(path: Path) -> list[Any]:
    """All documents of a session."""
    session = Session.open(str(path))
    documents = Documents(False)
    found: list[Any] = []
    for thread in list(session.threads()):
        found.append(documents.thread(thread))
        for row in session.tree(thread.thread_id).rows():
            found += [documents.row(row), documents.state(session.state(row.checkpoint.address))]
    found.append(documents.problems(session.problems()))
    session.close()
    return found


def indexes(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "data").rglob("*.index"))


def busy() -> Book:
    """A session with a rewind, a sidechain, a title, a queue and an odd time."""
    book = bakery()
    book.prompt("And the yeast?", parent=book.records[-2]["parentUuid"])
    book.answer("Eighty grams.", call("call_odd", "Read", file_path="/tmp/a"))
    book.result("call_odd", "…", timestamp="2026-03-14 10:00")
    book.prompt("Warm up", parent=None, isSidechain=True)
    book.note(type="custom-title", customTitle="Bread")
    book.note(type="queue-operation", operation="enqueue", content="And salt?")
    book.note(type="brand-new-type")
    return book


def test_an_unchanged_file_is_not_read_again_and_shows_the_same(tmp_path: Path, passes: list[int]) -> None:
    path = busy().write(tmp_path)
    first = shown(path)
    assert passes == [0]
    assert shown(path) == first
    assert passes == [0]


def test_an_unchanged_rollout_is_not_read_again_nor_are_its_forks_and_all_show_the_same(
    tmp_path: Path, passes: list[int]
) -> None:
    folder = tmp_path / "sessions"
    base = baker()
    base.ordinal = 0
    for at, line in enumerate(base.lines):
        line["ordinal"] = at
    base.line("event_msg", type="turn_aborted", reason="interrupted")
    ident = base.lines[0]["payload"]["id"]
    write(folder / "rollout-a.jsonl", *base.lines)
    end = len(base.lines)
    going = Rollout("01a00000-0000-7000-8000-000000000002", end, history_base={"thread_id": ident, "end_ordinal_exclusive": end})
    going.say("user", "And the salt?")
    going.say("assistant", "Two percent.")
    going.total(300, 60, 40)
    write(folder / "rollout-b.jsonl", *going.lines)
    fork = Rollout("01a00000-0000-7000-8000-000000000003", None, forked_from_id=ident)
    fork.lines += base.lines[1:]
    fork.say("user", "And the oven?")
    write(folder / "rollout-c.jsonl", *fork.lines)
    first = shown(folder)
    assert len(passes) == 3 and len(indexes(tmp_path)) == 3
    for cards in (tmp_path / "data").rglob("*.list"):
        cards.unlink()
    assert shown(folder) == first
    assert len(passes) == 3


def test_a_rollout_that_grew_is_read_anew(tmp_path: Path, passes: list[int]) -> None:
    roll = baker()
    path = write(tmp_path / "rollout.jsonl", *roll.lines)
    shown(path)
    roll.say("user", "And then?")
    roll.line("event_msg", type="thread_rolled_back", num_turns=2)
    roll.say("user", "Bake.")
    write(path, *roll.lines)
    grown = shown(path)
    assert passes == [0, 0]
    for index in indexes(tmp_path):
        index.unlink()
    assert shown(path) == grown


def test_what_is_kept_is_readable_by_this_user_alone(tmp_path: Path) -> None:
    shown(busy().write(tmp_path))
    (index,) = indexes(tmp_path)
    assert index.stat().st_mode & 0o777 == 0o600
    assert index.parent.stat().st_mode & 0o777 == 0o700


def test_a_grown_file_is_read_from_its_old_end_on(tmp_path: Path, passes: list[int]) -> None:
    book = busy()
    path = book.write(tmp_path)
    shown(path)
    end = path.stat().st_size
    book.prompt("And then?")
    book.answer("Bake.")
    with path.open("a") as file:
        file.write("".join(line + "\n" for line in book.lines()[-2:]))
    grown = shown(path)
    assert passes == [0, end]
    for index in indexes(tmp_path):
        index.unlink()
    assert shown(path) == grown
    assert passes == [0, end, 0]


def test_a_file_that_was_written_anew_is_read_anew(tmp_path: Path, passes: list[int]) -> None:
    path = busy().write(tmp_path)
    shown(path)
    times = path.stat()
    text = path.read_text()
    path.write_text(text.replace("Eighty grams.", "Ninety grams."))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert "Ninety grams." in json.dumps(shown(path))
    assert passes == [0, 0]


def test_a_longer_file_with_another_beginning_is_read_anew(tmp_path: Path, passes: list[int]) -> None:
    book = busy()
    path = book.write(tmp_path)
    shown(path)
    with path.open("r+") as file:
        text = file.read().replace("Eighty grams.", "Ninety grams.")
        file.seek(0)
        file.write(text + "\n")
    assert "Ninety grams." in json.dumps(shown(path))
    assert passes == [0, 0]


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(at=st.integers(0, 100_000), byte=st.integers(1, 255), cut=st.booleans())
def test_a_damaged_index_is_as_if_it_were_not_there(tmp_path: Path, at: int, byte: int, cut: bool) -> None:
    path = tmp_path / f"{SESSION}.jsonl"
    if not path.exists():
        busy().write(tmp_path)
    expected = shown(path)
    (index,) = indexes(tmp_path)
    data = bytearray(index.read_bytes())
    at %= len(data)
    if cut:
        del data[at:]
    else:
        data[at] ^= byte
    index.write_bytes(data)
    assert shown(path) == expected
    assert keeping.read(index) is not None  # written anew


def test_an_index_that_others_could_write_is_not_taken(tmp_path: Path, passes: list[int]) -> None:
    path = busy().write(tmp_path)
    shown(path)
    (index,) = indexes(tmp_path)
    index.chmod(0o666)
    shown(path)
    assert passes == [0, 0]


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "file"))
    path = busy().write(tmp_path)
    assert shown(path) == shown(path)


def test_those_that_were_used_last_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "MOST_FILES", 2)
    for number in range(4):
        (tmp_path / str(number)).mkdir()
        shown(busy().write(tmp_path / str(number)))
        for at, index in enumerate(sorted(indexes(tmp_path), key=lambda one: one.stat().st_mtime_ns)):
            os.utime(index, (1_000_000 + number + at, 1_000_000 + number + at))
    assert len(indexes(tmp_path)) == 2
