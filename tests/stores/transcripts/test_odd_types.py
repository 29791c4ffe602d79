"""Fields that are lists or maps where a program writes a text: each record is shown, or refused in words; nothing falls over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Studio, studio
from tests.stores.transcripts.sessions import bakery

__all__ = ["studio"]
ODD: list[Any] = [["x"], {"x": 1}, 5, None]


def changed(record: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    at: Any = record
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = value


def places(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [found for key, one in inner for found in [(*way, key), *places(one, (*way, key))]]


def answers(studio: Studio, path: Path) -> None:
    for words in (["ls"], ["tree"], ["show", "head"], ["fork", "head", "--dry-run"], ["fork", "head", "--yes"]):
        found = studio(words[0], path, *words[1:])
        assert "internal error" not in found.err, found.err


@pytest.mark.parametrize("odd", ODD, ids=["list", "map", "number", "null"])
def test_a_session_with_a_field_of_another_type_anywhere(odd: Any, tmp_path: Path, studio: Studio) -> None:
    lines = bakery().lines()
    path = tmp_path / "odd.jsonl"
    for at in range(len(lines)):
        record = json.loads(lines[at])
        for place in places(record)[:: max(1, len(places(record)) // 6)]:
            copy = json.loads(lines[at])
            changed(copy, place, odd)
            path.write_text("\n".join([*lines[:at], json.dumps(copy), *lines[at + 1 :]]) + "\n")
            answers(studio, path)


@pytest.mark.parametrize("odd", ODD, ids=["list", "map", "number", "null"])
def test_items_with_a_type_or_a_call_id_of_another_type(odd: Any, tmp_path: Path, studio: Studio) -> None:
    items: list[dict[str, Any]] = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}], "id": "m1"},
        {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}", "id": "f1"},
        {"type": "function_call_output", "call_id": "c1", "output": "seen", "id": "o1"},
    ]
    path = tmp_path / "items.jsonl"
    for item in items:
        for name in ("type", "call_id", "id", "name"):
            path.write_text("".join(json.dumps({**one, name: odd} if one is item else one) + "\n" for one in items))
            answers(studio, path)
