"""Tagged JSON back to stored values: the reading half of `studio.tagged`."""

from __future__ import annotations

import base64
import binascii
from collections import Counter
from collections.abc import Callable
from itertools import islice
from typing import Any

from studio.codec import jsontext
from studio.codec.arrays import as_array
from studio.codec.inert import MISSING, MapValue, Missing, Opaque
from studio.codec.msgpack_slow import make_map
from studio.codec.paths import item_id, join_path, list_of, map_of
from studio.errors import PatchError
from studio.lazy import lazy
from studio.model import Tagged_JSON, Value
from studio.value import Tagged, equal

_FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf"), "-0.0": -0.0}
_MASK = "[masked]"
"""Stands in the text of a `$masked` for each secret part."""
_PLACEHOLDERS = ("$masked", "$opaque", "$cut", "$array")
_PAIR = lazy(r"-?\d+")

Trail = tuple[Any, str] | None  # (trail of the parent, step), for messages
Finish = Callable[[], Any]
Hidden = Callable[[Value], bool]
_CUT_HINT = "Set a part of it by its own path, or write the whole value."


class _Reader:
    """An explicit stack of work: reading a container pushes its completion below the reading of its parts."""

    def __init__(self, hidden: Hidden | None = None) -> None:
        self.todo: list[tuple[Any, ...]] = []
        self.hidden = hidden

    def run(self, doc: Any, stored: Any) -> Any:
        root: list[Any] = [None]
        self.todo.append((None, doc, stored, root, 0, None))
        while self.todo:
            finish, doc, stored, target, slot, trail = self.todo.pop()
            target[slot] = finish() if finish is not None else self.read(doc, stored, target, slot, trail)
        return root[0]

    def read(self, doc: Any, stored: Any, target: Any, slot: Any, trail: Trail) -> Any:
        if isinstance(doc, dict):
            form = next((key for key in doc if key[:1] == "$"), None)
            if form is not None:
                return self.read_form(form, doc, stored, target, slot, trail)
            entries = map_of(stored) if not isinstance(stored, Tagged) else None
            return self.entries(doc, entries or {}, trail)
        if isinstance(doc, list):
            out: list[Any] = [None] * len(doc)
            known = list_of(stored) if isinstance(stored, list) else None
            matched = match_items(doc, known)
            for at, item in enumerate(doc):
                if is_item(item):
                    out[at] = _item(item, known, (trail, str(at)))
                else:
                    self.todo.append((None, item, matched[at], out, at, (trail, str(at))))
            return out
        return doc

    def entries(self, doc: dict[str, Any], stored: dict[str, Any], trail: Trail) -> dict[str, Any]:
        out: dict[str, Any] = dict.fromkeys(doc)
        self.todo.extend((None, item, stored.get(key, MISSING), out, key, (trail, key)) for key, item in doc.items())
        return out

    def read_form(self, form: str, doc: dict[str, Any], stored: Any, target: Any, slot: Any, trail: Trail) -> Any:
        if form in _PLACEHOLDERS:
            if form == "$cut" and not isinstance(stored, Missing):
                return self.read_cut(doc["$cut"], stored, target, slot, trail)
            return _stands_for(form, doc, stored, trail, self.hidden)
        if form == "$bytes" or (form == "$ext" and "$bytes" in doc and "$type" not in doc):
            raw = _bytes(doc["$bytes"], trail)
            return _unknown(doc["$ext"], raw, trail) if "$ext" in doc else raw
        if form == "$float":
            if doc["$float"] not in _FLOATS:
                raise _wrong("$float must be nan, inf, -inf or -0.0", trail)
            number = _FLOATS[doc["$float"]]
            return stored if equal(number, stored) else number  # a NaN keeps its bits
        if form == "$int":
            text = doc["$int"]
            if not isinstance(text, str) or not _PAIR.fullmatch(text):
                raise _wrong("$int must hold digits in a text", trail)
            return jsontext.text_int(text)
        if form == "$map":
            return self.read_map(doc["$map"], stored, target, slot, trail)
        if form == "$item":
            raise _wrong("$item stands for an item of a stored list, so it must stand in a list itself", trail)
        if form in ("$type", "$ext"):
            return self.read_object(doc, stored, target, slot, trail)
        raise _wrong(
            f"{form} is no form of tagged JSON",
            trail,
            'A map with a key that begins with $ is written {"$map": [[key, value], …]}.',
        )

    def read_cut(self, cut: Any, stored: Any, target: Any, slot: Any, trail: Trail) -> Any:
        """A value of which only the beginning was shown: the beginning must still be the stored one's."""
        if not isinstance(cut, dict) or "size" not in cut or "head" not in cut:
            raise _wrong('$cut needs the "size" and the "head" that were shown', trail, _CUT_HINT)
        head: list[Any] = [None]
        shown = _beginning(stored, len(cut["head"])) if isinstance(cut["head"], (str, list, dict)) else None

        def finish() -> Any:
            size = len(stored.pairs) if isinstance(stored, MapValue) else len(stored) if _has_length(stored) else None
            length = len(head[0].pairs) if isinstance(head[0], MapValue) else len(head[0]) if _has_length(head[0]) else 0
            if cut["size"] != size or length >= (size or 0) or not equal(head[0], _beginning(stored, length)):
                raise _wrong("what was shown of a cut value cannot be changed", trail, _CUT_HINT)
            return stored

        self.todo.append((finish, None, None, target, slot, trail))
        self.todo.append((None, cut["head"], shown if isinstance(stored, list) else stored, head, 0, trail))
        return None

    def read_map(self, pairs: Any, stored: Any, target: Any, slot: Any, trail: Trail) -> Any:
        if not isinstance(pairs, list) or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
            raise _wrong("$map must be a list of [key, value] pairs", trail)
        known = (
            stored.pairs
            if isinstance(stored, MapValue)
            else tuple((map_of(stored) or {}).items())
            if isinstance(stored, dict)
            else ()
        )
        out = [[None, None] for _ in pairs]

        def finish() -> Any:
            return make_map([(key, value) for key, value in out])

        self.todo.append((finish, None, None, target, slot, trail))
        for at, (key_doc, value_doc) in enumerate(pairs):
            key = from_tagged(key_doc)
            if isinstance(key, (list, dict)):
                key = _key(key)
            partner = next((value for other, value in known if equal(other, key)), MISSING)
            self.todo.append((None, value_doc, partner, out[at], 1, (trail, str(at))))
            out[at][0] = key
        return None

    def read_object(self, doc: dict[str, Any], stored: Any, target: Any, slot: Any, trail: Trail) -> Any:
        name, code = doc.get("$type"), doc.get("$ext")
        if not isinstance(name, str) or not (
            code in ("lc1", "lc2", "send", "interrupt") or (type(code) is int and code in (0, 1, 2, 3, 4, 5, 7))
        ):
            raise _wrong('an object needs "$type" (its full class name) and "$ext" (0-5, 7, "lc1" or "lc2")', trail)
        kind = next((part for part in ("fields", "args", "items", "value") if part in doc), None)
        content = doc.get(kind) if kind else None
        same_type = isinstance(stored, Tagged) and stored.type_name == name and stored.code == code
        parts: dict[str, Any] = {}

        def finish() -> Any:
            built = _build(code, name, doc.get("method"), kind, parts, stored if same_type else None, trail)
            return stored if same_type and equal(built, stored) and "$extra" not in doc else built

        if kind == "fields" and isinstance(content, dict):
            known: Any = stored.fields if same_type else MISSING
        elif kind in ("args", "items") and (isinstance(content, list) or (isinstance(content, dict) and "$cut" in content)):
            known = (list_of(stored) or []) if same_type else MISSING
        elif kind == "value":
            known = stored.payload if same_type else MISSING
        else:
            raise _wrong(f'a {name} needs "fields", "args" or "items"', trail)
        self.todo.append((finish, None, None, target, slot, trail))
        if "$extra" in doc:
            self.todo.append((None, doc["$extra"], MISSING, parts, "extra", (trail, "$extra")))
        self.todo.append((None, content, known, parts, kind, trail))
        return None


