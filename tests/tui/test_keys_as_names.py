"""A well-known key that stands as a name is masked wherever the terminal shows it, and still leads to its value."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.content import Content
from textual.widgets import TextArea

from studio.session import Session
from studio.tui.app import StudioApp
from studio.tui.names import without_keys
from studio.tui.panes.state import StatePane
from tests.keyed import BESIDE, CHANNEL, IN_MAP, KEYS, NODE, THREAD, make
from tests.tui.driving import Drive, driven, opened


def screen_text(drive: Drive) -> str:
    """The screen as the terminal has it."""
    compositor = drive.app.screen._compositor
    return "\n".join("".join(segment.text for segment in strip) for strip in compositor.render_strips())


def leaks(text: str) -> list[str]:
    """Keys of which more than the well-known beginning is there."""
    return [key for key in (*KEYS, BESIDE) if key[:14] in text]


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_no_pane_shows_one(tmp_path: Path, size: tuple[int, int]) -> None:
    with opened(make(tmp_path / "named.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", THREAD), size) as drive:
            for key in ("1", "2", "3", "4", "5", "6", "7"):
                await drive.press(key)
                await drive.loaded()
                await drive.pilot.pause(0.05)
                assert not leaks(screen_text(drive)), screen_text(drive)
            assert "[masked]" in screen_text(drive)
            for key in ("t", "slash", "e", "r", "f", "question_mark"):
                await drive.press(key)
                await drive.pilot.pause(0.2)
                assert not leaks(screen_text(drive)), (key, screen_text(drive))
                await drive.press("escape")
                await drive.pilot.pause(0.1)


async def test_it_is_still_the_way_to_its_value(tmp_path: Path) -> None:
    with opened(make(tmp_path / "named.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", THREAD)) as drive:
            await drive.press("3")
            await drive.loaded()
            pane = drive.main.query_one(StatePane)
            pane.select_path(f"/{CHANNEL}")
            await drive.until(lambda: pane.selected_path == f"/{CHANNEL}", "the channel")
            pane.focus()
            await drive.press("enter")
            await drive.until(lambda: bool(drive.app.screen.query(TextArea)), "the editor")
            assert "a vase" in drive.app.screen.query_one(TextArea).text


async def test_what_was_revealed_is_shown_and_an_editor_shows_what_will_be_stored(tmp_path: Path) -> None:
    with opened(make(tmp_path / "named.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", THREAD), (160, 45)) as drive:
            await drive.press("3")
            await drive.loaded()
            pane = drive.main.query_one(StatePane)
            pane.select_path("/found/token")
            await drive.until(lambda: pane.selected_path == "/found/token", "the value")
            assert BESIDE not in screen_text(drive)
            assert pane.reveal()
            await drive.until(lambda: BESIDE in screen_text(drive), "the revealed value")
            pane.select_path("/found")
            await drive.until(lambda: pane.selected_path == "/found", "the map")
            pane.focus()
            await drive.press("enter")
            await drive.until(lambda: bool(drive.app.screen.query(TextArea)), "the editor")
            await drive.until(lambda: IN_MAP in screen_text(drive), "its text")


async def test_all_is_shown_where_that_was_asked_for(tmp_path: Path) -> None:
    session = Session.open(str(make(tmp_path / "named.sqlite")), scratch=str(tmp_path / "s.sqlite"), show_secrets=True)
    try:
        async with StudioApp(session, session.resolve("2", THREAD)).run_test(size=(160, 45)) as pilot:
            drive = Drive(pilot.app, pilot)  # type: ignore[arg-type]
            await drive.until(lambda: NODE in screen_text(drive) and THREAD in screen_text(drive), "the names")
    finally:
        session.close()


def test_a_masked_paragraph_keeps_its_styles() -> None:
    told = without_keys(Content.assemble(("before ", "bold"), (IN_MAP, "red"), (" after", "italic")))
    assert told.plain == "before [masked] after"
    assert {str(span.style) for span in told.spans} == {"bold", "italic"}
