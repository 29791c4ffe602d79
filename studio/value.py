"""Stored bytes to inert values and back to the same bytes. Nothing is imported, called or unpickled on the way.

A value is None, bool, int, float, str, bytes, list, dict with text keys, or one of: `Tagged` (an object that its writer stored by
type name), `MapValue` (other keys than text) and `Opaque` (bytes that stay closed). Values are never changed in place.

Formats: facts/langgraph-persistence 2.1 and 2.2. `decode` is shallow: the payload of a `Tagged` is read when somebody asks for it.
"""

from __future__ import annotations

import json
import math

from typing import Any

import ormsgpack

from studio import jsontext, msgpack_slow
from studio.errors import PatchError
from studio.inert import MISSING, MapValue, Missing, Opaque, Stored, StoredDict, with_stored_form

__all__ = ["MISSING", "MapValue", "Missing", "Opaque", "Stored", "StoredDict", "Tagged", "decode", "decode_metadata", "encode", "equal", "has_type"]

_SETS = {"set", "frozenset"}
_ITEMS = {("builtins", "set"), ("builtins", "frozenset"), ("collections", "deque")}
_PASS = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS | ormsgpack.OPT_PASSTHROUGH_DATETIME | ormsgpack.OPT_PASSTHROUGH_ENUM | ormsgpack.OPT_PASSTHROUGH_UUID
)


class Tagged:
    """A value stored together with the name of its type; never constructed, only described.

    `code` is the msgpack extension code (0-7, or one we do not know), `"lc1"`/`"lc2"` for the JSON envelopes, `"send"`/`"interrupt"`
    for `{"__send__": …}` and `{"__interrupt__": …}`. `raw` is the stored payload, None for JSON. `kind` says what the payload holds:
    `fields` (names and values), `args` (positional), `items` (members of a set or deque), `array` (numpy), `snapshot` (the value of a
    delta channel), `unknown`. Two are `==` when their stored forms are the same; `equal` compares what they mean.
    """

    __slots__ = ("_payload", "_shape", "code", "raw")
    code: int | str
    raw: bytes | None

    def __init__(self, code: int | str, raw: bytes | None = None, payload: Any = MISSING) -> None:
        self.code = code
        self.raw = raw
        self._payload = payload
        self._shape: tuple[str, str, str, str | None] | None = None

    @property
    def payload(self) -> Any:
        """The decoded inert payload, `[module, name, argument, …]` for codes 0-5; `Opaque` where its bytes are damaged."""
        if self._payload is MISSING:
            self._payload = _unpack(self.raw or b"")
        return self._payload

    @property
    def module(self) -> str:
        return self._described()[0]

    @property
    def name(self) -> str:
        return self._described()[1]

    @property
    def kind(self) -> str:
        return self._described()[2]

    @property
    def method(self) -> str | None:
        """The constructor that the writer named (`fromisoformat`, `model_validate_json`), if any."""
        return self._described()[3]

    @property
    def type_name(self) -> str:
        module, name = self._described()[:2]
        return f"{module}.{name}" if module else name

    @property
    def fields(self) -> dict[str, Any]:
        return self._content() if self.kind == "fields" else {}

    @property
    def items(self) -> list[Any]:
        return self._content() if self.kind == "items" else []

    @property
    def args(self) -> list[Any]:
        return self._content() if self.kind == "args" else []

    @property
    def is_set(self) -> bool:
        return self.kind == "items" and self.name in _SETS

    def _described(self) -> tuple[str, str, str, str | None]:
        if self._shape is None:
            self._shape = _describe(self.code, self.payload)
        return self._shape

    def _content(self) -> Any:
        kind, payload = self.kind, self.payload
        if isinstance(self.code, int):
            argument = payload[2]
            return argument if kind != "args" or self.code == 1 else [argument]
        if self.code in ("lc1", "lc2"):
            if kind == "fields":
                return payload.get("kwargs") or {}
            args = payload.get("args") or []
            return args[0] if kind == "items" else args
        return {key: value for key, value in payload.items() if key != f"__{self.code}__"}

    def replace(self, *, fields: dict[str, Any] | None = None, args: list[Any] | None = None, items: list[Any] | None = None) -> Tagged:
        """An edited copy of the same type. `PatchError` when the content does not fit its kind or cannot be stored."""
        content: Any = fields if fields is not None else args if args is not None else items
        if self.kind != ("fields" if fields is not None else "args" if args is not None else "items"):
            raise PatchError(f"a {self.type_name or 'value of unknown type'} has no such parts to set")
        if isinstance(self.code, int):
            if self.kind == "args" and self.code != 1:
                if len(content) != 1:
                    raise PatchError(f"a {self.type_name} holds exactly one argument")
                content = content[0]
            return Tagged.of_payload(self.code, [*self.payload[:2], content, *self.payload[3:]])
        if self.code in ("lc1", "lc2"):
            part = {"kwargs": content} if fields is not None else {"args": content if args is not None else [content]}
            return Tagged(self.code, None, {**self.payload, **part})
        marks = {key: value for key, value in self.payload.items() if key == f"__{self.code}__"}
        return Tagged(self.code, None, {**marks, **content})

    def replace_payload(self, payload: Any) -> Tagged:
        """The same code around another payload: for arrays and snapshots."""
        return Tagged.of_payload(self.code, payload) if isinstance(self.code, int) else Tagged(self.code, None, payload)

    @staticmethod
    def of_payload(code: int, payload: Any) -> Tagged:
        """An ext value made of its decoded payload; `PatchError` when that cannot be stored."""
        return Tagged(code, _pack(payload), payload)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tagged):
            return NotImplemented
        if self.code != other.code or self.raw != other.raw:
            return False
        return self.raw is not None or equal(self, other)

    def __hash__(self) -> int:
        return hash((self.code, self.raw if self.raw is not None else self.type_name))

    def __repr__(self) -> str:
        return f"Tagged({self.code!r}, {self.type_name!r}, {self.kind})"


