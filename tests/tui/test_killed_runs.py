"""Whatever ends a run from outside, the terminal says so and stays usable, and no process is left."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.tui.screens.run import RunScreen
from tests.factories import saver_at
from tests.tui.driving import Drive, driven, opened

ROOT = Path(__file__).parents[2]
GRAPH = """
import subprocess, sys, time
from typing import TypedDict
from langgraph.graph import END, START, StateGraph

class State(TypedDict, total=False):
    fast: bool
    log: list

def first(state):
    return {"log": ["first"]}

def work(state):
    if not state.get("fast"):
        subprocess.Popen(["sleep", "600"])
        print("working", flush=True)
        time.sleep(600)
    return {"fast": False}

builder = StateGraph(State)
builder.add_node("first", first)
builder.add_node("work", work)
builder.add_edge(START, "first")
builder.add_edge("first", "work")
builder.add_edge("work", END)
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(textwrap.dedent(GRAPH))
    namespace: dict[str, object] = {}
    exec(GRAPH, namespace)  # noqa: S102 - the test's own module
    with saver_at(tmp_path / "slow.sqlite") as saver:
        graph = namespace["builder"].compile(checkpointer=saver)  # type: ignore[attr-defined]
        graph.invoke({"fast": True}, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    return tmp_path / "slow.sqlite"


def family(pid: int) -> set[int]:
    """A process and all that it started, as far as they are there, dead ones that nobody reaped among them."""
    found, parents = {pid}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[1])
        except OSError:
            continue
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return {one for one in found if Path(f"/proc/{one}").exists()}


def wait_until(holds: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.05)


async def running(drive: Drive, session: Session) -> int:
    """Start a run that does not end by itself; returns the child's process id."""
    await drive.until(lambda: drive.main.point)
    await drive.press("r")
    await drive.until(lambda: isinstance(drive.app.screen, RunScreen) and drive.app.screen.status == "planned", "the plan")
    await drive.press("ctrl+r")
    await drive.until(lambda: any("working" in line for line in drive.lines("#log")), "its print")
    (run,) = session.runs()
    child = run._child
    assert child is not None
    return child.pid


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_child_that_is_killed_is_told_and_the_screen_goes_on(slow: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    with opened(slow, tmp_path / "s.sqlite", f"{tmp_path / 'slow.py'}:builder") as session:
        made = session.fork(ForkRequest(session.resolve("1", "t"), Patch({"/fast": False}))).address
        async with driven(session, made, size) as drive:
            pid = await running(drive, session)
            held = family(pid)
            assert len(held) >= 2
            os.kill(pid, signal.SIGKILL)
            await drive.until(lambda: isinstance(drive.app.screen, RunScreen) and drive.app.screen.status == "failed", "its end")
            assert any("SIGKILL" in line for line in (*drive.lines("#log"), *drive.lines("#plan"))), drive.text()
            await drive.until(lambda: not any(Path(f"/proc/{one}").exists() for one in held), "the processes")
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is drive.main, "the main screen")
            await drive.press("up")
            await drive.loaded()
            assert not drive.main.offers("cancel")


async def test_leaving_the_program_ends_its_run_and_all_its_processes(slow: Path, tmp_path: Path) -> None:
    with opened(slow, tmp_path / "s.sqlite", f"{tmp_path / 'slow.py'}:builder") as session:
        made = session.fork(ForkRequest(session.resolve("1", "t"), Patch({"/fast": False}))).address
        async with driven(session, made) as drive:
            held = family(await running(drive, session))
            await drive.press("ctrl+q")
        session.close()
        wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in held), "the processes")
        assert [run.status for run in session.runs()] == ["cancelled"]
    with closing(Session.open(str(slow), scratch=str(tmp_path / "s.sqlite"))) as again:
        assert not [problem for problem in again.problems() if problem.kind == "interrupted-run"], "it ended, and that was kept"


STUDIO = """
import os, sys, time
from studio.requests import ForkRequest, GraphSpec, Patch, RunRequest
from studio.session import Session
session = Session.open(sys.argv[1], scratch=sys.argv[2], graph=GraphSpec(sys.argv[3]))
made = session.fork(ForkRequest(session.resolve("1", "t"), Patch({"/fast": False}))).address

def say(*words):  # one write for each line: events come from another thread, and print() writes the end of a line by itself
    os.write(1, (" ".join(map(str, words)).rstrip() + "\\n").encode())

run = session.run(RunRequest(made), lambda event: say(event.event, event.data.get("text", "")))
say("child", run._child.pid)
time.sleep(600)
"""


def killed_while_it_runs(path: Path, scratch: Path, graph: str) -> None:
    """A studio starts a run and is killed in the middle of it; returns once nothing of the run is left."""
    command = [sys.executable, "-c", STUDIO, str(path), str(scratch), graph]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as first:
        try:
            assert first.stdout is not None
            pid, works = 0, False
            for line in first.stdout:
                pid = int(line.split()[1]) if line.startswith("child") else pid
                works = works or "working" in line
                if pid and works:
                    break
            held = family(pid)
            assert pid and len(held) >= 2
        finally:
            first.kill()
    wait_until(lambda: not any(Path(f"/proc/{one}").exists() for one in held), "the child ends with its studio, and all of it")


async def test_after_a_studio_was_killed_the_next_one_says_that_its_run_was_interrupted(slow: Path, tmp_path: Path) -> None:
    scratch, graph = tmp_path / "s.sqlite", f"{tmp_path / 'slow.py'}:builder"
    killed_while_it_runs(slow, scratch, graph)
    with closing(sqlite3.connect(scratch)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    with opened(slow, scratch, graph) as session:
        (told,) = [problem for problem in session.problems() if problem.kind == "interrupted-run"]
        async with driven(session, session.resolve("s1", "t"), (160, 45)) as drive:
            await drive.until(lambda: "problem" in str(drive.main.timeline.border_subtitle), "that there is a problem")
            await drive.press("5")
            await drive.until(lambda: "was interrupted" in drive.text("#raw"), "what it was")
            assert told.where in drive.text("#raw").replace("\n", "")
        last = max(header.checkpoint_id for header in session.tree("t").headers())
        at = next(header.address for header in session.tree("t").headers() if header.checkpoint_id == last)
        assert session.state(at).next == ("work",) and session.state(at).values["log"] == ["first"]
