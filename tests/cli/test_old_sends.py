"""Sends that wait in formats 1 to 3 stand beside the channels; a type that changes in one is told as in format 4."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from tests.cli.conftest import Studio

TABLES = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""
IDENT = "1ef00000-0000-6001-8000-000000000000"
MSGPACK_SEND = ormsgpack.Ext(1, ormsgpack.packb(["langgraph.types", "Send", ["score", {"part": "left", "n": 0}]]))
JSON_SEND = {
    "lc": 2, "type": "constructor", "id": ["langgraph", "constants", "Send"], "method": None, "args": [],
    "kwargs": {"node": "score", "arg": {"part": "left", "n": 0}},
}  # fmt: skip


def made(path: Path, version: int, send: Any) -> Path:
    version_1 = f"{1:032d}.0.5"
    record = {
        "v": version, "ts": "2024-01-01T00:00:00+00:00", "id": IDENT, "channel_values": {"total": 1},
        "channel_versions": {"total": version_1}, "versions_seen": {}, "pending_sends": [send],
    }  # fmt: skip
    as_json = isinstance(send, dict)
    blob = json.dumps(record).encode() if as_json else ormsgpack.packb(record)
    metadata = json.dumps({"source": "loop", "step": 1, "writes": None}).encode()
    row = ("t", IDENT, None, "json" if as_json else "msgpack", blob, metadata)
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(TABLES)
        connection.execute("INSERT INTO checkpoints VALUES (?, '', ?, ?, ?, ?, ?)", row)
        connection.commit()
    return path


@pytest.mark.parametrize(
    ("version", "send", "inside"),
    [(1, JSON_SEND, "arg"), (1, MSGPACK_SEND, "1"), (2, MSGPACK_SEND, "1"), (3, MSGPACK_SEND, "1")],
    ids=["1 json", "1", "2", "3"],
)
def test_a_type_that_changes_in_a_waiting_send_is_told(
    studio: Studio, tmp_path: Path, version: int, send: Any, inside: str
) -> None:
    path = made(tmp_path / "old.sqlite", version, send)
    place = f"/__pregel_tasks/0/{inside}/n"
    whole = studio("show", path, "head", "--path", "/__pregel_tasks/0", "--json").doc["value"]
    argument = whole["args"][1] if "args" in whole else whole["fields"]["arg"]
    argument["n"] = "0"
    for edit in (f'{place}="0"', f"/__pregel_tasks/0={json.dumps(whole)}"):
        for more in (["--dry-run"], []):
            found = studio("fork", path, "head", "--set", edit, *more)
            assert found.code == 0, found.err
            assert f"! {place} was integer and becomes text." in found.out + found.err
    found = studio("fork", path, "head", "--set", f"{place}=5", "--dry-run")
    assert "becomes" not in found.out + found.err
    assert found.code == 0
