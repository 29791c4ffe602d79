"""Authors of a diff over several supersteps, or between two branches: who last changed each value since the ways parted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from studio.errors import RefError
from studio.model import Address, Author, Change

if TYPE_CHECKING:
    from studio.session import Session

STEPS_BACK = 40
"""Of how many supersteps the changes of one channel are compared to name its authors: the last ones that touched it."""
MOST_STEPS = 200
"""Of how many at most, for all channels together."""
NOBODY = (Author(None, None, "none"),)


def traced(session: Session, before: Address, after: Address, changes: Sequence[Change]) -> list[Change]:
    """The changes with their authors.

    Who wrote a value on the way to `after` comes first. Where nothing did, that way left the value as it was when the two parted,
    and what made them differ is the author on the way to `before`: named with that side.
    """
    ways = _near(session, before, after) or _parted(way(session, after), way(session, before))
    if ways is None:
        return [replace(change, authors=NOBODY) for change in changes]
    channels = {change.channel for change in changes}
    mine = _Way(session, ways[0], channels)
    left = {change.channel for change in changes if change.op == "remove" or not mine.writers_of(change.path)}
    other = _Way(session, ways[1], left - mine.cut)
    named = []
    for change in changes:
        made = other.exact.get(change.path, ()) if change.op == "remove" else ()  # only that way has the value
        authors = () if made else mine.writers_of(change.path)
        if not authors and not made and change.channel not in mine.cut:
            made = other.writers_of(change.from_path or change.path)
        if not authors and not made:  # nobody wrote this very value: who changed its channel
            authors = mine.channel_writers(change.channel)
            if not authors and change.channel not in mine.cut:
                made = other.channel_writers(change.channel)
        sided = (author if author.basis == "none" else replace(author, side="before") for author in made)
        named.append(replace(change, authors=authors or tuple(sided) or NOBODY))
    return named


def _near(session: Session, before: Address, after: Address) -> list[Sequence[Address]] | None:
    """(the way to `after`, the way to `before`) since they parted, where one follows the other in a plain thread; else None."""
    ways = [session.chain_between(one, other, STEPS_BACK) or () for one, other in ((before, after), (after, before))]
    return ways if any(ways) else None


def _parted(here: Sequence[Address], there: Sequence[Address]) -> list[Sequence[Address]] | None:
    """The same of two whole branches; None where they share nothing."""
    shared = set(here) & set(there)
    return [[address for address in one if address not in shared] for one in (here, there)] if shared else None


def way(session: Session, address: Address) -> list[Address]:
    """The branch of a checkpoint from its root on; a fork into a new thread continues the branch of what it was made from."""
    found: list[Address] = []
    at: Address | None = address
    while at is not None and at not in found:
        try:
            found = session.tree(at.thread_id).branch(at) + found
        except RefError:  # what it was made from is no longer there
            break
        at = session.forest.made_from(found[0])
    return found


class _Way:
    """The supersteps of one branch since it parted from the other: path -> who changed it last, channel -> all who did."""

    def __init__(self, session: Session, steps: Sequence[Address], channels: set[str]) -> None:
        self.exact: dict[str, tuple[Author, ...]] = {}
        self.by_channel: dict[str, dict[Author, None]] = {}
        self.cut: set[str] = set()
        """Channels of which earlier supersteps were not looked at."""
        for address in self._last_that_touched(session, steps, channels):
            base = session.base_of(address) or session.forest.made_from(address)
            found = session.compare(address, base)
            if found.closed:  # it may have touched any of them, and hides who did so before
                self.exact.clear()
                self.cut |= channels
            for change in found.changes:
                self.by_channel.setdefault(change.channel, {}).update(dict.fromkeys(change.authors))
                self.exact[change.path] = change.authors

    def _last_that_touched(self, session: Session, steps: Sequence[Address], channels: set[str]) -> list[Address]:
        """The supersteps to compare, oldest first: of each channel the last ones that may have touched it."""
        if not channels or len(steps) <= STEPS_BACK:
            return list(steps) if channels else []
        found: list[Address] = []
        seen = dict.fromkeys(channels, 0)
        for address in reversed(steps):
            wrote = session.tree(address.thread_id).row(address).channels
            touched = channels.intersection(wrote) if wrote else channels  # nothing told: it may have touched any
            wanted = {channel for channel in touched if seen[channel] < STEPS_BACK}
            if wanted and len(found) < MOST_STEPS:
                found.append(address)
                seen.update({channel: seen[channel] + 1 for channel in wanted})
            else:
                self.cut |= touched
        return found[::-1]

    def writers_of(self, path: str) -> tuple[Author, ...]:
        """Who changed the value last, or what it lies in."""
        while path:
            if path in self.exact:
                return self.exact[path]
            path = path.rpartition("/")[0]
        return ()

    def channel_writers(self, channel: str) -> tuple[Author, ...]:
        """Who changed the channel at all, if every superstep was looked at."""
        return tuple(self.by_channel.get(channel, ())) if channel not in self.cut else ()
