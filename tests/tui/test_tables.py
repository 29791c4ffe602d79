"""The screen of what else a file holds, and the switch to another part of it."""

from __future__ import annotations

import shlex
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.store.sqlite import SqliteStore

from studio.session import Session
from studio.stores.view import View
from studio.tui.copying import link
from studio.tui.main import MainScreen
from studio.tui.screens.tables import EntriesScreen, TableList, TablesScreen
from studio.tui.screens.threads import ThreadsScreen
from tests.factories import config, folder_snapshot, saver_at, shop_builder
from tests.stores.test_opening import left_behind
from tests.stores.test_table_sets import change, move
from tests.tui.driving import Drive, driven, opened


@pytest.fixture
def app(shop: Path) -> Path:
    """Two sets of checkpoints, a store with 150 items, a table of users."""
    move(shop, "lg_cp", "lg_wr")
    with saver_at(shop) as saver:
        shop_builder().compile(checkpointer=saver).invoke({"item": "lamp"}, config("lamp"))
    with SqliteStore.from_conn_string(str(shop)) as store:
        store.setup()
        for number in range(150):
            store.put(("users", "u1"), f"fact-{number:03}", {"text": f"likes tea {number}\x1b[2J", "password": "hunter2"})
    change(shop, "CREATE TABLE users (email, password)", "INSERT INTO users VALUES ('ann@b.org', 'hunter2')")
    return shop


async def stand_on(drive: Drive, name: str) -> None:
    await drive.until(lambda: isinstance(drive.app.screen, TablesScreen))
    view = drive.app.screen.query_one("#tables", TableList)
    await drive.until(lambda: view.rows, "the tables")
    view.set_cursor(next(index for index, row in enumerate(view.rows) if name in (row.name, row.what)))


async def test_tables_are_listed_with_their_entries(app: Path, tmp_path: Path) -> None:
    before = folder_snapshot(app.parent)
    with opened(app, tmp_path.parent / f"{tmp_path.name}.scratch") as session:
        async with driven(session, session.resolve("head", "lamp"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("o")
            await stand_on(drive, "store")
            await drive.shows("not versioned: time travel does not rewind it")
            listed = drive.app.screen.query_one("#tables", TableList).rows
            writes = {row.name: (row.what, row.note) for row in listed if row.table is not None and row.table.kind == "writes"}
            assert writes["writes"] == ("writes of their tasks", "versioned with the thread · shown")
            assert writes["lg_wr"] == ("writes of their tasks", "versioned with the thread")
            await drive.press("enter")
            await drive.until(lambda: isinstance(drive.app.screen, EntriesScreen))
            await drive.shows("fact-000")
            text = "\n".join(drive.lines("#entries"))
            assert "likes tea 99" in text and "likes tea 100" not in text
            assert "hunter2" not in text and "\x1b" not in text
            assert "users.u1" in text
            await drive.press("n")
            await drive.until(lambda: any("likes tea 100" in line for line in drive.lines("#entries")))
            await drive.press("p")
            await drive.until(lambda: any("likes tea 99" in line for line in drive.lines("#entries")))
            await drive.press("escape", "escape")
            await drive.until(lambda: isinstance(drive.app.screen, MainScreen))
    assert folder_snapshot(app.parent) == before


async def test_another_set_of_checkpoints_takes_the_place_of_the_first(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "kept"))
    session = Session.open(str(app))
    async with driven(session, session.resolve("head", "lamp")) as drive:
        await drive.until(lambda: drive.main.point)
        await drive.press("o")
        await stand_on(drive, "lg_cp")
        await drive.press("enter")
        await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
        await drive.shows("forked")
        await drive.press("escape")
        await drive.shows("table lg_cp")
        assert drive.main.session.thread_ids() == ["done", "failed", "forked", "paused"]
        assert len([screen for screen in drive.app.screen_stack if isinstance(screen, MainScreen)]) == 1
        await drive.press("o")
        await stand_on(drive, "checkpoints")
        assert isinstance(drive.app.screen, TablesScreen)
        row = next(row for row in drive.app.screen.query_one("#tables", TableList).rows if row.name == "checkpoints")
        drive.app.screen.dismiss(row.view)
        await drive.until(lambda: drive.main.session is session)
    session.close()


def test_the_copied_command_names_the_part_that_is_shown(app: Path) -> None:
    with closing(Session.open(str(app), view=View("lg_cp"))) as session:
        address = session.resolve("head", "done")
        said = link(session.location, address, session.view_options)
    words = shlex.split(said)
    assert words[:5] == ["studio", "web", str(app), "--tables", "lg_cp"]


async def test_the_list_of_threads_leads_there_too(shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "kept"))
    left_behind(shop, "PRAGMA journal_mode=wal", "DELETE FROM checkpoints WHERE thread_id = 'done'")
    session = Session.open(str(shop))
    async with driven(session) as drive:
        await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
        await drive.press("ctrl+o")
        await stand_on(drive, "without its -wal")
        await drive.press("enter")
        await drive.until(lambda: drive.main.session is not session)
        await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
        await drive.shows("done")
        await drive.press("escape")
        await drive.shows("without its -wal")
    session.close()
