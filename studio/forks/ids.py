"""New checkpoint ids and channel versions, in the form that the file already uses.

LangGraph takes the largest id of a thread as its head, so the id of a fork has to sort after every id that is there.
"""

from __future__ import annotations

import contextlib
import math
import os
import random
import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

_GREGORIAN = 0x01B21DD213814000
"""100 ns ticks from 1582-10-15 to 1970-01-01."""
_LAST_TICK = (1 << 60) - 1
_MOST_DIGITS = 100
"""Of a version that counts."""
_UUID6 = re.compile(r"([0-9a-fA-F]{8})-([0-9a-fA-F]{4})-6([0-9a-fA-F]{3})-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")


def _ticks_now() -> int:
    return time.time_ns() // 100 + _GREGORIAN


def _uuid6(ticks: int, step: int) -> str:
    """60 bits of time around the version digit, 14 bits of step, 48 random bits."""
    head = f"{ticks:015x}"
    clock = 0x8000 | (step & 0x3FFF)
    return f"{head[:8]}-{head[8:12]}-6{head[12:]}-{clock:04x}-{os.urandom(6).hex()}"


def ticks_of(checkpoint_id: str) -> int | None:
    """The time in a well-formed uuid6 (100 ns since 1582-10-15), else None."""
    match = _UUID6.fullmatch(checkpoint_id)
    return int("".join(match.groups()), 16) if match else None


def new_id(after: str, step: int) -> str:
    """A uuid6 of now that sorts after the id `after` ("" = none), moved forward in time when that id lies in the future.

    No uuid can sort after some foreign ids (`zzz`): then it is one of now.
    """
    now = _uuid6(_ticks_now(), step)
    if now > after:
        return now
    known = ticks_of(after.lower())
    if known is not None and known < _LAST_TICK:
        later = _uuid6(known + 1, step)
        if later > after:
            return later
    match = re.match(r"[0-9a-f]{0,8}", after)
    digits = match.group() if match else ""
    for prefix in (int(digits.ljust(8, "0"), 16), int(digits.ljust(8, "f"), 16) + 1):
        later = _uuid6(prefix << 28, step)
        if prefix <= 0xFFFFFFFF and later > after:
            return later
    return now


def is_ahead_of_clock(checkpoint_id: str, seconds: float = 5.0) -> bool:
    """True when an id is dated later than now: the checkpoints of a run would sort before it."""
    ticks = ticks_of(checkpoint_id.lower())
    return ticks is not None and ticks > _ticks_now() + int(seconds * 10_000_000)


def timestamp(checkpoint_id: str) -> str:
    """`ts` for a new checkpoint: the time in its id, as ISO 8601 with offset."""
    ticks = ticks_of(checkpoint_id)
    moment = datetime.now(UTC)
    if ticks is not None:
        with contextlib.suppress(OverflowError):
            moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=(ticks - _GREGORIAN) // 10)
    return moment.isoformat(timespec="microseconds")


def next_version(versions: Iterable[Any]) -> int | str:
    """A channel version above all others: an int in a file of ints, else `%032d.` and a random fraction.

    The fraction matters: two branches that count up to the same number must not meet in a shared blob table. What is no number,
    or longer than any counter gets, counts as none.
    """
    numbers = [0]
    only_ints = True
    any_seen = False
    for version in versions:
        if isinstance(version, bool):
            continue
        if isinstance(version, int):
            any_seen = True
            numbers.append(version)
        elif isinstance(version, float):
            any_seen, only_ints = True, False
            numbers.append(int(version) if math.isfinite(version) else 0)
        elif isinstance(version, str):
            any_seen, only_ints = True, False
            digits = version.split(".", 1)[0]
            if digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS:
                numbers.append(int(digits))
    highest = max(number for number in numbers if number < 10**_MOST_DIGITS) + 1
    if any_seen and only_ints:
        return highest
    return f"{highest:032d}.{random.random():.16f}"
