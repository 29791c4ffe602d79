"""ISO 8601 times as the files hold them; all arithmetic in UTC. A text that is no time is None, never an error."""

from __future__ import annotations

from datetime import UTC, datetime


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


def seconds_between(before: str | None, after: str | None) -> float | None:
    """Seconds from `before` to `after`; negative where a clock stepped back; None where either is no time."""
    start, end = parse(before), parse(after)
    return (end - start).total_seconds() if start is not None and end is not None else None
