"""An agent's transcript in the terminal: the chat, its files, its todos, the strip of tokens, the rows of the timeline."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from studio.render.secrets import MASKED
from studio.tui.lines import LineView
from tests.reading.oven import KEY, oven
from tests.stores.transcripts.sessions import Book
from tests.tui.driving import SAMPLES, Drive, driven, opened


@asynccontextmanager
async def seen(book: Book, tmp_path: Path, size: tuple[int, int] = (140, 45)) -> AsyncIterator[Drive]:
    path = book.write(tmp_path / "home")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, None, size) as drive:
            await drive.loaded()
            yield drive


def view(drive: Drive, pane: str) -> LineView:
    return drive.app.screen.query_one(f"#{pane}", LineView)


async def test_a_transcript_opens_as_a_chat_at_the_turn_under_the_cursor(tmp_path: Path) -> None:
    async with seen(oven(), tmp_path) as drive:
        assert drive.main.tab == "conversation"
        told = drive.lines("#conversation")
        assert [line.split()[0] for line in told if line.startswith("#")] == [
            f"#{n}" for n in (0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12)
        ]
        assert "  context compacted" not in told and any("98,123 → 4,200 tokens" in line for line in told)
        assert "no answer" in drive.text("#conversation")
        await drive.go("2")
        assert [line for line in drive.lines("#conversation") if line.startswith("#")][-1].startswith("#2 assistant")
        await drive.shows("test_oven.py  edited +2 −1")
        await drive.shows("not applied")
        text = drive.text("#conversation")
        assert "def test_heat():" in text and "approx │ low" in text
        assert "the docs (https://docs.example.org/approx)" in text


async def test_the_line_at_the_top_names_the_session_by_its_title(tmp_path: Path) -> None:
    book = oven()
    book.note(type="custom-title", customTitle=f"Bake it right {KEY}")
    async with seen(book, tmp_path) as drive:
        top = drive.text("#header")
        assert "› Bake it right " in top and KEY not in top
        assert not drive.main.offers("tables"), "a session has no tables"


async def test_calls_and_summaries_unfold_by_a_key(tmp_path: Path) -> None:
    async with seen(oven(), tmp_path) as drive:
        await drive.press("right")
        folded = view(drive, "conversation")
        index = next(at for at, (line, _) in enumerate(folded._lines) if "summary of what was before" in line.content.plain)
        folded.cursor = index
        assert "Floats" not in drive.text("#conversation")
        await drive.press("space")
        await drive.shows("It goes on.")


async def test_files_and_todos_stand_as_at_the_turn(tmp_path: Path) -> None:
    async with seen(oven(), tmp_path) as drive:
        await drive.press("8")
        await drive.loaded()
        assert drive.lines("#files")[0] == "1 file changed  +3 −2"
        shown = view(drive, "files")
        assert [line.content.plain for line in shown.lines[2].folded] == ["  #1 read", "▸ #2 edited +2 −1", "▸ #11 edited +1 −1"]
        assert [line.content.plain.strip() for line in shown.lines[2].folded[2].folded] == ["a", "− b", "+ B", "c"]
        await drive.press("9")
        await drive.loaded()
        assert [line.split("  ")[0] for line in drive.lines("#todos")[:4]] == [
            "The list at this turn", "☑ Fix the test", "☑ Run the suite", "☐ Rest",
        ]  # fmt: skip
        assert "✓ done Run the suite" in drive.lines("#todos")
        await drive.go("2")
        assert drive.lines("#todos") == ["The agent kept no list of todos up to this turn."]


async def test_the_timeline_says_what_was_said_and_the_strip_what_it_took(tmp_path: Path) -> None:
    async with seen(oven(), tmp_path, (170, 45)) as drive:
        rows = drive.text("#timeline")
        for words in ("#0  Fix the flaky test", "Edit ×2 test_oven.py", "✕ 1", "✕ error", "abandoned", "98,123"):
            assert words in rows
        await drive.go("3")
        strip = drive.text("#strip")
        assert "context 112" in strip and "output 30" in strip and "█" in strip


async def test_everything_fits_into_a_small_window(tmp_path: Path) -> None:
    async with seen(oven(), tmp_path, (80, 24)) as drive:
        assert "Chat Changes Files Todos State Raw Graph" in drive.text("#tabs")
        assert "context 112" in drive.text("#strip")
        assert "Fix the flaky" in drive.text("#timeline")


async def test_a_long_session_comes_a_window_at_a_time_and_stays_in_place(tmp_path: Path) -> None:
    book = Book()
    for number in range(200):
        book.prompt(f"ask {number}")
        book.answer(f"tell {number}")
    async with seen(book, tmp_path) as drive:
        told = drive.lines("#conversation")
        assert told[0] == "▲ 370 earlier turns" and sum(line.startswith("#") for line in told) == 30
        await drive.press("right", "g")
        await drive.press("enter")
        await drive.until(lambda: drive.lines("#conversation")[0] == "▲ 340 earlier turns")
        assert "ask 185" in drive.text("#conversation")  # what was read before is still there
        await drive.go("100")
        assert drive.lines("#conversation")[0] == "▲ 71 earlier turns"


async def test_hostile_text_is_shown_and_secrets_are_not(tmp_path: Path) -> None:
    async with seen(oven(), tmp_path) as drive:
        await drive.go("8")
        text = drive.text("#conversation")
        assert "<script>alert(1)</script>" in text and MASKED in text and KEY not in drive.text()
        await drive.go("3")
        await drive.shows("\\x1b[31mFAILED\\x1b[0m \\u202etest")


async def test_a_database_is_read_by_the_same_pane_and_has_no_files(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.tree("refund-4711").head, (140, 45)) as drive:
            await drive.loaded()
            assert drive.main.tab == "changes" and "Files" not in drive.text("#tabs")
            await drive.press("8")
            assert drive.main.tab == "changes"
            await drive.press("2")
            await drive.loaded()
            told = drive.lines("#conversation")
            assert any(line.startswith("▸ issue_refund") and "amount=499.0" in line for line in told)
            assert not drive.app.screen.query_one("#strip").display
