"""Which tables of a database belong together: a table of checkpoints and the table of its writes.

Tables are known by their columns. Where a file holds several of each, they are paired by what their names share:
`a_checkpoints` goes with `a_writes`, `lg_cp` with `lg_wr`; equals go by the order in which they were made, since LangGraph makes
the two one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct


class TableSet(Struct, frozen=True):
    """Plain names; `writes` is None where no table of writes goes with these checkpoints."""

    checkpoints: str
    writes: str | None


class CountedSet(Struct, frozen=True):
    """A set with its checkpoints counted up to a bound."""

    checkpoints: str
    writes: str | None
    rows: int | None
    """None where the table cannot be read."""
    more: bool
    """There are more than `rows`."""
    shown: bool


def is_checkpoints(columns: Collection[str]) -> bool:
    """Whether these columns, in lower case, are those of a table of checkpoints in any layout."""
    return {"thread_id", "checkpoint_id", "checkpoint", "metadata", "parent_checkpoint_id"} <= set(columns) or {
        "thread_id",
        "thread_ts",
        "parent_ts",
        "checkpoint",
    } <= set(columns)


def is_writes(columns: Collection[str], key: str | None = None) -> bool:
    """Whether they are those of a table of writes; with `key`, of one whose rows name checkpoints by this column."""
    keys = (key,) if key is not None else ("checkpoint_id", "thread_ts")
    return any({"thread_id", one, "task_id", "idx", "channel", "value"} <= set(columns) for one in keys)


def key_of(columns: Collection[str]) -> str:
    """The column that holds a checkpoint's id: LangGraph 0.1 called it `thread_ts`."""
    return "thread_ts" if "thread_ts" in columns and "checkpoint_id" not in columns else "checkpoint_id"


def find_sets(tables: Mapping[str, Sequence[str]]) -> list[TableSet]:
    """The sets among tables (name -> columns in lower case, in the order they were made), in the order of their checkpoints."""
    order = {name: number for number, name in enumerate(tables)}
    checkpoints = [name for name, columns in tables.items() if is_checkpoints(columns)]
    pairs = [
        (_likeness(name, writes), name, writes)
        for name in checkpoints
        for writes, columns in tables.items()
        if is_writes(columns, key_of(tables[name]))
    ]
    pairs.sort(key=lambda pair: (*(-part for part in pair[0]), abs(order[pair[1]] - order[pair[2]])))
    found: dict[str, str] = {}
    taken: set[str] = set()
    for _, name, writes in pairs:
        if name not in found and writes not in taken:
            found[name] = writes
            taken.add(writes)
    return [TableSet(name, found.get(name)) for name in checkpoints]


def _likeness(checkpoints: str, writes: str) -> tuple[int, int]:
    """How much two names share beside the words that say what they hold: (characters, whether both are LangGraph's own)."""
    left = re.sub(r"checkpoints?", "", checkpoints.lower())
    right = re.sub(r"(checkpoint_?)?writes?", "", writes.lower())
    own = checkpoints.lower() == "checkpoints" and writes.lower() == "writes"
    if left == right:
        return 1_000 + len(left), own
    prefix = _same_start(left, right)
    return prefix + _same_start(left[prefix:][::-1], right[prefix:][::-1]), own


def _same_start(left: str, right: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
