"""Nothing lies over a dialog, and of several graphs both UIs take the one that is called like the file."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from studio.tui.screens.fork import ForkScreen
from studio.tui.screens.help import HelpScreen
from studio.tui.screens.rewrite import ChoiceScreen, RewriteScreen
from tests.tui.driving import SAMPLES, Drive, driven, opened
from tests.tui.test_forking import run_status
from tests.tui.test_messages import open_messages

SUPPORT = SAMPLES / "support_agent.sqlite"


@pytest.fixture
def in_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """`langgraph.json` there lists two graphs."""
    monkeypatch.chdir(SAMPLES)


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """The same threads in a file that no graph is called like."""
    (tmp_path / "file").mkdir()
    return Path(shutil.copy(SUPPORT, tmp_path / "file" / "production.sqlite"))


def covered(drive: Drive) -> bool:
    """Whether a toast is drawn over the screen on top."""
    return any(toast.region.area > 0 and toast.is_on_screen for toast in drive.app.screen.query("Toast"))


@pytest.mark.parametrize("key", ["f", "question_mark", "t", "e", "slash", "r", "o"])
async def test_what_was_told_before_a_dialog_opened_does_not_lie_over_it(tmp_path: Path, key: str, in_samples: None) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("9", "refund-4711"), size=(80, 24), notices=True) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("u", "i")
            await drive.until(lambda: covered(drive), "the notices")
            await drive.press(key)
            await drive.until(lambda: drive.app.screen is not drive.main, "the dialog")
            await drive.pilot.pause(0.2)
            assert not covered(drive)


async def test_a_notice_in_a_dialog_stands_above_its_keys(tmp_path: Path) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("9", "refund-4711"), size=(80, 24), notices=True) as drive:
            await open_messages(drive)
            await drive.press("d", "enter")
            await drive.until(lambda: "This message is deleted: d puts it back." in drive.text(), "the notice")
            assert isinstance(drive.app.screen, RewriteScreen)
            assert not covered(drive)
            lines = drive.text().splitlines()
            at = next(index for index, text in enumerate(lines) if "d puts it back" in text)
            assert "ctrl+s keep" in lines[at + 1]
            await drive.press("question_mark")
            await drive.until(lambda: isinstance(drive.app.screen, HelpScreen))


async def test_what_became_of_a_fork_is_told_where_its_dialog_was(tmp_path: Path) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("9", "refund-4711"), size=(80, 24), notices=True) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("f")
            await drive.until(lambda: isinstance(drive.app.screen, ForkScreen))
            await drive.until(lambda: not drive.app.screen.query_one("#fork-only").disabled, "the preview")
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app.screen is drive.main and covered(drive), "the notice")


async def test_of_several_graphs_the_one_called_like_the_file_is_planned_with_as_in_the_page(
    tmp_path: Path, in_samples: None
) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("5", "refund-4711"), size=(80, 24), notices=True) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("r")
            screen = await run_status(drive, "planned")
            assert screen.request().graph.graph == "support_agent"
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.press("m")
            await drive.until(lambda: "beside the code of support_agent" in drive.text("#graph"), "the joined graph")


async def test_which_graph_is_asked_where_none_is_called_like_the_file(tmp_path: Path, other: Path, in_samples: None) -> None:
    with opened(other, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("5", "refund-4711"), size=(80, 24), notices=True) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("m")
            await drive.until(lambda: isinstance(drive.app.screen, ChoiceScreen), "which graph")
            await drive.pilot.pause()
            assert "research_team" in drive.text()
            await drive.press("enter")
            await drive.until(lambda: "beside the code of support_agent" in drive.text("#graph"), "the joined graph")
            await drive.press("r")
            screen = await run_status(drive, "planned")  # the choice holds for runs, too
            assert screen.request().graph.graph == "support_agent"


async def test_a_graph_that_was_named_counts_more_than_the_file(tmp_path: Path, in_samples: None) -> None:
    with opened(SUPPORT, tmp_path / "s.sqlite", graph="research_team") as session:
        async with driven(session) as drive:
            assert drive.app.chosen_graph is None  # the session's own is taken
            drive.app.graph = "other"
            assert drive.app.chosen_graph == "other"
