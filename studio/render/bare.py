"""A typed value as just its value, for a form: a date as `2026-05-04`, an enum as its member's value, an object as its fields.

Works on tagged JSON, so masked parts stay what they are. What is typed goes back into the same type, whatever it says; a date or
a number that its type could not read is refused here, where a person can still correct it.
"""

from __future__ import annotations

import base64
import binascii
import re
import uuid
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address
from pathlib import PurePath, PurePosixPath, PureWindowsPath
from typing import Any

from msgspec import Struct

from studio import tagged
from studio.errors import PatchError
from studio.model import Tagged_JSON
from studio.render import gate
from studio.render.retyped import NO_ENUM


class Bare(Struct, frozen=True):
    """`text` is what the form shows: plain text (`is_json` False) or JSON. `what` names the type to a person."""

    text: str
    what: str
    is_json: bool = False


_DURATION = re.compile(
    r"\s*(?:(?P<d>-?\d{1,9})\s*days?,?)?\s*(?:(?P<h>\d{1,9}):(?P<m>\d\d):(?P<s>\d\d)(?:\.(?P<us>\d{1,6}))?)?\s*"
)
_WRONG = (ValueError, TypeError, KeyError, IndexError, InvalidOperation, OverflowError)
_TIME = ("hour", "minute", "second", "microsecond")


def bare(doc: Tagged_JSON) -> Bare | None:
    """The value inside a document of a typed value; None for plain JSON, for what is masked as a whole, and for unknown forms."""
    if not isinstance(doc, dict):
        return None
    try:
        found = _bare(doc)
    except _WRONG:
        return None
    return found if found is not None and gate.is_clean(found.text) else None


def _bare(doc: dict[str, Any]) -> Bare | None:
    if set(doc) <= {"$bytes", "size"}:
        return _bytes(base64.b64decode(doc["$bytes"]))
    name = doc.get("$type")
    if not isinstance(name, str) or "value" in doc:
        return None
    what = gate.line(name, 120)
    reader = _READERS.get(name)
    if reader is not None:
        return Bare(reader[0](doc), f"{what}, {reader[2]}")
    for part, said in (("items", "its members"), ("fields", "its fields")):
        if part in doc:
            return Bare(tagged.dumps(doc[part], indent=2), f"{what}, {said} as JSON", is_json=True)
    args = doc.get("args")
    if doc.get("$ext") != 0 or not isinstance(args, list) or len(args) != 1 or name.split(".")[0] in NO_ENUM:
        return None
    if isinstance(args[0], str):
        return Bare(args[0], f"{what}, its value")
    return None if _is_placeholder(args[0]) else Bare(tagged.dumps(args[0], indent=2), f"{what}, its value as JSON", is_json=True)


def _is_placeholder(doc: Any) -> bool:
    return isinstance(doc, dict) and any(form in doc for form in ("$masked", "$cut", "$opaque"))


def _bytes(raw: bytes) -> Bare:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text and gate.is_clean(text):
        return Bare(text, "bytes, as text")
    return Bare(base64.b64encode(raw).decode("ascii"), "bytes, as base64")


def filled(doc: Tagged_JSON, text: str) -> Tagged_JSON:
    """The document with what was typed in the place of its bare value. PatchError names what is wrong."""
    shown = bare(doc)
    if shown is None or not isinstance(doc, dict):
        raise PatchError("This value has no form but JSON.", "Edit it as JSON.", "no-form")
    if "$bytes" in doc:
        return {"$bytes": base64.b64encode(_raw(shown, text)).decode("ascii")}
    if text == shown.text:
        return doc
    reader = _READERS.get(doc["$type"])
    if reader is not None:
        try:
            return {**doc, **reader[1](doc, text.strip())}
        except _WRONG as error:
            example = f"Write it like {shown.text}." if shown.text else ""
            raise PatchError(
                f"{gate.line(text, 60) or 'This'} is no {doc['$type'].rpartition('.')[2]}.", example, "bad-value"
            ) from error
    part = next(part for part in ("items", "fields", "args") if part in doc)
    given = tagged.loads(text) if shown.is_json else text
    if part == "args":
        return {**doc, "args": [given]}
    if not isinstance(given, list if part == "items" else dict):
        raise PatchError(
            "The members stand in a list, […]." if part == "items" else "The fields stand in an object, {…}.", "", "bad-value"
        )
    return {**doc, part: given}