def _describe(code: int | str, payload: Any) -> tuple[str, str, str, str | None]:
    """(module, name, kind, method) of a payload, trusting nothing about its form."""
    if isinstance(code, str):
        return _describe_json(code, payload)
    if code == 7:
        return "langgraph.checkpoint.serde.types", "_DeltaSnapshot", "snapshot", None
    if code not in range(7) or not isinstance(payload, list) or len(payload) < 3:
        return "", "", "unknown", None
    if code == 6:
        fits = len(payload) == 4 and isinstance(payload[0], str) and isinstance(payload[1], list) and isinstance(payload[3], bytes)
        return "numpy", "ndarray", "array" if fits else "unknown", None
    module, name, argument = payload[:3]
    if not isinstance(module, str) or not isinstance(name, str):
        return "", "", "unknown", None
    method = payload[3] if len(payload) > 3 and isinstance(payload[3], str) else None
    if code in (2, 4, 5):
        return module, name, "fields" if isinstance(argument, dict) else "unknown", method
    if code == 1:
        return module, name, "args" if isinstance(argument, list) else "unknown", method
    return module, name, "items" if (module, name) in _ITEMS and isinstance(argument, list) else "args", method


def _describe_json(code: str, payload: dict[str, Any]) -> tuple[str, str, str, str | None]:
    if code == "send":
        return "langgraph.types", "Send", "fields", None
    if code == "interrupt":
        return "langgraph.types", "Interrupt", "fields", None
    *path, name = payload["id"]
    method, args = payload.get("method"), payload.get("args")
    if isinstance(method, list):
        method = next((item for item in method if isinstance(item, str)), None)
    module, kind = ".".join(path), "fields"
    if isinstance(args, list) and args and not payload.get("kwargs"):
        kind = "items" if (module, name) in _ITEMS and len(args) == 1 and isinstance(args[0], list) else "args"
    return module, name, kind, method if isinstance(method, str) else None


# reading


def decode(tag: str | None, blob: bytes | None) -> Any:
    """The inert value of a stored blob under its serializer tag (None: JSON text). Never raises; damage comes back as `Opaque`."""
    raw = b"" if blob is None else blob if isinstance(blob, bytes) else _to_bytes(blob)
    if tag is not None and "+" in tag:
        return Opaque("encrypted", raw)
    if tag == "msgpack":
        return _decode_msgpack(raw)
    if tag in (None, "json"):
        return _decode_json(raw)
    if tag in ("null", "empty"):
        return None if not raw else Opaque("damaged", raw)
    if tag in ("bytes", "bytearray"):
        return raw
    return Opaque("pickle" if tag == "pickle" else "unsupported", raw)


def decode_metadata(blob: bytes | None) -> dict[str, Any]:
    """JSON metadata as a plain dict; {} where it is damaged or no object."""
    if not blob:
        return {}
    try:
        found = jsontext.loads(_to_bytes(blob).decode("utf-8", "surrogateescape"), dict, strict=False)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _to_bytes(blob: Any) -> bytes:
    return blob.encode("utf-8", "surrogateescape") if isinstance(blob, str) else bytes(blob)


def _decode_msgpack(raw: bytes) -> Any:
    value = _unpack(raw)
    if isinstance(value, Opaque):
        return value
    try:
        same = _pack(value) == raw
    except PatchError:
        same = False
    return value if same else with_stored_form(value, raw)


