"""What LangGraph reports of a checkpoint against what the studio says of it, and the differences that are meant.

A report is what `get_state` gives, as JSON: `values`, `next` and `tasks` (`id`, `name`, `error`, `interrupts` of `id` and
`value`), where a value that is no plain JSON is `{"$t": type, "$k": kind, "$v": payload}`. The studio's side is a document of
`studio show --json`. Both are brought into one form, which keeps types, and compared exactly. The form knows only harmless
notations as alike: a UUID in hex or with dashes, an address as text or number, an interrupt whose id the release did not give.
"""

from __future__ import annotations

import base64
import datetime
import decimal
import ipaddress
import math
import pathlib
import re
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

DOCUMENTED = {
    "empty default": "LangGraph fills a channel without a value with its type's empty one, which no file holds",
    "class only": "a field left out because it has its default, or an enum stored as its text: only the class would tell",
    "class alias": "old JSON rows name a class by an alias that the library resolves; the studio shows the stored name",
    "stored None": "releases before 0.3.34 leave out a channel that holds None; the studio shows what is stored",
    "returned value": "of a function LangGraph reports what it returned; the studio keeps that in the channel `__end__`",
    "handler task": "an error handler is a task with rows of its own; LangGraph's list of tasks leaves it out",
    "another graph": "a subgraph that LangGraph cannot find is read with the outer graph: no tasks, only shared channels",
    "not known": "rows of old formats do not say which tasks the graph starts here; the studio says that it does not know",
}
"""Every difference that is meant, with its reason; whatever else differs is a fault."""

EMPTY: tuple[Any, ...] = (None, False, 0, "", [], {}, ("set", []), ("frozenset", []), ("collections.deque", []))


@dataclass(frozen=True, slots=True)
class Difference:
    kind: str | None
    """A key of `DOCUMENTED`; None: a fault."""
    text: str


def differences(want: dict[str, Any], doc: dict[str, Any], *, foreign: bool = False) -> Iterator[Difference]:
    """What differs between a report and the studio's document of the same checkpoint.

    `foreign`: the report is of a namespace that LangGraph could only read with another graph.
    """
    yield from _values(want.get("values"), doc, foreign)
    names, tasks = want.get("next"), want.get("tasks")
    if foreign and names != doc["next"]:
        yield Difference("another graph", f"next {doc['next']}, not {names}")
        return
    unknown = doc["next"] is None or None in doc["next"]
    if unknown and names is not None:
        yield Difference("not known", f"next {doc['next']}, not {names}")
    elif names is not None and sorted(names) != sorted(doc["next"]):
        yield Difference(None, f"next {doc['next']}, not {names}")
    if tasks and "id" in tasks[0] or tasks == [] and not names:
        yield from _tasks(tasks, doc, unknown)


def _values(want: Any, doc: dict[str, Any], foreign: bool) -> Iterator[Difference]:
    internal, got = doc["internal"], doc["values"]
    if not isinstance(want, dict) or "$t" in want or "__end__" in internal:
        returned = internal.get("__end__", internal.get("__previous__"))
        if returned is not None or want is None:
            yield Difference("returned value", f"values are {want!r:.60}")
            yield from compared("/__end__", want, returned)
            return
    for name, value in want.items():
        if name in got:
            yield from compared(f"/{name}", value, got[name])
        elif reported(value) in EMPTY:
            yield Difference("empty default", f"/{name} is {value!r:.40}")
        else:
            yield Difference(None, f"/{name} is missing")
    for name in got.keys() - want.keys():
        kind = "another graph" if foreign else "stored None" if got[name] is None else None
        yield Difference(kind, f"/{name} is not reported")


def _tasks(want: list[dict[str, Any]], doc: dict[str, Any], unknown: bool) -> Iterator[Difference]:
    mine = {task["id"]: task for task in doc["tasks"]}
    for task in want:
        got = mine.pop(task["id"], None)
        if got is None:
            yield Difference("not known" if unknown else None, f"task {task['id']} ({task['name']}) is missing")
            continue
        if got["name"] != task["name"]:
            yield Difference(
                "not known" if got["name"] is None else None, f"task {task['id']} is {got['name']}, not {task['name']}"
            )
        if (got["error"] or None) != (task.get("error") or None):
            yield Difference(None, f"task {task['name']}: error {got['error']!r}, not {task.get('error')!r}")
        yield from _questions(task, got)
    for extra in mine.values():
        handler = "node_error_handler" in (extra["path"] or "")
        yield Difference("handler task" if handler else None, f"task {extra['id']} ({extra['name']}) is not reported")


def _questions(task: dict[str, Any], got: dict[str, Any]) -> Iterator[Difference]:
    asked, mine = task.get("interrupts") or [], got["interrupts"]
    if len(asked) != len(mine):
        yield Difference(None, f"task {task['name']}: {len(mine)} interrupts, not {len(asked)}")
        return
    named = all(one.get("id") is not None for one in asked)  # releases before 0.4 give no ids
    pairs = list(zip(*(sorted(side, key=lambda one: str(one["id"])) if named else side for side in (asked, mine)), strict=True))
    for one, other in pairs:
        if named and one["id"] != other["id"]:
            yield Difference(None, f"task {task['name']}: interrupt {other['id']}, not {one['id']}")
        yield from compared(f"interrupt of {task['name']}", one["value"], other["value"])


def compared(path: str, want: Any, got: Any) -> Iterator[Difference]:
    """What differs between one reported value and one value of the studio."""
    yield from _compared(path, reported(want), shown(got))


