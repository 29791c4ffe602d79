"""What the two READMEs tell people to type works as written."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_threads"


def blocks(path: Path) -> list[list[str]]:
    """The command lines of each fenced block that starts programs of ours."""
    found = re.findall(r"^```\n(.*?)^```", path.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [[line for line in block.splitlines() if line.startswith("studio ")] for block in found if "studio " in block]


def studio(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = shlex.split(line, comments=True)
    env = {**os.environ, "STUDIO_SAMPLE_PACE": "0", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "studio", *words[1:]]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=env, timeout=120, stdin=subprocess.DEVNULL)


def check(line: str, folder: Path, code: int) -> str:
    done = studio(line, folder)
    assert done.returncode == code, f"{line}\nexit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SAMPLES, tmp_path / "sample_threads", ignore=shutil.ignore_patterns("__pycache__")))


def test_the_refund_lesson_works_by_command_as_written(samples: Path) -> None:
    lesson, *_ = blocks(samples / "README.md")
    before = (samples / "support_agent.sqlite").read_bytes()
    said = [check(line, samples, 4 if "exit code 4" in line else 0) for line in lesson]
    assert len(said) == 7
    assert "499.0" in said[1]
    assert "49,9" in said[2]
    assert "49.90 EUR" in said[4], "the question asks for the corrected amount"
    assert "PAY-4711" not in said[4], "nothing is paid before the answer"
    ends = check("studio diff support_agent.sqlite 9 s6 --thread refund-4711 --json", samples, 0)
    authors = {change["path"]: [author["node"] for author in change["authors"]] for change in json.loads(ends)["changes"]}
    assert authors["/messages/3/content"] == ["plan_refund"] and authors["/messages/5/content"] == ["reply"]
    assert (samples / "support_agent.sqlite").read_bytes() == before


def test_the_wish_that_got_lost_is_found_again_as_written(samples: Path) -> None:
    _, lesson, *_ = blocks(samples / "README.md")
    said = [check(line, samples, 0) for line in lesson]
    assert len(said) == 3
    assert "yes" in said[2]


def test_the_edit_inside_the_subgraph_survives_the_run_as_written(samples: Path) -> None:
    _, _, lesson, _ = blocks(samples / "README.md")
    before = (samples / "support_agent.sqlite").read_bytes()
    said = [check(line, samples, 4 if "exit code 4" in line else 0) for line in lesson]
    assert len(said) == 6
    assert "may happen again  issue_refund" in said[1], "the outer graph goes on, too"
    assert "draft" not in said[2], "what stands before the edited checkpoint does not run again"
    assert said[3].strip().endswith("cracked tank, within the 30 days of rule R-2.")
    assert "draft says which product came back" in said[4]
    assert "/case_note" in said[5]
    assert (samples / "support_agent.sqlite").read_bytes() == before


def test_the_wrong_turn_of_the_coding_agent_is_found_and_left_behind_as_written(samples: Path) -> None:
    *_, lesson = blocks(samples / "README.md")
    before = (samples / "coding_session.jsonl").read_bytes()
    said = [check(line, samples, 0) for line in lesson]
    assert len(said) == 7
    assert "tests/test_receipt.py" in said[1]
    assert "1.4" in said[2]
    assert "git -C /home/mara/till worktree add" in said[3]
    assert "claude --resume" in said[4]
    assert "test_receipt.py" in said[5] and "they part after #8" in said[6]
    assert (samples / "coding_session.jsonl").read_bytes() == before


def test_a_failed_and_a_paused_thread_go_on(samples: Path) -> None:
    check("""studio fork support_agent.sqlite 3 --thread refund-5150 --set '/order/category="voucher"'""", samples, 0)
    check("studio run support_agent.sqlite s1 --thread refund-5150 --graph support_agent", samples, 4)
    answer = """--graph research_team --resume '"city-audit.example"'"""
    check(f"studio run research_team.sqlite head --thread street-trees {answer}", samples, 0)
    shown = check("studio show research_team.sqlite s5 --thread street-trees --path /recommendation --json", samples, 0)
    assert '"undecided"' in shown


def test_the_commands_of_the_readme_exist_and_its_fork_example_works(samples: Path) -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    for command in sorted(set(re.findall(r"`studio ([a-z]+)[ `]", text))):
        assert "usage" in check(f"studio {command} --help", samples, 0), command
    shutil.copy(samples / "support_agent.sqlite", samples / "checkpoints.sqlite")
    [example] = [block for block in blocks(ROOT / "README.md") if any("fork" in line for line in block)]
    codes = [0, 4, 0]
    for line, code in zip(example, codes, strict=True):
        check(line, samples, code)


def test_the_readmes_link_only_to_files_that_exist() -> None:
    for readme in (ROOT / "README.md", SAMPLES / "README.md"):
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", readme.read_text("utf-8")):
            assert (readme.parent / target).exists(), f"{readme.name} links to {target}"
