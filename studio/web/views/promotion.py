"""What putting a branch into the file shows: each row to add, its place, the thread's head before and after."""

from __future__ import annotations

from dataclasses import dataclass

from studio.errors import StudioError
from studio.render import gate, labels, promotions
from studio.render.threadnames import thread_name
from studio.requests import Promotion
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views import tables


@dataclass(frozen=True, slots=True)
class AddedRow:
    number: str
    checkpoint_id: str
    kind: str
    size: str
    writes: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Page:
    title: str
    file: str
    location: str
    thread: str
    number: str
    back_href: str
    here: str
    assurance: str
    rows: tuple[AddedRow, ...]
    summary: str
    place: str
    head: str
    warnings: tuple[str, ...]
    action: str
    seal: str
    """Empty where nothing can be added."""
    error: str
    hint: str
    added: tuple[str, ...]
    """What could not be done after the rows had been added."""


def page(
    session: Session,
    tree: CheckpointTree,
    place: Place,
    found: Promotion | None,
    error: StudioError | None,
    added: tuple[str, ...] = (),
) -> Page:
    """`found` None: nothing can be added, and `error` says why; or the rows were `added`, with these notices."""

    rows = found.rows if found is not None else ()
    count = labels.plural(len(rows), "checkpoint")
    writes = labels.plural(found.writes, "write") if found is not None else ""
    return Page(
        title=promotions.TITLE,
        file=tables.title(session, 60),
        location=gate.line(session.location),
        thread=thread_name(place.address.thread_id, 60),
        number=f"#{tree.number(place.address)}",
        back_href=place.url(),
        here=place.url("promote"),
        assurance=promotions.ASSURANCE,
        rows=tuple(
            AddedRow(
                promotions.numbered(tree, row.address),
                gate.line(row.address.checkpoint_id),
                gate.line(row.kind, 20),
                labels.size(row.size_bytes),
                labels.plural(row.writes, "write"),
                gate.line(row.address.checkpoint_ns, 200),
            )
            for row in rows
        ),
        summary=f"{count} and {writes}" if found is not None else "",
        place=promotions.place_words(found, tree) if found is not None else "",
        head=promotions.head_words(found, tree) if found is not None else "",
        warnings=tuple(gate.line(one, 400) for one in found.warnings) if found is not None else (),
        action=place.url("promote"),
        seal=found.seal if found is not None else "",
        error=gate.line(error.message, 400) if error is not None else "",
        hint=gate.line(error.hint, 400) if error is not None else "",
        added=tuple(gate.line(one, 400) for one in added),
    )
