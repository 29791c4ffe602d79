"""The message editor over a long conversation, and its keys in a small window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from studio import rewriting, toolcalls
from studio.rewriting import Rewriting
from studio.session import Session
from studio.tui.screens.help import HelpScreen
from studio.tui.screens.rewrite import RewriteScreen
from tests.factories import make_states
from tests.tui.driving import driven, opened
from tests.tui.test_messages import back, open_messages

ROUNDS = 500


def conversation(rounds: int) -> list[Any]:
    found: list[Any] = []
    for at in range(rounds):
        call = {"name": "look_up", "args": {"n": at}, "id": f"call{at}"}
        found += [HumanMessage(f"question {at}", id=f"h{at}"), AIMessage("", id=f"a{at}", tool_calls=[call])]
        found += [ToolMessage(f"result {at}", tool_call_id=f"call{at}", id=f"t{at}"), AIMessage(f"answer {at}", id=f"b{at}")]
    return found


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_states(tmp_path_factory.mktemp("long") / "long.sqlite", {"messages": conversation(ROUNDS)})


async def test_a_key_reads_no_message_again_and_does_no_step_again(
    long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Any] = []
    done: list[Any] = []
    said, do = toolcalls.said, rewriting._do
    with opened(long, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            screen = await open_messages(drive)
            monkeypatch.setattr(toolcalls, "said", lambda value: (read.append(value), said(value))[1])
            monkeypatch.setattr(rewriting, "_do", lambda *given: (done.append(given), do(*given))[1])
            for _ in range(8):
                await drive.press("K")
            await drive.pilot.pause()
            assert (len(read), len(done)) == (0, 8)
            await drive.press("u", "u", "U", "R", "d", "d")
            await drive.pilot.pause()
            assert (len(read), len(done)) == (0, 10)
            assert screen.edited.summary() == ""
            await drive.press("k", "k", "d")  # the call of the last round loses nothing, its answer is gone
            await drive.until(lambda: screen.edited.summary() == "1 deleted")


async def test_what_is_taken_back_and_brought_again_is_what_it_was(long: Path, tmp_path: Path) -> None:
    with opened(long, tmp_path / "s.sqlite") as session:
        state = session.state(session.resolve("head"))
        edited = Rewriting(state, "messages")
        ways = [edited]
        for at in range(60):  # more than are kept
            edited = edited.then({"do": "move", "at": 1999 - at, "to": at})
            ways.append(edited)
        for before in reversed(ways[:-1]):
            edited = edited.undo()
            assert edited.entries == before.entries
        for after in ways[1:]:
            edited = edited.redo()
            assert (edited.entries, edited.problems()) == (after.entries, after.problems())
        again = Rewriting(state, "messages", edited.steps, edited.done)
        assert (again.entries, again.moved(), again.problems()) == (edited.entries, edited.moved(), edited.problems())


@given(st.permutations(range(12)), st.integers(0, 5), st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_messages_that_stay_are_as_many_as_can_stay(middle: list[int], before: int, after: int) -> None:
    numbers = [*range(before), *(before + one for one in middle), *range(before + 12, before + 12 + after)]
    first, last = rewriting._out_of_place(numbers)
    assert numbers[:first] == sorted(numbers[:first])
    assert numbers[last:] == sorted(numbers[last:])
    inside = rewriting._longest_rise(numbers[first:last])
    assert first + len(inside) + len(numbers) - last == len(rewriting._longest_rise(numbers))


async def test_all_keys_of_the_editor_are_told_in_a_small_window(long: Path, tmp_path: Path) -> None:
    with opened(long, tmp_path / "s.sqlite") as session:
        async with driven(session, size=(80, 24)) as drive:
            await open_messages(drive)
            assert "? keys" in drive.text().splitlines()[-2]
            await drive.press("question_mark")
            await drive.until(lambda: isinstance(drive.app.screen, HelpScreen), "the keys")
            await drive.pilot.pause()
            shown = "\n".join(drive.lines("#help"))
            for words in ("Insert above", "Move down", "Undo all", "As stored", "Redo", "Keep", "Leave"):
                assert words in shown
            named = {key for line in shown.splitlines() for key in line.split()[:2]}
            letters = {key for binding in RewriteScreen.BINDINGS for key in binding.key.split(",") if len(key) == 1}  # type: ignore[union-attr]
            assert letters <= named
            await drive.press("escape")
            screen = await back(drive)
            assert screen.edited.summary() == ""


def test_a_call_whose_answer_is_deleted_is_the_only_one_told(long: Path) -> None:
    session = Session.open(str(long))
    try:
        state = session.state(session.resolve("head"))
        assert toolcalls.findings(state) == []
        edited = Rewriting(state, "messages").then({"do": "delete", "at": 2})
        assert list(edited.problems()) == [1]
    finally:
        session.close()
