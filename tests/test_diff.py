"""Diffs: applicable, deep, by identity, and cheap where nothing changed."""

from __future__ import annotations

import time
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.diff import apply, diff
from studio.value import MapValue, Tagged, decode, encode, equal


def message(name: str, id: str | None, content: Any, **more: Any) -> Tagged:
    kind = {"HumanMessage": "human", "AIMessage": "ai"}[name]
    return Tagged.of_payload(
        5, [f"langchain_core.messages.{kind}", name, {"content": content, "id": id, **more}, "model_validate_json"]
    )


def set_of(*items: Any) -> Tagged:
    return Tagged.of_payload(0, ["builtins", "set", list(items)])


def shown(before: dict[str, Any] | None, after: dict[str, Any]) -> list[tuple[Any, ...]]:
    changes = diff(before, after)
    assert equal(apply(before, changes), dict(after))
    return [(c.op, c.path) if c.from_path is None else (c.op, c.path, c.from_path) for c in changes]


keys = st.text(max_size=4) | st.sampled_from(["id", "[1]", "$x", "a/b", "~"])
scalars = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=6) | st.binary(max_size=4)
plain = st.recursive(scalars, lambda inner: st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=4), max_leaves=12)


@st.composite
def values(draw: st.DrawFn) -> Any:
    """Any stored value: objects, sets, messages, maps with other keys, around plain values."""
    inner = draw(plain)
    kind = draw(st.integers(0, 6))
    if kind == 0:
        return [
            message("HumanMessage", draw(st.sampled_from(["a", "b", "c", "d"])), draw(plain))
            for _ in range(draw(st.integers(0, 5)))
        ]
    if kind == 1:
        return set_of(
            *draw(st.lists(st.integers(0, 9) | st.text(max_size=2), unique_by=lambda item: (type(item), item), max_size=6))
        )
    if kind == 2:
        pairs = draw(
            st.lists(
                st.tuples(st.integers(0, 5) | st.booleans() | st.none() | keys, plain),
                max_size=5,
                unique_by=lambda p: (type(p[0]), p[0]),
            )
        )
        return decode("msgpack", encode("msgpack", MapValue(pairs)))
    if kind == 3:
        return Tagged.of_payload(2, ["shop", "Order", {"lines": inner, "note": draw(plain)}])
    if kind == 4:
        return draw(st.lists(st.integers(0, 4), max_size=12))
    if kind == 5:
        return Tagged.of_payload(1, ["pathlib", "PurePath", draw(st.lists(st.text(max_size=2), max_size=4))])
    return inner


states = st.dictionaries(keys, values(), max_size=5)


@settings(max_examples=150, deadline=None)
@given(states, states)
def test_applying_a_diff_to_the_state_before_gives_the_state_after(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert equal(apply(before, diff(before, after)), after)


@settings(max_examples=50, deadline=None)
@given(states)
def test_a_state_does_not_differ_from_itself_read_twice(state: dict[str, Any]) -> None:
    blob = encode("msgpack", state)
    assert diff(decode("msgpack", blob), decode("msgpack", blob)) == []


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from("abcdef"), unique=True), st.lists(st.sampled_from("abcdef"), unique=True), st.data())
def test_messages_edited_moved_added_and_removed_at_once_are_applicable(
    old: list[str], new: list[str], data: st.DataObject
) -> None:
    before = {"messages": [message("AIMessage", id, "x") for id in old]}
    after = {"messages": [message("AIMessage", id, data.draw(st.sampled_from(["x", "y", ["z"]]))) for id in new]}
    assert equal(apply(before, diff(before, after)), after)


def test_an_edited_message_changes_at_its_content_only() -> None:
    before = {"messages": [message("HumanMessage", str(n), f"text {n}") for n in range(9)]}
    after = {"messages": [message("HumanMessage", str(n), "other" if n == 4 else f"text {n}") for n in range(9)]}
    assert shown(before, after) == [("replace", "/messages/4/content")]


def test_a_message_is_matched_by_id_when_one_before_it_is_removed() -> None:
    before = {"messages": [message("HumanMessage", "a", "1"), message("AIMessage", "b", "2"), message("AIMessage", "c", "3")]}
    after = {"messages": [message("AIMessage", "b", "2"), message("AIMessage", "c", "3!")]}
    assert shown(before, after) == [("remove", "/messages/0"), ("replace", "/messages/1/content")]


def test_one_message_replaced_by_another_is_a_removal_and_an_addition() -> None:
    before, after = {"m": [message("AIMessage", "a", "x")]}, {"m": [message("AIMessage", "b", "x")]}
    assert shown(before, after) == [("remove", "/m/0"), ("add", "/m/0")]


def test_a_moved_message_is_one_move() -> None:
    ids = ["a", "b", "c", "d"]
    before = {"m": [message("AIMessage", id, id) for id in ids]}
    after = {"m": [message("AIMessage", id, id) for id in ["b", "c", "d", "a"]]}
    assert shown(before, after) == [("move", "/m/3", "/m/0")]


def test_maps_with_an_id_are_matched_like_messages() -> None:
    before = {"todo": [{"id": "a", "done": False}, {"id": "b", "done": False}]}
    after = {"todo": [{"id": "n", "done": False}, {"id": "a", "done": False}, {"id": "b", "done": True}]}
    assert shown(before, after) == [("add", "/todo/0"), ("replace", "/todo/2/done")]


def test_a_message_of_another_class_under_the_same_id_is_replaced() -> None:
    before, after = {"m": [message("HumanMessage", "a", "x")]}, {"m": [message("AIMessage", "a", "x")]}
    assert shown(before, after) == [("replace", "/m/0")]


