"""Paths: JSON Pointers (RFC 6901) over what a value means: keys, list indices, fields of objects, members of sets, array indices.

No step stands for `fields` or `args`. A list item is also addressed by its id (`/messages/id:ID/content`) and `-` is the place
after the last one. A key that is no text is written in brackets as JSON, `/scores/[7]`; so is a text key that itself looks like
that (`/x/["[7]"]`). Setting makes copies along the path; values are never changed in place.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from studio.codec.arrays import Array, as_array
from studio.codec.inert import MISSING, MapValue, Missing, StoredDict
from studio.codec.msgpack_slow import make_map
from studio.errors import PatchError, RefError
from studio.value import Tagged

VALUE_STEP = "value"
"""The one step into a delta snapshot."""


def split_path(path: str) -> list[str]:
    """The steps of a path; `RefError` when it does not begin with `/`."""
    if not path:
        return []
    if not path.startswith("/"):
        raise RefError(f"the path {path!r} does not begin with /", "A path looks like /messages/3/content.", "bad-path")
    return [step.replace("~1", "/").replace("~0", "~") for step in path[1:].split("/")]


def join_path(steps: Sequence[str]) -> str:
    """The path of some steps; "" for none."""
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)


def key_step(key: Any) -> str:
    """The step for a key of any type; different keys have different steps."""
    if isinstance(key, str):
        return f"[{json.dumps(key)}]" if key.startswith("[") and key.endswith("]") else key
    from studio.tagged import dumps, to_tagged

    return f"[{dumps(to_tagged(key))}]"


def item_id(value: Any) -> str | None:
    """The id by which a list item is known: the text field `id` of an object or a map."""
    if isinstance(value, Tagged):
        found = value.fields.get("id")
    elif isinstance(value, dict):
        found = value.get("id")
    else:
        return None
    return found if isinstance(found, str) and found else None


def list_of(value: Any) -> list[Any] | None:
    """The items of a list, set or deque, the arguments of an object, else None."""
    if isinstance(value, list):
        return value
    if isinstance(value, Tagged):
        return value.items if value.kind == "items" else value.args if value.kind == "args" else None
    return None


def map_of(value: Any) -> dict[str, Any] | None:
    """The entries of a map with text keys or the fields of an object, else None."""
    if isinstance(value, dict):
        return value
    return value.fields if isinstance(value, Tagged) and value.kind == "fields" else None


def children(value: Any) -> list[tuple[str, Any]]:
    """(step, value) of everything directly inside a value; [] for scalars, unreadable and unknown values."""
    entries = map_of(value)
    if entries is not None:
        return [(key_step(key), item) for key, item in entries.items()]
    items = list_of(value)
    if items is not None:
        return [(str(index), item) for index, item in enumerate(items)]
    if isinstance(value, MapValue):
        return [(key_step(key), item) for key, item in value.pairs]
    if isinstance(value, Tagged) and value.kind == "snapshot":
        return [(VALUE_STEP, value.payload)]
    return []


def get(value: Any, path: str) -> Any:
    """The value at a path; `RefError` when there is none."""
    steps = split_path(path)
    for depth, step in enumerate(steps):
        array = as_array(value)
        if array is not None:
            return _element(array, steps[depth:], path)
        value = child(value, step)
        if isinstance(value, Missing):
            raise RefError(
                f"there is no {join_path(steps[: depth + 1])}",
                "Look at the value above it for the names that exist.",
                "no-such-path",
            )
    return value


def child(value: Any, step: str) -> Any:
    """The value one step down, or `MISSING`."""
    entries = map_of(value)
    if entries is not None:
        key = _text_key(step)
        return MISSING if key is None else entries.get(key, MISSING)
    items = list_of(value)
    if items is not None:
        index = find_index(items, step)
        return MISSING if index is None else items[index]
    if isinstance(value, MapValue):
        index = _pair_index(value, step)
        return MISSING if index is None else value.pairs[index][1]
    if isinstance(value, Tagged) and value.kind == "snapshot" and step == VALUE_STEP:
        return value.payload
    return MISSING


def find_index(items: Sequence[Any], step: str) -> int | None:
    """The position that a step names in a list: an index, or the id of an item."""
    if step.startswith("id:"):
        wanted = step[3:]
        return next((index for index, item in enumerate(items) if item_id(item) == wanted), None)
    if not step.isascii() or not step.isdigit() or len(step) > 12 or (len(step) > 1 and step[0] == "0"):
        return None
    index = int(step)
    return index if index < len(items) else None


def _pair_index(value: MapValue, step: str, exact: bool = False) -> int | None:
    found = next((index for index, (key, _) in enumerate(value.pairs) if key_step(key) == step), None)
    if found is not None or exact:
        return found
    return next(
        (index for index, (key, _) in enumerate(value.pairs) if not isinstance(key, str) and key_step(key) == f"[{step}]"), None
    )


def _text_key(step: str) -> str | None:
    """The text key that a step names; None when it names a key of another type."""
    key = _key_of(step)
    return key if isinstance(key, str) else None


def _key_of(step: str) -> Any:
    """The key that a step names: the step itself, or what its brackets hold."""
    if step.startswith("[") and step.endswith("]"):
        from studio.tagged import from_tagged, loads

        try:
            return from_tagged(loads(step[1:-1]))
        except PatchError:
            pass
    return step


def _element(array: Array, steps: Sequence[str], path: str) -> Any:
    if array.readable and all(step.isascii() and step.isdigit() and len(step) < 12 for step in steps):
        try:
            return array.element([int(step) for step in steps])
        except IndexError:
            pass
    raise RefError(
        f"there is no element at {path}", f"The array is of type {array.dtype} and shape {array.shape}.", "no-such-path"
    )


def set_in(value: Any, path: str, new: Any) -> Any:
    """A copy of `value` with `new` at `path`: an entry is added or replaced, a list item replaced or added at `-`.

    `PatchError` when the path leads nowhere.
    """
    steps = split_path(path)
    if not steps:
        return new
    depth = 0
    trail: list[Any] = []
    here = value
    for depth, step in enumerate(steps[:-1]):
        array = as_array(here)
        if array is not None:
            break
        trail.append(here)
        here = child(here, step)
        if isinstance(here, Missing):
            raise PatchError(
                f"there is no {join_path(steps[: depth + 1])} to set {join_path(steps)} in", "Set the value above it as a whole."
            )
    else:
        depth = len(steps) - 1
    array = as_array(here)
    if array is not None:
        here = _set_element(array, steps[depth:], path, new)
    else:
        here = with_child(here, steps[-1], new, path)
    for parent, step in zip(reversed(trail), reversed(steps[: len(trail)]), strict=True):
        here = with_child(parent, step, here, path)
    return here


def _set_element(array: Array, steps: Sequence[str], path: str, new: Any) -> Tagged:
    _element(array, steps, path)
    return array.with_element([int(step) for step in steps], new)


def with_child(value: Any, step: str, new: Any, path: str = "", *, exact: bool = False) -> Any:
    """A copy of `value` with one direct child set. Not `exact`: `7` also finds the key 7 where there is no key "7"."""
    entries = map_of(value)
    if entries is not None:
        key = _key_of(step)
        if not isinstance(key, str):
            if isinstance(value, Tagged):
                raise PatchError(f"the field {step} of a {value.type_name} must be a text")
            return MapValue([*entries.items(), (key, new)])
        return rebuilt(value, {**entries, key: new})
    items = list_of(value)
    if items is not None:
        index = len(items) if step == "-" else find_index(items, step)
        if index is None:
            if step != str(len(items)):
                raise PatchError(
                    f"there is no item {step} at {path or step}", f"The list has {len(items)} items; `-` adds one at its end."
                )
            index = len(items)
        return rebuilt(value, [*items[:index], new, *items[index + 1 :]])
    if isinstance(value, MapValue):
        at = _pair_index(value, step, exact)
        pairs = list(value.pairs)
        if at is None:
            return make_map([*pairs, (_key_of(step), new)])
        pairs[at] = (pairs[at][0], new)
        return MapValue(pairs)
    if isinstance(value, Tagged) and value.kind == "snapshot" and step == VALUE_STEP:
        return value.replace_payload(new)
    raise PatchError(f"nothing can be set at {path or step}", f"The value there is {_a_kind(value)}; set it as a whole.")


def unset_in(value: Any, path: str) -> Any:
    """A copy of `value` without the entry, field or item at `path`; `PatchError` when it is not there."""
    steps = split_path(path)
    if not steps:
        raise PatchError("the whole state cannot be removed")
    parent_path = join_path(steps[:-1])
    try:
        parent = get(value, parent_path)
    except RefError as error:
        raise PatchError(error.message, error.hint) from error
    if isinstance(child(parent, steps[-1]), Missing):
        raise PatchError(f"there is no {path} to remove")
    return set_in(value, parent_path, without_child(parent, steps[-1])) if parent_path else without_child(parent, steps[-1])


def without_child(value: Any, step: str) -> Any:
    """A copy of `value` without one direct child that exists."""
    entries = map_of(value)
    if entries is not None:
        return rebuilt(value, {key: item for key, item in entries.items() if key != _text_key(step)})
    items = list_of(value)
    if items is not None:
        index = find_index(items, step)
        return rebuilt(value, [item for at, item in enumerate(items) if at != index])
    if isinstance(value, MapValue):
        gone = _pair_index(value, step)
        return make_map([pair for at, pair in enumerate(value.pairs) if at != gone])
    raise PatchError(f"nothing can be removed from {_a_kind(value)}")


def rebuilt(value: Any, content: Any) -> Any:
    """The same kind of container around other content: a plain dict or list, or the same object type."""
    if not isinstance(value, Tagged):
        return content
    if value.kind == "fields":
        return value.replace(fields=content)
    return value.replace(items=content) if value.kind == "items" else value.replace(args=content)


def _a_kind(value: Any) -> str:
    if isinstance(value, Tagged):
        return f"a {value.type_name or 'value of unknown type'}"
    names = {
        dict: "a map",
        StoredDict: "a map",
        list: "a list",
        str: "a text",
        type(None): "null",
        bool: "a truth value",
        int: "a number",
        float: "a number",
    }
    return names.get(type(value), "unreadable")
