"""Times, steps and sources are read from the first bytes of a row."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import ormsgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import uuid6

from studio.stores.headers import HEAD_BYTES, created_at, is_uuid6, step_and_source, uuid6_time

TS = "2025-03-04T05:06:07.123456+00:00"


@pytest.mark.parametrize("head", [
    {"v": 4, "ts": TS, "id": "x", "channel_values": {}},
    {"v": 300, "ts": TS},
    {"id": "1f000000-0000-6000-8000-000000000001", "v": 1, "ts": TS},
    {"ts": TS, "v": 1},
])  # fmt: skip
@pytest.mark.parametrize(
    "pack", [ormsgpack.packb, lambda value: json.dumps(value).encode(), lambda value: json.dumps(value, indent=1).encode()]
)
def test_the_time_is_found_wherever_a_writer_puts_it(head: dict[str, Any], pack: Any) -> None:
    assert created_at(pack(head)[:HEAD_BYTES], "no id") == TS


@pytest.mark.parametrize(("text", "expected"), [
    ("2025-03-04T05:06:07+00:00", "2025-03-04T05:06:07+00:00"),
    ("2025-03-04T05:06:07.5Z", "2025-03-04T05:06:07.500000+00:00"),
    ("2025-03-04T07:06:07+02:00", "2025-03-04T05:06:07+00:00"),
    ("2025-03-04T05:06:07", "2025-03-04T05:06:07+00:00"),
    ("2025-13-44T05:06:07+00:00", None),
    ("yesterday", None),
])  # fmt: skip
def test_times_are_given_in_utc_or_not_at_all(text: str, expected: str | None) -> None:
    assert created_at(ormsgpack.packb({"v": 1, "ts": text}), "x") == expected
    assert created_at(json.dumps({"v": 1, "ts": text}).encode(), "x") == expected


def test_a_time_inside_the_state_is_not_taken_for_the_checkpoint_s() -> None:
    inside = {"v": 4, "channel_values": {"ts": TS}}
    assert created_at(ormsgpack.packb(inside), "x") is None
    assert created_at(json.dumps(inside).encode(), "x") is None


def test_without_a_time_in_the_blob_the_id_tells_it() -> None:
    now = datetime.now(UTC)
    found = uuid6_time(str(uuid6(clock_seq=3)))
    assert found is not None
    assert abs((datetime.fromisoformat(found) - now).total_seconds()) < 5
    assert created_at(b"", str(uuid6(clock_seq=-1)))


@pytest.mark.parametrize(
    "ident",
    [
        "",
        "1",
        "1f000000-0000-4000-8000-000000000001",
        "00000000-0000-6000-8000-000000000001",
        "ffffffff-ffff-6fff-8000-000000000001",
        "zf000000-0000-6000-8000-000000000001",
    ],
)
def test_other_ids_tell_no_time(ident: str) -> None:
    assert uuid6_time(ident) is None


def test_ids_in_order_of_time_are_recognised() -> None:
    assert is_uuid6(str(uuid6(clock_seq=1)))
    assert not is_uuid6("1f000000-0000-4000-8000-000000000001")


@pytest.mark.parametrize(("metadata", "expected"), [
    (b'{"source": "loop", "step": 3, "parents": {}}', (3, "loop")),
    (b'{"source":"input","step":-1}', (-1, "input")),
    (b'{"step": 3, "source": "fork"}', (3, "fork")),
    (b'{"source": "loop", "writes": {"step": 9}, "step": 3}', (3, "loop")),
    (b'{"source": "a\\"b", "step": 3}', (3, 'a"b')),
    (b'{"source": "loop", "step": "3"}', (None, "loop")),
    (b'{"source": "loop", "step": true}', (None, "loop")),
    (b'{"source": 7, "step": 1.5}', (None, None)),
    (b"{}", (None, None)),
    (b"", (None, None)),
    (b"[1]", (None, None)),
    (b'{"step": 3', (None, None)),
    (b"\xff\xfe", (None, None)),
    (b"[" * 100_000, (None, None)),
    (b'{"step": ' + b"9" * 10_000 + b"}", (None, None)),
])  # fmt: skip
def test_step_and_source_are_taken_from_the_metadata_or_unknown(metadata: bytes, expected: tuple[int | None, str | None]) -> None:
    assert step_and_source(metadata) == expected


@given(st.binary(max_size=200), st.text(max_size=50))
def test_no_bytes_raise(data: bytes, ident: str) -> None:
    created_at(data, ident)
    created_at(b"\x87\xa1v\x04\xa2ts\xd9 " + data, ident)
    step_and_source(data)
