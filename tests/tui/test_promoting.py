"""From the terminal: the rows that a branch adds to the file are shown, and added after a yes."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from textual.widgets import Button

from studio.requests import ForkRequest
from studio.tui.screens.promote import PromoteScreen
from tests.tui.driving import SAMPLES, Drive, driven, opened


@pytest.fixture
def support(tmp_path: Path) -> Path:
    folder = tmp_path / "support"
    folder.mkdir()
    return Path(shutil.copy(SAMPLES / "support_agent.sqlite", folder / "support_agent.sqlite"))


def ids(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT checkpoint_id FROM checkpoints")}


async def asked(drive: Drive, number: str) -> PromoteScreen:
    await drive.go(number)
    await drive.press("w")
    await drive.until(lambda: isinstance(drive.app.screen, PromoteScreen), "the screen")
    screen = drive.app.screen
    assert isinstance(screen, PromoteScreen)
    return screen


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_branch_is_shown_row_by_row_and_added_after_a_yes(support: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    before = ids(support)
    with opened(support, tmp_path / "s.sqlite") as session:
        made = session.fork(ForkRequest(session.resolve("4", "refund-4711"))).address
        async with driven(session, made, size) as drive:
            screen = await asked(drive, "s1")
            await drive.until(lambda: not screen.query_one("#promote-add", Button).disabled, "the rows")
            shown = drive.text("#promote-lines")
            assert made.checkpoint_id in shown and "beside #4" in shown and "only added" in shown
            assert "#s1" in shown and "afterwards" in shown
            await drive.press("escape")
            assert ids(support) == before
            screen = await asked(drive, "s1")
            await drive.until(lambda: not screen.query_one("#promote-add", Button).disabled, "the rows")
            await drive.press("ctrl+s")
            await drive.until(lambda: not isinstance(drive.app.screen, PromoteScreen), "the end")
            assert ids(support) == before | {made.checkpoint_id}
            await drive.until(
                lambda: drive.main.here and drive.main.here.checkpoint.origin == "base", "the row as the file's own"
            )
            assert drive.main.here is not None and drive.main.here.number == "s1"
            assert not drive.main.offers("promote")


async def test_a_refusal_says_why_and_keeps_the_branch(support: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(support)) as connection, connection:
        connection.execute("CREATE TRIGGER tidy AFTER INSERT ON checkpoints BEGIN DELETE FROM writes; END")
    with opened(support, tmp_path / "s.sqlite") as session:
        made = session.fork(ForkRequest(session.resolve("4", "refund-4711"))).address
        async with driven(session, made) as drive:
            screen = await asked(drive, "s1")
            await drive.until(lambda: "tidy" in drive.text("#promote-lines"), "the reason")
            assert screen.query_one("#promote-add", Button).disabled
            await drive.press("ctrl+s")
            assert made.checkpoint_id not in ids(support)


async def test_a_row_of_the_file_itself_offers_nothing_to_add(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("4", "refund-4711")) as drive:
            await drive.loaded()
            assert not drive.main.offers("promote") and drive.main.offers("fork")
