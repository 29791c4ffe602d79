"""What lies beside the checkpoints in a file: its other tables, their entries, and the ways to see another part of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass

from studio.neighbours import KINDS, NOT_VERSIONED, Item, Items, Namespaces, Neighbours, in_words, note_of, rows_in_words
from studio.render import gate, labels, masking, preview
from studio.session import Session
from studio.stores.neighbours import SHAPES, Neighbour
from studio.stores.view import View
from studio.tagged import dumps
from studio.web.links import Place, sealed

PAGE = 50
SHORT = 20_000
"""Characters of a value that a list shows."""
LONG = 400_000
"""Characters of one value on a page of its own; the rest is in the plain text."""
MOST_CHIPS = 60

SlugOf = Callable[[View], str]
"""The slug under which another view of the same file is open."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One part of the file that can be shown."""

    name: str
    facts: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class TableRow:
    name: str
    kind: str
    rows: str
    columns: str
    note: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class Chip:
    name: str
    rows: str
    href: str
    current: bool


@dataclass(frozen=True, slots=True)
class Entry:
    namespace: str
    key: str
    facts: tuple[tuple[str, str], ...]
    summary: str
    text: str
    """The value, laid out; empty where the summary says it all."""
    size: str
    more_href: str
    """Where the whole value is, where this is not all of it."""


@dataclass(frozen=True, slots=True)
class Entries:
    name: str
    kind: str
    rows: str
    note: str
    chips: tuple[Chip, ...]
    more_chips: bool
    items: tuple[Entry, ...]
    is_plain: bool
    """Rows of columns, without namespaces and keys."""
    lost: str
    problems: tuple[str, ...]
    start: int
    previous_href: str
    next_href: str
    all_href: str
    """Back from one key to the list; empty in the list."""
    plain_href: str
    """The value as plain text, for one key."""


@dataclass(frozen=True, slots=True)
class Beside:
    """The line about it on the list of threads."""

    choices: tuple[Choice, ...]
    words: str
    href: str


def title(session: Session, width: int = 80) -> str:
    """The file's name, with what part of it is shown."""
    name = gate.line(os.path.basename(session.location), width)
    return f"{name} · {gate.line(session.view_words, width)}" if session.view_words else name


def beside(session: Session, file: str, slug_of: SlugOf) -> Beside:
    if session.is_transcript:
        return Beside((), "", "")
    neighbours = session.neighbours()
    words = ", ".join(in_words(neighbours.tables()))
    return Beside(choices(session, neighbours, slug_of), gate.line(words, 300), Place(file).url("tables"))


def choices(session: Session, neighbours: Neighbours, slug_of: SlugOf) -> tuple[Choice, ...]:
    """The sets of checkpoints, and the file with and without its `-wal`; none where there is nothing to choose."""
    view, found = session.view, []
    sets = neighbours.sets()
    for one in sets if len(sets) > 1 else ():
        href = Place(slug_of(View(one.checkpoints, view.without_wal))).url("threads")
        facts = rows_in_words(one, "checkpoint") + ("" if one.writes else ", no writes")
        found.append(Choice(gate.line(one.checkpoints, 60), facts, href, one.shown))
    if view.without_wal or any(problem.kind == "wal-disagrees" for problem in session.problems()):
        for without, name in ((False, "with its -wal"), (True, "without its -wal")):
            href = Place(slug_of(View(view.tables, without))).url("threads")
            found.append(
                Choice(name, "as SQLite reads it" if not without else "the file alone", href, view.without_wal == without)
            )
    return tuple(found)


def table_rows(tables: list[Neighbour], file: str, current: str) -> tuple[TableRow, ...]:
    return tuple(
        TableRow(
            gate.line(table.name, 80),
            KINDS[table.kind],
            rows_in_words(table),
            gate.line(", ".join(table.columns), 120) or "cannot be read",
            note_of(table),
            _url(file, table.name),
            table.name == current,
        )
        for table in tables
    )


