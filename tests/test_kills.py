"""The studio, the user's graph, or both are killed while they work; two studios work on one file. Nothing is lost or half."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from studio.model import Address
from studio.requests import ForkRequest, GraphSpec, Patch, RunRequest
from studio.session import Session
from tests.factories import folder_snapshot
from tests.run_project import make_project, record

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = make_project(tmp_path / "project")
    (folder / "slow.py").write_text(
        "import time\nfrom graphs import *\n\n"
        "def tick(state):\n    time.sleep(0.02)\n    return {'log': ['tick'], 'n': state.get('n', 0) + 1}\n\n"
        "builder = StateGraph(State)\nbuilder.add_node('tick', tick)\nbuilder.add_edge(START, 'tick')\n"
        "builder.add_conditional_edges('tick', lambda state: 'tick' if state['n'] < 400 else END)\nticking = builder.compile()\n"
    )
    return folder


@pytest.fixture
def database(project: Path, tmp_path: Path) -> Path:
    path = tmp_path / "own" / "state.sqlite"
    path.parent.mkdir()
    record(project, path, "graph", "t", {"n": 1})
    return path


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def ticking(project: Path, database: Path, **more: Any) -> subprocess.Popen[str]:
    """`studio run` of 400 supersteps, a process of its own."""
    call = [sys.executable, "-m", "studio", "run", str(database), "head", "--graph", f"{project}/slow.py:ticking", "--json"]
    call += ["--input", '{"log": ["begun"], "n": 0}', "--recursion-limit", "1000"]
    return subprocess.Popen(
        call, cwd=project, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{project}"}, **more,
    )  # fmt: skip


def until(studio: subprocess.Popen[str], saved: int) -> None:
    """Read events until so many checkpoints were saved."""
    assert studio.stdout is not None
    for line in studio.stdout:
        saved -= json.loads(line)["event"] == "checkpoint"
        if not saved:
            return
    raise AssertionError(studio.stderr.read() if studio.stderr else "")


def children(pid: int) -> list[int]:
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def whole(session: Session) -> list[dict[str, Any]]:
    """The values of each row of the thread; every one can be read, and each state has what its step must have."""
    tree = session.tree("t")
    states = [session.state(tree.address_at(index)) for index in range(len(tree))]
    assert not [problem for state in states for problem in state.problems]
    assert not tree.problems
    for state in states:
        if state.checkpoint.origin == "scratch" and state.values.get("log", [])[-1:] == ["tick"]:
            begun = len(state.values["log"]) - 1 - state.values["log"][::-1].index("begun")
            assert state.values["n"] == len(state.values["log"]) - 1 - begun
    return [dict(state.values) for state in states]


def newest(session: Session) -> Address:
    return max(session.tree("t").leaves(""), key=lambda at: at.checkpoint_id)


@pytest.mark.parametrize(
    ("victim", "moment"), [("studio", 0.0), ("studio", 0.037), ("child", 0.0), ("child", 0.05), ("both", 0.013)]
)
def test_whoever_is_killed_the_file_stays_and_what_was_done_is_whole(
    project: Path, database: Path, victim: str, moment: float
) -> None:
    before = sha(database)
    folder = folder_snapshot(database.parent)
    studio = ticking(project, database)
    until(studio, 5)
    child = children(studio.pid)[0]
    time.sleep(moment)
    if victim in ("studio", "both"):
        studio.kill()
    if victim in ("child", "both"):
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
    out, _ = studio.communicate(timeout=30)
    for _ in range(200):
        if not Path(f"/proc/{child}").exists():
            break
        time.sleep(0.05)
    assert (sha(database), folder_snapshot(database.parent)) == (before, folder)
    if victim == "child":
        end = json.loads(out.splitlines()[-1])
        assert (studio.returncode, end["event"], end["status"], end["error"]["kind"]) == (1, "end", "failed", "died")
    session = Session.open(str(database))
    try:
        with contextlib.closing(sqlite3.connect(session.scratch_path)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        reached = max(values.get("n", 0) for values in whole(session))
        assert reached >= 2
        told = [problem for problem in session.problems() if problem.kind == "interrupted-run"]
        assert len(told) == (victim != "child")
        spec = GraphSpec(f"{project}/slow.py:ticking", cwd=str(project))
        run = session.run(RunRequest(newest(session), graph=spec, steps=1))
        end_of = run.wait(60)
        assert end_of is not None and end_of["reason"] == "steps"
        session.refresh()
        assert max(values.get("n", 0) for values in whole(session)) == reached + 1
        assert [problem for problem in session.problems() if problem.kind == "interrupted-run"] == []
    finally:
        session.close()


def test_an_interrupted_run_is_named_by_every_look_and_a_going_one_is_not(project: Path, database: Path) -> None:
    studio = ticking(project, database)
    until(studio, 1)

    def looked_at() -> str:
        call = [sys.executable, "-m", "studio", "tree", str(database)]
        done = subprocess.run(call, cwd=ROOT, capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    assert "interrupted" not in looked_at()
    studio.kill()
    studio.communicate()
    assert "a run from here was interrupted" in looked_at()


def test_two_studios_run_one_file_side_by_side(project: Path, database: Path) -> None:
    before = sha(database)
    both = [ticking(project, database) for _ in range(2)]
    for studio in both:
        until(studio, 5)
    for studio in both:
        studio.send_signal(signal.SIGINT)
    ends = [json.loads(studio.communicate(timeout=60)[0].splitlines()[-1]) for studio in both]
    assert [end["status"] for end in ends] == ["cancelled", "cancelled"]
    assert sha(database) == before
    session = Session.open(str(database))
    try:
        assert max(values.get("n", 0) for values in whole(session)) >= 3
        tree = session.tree("t")
        assert len([leaf for leaf in tree.leaves("") if session.state(leaf).checkpoint.origin == "scratch"]) == 2
    finally:
        session.close()


def test_forks_are_made_while_another_studio_runs(project: Path, database: Path) -> None:
    before = sha(database)
    studio = ticking(project, database)
    until(studio, 2)
    session = Session.open(str(database))
    try:
        at = session.resolve("root", "t")
        made = [session.fork(ForkRequest(at, patch=Patch({"/n": number}))) for number in (70, 71, 72)]
        assert all(result.verified for result in made)
        until(studio, 3)
        studio.kill()
        studio.communicate()
        session.refresh()
        assert [session.state(result.address).values["n"] for result in made] == [70, 71, 72]
        whole(session)
    finally:
        session.close()
    assert sha(database) == before
