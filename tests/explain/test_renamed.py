"""A value that was read under one module of its type and stored again under another."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from studio.explain.renamed import only_renamed
from studio.session import Session
from tests.factories import config, saver_at


class Shop(TypedDict, total=False):
    order: Any
    tick: int


def test_a_value_whose_type_only_moved_is_not_said_to_have_changed_outside_its_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("as_script", "as_module"):
        (tmp_path / f"{name}.py").write_text("from pydantic import BaseModel\nclass Order(BaseModel):\n    total: float\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    old, new = (importlib.import_module(name).Order for name in ("as_script", "as_module"))

    def move(state: Shop) -> dict[str, Any]:
        state["order"].__class__ = new  # what loading under another module does to a value that nobody writes
        return {"tick": 1}

    builder: StateGraph[Any] = StateGraph(Shop)
    builder.add_node("move", move)
    builder.add_edge(START, "move")
    builder.add_edge("move", END)
    with saver_at(tmp_path / "moved.sqlite") as saver:
        builder.compile(checkpointer=saver).invoke({"order": old(total=49.9)}, config("made"), durability="sync")
    session = Session.open(str(tmp_path / "moved.sqlite"))
    found = session.compare(session.resolve("head"))
    session.close()
    assert {change.path for change in found.changes} == {"/order", "/tick"}
    assert found.explained["order"].how == "renamed"
    assert not [one for one in found.problems if one.kind == "unexplained-value"]


def test_another_field_or_another_name_is_more_than_a_moved_type(tmp_path: Path) -> None:
    assert not only_renamed({"a": [1]}, {"a": [1]})
    assert not only_renamed({"a": [1]}, {"a": [2]})
