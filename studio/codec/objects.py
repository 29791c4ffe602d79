"""Objects that their writer stored by type name, described without being made, and the packer that puts them back."""

from __future__ import annotations

from typing import Any

import ormsgpack

from studio.codec import jsontext, msgpack_slow
from studio.codec.inert import MISSING, STORED, MapValue, Opaque, Stored
from studio.errors import PatchError

_SETS = {"set", "frozenset"}
_ITEMS = {("builtins", "set"), ("builtins", "frozenset"), ("collections", "deque")}
_KNOWN_CODES = range(7)
SNAPSHOT = 7
"""The code of a delta channel's whole value."""
_Ext = ormsgpack.Ext
PASS = (
    ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
)


class Tagged:
    """A value stored together with the name of its type; never constructed, only described.

    `code` is the msgpack extension code (0-7, or one we do not know), `"lc1"`/`"lc2"` for the JSON envelopes,
    `"send"`/`"interrupt"` for `{"__send__": …}` and `{"__interrupt__": …}`. `raw` is the stored payload, None for JSON. `kind`
    says what the payload holds: `fields` (names and values), `args` (positional), `items` (members of a set or deque), `array`
    (numpy), `snapshot` (the value of a delta channel), `unknown`. Two are `==` when their stored forms are the same; `equal`
    compares what they mean.
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
            self._payload = unpack(self.raw or b"")
        return self._payload

    @property
    def is_read(self) -> bool:
        return self._payload is not MISSING

    def take_payload(self, payload: Any) -> None:
        """Use a payload that somebody has decoded from these very bytes."""
        self._payload = payload

    @property
    def module(self) -> str:
        return self.described()[0]

    @property
    def name(self) -> str:
        return self.described()[1]

    @property
    def kind(self) -> str:
        return self.described()[2]

    @property
    def method(self) -> str | None:
        """The constructor that the writer named (`fromisoformat`, `model_validate_json`), if any."""
        return self.described()[3]

    @property
    def type_name(self) -> str:
        module, name = self.described()[:2]
        return f"{module}.{name}" if module else name

    @property
    def fields(self) -> dict[str, Any]:
        return self.content() if (self._shape or self.described())[2] == "fields" else {}

    @property
    def items(self) -> list[Any]:
        return self.content() if self.kind == "items" else []

    @property
    def args(self) -> list[Any]:
        return self.content() if self.kind == "args" else []

    @property
    def is_set(self) -> bool:
        return self.kind == "items" and self.name in _SETS

    def described(self) -> tuple[str, str, str, str | None]:
        """(module, name, kind, method)."""
        if self._shape is None:
            self._shape = _describe(self.code, None if self.code == SNAPSHOT else self.payload)
        return self._shape

    def content(self) -> Any:
        """The fields, items or args, whichever the kind has."""
        kind, payload = (self._shape or self.described())[2], self._payload  # each message of a long list is asked for its id
        if isinstance(self.code, int):
            argument = payload[2]
            return argument if kind != "args" or self.code == 1 else [argument]
        if self.code in ("lc1", "lc2"):
            if kind == "fields":
                return payload.get("kwargs") or {}
            args = payload.get("args") or []
            return args[0] if kind == "items" else args
        return {key: value for key, value in payload.items() if key != f"__{self.code}__"}

    def replace(
        self, *, fields: dict[str, Any] | None = None, args: list[Any] | None = None, items: list[Any] | None = None
    ) -> Tagged:
        """An edited copy of the same type. `PatchError` when the content does not fit its kind or cannot be stored."""
        content: Any = fields if fields is not None else args if args is not None else items
        if self.kind != ("fields" if fields is not None else "args" if args is not None else "items"):
            raise PatchError(f"a {self.type_name or 'value of unknown type'} has no such parts to set")
        if isinstance(self.code, int):
            if self.kind == "args" and self.code != 1:
                if len(content) != 1:
                    raise PatchError(f"a {self.type_name} holds exactly one argument")
                content = content[0]
            exact = self._exact_payload()
            return Tagged.of_payload(self.code, [*exact[:2], content, *exact[3:]])
        if self.code in ("lc1", "lc2"):
            part = {"kwargs": content} if fields is not None else {"args": content if args is not None else [content]}
            return Tagged(self.code, None, {**self.payload, **part})
        marks = {key: value for key, value in self.payload.items() if key == f"__{self.code}__"}
        return Tagged(self.code, None, {**marks, **content})

    def _exact_payload(self) -> Any:
        """The payload with whatever the fast reader leaves out, such as repeated keys."""
        try:
            return self.payload if pack(self.payload) == self.raw else msgpack_slow.unpack(self.raw or b"", Tagged)
        except (PatchError, ValueError):
            return self.payload

    def replace_payload(self, payload: Any) -> Tagged:
        """The same code around another payload: for arrays and snapshots."""
        return Tagged.of_payload(self.code, payload) if isinstance(self.code, int) else Tagged(self.code, None, payload)

    @staticmethod
    def of_payload(code: int, payload: Any) -> Tagged:
        """An ext value made of its decoded payload; `PatchError` when that cannot be stored."""
        return Tagged(code, pack(payload), payload)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tagged):
            return NotImplemented
        if self.code != other.code or self.raw != other.raw:
            return False
        return self.raw is not None or dump_json(self, jsontext.PYTHON) == dump_json(other, jsontext.PYTHON)

    def __hash__(self) -> int:
        return hash((self.code, self.raw if self.raw is not None else self.type_name))

    def __repr__(self) -> str:
        return f"Tagged({self.code!r}, {self.type_name!r}, {self.kind})"


class StoredTagged(Tagged, Stored):
    """An object whose ext head is not the smallest, or that other bytes follow."""


STORED[Tagged] = lambda value: StoredTagged(value.code, value.raw, value.payload)


def _describe(code: int | str, payload: Any) -> tuple[str, str, str, str | None]:
    """(module, name, kind, method) of a payload, trusting nothing about its form."""
    if isinstance(code, str):
        return _describe_json(code, payload)
    if code == SNAPSHOT:
        return "langgraph.checkpoint.serde.types", "_DeltaSnapshot", "snapshot", None
    if code not in _KNOWN_CODES or not isinstance(payload, list) or len(payload) < 3:
        return "", "", "unknown", None
    if code == 6:
        fits = (
            len(payload) == 4 and isinstance(payload[0], str) and isinstance(payload[1], list) and isinstance(payload[3], bytes)
        )
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


def unpack(raw: bytes) -> Any:
    try:
        return ormsgpack.unpackb(raw, ext_hook=Tagged)
    except ValueError:
        pass
    try:
        return msgpack_slow.unpack(raw, Tagged)
    except ValueError:
        return Opaque("damaged", raw)


def pack(value: Any) -> bytes:
    try:
        return ormsgpack.packb(value, default=_plain_or_ext, option=PASS)
    except TypeError:
        return msgpack_slow.pack(value, _ext_of)


def _plain_or_ext(value: Any) -> Any:
    if isinstance(value, Tagged):
        code, raw = value.code, value.raw
        if raw is not None and isinstance(code, int) and 0 <= code <= 127:
            return _Ext(code, raw)
    if isinstance(value, Stored):
        return float(value) if isinstance(value, float) else bytes(value)  # type: ignore[call-overload]
    raise TypeError


def _ext_of(value: Any) -> tuple[int, bytes] | None:
    if not isinstance(value, Tagged):
        return None
    if value.raw is None or not isinstance(value.code, int):
        raise PatchError(
            f"a {value.type_name} in the JSON form cannot be stored in a msgpack value", 'Give its "$ext" code as a number.'
        )
    return value.code, value.raw


def dump_json(value: Any, style: jsontext.Style) -> str:
    return jsontext.dumps(value, style, default=_json_form)


def _json_form(value: Any) -> Any:
    if isinstance(value, Tagged) and value.raw is None and isinstance(value.payload, dict):
        return value.payload
    if isinstance(value, Tagged):
        raise PatchError(
            f"a {value.type_name} in the msgpack form cannot be stored in a JSON value", 'Give its "$ext" as "lc1" or "lc2".'
        )
    what = {MapValue: "a map with keys that are not text, or that stand twice,", Opaque: "unreadable bytes", bytes: "bytes"}.get(
        type(value), f"a Python {type(value).__name__}"
    )
    raise PatchError(f"{what} cannot be stored in a JSON value")
