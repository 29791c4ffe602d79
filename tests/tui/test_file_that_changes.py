"""The opened file is cut, goes away and comes back while the terminal shows it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from studio.requests import ForkRequest, Patch
from tests.factories import make_states
from tests.tui.driving import driven, opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "file").mkdir()
    return make_states(tmp_path / "file" / "state.sqlite", *({"n": number} for number in range(6)))


async def test_the_cursor_stands_on_a_row_that_is_there_and_forks_find_their_origin_again(file: Path, tmp_path: Path) -> None:
    whole = shutil.copy(file, tmp_path / "whole")
    with opened(file, tmp_path / "s.sqlite") as session:
        session.fork(ForkRequest(session.resolve("2"), Patch({"/n": 70})))
        session.fork(ForkRequest(session.resolve("3"), Patch({"/n": 80})))
        async with driven(session, session.resolve("4"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            assert drive.main.here is not None and drive.main.here.number == "4"
            os.truncate(file, 5000)
            await drive.until(lambda: drive.main.timeline.row_count < 8, "what is left")
            await drive.until(lambda: drive.main.here and drive.main.here.number.startswith("s"), "a row that is there")
            await drive.loaded()
            assert f"of {drive.main.timeline.row_count}" in drive.text("#keys")
            assert drive.main.timeline.cursor < drive.main.timeline.row_count
            assert session.tree("made").row(drive.main.here.checkpoint.address).label == "fork of another version"
            shutil.move(file, tmp_path / "away")
            await drive.pilot.pause(0.6)
            shutil.copy(whole, file)
            await drive.until(lambda: drive.main.timeline.row_count == 8, "all of it again")
            labels = [row.label for row in session.tree("made").rows(0, 9)]
            assert labels.count("set /n") == 2 and "fork of another version" not in labels
