"""Ids and versions of forks."""

from __future__ import annotations

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.forks import ids

HEX = "0123456789abcdef"
UUIDS = st.builds(lambda a, b, c, d: f"{a}-{b}-6{c}-8001-{d}", *(st.text(HEX, min_size=n, max_size=n) for n in (8, 4, 3, 12)))


@given(st.one_of(UUIDS, st.text(HEX + "-", max_size=40), st.just("")))
def test_a_new_id_sorts_after_any_hexadecimal_id_that_leaves_room(newest: str) -> None:
    made = ids.new_id(newest, 5)
    assert uuid.UUID(made).version == 6
    if not newest.startswith("ffffffff"):
        assert made > newest


@given(st.text(max_size=40), st.integers(-2, 100_000))
def test_a_new_id_is_always_a_uuid6_that_carries_its_step(newest: str, step: int) -> None:
    made = ids.new_id(newest, step)
    assert uuid.UUID(made).version == 6 and uuid.UUID(made).clock_seq == step & 0x3FFF


def test_ids_of_one_moment_still_follow_each_other() -> None:
    made = [""]
    for _ in range(500):
        made.append(ids.new_id(made[-1], 1))
    assert made == sorted(set(made))


def test_the_time_stamp_is_the_time_in_the_id() -> None:
    assert ids.timestamp("1ef4f797-8335-6428-8001-8a1503f9b875") == "2024-07-31T20:14:19.804164+00:00"


def test_versions_count_on_in_the_form_that_the_file_uses() -> None:
    assert ids.next_version([1, 7, 3]) == 8
    for versions in (["00000000000000000000000000000007.0.27"], ["00000000000000000000000000000007.aa", "x"], []):
        made = ids.next_version(versions)
        assert isinstance(made, str)
        whole, fraction = made.split(".", 1)
        assert len(whole) == 32 and int(whole) == (8 if versions else 1) and 0 <= float(fraction) < 1
        assert all(made > version for version in versions if version != "x")


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=True), st.text(max_size=8), st.none(), st.booleans())))
def test_odd_versions_never_stop_a_fork(versions: list[object]) -> None:
    ids.next_version(versions)


@pytest.mark.parametrize("version", ["9" * 5000, 10**5000, -(10**5000)], ids=["text", "number", "negative"])
def test_a_version_of_thousands_of_digits_does_not_stop_a_fork_either(version: object) -> None:
    counted = "00000000000000000000000000000007.0.27"
    made = ids.next_version([version, counted])
    assert isinstance(made, str) and made > counted and len(made) == 32 + 1 + 18
