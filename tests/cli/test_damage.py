"""What the commands say of a file that is cut off: the same status everywhere, and what is lost."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from studio.render.labels import status_word
from tests.cli.conftest import Studio
from tests.factories import config, saver_at, shop_builder

THREADS = 12


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Threads that wait for an answer, in a file whose last part is missing."""
    path = tmp_path / "cut.sqlite"
    with saver_at(path) as saver:
        graph = shop_builder().compile(saver)
        for number in range(THREADS):
            graph.invoke({"item": "kettle", "notes": ["x" * 4_000]}, config(f"t{number:02}"))
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    content = path.read_bytes()
    path.write_bytes(content[: len(content) * 5 // 8])
    return path


def threads_of(studio: Studio, path: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = studio("ls", path, "--json").doc["threads"]
    return found


def test_the_list_the_tree_and_one_checkpoint_say_the_same_status_of_a_damaged_thread(studio: Studio, cut: Path) -> None:
    told = set()
    for thread in threads_of(studio, cut):
        place = (cut, "--thread", thread["thread_id"])
        tree = studio("tree", *place, "--json")
        if tree.code:
            assert "none of the rows of thread" in tree.err
            assert thread["status"] == "unknown"
            continue
        head = next(row for row in tree.doc["rows"] if row["is_head"])
        assert (head["checkpoint_id"], head["status"]) == (thread["head"], thread["status"])
        shown = studio("show", cut, "head", *place[1:]).out
        assert re.search(r"^status +(.*)$", shown, re.MULTILINE)[1] == status_word(thread["status"])  # type: ignore[index]
        told.add(thread["status"])
    assert told == {"paused", "unknown"}


@pytest.mark.parametrize("command", ["show", "diff"])
def test_what_is_lost_in_the_file_is_told_with_one_checkpoint(studio: Studio, cut: Path, command: str) -> None:
    place = (command, cut, "head", "--thread", "t00")
    assert "truncated" in {problem["kind"] for problem in studio(*place, "--json").doc["problems"]}
    text = studio(*place)
    assert text.code == 0 and text.err.startswith("! truncated ") and "The file has " in text.err


def test_one_value_stands_alone_on_stdout_and_what_is_lost_on_stderr(studio: Studio, cut: Path) -> None:
    found = studio("show", cut, "head", "--thread", "t00", "--path", "/item")
    assert found.out == "kettle\n"
    assert "! truncated" in found.err