def _unpack(raw: bytes) -> Any:
    try:
        return ormsgpack.unpackb(raw, ext_hook=Tagged)
    except ValueError:
        pass
    try:
        return msgpack_slow.unpack(raw, Tagged)
    except ValueError:
        return Opaque("damaged", raw)


def _decode_json(raw: bytes) -> Any:
    text = raw.decode("utf-8", "surrogateescape")
    try:
        value = jsontext.loads(text, _json_object, strict=False)
    except (ValueError, RecursionError):
        return Opaque("damaged", raw)
    return value if _dump_json(value, jsontext.PYTHON) == text else with_stored_form(value, raw)


def _json_object(pairs: list[tuple[str, Any]]) -> Any:
    found = dict(pairs)
    if len(found) != len(pairs):
        return MapValue(pairs)
    version = found.get("lc")
    if version in (1, 2) and found.get("type") == "constructor":
        path = found.get("id")
        if isinstance(path, list) and path and all(isinstance(step, str) for step in path) and _envelope_fits(found):
            return Tagged(f"lc{version}", None, found)
    if found.get("__send__") is True and "node" in found:
        return Tagged("send", None, found)
    if found.get("__interrupt__") is True and "value" in found:
        return Tagged("interrupt", None, found)
    return found


def _envelope_fits(found: dict[str, Any]) -> bool:
    return type(found["lc"]) is int and isinstance(found.get("kwargs") or {}, dict) and isinstance(found.get("args") or [], list)


# writing


def encode(tag: str | None, value: Any, like: bytes | None = None) -> bytes:
    """The bytes to store under `tag`: the stored ones for untouched values, else what LangGraph's own writer would make.

    `like` is the blob the value came from: an edited JSON value is then laid out as that text was. `PatchError` for what the tag
    cannot hold.
    """
    if isinstance(value, Opaque):
        return value.raw
    if isinstance(value, Stored) and tag in (None, "json", "msgpack"):
        original = _unpack(value.raw) if tag == "msgpack" else jsontext_value(value.raw)
        if equal(original, value):
            return value.raw
    if tag == "msgpack":
        return _pack(value)
    if tag in (None, "json"):
        return _dump_json(value, _style(like)).encode("utf-8", "surrogateescape")
    if tag in ("null", "empty"):
        if value is not None:
            raise PatchError(f"a value cannot be stored under the tag {tag!r}")
        return b""
    if tag in ("bytes", "bytearray"):
        if not isinstance(value, bytes):
            raise PatchError(f"only bytes can be stored under the tag {tag!r}")
        return bytes(value)
    raise PatchError(f"values stored as {tag!r} cannot be written", "Only msgpack and JSON values can be edited.")


def jsontext_value(raw: bytes) -> Any:
    return jsontext.loads(raw.decode("utf-8", "surrogateescape"), _json_object, strict=False)


def _pack(value: Any) -> bytes:
    try:
        return ormsgpack.packb(value, default=_plain_or_ext, option=_PASS)
    except TypeError:
        return msgpack_slow.pack(value, _ext_of)


def _plain_or_ext(value: Any) -> Any:
    if isinstance(value, Tagged) and value.raw is not None and isinstance(value.code, int) and 0 <= value.code <= 127:
        return ormsgpack.Ext(value.code, value.raw)
    if isinstance(value, Stored):
        return float(value) if isinstance(value, float) else bytes(value)  # type: ignore[call-overload]
    raise TypeError


def _ext_of(value: Any) -> tuple[int, bytes] | None:
    if not isinstance(value, Tagged):
        return None
    if value.raw is None or not isinstance(value.code, int):
        raise PatchError(f"a {value.type_name} in the JSON form cannot be stored in a msgpack value", 'Give its "$ext" code as a number.')
    return value.code, value.raw


def _dump_json(value: Any, style: jsontext.Style) -> str:
    return jsontext.dumps(value, style, default=_json_form)


def _json_form(value: Any) -> Any:
    if isinstance(value, Tagged) and value.raw is None and isinstance(value.payload, dict):
        return value.payload
    if isinstance(value, Tagged):
        raise PatchError(f"a {value.type_name} in the msgpack form cannot be stored in a JSON value", 'Give its "$ext" as "lc1" or "lc2".')
    what = {MapValue: "a map with keys that are not text", Opaque: "unreadable bytes", bytes: "bytes"}.get(type(value), f"a Python {type(value).__name__}")
    raise PatchError(f"{what} cannot be stored in a JSON value")