def _compared(path: str, want: Any, got: Any) -> Iterator[Difference]:
    if isinstance(want, dict) and isinstance(got, dict):
        for name in want.keys() | got.keys():
            if name not in got:
                # A field of a stored object; a plain dict never loses a key.
                kind = "class only" if want.get("$object") and want[name] in EMPTY else None
                yield Difference(kind, f"{path}/{name} is missing")
            elif name not in want:
                yield Difference(None, f"{path}/{name} is not reported")
            elif name == "$object" and want[name] != got[name]:
                alias = want[name].rpartition(".")[2] == got[name].rpartition(".")[2]
                yield Difference("class alias" if alias else None, f"{path} is a {got[name]}, not a {want[name]}")
            else:
                yield from _compared(f"{path}/{name}", want[name], got[name])
    elif isinstance(want, dict) and want.keys() == {"$object", "value"} and want["value"] == got:
        yield Difference("class only", f"{path} is {got!r}, not a {want['$object']}")
    elif isinstance(want, list) and isinstance(got, list) and len(want) == len(got):
        for number, (one, other) in enumerate(zip(want, got, strict=True)):
            yield from _compared(f"{path}/{number}", one, other)
    elif (type(want), want) != (type(got), got):
        yield Difference(None, f"{path} is {got!r:.80}, not {want!r:.80}")


def reported(value: Any) -> Any:
    """A value of a report in the form that is compared."""
    if isinstance(value, list):
        return [reported(item) for item in value]
    if isinstance(value, dict):
        if "$t" in value:
            return _reported_object(value["$t"], value.get("$k"), value["$v"])
        return {name: reported(item) for name, item in value.items()}
    return _number(value)


def _reported_object(name: str, kind: str | None, payload: Any) -> Any:
    if name == "tuple":
        return reported(payload)
    if name == "dict":
        return ("map", sorted(((reported(key), reported(item)) for key, item in payload), key=repr))
    if name in ("set", "frozenset", "collections.deque"):
        items = [reported(item) for item in payload]
        return (name, items if name == "collections.deque" else sorted(items, key=repr))
    if name in ("float", "int"):
        return _number(float(payload) if name == "float" else int(payload))
    if name == "numpy.ndarray":
        return ("array", _flat(payload))
    if name == "ipaddress.IPv4Address" and isinstance(payload, dict):
        return (name, str(ipaddress.IPv4Address(payload["_ip"])))
    if name.startswith("pathlib."):
        return ("path", payload if isinstance(payload, str) else "/".join(payload["_parts"]))
    if name == "datetime.timedelta" and isinstance(payload, list):
        return (name, str(datetime.timedelta(*payload)))
    if name in _BUILD or name == "re.Pattern":  # these stand there as their text
        return (name, str(payload))
    if kind == "enum":
        return {"$object": name, "value": reported(payload)}
    if isinstance(payload, dict):
        return {"$object": name, **{field: reported(item) for field, item in payload.items()}}
    return (name, reported(payload))


_BUILD: dict[str, Callable[..., Any]] = {
    "datetime.date": lambda *given: _when(datetime.date, given),
    "datetime.time": lambda *given, **fields: _when(datetime.time, given, **fields),
    "datetime.datetime": lambda *given: _when(datetime.datetime, given),
    "datetime.timedelta": datetime.timedelta,
    "decimal.Decimal": decimal.Decimal,
    "uuid.UUID": uuid.UUID,
    "ipaddress.IPv4Address": ipaddress.IPv4Address,
    "bytes": lambda digits: base64.b64encode(bytes.fromhex(digits)).decode(),
}


def _when(kind: Any, given: tuple[Any, ...], **fields: Any) -> str:
    made = kind.fromisoformat(*given) if given and isinstance(given[0], str) else kind(*given, **fields)
    return str(made.isoformat())


def shown(value: Any) -> Any:
    """A value of the studio (tagged JSON) in the form that is compared."""
    if isinstance(value, list):
        return [shown(item) for item in value]
    if not isinstance(value, dict):
        return _number(value)
    if "$float" in value:
        return _number(float(value["$float"]))
    if "$int" in value:
        return int(value["$int"])
    if "$bytes" in value:
        return ("bytes", value["$bytes"])
    if "$map" in value:
        return ("map", sorted(((shown(key), shown(item)) for key, item in value["$map"]), key=repr))
    if "$array" in value:
        return ("array", [_number(float(item)) for item in value["$array"]["preview"]])
    if "$type" not in value:
        return {name: shown(item) for name, item in value.items()}
    name = value["$type"].removeprefix("builtins.")
    if "items" in value:
        items = [shown(item) for item in value["items"]]
        return (name, items if name == "collections.deque" else sorted(items, key=repr))
    given, fields = value.get("args") or [], value.get("fields") or {}
    if name.startswith("pathlib."):
        return ("path", str(pathlib.PurePosixPath(*given)))
    if name == "re.compile":
        return ("re.Pattern", repr(re.compile(*given)))
    if name in _BUILD:
        return (name, str(_BUILD[name](*given, **fields)))
    if name == "langgraph.types.Send" and given:
        fields = dict(zip(("node", "arg"), given, strict=False))
    elif given:
        return {"$object": name, "value": shown(given[0])}
    return {"$object": name, **{field: shown(item) for field, item in fields.items()}}


def _flat(value: Any) -> list[Any]:
    if isinstance(value, list):
        return [number for item in value for number in _flat(item)]
    if value["$t"] == "numpy.ndarray":
        return _flat(value["$v"])
    return [_number(float(value["$v"] == "True" if value["$t"] == "numpy.bool" else value["$v"]))]


def _number(value: Any) -> Any:
    """A float by its digits, so that nan is like nan and -0.0 is not like 0.0."""
    return ("float", repr(value)) if isinstance(value, float) and (math.isnan(value) or value == 0) else value
