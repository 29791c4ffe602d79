"""The contract of a store, over a folder of sessions that another program writes."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from studio.model import Address
from studio.stores.base import Capability
from tests.stores.kit import Sample, StoreContract
from tests.stores.layouts import Rows, StoredCheckpoint
from tests.stores.transcripts.sessions import Book, call


class SessionsSample:
    """A program at work in its sessions: it adds a line to a file, or writes the file anew without one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = 0

    def path(self, thread: str) -> Path:
        return self.folder / f"{thread}.jsonl"

    def line(self, row: StoredCheckpoint) -> bytes:
        at = row.address
        record = {
            "parentUuid": row.parent, "isSidechain": False, "type": "user", "uuid": at.checkpoint_id, "sessionId": at.thread_id,
            "timestamp": "2026-05-04T09:00:00.000Z", "cwd": "/home/mara/bakery", "version": "2.1.89",
            "message": {"role": "user", "content": row.blob.decode("latin-1")},
        }  # fmt: skip
        return json.dumps(record).encode()

    def stored(self, row: StoredCheckpoint) -> tuple[bytes, int]:
        if row.tag == "json":
            return row.blob, int(row.metadata)
        return b"[" + self.line(row) + b"]", len(self.line(row))

    def add(self, *rows: StoredCheckpoint) -> None:
        for row in rows:
            with self.path(row.address.thread_id).open("ab") as file:
                file.write((row.blob[1:-1] if row.tag == "json" else self.line(row)) + b"\n")
        self.is_later({row.address.thread_id for row in rows})

    def remove(self, address: Address) -> None:
        path = self.path(address.thread_id)
        kept = [line for line in path.read_bytes().splitlines() if json.loads(line).get("uuid") != address.checkpoint_id]
        path.write_bytes(b"".join(line + b"\n" for line in kept))
        self.is_later({address.thread_id})

    def is_later(self, threads: set[str]) -> None:
        """Each change has a time of its own: those of a file system may be coarse."""
        self.clock += 1
        for thread in threads:
            os.utime(self.path(thread), ns=(time.time_ns(), time.time_ns() + self.clock * 1_000_000))


def rows_of(
    book: Book, thread: str, *turns: tuple[str, int, int], parents: tuple[str | None, ...] = ()
) -> list[StoredCheckpoint]:
    """Turns by (namespace, first line, one past the last line), each below the one before it or the parent that is named."""
    lines, found = [line.encode() for line in book.lines()], []
    above: str | None = None
    for place, (ns, start, stop) in enumerate(turns):
        parent = parents[place] if parents else above
        above = str(book.records[start]["uuid"])
        blob = b"[" + b",\n".join(lines[start:stop]) + b"]"
        size = sum(map(len, lines[start:stop]))
        found.append(StoredCheckpoint(Address(thread, ns, above), parent, "json", blob, str(size).encode()))
    return found


@pytest.fixture
def sample(tmp_path: Path) -> Sample:
    folder = tmp_path / "project"
    done = Book("done", "a")
    for words in ("Bake bread", "Bake cake", "Bake pie"):
        done.prompt(words)
        done.answer(f"{words}: done.")
    forked = Book("forked", "b")
    start = forked.prompt("Sell bread")
    forked.answer("To whom?")
    forked.prompt("Sell cake", parent=start)
    deep, inner = Book("deep", "c"), Book("deep", "d")
    deep.prompt("Ask somebody")
    deep.answer(call("toolu_ask", "Task", prompt="How much flour?", description="Flour"))
    deep.result("toolu_ask", "Nine bags.", toolUseResult={"status": "completed", "agentId": "aflour"})
    inner.prompt("How much flour?", isSidechain=True, agentId="aflour")
    inner.answer("Nine bags.", isSidechain=True, agentId="aflour")
    for book in (deep, forked, done):
        book.write(folder)
    inner.write(folder / "deep" / "subagents", "agent-aflour")
    a, b, c = (book.records for book in (done, forked, deep))
    rows = [
        *rows_of(done, "done", *(("", at, at + 1) for at in range(len(a)))),
        *rows_of(deep, "deep", ("", 0, 1), ("", 1, 3)),
        *rows_of(inner, "deep", ("Task:toolu_ask", 0, 1), ("Task:toolu_ask", 1, 2)),
        *rows_of(forked, "forked", *(("", at, at + 1) for at in range(len(b))), parents=(None, start, start)),
    ]
    assert len(c) == 3
    writer = SessionsSample(folder)
    recipe = f"open_store({str(folder)!r})"
    nothing: Any = lambda *_: None  # noqa: E731 - a session has no rows of writes
    capabilities = frozenset({Capability.NAMESPACES, Capability.LIVE})
    return Sample(
        folder, recipe, Rows(rows, []), "transcript", capabilities, writer.add, nothing, writer.remove, nothing,
        stored=writer.stored, tells_metadata=False, by_id=False,
    )  # fmt: skip


class TestTranscripts(StoreContract):
    pass
