"""What both UIs say of a checkpoint where there is little to show: what is odd, cannot be read or was not scheduled."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from studio.model import Address, Comparison, Problem, State
from studio.render import gate, labels
from studio.tree import CheckpointTree

NOT_KNOWN = "What changed is not known: the state of this checkpoint cannot be read."
NOT_KNOWN_SINCE = "What changed is not known: the state that this one is compared with cannot be read."


def notes(problems: Iterable[Problem], tree: CheckpointTree, here: Address) -> tuple[tuple[str, str], ...]:
    """(place, message) of each problem, gated, each message once.

    The place is empty for the checkpoint `here`, else `#2`, `/messages/3` or both; several of them are joined by commas.
    """
    places: dict[str, list[str]] = {}
    for problem in problems:
        found = places.setdefault(gate.line(problem.message, 300), [])
        place = _place(problem.where, tree, here)
        if place not in found:
            found.append(place)
    return tuple((_joined(found), message) for message, found in places.items())


def sentences(problems: Iterable[Problem], tree: CheckpointTree, here: Address) -> tuple[str, ...]:
    """The same as one line each: `#2: the state cannot be read: …`."""
    return tuple(f"{place}: {message}" if place else labels.sentence(message) for place, message in notes(problems, tree, here))


def hidden_change(comparison: Comparison) -> str:
    """That an empty list of changes means nothing, since a state cannot be read; else empty."""
    if not comparison.closed:
        return ""
    return NOT_KNOWN if comparison.after.address in comparison.closed else NOT_KNOWN_SINCE


def nothing_scheduled(state: State) -> str:
    """Why a checkpoint has no tasks."""
    if state.next == ():
        return "Nothing: it ended here."
    if state.closed:
        return "Not known: the state of this checkpoint cannot be read."
    return "Not known: this file does not tell what was scheduled from here."


def _place(where: str, tree: CheckpointTree, here: Address) -> str:
    ident, slash, rest = where.partition("/")
    inner = gate.line(slash + rest, 200)
    if ident == here.checkpoint_id:
        return inner
    other = replace(here, checkpoint_id=ident)
    name = f"#{tree.number(other)}" if other in tree else gate.line(ident, 120)
    return f"{name} {inner}".strip()


def _joined(places: list[str]) -> str:
    return places[0] if len(places) == 1 else ", ".join(place or "here" for place in places)
