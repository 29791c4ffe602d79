"""Large values are read once for all records that hold them; what is shown of them is what was stored."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.graph import END, START, StateGraph

from studio.codec import shared
from studio.diff import apply, diff
from studio.session import Session
from studio.tagged import dumps, to_tagged
from studio.value import Tagged, decode, encode, equal
from tests.factories import config, saver_at

BIG = 200_000

tagged = st.builds(lambda text: ormsgpack.Ext(5, ormsgpack.packb(["m", "Type", {"id": text}, "make"])), st.text(max_size=3))
scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=9) | st.binary(max_size=4) | tagged
inner = st.recursive(
    scalars, lambda of: st.lists(of, max_size=6) | st.dictionaries(st.text(max_size=2), of, max_size=6), max_leaves=8
)
few = st.sampled_from([0, 1, "a", {"id": "a"}])
long = (
    st.lists(few, min_size=4, max_size=20)
    | st.dictionaries(st.sampled_from("abcdefghijklmnop"), few, min_size=4)
    | st.lists(inner, max_size=20)
    | st.dictionaries(st.text(max_size=2), inner, max_size=20)
    | st.text(max_size=60)
)


@st.composite
def versions(draw: st.DrawFn) -> tuple[Any, Any]:
    """A value, and another version of it: with items changed, added or taken out, or something else altogether."""
    before = draw(long)
    if isinstance(before, str) or draw(st.integers(0, 5)) == 5:
        return before, draw(st.just(before) | long)
    pairs = list(enumerate(before)) if isinstance(before, list) else list(before.items())
    for _ in range(draw(st.integers(1, 2))):
        at, gone = draw(st.integers(0, len(pairs))), draw(st.integers(0, 2))
        pairs[at : at + gone] = draw(st.lists(st.tuples(st.sampled_from("abcxyz"), few | inner), max_size=2))
    return before, [item for _, item in pairs] if isinstance(before, list) else dict(pairs)


@pytest.fixture
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(shared, "LARGE", 4)
    shared.forget()
    yield
    shared.forget()


def stored(value: Any) -> bytes:
    return ormsgpack.packb({"v": 4, "channel_values": {"value": value, "note": "x"}, "ids": {"a": 1}})


def shown(value: Any) -> str:
    return dumps(to_tagged(value))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions())
def test_values_read_with_what_they_share_and_their_diff_are_those_of_values_read_alone(
    everything_is_large: None, pair: tuple[Any, Any]
) -> None:
    blobs = [stored(pair[1]), stored(pair[0]), ormsgpack.packb(pair[1]), ormsgpack.packb(pair[0])]
    together = [decode("msgpack", blob) for blob in blobs]
    alone = [ormsgpack.unpackb(blob, ext_hook=Tagged) for blob in blobs]
    assert [encode("msgpack", value) for value in together] == blobs
    assert [shown(value) for value in together] == [shown(value) for value in alone]
    assert [shared.packed_size(value) for value in together] == list(map(len, blobs))
    after, before = (value["channel_values"] for value in together[:2])
    plain_after, plain_before = (value["channel_values"] for value in alone[:2])
    found, expected = diff(before, after), diff(plain_before, plain_after)
    assert [(one.op, one.path, one.from_path, shown(one.before), shown(one.after)) for one in found] == [
        (one.op, one.path, one.from_path, shown(one.before), shown(one.after)) for one in expected
    ]
    assert equal(apply(before, found), after)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(versions(), st.data())
def test_a_blob_that_was_damaged_or_packed_otherwise_reads_as_it_does_alone(
    everything_is_large: None, pair: tuple[Any, Any], data: st.DataObject
) -> None:
    whole = stored(pair[0])
    at = data.draw(st.integers(0, len(whole) - 1))
    odd = whole[:at] + data.draw(st.binary(max_size=3)) + whole[at + data.draw(st.integers(0, 1)) :]
    decode("msgpack", stored(pair[1]))
    decode("msgpack", whole)
    found = decode("msgpack", odd)
    with pytest.MonkeyPatch.context() as alone:
        alone.setattr(shared, "LARGE", 1 << 60)
        expected = decode("msgpack", odd)
    assert encode("msgpack", found) == encode("msgpack", expected) == odd
    assert type(found) is type(expected) and shown(found) == shown(expected)


TEXT = ormsgpack.packb("t" * BIG)


@pytest.mark.parametrize(
    "blob",
    [
        b"\x82\xa4text" + TEXT + b"\xa4text\x01",
        b"\x82\xa4text\x01\xa4text" + TEXT,
        b"\xdf\x00\x00\x00\x01\xa4text" + TEXT,
        b"\x81\xd9\x04text" + TEXT,
        b"\x82\xa4text" + TEXT + b"\xa3odd\xca\x3f\x80\x00\x00",
        b"\x82\xa4text" + TEXT + b"\x01\x02",
        b"\x81\xa4rows\xdd\x00\x00\xff\xff" + b"\x00" * 0xFFFF,
        b"\x81\xa4text" + TEXT + b"\x00",
        b"\x81\xa4text" + TEXT[:-1],
    ],
    ids=["last twice", "first twice", "long map", "long key", "short float", "other key", "long list", "rest", "cut off"],
)
def test_what_is_not_packed_in_the_usual_way_keeps_its_bytes_beside_large_values(blob: bytes, monkeypatch: Any) -> None:
    monkeypatch.setattr(shared, "LARGE", 50_000)
    shared.forget()
    decode("msgpack", b"\x82\xa4text" + TEXT + b"\xa4rows\xdc\xff\xff" + b"\x00" * 0xFFFF)
    found = decode("msgpack", blob)
    shared.forget()
    assert encode("msgpack", found) == blob
    monkeypatch.setattr(shared, "LARGE", 1 << 60)
    assert shown(found) == shown(decode("msgpack", blob))


class Large(TypedDict, total=False):
    rows: Annotated[list[Any], operator.add]
    keys: dict[str, Any]


def test_a_checkpoint_its_parent_and_the_write_between_them_hold_their_large_values_in_common(tmp_path: Path) -> None:
    rows = [{"id": f"row-{n}", "text": "word " * 9} for n in range(BIG // 40)]
    keys = {f"key-{n}": {"n": n, "text": "word " * 9} for n in range(BIG // 40)}
    builder: StateGraph[Any] = StateGraph(Large)
    builder.add_node("first", lambda state: {"rows": rows, "keys": keys})
    builder.add_node("second", lambda state: {"rows": [{"id": "new"}], "keys": {**keys, "key-7": "changed"}})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    with saver_at(tmp_path / "large.sqlite") as saver:
        builder.compile(checkpointer=saver).invoke({"rows": []}, config("large"))
    session = Session.open(str(tmp_path / "large.sqlite"))
    try:
        head = session.resolve("head", "large")
        found = session.compare(head)
        assert [(one.op, one.path) for one in found.changes] == [("add", f"/rows/{len(rows)}"), ("replace", "/keys/key-7")]
        assert {one.node for change in found.changes for one in change.authors} == {"second"}
        after, before = session.state(head), session.state(found.before.address if found.before else head)
        assert all(map(operator.is_, before.values["rows"], after.values["rows"]))
        same = [key for key, value in before.values["keys"].items() if value is after.values["keys"][key]]
        assert len(same) == len(keys) - 1
        written = {write.channel: write.value for task in before.tasks for write in task.writes}
        assert written["keys"] is after.values["keys"]
    finally:
        session.close()
