"""Both UIs draw a transcript as they draw checkpoints."""

from __future__ import annotations

from pathlib import Path

from tests.stores.transcripts.sessions import SESSION, Book, bakery
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of


async def test_the_terminal_shows_turns_changes_and_refuses_a_fork(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, None, (140, 45)) as drive:
            await drive.loaded()
            assert "nothing can be forked" in drive.text("#header")
            await drive.press("1")
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


async def test_a_session_is_listed_by_its_title_and_found_by_it(tmp_path: Path) -> None:
    first, second = bakery(), Book("5e55101d-0000-4000-8000-000000000002", "b")
    second.prompt("Count the flour.")
    second.answer("Nine bags.")
    second.note(type="custom-title", customTitle="Counting <b>flour</b>")
    for book in (first, second):
        book.write(tmp_path / "home")
    with client_of(tmp_path / "home") as client:
        assert "<b>Counting &lt;b&gt;flour&lt;/b&gt;</b>" in client.get("/f/home/threads").text
        found = client.get("/f/home/threads", params={"q": "counting"}).text
        assert "Count the flour." in found
        assert "forty loaves" not in found
    with opened(tmp_path / "home", tmp_path / "s.sqlite") as session:
        async with driven(session, None, (140, 45)) as drive:
            await drive.shows("Counting <b>flour</b>")
            await drive.type("counting")
            await drive.shows("1 of 2")
