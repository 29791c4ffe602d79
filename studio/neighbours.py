"""The tables beside the checkpoints, as a person reads them. None of them is versioned: time travel does not rewind them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import Struct, field

from studio.errors import RefError
from studio.model import Problem, Value
from studio.stores import neighbours as reading
from studio.stores.base import Store
from studio.stores.neighbours import SHAPES, Cell, Neighbour, Plain
from studio.stores.table_sets import CountedSet
from studio.value import decode

T = TypeVar("T")

NOT_VERSIONED = "not versioned: time travel does not rewind it"
VERSIONED = "versioned with the thread"
KINDS = {
    "store": "long-term store",
    "cache": "node cache",
    "checkpoints": "checkpoints",
    "writes": "writes of their tasks",
    "other": "another table",
}
"""What the kind of a table is called where there is room for words."""
MOST_NAMED = 6
_ITEMS = {"store": ("item", "items"), "cache": ("entry", "entries")}


class Item(Struct, frozen=True):
    """An entry of a store or cache, or a row of another table (no namespace, no key, its columns in `facts`)."""

    namespace: str
    key: str
    value: Value
    """Decoded without importing anything; None where it was not read whole."""
    whole: bool
    head: str
    """The beginning of a value that was not read whole."""
    size_bytes: int
    facts: Mapping[str, Plain] = field(default_factory=dict)
    cut: Mapping[str, int] = field(default_factory=dict)
    """Columns of which only the beginning is here, with the bytes of the whole."""


class Items(Struct, frozen=True):
    table: Neighbour
    items: tuple[Item, ...]
    more: bool
    lost: str
    """Why not all could be read; empty where all could."""
    problems: tuple[Problem, ...] = ()
    """Columns that are left out."""


class Namespaces(Struct, frozen=True):
    found: tuple[tuple[str, int, bool], ...]
    """(namespace, its entries up to a bound, whether there are more)."""
    more: bool


class Neighbours:
    """Readings of one store's file, each a look of its own without a trace. Thread-safe."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def tables(self) -> list[Neighbour]:
        """Every table of the file with its kind and its rows up to a bound; () for a store that is no database."""
        return self._peek(reading.tables, [])

    def sets(self) -> list[CountedSet]:
        """The sets of checkpoints and writes among them."""
        counted: Callable[[], list[CountedSet]] | None = getattr(self._store, "table_sets", None)
        return counted() if counted is not None else []

    def named(self, name: str) -> Neighbour:
        """One table. Raises RefError with the names there are."""
        found = self.tables()
        for table in (*(one for one in found if one.name == name), *(one for one in found if one.name.lower() == name.lower())):
            return table
        names = tuple(table.name for table in found)
        raise RefError(f"no table {name!r} in this file", "`studio tables FILE` lists them", "no-such-table", candidates=names)

    def namespaces(self, table: Neighbour) -> Namespaces:
        """The namespaces of a store or cache; none for another table."""
        if table.kind not in SHAPES:
            return Namespaces((), False)
        nothing: tuple[list[tuple[str, int, bool]], bool] = ([], False)
        found, more = self._peek(lambda connection, layout: reading.namespaces(connection, layout, table), nothing)
        return Namespaces(tuple(found), more)

    def items(
        self, table: Neighbour, *, namespace: str | None = None, key: str | None = None, start: int = 0, limit: int = 50,
        whole: bool = False,
    ) -> Items:  # fmt: skip
        """Entries of a store or cache by namespace and key, or rows of another table, from the `start`-th on."""

        def read(connection: Any, layout: Any) -> reading.Page:
            return reading.entries(connection, layout, table, namespace=namespace, key=key, start=start, limit=limit, whole=whole)

        page = self._peek(read, reading.Page())
        return Items(table, tuple(_item(table, row) for row in page.rows), page.more, page.lost, tuple(_left_out(table, page)))

    def _peek(self, read: Callable[[Any, Any], T], otherwise: T) -> T:
        peek: Callable[[Callable[[Any, Any], T]], T] | None = getattr(self._store, "peek", None)
        return peek(read) if peek is not None else otherwise


def _left_out(table: Neighbour, page: reading.Page) -> Iterator[Problem]:
    for kind, names, why in (
        ("undecodable-name", page.unread, "no query can ask for a name that is no UTF-8"),
        ("more-columns", page.beyond, f"only the first {reading.MOST_COLUMNS} are read"),
    ):
        if names:
            shown = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
            count = f"{len(names)} columns are" if len(names) > 1 else "1 column is"
            yield Problem(kind, f"table {table.name}", f"{count} left out ({shown}): {why}.")


def count_words(table: Neighbour | CountedSet) -> str:
    """`12`, `more than 10,000`, or `?` for a table that cannot be read."""
    if table.rows is None:
        return "?"
    return f"more than {table.rows:,}" if table.more else f"{table.rows:,}"


def rows_in_words(table: Neighbour | CountedSet, one: str = "row", many: str = "") -> str:
    """`1 row`, `12 rows`, `more than 10,000 rows`; `many` is `one` with an s unless given."""
    return f"{count_words(table)} {one if table.rows == 1 and not table.more else many or one + 's'}"


def note_of(table: Neighbour) -> str:
    """Whether time travel rewinds a table, and whether it is the one that is shown."""
    if table.kind not in ("checkpoints", "writes"):
        return NOT_VERSIONED
    return f"{VERSIONED} · shown" if table.shown else VERSIONED


def beside(tables: Iterable[Neighbour]) -> list[Neighbour]:
    """What is no table of checkpoints or writes: stores and caches first."""
    order = ("store", "cache", "other")
    return sorted((one for one in tables if one.kind in order), key=lambda one: order.index(one.kind))


def in_words(tables: Iterable[Neighbour]) -> list[str]:
    """`store (12 items)`, `cache (3 entries)`, `app_users`, …: stored names, not yet gated."""
    found = beside(tables)
    words = [f"{one.name} ({rows_in_words(one, *_ITEMS[one.kind])})" if one.kind in _ITEMS else one.name for one in found]
    return words if len(words) <= MOST_NAMED else [*words[:MOST_NAMED], f"and {len(words) - MOST_NAMED} more"]


def _item(table: Neighbour, row: Mapping[str, Cell]) -> Item:
    shape = SHAPES.get(table.kind)
    cells = {name.lower() if shape is not None else name: cell for name, cell in row.items()}
    if shape is None:
        return Item("", "", None, True, "", 0, {name: cell.value for name, cell in cells.items()}, _cut(cells))
    namespace, key, value = (cells.pop(name, Cell(None)) for name in (shape.namespace, "key", shape.value))
    facts = {name: cell.value for name, cell in cells.items()}
    if isinstance(expiry := facts.get("expiry"), int | float):
        facts["expiry"] = _moment(expiry)
    tag = facts.get(shape.encoding) if shape.encoding is not None else "json"
    found: Value = None
    if value.whole and isinstance(value.value, str | bytes):
        found = decode(tag if isinstance(tag, str) else None, value.value)
    elif value.whole:
        found = value.value
    head = "" if value.whole else _text(value.value)
    cut = _cut({shape.namespace: namespace, "key": key, **cells})
    return Item(_text(namespace.value), _text(key.value), found, value.whole, head, value.size, facts, cut)


def _cut(cells: Mapping[str, Cell]) -> dict[str, int]:
    return {name: cell.size for name, cell in cells.items() if not cell.whole}


def _text(value: Plain) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    return "" if value is None else str(value)


def _moment(seconds: float) -> Plain:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return seconds
