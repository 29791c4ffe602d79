"""The plan of a run in the terminal: what a person must know before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from textual.widgets import Input

from studio.model import Address
from studio.requests import RunPlan, TypeUse
from studio.tui.runlog import plan_lines
from tests.tui.driving import SAMPLES, driven, opened


def test_the_plan_names_every_stored_type_those_that_need_trust_first() -> None:
    uses = (TypeUse("uuid.UUID", 3, True, ("ids",)), TypeUse("shop.Order", 1, False, ("order",)))
    plan = RunPlan(
        address=Address("made", "", "1"),
        runs=("approve",),
        kept=(),
        asks=(),
        side_effects=(),
        graph="shop",
        graph_file="shop.py",
        interpreter="python",
        types=uses,
        needs_trust=True,
        stored_in="s.sqlite",
    )
    lines = [str(line.content) for line in plan_lines(plan)]
    assert lines.index("! shop.Order  ×1  order") < lines.index("  uuid.UUID  ×3  ids")


@pytest.mark.parametrize("size", [(80, 24), (160, 45)])
async def test_the_terminal_has_the_same_fields_and_steps_on(tmp_path: Path, size: tuple[int, int]) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711"), size) as drive:
            await drive.loaded()
            drive.app.graph = "support_agent"
            await drive.press("r")
            await drive.shows("plan_refund")
            await drive.until(lambda: drive.app.screen.status == "planned", "the plan")  # type: ignore[attr-defined]
            await drive.press("ctrl+o")
            await drive.until(lambda: bool(drive.app.screen.query("#option-steps")), "the fields")
            drive.app.screen.query_one("#option-steps", Input).value = "x"
            await drive.press("ctrl+s")
            await drive.shows("Supersteps at most: 'x' is no whole number")
            drive.app.screen.query_one("#option-steps", Input).value = "1"
            await drive.press("ctrl+s")
            await drive.until(lambda: "stops after 1 superstep" in drive.text("#plan"), "the plan with it")
            await drive.press("ctrl+r")
            await drive.until(lambda: "stopped after the supersteps that were asked for" in drive.text("#log"), "the stop")
            await drive.until(lambda: drive.app.screen.status == "planned", "the next step")  # type: ignore[attr-defined]
            assert "review" in drive.text("#plan")
            await drive.press("ctrl+r")
            await drive.until(lambda: "before ask_approval" in drive.text("#log"), "the next stop")
