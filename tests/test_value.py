"""The decoder: inert, exact, and never at a loss."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import time
from collections import OrderedDict
from decimal import Decimal
from typing import Any

import ormsgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from studio.codec.inert import UNREAD
from studio.codec.pickled import imported_names
from studio.errors import PatchError
from studio.tagged import dumps, to_tagged
from studio.value import MapValue, Opaque, Tagged, decode, decode_metadata, encode, equal

anything = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
plain_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


def nest(levels: int, core: Any) -> Any:
    for _ in range(levels):
        core = [core]
    return core


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=80), st.sampled_from(["msgpack", "json", None, "null", "bytes", "pickle", "msgpack+aes", "surprise"]))
def test_random_bytes_never_raise_and_read_back_exactly(blob: bytes, tag: str | None) -> None:
    value = decode(tag, blob)
    if isinstance(value, Tagged):
        assert isinstance(value.type_name + value.kind, str)
        assert isinstance(value.fields, dict)
    if value is None or isinstance(value, bool):
        return  # whitespace around a JSON `null` is not kept
    assert encode(tag, value) == blob


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=40), st.integers(-128, 127))
def test_random_payloads_of_objects_never_raise_and_read_back_exactly(payload: bytes, code: int) -> None:
    blob = bytes([0xC7, len(payload), code & 0xFF]) + payload
    value = decode("msgpack", blob)
    assert isinstance(value, Tagged)
    assert isinstance(value.type_name + value.kind, str)
    assert (value.items, value.args, value.method) is not None
    assert encode("msgpack", value) == blob


@settings(max_examples=300, deadline=None)
@given(anything)
def test_what_langgraph_writes_reads_back_to_the_same_bytes(value: Any) -> None:
    blob = ormsgpack.packb(value)
    assert encode("msgpack", decode("msgpack", blob)) == blob
    assert equal(decode("msgpack", blob), value)


@settings(max_examples=200, deadline=None)
@given(plain_json, st.booleans(), st.sampled_from([None, (",", ":")]), st.sampled_from([None, 2]))
def test_json_of_any_layout_reads_back_to_the_same_bytes(value: Any, ascii: bool, separators: Any, indent: int | None) -> None:
    text = json.dumps([value], ensure_ascii=ascii, separators=separators, indent=indent)
    blob = text.encode("utf-8", "surrogatepass" if not ascii else "strict")
    assert encode("json", decode("json", blob)) == blob


def test_decoding_imports_and_calls_nothing() -> None:
    code = """
import sys
from studio.value import decode
import ormsgpack
def ext(code, *payload): return ormsgpack.packb(ormsgpack.Ext(code, ormsgpack.packb(list(payload))))
before = set(sys.modules)
for code in range(-1, 10):
    if code >= 0:
        v = decode("msgpack", ext(code, "antigravity", "fly", ["x"], "method"))
        v.type_name, v.payload, v.fields, v.items, v.args
v = decode("pickle", b"cantigravity\\nfly\\n(tR.")
assert v.names == ("antigravity.fly",), v.names
decode("json", b'{"lc": 2, "type": "constructor", "id": ["antigravity", "fly"], "args": [1]}').type_name
assert not {n for n in set(sys.modules) - before if n.startswith("antigravity")}
assert not {n for n in sys.modules if n.split(".")[0] in ("langgraph", "langchain_core", "numpy", "textual", "fastapi")}
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_message_shows_its_class_and_fields() -> None:
    tag, blob = JsonPlusSerializer().dumps_typed({"messages": [HumanMessage("hello", id="h1"), AIMessage("hi", id="a1")]})
    value = decode(tag, blob)
    first = value["messages"][0]
    assert first.type_name == "langchain_core.messages.human.HumanMessage"
    assert (first.code, first.kind, first.method) == (5, "fields", "model_validate_json")
    assert first.fields["content"] == "hello"
    edited = first.replace(fields={**first.fields, "content": "bye"})
    loaded = JsonPlusSerializer().loads_typed((tag, encode(tag, {"messages": [edited, value["messages"][1]]})))
    assert loaded["messages"] == [HumanMessage("bye", id="h1"), AIMessage("hi", id="a1")]


def test_unknown_extension_codes_keep_code_and_bytes() -> None:
    blob = b"\x92\xd6\xff\x00\x00\x00\x65\xd6\x2a\x01\x02\x03\x04"
    value = decode("msgpack", blob)
    assert [(item.code, item.raw, item.kind) for item in value] == [(-1, b"\0\0\0e", "unknown"), (42, b"\1\2\3\4", "unknown")]
    assert encode("msgpack", value) == blob


