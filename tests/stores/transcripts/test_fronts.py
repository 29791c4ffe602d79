"""Both UIs draw a transcript as they draw checkpoints."""

from __future__ import annotations

from pathlib import Path

from tests.stores.transcripts.sessions import SESSION, bakery
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of


async def test_the_terminal_shows_turns_changes_and_refuses_a_fork(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, None, (140, 45)) as drive:
            await drive.loaded()
            assert "nothing can be forked" in drive.text("#header")
            await drive.go("3")
            await drive.shows("completed")
            assert "TodoWrite" in drive.text()
            await drive.press("f")
            assert drive.app.screen is drive.main


def test_the_browser_shows_turns_and_their_changes(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    with client_of(path) as client:
        page = client.get("/", follow_redirects=True)
        assert page.status_code == 200
        assert "TodoWrite" in page.text
        assert SESSION[:8] in page.text
        assert "not forked yet" in page.text
