"""Two branches side by side: what made them differ stands first."""

from __future__ import annotations

from pathlib import Path

from studio.requests import ForkRequest, Patch
from studio.tui.screens.compare import CompareScreen
from tests.tui.driving import SAMPLES, driven, opened


async def test_the_value_that_a_fork_set_comes_before_what_followed_and_what_both_share_is_left_out(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        origin = session.resolve("#4", "refund-4711")
        fork = session.fork(ForkRequest(origin, patch=Patch({"/order/total": 49.9}))).address
        again = session.fork(ForkRequest(fork, patch=Patch({"/intent/wants": "help"}))).address
        async with driven(session, origin) as drive:
            await drive.app.push_screen(CompareScreen(session, origin, fork))
            await drive.until(lambda: any("/refund/amount" in line for line in drive.lines("#ends")), "the ends")
            ends = drive.lines("#ends")
            assert "/order/total" in ends[0] and "499.0" in ends[0] and "49.9" in ends[0]
            assert not any("/intent" in line or "/policy" in line or "/messages/0" in line for line in ends)

            await drive.app.push_screen(CompareScreen(session, fork, again))
            await drive.until(lambda: any("/intent/wants" in line for line in drive.lines("#ends")), "the ends")
            assert not any("/order/total" in line for line in drive.lines("#ends")), "set before these two parted"