def _style(like: bytes | None) -> jsontext.Style:
    """The layout of a stored JSON text: the one that gives the same text back, else LangGraph's."""
    if like:
        text = like.decode("utf-8", "surrogateescape")
        try:
            value = json.loads(text, strict=False)
            return next((style for style in jsontext.STYLES if jsontext.dumps(value, style) == text), jsontext.PYTHON)
        except (ValueError, RecursionError):
            pass
    return jsontext.PYTHON


# comparing


def has_type(value: Any, name: str) -> bool:
    """Whether a value is a `Tagged` of a class of this name, whatever its module."""
    return isinstance(value, Tagged) and value.name == name


def equal(a: Any, b: Any) -> bool:
    """Whether two stored values are the same, types included: 1, 1.0 and True differ, NaN equals NaN, -0.0 differs from 0.0.

    The order of keys and of set members does not count, nor whether an object is stored by msgpack or by JSON.
    """
    stack = [(a, b)]
    while stack:
        a, b = stack.pop()
        if a is b:
            continue
        if isinstance(a, Tagged):
            if not isinstance(b, Tagged) or not _push_tagged(a, b, stack):
                return False
        elif isinstance(a, dict):
            if not isinstance(b, dict) or len(a) != len(b):
                return False
            for key, left in a.items():
                right = b.get(key, MISSING)
                if right is MISSING:
                    return False
                if left is not right:
                    if type(left) is str and type(right) is str:
                        if left != right:
                            return False
                    else:
                        stack.append((left, right))
        elif isinstance(a, list):
            if not isinstance(b, list) or len(a) != len(b):
                return False
            stack.extend(zip(a, b, strict=True))
        elif isinstance(a, MapValue):
            if not isinstance(b, MapValue) or not _push_pairs(a, b, stack):
                return False
        elif not _same_scalar(a, b):
            return False
    return True


def _same_scalar(a: Any, b: Any) -> bool:
    if isinstance(a, bool) or isinstance(b, bool):
        return False  # True and False are singletons: `is` was tried before
    if isinstance(a, float):
        if not isinstance(b, float):
            return False
        return (a == b and math.copysign(1, a) == math.copysign(1, b)) or (a != a and b != b)
    for kind in (int, str, bytes, Opaque):
        if isinstance(a, kind):
            return isinstance(b, kind) and bool(a == b)
    return False


def _push_tagged(a: Tagged, b: Tagged, stack: list[tuple[Any, Any]]) -> bool:
    """False when the two differ for sure; else what remains to be compared is on the stack."""
    if a.code == b.code and a.raw is not None and a.raw == b.raw:
        return True
    if a._described()[:3] != b._described()[:3] or (a.code != b.code and isinstance(a.code, int) and isinstance(b.code, int)):
        return False
    if a.kind in ("array", "snapshot"):
        stack.append((a.payload, b.payload))
        return True
    if a.kind == "unknown":
        return a.code == b.code and a.raw == b.raw
    left, right = a._content(), b._content()
    if a.is_set:
        return sorted(map(sort_key, left)) == sorted(map(sort_key, right))
    stack.append((left, right))
    return True


def _push_pairs(a: MapValue, b: MapValue, stack: list[tuple[Any, Any]]) -> bool:
    if len(a) != len(b):
        return False
    left = sorted(a.pairs, key=lambda pair: sort_key(pair[0]))
    right = sorted(b.pairs, key=lambda pair: sort_key(pair[0]))
    for (left_key, left_value), (right_key, right_value) in zip(left, right, strict=True):
        stack.append((left_key, right_key))
        stack.append((left_value, right_value))
    return True


def sort_key(value: Any) -> bytes:
    """Bytes that are the same for equal values (up to the order of keys inside stored objects), for sorting and matching."""
    try:
        return ormsgpack.packb(value, default=_key_ext, option=_PASS | ormsgpack.OPT_SORT_KEYS)
    except TypeError:
        pass
    try:
        return msgpack_slow.pack(value, _key_pair)
    except PatchError:
        return repr(value).encode("utf-8", "surrogatepass")


def _key_pair(value: Any) -> tuple[int, bytes] | None:
    if isinstance(value, Tagged):
        if value.raw is not None and isinstance(value.code, int):
            return value.code, value.raw
        return 0, _dump_json(value, jsontext.PYTHON).encode("utf-8", "surrogateescape")
    return (1, value.raw) if isinstance(value, Opaque) else None


def _key_ext(value: Any) -> Any:
    if isinstance(value, float):
        return float(value)
    pair = _key_pair(value)
    if pair is None:
        raise TypeError
    return ormsgpack.Ext(pair[0] & 0x7F, pair[1])


