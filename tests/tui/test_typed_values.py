"""Typed values in the terminal: shown as just their value, kept in their type, refused where that could not read them."""

from __future__ import annotations

from pathlib import Path

from textual.widgets import TextArea

from studio import tagged
from studio.tui.screens.edit import EditScreen
from studio.tui.screens.fork import ForkScreen
from tests.editing import edit_file
from tests.tui.driving import Drive, driven, opened


async def edit(drive: Drive, path: str) -> TextArea:
    await drive.until(lambda: drive.main.point)
    await drive.loaded()
    drive.main.app.push_screen(ForkScreen(drive.main.session, drive.main.point, edit=path))
    await drive.until(lambda: isinstance(drive.app.screen, EditScreen) and drive.app.screen.query("#editor"), "the editor")
    await drive.pilot.pause()
    return drive.app.screen.query_one("#editor", TextArea)


async def test_a_date_is_edited_as_text_and_stays_a_date(tmp_path: Path) -> None:
    edit_file(tmp_path / "edit.sqlite")
    with opened(tmp_path / "edit.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t"), size=(80, 24)) as drive:
            area = await edit(drive, "/day")
            assert area.text == "2026-05-04" and "datetime.date, as ISO 8601, unchanged" in drive.text()
            area.load_text("2026-13-04")
            await drive.shows("2026-13-04 is no date.")
            area.load_text("2027-01-31")
            await drive.shows("changed")
            await drive.press("ctrl+t")
            assert tagged.loads(area.text) == {"$type": "datetime.date", "$ext": 1, "args": [2027, 1, 31]}
            await drive.press("ctrl+t")
            assert area.text == "2027-01-31"
            await drive.press("ctrl+s")
            await drive.until(lambda: isinstance(drive.app.screen, ForkScreen))
            fork = drive.app.screen
            assert isinstance(fork, ForkScreen)
            assert [(one.path, one.doc) for one in fork.edits] == [
                ("/day", {"$type": "datetime.date", "$ext": 1, "args": [2027, 1, 31]})
            ]


async def test_an_object_is_edited_by_its_fields_and_a_plain_value_as_before(tmp_path: Path) -> None:
    edit_file(tmp_path / "edit.sqlite")
    with opened(tmp_path / "edit.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t")) as drive:
            area = await edit(drive, "/cost")
            assert tagged.loads(area.text) == {"amount": 10.0, "currency": "EUR", "tags": ["net"]}
            await drive.press("escape", "escape")
            await drive.until(lambda: drive.app.screen is drive.main)
            area = await edit(drive, "/amount")
            assert area.text == "499.0" and "number with a point, as JSON" in drive.text()
