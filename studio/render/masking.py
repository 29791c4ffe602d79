"""Masking by place: which name on the way to a value speaks of a secret, and the value's document with secrets left out.

Every front end asks here, for one line, a tree, an editor and the clipboard alike. A masked part is `{"$masked": reason}`, which
a patch reads as "what is stored there".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from studio.codec.inert import MISSING, Missing
from studio.codec.paths import child, find_index, list_of
from studio.model import Tagged_JSON, Value
from studio.render import pairs, secrets
from studio.tagged import children, dumps, join_path, split_path, to_tagged
from studio.value import MapValue, equal

MASKED = secrets.MASKED


def name_in(path: str, root: Value | Missing = MISSING) -> str | None:
    """The name that says whether the value at a path is a secret: the first secret one on the way, else the last one.

    Positions and ids of list items are no names: what stands in a list stands under the list's name. `root` is the value that the
    path begins in: with it the names are found that stand beside a value, as in `["X-Api-Key", value]`.
    """
    name: str | None = None
    for step in split_path(path):
        name = below(name, root, step)
        root = MISSING if isinstance(root, Missing) else child(root, step)
    return name


def below(name: str | None, parent: Value | Missing, step: str) -> str | None:
    """The name of what stands at a step of a value that stands under `name` itself; `MISSING` for a value that is not known."""
    if name is not None and secrets.is_secret_name(name):
        return name
    if not isinstance(parent, Missing):
        found = pairs.announced(parent)
        if found is not None and found[0] == _member(parent, step):
            return found[1]
        if isinstance(parent, MapValue) and step.startswith("["):
            value = child(parent, step)
            return next((pairs.key_name(key) for key, one in parent.pairs if one is value), None) or step
    return name if step.isdigit() or step.startswith("id:") else step


def _member(parent: Value, step: str) -> str | int | None:
    items = list_of(parent)
    return step if items is None else find_index(items, step)


def secret_place(path: str, root: Value | Missing = MISSING) -> str | None:
    """The outermost place on the way to a value that has a secret's name, or None: what lies below is hidden with its names."""
    name: str | None = None
    steps = split_path(path)
    for at, step in enumerate(steps):
        name = below(name, root, step)
        if name is not None and secrets.is_secret_name(name):
            return join_path(steps[: at + 1])
        root = MISSING if isinstance(root, Missing) else child(root, step)
    return None


def reason_at(path: str, value: Value, root: Value | Missing = MISSING) -> str | None:
    """Why the value at a path must be masked, in a few words, or None. `root`: see `name_in`."""
    return secrets.reason(name_in(path, root), value)


def document(
    value: Value,
    name: str | None = None,
    *,
    show_secrets: bool = False,
    readable: bool = True,
    limit: int | None = None,
    cache: dict[Any, Tagged_JSON] | None = None,
) -> Tagged_JSON:
    """Tagged JSON of a value that stands under `name`, each secret in it masked as a whole.

    `readable`: with the text around a secret that a text holds, which an editor must not offer for a change.
    `limit`, `cache`: see `to_tagged`.
    """
    if show_secrets:
        return to_tagged(value, key=name, limit=limit, cache=cache)
    return to_tagged(
        value, mask=secrets.reason, rest=_rest if readable else None, pair=pairs.announced, key=name, limit=limit, cache=cache
    )


def hidden_in(name: str | None, root: Value) -> Callable[[Value], bool]:
    """Says of a part of a value that stands under `name` whether it is shown as `$masked`; the parts are gathered when asked."""
    found: list[Value] = []
    places: set[int] = set()

    def note(key: str | None, item: Value) -> str | None:
        why = secrets.reason(key, item)
        if why is not None:
            found.append(item)
        return why

    def is_hidden(item: Value) -> bool:
        if not found:
            to_tagged(root, mask=note, pair=pairs.announced, key=name)
            for one in found:  # grows while it is read: what lies below a secret is hidden with it
                found.extend(below for _, below in children(one))
            places.update(map(id, found))
        return id(item) in places or any(type(item) is type(one) and equal(item, one) for one in found)

    return is_hidden


def _rest(name: str | None, stored: str) -> str | None:
    return None if secrets.hides_all(name, stored) else secrets.mask_text(stored)


text = secrets.shown
"""A stored text that is shown as itself: its secret parts are replaced, all of it under a secret name."""


def copied(path: str, value: Value, root: Value | Missing = MISSING, *, show_secrets: bool = False) -> str:
    """What copying the value at a path gives: a plain text as it is, everything else as tagged JSON, secrets masked."""
    doc = document(value, name_in(path, root), show_secrets=show_secrets)
    return doc if isinstance(doc, str) else dumps(doc, indent=2)


def hides_in_copy(path: str, value: Value, copied_text: str) -> bool:
    """Whether a copy that was made with secrets masked lacks something that is stored."""
    return copied_text != copied(path, value, show_secrets=True)
