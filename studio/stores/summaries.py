"""Many short threads in one query: how each hangs together, when it began and ended, how large it is.

A list of threads needs of most of them only that they are one chain. SQLite tells that by two strings, the ids and the parents in
the order of the index: a chain's ids are its parents and one more. Whatever is not proven so is left to `stores.outline`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from studio.stores import rows
from studio.stores.base import ThreadKeys
from studio.stores.headers import HEAD_BYTES, created_at
from studio.stores.layout import Layout
from studio.stores.outline import Summary

LONGEST = 2_000
"""Checkpoints of a thread whose ids are joined to one string; a longer one is worth a query of its own."""

_LENGTH = 36
_DASHES = (8, 13, 18, 23)
_VERSION = 14
"""Where a dash, and where a 6 stands in each id that tells its time."""


def summaries(connection: sqlite3.Connection, layout: Layout, batch: Sequence[ThreadKeys]) -> dict[str, Summary]:
    """Thread -> its summary, for those of `batch` (in the order of the list) that are one chain of ids which tell their time.

    One range of the index, one pass where there is none. Their last time is left to the head, which is the last checkpoint.
    `sqlite3.DatabaseError` for a damaged table.
    """
    wanted = {keys.thread_id: keys for keys in batch if keys.namespaces == ("",) and keys.checkpoints <= LONGEST}
    plain = [thread for thread in wanted if thread.isascii()]
    if len(plain) < 2:  # a query for one thread is the outline's
        return {}
    table = layout.checkpoints
    size = f"{rows.SIZE} + ifnull(length({table.or_null('metadata')}), 0)"
    query = (
        f"SELECT thread_id, min({table.id}), substr(checkpoint, 1, {HEAD_BYTES}), {layout.parent}, "  # of the least id
        f"count(*), count({layout.parent}), sum({size}), sum(instr({table.or_null('type')}, '+') > 0), "
        f"group_concat({table.id}), group_concat({layout.parent}) "
        f"FROM {table.name} WHERE thread_id >= ? AND thread_id <= ? GROUP BY thread_id, {table.ns}"
    )
    found: dict[str, Summary] = {}
    for row in connection.execute(query, (min(plain), max(plain))):
        keys = wanted.pop(row[0], None)  # a thread that comes twice is not the one that was asked for
        summary = _chain(keys, row) if keys is not None else None
        if summary is not None:
            found[row[0]] = summary
        else:
            found.pop(row[0], None)
    return found


def _chain(keys: ThreadKeys, row: rows.Row) -> Summary | None:
    """The summary of one group, None where it is not proven to be a chain in the order of its ids.

    Ids that are no text sort behind all others, and before the texts of numbers: the last and the first one tell of them.
    """
    _, first, head, above, number, below, size, sealed, ids, parents = row
    if number != keys.checkpoints or type(first) is not str or type(ids) is not str or not _are_uuid6(ids, number):
        return None
    latest = ids[-_LENGTH:]
    if latest != keys.latest or ids[:_LENGTH] != first:
        return None
    if above is not None or below != number - 1 or (number > 1 and ids[: -_LENGTH - 1] != parents):
        return None
    return Summary((first,), (latest,), latest, size or 0, created_at(rows.bytes_of(head), first), None, sealed or 0)


def _are_uuid6(ids: str, number: int) -> bool:
    """Whether so many ids, joined by commas, are all of the form that sorts by time."""
    if (
        len(ids) != number * (_LENGTH + 1) - 1
        or ids.count(",") != number - 1
        or ids[_LENGTH :: _LENGTH + 1] != "," * (number - 1)
    ):
        return False
    if ids[_VERSION :: _LENGTH + 1] != "6" * number:
        return False
    dashes = "-" * number
    for at in _DASHES:  # noqa: SIM110 - thousands of threads are asked: no generator for each
        if ids[at :: _LENGTH + 1] != dashes:
            return False
    return True
