"""A packed list that goes on from another one is read as if it stood alone."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from studio.codec.continued import read
from studio.codec.objects import Tagged, pack, unpack

ITEMS = st.one_of(
    st.integers(-(1 << 40), 1 << 40),
    st.text(max_size=4),
    st.binary(max_size=40).map(lambda raw: Tagged(5, raw)),
    st.lists(st.integers(0, 3), max_size=3),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
)


@given(st.lists(ITEMS, max_size=40), st.lists(ITEMS, max_size=40), st.booleans(), st.binary(max_size=3), st.binary(max_size=3))
def test_a_list_is_read_as_if_nothing_was_read_before_it(
    first: list[Any], more: list[Any], goes_on: bool, behind: bytes, behind_too: bytes
) -> None:
    before = read(pack(first) + behind, None)
    raw = pack([*first, *more] if goes_on else more) + behind_too
    found = read(raw, before)
    if found is not None:
        assert pack(found.items) == raw
        assert found.items == unpack(raw)
    else:
        assert behind_too


def test_the_items_that_were_read_before_are_the_same_objects_and_only_new_ones_are_made() -> None:
    first = [Tagged(5, bytes([at])) for at in range(20)]
    before = read(pack(first), None)
    assert before is not None
    found = read(pack([*first, "new"]), before)
    assert found is not None and found.items[-1] == "new" and len(found.items) == 21
    assert all(one is other for one, other in zip(found.items, before.items, strict=False))


def test_a_list_that_is_shorter_or_begins_otherwise_is_read_anew() -> None:
    before = read(pack(["a", "b", "c"]), None)
    for other in (["a", "b"], ["a", "x", "c", "d"], []):
        found = read(pack(other), before)
        assert found is not None and found.items == other


def test_what_the_packer_would_not_write_again_is_left_to_the_slow_reader() -> None:
    assert read(b"\x91\x82\xa1a\x01\xa1a\x02", None) is None  # a key that stands twice
    assert read(b"\x91\xcd\x00\x01", None) is None  # a number that takes more bytes than it needs
    assert read(b"\x92\x01", None) is None
    assert read(pack({"a": 1}), None) is None
    assert read(b"", None) is None
