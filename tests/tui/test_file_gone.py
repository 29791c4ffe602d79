"""A file that goes away under the terminal UI is not called live; when it is back, it is followed again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from tests.factories import make_states
from tests.tui.driving import driven, opened


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_header_tells_that_the_file_is_gone_and_that_it_is_back(tmp_path: Path, size: tuple[int, int]) -> None:
    path = make_states(tmp_path / "app.sqlite", {"topic": "tea"}, {"topic": "milk"}, thread_id="t")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("1", "t"), size) as drive:
            await drive.until(lambda: "● live" in drive.text("#header"), "live")
            away = path.rename(tmp_path / "away.sqlite")
            await drive.until(lambda: "not live: no file" in drive.text("#header"), "that it is gone")
            assert "●" not in drive.text("#header") and "app.sqlite" in drive.text("#header")
            assert drive.main.here is not None, "what was read is still there"
            with closing(sqlite3.connect(away)) as connection, connection:
                connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)")
            away.rename(path)
            await drive.until(lambda: "● live" in drive.text("#header"), "that it is back")
            await drive.until(
                lambda: drive.main.checkpoints is not None and len(drive.main.checkpoints) == 1, "what it holds now"
            )