def from_tagged(doc: Tagged_JSON, stored: Value | Missing = MISSING, hidden: Hidden | None = None) -> Value:
    """The value that a document describes.

    `stored` is the value that stands at its place now: `$masked`, `$opaque`, `$cut` and `$array` take it over, and an object that
    was not changed keeps its stored bytes. `hidden` says of a stored value whether it is shown as `$masked`; without it `$masked`
    stands for any. `PatchError` for forms that do not exist, and for placeholders that stand for nothing or for something else.
    """
    return _Reader(hidden).run(doc, stored)


def is_item(doc: Any) -> bool:
    """Whether a document stands for an item of the stored list as it is, by its position."""
    return isinstance(doc, dict) and len(doc) == 1 and "$item" in doc


def _item(doc: dict[str, Any], known: list[Any] | None, trail: Trail) -> Any:
    at = doc["$item"]
    if type(at) is not int or known is None or not 0 <= at < len(known):
        raise _wrong(f"there is no stored item {at!r} in the list here", trail, "$item counts from 0.")
    return known[at]


def _has_length(value: Any) -> bool:
    return isinstance(value, (str, bytes, bytearray, list, dict))


def _beginning(value: Any, length: int) -> Any:
    """The first parts of a text, of bytes or of a collection."""
    if isinstance(value, MapValue):
        return make_map(list(value.pairs[:length]))
    if isinstance(value, dict):
        return dict(islice(value.items(), length))
    return value[:length] if _has_length(value) else value


