"""What is wrong with the rows of one file, and the way around it: a damaged table is read row by row."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from typing import TypeVar

from studio.model import Address, Problem
from studio.stores.layout import Table
from studio.stores.rows import Row, lenient, only_damage
from studio.stores.salvage import Key, Salvaged, ranges, salvage

T = TypeVar("T")


Saved = tuple[dict[tuple[str, str], Problem], dict[str, set[int]], dict[str, tuple[object, Salvaged]]]


class Damage:
    """Remembers, for each state of the file, which tables are damaged and which of their rows can be read."""

    def __init__(self, token: Callable[[], object], is_cut: Callable[[], bool] = lambda: False) -> None:
        self._token = token
        self._is_cut = is_cut
        """Whether the end of the file is missing: SQLite reads zeros there, and an index has holes without an error."""
        self._salvaged: dict[str, tuple[object, Salvaged]] = {}
        self._problems: dict[tuple[str, str], Problem] = {}
        self._in_part: dict[str, set[int]] = {}
        self._unreached: set[tuple[str, Key]] = set()
        """Tables and keys whose rows no query led to: what is known of them is what was salvaged."""

    def either(self, table: Table, by_query: Callable[[], T], row_by_row: Callable[[], T]) -> T:
        """`by_query`, unless the table is known to be damaged or turns out to be: then `row_by_row`."""
        if not self.is_damaged(table):
            try:
                return by_query()
            except sqlite3.DatabaseError as error:
                only_damage(error)
        return row_by_row()

    def keyed(self, table: Table, address: Address, by_query: Callable[[], T], row_by_row: Callable[[], T]) -> T:
        """The same for the rows under one address, which a query may reach in a damaged table, too: then they are all there."""
        place = (table.plain_name, _key(address))
        if ("index-disagrees", f"table {table.plain_name}") not in self._problems and not self._is_cut():
            try:
                found = by_query()
            except sqlite3.DatabaseError as error:
                only_damage(error)
            else:
                self._unreached.discard(place)
                return found
        self._unreached.add(place)
        return row_by_row()

    def lost_under(self, table: Table, address: Address) -> bool:
        """Whether rows under an address may be missing; known once `keyed` was asked for them."""
        held = self._salvaged.get(table.plain_name)
        if held is None or (table.plain_name, _key(address)) not in self._unreached:
            return False
        found = held[1]
        return not found.whole or len(found.lost_keys) < len(found.lost) or _key(address) in found.lost_keys.values()

    def lost_after(self, table: Table, address: Address) -> bool:
        """Whether an index tells of a row with a larger id in the same namespace that cannot be read."""
        held = self._salvaged.get(table.plain_name)
        if held is None:
            return False
        thread, ns, identity = _key(address)
        return any(key[:2] == (thread, ns) and key[2] > identity for key in held[1].lost_keys.values())

    def misled(self, table: Table, words: str = "Its index leads to other rows; it is read without.") -> sqlite3.DatabaseError:
        """To raise where an index gave a row of another key than was asked for; the table itself is read then."""
        self.report("index-disagrees", f"table {table.plain_name}", words)
        error = sqlite3.DatabaseError("an index disagrees with its table")
        error.sqlite_errorname = "SQLITE_CORRUPT_INDEX"
        return error

    def is_damaged(self, table: Table) -> bool:
        held = self._salvaged.get(table.plain_name)
        return (held is not None and held[0] == self._token()) or self._is_cut()

    def rows_of(self, connection: sqlite3.Connection, table: Table) -> Salvaged:
        """The readable rows of a damaged table; the table is walked once."""
        token = self._token()
        held = self._salvaged.get(table.plain_name)
        if held is None or held[0] != token:
            factory, connection.text_factory = connection.text_factory, lenient
            try:
                held = (token, salvage(connection, table))
            finally:
                connection.text_factory = factory
            self._salvaged[table.plain_name] = held
            self._report_lost(table, held[1])
        return held[1]

    def _report_lost(self, table: Table, found: Salvaged) -> None:
        where = f"table {table.plain_name}"
        self._problems.pop(("damaged", where), None)
        if found.lost:
            threads = sorted({key[0] for key in found.lost_keys.values()})
            of = f" (threads {', '.join(threads[:5])}{', …' if len(threads) > 5 else ''})" if threads else ""
            more = "" if found.whole else " There may be more."
            self.report("damaged", where, f"{len(found.lost)} rows cannot be read{of}: rows {ranges(found.lost)}.{more}")
        elif not found.whole:
            self.report("damaged", where, "A part of this table cannot be read; how many rows it held is not known.")

    def rowids_at(self, connection: sqlite3.Connection, table: Table, address: Address) -> list[int]:
        """Rows of a damaged table under one address."""
        return self.rows_of(connection, table).at(_key(address))

    def row(self, connection: sqlite3.Connection, table: Table, columns: str, rowid: int) -> Row | None:
        """One row; None, and a problem, where it cannot be read."""
        try:
            found: Row | None = connection.execute(f"SELECT {columns} FROM {table.name} WHERE rowid = ?", (rowid,)).fetchone()
        except sqlite3.DatabaseError as error:
            only_damage(error)
            self._in_part.setdefault(table.plain_name, set()).add(rowid)
            return None
        return found

    def report(self, kind: str, where: str, message: str) -> None:
        self._problems[kind, where] = Problem(kind, where, message)

    def replace(self, kind: str, prefix: str, problems: Iterable[Problem]) -> None:
        """Put these in the place of those of one kind whose place begins with `prefix`."""
        for key in [key for key in self._problems if key[0] == kind and key[1].startswith(prefix)]:
            del self._problems[key]
        for problem in problems:
            self._problems[problem.kind, problem.where] = problem

    def saved(self) -> Saved:
        return dict(self._problems), {table: set(found) for table, found in self._in_part.items()}, dict(self._salvaged)

    def restore(self, saved: Saved) -> None:
        """Forget what was found since `saved`: by a look at a file that was changing under it."""
        self._problems, self._in_part, self._salvaged = saved

    def problems(self) -> list[Problem]:
        in_part = [
            Problem("damaged", f"table {table}, rows {ranges(found)}", f"{len(found)} rows cannot be read whole.")
            for table, found in self._in_part.items()
        ]
        return [*self._problems.values(), *in_part]


def _key(address: Address) -> Key:
    return address.thread_id, address.checkpoint_ns, address.checkpoint_id
