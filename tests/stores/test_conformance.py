"""The contract over SQLite in each layout, with a log at rest, and over base and scratch as one store."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from studio.model import Address, WriteRow
from studio.stores.base import Capability
from tests.stores import layouts
from tests.stores.kit import Sample, StoreContract, checkpoint, write
from tests.stores.layouts import LAYOUTS, Rows, SqliteLayout, StoredCheckpoint
from tests.stores.writers import left_behind

EVERYTHING = frozenset(Capability)
CAPABILITIES = {"no-namespace": frozenset({Capability.WRITES, Capability.LIVE})}


@pytest.fixture(scope="session")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Rows]:
    """A file by the real saver, and its rows."""
    path = tmp_path_factory.mktemp("recorded") / "recorded.sqlite"
    return path, layouts.record(path)


class SqliteSample:
    """Another program at work in a file of one layout; its transactions are over, and its log stays, when a call returns."""

    def __init__(self, path: Path, layout: SqliteLayout) -> None:
        self.path, self.layout = path, layout

    def statements(self, *wanted: tuple[str, list[Any]]) -> None:
        left_behind(self.path, *(_with_values(sql, values) for sql, values in wanted))

    def add(self, *rows: StoredCheckpoint) -> None:
        if len(rows) > 10:  # many rows need no process of their own
            with sqlite3.connect(self.path) as connection:
                for row in rows:
                    layouts.insert(connection, self.layout, row)
            connection.close()
        else:
            self.statements(*(layouts.insertion(self.layout, row) for row in rows))

    def add_write(self, thread: str, row: WriteRow) -> None:
        if self.layout.writes is not None:
            self.statements(layouts.write_insertion(self.layout, thread, row))

    def remove(self, address: Address) -> None:
        self._delete(self.layout.checkpoints, address)

    def remove_writes(self, address: Address) -> None:
        self._delete(str(self.layout.writes), address)

    def _delete(self, table: str, address: Address) -> None:
        ident = "thread_ts" if self.layout.old else "checkpoint_id"
        self.statements(
            (
                f"DELETE FROM {layouts.quoted(table)} WHERE thread_id = ? AND {ident} = ?",
                [address.thread_id, address.checkpoint_id],
            )
        )


def _with_values(sql: str, values: list[Any]) -> str:
    parts = sql.split("?")
    return parts[0] + "".join(_literal(value) + part for value, part in zip(values, parts[1:], strict=True))


def _literal(value: Any) -> str:
    if isinstance(value, bytes):
        return f"x'{value.hex()}'"
    return "NULL" if value is None else str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def in_layout(folder: Path, recorded: tuple[Path, Rows], name: str) -> Sample:
    layout = LAYOUTS[name]
    path = folder / "rows.sqlite"
    layouts.lay_down(path, layout, recorded[1])
    missing = {Capability.WRITES} if layout.writes is None else set()
    capabilities = CAPABILITIES.get(layout.name, EVERYTHING) - missing
    return _sample(folder, path, layout, layouts.seen_in(layout, recorded[1]), capabilities)


def _sample(folder: Path, path: Path, layout: SqliteLayout, rows: Rows, capabilities: frozenset[Capability]) -> Sample:
    other = SqliteSample(path, layout)
    recipe = f"open_store({str(path)!r})"
    return Sample(folder, recipe, rows, layout.name, capabilities, other.add, other.add_write, other.remove, other.remove_writes)


def by_the_saver(folder: Path, recorded: tuple[Path, Rows]) -> Sample:
    path = folder / "rows.sqlite"
    shutil.copyfile(recorded[0], path)
    return _sample(folder, path, LAYOUTS["current"], _copied(recorded[1]), EVERYTHING)


def with_a_log_at_rest(folder: Path, recorded: tuple[Path, Rows]) -> Sample:
    """The last row is only in the `-wal`."""
    sample = by_the_saver(folder, recorded)
    left_behind(folder / "rows.sqlite", "PRAGMA journal_mode=wal")
    new = checkpoint("forked", "1ff00000-0000-6000-8000-00000000000f")
    sample.add(new)
    sample.rows.checkpoints.append(new)
    assert (folder / "rows.sqlite-wal").stat().st_size > 0
    return sample


def base_and_scratch(folder: Path, recorded: tuple[Path, Rows]) -> Sample:
    """Forks in threads of the base and in one of their own; a copy of a base row, with writes, is no fork."""
    sample = by_the_saver(folder, recorded)
    copied = next(row for row in sample.rows.checkpoints if row.address.thread_id == "done")
    forks = [
        checkpoint("done", "1fe00000-0000-6000-8000-000000000001", copied.parent),
        checkpoint("e only forks", "1fe00000-0000-6000-8000-000000000002"),
        checkpoint("deep", "1fe00000-0000-6000-8000-000000000003", ns="forked:x"),
    ]
    writes = [("done", write(forks[0].address.checkpoint_id, "notes"))]
    hidden = ("done", write(copied.address.checkpoint_id, "hidden"))
    scratch = folder / "scratch.sqlite"
    layouts.lay_down(scratch, LAYOUTS["current"], Rows([copied, *forks], [*writes, hidden]))
    sample.recipe = f"Overlay({sample.recipe}, open_store({str(scratch)!r}))"
    sample.rows.checkpoints += forks
    sample.rows.writes += writes
    sample.origins = {row.address: "scratch" for row in forks}
    other = SqliteSample(scratch, LAYOUTS["current"])
    return replace(sample, add=_to(other.add, sample.add), add_write=other.add_write)


def _to(scratch: Callable[..., None], base: Callable[..., None]) -> Callable[..., None]:
    """A row of the base goes back to the base, all else grows in the scratch file."""

    def add(*rows: StoredCheckpoint) -> None:
        for_base = any(
            not row.address.checkpoint_id.startswith(("1ff", "1fe")) and len(row.address.checkpoint_id) > 30 for row in rows
        )
        (base if for_base else scratch)(*rows)

    return add


def _copied(rows: Rows) -> Rows:
    return Rows(list(rows.checkpoints), list(rows.writes))


SAMPLES: dict[str, Callable[[Path, tuple[Path, Rows]], Sample]] = {
    "the saver's own": by_the_saver,
    **{name: (lambda folder, recorded, name=name: in_layout(folder, recorded, name)) for name in LAYOUTS},
    "a log at rest": with_a_log_at_rest,
    "base and scratch": base_and_scratch,
}


class TestSqlite(StoreContract):
    @pytest.fixture(params=SAMPLES)
    def sample(self, request: pytest.FixtureRequest, tmp_path: Path, recorded: tuple[Path, Rows]) -> Sample:
        folder = tmp_path / "opened"
        folder.mkdir()
        return SAMPLES[request.param](folder, recorded)
