"""The sample session of a coding agent: made again byte for byte, and what its README promises can be found in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from studio.cli import main

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_threads"
SESSION = SAMPLES / "coding_session.jsonl"


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def files_below(folder: Path) -> dict[str, bytes]:
    found = [*folder.glob("coding_session.jsonl"), *(folder / "coding_session").rglob("*.js*")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


def test_building_it_again_gives_the_committed_bytes(tmp_path: Path) -> None:
    subprocess.run([sys.executable, str(SAMPLES / "build_session.py"), str(tmp_path)], check=True)
    made = files_below(tmp_path)
    assert len(made) == 3
    assert made == files_below(SAMPLES)


def test_it_is_one_tree_with_a_rewind_and_a_subagent(capsys: pytest.CaptureFixture[str]) -> None:
    document = told(capsys, "tree", str(SESSION), "--all-ns")
    rows = {row["number"]: row for row in document["rows"]}
    assert document["problems"] == []
    assert [rows[number]["label"] for number in ("5", "9", "12")] == ["Edit", "prompt", "prompt"]
    assert rows["9"]["parent_checkpoint_id"] == rows["12"]["parent_checkpoint_id"] == rows["8"]["checkpoint_id"]
    assert rows["14"]["is_head"]
    assert rows["1.4"]["checkpoint_ns"].startswith("Task:")


def test_the_wrong_turn_is_found_by_what_it_changed(capsys: pytest.CaptureFixture[str]) -> None:
    changes = told(capsys, "diff", str(SESSION), "5")["changes"]
    assert "tests/test_receipt.py" in json.dumps(changes)
    touched = told(capsys, "show", str(SESSION), "head", "--path", "/files")["value"]
    edited = [path for path, held in touched.items() if held["state"] == "edited"]
    assert [Path(path).name for path in edited] == ["test_receipt.py"]
    hits = told(capsys, "search", str(SESSION), "ROUND_HALF_UP")["hits"]
    assert [hit["number"] for hit in hits] == ["2", "1.4"]