def entries(items: Items, namespaces: Namespaces, file: str, asked: Asked, *, show_secrets: bool) -> Entries:
    table = items.table
    chips = [
        Chip(
            gate.line(masking.text(name), 80),
            f"{'> ' if more else ''}{rows:,}",
            _url(file, table.name, name),
            name == asked.namespace,
        )
        for name, rows, more in namespaces.found[:MOST_CHIPS]
    ]
    one = asked.key is not None
    here = (file, table.name, asked.namespace)
    return Entries(
        gate.line(table.name, 80),
        KINDS[table.kind],
        rows_in_words(table),
        NOT_VERSIONED if table.kind not in ("checkpoints", "writes") else "",
        tuple(chips),
        namespaces.more or len(namespaces.found) > MOST_CHIPS,
        tuple(_entry(item, file, table, LONG if one else SHORT, show_secrets=show_secrets) for item in items.items),
        table.kind not in SHAPES,
        gate.line(items.lost, 300),
        tuple(gate.line(problem.message, 300) for problem in items.problems),
        asked.start,
        _url(*here, start=max(0, asked.start - PAGE)) if asked.start and not one else "",
        _url(*here, start=asked.start + PAGE) if items.more and not items.lost and not one else "",
        _url(file, table.name) if one or asked.namespace is not None else "",
        _url(*here, key=asked.key, part="tables/value") if one else "",
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """What the query of a page of entries says."""

    namespace: str | None = None
    key: str | None = None
    start: int = 0


def value_text(item: Item, *, show_secrets: bool) -> str:
    """A whole value as text, secrets masked."""
    document = masking.document(item.value, item.key, show_secrets=show_secrets)
    return document if isinstance(document, str) else dumps(document, indent=2)


def _entry(item: Item, file: str, table: Neighbour, most: int, *, show_secrets: bool) -> Entry:
    facts = []
    for name, value in item.facts.items():
        if value is not None or table.kind not in SHAPES:
            size = f" … {labels.size(item.cut[name])}" if name in item.cut else ""
            facts.append((gate.line(name, 60), _plain(name, value, show_secrets=show_secrets) + size))
    if table.kind not in SHAPES:
        return Entry("", "", tuple(facts), "", "", "", "")
    named = "key" not in item.cut and SHAPES[table.kind].namespace not in item.cut
    whole_href = _url(file, table.name, item.namespace, key=item.key) if named else ""
    if item.whole:
        text = value_text(item, show_secrets=show_secrets)
        short = len(text) <= most
        summary = preview.summary(item.value, 200, key=item.key, show_secrets=show_secrets)
        shown = gate.clean(text[:most]) + ("" if short else " …")
    else:
        short, shown = False, ""
        summary = gate.line(masking.text(item.head, item.key, show_secrets=show_secrets), 200)
    return Entry(
        gate.line(masking.text(item.namespace), 160),
        gate.line(masking.text(item.key), 160) or "(empty key)",
        tuple(facts),
        summary,
        shown,
        labels.size(item.size_bytes),
        "" if short else whole_href,
    )


def _plain(name: str, value: object, *, show_secrets: bool) -> str:
    if isinstance(value, str):
        return gate.line(masking.text(value, name, show_secrets=show_secrets), 120)
    return preview.summary(value, 60, key=name, show_secrets=show_secrets)


def _url(
    file: str, table: str, namespace: str | None = None, *, key: str | None = None, start: int = 0, part: str = "tables"
) -> str:
    pairs = [("table", sealed(table)), ("in", _sealed(namespace)), ("key", _sealed(key)), ("start", str(start or ""))]
    return Place(file).url(part, [(name, value) for name, value in pairs if value])


def _sealed(name: str | None) -> str:
    """With a mark before it, so that an empty name is not the same as none."""
    return "" if name is None else f"={sealed(name)}"
