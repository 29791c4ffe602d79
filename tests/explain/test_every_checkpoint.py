"""For every checkpoint of every namespace of threads of every kind, the studio says what `get_state` says."""

from __future__ import annotations

import collections
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from benchmarks.oracle import compare, documents
from benchmarks.truth import DOCUMENTED, Difference, compared
from benchmarks.truth import differences as found_in
from tests.explain.scenarios import SCENARIOS
from tests.factories import config, saver_at

DIFFERENT = {
    "empty default": "two_turns",
    "returned value": "a_function_with_a_memory",
    "handler task": "an_error_handler",
    "another graph": "a_subgraph_that_langgraph_cannot_find",
}
"""The scenario that shows each documented difference of the current release."""
OLD_RELEASES = {"class only", "class alias", "stored None", "not known"}
"""Those that only rows of older releases show; no current saver writes such rows."""


def told(value: Any) -> Any:
    """A value of LangGraph as a report writes it."""
    if isinstance(value, BaseModel):
        fields = {name: told(getattr(value, name)) for name in type(value).model_fields}
        return {"$t": f"{type(value).__module__}.{type(value).__qualname__}", "$k": "pydantic", "$v": fields}
    if isinstance(value, dict):
        return {name: told(item) for name, item in value.items()}
    return [told(item) for item in value] if isinstance(value, list | tuple) else value


def report(snapshot: Any) -> dict[str, Any]:
    """What `get_state` gave for one checkpoint."""
    parent = snapshot.parent_config or {"configurable": {"checkpoint_id": None}}
    tasks = [
        {
            "id": task.id,
            "name": task.name,
            "error": task.error,
            "interrupts": [{"id": one.id, "value": told(one.value)} for one in task.interrupts],
        }
        for task in snapshot.tasks
    ]
    return {
        "checkpoint_id": snapshot.config["configurable"]["checkpoint_id"],
        "parent_checkpoint_id": parent["configurable"]["checkpoint_id"],
        "step": snapshot.metadata["step"],
        "source": snapshot.metadata["source"],
        "values": told(snapshot.values),
        "next": list(snapshot.next),
        "tasks": tasks,
    }


def truth(path: Path, name: str) -> dict[str, Any]:
    """Run a scenario, then ask LangGraph for each checkpoint in the file."""
    threads: dict[str, Any] = collections.defaultdict(lambda: {"namespaces": collections.defaultdict(lambda: {"history": []})})
    with saver_at(path) as saver:
        graph = SCENARIOS[name](path, saver)
        for thread, ns, identity in documents(path, None):
            snapshot = graph.get_state(config(thread, identity, ns))
            threads[thread]["namespaces"][ns]["history"].append(report(snapshot))
    return {"threads": threads}


def differences(path: Path, name: str) -> list[tuple[str, Difference]]:
    count, _, found = compare(path, truth(path, name))
    assert count
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_checkpoint_is_as_get_state_reports(path: Path, name: str) -> None:
    assert [f"{where}: {one.text}" for where, one in differences(path, name) if one.kind is None] == []


@pytest.mark.parametrize("kind", DIFFERENT)
def test_each_documented_difference_is_one_that_occurs(path: Path, kind: str) -> None:
    assert kind in {one.kind for _, one in differences(path, DIFFERENT[kind])}


def test_every_documented_difference_is_looked_for() -> None:
    assert DIFFERENT.keys() | OLD_RELEASES == DOCUMENTED.keys()


def kinds(want: Any, got: Any) -> list[str | None]:
    return [one.kind for one in compared("/x", want, got)]


def test_what_only_the_class_tells_is_no_excuse_for_anything_else() -> None:
    want = {"$t": "m.Money", "$k": "dataclass", "$v": {"amount": 1.0, "note": None}}
    assert kinds(want, {"$type": "m.Money", "fields": {"amount": 1.0, "note": None}}) == []
    assert kinds(want, {"$type": "m.Money", "fields": {"amount": 1.0}}) == ["class only"]
    assert kinds(want, {"$type": "m.Money", "fields": {"note": None}}) == [None]
    assert kinds(want, {"$type": "m.Money", "fields": {"amount": 1, "note": None}}) == [None]
    assert kinds(want, {"$type": "old.Money", "fields": {"amount": 1.0, "note": None}}) == ["class alias"]
    assert kinds(want, {"$type": "m.Coin", "fields": {"amount": 1.0, "note": None}}) == [None]
    assert kinds({"$t": "m.Level", "$k": "enum", "$v": "high"}, "high") == ["class only"]
    assert kinds({"$t": "m.Level", "$k": "enum", "$v": "high"}, "low") == [None]


def test_harmless_notations_are_alike_and_numbers_that_differ_are_not() -> None:
    assert kinds(-0.0, {"$float": "-0.0"}) == kinds({"$t": "float", "$v": "nan"}, {"$float": "nan"}) == []
    assert kinds(0.0, {"$float": "-0.0"}) == kinds(1, True) == kinds(1, 1.0) == [None]
    dashed = "12345678-1234-5678-1234-567812345678"
    assert kinds({"$t": "uuid.UUID", "$v": dashed}, {"$type": "uuid.UUID", "args": [dashed.replace("-", "")]}) == []
    address = {"$t": "ipaddress.IPv4Address", "$k": "slots", "$v": {"_ip": 167838211}}
    assert kinds(address, {"$type": "ipaddress.IPv4Address", "args": ["10.1.2.3"]}) == []


def test_what_a_file_cannot_tell_is_neither_equal_nor_wrong() -> None:
    doc: dict[str, Any] = {"values": {"a": 1, "b": None}, "internal": {}, "next": None, "tasks": []}
    want: dict[str, Any] = {"values": {"a": 1}, "next": ["x"], "tasks": []}
    assert [one.kind for one in found_in(want, doc)] == ["stored None", "not known"]
    assert [one.kind for one in found_in(want, {**doc, "values": {"a": 2}, "next": []})] == [None, None]