@pytest.mark.parametrize(
    ("blob", "pairs"),
    [
        (b"\x82\x01\xa1a\xc3\xa1b", [(1, "a"), (True, "b")]),
        (b"\x82\xa1x\x01\xa1x\x02", [("x", 1), ("x", 2)]),
        (b"\x82\xc0\x01\x91\x01\x02", [(None, 1), ([1], 2)]),
    ],
)
def test_maps_with_other_keys_keep_every_pair(blob: bytes, pairs: list[tuple[Any, Any]]) -> None:
    value = decode("msgpack", blob)
    assert list(value.pairs) == pairs
    assert encode("msgpack", value) == blob


def test_text_that_is_not_utf8_keeps_its_bytes() -> None:
    blob = b"\x81\xa1k\xa3a\xff\xed"
    value = decode("msgpack", blob)
    assert value == {"k": "a\udcff\udced"}
    assert encode("msgpack", {**value}) == blob


def test_numbers_of_other_widths_come_back_unchanged() -> None:
    for blob in (
        b"\xca\x3f\x80\x00\x00",
        b"\xcd\x00\x05",
        b"\x92\xca\x3f\x80\x00\x00\x01",
        b"\xdc\x00\x01\x01",
        b"\xd9\x01x",
        b"\xc5\x00\x01x",
    ):
        assert encode("msgpack", decode("msgpack", blob)) == blob


def test_an_edited_value_forgets_its_stored_form() -> None:
    value = decode("msgpack", b"\x92\xca\x3f\x80\x00\x00\x01")
    value.append(2)
    assert encode("msgpack", value) == ormsgpack.packb([1.0, 1, 2])


@pytest.mark.parametrize("tag", ["msgpack", "json"])
def test_thousands_of_levels_read_and_write(tag: str) -> None:
    deep = nest(20_000, 1)
    blob = encode(tag, deep)
    assert equal(decode(tag, blob), deep)
    assert encode(tag, decode(tag, blob)) == blob
    assert not equal(decode(tag, blob), nest(20_000, 2))


def test_objects_nested_in_objects_a_thousand_times_read_and_write() -> None:
    value: Any = "core"
    for n in range(1000):
        value = Tagged.of_payload(2, ["m", "Box", {"n": n, "inner": value}])
    blob = encode("msgpack", {"box": value})
    assert encode("msgpack", decode("msgpack", blob)) == blob
    other = decode("msgpack", blob)["box"]
    assert equal(value, other.replace(fields={"inner": other.fields["inner"], "n": 999}))


def test_damage_is_closed_bytes_with_a_reason() -> None:
    assert decode("msgpack", b"\xc1") == Opaque("damaged", b"\xc1")
    assert decode("msgpack", b"\x91").reason == "damaged"
    assert decode("msgpack", b"\xc0\x02").reason == "damaged"
    assert decode("msgpack", b"\xdd\xff\xff\xff\xff").reason == "damaged"
    assert decode("json", b"{").reason == "damaged"
    assert decode("msgpack+aes", b"x").reason == "encrypted"
    assert decode("sculpture", b"x").reason == "unsupported"
    assert decode("null", b"") is None
    assert decode_metadata(b"[1") == {}


@pytest.mark.parametrize("protocol", range(6))
def test_names_of_a_pickle_are_read_in_every_protocol(protocol: int) -> None:
    twice = [OrderedDict(a=1), Decimal("1"), OrderedDict()]
    assert [name for name in imported_names(pickle.dumps(twice, protocol))[0] if name[0] != "_"] == [
        "collections.OrderedDict", "decimal.Decimal",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "tricks",
    [
        b"\x8c\x02os\x94\x8c\x06system\x94K\x010\x93.",
        b"\x8c\x02os\x8c\x06system(K\x01K\x021\x93.",
        b"\x8c\x06system\x94\x8c\x02osh\x00\x93.",
    ],
)
def test_a_name_that_is_put_together_on_the_stack_is_found(tricks: bytes) -> None:
    assert imported_names(b"\x80\x04" + tricks)[0] == ("os.system",)


@pytest.mark.parametrize(
    "blob",
    [
        b"cos\nsystem\n" + b"N0" * 1_000_000 + b".",
        b"cos\nsystem\n(S'echo'",
        b"cos\nsystem\nI" + b"1" * 5_000 + b"\n.",
        b"cos\nsystem\n" + b"".join(b"cm%d\nx\n" % number for number in range(50_000)) + b".",
    ],
)
def test_a_pickle_whose_names_are_not_all_read_says_so(blob: bytes) -> None:
    names = decode("pickle", blob).names
    assert names[0] == "os.system" and names[-1] == UNREAD
    assert len(names) < 1_100


