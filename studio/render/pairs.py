"""Secrets that stand beside their name: `["X-Api-Key", value]`, `{"name": "password", "value": value}`, or in a secret type."""

from __future__ import annotations

from typing import Any

from studio.render import readable
from studio.render.secrets import SECRET_TYPES, is_secret_name
from studio.value import MapValue, Tagged

NAMES = ("name", "key", "header", "field", "k", "Name", "Key", "Header", "Field", "ParameterKey")
"""Under which a pair written as a map has its name."""
VALUES = ("value", "val", "v", "Value", "ParameterValue")
_OF_TYPE = "secret"
"""The name of what a secret type wraps."""


def announced(value: Any) -> tuple[Any, str] | None:
    """(key or position, name) of the member whose secret name stands beside it; None in all other values."""
    if isinstance(value, list):
        return _of_list(value)
    if isinstance(value, dict):
        return _of_map(value)
    if isinstance(value, Tagged):
        if value.name in SECRET_TYPES:
            return 0, _OF_TYPE
        if value.kind == "fields":
            return _of_map(value.fields)
        if value.kind in ("args", "items"):
            items = value.items if value.kind == "items" else value.args
            return _of_list(items[0] if len(items) == 1 and isinstance(items[0], list) else items)
        return None
    return _of_map({key: one for key, one in value.pairs if isinstance(key, str)}) if isinstance(value, MapValue) else None


def key_name(key: Any) -> str | None:
    """The name that a map's key is for its value: a text, or bytes that are one."""
    if isinstance(key, str):
        return key
    return bytes(key[:400]).decode("utf-8", "replace") if isinstance(key, (bytes, bytearray)) else None


def _of_list(items: list[Any]) -> tuple[int, str] | None:
    if len(items) != 2:
        return None
    name = key_name(items[0])
    names = isinstance(items[1], str) and readable.field_name(items[1])  # of the fields of a form, say
    return (1, name) if name and is_secret_name(name) and not names else None


def _of_map(entries: dict[str, Any]) -> tuple[str, str] | None:
    slot = next((one for one in VALUES if one in entries), None)
    if slot is None:
        return None
    names = (key_name(entries[one]) for one in NAMES if one in entries)
    return next(((slot, name) for name in names if name and is_secret_name(name)), None)