def _stands_for(form: str, doc: dict[str, Any], stored: Any, trail: Trail, hidden: Hidden | None) -> Any:
    if isinstance(stored, Missing):
        raise _wrong(
            f"nothing is stored that {form} could stand for",
            trail,
            "Write the value itself, or set only the value that changes by its own path.",
        )
    if form == "$array" and not (isinstance(stored, Tagged) and stored.kind == "array"):
        raise _wrong("there is no stored array here", trail)
    if form == "$array" and not _same_array(doc["$array"], stored):
        raise _wrong("what was shown of an array cannot be changed", trail, "Set one of its elements by its path.")
    if form == "$masked" and hidden is not None and not hidden(stored):
        raise _wrong("what is stored here is not masked, so $masked stands for nothing", trail, "Write the value itself.")
    if form == "$masked" and "text" in doc and not _same_beside(doc["text"], stored):
        raise _wrong(
            "the text around a masked part cannot be changed",
            trail,
            "Leave it as it was shown, write the whole text, or work with --show-secrets.",
        )
    if form == "$opaque" and not isinstance(stored, Opaque):
        raise _wrong("there are no unreadable bytes stored here", trail)
    if form == "$opaque" and any(doc[name] != getattr(stored, name) for name in ("size", "sha256") if name in doc):
        raise _wrong("the unreadable bytes stored here are others", trail)
    return stored


def _same_array(shown: Any, stored: Tagged) -> bool:
    """Whether what a document says of an array is so; it need not say all."""
    array = as_array(stored)
    if array is None or not isinstance(shown, dict):
        return bool(shown == {})
    preview = array.preview()
    if shown.get("dtype", array.dtype) != array.dtype or shown.get("shape", array.shape) != array.shape:
        return False
    given = shown.get("preview", preview)
    if preview is None or not isinstance(given, list):
        return given is None and preview is None
    return len(given) == len(preview) and all(equal(from_tagged(one), two) for one, two in zip(given, preview, strict=True))


def _same_beside(shown: Any, stored: Any) -> bool:
    """Whether a text is the stored one with masks in the place of some parts."""
    if not isinstance(shown, str) or not isinstance(stored, str):
        return False
    first, *more = shown.split(_MASK)
    at, end = len(first), len(stored) - len(more[-1]) if more else 0
    if not more or not stored.startswith(first) or not stored.endswith(more[-1]) or end < at:
        return False
    for part in more[:-1]:
        at = stored.find(part, at, end) + len(part)
        if at < len(part):
            return False
    return True


def _bytes(text: Any, trail: Trail) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise _wrong("$bytes must be base64", trail) from error


def _unknown(code: Any, raw: bytes, trail: Trail) -> Tagged:
    if type(code) is not int or not -128 <= code <= 127:
        raise _wrong("$ext must be a code from -128 to 127", trail)
    return Tagged(code, raw)


def _key(key: Any) -> Any:
    return tuple(map(_key, key)) if isinstance(key, list) else key


