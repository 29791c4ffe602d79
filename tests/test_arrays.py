"""Stored numpy arrays, compared with numpy itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from studio.codec.arrays import Array, as_array
from studio.errors import PatchError
from studio.value import Tagged, decode


def stored(array: Any) -> Array:
    found = as_array(decode(*JsonPlusSerializer().dumps_typed(array)))
    assert found is not None
    return found


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype="<f4").reshape(3, 4),
        np.asfortranarray(np.arange(24, dtype="<i8").reshape(2, 3, 4)),
        np.array([True, False]),
        np.arange(6, dtype=">i2").reshape(2, 3),
        np.array(["ab", "c"]),
        np.zeros((0, 4)),
        np.array(5.5),
    ],
)
def test_elements_are_those_that_numpy_reads(array: Any) -> None:
    found = stored(array)
    assert found.readable
    assert found.shape == list(array.shape)
    for index in np.ndindex(*array.shape):
        assert found.element(list(index)) == array[index].item()
    assert found.preview() == [array[index].item() for index in list(np.ndindex(*array.shape))[:12]]


def test_dates_and_complex_numbers_are_texts() -> None:
    days = np.array(["2026-01-02", "NaT"], dtype="M8[D]")
    by_hand = as_array(Tagged.of_payload(6, [days.dtype.str, [2], "C", days.tobytes()]))
    assert by_hand is not None
    assert by_hand.preview() == ["2026-01-02", "NaT"]
    assert stored(np.array([1 + 2j])).preview() == ["1+2j"]


def test_object_arrays_are_unreadable() -> None:
    found = stored(np.array([{}, 1], dtype=object))
    assert not found.readable
    assert found.preview() is None


def test_changed_elements_are_found_and_can_be_set() -> None:
    before = np.asfortranarray(np.arange(2000, dtype="<i4").reshape(20, 100))
    after = before.copy(order="F")
    after[3, 7] = -1
    left, right = stored(before), stored(after)
    assert left.changed(right) == [[3, 7]]
    assert left.with_element([3, 7], -1).raw == right.value.raw
    with pytest.raises(PatchError):
        left.with_element([3, 7], 2**40)
    with pytest.raises(PatchError):
        left.with_element([3, 7], "x")
    assert left.changed(stored(before.astype("<i8"))) is None
