"""How far, how long and with what a run goes, as a person types it: one reader of fields for pages and terminal dialogs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from studio import tagged
from studio.errors import PatchError, UsageError
from studio.requests import RunRequest

LONGEST_RUN = 1e7
"""Seconds."""
_PLACES = ("thread_id", "checkpoint_id", "checkpoint_ns", "checkpoint_map", "thread_ts")
_PAIRS = re.compile(r"(?:\r?\n|[,;]\s*(?=[A-Za-z_][\w.]*=))")


class Field(Struct, frozen=True):
    """One thing to type."""

    name: str
    title: str
    example: str


FIELDS = (
    Field("input", "New input", '{"messages": [{"role": "user", "content": "…"}]}'),
    Field("before", "Stop before", "node, node"),
    Field("after", "Stop after", "node, node"),
    Field("steps", "Supersteps at most", "1 runs one and stops"),
    Field("timeout", "Time limit", "seconds"),
    Field("recursion_limit", "Recursion limit", "LangGraph's own, 25 or more"),
    Field("config", "Config", "key=value, or a JSON object"),
    Field("context", "Context", '{"user": "mara"}'),
)
"""In the order in which they are shown."""
TITLES = {one.name: one.title for one in FIELDS}


class RunOptions(Struct, frozen=True):
    """What was asked for; a `RunRequest` without any of it runs to its end."""

    input: Any = None
    has_input: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    steps: int | None = None
    timeout: float | None = None
    recursion_limit: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)

    def on(self, request: RunRequest) -> RunRequest:
        """The request with these options. An input gives way to an answer: a run takes one of them."""
        given = asdict(self)
        if request.has_resume or request.answers or not self.has_input:
            del given["input"], given["has_input"]
        return replace(request, **given)


def read(typed: Mapping[str, str]) -> RunOptions:
    """Field name -> what stands in it; empty ones are not asked for. Raises UsageError that names the field."""
    given = {name: text.strip() for name, text in typed.items() if text.strip()}
    return RunOptions(
        input=_json("input", given["input"]) if "input" in given else None,
        has_input="input" in given,
        before=_names(given.get("before", "")),
        after=_names(given.get("after", "")),
        steps=_count("steps", given),
        timeout=_seconds(given),
        recursion_limit=_count("recursion_limit", given),
        config=pairs(given.get("config", "")),
        context=_object("context", given["context"]) if "context" in given else {},
    )


def pairs(text: str) -> dict[str, Any]:
    """`key=value`s, one a line or parted by commas, or a JSON object; a value is JSON where it can be read so, else a text."""
    if text.lstrip().startswith("{"):
        found = _object("config", text)
        for name in found:
            _check_free(name, TITLES["config"])
        return found
    return dict(pair(one, TITLES["config"]) for one in _PAIRS.split(text.strip()) if one.strip())


def pair(text: str, what: str) -> tuple[str, Any]:
    """`key=value`; `configurable.key` means the same. Raises UsageError for what is none, named by `what`."""
    name, sign, value = text.partition("=")
    name = name.strip().removeprefix("configurable.")
    if not sign or not name:
        raise UsageError(f"{what}: an argument has no value", "write key=value")
    _check_free(name, what)
    try:
        return name, tagged.loads(value)
    except PatchError:
        return name, value


def _check_free(name: str, what: str) -> None:
    """Raises UsageError for an entry that says where a run goes: the checkpoint that was chosen says that."""
    if name in _PLACES or name.startswith("__pregel_"):
        raise UsageError(f"{what}: {name[:60]} is set by the chosen checkpoint", "a new thread has an option of its own")


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in re.split(r"[,\n]", text) if name.strip()))


def _count(name: str, given: Mapping[str, str]) -> int | None:
    text = given.get(name)
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
        raise UsageError(f"{TITLES[name]}: {text[:40]!r} is no whole number from 1 on", "leave it empty for no limit")
    return int(text)


def _seconds(given: Mapping[str, str]) -> float | None:
    text = given.get("timeout")
    if text is None:
        return None
    try:
        found = float(text.removesuffix("s").strip())
    except ValueError:
        found = 0.0
    if not 0 < found < LONGEST_RUN:
        raise UsageError(f"{TITLES['timeout']}: {text[:40]!r} is no number of seconds above 0", "leave it empty for no limit")
    return found


def _json(name: str, text: str) -> Any:
    try:
        return tagged.loads(text)
    except PatchError as error:
        raise UsageError(f"{TITLES[name]}: {error.message}", "texts need double quotes in JSON") from error


def _object(name: str, text: str) -> dict[str, Any]:
    found = _json(name, text)
    if not isinstance(found, dict):
        raise UsageError(f"{TITLES[name]}: this is no JSON object", 'for instance: {"user": "mara"}')
    return found
