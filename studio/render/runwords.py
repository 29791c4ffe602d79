"""Parts of a run's plan in words, the same in all three front ends; everything returned is gated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studio.render import labels
from studio.render.gate import line
from studio.requests import RunPlan

_SUBGRAPHS = {
    "continues": "goes on where it stopped",
    "chosen": "goes on from the chosen checkpoint",
    "remembers": "starts, with what it remembers from earlier",
    "restarts": "starts again at its first node",
}


def told(plan: RunPlan) -> list[tuple[str, str]]:
    """(name, words) of what is good to know and asks for no decision."""
    found = [
        *(("Answered", f"{line(text, 200)}: the answer counts again") for text in plan.reused),
        *(("Subgraph", text) for text in subgraphs(plan)),
        *(("No result", line(text, 200)) for text in plan.open_calls),
        ("Ran after this", past_nodes(plan)),
        ("Not in the file", unseen(plan)),
    ]
    return [(name, text) for name, text in found if text]


def limits(plan: RunPlan) -> str:
    """How far and how long it goes: `stops before review, ends after 30 seconds`; "" where it runs to its end."""
    found = [
        f"stops before {labels.names(plan.before)}" if plan.before else "",
        f"stops after {labels.names(plan.after)}" if plan.after else "",
        f"stops after {labels.plural(plan.steps, 'superstep')}" if plan.steps is not None else "",
        f"ends after {plan.timeout:g} seconds" if plan.timeout is not None else "",
        f"{plan.recursion_limit:,} supersteps, then it fails" if plan.recursion_limit is not None else "",
    ]
    return ", ".join(filter(None, found))


def stopped(end: Mapping[str, Any], asked: bool) -> str:
    """Why a run paused: a question, the supersteps that were asked for, or a node to stop at.

    `end` is the data of its last event; `asked`: the run was told where to stop, else it is a breakpoint of the graph.
    """
    if end.get("interrupts"):
        return "waiting for an answer"
    nodes = labels.names([str(one) for one in end.get("next") or ()]) or "what follows"
    if end.get("reason") == "steps":
        return f"stopped after the supersteps that were asked for, before {nodes}"
    return f"stopped before {nodes} ({'as asked' if asked else 'a breakpoint of the graph'})"


def settings(given: Mapping[str, str]) -> str:
    """`user=mara  tier="gold"`; masked and in one line as the plan has it."""
    return "  ".join(f"{line(key, 60)}={line(value, 200)}" for key, value in given.items())


def runs(plan: RunPlan) -> str:
    """`review, research ×3`; "" when nothing is left to run."""
    return labels.names(plan.runs) or (f"what follows {labels.names(plan.kept)}" if plan.kept else "")


def subgraphs(plan: RunPlan) -> tuple[str, ...]:
    """`review goes on where it stopped`, a line for each subgraph."""
    return tuple(dict.fromkeys(f"{line(one.node, 60)} {_SUBGRAPHS[one.how]}" for one in plan.subgraphs))


def past_nodes(plan: RunPlan) -> str:
    """`charge, mail ×2`: nodes whose effects outside may happen again; "" for none."""
    return ", ".join(line(one.name, 60) + (f" ×{one.runs:,}" if one.runs > 1 else "") for one in plan.past_nodes)


def unseen(plan: RunPlan) -> str:
    """What the graph has and the file has not; "" for nothing, and where the graph was not looked at."""
    if plan.drift is None:
        return ""
    parts = [
        f"{word} {', '.join(line(name, 60) for name in names[:12])}{' …' if len(names) > 12 else ''}"
        for word, names in (("channels", plan.drift.channels_new), ("nodes", plan.drift.nodes_new))
        if names
    ]
    return f"{'; '.join(parts)} (new, or not reached yet)" if parts else ""
