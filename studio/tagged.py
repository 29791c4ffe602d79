"""Tagged JSON: the one exchange form for values (command line, editor, patch files, exports), and patches made of it.

Plain JSON stays plain; everything else is an object with a `$` key, so that an untouched document reads back to the
same stored bytes: `$type` with `$ext` and `fields`, `args` or `items` (objects by stored extension code), `$bytes`, `$float`
(nan, inf, -inf, -0.0), `$int` (beyond 2^53), `$map` (keys that are not plain text), `$array`, `$opaque` (pickle, encrypted,
damaged), `$masked` (a secret; in a patch the stored value), `$cut` (shortened), `$item` (in a list of a patch: the stored list's
item at that index, as it is). `{"$ext": 42, "$bytes": …}` is a code that nobody
knows, `"value"` the content of a delta snapshot, `"$extra"` further entries of a JSON envelope. Values may have any depth.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

from studio.codec import jsontext
from studio.codec.arrays import as_array
from studio.codec.inert import MISSING, MapValue, Missing, Opaque
from studio.codec.paths import children, get, item_id, join_path, set_in, split_path, unset_in
from studio.codec.untagged import Hidden, from_tagged, is_item
from studio.errors import PatchError, RefError
from studio.model import Tagged_JSON, Value
from studio.value import Tagged

if TYPE_CHECKING:
    from studio.requests import Patch

__all__ = [
    "apply_patch", "children", "dumps", "from_tagged", "get", "is_item", "item_id", "join_path", "loads", "set_in", "split_path",
    "to_tagged", "unset_in", ]  # fmt: skip

Mask = Callable[[str | None, Value], str | None]
Pair = Callable[[Value], tuple[Any, str] | None]

EXACT = 1 << 53
"""Integers beyond this lose digits in readers that know only doubles."""

_DECIMAL_COMMA = re.compile(r"(?<![\w.,])-?(?:0|[1-9]\d*),\d+(?![\w.,])")


def to_tagged(
    value: Value,
    *,
    mask: Mask | None = None,
    rest: Callable[[str | None, str], str | None] | None = None,
    pair: Pair | None = None,
    limit: int | None = None,
    key: str | None = None,
    cache: dict[Any, Tagged_JSON] | None = None,
) -> Tagged_JSON:
    """A value as tagged JSON.

    `mask(key, value)` gives the reason why a value must not be shown, or None; the key is the name it stands under (of the value
    itself: `key`). `pair(value)` gives the member whose name stands beside it, and that name.
    `rest(key, text)` gives what may be read of a masked text, or None: it becomes `{"$masked": reason, "text": …}`.
    `limit` is the longest text (characters) or collection (entries) that is given whole; longer ones become
    `{"$cut": {"size", "head"}}`. `cache` keeps the documents of stored objects between calls with the same `mask` and `limit`;
    documents then share parts and must not be changed.
    """
    root: list[Any] = [None]
    stack: list[tuple[Any, str | None, Any, Any]] = [(value, key, root, 0)]
    while stack:
        item, name, target, slot = stack.pop()
        known = None
        if cache is not None and isinstance(item, Tagged) and item.raw is not None:
            known = (name, item.code, item.raw)
            if known in cache:
                target[slot] = cache[known]
                continue
        reason = mask(name, item) if mask is not None else None
        if reason is not None:
            target[slot] = _masked(item, reason)
            if rest is not None and isinstance(item, str) and (readable := rest(name, item)) is not None:
                target[slot]["text"] = readable if limit is None else readable[:limit]
        else:
            below = len(stack)
            target[slot] = _one(item, name, stack, limit)
            if pair is not None and below < len(stack) and (found := pair(item)) is not None:
                _name_member(stack, below, *found)
        if cache is not None and known is not None:
            cache[known] = target[slot]
    return root[0]


def _name_member(stack: list[Any], below: int, member: Any, name: str) -> None:
    """Give the parts of a value that were put on the stack last the name that stands beside one of them."""
    for at in range(below, len(stack)):
        item, key, target, slot = stack[at]
        if slot == member or (slot == 1 and key == member):  # the second is an entry of a `$map`
            stack[at] = (item, name, target, slot)


def _masked(item: Any, reason: str) -> Any:
    """A placeholder; an object that wraps one secret and nothing else, such as a `SecretStr`, keeps its type around it."""
    placeholder = {"$masked": reason}
    plain = isinstance(item, Tagged) and item.kind == "args" and len(item.args) == 1 and isinstance(item.code, int)
    if plain and item.method is None and not _extra(item):
        return {"$type": item.type_name, "$ext": item.code, "args": [placeholder]}
    return placeholder


def _one(item: Any, key: str | None, stack: list[Any], limit: int | None) -> Any:
    """The document of a scalar, or an empty container whose parts are put on the stack."""
    if item is None or item is True or item is False:
        return item
    if isinstance(item, str):
        return str(item) if limit is None or len(item) <= limit else {"$cut": {"size": len(item), "head": item[:limit]}}
    if isinstance(item, int):
        return int(item) if -EXACT <= item <= EXACT else {"$int": jsontext.int_text(item)}
    if isinstance(item, float):
        return _float(item)
    if isinstance(item, list):
        return _list(item, key, stack, limit)
    if isinstance(item, dict):
        if "$" in "".join(item) and any(name[:1] == "$" for name in item):
            return _pairs(list(item.items()), stack, limit)
        return _map(item, stack, limit)
    if isinstance(item, Tagged):
        return _tagged(item, key, stack, limit)
    if isinstance(item, (bytes, bytearray)):
        if limit is not None and len(item) > limit:
            return {"$cut": {"size": len(item), "head": {"$bytes": _base64(item[:limit]), "size": limit}}}
        return {"$bytes": _base64(item), "size": len(item)}
    if isinstance(item, MapValue):
        return _pairs(list(item.pairs), stack, limit)
    if isinstance(item, Opaque):
        names = {"names": list(item.names)} if item.names else {}
        return {"$opaque": item.reason, "size": item.size, "sha256": item.sha256, **names}
    raise TypeError(f"{type(item).__name__} is no stored value")


def _float(number: float) -> Any:
    if math.isfinite(number) and (number != 0 or math.copysign(1, number) > 0):
        return float(number)
    return {"$float": "nan" if number != number else "-0.0" if number == 0 else "inf" if number > 0 else "-inf"}


def _base64(raw: bytes | bytearray) -> str:
    return base64.b64encode(raw).decode("ascii")


def _list(items: list[Any], key: str | None, stack: list[Any], limit: int | None) -> Any:
    shown = items if limit is None else items[:limit]
    out: list[Any] = [None] * len(shown)
    stack.extend((shown[index], key, out, index) for index in range(len(shown) - 1, -1, -1))
    return out if len(shown) == len(items) else {"$cut": {"size": len(items), "head": out}}


def _map(entries: dict[str, Any], stack: list[Any], limit: int | None) -> Any:
    shown = entries if limit is None or len(entries) <= limit else dict(islice(entries.items(), limit))
    out: dict[str, Any] = dict.fromkeys(map(str, shown))
    stack.extend((item, name, out, name) for name, item in shown.items())
    return out if len(shown) == len(entries) else {"$cut": {"size": len(entries), "head": out}}


def _pairs(pairs: list[tuple[Any, Any]], stack: list[Any], limit: int | None) -> Any:
    out: list[Any] = []
    for name, item in pairs[:limit]:
        pair = [None, None]
        out.append(pair)
        stack.append((name, None, pair, 0))
        stack.append((item, _name_of(name), pair, 1))
    return {"$map": out} if len(out) == len(pairs) else {"$cut": {"size": len(pairs), "head": {"$map": out}}}


def _name_of(key: Any) -> str | None:
    """A key as a name: a text, or bytes that are one."""
    if isinstance(key, (bytes, bytearray)):
        return bytes(key[:400]).decode("utf-8", "replace")
    return key if isinstance(key, str) else None


def _tagged(value: Tagged, key: str | None, stack: list[Any], limit: int | None) -> Any:
    kind = value.kind
    if kind == "unknown":
        return {"$ext": value.code, "$bytes": _base64(value.raw or b""), "size": len(value.raw or b"")}
    if kind == "array":
        return {"$array": _array(value)}
    out: dict[str, Any] = {"$type": value.type_name, "$ext": value.code}
    if value.method is not None:
        out["method"] = value.method
    if kind == "fields":
        out["fields"] = {}
        if any(name[:1] == "$" for name in value.fields):
            out["fields"] = _pairs(list(value.fields.items()), stack, None)
        else:
            out["fields"] = _map(value.fields, stack, None)
    elif kind == "snapshot":
        out["value"] = None
        stack.append((value.payload, key, out, "value"))
    else:
        out[kind] = _list(value.items if kind == "items" else value.args, key, stack, limit)
    extra = _extra(value)
    if extra:
        out["$extra"] = None
        stack.append((extra, None, out, "$extra"))
    return out


def _extra(value: Tagged) -> dict[str, Any]:
    """What an envelope or payload holds beyond its usual parts, so that the document is complete."""
    payload = value.payload
    if isinstance(value.code, int):
        usual = 4 if value.method is not None else 3
        return {"rest": payload[usual:]} if isinstance(payload, list) and len(payload) > usual else {}
    if value.code not in ("lc1", "lc2"):
        return {}
    content = "kwargs" if value.kind == "fields" else "args"
    usual_keys = {"lc", "type", "id", content} | ({"method"} if isinstance(payload.get("method"), str) else set())
    return {name: item for name, item in payload.items() if name not in usual_keys}


def _array(value: Tagged) -> dict[str, Any]:
    array = as_array(value)
    if array is None:
        return {}
    preview = array.preview()
    shown: dict[str, Any] = {
        "dtype": array.dtype,
        "shape": array.shape,
        "preview": preview if preview is None else [to_tagged(item) for item in preview],
    }
    if preview is None:
        shown["unreadable"] = (
            "it holds memory addresses, not values" if "O" in array.dtype else "its bytes do not fit its type and shape"
        )
    return shown


def dumps(doc: Tagged_JSON, indent: int | None = None) -> str:
    """Pure ASCII JSON text of a document of any depth; everything else is escaped, nothing is replaced."""
    return jsontext.dumps(doc, jsontext.Style(ascii=True), indent=indent)


def loads(text: str) -> Tagged_JSON:
    """Parse a document. `499.0` stays a float; `PatchError` names line and column of what is wrong, repeated keys included."""
    try:
        return jsontext.loads(text, _unique, constants=False)
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        point = _with_point(text, error.pos)
        if point:
            raise PatchError(f"no valid JSON: write {point}, with a point, {where}", "", "bad-json") from error
        raise PatchError(f"no valid JSON: {error.msg} {where}", "Texts need double quotes.", "bad-json") from error
    except ValueError as error:
        raise PatchError(f"no valid JSON: {error}", "", "bad-json") from error


def _with_point(text: str, at: int) -> str:
    """The number with a decimal comma that a text breaks at, as JSON writes it; "" where there is none."""
    around = _DECIMAL_COMMA.finditer(text, max(0, at - 40), at + 40)
    return next((found[0].replace(",", ".") for found in around if found.start() <= at <= found.end()), "")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise PatchError(f"no valid JSON: the key {double!r} stands twice in one object", "Keep one of them.", "bad-json")
    return found


def apply_patch(
    values: Mapping[str, Value], patch: Patch, hidden: Callable[[str, Value], Hidden] | None = None
) -> dict[str, Value]:
    """The values after a patch: first what is set, in order, then what is removed. `PatchError` when something does not fit.

    `hidden(channel, value)` gives what says which parts of a channel's value are shown as `$masked`: see `from_tagged`.
    """
    result: dict[str, Value] = dict(values)
    for path, doc in patch.set.items():
        steps = _patch_steps(path)
        try:
            stored = get(result, path)
        except RefError:
            stored = MISSING
        new = from_tagged(doc, stored, hidden(steps[0], result.get(steps[0])) if hidden is not None else None)
        result = {**result, steps[0]: new} if len(steps) == 1 else set_in(result, path, new)
    for path in _removal_order(result, patch.unset):
        result = unset_in(result, path)
    return result


def _patch_steps(path: str) -> list[str]:
    try:
        steps = split_path(path)
    except RefError as error:
        raise PatchError(error.message, error.hint, "bad-path") from error
    if not steps:
        raise PatchError("a path must name a channel", "A path looks like /messages/3/content.", "bad-path")
    return steps


def _removal_order(values: dict[str, Value], paths: tuple[str, ...]) -> list[str]:
    """Paths ordered so that removing one does not shift another: later list items first."""
    keyed = []
    for path in dict.fromkeys(paths):
        here: Any = values
        order: list[tuple[int, str]] = []
        for step in _patch_steps(path):
            index = None
            if not isinstance(here, Missing):
                index = (
                    next((at for at, (_, item) in enumerate(children(here)) if item_id(item) == step[3:]), None)
                    if step.startswith("id:")
                    else None
                )
                here = _down(here, step)
            order.append((index if index is not None else int(step) if step.isdigit() and len(step) < 12 else -1, step))
        keyed.append((order, path))
    return [path for _, path in sorted(keyed, key=lambda pair: [part[0] for part in pair[0]], reverse=True)]


def _down(value: Any, step: str) -> Any:
    from studio.codec.paths import child

    return child(value, step)
