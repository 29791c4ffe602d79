"""ISO 8601 times as the files hold them; all arithmetic in UTC. A text that is no time is None, never an error."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_DATE = re.compile(r"\d{4}-\d\d-\d\d(?=$|[T ])")
_CLOCK = re.compile(r"\d\d(?::(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<fraction>\d{1,6}))?)?)?")


def parse(text: str | None) -> datetime | None:
    """An ISO time as an aware datetime in UTC; a time without offset counts as UTC."""
    if not text:
        return None
    try:
        found = datetime.fromisoformat(text)
        if found.tzinfo is UTC:  # what LangGraph writes
            return found
        return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def end_of(text: str) -> datetime | None:
    """The last moment that an ISO time may mean, as exact as it was written: all of a day, a minute, a second, a tenth of one."""
    begin = parse(text)
    if begin is None:
        return None
    clock = text[10:].lstrip("T ") if _DATE.match(text) else None
    parts = _CLOCK.match(clock) if clock is not None else None
    if clock == "":
        span = timedelta(days=1)
    elif parts is None or parts["second"]:
        span = timedelta(seconds=10 ** -len(parts["fraction"] or "" if parts is not None else ""))
    else:
        span = timedelta(minutes=1) if parts["minute"] else timedelta(hours=1)
    try:
        return begin + max(span - timedelta(microseconds=1), timedelta())
    except OverflowError:  # the last second of all
        return begin


def seconds_between(before: str | None, after: str | None) -> float | None:
    """Seconds from `before` to `after`; negative where a clock stepped back; None where either is no time."""
    start, end = parse(before), parse(after)
    return (end - start).total_seconds() if start is not None and end is not None else None