def test_an_insertion_into_a_long_list_is_one_addition() -> None:
    lines = [f"line {n}" for n in range(600)]
    assert shown({"log": lines}, {"log": [*lines[:300], "new", *lines[300:]]}) == [("add", "/log/300")]


def test_removals_and_a_move_in_a_long_list_are_told_apart() -> None:
    lines = [f"line {n}" for n in range(600)]
    after = [line for n, line in enumerate(lines) if n not in (10, 20, 500)]
    after.insert(3, lines[500])
    assert shown({"log": lines}, {"log": after}) == [("remove", "/log/20"), ("remove", "/log/10"), ("move", "/log/3", "/log/500")]


def test_a_changed_field_of_a_map_without_id_is_found_inside_the_list() -> None:
    before = {"cart": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 1}]}
    assert shown(before, {"cart": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 3}]}) == [("replace", "/cart/1/qty")]


def test_a_member_that_a_set_holds_twice_is_a_change_of_the_whole_set() -> None:
    before, after = {"tags": set_of("a")}, {"tags": set_of("a", "a")}
    assert shown(before, after) == [("replace", "/tags")]
    assert equal(apply(before, diff(before, after)), after)


def test_sets_change_by_member_whatever_their_order() -> None:
    assert shown({"tags": set_of("a", "b", "c")}, {"tags": set_of("d", "c", "a")}) == [("remove", "/tags/1"), ("add", "/tags/0")]
    assert shown({"tags": set_of("a", "b")}, {"tags": set_of("b", "a")}) == []


@pytest.mark.parametrize(
    "pair", [(1, 1.0), (1, True), (0, False), (0.0, -0.0), ("1", 1), (None, False), (b"a", "a"), ([], {}), ("", None)]
)
def test_values_of_different_type_differ(pair: tuple[Any, Any]) -> None:
    assert shown({"x": pair[0]}, {"x": pair[1]}) == [("replace", "/x")]


def test_not_a_number_equals_itself() -> None:
    assert shown({"x": float("nan"), "y": [float("nan")]}, {"x": float("nan"), "y": [float("nan")]}) == []


def test_the_number_7_and_the_text_7_are_different_keys() -> None:
    before = {"m": MapValue([(7, "number")])}
    after = {"m": MapValue([(7, "number"), ("7", "text"), (True, "truth")])}
    assert shown(before, after) == [("add", "/m/7"), ("add", "/m/[true]")]
    assert shown(before, {"m": MapValue([(7, "other")])}) == [("replace", "/m/[7]")]


def test_a_root_adds_every_channel() -> None:
    assert shown(None, {"a": 1, "b": None}) == [("add", "/a"), ("add", "/b")]


def test_a_message_of_the_json_era_equals_its_msgpack_form() -> None:
    old = decode(
        "json",
        b'[{"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hi", "id": "h1"}}]',
    )
    new = [message("HumanMessage", "h1", "hi", additional_kwargs={}, tool_calls=[])]
    assert diff({"messages": old}, {"messages": new}) == []
    assert [c.path for c in diff({"messages": old}, {"messages": [message("HumanMessage", "h1", "ho")]})] == ["/messages/0"]


def test_a_changed_array_element_is_told_by_its_index() -> None:
    def array(*numbers: float) -> Tagged:
        import struct

        return Tagged.of_payload(6, ["<f4", [2, 2], "C", struct.pack("<4f", *numbers)])

    assert shown({"e": array(1, 2, 3, 4)}, {"e": array(1, 2, 9, 4)}) == [("replace", "/e/1/0")]


def test_thousands_of_levels_do_not_crash() -> None:
    def nest(levels: int, core: Any) -> Any:
        for n in range(levels):
            core = [core] if n % 2 else {"k": core}
        return core

    changes = diff({"deep": nest(5000, 1)}, {"deep": nest(5000, 2)})
    assert len(changes) == 1
    assert changes[0].path.count("/") == 5001
    assert diff({"deep": nest(5000, 1)}, {"deep": nest(5000, 1)}) == []
    assert equal(
        apply({"deep": nest(3000, 1)}, diff({"deep": nest(3000, 1)}, {"deep": nest(3000, [2])})), {"deep": nest(3000, [2])}
    )


def test_nine_hundred_messages_of_which_one_is_new_take_milliseconds() -> None:
    fields = {"additional_kwargs": {}, "response_metadata": {}, "example": False, "tool_calls": []}
    many = [message("AIMessage", f"id-{n}", "some text " * 20, **fields) for n in range(900)]
    before = decode("msgpack", encode("msgpack", {"messages": many}))
    after = decode(
        "msgpack",
        encode(
            "msgpack", {"messages": [*many[:899], message("AIMessage", "id-899", "edited"), message("AIMessage", "n", "new")]}
        ),
    )
    best = 1.0
    for _ in range(3):
        start = time.perf_counter()
        changes = diff(before, after)
        best = min(best, time.perf_counter() - start)
    assert changes[0].path == "/messages/900"
    assert best < 0.05


def test_two_unlike_lists_of_thousands_end_in_bounded_time() -> None:
    before, after = {"l": list(range(20_000))}, {"l": [n * 7919 % 20_011 for n in range(20_000)]}
    start = time.perf_counter()
    changes = diff(before, after)
    assert time.perf_counter() - start < 5
    assert equal(apply(before, changes), after)


def test_a_long_text_is_one_replacement() -> None:
    assert shown({"t": "a" * 5_000_000}, {"t": "a" * 5_000_000 + "b"}) == [("replace", "/t")]


def test_ormsgpack_stays_the_form_that_langgraph_writes() -> None:
    assert encode("msgpack", {"a": [1, "x", 2.5]}) == ormsgpack.packb({"a": [1, "x", 2.5]})
