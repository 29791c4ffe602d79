"""Tagged JSON, paths and patches."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given, settings

from studio.errors import PatchError, RefError
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.tagged import (
    apply_patch,
    children,
    dumps,
    from_tagged,
    get,
    join_path,
    loads,
    set_in,
    split_path,
    to_tagged,
    unset_in,
)
from studio.value import MapValue, Opaque, Tagged, decode, encode, equal
from tests.factories import make_states
from tests.test_diff import message, set_of, states


@settings(max_examples=120, deadline=None)
@given(states)
def test_every_document_reads_back_to_the_same_bytes(state: dict[str, Any]) -> None:
    blob = encode("msgpack", state)
    value = decode("msgpack", blob)
    text = dumps(to_tagged(value))
    assert text.isascii()
    assert equal(from_tagged(loads(text)), value)
    assert encode("msgpack", from_tagged(loads(dumps(to_tagged(value), indent=2)), value)) == blob


@settings(max_examples=80, deadline=None)
@given(states)
def test_every_child_is_reached_by_its_path_and_can_be_set_and_removed(state: dict[str, Any]) -> None:
    stack: list[tuple[list[str], Any]] = [([], decode("msgpack", encode("msgpack", state)))]
    root = stack[0][1]
    while stack:
        steps, value = stack.pop()
        path = join_path(steps)
        assert split_path(path) == steps
        assert equal(get(root, path), value)
        assert equal(set_in(root, path, value), root)
        if path and not isinstance(get(root, join_path(steps[:-1])), Tagged):
            without = unset_in(root, path)
            assert not equal(without, root)
        stack.extend(([*steps, step], child) for step, child in children(value))


def test_the_forms_of_the_design() -> None:
    value = {
        "when": Tagged.of_payload(3, ["datetime", "datetime", "2026-01-01T00:00:00", "fromisoformat"]),
        "tags": set_of("a"),
        "raw": b"\x00\xff",
        "odd": [float("nan"), float("inf"), float("-inf"), -0.0, 499.0, 2**60],
        "map": MapValue([(7, "x")]),
        "mine": {"$ref": 1},
        "closed": Opaque("pickle", b"."),
        "strange": Tagged(42, b"\x01"),
    }
    assert to_tagged(value) == {
        "when": {"$type": "datetime.datetime", "$ext": 3, "method": "fromisoformat", "args": ["2026-01-01T00:00:00"]},
        "tags": {"$type": "builtins.set", "$ext": 0, "items": ["a"]},
        "raw": {"$bytes": "AP8=", "size": 2},
        "odd": [{"$float": "nan"}, {"$float": "inf"}, {"$float": "-inf"}, {"$float": "-0.0"}, 499.0, {"$int": str(2**60)}],
        "map": {"$map": [[7, "x"]]},
        "mine": {"$map": [["$ref", 1]]},
        "closed": {"$opaque": "pickle", "size": 1, "sha256": Opaque("pickle", b".").sha256},
        "strange": {"$ext": 42, "$bytes": "AQ==", "size": 1},
    }
    assert dumps(to_tagged(499.0)) == "499.0"


def test_an_array_shows_type_shape_and_preview_and_stands_for_itself() -> None:
    array = Tagged.of_payload(6, ["<i2", [2, 2], "F", b"\x01\x00\x02\x00\x03\x00\x04\x00"])
    assert to_tagged(array) == {"$array": {"dtype": "<i2", "shape": [2, 2], "preview": [1, 3, 2, 4]}}
    assert from_tagged(to_tagged(array), array) is array
    assert get({"a": array}, "/a/0/1") == 3
    assert get(set_in({"a": array}, "/a/1/0", 9), "/a/1/0") == 9
    objects = Tagged.of_payload(6, ["|O", [1], "C", b"\x00" * 8])
    assert to_tagged(objects)["$array"]["preview"] is None
    with pytest.raises(PatchError):
        from_tagged(to_tagged(array))


def test_a_limit_cuts_long_texts_and_lists_and_the_stored_value_takes_their_place() -> None:
    value = {"text": "x" * 100, "list": list(range(50)), "short": "y"}
    doc = to_tagged(value, limit=10)
    assert doc == {
        "text": {"$cut": {"size": 100, "head": "x" * 10}},
        "list": {"$cut": {"size": 50, "head": list(range(10))}},
        "short": "y",
    }
    assert equal(from_tagged(doc, value), value)


def test_masked_values_stand_for_the_stored_ones() -> None:
    def mask(key: str | None, value: Any) -> str | None:
        return "named like a secret" if key == "api_key" and isinstance(value, str) else None

    value = {
        "config": {"api_key": "abc", "size": 1},
        "people": [{"id": "a", "api_key": "1"}, {"id": "b", "api_key": "2"}],
        "x": [{"api_key": "3"}],
    }
    doc = to_tagged(value, mask=mask)
    assert "abc" not in dumps(doc)
    doc["config"]["size"] = 2
    doc["people"] = doc["people"][::-1]
    doc["x"].append({"new": True})
    changed = from_tagged(doc, value)
    assert changed["config"] == {"api_key": "abc", "size": 2}
    assert changed["people"] == [{"id": "b", "api_key": "2"}, {"id": "a", "api_key": "1"}]
    assert changed["x"] == [{"api_key": "3"}, {"new": True}]


def test_items_under_one_id_keep_their_own_secrets() -> None:
    stored = [{"id": "a", "key": "first"}, {"id": "a", "key": "second"}]
    assert from_tagged([{"id": "a", "key": {"$masked": "x"}}, {"id": "a", "key": {"$masked": "x"}}], stored) == stored
    with pytest.raises(PatchError):
        from_tagged([{"id": "a", "key": {"$masked": "x"}}], stored)


def test_a_wrapped_secret_keeps_its_type_around_the_mask() -> None:
    secret = Tagged.of_payload(0, ["pydantic.types", "SecretStr", "hunter2"])
    doc = to_tagged({"login": secret}, mask=lambda key, value: "a SecretStr" if isinstance(value, Tagged) else None)
    assert doc == {"login": {"$type": "pydantic.types.SecretStr", "$ext": 0, "args": [{"$masked": "a SecretStr"}]}}
    assert from_tagged(doc, {"login": secret})["login"] is secret


def test_a_placeholder_for_nothing_is_refused_with_its_place() -> None:
    with pytest.raises(PatchError, match="/a/0"):
        from_tagged({"a": [{"$masked": "secret"}]}, {"a": []})


@pytest.mark.parametrize(
    "doc",
    [
        {"$nope": 1},
        {"$type": "a.B"},
        {"$ext": 5},
        {"$float": "x"},
        {"$int": 1},
        {"$bytes": "%"},
        {"$map": [1]},
        {"$type": "a.B", "$ext": 0, "args": [1, 2]},
    ],
)
def test_forms_that_do_not_exist_are_refused(doc: Any) -> None:
    with pytest.raises(PatchError):
        from_tagged(doc)


def test_an_object_that_was_not_changed_keeps_its_stored_bytes() -> None:
    odd = Tagged(2, b"\x93\xa1m\xa1B\x81\xa1x\xcd\x00\x05")  # 5 in two bytes, as no writer of ours would
    assert from_tagged(to_tagged(odd), odd) is odd
    assert from_tagged(to_tagged(odd)).raw == b"\x93\xa1m\xa1B\x81\xa1x\x05"


def test_bad_json_is_refused_with_line_and_column() -> None:
    with pytest.raises(PatchError, match="line 2, column 8"):
        loads('{"a": 1,\n "b": [nope]}')
    with pytest.raises(PatchError, match="stands twice"):
        loads('{"a": 1, "a": 2}')
    with pytest.raises(PatchError):
        loads("NaN")
    assert loads("[499.0, 499]") == [499.0, 499]
    for text in ("49,9", " -0,5\n", '{"a": 1,\n "total": 49,9}'):
        with pytest.raises(PatchError, match=r"write (49\.9|-0\.5), with a point, at line"):
            loads(text)
    with pytest.raises(PatchError) as plain:
        loads("1,234,567")
    assert "with a point" not in plain.value.message, "not a decimal comma"
    assert isinstance(loads("499.0"), float)


def test_documents_of_thousands_of_levels_go_both_ways() -> None:
    value: Any = "core"
    for n in range(5000):
        value = [value] if n % 2 else {"k": value}
    text = dumps(to_tagged(value))
    assert equal(from_tagged(loads(text), value), value)
    assert loads(dumps(loads(text), indent=1)) is not None
    with pytest.raises(PatchError, match="no valid JSON"):
        loads(text + "]")


def test_half_surrogates_are_escaped_not_replaced() -> None:
    assert dumps(to_tagged("a\udcff\u202e")) == '"a\\udcff\\u202e"'
    assert loads('"a\\udcff"') == "a\udcff"


def test_paths_go_through_objects_ids_and_typed_keys() -> None:
    state = {
        "messages": [message("HumanMessage", "h", "a"), message("AIMessage", "a", "b")],
        "m": MapValue([(7, {"x": 1}), ("8", 2)]),
        "a/b": {"~": 1},
    }
    assert get(state, "/messages/1/content") == "b"
    assert get(state, "/messages/id:h/content") == "a"
    assert get(state, "/m/[7]/x") == get(state, "/m/7/x") == 1
    assert get(state, "/a~1b/~0") == 1
    changed = set_in(state, "/messages/id:a/content", "c")
    assert get(changed, "/messages/1/content") == "c"
    assert get(state, "/messages/1/content") == "b"
    assert changed["messages"][0] is state["messages"][0]
    assert len(get(set_in(state, "/messages/-", "new"), "/messages")) == 3
    assert children(state["messages"][0])[0] == ("content", "a")
    for path in ("/nope", "/messages/9", "/messages/id:z", "/messages/01", "/messages/x"):
        with pytest.raises(RefError):
            get(state, path)
    for path in ("/nope/deeper", "/messages/9", "/messages/0/content/x"):
        with pytest.raises(PatchError):
            set_in(state, path, 1)


def test_a_patch_sets_then_removes_and_no_removal_shifts_another() -> None:
    state = {"l": [0, 1, 2, 3], "r": {"amount": 499.0, "keep": 1}, "gone": 1}
    patch = Patch(set={"/r/amount": 49.0, "/l/-": 4, "/new": {"$int": "5"}}, unset=("/l/0", "/l/2", "/gone"))
    assert equal(apply_patch(state, patch), {"l": [1, 3, 4], "r": {"amount": 49.0, "keep": 1}, "new": 5})
    assert state["l"] == [0, 1, 2, 3]
    for bad in (Patch(unset=("/nope",)), Patch(set={"": 1}), Patch(set={"x": 1}), Patch(set={"/nope/x": 1})):
        with pytest.raises(PatchError):
            apply_patch(state, bad)


def test_five_megabytes_of_text_pass() -> None:
    value = {"t": "é" * 5_000_000}
    assert json.loads(dumps(to_tagged(value))) == value


def test_what_a_masked_part_stands_for_moves_with_its_item() -> None:
    mask = {"$masked": "by name"}
    stored = [{"user": "anna", "password": "first", "n": 1}, {"user": "bob", "password": "second", "n": 2}]
    anna, bob = {"user": "anna", "password": mask, "n": 1}, {"user": "bob", "password": mask, "n": 2}
    assert from_tagged([bob, anna], stored) == [stored[1], stored[0]], "swapped"
    assert from_tagged([bob], stored) == [stored[1]], "the other removed"
    assert from_tagged([{**anna, "n": 7}, bob], stored) == [{**stored[0], "n": 7}, stored[1]], "edited in its place"
    new = {"user": "cleo", "password": "third", "n": 3}
    assert from_tagged([new, anna, bob], stored) == [new, *stored], "another before them"
    with pytest.raises(PatchError):  # moved and edited at once: whose secret it is cannot be told
        from_tagged([{**bob, "n": 7}, anna], stored)


def test_a_masked_part_moves_with_its_item_in_a_fork(tmp_path: Any) -> None:
    accounts = [{"user": "anna", "password": "pa-anna-1234"}, {"user": "bob", "password": "pb-bob-56789"}]
    path = make_states(tmp_path / "accounts.sqlite", {"accounts": accounts})
    with closing(Session.open(str(path), scratch=str(tmp_path / "s.sqlite"))) as session:
        at = session.resolve("head", "made")
        shown: list[Any] = [{**one, "password": {"$masked": "by name"}} for one in accounts]
        made = session.fork(ForkRequest(at, Patch({"/accounts": shown[::-1]})))
        assert made.verified and session.state(made.address).values["accounts"] == accounts[::-1]
