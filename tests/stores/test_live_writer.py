"""A writer that goes on while it is read: growing counts, no error on either side, nothing held between looks."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from studio.errors import PatchError
from studio.stores import open_store, sqlite_file
from studio.stores.salvage import Salvaged
from studio.stores.sqlite import SqliteStore
from tests.factories import folder_snapshot
from tests.stores.writers import left_behind, writer

ROWS = 120
_PROGRAM = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=5)
connection.execute("PRAGMA journal_mode=" + sys.argv[2])
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    connection.execute("BEGIN IMMEDIATE")
    connection.execute(
        "INSERT INTO checkpoints VALUES ('live', '', ?, ?, 'msgpack', ?, ?)",
        (f"{number:04}", f"{number - 1:04}" if number else None, bytes(3000), b'{"source": "loop", "step": 1, "parents": {}}'),
    )
    connection.execute("INSERT INTO writes VALUES ('live', '', ?, 'task', '', 0, 'n', 'msgpack', x'01')", (f"{number:04}",))
    connection.execute("COMMIT")
    if sys.argv[2] == "wal" and number % 40 == 39:
        assert connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0, "a reader holds the log"
    time.sleep(0.03)
connection.close()
print("fine", flush=True)
"""


@pytest.mark.parametrize(("mode", "copied"), [("wal", True), ("wal", False), ("delete", True)])
def test_reading_and_writing_do_not_disturb_each_other(
    shop: Path, mode: str, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_file, "LIVE_COPY_BYTES", sqlite_file.LIVE_COPY_BYTES if copied else 0)
    process = subprocess.Popen([sys.executable, "-c", _PROGRAM, str(shop), mode, str(ROWS)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    store = open_store(str(shop))
    counts: list[int] = []
    cursor = 0
    failures: list[Exception] = []

    def read_beside() -> None:
        try:
            while process.poll() is None:
                found = store.checkpoints("live")
                addresses = [header.address for _, header in found]
                assert len(store.raw(addresses)) == len(addresses)
                assert len(store.writes(addresses)) == len(addresses)
        except Exception as error:
            failures.append(error)

    beside = threading.Thread(target=read_beside)
    beside.start()
    while process.poll() is None:
        new = store.checkpoints("live", cursor)
        cursor = new[-1][0] if new else cursor
        counts.append(len(new))
        store.write_headers("live", cursor)
    beside.join()
    counts.append(len(store.checkpoints("live", cursor)))
    assert process.stdout.read() == "fine\n"
    process.stdout.close()
    assert failures == []
    assert sum(counts) == ROWS  # each row came exactly once
    assert len([count for count in counts if count]) > 3
    assert store.problems() == []
    assert not Path(f"{shop}-journal").exists()


def test_a_log_that_begins_with_a_huge_transaction_is_read(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "CREATE TABLE big AS SELECT zeroblob(3000000) AS b", "add new 1")
    before = folder_snapshot(shop.parent)
    store = open_store(str(shop))
    assert len(store.checkpoints("new")) == 1
    store.close()
    assert folder_snapshot(shop.parent) == before


def test_damage_seen_while_the_file_moved_is_forgotten_in_the_same_turn(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(str(shop))
    assert isinstance(store, SqliteStore)
    seen = []

    def overtaken(queries: object) -> None:
        if not seen:
            store._damage.report("damaged", "table checkpoints", "half a page")
            store._damage._salvaged["checkpoints"] = (store.token(), Salvaged())
            os.utime(shop, ns=(1, 1))
        seen.append(len(store._damage.problems()))

    monkeypatch.setattr(sqlite_file.time, "sleep", lambda seconds: seen.append(len(store._damage.problems())))
    store._look(overtaken)
    assert seen == [1, 0, 0]  # reported, forgotten before anybody else could look, and not found again
    assert not store._damage._salvaged


def test_a_refusal_that_comes_from_a_look_at_a_moving_file_is_neither_believed_nor_is_the_damage_it_saw(shop: Path) -> None:
    with closing(open_store(str(shop))) as store:
        assert isinstance(store, SqliteStore)
        calls = []

        def work() -> str:
            calls.append(1)
            if len(calls) == 1:
                store._damage.report("damaged", "table checkpoints", "an index that is ahead of its table")
                os.utime(shop, ns=(1, 1))
                raise PatchError("It is not what was shown.", "Look again.")
            return "read"

        assert store.together(work) == "read"
        assert store.problems() == []

        def refuses() -> str:
            calls.append(1)
            raise PatchError("It is not what was shown.", "Look again.")

        calls.clear()
        with pytest.raises(PatchError):
            store.together(refuses)
        assert len(calls) == 1, "at rest a refusal stands at once"


def test_a_file_that_grows_into_the_pages_of_its_header_is_not_called_cut_any_more(shop: Path) -> None:
    whole = shop.read_bytes()
    shop.write_bytes(whole[:-4096])
    with closing(open_store(str(shop))) as store:
        assert [one.kind for one in store.problems() if one.kind == "truncated"] == ["truncated"]
        shop.write_bytes(whole)
        with writer(shop) as program:  # from now on it is read under this program's locks, or copied
            program("PRAGMA journal_mode=wal")
            program("add new 1")
            assert len(store.checkpoints("new")) == 1
            assert not [one for one in store.problems() if one.kind == "truncated"]


def test_what_a_program_at_work_has_deleted_is_no_disagreement_with_its_log(shop: Path) -> None:
    """Its `-wal` shows less than the file alone because rows were pruned; left behind without the program, it is told."""
    with writer(shop) as program:
        for command in (
            "PRAGMA journal_mode=wal",
            "PRAGMA wal_autocheckpoint=0",
            "DELETE FROM checkpoints WHERE thread_id = 'done'",
        ):
            program(command)
        with closing(open_store(str(shop))) as store:
            assert store.checkpoints("done") == []
            assert not [one for one in store.problems() if one.kind == "wal-disagrees"]
        program.die()
    with closing(open_store(str(shop))) as store:
        assert [one.kind for one in store.problems()] == ["wal-disagrees"]
