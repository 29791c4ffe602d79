"""Mutated databases and mutated values: no crash, no import, no file changed, nothing printed raw.

`benchmarks/fuzz.py` does the same for as long as one likes.
"""

from __future__ import annotations

import json
import os
import random
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from benchmarks import mutations, shapes
from benchmarks.forking import forks
from benchmarks.looking import RAW
from studio.assets import sample_folder
from studio.diff import apply, diff
from studio.model import Address
from studio.render.preview import message, summary
from studio.tagged import dumps, loads, to_tagged
from studio.value import decode, encode, equal
from tests.stores import layouts

ROOT = Path(__file__).resolve().parent.parent
NUMBERS = 120

MESSAGE = [
    "langchain_core.messages.ai",
    "AIMessage",
    {"content": "hi", "id": "a", "tool_calls": [{"name": "n", "args": {}}]},
    "m",
]
STATE: dict[str, Any] = {
    "messages": [ormsgpack.Ext(5, ormsgpack.packb(MESSAGE)), {"id": "x", "content": ["a", {"type": "text", "text": "b"}]}],
    "numbers": [0.5, -0.0, 1, 2**63],
    "deep": {"a": {"b": [[{"c": None}]]}},
    "when": ormsgpack.Ext(0, ormsgpack.packb(["datetime", "date", [1, 2, 3]])),
    "set": ormsgpack.Ext(0, ormsgpack.packb(["builtins", "set", [["a", "b"]]])),
    "text": "x\u202e\x1b[2J",
    "raw": b"\xff",
}
HUMAN = {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hi", "id": "h"}}
FORMS = {
    "msgpack": ormsgpack.packb(STATE),
    "json": json.dumps(
        {
            "messages": [HUMAN],
            "set": {"lc": 2, "type": "constructor", "id": ["builtins", "set"], "args": [["a"]]},
            "send": {"__send__": True, "node": "n", "arg": {}},
            "numbers": [1.5, -0.0, 10**30],
            "text": "\ud800 \u202e",
            "deep": [[{"a": {}}]],
        }
    ).encode(),
}


@pytest.mark.parametrize("tag", FORMS)
def test_a_value_with_anything_anywhere_is_read_written_compared_and_shown(tag: str) -> None:
    before = decode(tag, FORMS[tag])
    for seed in range(600):
        rng = random.Random(seed)
        blob: bytes | None = mutations.changed_inside(FORMS[tag], rng)
        if rng.random() < 0.4 or blob is None:
            spoilt = bytearray(blob or FORMS[tag])
            for _ in range(rng.choice((1, 2, 8))):
                spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
            blob = bytes(spoilt)
        after = decode(tag, blob)
        if after is not None and not isinstance(after, bool):
            assert encode(tag, after) == blob, seed
        text = dumps(to_tagged(after))
        assert text.isascii()
        assert dumps(loads(text)) == text, seed
        for shown in (summary(after), summary(after, 400, show_secrets=True), str(message(after) and "")):
            assert not RAW.search(shown), seed
        if isinstance(after, dict):
            for one, other in ((before, after), (after, before)):
                assert equal(apply(one, diff(one, other)), other), seed


def test_mutated_databases_are_looked_at_without_a_fault(tmp_path: Path) -> None:
    for name, layout in layouts.LAYOUTS.items():
        layouts.lay_down(tmp_path / f"{name}.sqlite", layout, small_part(layouts.read(sample_folder() / "support_agent.sqlite")))
    call = [sys.executable, "-m", "benchmarks.fuzz", str(tmp_path), "--count", str(NUMBERS), "--seed", "5"]
    first_time = {"PYTHONPYCACHEPREFIX": str(tmp_path / "compiled")}  # the studio's own modules are imported for the first time
    done = subprocess.run(
        call, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(ROOT), **first_time}
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{NUMBERS} mutated databases of 6 files" in done.stdout


@pytest.mark.parametrize("shape", dict.fromkeys(shapes.SHAPES))
def test_an_odd_shape_is_another_file_that_sqlite_finds_sound(shape: mutations.Mutation, tmp_path: Path) -> None:
    path = tmp_path / "case.sqlite"
    changed = 0
    for seed in range(8):
        content = (sample_folder() / "support_agent.sqlite").read_bytes()
        path.write_bytes(content)
        shape(path, random.Random(seed))
        changed += path.read_bytes() != content
        with closing(sqlite3.connect(path)) as connection:
            found = {row[0] for row in connection.execute("PRAGMA integrity_check")}
        assert found == {"ok"} or all("NULL value in" in text or "TEXT value in" in text for text in found), seed
    assert changed >= 2
    assert [one.name for one in tmp_path.iterdir()] == ["case.sqlite"]


def small_part(rows: layouts.Rows) -> layouts.Rows:
    """The first checkpoints of two threads, with their writes."""
    threads = sorted({row.address.thread_id for row in rows.checkpoints})[:2]
    kept = [row for name in threads for row in [one for one in rows.checkpoints if one.address.thread_id == name][:6]]
    ids = {row.address.checkpoint_id for row in kept}
    return layouts.Rows(kept, [entry for entry in rows.writes if entry[0] in threads and entry[1].checkpoint_id in ids])


def test_the_attack_notices_what_it_looks_for(tmp_path: Path) -> None:
    probe = """
import random, sys, tempfile
from pathlib import Path
from benchmarks import looking
import studio.cli
folder, path = Path(sys.argv[1]), Path(sys.argv[2]); tempfile.tempdir = str(folder)
looking.prepare(Path(sys.argv[2]), folder / "data")
def bad(argv):
    print("\\u202e"); import antigravity_of_nobody
def worse(argv):
    import wave; print("\\x1b[2J"); Path(argv[1] + "-shm").touch(); sys.stderr.write("studio: internal error: x"); return 1
looking.main = worse
for fault in looking.faults(Path(sys.argv[2]), random.Random(1)): print(fault[:60].encode("ascii", "backslashreplace").decode())
from studio.web.desk import Desk
def boom(*_, **__): raise ValueError("boom")
looking.main, workspace, Desk.workspace = (lambda argv: 0), Desk.workspace, boom
for fault in looking.faults(path, random.Random(1), 1.0): print(fault[:300].encode("ascii", "backslashreplace").decode())
Desk.workspace, looking.fronts.tasks.build = workspace, boom
for fault in looking.faults(path, random.Random(1), 1.0): print(fault[:60].encode("ascii", "backslashreplace").decode())
looking.main = bad
for fault in looking.faults(Path(sys.argv[2]), random.Random(1)): print(fault[:60].encode("ascii", "backslashreplace").decode())
"""
    opened = tmp_path / "opened"
    opened.mkdir()
    path = opened / "case.sqlite"
    path.write_bytes((sample_folder() / "research_team.sqlite").read_bytes())
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [sys.executable, "-c", probe, str(tmp_path / "temporary"), str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    for words in (
        "exits 1", "raw", "the folder changed", "imported ['wave']", "open for writing", "answers 500",
        "ValueError escapes: boom", "ModuleNotFoundError escapes",
    ):  # fmt: skip
        assert words in done.stdout, (words, done.stdout, done.stderr)


def test_the_attack_notices_a_fork_that_is_lost() -> None:
    shown = iter((json.dumps({"values": {"a": 1}, "tasks": []}), ""))
    made = json.dumps({"verified": False, "surprises": [], "thread_id": "t", "checkpoint_ns": "", "checkpoint_id": "c"})

    def call(command: str, *arguments: str, codes: tuple[int, ...] = ()) -> str:
        return next(shown) if command == "show" else made

    found = " and ".join(forks(call, "FILE", [Address("t", "", "b")], random.Random(0)))
    assert "neither verified nor a surprise" in found
    assert "is not shown" in found
