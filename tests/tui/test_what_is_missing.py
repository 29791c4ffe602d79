"""What a state lacks is told where a person looks: an unanswered tool call, a channel that cannot be rebuilt, a closed state."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from langchain_core.messages import HumanMessage

from tests.explain.test_delta import broken
from tests.test_toolcalls import answer, calling, stored
from tests.tui.driving import driven, opened


async def test_a_tool_call_without_an_answer_is_marked_in_the_conversation(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", HumanMessage("go"), calling("call_a", "call_b"), answer("call_a"))
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.shows("has no answer (call_b)")
            await drive.press("2")
            await drive.loaded()
            assert drive.text().count("no answer") == 1


async def test_a_channel_that_cannot_be_rebuilt_is_named_in_the_state(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    broken(path, "DELETE FROM checkpoints WHERE checkpoint_id = ?", 4)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.press("3")
            await drive.shows("not rebuildable: its stored changes begin at or")


async def test_an_encrypted_state_says_how_to_read_it(tmp_path: Path) -> None:
    path = stored(tmp_path / "t.sqlite", HumanMessage("go"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE checkpoints SET type = 'msgpack+aes'")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.press("3")
            await drive.shows("it needs its key, --aes-key-env")
