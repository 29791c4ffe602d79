"""What has no business where it stands: values for the parts of a checkpoint, its metadata, its writes and its neighbours."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import ormsgpack

from benchmarks.mutations import HOSTILE_VALUES

NAN, INF = float("nan"), float("inf")


@dataclass(frozen=True)
class Ext:
    """A msgpack extension of which the payload can be changed."""

    code: int
    payload: bytes


def unpacked(blob: bytes) -> tuple[Any, bool]:
    """The value of a msgpack or JSON blob, and whether it was JSON. Raises ValueError."""
    if blob[:1] in (b"{", b"["):
        return json.loads(blob), True
    return ormsgpack.unpackb(blob, ext_hook=Ext, option=ormsgpack.OPT_NON_STR_KEYS), False


def packed(value: Any, as_json: bool) -> bytes:
    """Raises ValueError or TypeError for what the format cannot hold, such as 10**40 in msgpack."""
    if as_json:
        return json.dumps(value, default=str).encode("utf-8", "surrogatepass")
    return ormsgpack.packb(value, _as_ext, ormsgpack.OPT_NON_STR_KEYS)


def _as_ext(value: Any) -> Any:
    if isinstance(value, Ext):
        return ormsgpack.Ext(value.code, value.payload)
    raise TypeError(type(value).__name__)


def _object(code: int, *parts: Any) -> Ext:
    return Ext(code, packed(list(parts), False))


HOSTILE_OBJECTS: tuple[Any, ...] = tuple(one for one in HOSTILE_VALUES if not isinstance(one, ormsgpack.Ext))


VERSIONS: tuple[Any, ...] = (
    NAN, INF, -INF, -1, 0, 1, 2**63 - 1, 2**63, -(2**63), 1.5, -0.0, 1e308, True, None, "", "0", "0" * 32, ".5", ".", "x",
    "-1.5",
    "9" * 400, "9" * 5000, "00000000000000000000000000000002.", "00000000000000000000000000000002.0.5",
    "-0000000000000000000000000000003.5", "1e400", "nan", "inf", "\u0663.\u0665", "\uff11\uff12", "\u00b2", "1_000.5", " 1",
    "1\n",
    "0x10", "\x1b[2J", "\u202e1.5", b"1", b"\xff", [], [1], {}, {"a": 1}, Ext(0, b""), Ext(7, b"\x01"),
)  # fmt: skip
STEPS: tuple[Any, ...] = (
    10**40, -(10**40), 2**63, 2**63 - 1, -(2**63), 10**4000, 16384, 16383, -2, -1, 1.5, 1e308, NAN, -INF, True, None, "3", "x",
    "",
    [], [1], {}, {"a": 1},
)  # fmt: skip
TIMES: tuple[Any, ...] = (
    5, -1, 1e308, NAN, None, [], {}, "", "yesterday", "9999-12-31T23:59:59.999999-23:59", "0001-01-01T00:00:00+23:59",
    "2026-13-45T99:99:99", "2026-01-01", "2026-01-01T00:00:00Z", "2026-01-01T00:00:00", "2026-W01-1", "20260101T000000+00",
    "1" * 4000, "2026-01-01T00:00:00.123456789+00:00", "\u0662\u0660\u0662\u0666-01-01T00:00:00+00:00",
    "2026-01-01T00:00:00+99:99",
)  # fmt: skip
NAMES: tuple[Any, ...] = (
    "", "a", "__start__", "__end__", "__interrupt__", "__input__", "__pregel_tasks", "branch:to:", "branch:to:a",
    "branch:a:b:c",
    "start:", "start:a", "join:", "join:a+b", "join:a+b:c", "a:b", "a|b", "\0", "\x1b[2J", "\u202e", "x" * 3000, "/", "~1",
    "id:",
    5, -1, 1.5, None, True, [], {}, b"\xff", b"a",
)  # fmt: skip
SENDS: tuple[Any, ...] = (
    5, None, "text", [], {}, [5], [None] * 300, [["n", {}]], [{"node": "n", "arg": {}}], {"node": "n"}, [[[]]], Ext(1, b""),
    [_object(1, "langgraph.types", "Send", ["n", {}])] * 300,
    [_object(1, "langgraph.types", "Send", [])],
    [_object(1, "langgraph.types", "Send", [5, 5, 5, 5])],
    [_object(1, "langgraph.types", "Send", [None, None])],
    [_object(1, "langgraph.types", "Send", ["\x1b[2J\u202e", {"a": b"\xff"}])],
    [_object(1, "langgraph.types", "Send", {"node": "n"}), _object(2, "langgraph.types", "Send", {"node": "n"})],
    [_object(2, "langgraph.types", "Send", {"node": ["n"], "arg": NAN})],
    [_object(0, "langgraph.types", "Send", "n")],
    [{"__send__": True, "node": None, "arg": 1}, {"__send__": True}],
    [{"lc": 2, "type": "constructor", "id": ["langgraph", "constants", "Send"], "args": 5, "kwargs": {"node": 1}}],
    [{"lc": 2, "type": "constructor", "id": 5}],
)  # fmt: skip
INTERRUPTS: tuple[Any, ...] = (
    5, None, "why?", [], [5], [None], {"value": 1}, [{"value": 1, "id": 5}], [[[]]],
    [_object(2, "langgraph.types", "Interrupt", {})],
    [_object(2, "langgraph.types", "Interrupt", {"value": NAN, "id": 5})],
    [_object(2, "langgraph.types", "Interrupt", {"value": 1, "id": ["x"], "ns": 5, "resumable": "x", "when": []})],
    [_object(2, "langgraph.types", "Interrupt", {"value": 1, "id": "\x1b[2J", "ns": ["a", 5]})],
    [_object(2, "langgraph.types", "Interrupt", [1, 2])],
    [_object(2, "langgraph.types", "Interrupt", {5: 6, None: 7})],
    [_object(1, "langgraph.types", "Interrupt", [])],
    [_object(2, "langgraph.types", "Interrupt", {"value": "same", "id": "same"})] * 200,
    [{"__interrupt__": True, "value": []}],
)  # fmt: skip
DELTAS: tuple[Any, ...] = (
    Ext(7, b""), Ext(7, b"\xc1"), Ext(7, b"\x01"), Ext(7, b"\x90"), Ext(7, b"\x91\x01"), Ext(7, b"\x80"), Ext(7, b"\xc0"),
    Ext(7, packed(Ext(7, packed([Ext(7, b"\x90")], False)), False)), [Ext(7, b"\x90")], {"a": Ext(7, b"\x90")},
    _object(2, "langgraph.types", "Overwrite", {}), _object(2, "langgraph.types", "Overwrite", {"value": 5}),
    _object(1, "langgraph.types", "Overwrite", []), {"__overwrite__": 5}, {"__delta_snapshot__": True},
)  # fmt: skip
FIELDS: dict[str, tuple[Any, ...]] = {
    "v": (None, 0, -1, 1, 2, 3, 5, 99, 2**63, "4", "", 4.0, 1.5, True, NAN, [], {}),
    "ts": TIMES,
    "id": (*NAMES, "1ef4f797-8335-6428-8001-8a1503f9b875"),
    "channel_values": (None, [], "text", 5, [["a", 1]], {1: 2, None: 3, 1.5: 4}, {"": {}}, {"messages": 5}, {"messages": {}},
    Ext(5, b"")),
    "channel_versions": (None, [], "text", 5, [["a", 1]], {1: 2}, {"messages": NAN}, {"": ""}, Ext(0, b"\x90")),
    "versions_seen": (
        None, [], "text", 5, {"n": None}, {"n": []}, {"n": "text"}, {"n": {"c": [1]}}, {5: {5: 5}}, {"__interrupt__": 5},
        {"": {"": ""}}, {"__start__": {"__start__": NAN}}, {"n": Ext(0, b"")}, {"__snapshot_bumps__": 5},
        {"__snapshot_bumps__": {"a": []}},
    ),
    "pending_sends": SENDS,
    "updated_channels": (5, "messages", [5, None], {"a": 1}, ["\x1b[2J"], [["a"]], [{}], ["a"] * 300, NAN, True),
    "current_tasks": (5, "x", [5], {"a": 5}, {"a": {"node": []}}),
}  # fmt: skip
"""What the fields of a checkpoint may hold in the end."""
METADATA: dict[str, tuple[Any, ...]] = {
    "source": (*NAMES, "input", "loop", "update", "fork", "LOOP", " loop"),
    "step": STEPS,
    "parents": (None, 5, "x", [], [""], {"": 5}, {"": None}, {"": ["a"]}, {"a:b": "x"}, {"": "no-such"}, {5: 5},
    {"\x1b[2J": "\u202e"}),
    "writes": (5, "x", [1], {"a": 5}, {"a": None}, {"": {"": 1}}, {"a": [[1, 2]]}, {"a": [["x"]]}, {"__interrupt__": [[5]]},
    {"a": NAN}),
    "run_id": (5, None, [], {}, "\x1b[2J"),
    "thread_id": (5, None, [], {}, "other"),
    "langgraph_step": STEPS,
    "langgraph_node": NAMES,
    "langgraph_triggers": (5, "x", [5], {"a": 1}),
    "langgraph_path": (5, "x", [5], {"a": 1}, ["__pregel_push", NAN]),
    "checkpoint_ns": NAMES,
    "counters_since_delta_snapshot": (5, "x", [1], {"messages": 5}, {"messages": []}, {"messages": ["x", None]},
    {"messages": [NAN, -1]}, {"": [1, 2]}),
}  # fmt: skip
WHOLE_METADATA: tuple[Any, ...] = (
    None, 0, -1, 2**63 - 1, 1.5, INF, "", "{}", "[]", "null", "5", '"x"', "NaN", '{"step": NaN}', '{"step": 1, "step": 2}',
    '\ufeff{"step": 1}', '{"step": ' + "9" * 5000 + "}", '{"step": 1' + " " * 50_000 + "}", b"", b"\x80", b"{}",
    b"\xef\xbb\xbf{}",
    '{"step": 1}'.encode("utf-16"), b'{"source": "\xff\xfe", "step": 3}', b'{"a": "\\ud800", "\\udfff": 1}',
    ormsgpack.packb({"source": "loop", "step": 3}), b'{"step": 1}\0', b'{"step": 1} trailing', b"{'step': 1}",
    b'{"a":' * 3000 + b"1" + b"}" * 3000, json.dumps({f"k{n}": n for n in range(3000)}),
)  # fmt: skip
WRITTEN: dict[str, tuple[Any, ...]] = {
    "__interrupt__": INTERRUPTS,
    "__resume__": (5, None, "yes", [], [[]], {"": 1}, {5: 5}, ["a", None, NAN], INTERRUPTS[-2]),
    "__error__": (5, None, "", "ValueError", "ValueError('x", [], {}, {"type": 5}, b"\xff", "\x1b[2J", "x" * 50_000),
    "__error_source_node__": NAMES,
    "__pregel_tasks": SENDS,
    "__return__": (5, None, [], {}),
    "__previous__": (5, None, [], {}),
    "__no_writes__": (5, None, [], {}),
    "__scheduled__": (5, None, [], {}),
    "__start__": (5, None, [], {}, "text"),
    "__end__": (5, None, [], {}),
    "branch:to:": (5, None, {}),
    "branch:to:\x1b[2J": (5, None, {}),
    "join:a+b:c": (5, None, [], {}),
    "messages": (5, None, {}, [[]], [5], DELTAS[-4], *DELTAS[:6]),
}
"""What rows of writes may say, by channel."""
INDEXES: tuple[Any, ...] = (
    -1, -2, -3, -4, -5, -(2**63), 2**63 - 1, 2**32, 1e300, -1e300, INF, -INF, 0.5, "99999999999999999999", "-1", "x", "", None,
    b"\x00", b"1", "0x1", " 1",
)  # fmt: skip
TASK_PATHS: tuple[Any, ...] = (
    "~", "~~", "~__pregel_pull", "~__pregel_pull,", "~__pregel_pull, ", "~__pregel_push", "~__pregel_push, x, y",
    "~__pregel_push, -1, -1",
    "~__pregel_push, 00000000000000000000000099, 0000000000", "~__pregel_push, 0000000000, 99999999999999999999",
    "~__interrupt__, x",
    "~__pregel_push, ~" * 900, "~__pregel_push, (" * 900, "~__pregel_push, ~__pregel_pull, a, 0, 1", "~" * 40_000,
    "(" * 40_000 + ")" * 40_000,
    "~__pregel_pull, \x1b[2J\u202e", "~__pregel_pull, a, node_error_handler, 0000000000", "~__pregel_push, \u0663, \u00b2",
    "('__pregel_pull', 'a')", 5, -1.5, None, b"\xff\xfe", b"~__pregel_pull, a", ", , ,", "~__pregel_push, True, 1e9",
)  # fmt: skip
TASK_IDS: tuple[Any, ...] = (
    "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff", "0000000S-0000-0000-0000-000000000000", "",
    "x",
    "a" * 5000, "\x1b[2J", "\u202e", "a|b", "a:b", 5, 1.5, None, b"\xff", b"00000000-0000-0000-0000-000000000000",
)  # fmt: skip
NAMESPACES: tuple[Any, ...] = (
    "|", "||", ":", ":|:", "a", "a:", ":a", "a:b", "a:b|", "|a:b", "a:b:c", "a|b|c", "a:1|a:1", "a:b|1", "a:b|1|2|c:d", "1",
    "1|1",
    "a:00000000-0000-0000-0000-000000000000", "|".join(["a:b"] * 900), "|" * 5000, ":" * 5000, "x" * 20_000,
    "a:\x1b[2J|\u202e:b",
    "a/b:c", "__start__:x", "__end__", " ", "\n", "\0", "%7C", "../..", 5, 0, -1.5, b"a:b", b"\xff:\xfe", None,
)  # fmt: skip


CELLS: tuple[Any, ...] = (
    None, 0, -1, 2**63 - 1, 1.5, INF, -INF, 1e308, "", "a.b", ".", "..", "a..b", "\0", "\x1b[2J", "\u202e", "{}", "[]", "null",
    "NaN", "{",
    '{"a": NaN}', '{"password": "hunter2", "a": "sk-proj-' + "a" * 40 + '"}', '{"a":' * 2000 + "1" + "}" * 2000, "9" * 5000,
    "json",
    "msgpack", "2026-01-01 00:00:00", "9999-12-31 99:99:99", b"", b"\xff", b"\x81\xa1a\x01", b"\x91" * 3000 + b"\x01",
    b"x" * 200_000,
)  # fmt: skip
