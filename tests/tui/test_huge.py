"""The terminal stays quick on values far too large for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from studio.model import State
from tests.factories import make_states
from tests.tui.driving import driven, opened


async def test_a_huge_state_is_never_written_out_on_the_thread_that_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = make_states(tmp_path / "huge.sqlite", {"text": "word " * 9_000}, {"text": "word " * 9_000 + "more"})
    written: list[object] = []
    monkeypatch.setattr(State, "__repr__", lambda state: (written.append(state), "State()")[1])
    with opened(path, tmp_path / "scratch.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            for key in "123456":
                await drive.press(key)
                await drive.loaded()
    assert written == []
