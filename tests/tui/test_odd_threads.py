"""Threads as no graph names them: without a root, with ids that are bytes, with control characters in their names."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from studio.render import gate
from tests.factories import make_shop
from tests.tui.driving import driven, opened


def only_subgraph_rows(database: sqlite3.Connection) -> str:
    for table in ("checkpoints", "writes"):
        database.execute(f"DELETE FROM {table} WHERE thread_id != 'done'")
        database.execute(f"UPDATE {table} SET checkpoint_ns = 'inner:11111111-1111-1111-1111-111111111111'")
    return "done"


def ids_that_are_bytes(database: sqlite3.Connection) -> str:
    for table in ("checkpoints", "writes"):
        database.execute(f"DELETE FROM {table} WHERE thread_id != 'done'")
        database.execute(f"UPDATE {table} SET checkpoint_id = CAST(checkpoint_id AS BLOB)")
    database.execute("UPDATE checkpoints SET parent_checkpoint_id = CAST(parent_checkpoint_id AS BLOB)")
    return "done"


def a_name_of_control_characters(database: sqlite3.Connection) -> str:
    name = "a\x1b[31mred\nline\x00\u202eback\x9b"
    for table in ("checkpoints", "writes"):
        database.execute(f"DELETE FROM {table} WHERE thread_id != 'done'")
        database.execute(f"UPDATE {table} SET thread_id = ?", (name,))
    return name


@pytest.mark.parametrize("made", [only_subgraph_rows, ids_that_are_bytes, a_name_of_control_characters])
@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_an_odd_thread_is_opened_and_walked(
    tmp_path: Path, made: Callable[[sqlite3.Connection], str], size: tuple[int, int]
) -> None:
    path = make_shop(tmp_path / "odd.sqlite")
    with sqlite3.connect(path) as database:
        name = made(database)
    database.close()
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, None, size) as drive:
            await drive.until(lambda: "Opening" not in drive.text("#changes") and drive.main.here, "the only thread")
            assert drive.main.thread_id == name
            for key in ("g", "j", "j", "2", "3", "4", "5", "1", "u", "G", "k", "t"):
                await drive.press(key)
                await drive.pilot.pause(0.05)
            await drive.until(lambda: drive.app.screen.query("#threads") and drive.rows("#threads").row_count == 1, "the list")
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is drive.main)
            assert gate.line(name)[:8] in drive.text("#header")
            assert "\x1b" not in drive.text() and "\u202e" not in drive.text()
            assert drive.app.fault is None
            assert all(said.message.startswith("No task called this") for said in drive.app._notifications)
            assert drive.rows("#timeline").row_count == 8
            if drive.main.point is None:
                assert "This checkpoint cannot be read" in drive.text("#centre")
