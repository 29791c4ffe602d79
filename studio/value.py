"""Stored bytes to inert values and back to the same bytes. Nothing is imported, called or unpickled on the way.

A value is None, bool, int, float, str, bytes, list, dict with text keys, or one of: `Tagged` (an object that its writer stored by
type name), `MapValue` (other keys than text) and `Opaque` (bytes that stay closed). Values are never changed in place.

Formats: LangGraph's `JsonPlusSerializer` (tags and msgpack extension codes) of every release. `decode` is shallow: the payload of
a `Tagged` is read when somebody asks for it.
"""

from __future__ import annotations

import contextlib
from typing import Any

from studio.codec import jsontext, msgpack_slow, shared
from studio.codec.inert import KEY_HINT, MISSING, MapValue, Missing, Opaque, Stored, StoredDict, with_stored_form
from studio.codec.objects import Tagged, dump_json, pack, unpack
from studio.codec.same import equal, sort_key
from studio.errors import PatchError

__all__ = [
    "KEY_HINT",
    "MISSING",
    "MapValue",
    "Missing",
    "Opaque",
    "Stored",
    "StoredDict",
    "Tagged",
    "decode",
    "decode_metadata",
    "encode",
    "equal",
    "sort_key",
]

# reading


def decode(tag: str | None, blob: bytes | bytearray | memoryview | str | None) -> Any:
    """The inert value of a stored blob under its serializer tag (None: JSON text). Never raises; damage is an `Opaque`."""
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
    if len(raw) >= shared.LARGE:
        known = shared.unpack(raw)
        if known is not MISSING:
            return known
    value = unpack(raw)
    if isinstance(value, Opaque) or _packs_to(value, raw):
        return value
    with contextlib.suppress(ValueError):  # bytes after the value: it is readable all the same
        value = msgpack_slow.unpack(raw, Tagged)  # keeps repeated keys, which the fast reader drops
    return value if _packs_to(value, raw) else with_stored_form(value, raw)


def _packs_to(value: Any, raw: bytes) -> bool:
    try:
        return pack(value) == raw
    except PatchError:
        return False


def _decode_json(raw: bytes) -> Any:
    text = raw.decode("utf-8", "surrogateescape")
    try:
        value = jsontext.loads(text, _json_object, strict=False)
    except (ValueError, RecursionError):
        return Opaque("damaged", raw)
    if value is None or isinstance(value, bool):
        return value  # white space around these is not worth a closed value
    return value if _dumps_to(value, text) else with_stored_form(value, raw)


def _dumps_to(value: Any, text: str) -> bool:
    try:
        return dump_json(value, jsontext.PYTHON) == text
    except PatchError:  # a key that stands twice
        return False


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
        original = _decode_msgpack(value.stored) if tag == "msgpack" else _json_value(value.stored)
        if equal(original, value):
            return value.stored
    if tag == "msgpack":
        return pack(value)
    if tag in (None, "json"):
        return dump_json(value, _style(like)).encode("utf-8", "surrogateescape")
    if tag in ("null", "empty"):
        if value is not None:
            raise PatchError(f"a value cannot be stored under the tag {tag!r}")
        return b""
    if tag in ("bytes", "bytearray"):
        if not isinstance(value, bytes):
            raise PatchError(f"only bytes can be stored under the tag {tag!r}")
        return bytes(value)
    raise PatchError(f"values stored as {tag!r} cannot be written", "Only msgpack and JSON values can be edited.")


def _json_value(raw: bytes) -> Any:
    return jsontext.loads(raw.decode("utf-8", "surrogateescape"), _json_object, strict=False)


def _style(like: bytes | None) -> jsontext.Style:
    """The layout of a stored JSON text: the one that gives the same text back, else LangGraph's."""
    if like:
        text = like.decode("utf-8", "surrogateescape")
        try:
            value = jsontext.loads(text, dict, strict=False)
            return next((style for style in jsontext.STYLES if jsontext.dumps(value, style) == text), jsontext.PYTHON)
        except ValueError:
            pass
    return jsontext.PYTHON