def _build(
    code: Any, name: str, method: Any, kind: str | None, parts: dict[str, Any], stored: Tagged | None, trail: Trail
) -> Tagged:
    module, _, short = name.rpartition(".")
    content = parts[kind or ""]
    extra = parts.get("extra") or {}
    if code in ("lc1", "lc2"):
        if stored is not None and "extra" not in parts:
            return stored.replace(**{str(kind): content})
        head = {"lc": int(code[2]), "type": "constructor", "id": [*module.split("."), short]}
        named = {"method": method} if isinstance(method, str) else {}
        body = {"kwargs": content} if kind == "fields" else {"args": content if kind == "args" else [content]}
        merged = {**head, **named, **extra, **body}
        order = [
            key
            for key in (stored.payload if stored is not None else ("lc", "type", "id", "method", "args", "kwargs"))
            if key in merged
        ]
        return Tagged(code, None, {key: merged[key] for key in [*order, *(key for key in merged if key not in order)]})
    if code in ("send", "interrupt"):
        return Tagged(code, None, {f"__{code}__": True, **content})
    if code == 7:
        return Tagged.of_payload(7, content)
    if kind == "args" and code != 1:
        if len(content) != 1:
            raise _wrong(f"a {name} stored under code {code} holds exactly one argument", trail)
        content = content[0]
    payload = [module, short, content, *([method] if isinstance(method, str) else []), *extra.get("rest", [])]
    return Tagged.of_payload(code, payload)


def match_items(doc: list[Any], stored: list[Any] | None) -> list[Any]:
    """For each item of a document the stored item it stands for, or `MISSING`: by id, else by content, else by position.

    By content: the document's item, its placeholders filled in from the stored one, equals it. Positions count only while the
    list has kept its length, and for a placeholder only where no other item turned out to be the one stored there: what a masked
    part stands for must move with its item.
    """
    if not stored:
        return [MISSING] * len(doc)
    names = [item_id(item) for item in stored]
    counts = Counter(names)
    by_id = {name: item for name, item in zip(names, stored, strict=True) if name is not None and counts[name] == 1}
    same_length = len(doc) == len(stored)
    masked = [at for at, item in enumerate(doc) if _doc_id(item) is None and _has_placeholder(item)]
    meant = _by_content(doc, masked, stored, [at for at, name in enumerate(names) if name is None], same_length)
    taken = set(meant.values())
    out: list[Any] = []
    for at, item in enumerate(doc):
        name = _doc_id(item)
        if at in meant:
            out.append(stored[meant[at]])
        elif same_length and name == names[at] and not (at in taken and at in masked):
            out.append(stored[at])
        elif name is not None and name in by_id:
            out.append(by_id[name])
        else:
            out.append(MISSING)
    return out


def _by_content(doc: list[Any], masked: list[int], stored: list[Any], unnamed: list[int], same_length: bool) -> dict[int, int]:
    """Place in a document -> the place in the stored list whose item it is, unchanged; the own place is tried first."""
    found: dict[int, int] = {}
    for at in masked:
        if same_length and _fits(doc[at], stored[at]):
            found[at] = at
            continue
        fits: list[int] = []
        for place in unnamed:
            if _fits(doc[at], stored[place]) and not any(equal(stored[place], stored[other]) for other in fits):
                fits.append(place)
        if len(fits) == 1:
            found[at] = fits[0]
    return found


def _fits(doc: Any, candidate: Any) -> bool:
    try:
        return equal(from_tagged(doc, candidate), candidate)
    except PatchError:
        return False


def _has_placeholder(doc: Any) -> bool:
    stack = [doc]
    while stack:
        doc = stack.pop()
        if isinstance(doc, dict):
            if any(form in doc for form in _PLACEHOLDERS):
                return True
            stack.extend(doc.values())
        elif isinstance(doc, list):
            stack.extend(doc)
    return False


def _doc_id(doc: Any) -> str | None:
    if not isinstance(doc, dict):
        return None
    fields = doc.get("fields", doc) if "$type" in doc else doc
    found = fields.get("id") if isinstance(fields, dict) else None
    return found if isinstance(found, str) and found else None


def _wrong(message: str, trail: Trail, hint: str = "") -> PatchError:
    steps: list[str] = []
    while trail is not None:
        trail, step = trail
        steps.append(step)
    where = join_path(steps[::-1])
    return PatchError(f"{message} (at {where})" if where else message, hint, "bad-value")
