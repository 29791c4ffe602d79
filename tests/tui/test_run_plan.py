"""The plan of a run in the terminal: what a person must know before it starts."""

from __future__ import annotations

from studio.model import Address
from studio.requests import RunPlan, TypeUse
from studio.tui.runlog import plan_lines


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
