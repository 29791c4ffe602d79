"""The list of an agent's todos or tasks at a turn, and how it got there."""

from __future__ import annotations

from dataclasses import dataclass

from studio import wording
from studio.model import Address
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place

PAGE = 60


@dataclass(frozen=True, slots=True)
class StepView:
    number: str
    href: str
    changes: tuple[tuple[str, str, str], ...]
    """(sign, what, text)."""
    more: int
    standing: str
    current: bool


@dataclass(frozen=True, slots=True)
class TodosView:
    lines: tuple[wording.TodoLine, ...] = ()
    standing: str = ""
    done: int = 0
    total: int = 0
    steps: tuple[StepView, ...] = ()
    """The newest first."""
    earlier: int = 0
    earlier_href: str = ""
    empty: str = ""


MOST_CHANGES = 24


def todos_view(session: Session, tree: CheckpointTree, place: Place, address: Address, *, before: int | None = None) -> TodosView:
    branch = session.branch(address)
    if branch is None:
        return TodosView(empty="This is no agent's transcript: it keeps no list of todos.")
    found = branch.todos()
    if not found:
        return TodosView(empty="The agent kept no list of todos up to this turn.")
    stop = len(found) if before is None else max(0, min(before, len(found)))
    start = max(0, stop - PAGE)
    secret = session.show_secrets
    now = found[-1].todos
    done = sum(one.is_done for one in now)
    steps = []
    for one in reversed(found[start:stop]):
        changes = wording.changes_words(one.changes, secret)
        finished = sum(todo.is_done for todo in one.todos)
        steps.append(
            StepView(
                tree.number(one.address),
                place.at_address(one.address, path=None, tab="todos").url(),
                tuple(changes[:MOST_CHANGES]),
                max(0, len(changes) - MOST_CHANGES),
                f"{finished} of {len(one.todos)}",
                one.address == place.address,
            )
        )
    return TodosView(
        lines=tuple(wording.todo_line(one.text, one.status, secret) for one in now),
        standing=f"{done} of {len(now)} done",
        done=done,
        total=len(now),
        steps=tuple(steps),
        earlier=start,
        earlier_href=place.url("todos", [("before", str(start))]),
    )
