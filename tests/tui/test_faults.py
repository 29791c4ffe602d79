"""Faults of ours: one line and a hint, a restored terminal, and nothing of what is stored in any traceback."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from studio.tui.panes import changes
from tests.tui.driving import SAMPLES, driven, opened

FILE = SAMPLES / "support_agent.sqlite"
CRASHES = """
    import sys
    from studio.tui.main import MainScreen

    def crash(self, event):
        password = "hunter2-in-a-local"
        raise RuntimeError("a fault of ours")

    MainScreen.on_point_loaded = crash
    from studio.cli import main
    sys.exit(main())
"""


def in_a_terminal(script: str, *arguments: str) -> tuple[int, str, str]:
    """Exit code, what the terminal got, and stderr."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "24"}
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE, env=env)
    os.close(theirs)
    shown, end = b"", time.monotonic() + 60
    while process.poll() is None and time.monotonic() < end:
        if select.select([ours], [], [], 0.1)[0]:
            try:
                shown += os.read(ours, 65536)
            except OSError:
                break
    try:
        _, told = process.communicate(timeout=20)
    finally:
        process.kill()
    os.close(ours)
    return process.returncode, shown.decode(errors="replace"), told.decode(errors="replace")


@pytest.mark.parametrize("debug", [False, True])
def test_a_crash_is_one_line_and_a_hint_with_no_local_variable(debug: bool, tmp_path: Path) -> None:
    asked = [str(FILE), "--thread", "refund-4711", "--scratch", str(tmp_path / "s.sqlite"), *(["--debug"] if debug else [])]
    code, shown, told = in_a_terminal(CRASHES, *asked)
    assert code == 1
    assert "studio: internal error: RuntimeError: a fault of ours\n" in told and "--debug" in told
    assert ("Traceback" in told) is debug
    everything = shown + told
    assert "hunter2-in-a-local" not in everything.replace('password = "hunter2-in-a-local"', "") and "locals" not in everything
    assert "\x1b[?1049l" in everything, "the terminal is itself again"


async def test_a_fault_in_one_pane_is_told_and_the_rest_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(changes, "build", broken)
    with opened(FILE, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#2", "refund-4711")) as drive:
            await drive.until(lambda: any("a fault of ours" in told.message for told in drive.app._notifications), "a notice")
            await drive.press("3")
            await drive.loaded()
            assert isinstance(drive.app.fault, RuntimeError)
