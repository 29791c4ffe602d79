"""The message editor of the terminal: by keys alone, in a small window, and what it keeps is what the fork holds."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from textual.widgets import TextArea

from studio.model import Address
from studio.session import Session
from studio.tui.screens.edit import EditScreen
from studio.tui.screens.fork import ForkScreen
from studio.tui.screens.rewrite import ChoiceScreen, RewriteScreen
from tests.editing import edit_file
from tests.factories import config, saver_at
from tests.test_toolcalls import stored
from tests.tui.driving import Drive, driven, opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    edit_file(tmp_path / "edit.sqlite")
    return tmp_path / "edit.sqlite"


async def open_messages(drive: Drive, key: str = "e") -> RewriteScreen:
    """Press e on the checkpoint; of several channels the first is taken."""
    await drive.until(lambda: drive.main.point)
    await drive.loaded()
    await drive.press(key)
    await drive.until(lambda: isinstance(drive.app.screen, (RewriteScreen, ChoiceScreen)), "the message editor")
    await drive.pilot.pause()
    if isinstance(drive.app.screen, ChoiceScreen):
        await drive.press("enter")
    return await back(drive)


async def back(drive: Drive) -> RewriteScreen:
    await drive.until(lambda: isinstance(drive.app.screen, RewriteScreen), "the list of messages")
    await drive.pilot.pause()
    screen = drive.app.screen
    assert isinstance(screen, RewriteScreen)
    return screen


async def typed(drive: Drive, text: str) -> None:
    """Write a text into the editor that is open, and keep it."""
    await drive.until(lambda: isinstance(drive.app.screen, EditScreen), "the editor")
    await drive.pilot.pause()
    drive.app.screen.query_one("#editor", TextArea).load_text(text)
    await drive.pilot.pause()
    await drive.press("ctrl+s")
    await back(drive)


async def stand(drive: Drive, at: int) -> None:
    await drive.press("g", *["j"] * at)
    await drive.pilot.pause()


async def choose(drive: Drive, words: str) -> None:
    """Choose the row that begins with these words."""
    await drive.until(lambda: isinstance(drive.app.screen, ChoiceScreen), "a choice")
    await drive.pilot.pause()
    rows = [text for text, _ in drive.app.screen._choices]  # type: ignore[attr-defined]
    at = next(index for index, text in enumerate(rows) if text.startswith(words))
    await drive.press(*["j"] * at, "enter")
    await drive.pilot.pause()


async def previewing(drive: Drive) -> None:
    """Wait until the fork is allowed: its preview is drawn."""
    await drive.until(lambda: "Then runs" in drive.lines("#fork-preview"), "the preview")
    await drive.pilot.pause(0.3)  # it is asked for once the form rests
    await drive.until(lambda: all(worker.is_finished for worker in drive.app.workers if worker.group == "preview"))
    await drive.pilot.pause()


async def forked(drive: Drive, session: Session) -> list[Any]:
    """Keep the messages, fork, and give them as the real saver loads them."""
    await drive.press("ctrl+s")
    await drive.until(lambda: isinstance(drive.app.screen, ForkScreen), "the fork")
    await previewing(drive)
    before = drive.main.here
    await drive.press("ctrl+s")
    await drive.until(lambda: drive.main.here is not None and drive.main.here is not before, "the new row")
    await drive.loaded()
    at: Address = drive.main.here.checkpoint.address  # type: ignore[union-attr]
    with saver_at(session.scratch_path) as saver:
        held = saver.get_tuple(config(at.thread_id, at.checkpoint_id))
    assert held is not None
    return list(held.checkpoint["channel_values"]["messages"])


async def test_texts_calls_results_order_and_new_messages_by_keys_in_a_small_window(file: Path, tmp_path: Path) -> None:
    with opened(file, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t"), size=(80, 24)) as drive:
            await open_messages(drive)
            assert "8 messages, as stored" in drive.text() and "esc leave" in drive.text()
            await stand(drive, 1)
            await drive.press("enter")
            await typed(drive, "Which pot?")
            await stand(drive, 2)
            await drive.press("enter")
            await choose(drive, "arguments of find")
            await typed(drive, '{"q": "pot", "most": 2.0}')
            await stand(drive, 5)
            await drive.press("enter")
            await choose(drive, "text")
            await typed(drive, "It is k2.")
            await stand(drive, 4)
            await drive.press("d")
            await drive.shows("deleted")
            assert "no answer" in drive.text()
            await drive.press("i")
            await choose(drive, "the result of price_of")
            await typed(drive, "49.00")
            assert "no answer" not in drive.text()
            await stand(drive, 1)
            await drive.press("K")
            await drive.shows("3 changed, 1 deleted, 1 new, 1 moved")
            messages = await forked(drive, session)
    assert [message.id for message in messages[:4]] == ["hum-1", "sys-1", "ai-1", "tool-1"]
    assert messages[0].content == "Which pot?"
    assert messages[2].tool_calls[0]["args"] == {"q": "pot", "most": 2.0}
    assert messages[2].additional_kwargs["tool_calls"][0]["function"]["arguments"] == '{"q": "pot", "most": 2.0}'
    assert (messages[4].content, messages[4].tool_call_id) == ("49.00", "call_2")
    assert messages[5].content[0]["text"] == "It is k2." and messages[5].content[1]["type"] == "image_url"


async def test_steps_are_taken_back_one_by_one_and_all_at_once(file: Path, tmp_path: Path) -> None:
    with opened(file, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t")) as drive:
            screen = await open_messages(drive)
            await stand(drive, 0)
            await drive.press("d", "j", "d")
            await drive.shows("2 deleted")
            await drive.press("u")
            await drive.shows("1 deleted")
            await drive.press("U")
            await drive.shows("2 deleted")
            await drive.press("s")
            await drive.shows("1 deleted")
            await drive.press("R")
            await drive.shows("8 messages, as stored")
            assert not screen.edited.patch()


async def test_leaving_with_edits_asks_once_and_kept_edits_are_there_again(file: Path, tmp_path: Path) -> None:
    with opened(file, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t")) as drive:
            await open_messages(drive)
            await drive.press("d", "escape")
            await drive.shows("esc again drops these edits")
            await drive.press("ctrl+s")
            await drive.until(lambda: isinstance(drive.app.screen, ForkScreen))
            await previewing(drive)
            assert "/messages/7" in drive.text("#edits") and "removed" in drive.text("#edits")
            await drive.press("e")
            await choose(drive, "messages")
            await back(drive)
            assert "1 deleted" in drive.text()
            await drive.press("escape")
            await drive.until(lambda: isinstance(drive.app.screen, ForkScreen))


async def test_arguments_that_are_no_map_are_refused_and_nothing_changes(file: Path, tmp_path: Path) -> None:
    with opened(file, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t")) as drive:
            screen = await open_messages(drive)
            await stand(drive, 2)
            await drive.press("enter")
            await choose(drive, "arguments of find")
            await typed(drive, "[1]")
            await drive.shows("The arguments of find must be a map.")
            assert not screen.edited.patch()


async def test_hostile_and_secret_messages_are_drawn_inert_and_kept(tmp_path: Path) -> None:
    key = "sk-live-4242424242424242424242"
    hostile = f"[bold red]x[/]\x1b[31m\u202e {key}"
    path = stored(tmp_path / "h.sqlite", HumanMessage(hostile, id="h"), AIMessage("[b]ok", id="a"))
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await open_messages(drive)
            assert "[bold red]x" in drive.text() and "[b]ok" in drive.text()
            assert key not in drive.text() and "\x1b" not in drive.text() and "\u202e" not in drive.text()
            await stand(drive, 0)
            await drive.press("enter")
            await drive.until(lambda: isinstance(drive.app.screen, EditScreen))
            await drive.pilot.pause()
            assert key not in drive.text()
            await drive.press("ctrl+s")
            await back(drive)
            await drive.press("J")
            messages = await forked(drive, session)
    assert [message.content for message in messages] == ["[b]ok", hostile]


async def test_five_thousand_messages_and_a_text_of_five_megabytes_open_at_once(tmp_path: Path) -> None:
    many = [HumanMessage(f"message {at}", id=f"m{at}") for at in range(5_000)]
    path = stored(tmp_path / "many.sqlite", *many, HumanMessage("x" * 5_000_000, id="big"))
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await open_messages(drive)
            start = time.perf_counter()
            await drive.press("K", "d")
            await drive.shows("1 deleted")
            assert time.perf_counter() - start < 5
            await drive.press("g")
            await drive.shows("message 0")
