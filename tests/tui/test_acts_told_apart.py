"""The three acts in the fork form of the terminal: told apart, previewed, replaced instead of merged, into new threads too."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from textual.widgets import Button, Checkbox, Input, Select

from studio.model import Address
from studio.session import Session
from studio.tui.screens.fork import ForkScreen
from studio.tui.screens.promised import COPY
from studio.tui.screens.run import RunScreen
from tests.asnode.project import make_project
from tests.factories import folder_snapshot
from tests.tui.driving import Drive, driven, opened
from tests.tui.test_forking import open_fork_form, previewed, run_status


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("made") / "project")


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made.parent, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "project" / "shop.sqlite"


def graph_of(shop: Path, name: str = "graph") -> str:
    return f"{shop.parent / 'shop_graphs.py'}:{name}"


def fork_form(drive: Drive) -> ForkScreen:
    assert isinstance(drive.app.screen, ForkScreen)
    return drive.app.screen


async def choose(drive: Drive, how: str) -> None:
    form = fork_form(drive)
    await drive.until(lambda: form._writers, "the nodes")
    form.query_one("#how", Select).value = how
    await drive.pilot.pause()


async def returns(drive: Drive, text: str) -> None:
    """Type what the node returns, and wait for what the graph makes of it."""
    fork_form(drive).query_one("#returns", Input).value = text
    await drive.pilot.pause(0.3)
    await previewed(drive)


async def forked(drive: Drive) -> Address:
    await drive.until(lambda: not drive.app.screen.query_one("#fork-only", Button).disabled, "the preview by the graph")
    await drive.press("ctrl+s")
    await drive.until(lambda: drive.app.screen is drive.main)
    await drive.until(lambda: drive.main.here and drive.main.here.number[0] == "s", "the fork")
    await drive.loaded()
    assert drive.main.point is not None
    return drive.main.point.address


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_acts_and_the_nodes_say_what_they_do(shop: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    with opened(shop, tmp_path / "s.sqlite", graph_of(shop)) as session:
        async with driven(session, session.resolve("#4", "graph"), size=size) as drive:
            await open_fork_form(drive)
            form = fork_form(drive)
            await drive.until(lambda: form._writers, "the nodes")
            options = [str(prompt) for prompt, _ in form.query_one("#how", Select)._options]
            assert options[0] == "Set the state"
            assert options[1].startswith("Write as join · wrote this checkpoint")
            assert options[-1] == "The same point again"
            await choose(drive, "cheap")
            form.query_one("#returns", Input).value = '{"price": 3.5}'
            await drive.until(lambda: "Then fan runs." in drive.text(), "what would run")
            await drive.until(lambda: "10.0  →  3.5" in drive.text(), "what would change")
            shown = " ".join(line.strip() for line in drive.lines("#fork-preview"))
            assert "your reducers take them in" in " ".join(shown.split())


async def test_a_merged_channel_is_replaced_by_a_tick_and_the_preview_stores_nothing(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite", graph_of(shop)) as session:
        async with driven(session, session.resolve("#4", "graph"), size=(120, 40)) as drive:
            await open_fork_form(drive)
            await choose(drive, "cheap")
            before = folder_snapshot(shop.parent)["shop.sqlite"]
            await returns(drive, '{"notes": ["by hand"]}')
            form = fork_form(drive)
            await drive.until(lambda: form.query("#merges Checkbox"), "the tick")
            assert "/notes/4" in drive.text()
            assert not (tmp_path / "s.sqlite").exists()
            assert "✓" not in drive.text("#merges")
            form.query_one("#merges Checkbox", Checkbox).value = True
            await drive.until(lambda: "✓" in drive.text("#merges"), "a tick that no colour is needed for")
            await drive.until(lambda: "/notes/4" not in drive.text(), "the preview of the replaced value")
            await previewed(drive)
            new = await forked(drive)
            assert session.state(new).values["notes"] == ["by hand"]
            assert session.row(new).label == "update as cheap"
            assert folder_snapshot(shop.parent)["shop.sqlite"] == before


async def test_several_nodes_write_in_one_superstep(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite", graph_of(shop)) as session:
        async with driven(session, session.resolve("#2", "graph"), size=(120, 40)) as drive:
            await open_fork_form(drive)
            await choose(drive, "web")
            await returns(drive, '{"price": 2.5}')
            await drive.press("ctrl+n")
            await choose(drive, "docs")
            await returns(drive, '{"total": 5}')
            await drive.until(lambda: "Write as web and docs, in one superstep" in drive.text(), "both nodes")
            new = await forked(drive)
            assert session.row(new).label == "update as web ∥ docs"
            assert session.state(new).next == ("join",)
            assert {change.path: change.authors[0].node for change in session.compare(new).changes} == {
                "/price": "web",
                "/total": "docs",
            }


async def test_of_nodes_that_ran_together_it_is_said_why_none_is_chosen(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite", graph_of(shop)) as session:
        async with driven(session, session.resolve("#3", "graph"), size=(120, 40)) as drive:
            await open_fork_form(drive)
            await drive.until(lambda: fork_form(drive)._writers, "the nodes")
            assert fork_form(drive)._writers["docs"].why == "wrote this checkpoint, together with web"


async def test_the_same_point_again_goes_into_a_new_thread_that_leads_back(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        origin = session.resolve("#4", "graph")
        async with driven(session, origin, size=(120, 40)) as drive:
            await open_fork_form(drive)
            await choose(drive, COPY)
            fork_form(drive).query_one("#new-thread", Input).value = "mine"
            await drive.pilot.pause(0.3)
            await previewed(drive)
            new = await forked(drive)
            assert new.thread_id == "mine"
            assert any("made from #4 of thread graph" in line for line in drive.lines("#changes"))
            await drive.press("1", "right", "home", "enter")
            await drive.until(lambda: drive.main.thread_id == "graph", "the thread it was made from")
            await drive.loaded()
            assert drive.main.point is not None
            assert drive.main.point.address == origin
            assert any("forked to #s1 of thread mine" in line for line in drive.lines("#changes"))


async def test_a_question_is_answered_in_a_new_thread(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite", graph_of(shop, "asking")) as session:
        async with driven(session, session.resolve("head", "asking"), size=(120, 40)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("a")
            screen = await run_status(drive, "paused")
            assert isinstance(screen, RunScreen)
            screen.query_one("#answer-0", Input).value = "yes"
            screen.query_one("#ask .new-thread", Input).value = "answered"
            screen.query_one("#answer-0", Input).focus()
            await drive.press("enter")
            await run_status(drive, "done")
            assert notes_of(session, "answered")[-1] == "approved yes"
            assert session.state(session.resolve("head", "asking")).status == "paused"


def notes_of(session: Session, thread_id: str) -> list[object]:
    session.refresh()
    notes = session.state(session.resolve("head", thread_id)).values["notes"]
    assert isinstance(notes, list)
    return notes