def test_a_pickle_tells_what_it_would_import_without_loading() -> None:
    class_names = imported_names(pickle.dumps({"a": json.JSONDecoder, "b": Opaque, "c": json.JSONDecoder}))[0]
    assert set(class_names) == {"json.decoder.JSONDecoder", "studio.codec.inert.Opaque"}
    assert imported_names(b"cos\nsystem\n(S'echo'\ntR.")[0] == ("os.system",)
    assert imported_names(b"\x80\x05garbage")[0] == ()


def test_json_envelopes_of_the_first_era_are_objects() -> None:
    text = (
        '{"m": {"lc": 1, "type": "constructor", "id": ["langchain", "HumanMessage"], "kwargs": {"content": "hi"}}, '
        '"s": {"lc": 2, "type": "constructor", "id": ["builtins", "set"], "args": [["a"]]}, '
        '"d": {"lc": 2, "type": "constructor", "id": ["datetime", "datetime"], "method": "fromisoformat", "args": ["x"]}}'
    )
    value = decode("json", text.encode())
    assert (value["m"].code, value["m"].type_name, value["m"].fields) == (
        "lc1",
        "langchain.HumanMessage",
        {"content": "hi"},
    )
    assert (value["s"].code, value["s"].items, value["s"].is_set) == ("lc2", ["a"], True)
    assert (value["d"].method, value["d"].args) == ("fromisoformat", ["x"])
    edited = {**value, "s": value["s"].replace(items=["a", "b"])}
    assert encode("json", edited).decode() == text.replace('["a"]', '["a", "b"]')


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '[1, {"a": {"b": 1, "b": 2}}]',
        '{"lc": 2, "type": "constructor", "id": ["m", "C"], "args": [{"x": 1, "x": 1}]}',
    ],
)
def test_json_keys_that_stand_twice_are_kept_both(text: str) -> None:
    value = decode("json", text.encode())
    assert encode("json", value) == text.encode()
    assert dumps(to_tagged(value)).count('"$map": [[') == 1


def test_an_edited_json_value_keeps_the_layout_of_its_text() -> None:
    blob = '{"a":"é","b":1}'.encode()
    assert encode("json", {**decode("json", blob), "b": 2}, like=blob) == '{"a":"é","b":2}'.encode()


@pytest.mark.parametrize(
    ("tag", "value"),
    [
        ("msgpack", 2**64),
        ("msgpack", ["\ud800"]),
        ("msgpack", {"a": Opaque("damaged", b"x")}),
        ("msgpack", [object()]),
        ("json", {"a": b"x"}),
        ("json", [MapValue([(1, 2)])]),
        ("json", [Tagged(5, b"\x90")]),
        ("msgpack", [Tagged("lc1", None, {"lc": 1, "id": ["a", "B"], "kwargs": {}})]),
        ("bytes", "text"),
        ("null", 1),
        ("pickle", 1),
    ],
)
def test_what_cannot_be_stored_is_refused_with_a_reason(tag: str, value: Any) -> None:
    with pytest.raises(PatchError):
        encode(tag, value)


def test_equal_is_exact_about_types_and_blind_to_order() -> None:
    assert not equal(1, 1.0)
    assert not equal(1, True)
    assert not equal([0.0], [-0.0])
    assert not equal({"a": None}, {"b": None})
    assert equal([float("nan")], [float("nan")])
    assert equal({"a": 1, "b": [2]}, {"b": [2], "a": 1})
    assert equal(MapValue([(1, "x"), (True, "y")]), MapValue([(True, "y"), (1, "x")]))
    assert equal(Tagged.of_payload(0, ["builtins", "set", [1, 2]]), Tagged.of_payload(0, ["builtins", "set", [2, 1]]))


def test_integers_longer_than_python_likes_are_read() -> None:
    blob = b"[" + b"9" * 6000 + b"]"
    assert encode("json", decode("json", blob)) == blob


def test_a_checkpoint_decodes_near_the_speed_of_the_library() -> None:
    messages = [HumanMessage("some words " * 30, id=str(n)) for n in range(300)]
    tag, blob = JsonPlusSerializer().dumps_typed({"channel_values": {"messages": messages}})

    def best(action: Any) -> float:
        times = []
        for _ in range(7):
            start = time.perf_counter()
            action()
            times.append(time.perf_counter() - start)
        return min(times)

    assert best(lambda: decode(tag, blob)) < 12 * best(lambda: ormsgpack.unpackb(blob, ext_hook=lambda code, raw: None)) + 0.001
