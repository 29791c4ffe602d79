"""A long list of sessions is read by several processes: it is the same list, whatever becomes of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from studio.stores.transcripts.parts import divided
from tests.stores.transcripts.sessions import Book

ROOT = Path(__file__).parents[3]
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")

LIST = """
import json, os, sys
from studio.session import Session
from studio.stores.transcripts import parts
how, begin, forked = sys.argv[2], parts.begin, []
parts.number = lambda size: 1 if how == "alone" else 3

def watched(threads, work):
    part = begin(threads, (lambda wanted: os._exit(9)) if how == "killed" else work)
    forked.append(part.process)
    return part

parts.begin = watched
session = Session.open(sys.argv[1])
threads = session.threads()
found = [next(threads)] if how == "left" else list(threads)
session.close()
waiting = [one for one in forked if os.path.exists(f"/proc/{one}")]
rows = [(one.thread_id, one.checkpoints, one.first_text, one.facts["tokens"]) for one in found]
print(json.dumps([len(forked), waiting, rows]))
"""


@pytest.fixture
def many(tmp_path: Path) -> Path:
    for number in range(40):
        book = Book(f"{number:08x}-0000-4000-8000-000000000001", prefix=f"{number:02}")
        for turn in range(1 + number % 5):
            book.prompt(f"Question {number}.{turn}")
            book.answer(f"Answer {number}.{turn}", output=number)
        path = book.write(tmp_path / "home" / "projects" / "-home-mara-bakery")
        os.utime(path, (1_700_000_000 - number, 1_700_000_000 - number))
    return tmp_path / "home"


def listed(many: Path, tmp_path: Path, how: str) -> tuple[int, list[int], list[object]]:
    env = os.environ | {"STUDIO_DATA_DIR": str(tmp_path / f"data-{how}")}
    done = subprocess.run(
        [sys.executable, "-c", LIST, str(many), how], cwd=ROOT, env=env, capture_output=True, text=True, check=True, timeout=120
    )
    forked, waiting, found = json.loads(done.stdout)
    return forked, waiting, found


@pytest.mark.parametrize("how", ["shared", "killed"])
def test_the_list_is_the_same_by_several_processes_and_where_they_are_killed(many: Path, tmp_path: Path, how: str) -> None:
    forked, waiting, found = listed(many, tmp_path, how)
    assert (forked, waiting) == (2, [])
    assert found == listed(many, tmp_path, "alone")[2] and len(found) == 40


def test_a_list_that_nobody_reads_to_its_end_leaves_no_process(many: Path, tmp_path: Path) -> None:
    forked, waiting, found = listed(many, tmp_path, "left")
    assert (forked, waiting, len(found)) == (2, [], 1)


def test_what_was_read_once_is_not_shared_out_again(many: Path, tmp_path: Path) -> None:
    whole = listed(many, tmp_path, "shared")
    again = listed(many, tmp_path, "shared")
    assert (whole[0], again[0], again[2]) == (2, 0, whole[2])


def test_neighbours_are_divided_by_their_sizes() -> None:
    assert divided([10, 10, 10, 10], 2) == [range(2), range(2, 4)]
    assert divided([100, 1, 1, 1], 2) == [range(1), range(1, 4)]
    for sizes in ([], [5], [1] * 7, [0, 0], [9, 1, 1, 1, 1, 9]):
        for parts in (1, 2, 3, 8):
            found = divided(sizes, parts)
            assert len(found) == parts and [at for part in found for at in part] == list(range(len(sizes)))
