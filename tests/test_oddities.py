"""Odd values are named with their place, once per stored object."""

from __future__ import annotations

from studio.codec.oddities import oddities
from studio.value import Tagged
from tests.test_diff import message


def kinds(values: dict[str, object]) -> dict[str, str]:
    return {one.where: one.kind for one in oddities(values, "c1")}


def test_each_odd_value_is_named_with_its_path() -> None:
    objects = Tagged.of_payload(6, ["|O", [1], "C", b"\0" * 8])
    values = {
        "a": ["fine", "bad \udcff"],
        "b": {"x": "\ud800"},
        "array": objects,
        "later": Tagged(42, b"\1"),
        "broken": Tagged(5, b"\xc1"),
        "m": [message("HumanMessage", "1", "\udc80")],
    }
    assert kinds(values) == {
        "c1 /a/1": "invalid-utf8",
        "c1 /b/x": "half-surrogate",
        "c1 /array": "unreadable-array",
        "c1 /later": "unknown-extension",
        "c1 /broken": "undecodable",
        "c1 /m/0/content": "invalid-utf8",
    }


def test_ordinary_values_are_no_problem_and_remembered() -> None:
    clean: set[bytes] = set()
    one = message("HumanMessage", "1", "Grüße 👋")
    assert oddities({"m": [one]}, "c1", clean) == []
    assert clean == {one.raw}


def test_a_flood_of_odd_values_is_counted() -> None:
    found = oddities({"a": ["\ud800"] * 200}, "c1")
    assert len(found) == 51
    assert found[-1].message.startswith("150 more")
