"""Both UIs draw a transcript as they draw checkpoints."""

from __future__ import annotations

import html
import re
from pathlib import Path

from studio.session import Session
from tests.stores.transcripts.sessions import SESSION, Book, bakery
from tests.tui.driving import driven, opened
from tests.web.conftest import OURS, client_of


async def test_the_terminal_shows_turns_and_their_changes_and_forks_one(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    before = path.read_bytes()
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, None, (140, 45)) as drive:
            await drive.loaded()
            assert "forks go to scratch" in drive.text("#header")
            await drive.press("1")
            await drive.go("3")
            await drive.shows("completed")
            assert "TodoWrite" in drive.text()
            await drive.press("f")
            await drive.until(lambda: "Add --fork-session" in drive.text(), "the plan")
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app.screen is drive.main and "s1" in drive.text("#timeline"), "the fork")
            assert "claude --resume" in drive.app.clipboard
    assert path.read_bytes() == before


async def test_the_terminal_says_a_prompt_otherwise(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, None, (80, 24)) as drive:
            await drive.loaded()
            await drive.go("5")
            await drive.press("f")
            await drive.until(lambda: "And the salt?" in drive.text(), "the prompt")
            await drive.press("ctrl+a")
            await drive.type("Now rye")
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app.screen is drive.main and "--resume" in drive.app.clipboard, "the fork")
            assert "Now rye" in drive.app.clipboard


def test_the_browser_shows_turns_and_their_changes(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    with client_of(path) as client:
        page = client.get("/", follow_redirects=True)
        assert page.status_code == 200
        assert "TodoWrite" in page.text
        assert SESSION[:8] in page.text
        assert "New session" in page.text


def test_the_browser_forks_a_turn_and_shows_how_to_go_on(tmp_path: Path) -> None:
    path = bakery().write(tmp_path / "home")
    before = path.read_bytes()
    with client_of(path) as client:
        tree = Session.open(str(path))
        prompt = tree.tree(SESSION).resolve("5")
        tree.close()
        page = client.get("/", follow_redirects=True)
        where = str(page.url.copy_with(query=None)).removeprefix("http://127.0.0.1")
        found = client.get(where, params={"thread": SESSION, "at": prompt.checkpoint_id}, follow_redirects=True)
        form = re.search(r'action="([^"]*fork-session[^"]*)"', found.text)
        sealed = re.search(r'name="path" value="([^"]*)"', found.text)
        assert form is not None and sealed is not None and "And the salt?" in found.text
        sent = {"path": html.unescape(sealed[1]), "said": "And the 'rye'?", "act": "fork"}
        done = client.post(html.unescape(form[1]), data=sent, headers=OURS, follow_redirects=True)
        assert done.status_code == 200
        assert "claude --resume" in done.text and "And the" in done.text and "rye" in done.text
    assert path.read_bytes() == before


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
