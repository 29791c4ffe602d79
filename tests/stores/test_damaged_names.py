"""A column whose stored name is no text does not hide the others of its table."""

from __future__ import annotations

from pathlib import Path

from studio.session import Session
from tests.factories import saver_at


def test_the_other_columns_of_a_table_are_still_read(tmp_path: Path) -> None:
    path = tmp_path / "t.sqlite"
    with saver_at(path) as saver:
        saver.setup()
        saver.conn.execute("CREATE TABLE notes (body, zzqq)")
        saver.conn.execute("INSERT INTO notes VALUES ('kept', 1)")
        saver.conn.commit()
        saver.conn.execute("PRAGMA journal_mode=DELETE")
    path.write_bytes(path.read_bytes().replace(b"zzqq", b"zz\xffq"))
    session = Session.open(str(path))
    try:
        neighbours = session.neighbours()
        [item] = neighbours.items(neighbours.named("notes")).items
        assert "kept" in repr(item)
    finally:
        session.close()
