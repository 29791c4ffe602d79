"""`studio export`: every checkpoint with its changes, as JSON lines, oldest first, in bounded memory."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress

from studio.cli.common import note_problems, opened
from studio.cli.documents import Doc, Documents
from studio.cli.out import Out
from studio.errors import RefError, StudioError
from studio.model import Address, Problem
from studio.noted import hidden_change
from studio.render import labels
from studio.render.gate import line
from studio.session import Session

HUGE = 200_000_000
"""Bytes of stored state from which on a warning is due."""

AHEAD = 32
"""Checkpoints that are read in one look."""


def run(options: Namespace, out: Out) -> int:
    """Always JSON lines, with or without `--json`."""
    from studio.tagged import dumps

    with opened(options, out) as session:
        documents = Documents(out.show_secrets)
        threads = [session.one_thread(options.thread)] if options.thread is not None else session.thread_ids()
        said: set[Problem] = set()
        for thread in threads:
            try:
                _warn(session, thread, options.values, out)
            except RefError:
                out.note(f"! none of the rows of thread {line(thread)} can be read")
                continue
            for document in lines(session, thread, options.values, documents, said):
                out.say(dumps(document))
        note_problems(out, session)
        return int(session.refused_key())


def _warn(session: Session, thread: str, values: str, out: Out) -> None:
    """Say so when the output will be huge. RefError when no row of the thread can be read."""
    size = sum(session.tree(thread).header(address).size_bytes for address in _addresses(session, thread))
    if size > HUGE and values in ("all", "changed"):
        out.note(f"this thread holds {labels.size(size)} of state; --values heads or none writes less")


def _addresses(session: Session, thread: str) -> list[Address]:
    return [Address(thread, *key) for key in session.tree(thread).keys(None)]


def _fresh(session: Session, said: set[Problem]) -> list[Problem]:
    """Losses of the whole file that no line has told yet."""
    found = [one for one in session.problems() if one not in said]
    said.update(found)
    return found


def lines(session: Session, thread: str, values: str, documents: Documents, said: set[Problem] | None = None) -> Iterator[Doc]:
    """The documents of one thread, each checkpoint after its parent. What the file lost stands once, with the next line."""
    said = set() if said is None else said
    tree = session.tree(thread)
    heads = set(tree.leaves()) if values == "heads" else set()
    unsaid = documents.problems([*_fresh(session, said), *tree.problems])
    addresses = _addresses(session, thread)
    for place, address in enumerate(addresses):
        if place % AHEAD == 0:
            with suppress(StudioError):  # what cannot be read is told row by row
                session.prefetch(addresses[place : place + AHEAD])
        try:
            state = session.state(address)
            found = session.compare(address)
        except StudioError as error:
            lost = Problem("unreadable", address.checkpoint_id, error.message)
            yield {"checkpoint": documents.header(tree.header(address)), "changes": [], "problems": documents.problems([lost])}
            continue
        document = documents.state(state, values=values == "all" or address in heads)
        if values == "changed":
            names = {change.channel for change in found.changes}
            document["values"] = documents.values({name: value for name, value in state.values.items() if name in names})
        kin = documents.kin(session.kin(state.checkpoint))
        document |= {"number": tree.number(address), **documents.calls(session, state), **kin}
        document["explained"] = documents.explained(found.explained)
        document["changes"] = [documents.change(change) for change in found.changes]
        document["unknown"] = hidden_change(found) or None
        mine = [one for one in found.problems if one.where.startswith(address.checkpoint_id) and one not in state.problems]
        document["problems"] += [*documents.problems(mine), *unsaid]
        unsaid = documents.problems(_fresh(session, said))
        yield document
