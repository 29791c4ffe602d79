"""Which part of a file is shown, where it holds more than one thing that could be."""

from __future__ import annotations

from msgspec import Struct

from studio.stores.base import Store


class View(Struct, frozen=True):
    """What a person chose: a table set by the name of its checkpoints (None: the file's own), and the file without its `-wal`."""

    tables: str | None = None
    without_wal: bool = False


PLAIN = View()


def view_of(store: Store) -> View:
    """What a store shows, with the name of the tables that were chosen for it where nobody chose."""
    found = getattr(store, "view", PLAIN)
    return found if isinstance(found, View) else PLAIN


def part_of(store: Store) -> str:
    """Names what is shown, for what is kept about it: two parts of one file must never share their forks.

    Empty for LangGraph's own table names in the file as it is.
    """
    view = view_of(store)
    named = view.tables is not None and view.tables.lower() != "checkpoints"
    return " ".join([*([f"tables {view.tables}"] if named else []), *(["without -wal"] if view.without_wal else [])])


def options_of(store: Store) -> list[str]:
    """The words of a command that show the same part again."""
    view = view_of(store)
    named = view.tables is not None and view.tables.lower() != "checkpoints"
    return [*(["--tables", str(view.tables)] if named else []), *(["--without-wal"] if view.without_wal else [])]


def words_of(store: Store) -> str:
    """The same for a header; what else a kind of store says of itself comes first."""
    view = view_of(store)
    named = view.tables is not None and view.tables.lower() != "checkpoints"
    own: str = getattr(store, "words", "")
    return " · ".join(
        [
            *([own] if own else []),
            *([f"table {view.tables}"] if named else []),
            *(["without its -wal"] if view.without_wal else []),
        ]
    )