def _raw(shown: Bare, text: str) -> bytes:
    if shown.what.endswith("as text"):
        return text.encode("utf-8", "surrogateescape")
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise PatchError("This is no base64.", "Write letters, digits, + and /, padded with =.", "bad-value") from error


def _duration(text: str) -> timedelta:
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(text)
    parts = {name: int(given or 0) for name, given in found.groupdict().items() if name != "us"}
    micro = int((found["us"] or "0").ljust(6, "0"))
    return timedelta(days=parts["d"], hours=parts["h"], minutes=parts["m"], seconds=parts["s"], microseconds=micro)


def _of_time(doc: dict[str, Any], text: str) -> dict[str, Any]:
    given = time.fromisoformat(text)
    if given.tzinfo is not None:
        raise ValueError(text)
    return {"fields": {**doc["fields"], **{name: getattr(given, name) for name in _TIME}}}


def _of_duration(doc: dict[str, Any], text: str) -> dict[str, Any]:
    given = _duration(text)
    return {"args": [given.days, given.seconds, given.microseconds]}


def _of_uuid(doc: dict[str, Any], text: str) -> dict[str, Any]:
    given = uuid.UUID(text)
    return {"args": [str(given) if "-" in doc["args"][0] else given.hex]}


def _one(check: Callable[[str], object]) -> Callable[[dict[str, Any], str], dict[str, Any]]:
    """A value that is stored as the text it is written as."""

    def fill(doc: dict[str, Any], text: str) -> dict[str, Any]:
        check(text)
        return {"args": [text]}

    return fill


def _only(doc: dict[str, Any]) -> str:
    (text,) = doc["args"]
    if not isinstance(text, str):
        raise TypeError
    return text


Reader = tuple[Callable[[dict[str, Any]], str], Callable[[dict[str, Any], str], dict[str, Any]], str]


def _path(kind: type[PurePath]) -> Reader:
    return lambda doc: str(kind(*doc["args"])), lambda _, text: {"args": list(kind(text).parts)}, "as text"


_READERS: dict[str, Reader] = {
    "datetime.datetime": (_only, lambda _, text: {"args": [datetime.fromisoformat(text).isoformat()]}, "as ISO 8601"),
    "datetime.date": (
        lambda doc: date(*doc["args"]).isoformat(),
        lambda _, text: {"args": [(made := date.fromisoformat(text)).year, made.month, made.day]},
        "as ISO 8601",
    ),
    "datetime.time": (lambda doc: time(**{name: doc["fields"][name] for name in _TIME}).isoformat(), _of_time, "as ISO 8601"),
    "datetime.timedelta": (lambda doc: str(timedelta(*doc["args"])), _of_duration, "as days and hours"),
    "uuid.UUID": (lambda doc: str(uuid.UUID(_only(doc))), _of_uuid, "as text"),
    "decimal.Decimal": (_only, _one(Decimal), "as a number"),
    "ipaddress.IPv4Address": (_only, _one(IPv4Address), "as text"),
    "ipaddress.IPv6Address": (_only, _one(IPv6Address), "as text"),
    "zoneinfo.ZoneInfo": (_only, _one(str), "as text"),
    **{f"pathlib.{kind.__name__}": _path(kind) for kind in (PurePosixPath, PureWindowsPath)},
    "pathlib.PosixPath": _path(PurePosixPath),
    "pathlib.WindowsPath": _path(PureWindowsPath),
}
"""Type -> (its document as text, a text as the changed part of its document, how it is written)."""
