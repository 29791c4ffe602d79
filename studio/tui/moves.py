"""Small questions that the screens ask of a tree or a state: other branches, open questions, what a fork hands back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from studio import tagged
from studio.errors import PatchError, StudioError
from studio.history.walk import upward
from studio.model import Address, State, Value
from studio.render import gate, preview

if TYPE_CHECKING:
    from studio.tree import CheckpointTree

WRITTEN = "Written to the scratch file and read back."
SURPRISED = "Forked, but what is stored differs from what you asked for"
NOTED = "Forked as you asked and read back; this could not be done beside it"


@dataclass(frozen=True, slots=True)
class Made:
    """A fork that was written, and whether the person asked to run it."""

    address: Address
    origin: Address
    then_run: bool
    surprises: tuple[str, ...] = ()
    """What there is to say about the stored result."""
    verified: bool = True
    """It is what was asked for: the surprises are about something else."""

    @property
    def title(self) -> str:
        """The sentence above the surprises."""
        return NOTED if self.verified else SURPRISED


@dataclass(frozen=True, slots=True)
class Question:
    """An interrupt that waits for an answer."""

    id: str | None
    value: Value
    node: str | None = None


def has_branches(tree: CheckpointTree | None) -> bool:
    return tree is not None and tree.lane_count > 1


def origin_of(tree: CheckpointTree | None, address: Address) -> Address | None:
    """The checkpoint that the fork above this one was made from; None on a branch that is no fork of ours."""
    if tree is None:
        return None
    try:
        for above in upward(tree, address):
            origin = tree.origin(above)
            if origin is not None:
                return origin
    except (StudioError, LookupError):
        return None
    return None


def open_questions(state: State) -> tuple[Question, ...]:
    """The interrupts of a checkpoint that nobody answered."""
    return tuple(
        Question(interrupt.id, interrupt.value, task.name)
        for task in state.tasks
        for interrupt in task.interrupts
        if not interrupt.answered
    )


def choices(value: Value) -> str:
    """What a question accepts, where it says so; else an example."""
    found = value.get("choices") or value.get("options") if isinstance(value, dict) else None
    if isinstance(found, list) and found:
        return gate.line(" or ".join(one if isinstance(one, str) else preview.summary(one, 20) for one in found[:6]), 80)
    return "yes"


def parse_answer(text: str) -> Any:
    """An answer as JSON where it is JSON, else as the text itself."""
    try:
        return tagged.loads(text)
    except PatchError:
        return text
