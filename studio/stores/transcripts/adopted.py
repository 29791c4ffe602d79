"""Forks that the studio wrote, read along with the session that they were made from.

A fork's file repeats the source's records up to its first change. Its sheet says which ones: they are the same records, and only
what the fork has for itself stands in the tree, as a branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from studio.stores.transcripts.record import Indexed, Record

OWN_IDS = frozenset(("claude-code", "codex"))
"""Formats whose forks have ids of their own in their records."""


_KEPT = ("cwd", "git_branch", "permission_mode")


class Fork(Struct, frozen=True):
    """A fork as a store is told of it."""

    path: str
    source: str
    """Real path of the file that it was made from."""
    session: str
    records: tuple[str | None, ...]
    """For each record of the fork, the id of the source's record that it repeats."""
    copies: tuple[str | None, ...] = ()
    """For each record of the fork, what it says is called as in this record of the source: an edit is an edit of that."""
    created_at: str | None = None
    own_at: tuple[int, int] = (0, 0)
    """(byte, line) where its own records begin, which alone have to be read."""


def own_id(session: str, record: Record, kind: str, at: int) -> str:
    """What a record of a fork is called that repeats none of its source."""
    return record.id if kind in OWN_IDS else f"{session}:{at}"


def adopt(indexed: Indexed, fork: Fork) -> None:
    """Call the repeated records of a fork as the source calls them. Does nothing the second time."""
    if indexed.facts.get("adopted"):
        return
    indexed.facts["adopted"] = True
    indexed.facts.pop("tokens", None)
    indexed.notes = []
    indexed.problems = []
    names: dict[str, str] = {}
    fresh: list[str] = []
    skipped = fork.own_at[1]
    if skipped and indexed.records and indexed.records[0].more:  # nothing was read that these could differ from
        first = indexed.records[0]
        first.more = {name: value for name, value in (first.more or {}).items() if name not in _KEPT} or None
    for at, record in enumerate(indexed.records, skipped):
        known = fork.records[at] if at < len(fork.records) else None
        fresh.append(known if known is not None else own_id(fork.session, record, indexed.format, at))
        names[record.id] = fresh[-1]
    indexed.facts["created_at"] = fork.created_at
    for at, (record, name) in enumerate(zip(indexed.records, fresh, strict=True), skipped):
        copied = fork.copies[at] if at < len(fork.copies) else None
        if copied is not None and copied != name:
            record.more = {**(record.more or {}), "said_as": copied}
        record.id = name
        if record.parent is not None:
            record.parent = names.get(record.parent, record.parent)
        if record.key:
            record.key = names.get(record.key, record.key)


def of_sources(forks: Sequence[Fork], sources: dict[str, str], sessions: frozenset[str]) -> list[tuple[Fork, str]]:
    """(fork, path of its source as it was found) of those whose source is shown and that are not shown themselves."""
    return [(fork, sources[fork.source]) for fork in forks if fork.source in sources and fork.session not in sessions]
