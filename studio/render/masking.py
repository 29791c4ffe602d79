"""Masking by place: which name on the way to a value speaks of a secret, and the value's document with secrets left out.

Every front end asks here, for one line, a tree, an editor and the clipboard alike. A masked part is `{"$masked": reason}`, which
a patch reads as "what is stored there".
"""

from __future__ import annotations

from typing import Any

from studio.model import Tagged_JSON, Value
from studio.render import secrets
from studio.tagged import dumps, split_path, to_tagged

MASKED = secrets.MASKED


def name_in(path: str) -> str | None:
    """The name that says whether the value at a path is a secret: the first secret one on the way, else the last one.

    Positions and ids of list items are no names: what stands in a list stands under the list's name.
    """
    names = [step for step in split_path(path) if not step.isdigit() and not step.startswith("id:")]
    return next((name for name in names if secrets.is_secret_name(name)), names[-1] if names else None)


def reason_at(path: str, value: Value) -> str | None:
    """Why the value at a path must be masked, in a few words, or None."""
    return secrets.reason(name_in(path), value)


def document(
    value: Value,
    name: str | None = None,
    *,
    show_secrets: bool = False,
    limit: int | None = None,
    cache: dict[Any, Tagged_JSON] | None = None,
) -> Tagged_JSON:
    """Tagged JSON of a value that stands under `name`, each secret in it masked as a whole. `limit`, `cache`: see `to_tagged`."""
    return to_tagged(value, mask=None if show_secrets else secrets.reason, key=name, limit=limit, cache=cache)


def text(stored: str, name: str | None = None, *, show_secrets: bool = False) -> str:
    """A stored text that is shown as itself: its secret parts are replaced, all of it under a secret name."""
    if show_secrets:
        return stored
    if name is not None and secrets.reason(name, stored) == secrets.BY_NAME:
        return MASKED
    return secrets.mask_text(stored)


def copied(path: str, value: Value, *, show_secrets: bool = False) -> str:
    """What copying the value at a path gives: a plain text as it is, everything else as tagged JSON, secrets masked."""
    doc = document(value, name_in(path), show_secrets=show_secrets)
    return doc if isinstance(doc, str) else dumps(doc, indent=2)
