"""Two branches side by side: by their tasks, with their ends and both conversations, by keys alone."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from studio.requests import ForkRequest, Patch
from studio.tui.screens.compare import CompareScreen
from tests.branching import SECRET, make_talk
from tests.tui.driving import SAMPLES, Drive, driven, opened
from tests.web.conftest import client_of


async def shown(drive: Drive, words: str, part: str = "#steps") -> None:
    await drive.until(lambda: any(words in line for line in drive.lines(part)), f"{words} in {part}")


async def test_the_value_that_a_fork_set_comes_before_what_followed_and_what_both_share_is_left_out(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        origin, head = session.resolve("#4", "refund-4711"), session.resolve("head", "refund-4711")
        fork = session.fork(ForkRequest(origin, patch=Patch({"/order/total": 49.9}))).address
        again = session.fork(ForkRequest(fork, patch=Patch({"/intent/wants": "help"}))).address
        async with driven(session, origin) as drive:
            await drive.app.push_screen(CompareScreen(session, head, fork))
            await shown(drive, "/refund", "#ends")
            ends = drive.lines("#ends")
            assert ends[0].startswith("order") and "/order/total" in ends[1] and "499.0" in ends[1] and "49.9" in ends[1]
            assert not any("/intent" in line or "/policy" in line or "/messages/0" in line for line in ends)

            await drive.app.push_screen(CompareScreen(session, fork, again))
            await shown(drive, "/intent/wants", "#ends")
            assert not any("/order/total" in line for line in drive.lines("#ends")), "set before these two parted"


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_a_fork_and_its_origin_are_compared_by_keys_alone(tmp_path: Path, size: tuple[int, int]) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        origin = session.resolve("#4", "refund-4711")
        fork = session.fork(ForkRequest(origin, patch=Patch({"/order/total": 49.9}))).address
        async with driven(session, fork, size) as drive:
            await drive.loaded()
            await drive.press("7")
            await shown(drive, "≠")
            text = drive.text()
            assert "They part after #3 look_up_order" in text and re.search(r"/order/total +499\.0 +49\.9", text)
            assert re.search(r"#4 read_history .* ≠ .*s1 set /order/total", text)
            assert "Ends" in text and "Conversations" in text
            await drive.press("tab")
            await drive.shows("set by hand")
            await drive.press("3")
            await drive.shows("messages that both have")
            await drive.press("1", "left", "enter")
            await drive.until(lambda: drive.app.screen is drive.main and drive.main.here and drive.main.here.number == "4")


async def test_a_pinned_checkpoint_is_the_left_side_and_the_pin_stays_while_the_thread_grows(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#6", "refund-4711"), (120, 32)) as drive:
            await drive.loaded()
            await drive.press("7")
            await drive.until(lambda: any("one branch" in note.message for note in drive.app._notifications), "why not")
            await drive.press("d")
            await drive.go("9")
            session.fork(ForkRequest(session.resolve("#4", "refund-4711"), patch=Patch({"/order/total": 49.9})))
            await drive.until(lambda: drive.main.checkpoints is not None and len(drive.main.checkpoints) > 14, "the fork")
            await drive.shows("vs #6 (pinned)")
            await drive.press("7")
            await drive.shows("#9 reply comes 3 supersteps after #6 review")
            assert "#6 review · pinned" in drive.text("#compare-head")
            await drive.press("x")
            await drive.until(lambda: "left  #9 reply" in drive.text("#compare-head"), "the swapped sides")


async def test_long_branches_come_a_page_at_a_time_masked_and_gated(tmp_path: Path) -> None:
    path = make_talk(tmp_path / "talk.sqlite", turns=140, rude_from=3)
    with opened(path, tmp_path / "s.sqlite") as session:
        left, right = session.tree("talk").leaves()
        async with driven(session, right, (160, 45)) as drive:
            await drive.app.push_screen(CompareScreen(session, left, right))
            await shown(drive, "more, enter shows them", "#chats")
            await shown(drive, "more, enter shows them")
            await drive.press("3", "G", "enter")
            await shown(drive, "Sorry.", "#chats")
            whole = "\n".join(line for part in ("#steps", "#ends", "#chats") for line in drive.lines(part)) + drive.text()
            assert SECRET not in whole and "\u202e" not in whole and "\x1b" not in whole
            assert any("with kind regards" in line and "as short as can be" in line for line in drive.lines("#chats"))


async def test_the_copied_link_opens_the_browser_with_the_same_tab_and_pin(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        pin = session.resolve("#6", "refund-4711")
        async with driven(session, pin, (120, 32)) as drive:
            await drive.loaded()
            await drive.press("d")
            await drive.go("9")
            await drive.press("3")
            await drive.shows("order")
            drive.main.do_copy_link()
            await drive.until(lambda: "studio web" in drive.app.clipboard, "the copied command")
            target = shlex.split(drive.app.clipboard)[-1]
    with client_of(SAMPLES / "support_agent.sqlite") as page:
        there = page.get(f"/f/support_agent.sqlite{target.removeprefix('/')}").text
        assert "State" in [tab.text for tab in BeautifulSoup(there, "html.parser").select(".tabs [aria-current]")]
        assert "#6 is pinned" in " ".join(link.get_text() for link in BeautifulSoup(there, "html.parser").select("a.compared"))
