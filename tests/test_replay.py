"""A file that grows row by row under an open session ends as the same tree that a fresh session reads from it."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from studio.model import Row
from studio.session import Session
from tests.explain.scenarios import SCENARIOS
from tests.factories import saver_at

BY_ORDER = {"number": "", "parent_number": "", "lane": 0, "lanes": (), "parent_lane": None, "label": ""}
"""What depends on when a row was first seen: numbers never change, and a label may name one."""


def comparable(session: Session, thread: str) -> dict[tuple[str, str], tuple[Row, str]]:
    rows = session.tree(thread).rows()
    found = {
        (row.checkpoint.checkpoint_ns, row.checkpoint.checkpoint_id): (
            # a subgraph with its own memory stands under that of its calls which was seen first
            replace(row, **BY_ORDER, seconds=row.seconds if row.checkpoint.parent_checkpoint_id else None),
            "copy" if row.label.startswith("copy of #") else row.label,
        )
        for row in rows
    }
    assert len(found) == len(rows), "a row is drawn twice"
    return found


@pytest.mark.parametrize("name", SCENARIOS)
def test_an_open_session_ends_with_the_tree_of_a_fresh_one(name: str, tmp_path: Path) -> None:
    source = tmp_path / "source.sqlite"
    with saver_at(source) as saver:
        SCENARIOS[name](source, saver)
    with closing(sqlite3.connect(source)) as connection:
        schema = [sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")]
        stored: list[tuple[str, Any]] = [
            (table, row)
            for table in ("checkpoints", "writes")
            for row in connection.execute(f"SELECT * FROM {table} ORDER BY rowid").fetchall()
        ]
    for seed in range(3):
        dice = random.Random(seed)
        rows = sorted(stored, key=lambda entry: dice.random()) if seed == 2 else by_checkpoint(stored, dice)
        path = tmp_path / f"grown{seed}.sqlite"
        with closing(sqlite3.connect(path)) as connection:
            for sql in schema:
                connection.execute(sql)
            connection.commit()
            with closing(Session.open(str(path), scratch=str(tmp_path / f"s{seed}.sqlite"))) as session:
                while rows:
                    count = dice.choice((1, 1, 2, 3, 8))
                    for table, row in rows[:count]:
                        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(row))})", row)
                    connection.commit()
                    del rows[:count]
                    session.refresh()
                    for thread in session.thread_ids():
                        session.tree(thread).rows()
                with closing(Session.open(str(path), scratch=str(tmp_path / f"f{seed}.sqlite"))) as fresh:
                    for thread in fresh.thread_ids():
                        assert comparable(session, thread) == comparable(fresh, thread), seed


def by_checkpoint(stored: list[tuple[str, Any]], dice: random.Random) -> list[tuple[str, Any]]:
    """As a saver stores them: each checkpoint with its writes after it, sometimes a few before it."""
    checkpoints = [entry for entry in stored if entry[0] == "checkpoints"]
    place = {tuple(row[:3]): number for number, (_, row) in enumerate(checkpoints)}
    ordered = [(float(number), entry) for number, entry in enumerate(checkpoints)]
    for entry in stored:
        if entry[0] == "writes":
            ordered.append((place.get(tuple(entry[1][:3]), len(checkpoints)) + dice.choice((0.1, 0.5, 1.2, -0.3)), entry))
    return [entry for _, entry in sorted(ordered, key=lambda pair: pair[0])]
