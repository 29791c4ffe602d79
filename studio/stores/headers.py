"""The few facts of a header that lie inside the blobs: read from their first bytes, never by decoding a state."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

from studio import times
from studio.lazy import lazy

HEAD_BYTES = 128
"""Every writer puts `v`, `ts` and `id` first, in either order."""

_MSGPACK_TS = lazy(
    rb"\A(?:[\x80-\x8f]|\xde..)(?:\xa1v(?:[\x00-\x7f]|\xcc.|\xcd..)|\xa2id(?:[\xa0-\xbf]|\xd9.)[\x20-\x7e]{8,64}?)*\xa2ts(?:[\xa0-\xbf]|\xd9.)"
    rb"(\d{4}-\d\d-\d\dT[\d:.]{5,15}(?:[+-]\d\d:\d\d|Z)?)",
    re.DOTALL,
)
_JSON_TS = lazy(rb'\A\s*\{(?:\s*"(?:v|id)"\s*:\s*(?:\d+|"[^"\\]*")\s*,)*\s*"ts"\s*:\s*"([^"\\]{10,40})"')
_METADATA_START = re.compile(rb'\A\{"source": ?"([^"\\]{1,40})", ?"step": ?(-?\d{1,18})[,}]')
_UUID = lazy(r"\A[0-9a-f]{8}-[0-9a-f]{4}-6[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\Z", re.IGNORECASE)
_GREGORIAN = datetime(1582, 10, 15, tzinfo=UTC)


def created_at(head: bytes, checkpoint_id: str) -> str | None:
    """ISO time in UTC from the first bytes of a checkpoint blob, else from a well-formed uuid6, else None."""
    if head[1:3] == b"\xa1v" and head[4:9] == b"\xa2ts\xd9 ":  # how LangGraph writes it: no need to look for it
        text = head[9:41].decode("ascii", "replace")
        if text.endswith("+00:00") and _is_time(text):
            return text
    match = _MSGPACK_TS.match(head) or _JSON_TS.match(head)
    if match is not None:
        text = match.group(1).decode("ascii", "replace")
        if text.endswith("+00:00") and _is_time(text):
            return text
        found = times.parse(text)
        if found is not None:
            return found.isoformat()
    return uuid6_time(checkpoint_id)


def is_uuid6(text: str) -> bool:
    """Whether ids of this form sort by time."""
    return len(text) == 36 and text[14] == "6" and text[8] == text[13] == text[18] == "-"


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def uuid6_time(text: str) -> str | None:
    """When a uuid6 was made, to the microsecond; None for anything else, also for times outside 2000 to 2200."""
    if not _UUID.match(text):
        return None
    ticks = int(text[:8] + text[9:13] + text[15:18], 16)
    found = _GREGORIAN + timedelta(microseconds=ticks // 10)
    return found.isoformat() if 2000 <= found.year < 2200 else None


def is_step(found: object) -> bool:
    """Whether this can be the number of a superstep; nobody counts beyond 64 bits."""
    return isinstance(found, int) and not isinstance(found, bool) and -(1 << 63) <= found < 1 << 63


def step_and_source(metadata: bytes) -> tuple[int | None, str | None]:
    """`step` and `source` of a metadata document; None for what is not there, not of its type, or not readable."""
    start = _METADATA_START.match(metadata)
    if start is not None:  # how LangGraph writes it: no need to parse what follows
        return int(start.group(2)), start.group(1).decode("utf-8", "replace")
    try:
        document = json.loads(metadata)
    except (ValueError, RecursionError):
        return None, None
    if not isinstance(document, dict):
        return None, None
    step, source = document.get("step"), document.get("source")
    return (
        step if is_step(step) else None,
        source if isinstance(source, str) else None,
    )
