"""A way to ask for forks of sessions, and to read them as a program would."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from studio.cli import main

Ask = Callable[..., Any]


@pytest.fixture
def ask(capsys: pytest.CaptureFixture[str]) -> Ask:
    """Calls the command line and reads its document; `refused` gives the words of a refusal instead."""

    def call(*words: object, code: int = 0) -> Any:
        capsys.readouterr()
        found = main([*map(str, words), "--json"])
        said = capsys.readouterr()
        assert found == code, said.err
        return json.loads(said.out) if code == 0 else said.err

    return call


def records(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def texts(found: list[dict[str, Any]]) -> list[str]:
    """What a model would be sent of a Claude Code session, along its chain."""
    out = []
    for record in found:
        held = record.get("message", {}).get("content")
        for block in [held] if isinstance(held, str) else held or ():
            if isinstance(block, str):
                out.append(block)
            elif block["type"] == "tool_use":
                out.append(f"call {block['id']}")
            elif block["type"] == "tool_result":
                out.append(f"result {block['tool_use_id']}")
            else:
                out.append(block.get("text") or block["type"])
    return out
