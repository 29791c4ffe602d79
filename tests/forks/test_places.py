"""Where forks are stored: the scratch file, the user's own file, other layouts; alone, together, and when killed."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from studio import scratch_files
from studio.errors import OpenError, PatchError, RefError
from studio.forks import scratch as places
from studio.forks import writing
from studio.forks.scratch import Scratch
from studio.model import Address, WriteRow
from studio.notes import Notes
from studio.requests import ForkRequest
from tests.factories import config, folder_snapshot, saver_at
from tests.forks import graphs
from tests.forks.helpers import change, killed, rows, studio_on
from tests.stores.writers import writer

ROOT = Path(__file__).parents[2]


@pytest.fixture
def order(tmp_path: Path) -> Path:
    (tmp_path / "base").mkdir()
    return graphs.make(tmp_path / "base" / "order.sqlite", graphs.order_graph, {"item": "kettle", "count": 3})


# ---- the scratch file


def test_the_scratch_file_is_private_and_has_the_layout_of_its_store(order: Path) -> None:
    with studio_on(order) as studio:
        studio.fork(studio.before("b"))
        path = Path(studio.scratch.path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    text = "SELECT sql FROM sqlite_master WHERE name IN ('checkpoints', 'writes') ORDER BY name"
    for mine, its in zip(rows(path, text), rows(order, text), strict=True):
        assert mine[0].split("(", 1)[1] == its[0].split("(", 1)[1]
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "SELECT value FROM studio_scratch WHERE key = 'store'") == [(str(order),)]


def test_a_scratch_file_is_found_again_by_the_real_path_of_its_store(order: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.sqlite"
    link.symlink_to(order)
    assert Scratch(str(link)).path == Scratch(str(order)).path != Scratch(str(tmp_path / "other.sqlite")).path
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"))
    with studio_on(link) as studio:
        assert made.address in studio.points()


def test_without_a_writable_data_folder_forks_go_to_a_temporary_place(
    order: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv(places.ENV, str(blocked / "below"))
    (tmp_path / "temp").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temp"))
    with studio_on(order) as studio:
        assert studio.scratch.temporary
        made = studio.fork(studio.before("b"))
        assert Path(made.stored_in).is_relative_to(tmp_path / "temp")
    assert Scratch(str(order)).path == made.stored_in


def test_a_given_scratch_file_is_used_and_nothing_else_is_touched(order: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.sqlite"
    with studio_on(order, str(mine)) as studio:
        made = studio.fork(studio.before("b"), {"/count": 9})
        assert made.stored_in == str(mine)
    with studio_on(mine) as alone:
        assert alone.explainer.state(made.address).values["count"] == 9
    with pytest.raises(PatchError, match="opened file itself"):
        Scratch(str(order), str(order))
    other = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE customers (name)")
    before = other.read_bytes()
    with pytest.raises(PatchError, match="another database"):
        Scratch(str(order), str(other))
    assert other.read_bytes() == before


def test_a_scratch_file_that_is_opened_itself_takes_its_own_forks(order: Path) -> None:
    with studio_on(order) as studio:
        first = studio.fork(studio.before("b"), {"/count": 9})
    with studio_on(first.stored_in) as inside:
        assert inside.scratch.is_store
        second = inside.fork(first.address, {"/item": "pot"})
        assert second.stored_in == first.stored_in and second.verified
        assert inside.scratch.origins()[second.address][0] == first.address
    assert graphs.run(first.stored_in, graphs.order_graph, "t", second.address.checkpoint_id)[0]["item"] == "pot"


def test_origins_come_with_the_hash_of_what_was_forked(order: Path) -> None:
    with studio_on(order) as studio:
        origin = studio.before("b")
        made = studio.fork(origin)
        digest = hashlib.sha256(studio.store.raw([origin])[origin].blob).hexdigest()
        assert studio.scratch.origins() == {made.address: (origin, digest)}


def test_scratch_files_are_listed_and_removed(order: Path) -> None:
    with studio_on(order) as studio:
        studio.fork(studio.before("b"))
        studio.fork(studio.before("c"))
        path = studio.scratch.path
    (found,) = scratch_files.list_files()
    assert (found.path, found.store, found.forks, found.store_exists) == (path, str(order), 2, True)
    assert found.size_bytes >= os.path.getsize(path)
    assert path in scratch_files.remove(str(order))
    assert not os.path.exists(path) and scratch_files.list_files() == [] and order.exists()
    with pytest.raises(RefError):
        scratch_files.remove(str(order))


def test_a_file_of_the_user_is_never_removed_as_a_scratch_file(order: Path) -> None:
    with pytest.raises(RefError):
        scratch_files.remove(str(order))
    assert order.exists()


def made_by_us(order: Path, scratch: str | None = None) -> Path:
    with studio_on(order, scratch) as studio:
        return Path(studio.fork(studio.before("b")).stored_in)


def test_looking_at_a_scratch_file_leaves_nothing_beside_it(order: Path, tmp_path: Path) -> None:
    ours, given = made_by_us(order), made_by_us(order, str(order.parent / "forks.sqlite"))
    for path in (ours, given):
        before = folder_snapshot(path.parent)
        with studio_on(order, str(path)) as studio:
            assert len(studio.scratch.origins()) == 1
        assert Scratch(str(path)).is_store is (path == ours)  # what lies elsewhere is somebody's file, whatever it says of itself
        scratch_files.list_files()
        assert folder_snapshot(path.parent) == before


@pytest.mark.parametrize("which", ["scratch", "notes"])
@pytest.mark.parametrize("part", ["header", "pages"])
def test_a_damaged_file_of_ours_is_an_error_and_not_an_empty_one(order: Path, which: str, part: str) -> None:
    with studio_on(order) as studio:
        studio.fork(studio.before("b"))
        studio.fork(studio.before("b"), in_place=True)
        scratch = studio.scratch
    path = Path(scratch.path if which == "scratch" else scratch.notes_path)
    data = path.read_bytes()
    path.write_bytes(b"x" * 4096 + data[4096:] if part == "header" else data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(OpenError) as refused:
        Scratch(str(order)).origins()
    assert str(path) in refused.value.message and "move it" in refused.value.hint


def test_a_damaged_scratch_file_is_listed_and_can_be_removed(order: Path) -> None:
    path = made_by_us(order)
    path.write_bytes(b"x" * 9000)
    (found,) = scratch_files.list_files()
    assert (found.path, found.forks) == (str(path), None) and "not a SQLite database" in (found.problem or "")
    assert scratch_files.remove(str(path)) == [str(path)]


def test_a_database_with_tables_named_like_ours_is_neither_written_nor_removed(order: Path, tmp_path: Path) -> None:
    change(order, "CREATE TABLE studio_scratch (key TEXT, value TEXT)")
    change(order, "INSERT INTO studio_scratch VALUES ('format', '1')")
    before = order.read_bytes()
    with pytest.raises(RefError):
        scratch_files.remove(str(order))
    assert not Scratch(str(order)).is_store
    with pytest.raises(PatchError, match="another database"):
        Scratch(str(tmp_path / "x.sqlite"), str(order))
    assert order.read_bytes() == before


def test_a_scratch_file_that_became_a_users_own_is_not_removed(order: Path, tmp_path: Path) -> None:
    path = made_by_us(order, str(tmp_path / "mine.sqlite"))
    change(path, "CREATE TABLE customers (name)")
    with pytest.raises(PatchError, match="customers"):
        scratch_files.remove(str(path))
    change(path, "DROP TABLE customers")
    assert scratch_files.remove(str(path)) == [str(path)]


def test_a_pipe_in_the_place_of_a_scratch_file_is_refused(order: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.sqlite")
    with studio_on(order, str(tmp_path / "pipe.sqlite")) as studio, pytest.raises(PatchError, match="not a regular file"):
        studio.fork(studio.before("b"))


def test_a_locked_scratch_file_holds_up_no_reading(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BUSY_SECONDS", 1.0)
    path = made_by_us(order)
    refusals: list[PatchError] = []

    def fork() -> None:
        with pytest.raises(PatchError) as refused:
            made_by_us(order)
        refusals.append(refused.value)

    with writer(path) as other:
        other("BEGIN IMMEDIATE")
        waiting = threading.Thread(target=fork)
        waiting.start()
        looks = 0
        while waiting.is_alive():
            begun = time.monotonic()
            with studio_on(order) as studio:
                assert studio.points()
            assert time.monotonic() - begun < 0.8
            looks += 1
    assert looks > 2
    assert (refusals[0].slug, "stayed locked for 1 seconds" in refusals[0].message) == ("locked", True)


# ---- in place


def test_a_fork_in_place_only_adds_a_row(order: Path) -> None:
    everything = "SELECT * FROM checkpoints ORDER BY rowid"
    before, writes = rows(order, everything), rows(order, "SELECT * FROM writes ORDER BY rowid")
    with studio_on(order) as studio:
        origin = studio.before("b")
        assert any("becomes the head" in line for line in studio.preview(origin, in_place=True).warnings)
        made = studio.fork(origin, {"/count": 9}, in_place=True)
        assert made.verified and made.stored_in == str(order)
        assert studio.scratch.origins()[made.address][0] == origin
        (entry,) = Notes(studio.scratch.notes_path).audit()
        assert (entry.store, entry.act, entry.origin) == (str(order), "set", origin)
        assert (entry.added, entry.carried_rows, entry.status) == ((made.address,), 0, "done")
    assert rows(order, everything)[: len(before)] == before and len(rows(order, everything)) == len(before) + 1
    assert rows(order, "SELECT * FROM writes ORDER BY rowid") == writes
    assert graphs.run(order, graphs.order_graph, "t", None)[1] == ["b", "d"]


@pytest.mark.parametrize("table", ["checkpoints", "writes"])
def test_a_file_whose_triggers_would_change_other_rows_is_not_written_in_place(order: Path, table: str) -> None:
    graphs.make(order, graphs.order_graph, {"item": "pot", "count": 1}, thread="other")
    change(order, f"CREATE TRIGGER tidy AFTER INSERT ON {table} BEGIN DELETE FROM checkpoints WHERE thread_id = 'other'; END")
    before = rows(order, "SELECT * FROM checkpoints ORDER BY rowid")
    with studio_on(order) as studio:
        seen = folder_snapshot(order.parent)
        foreseen = studio.forker.preview(ForkRequest(studio.before("b"), in_place=True))
        assert foreseen.refused and "tidy" in foreseen.refused and "--in-place" in foreseen.refused
        assert folder_snapshot(order.parent) == seen, "a preview leaves no trace"
        with pytest.raises(PatchError, match=r"triggers .*tidy") as refused:
            studio.fork(studio.before("b"), in_place=True)
        assert "scratch file" in refused.value.hint
        assert rows(order, "SELECT * FROM checkpoints ORDER BY rowid") == before
        assert studio.fork(studio.before("b")).verified


def test_a_stored_fork_whose_audit_cannot_be_completed_is_reported_as_stored(
    order: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Notes.audit_begin

    def begin(notes: Notes, *told: Any) -> int:  # another program empties the audit before the fork is committed
        entry = real(notes, *told)
        change(Path(notes.path), "DELETE FROM audit")
        return entry

    monkeypatch.setattr(Notes, "audit_begin", begin)
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"), {"/count": 9}, in_place=True)
        assert made.verified and made.address in studio.points()
        (surprise,) = made.surprises
        assert "is stored" in surprise and "audit" in surprise


def test_a_locked_file_says_so_and_nothing_is_stored(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BUSY_SECONDS", 0.05)
    before = len(rows(order, "SELECT 1 FROM checkpoints"))
    with closing(sqlite3.connect(order, isolation_level=None)) as writer, studio_on(order) as studio:
        origin = studio.before("b")
        writer.execute("BEGIN IMMEDIATE")
        with pytest.raises(PatchError, match="locked") as refused:
            studio.fork(origin, in_place=True)
        assert "scratch" in refused.value.hint
        writer.execute("ROLLBACK")
    assert len(rows(order, "SELECT 1 FROM checkpoints")) == before


def test_a_checkpoint_that_changed_since_it_was_read_is_not_forked_in_place(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with studio_on(order) as studio:
        origin = studio.before("b")

        def meanwhile(plan: object) -> dict[Address, tuple[WriteRow, ...]]:
            change(order, "UPDATE checkpoints SET checkpoint = x'80' WHERE checkpoint_id = ?", origin.checkpoint_id)
            return {}

        monkeypatch.setattr(studio.forker, "_writes_beside", meanwhile)
        with pytest.raises(PatchError, match="has changed since"):
            studio.fork(origin, in_place=True)


def test_a_file_that_cannot_be_written_is_forked_into_the_scratch_file_only(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = writing._connect

    def connect(path: str) -> sqlite3.Connection:  # what a read-only file system does
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None) if path == str(order) else real(path)

    monkeypatch.setattr(writing, "_connect", connect)
    with studio_on(order) as studio:
        with pytest.raises(PatchError, match="cannot be written") as refused:
            studio.fork(studio.before("b"), in_place=True)
        assert "--scratch" in refused.value.hint
        assert studio.fork(studio.before("b")).verified


def test_a_fork_in_the_scratch_file_is_not_forked_in_place(order: Path) -> None:
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"))
        assert "scratch file" in (studio.preview(made.address, in_place=True).refused or "")


def test_inside_a_subgraph_in_place(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "nested.sqlite", graphs.nested_graph, {"item": "x", "log": []})
    with studio_on(path) as studio:
        made = studio.fork(studio.before("in2", ns=studio.namespaces()[1]), {"/note": "EDIT"}, in_place=True)
        assert made.verified and len(made.created) == 2
    assert "in2 saw EDIT" in graphs.run(path, graphs.nested_graph, "t", None)[0]["log"]


def test_a_delta_channel_in_a_new_thread_in_place(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "delta.sqlite", graphs.delta_graph, {"lines": ["start"]})
    with studio_on(path) as studio:
        made = studio.fork(studio.before("three"), in_place=True, new_thread="n")
        assert made.verified
    assert graphs.run(path, graphs.delta_graph, "n", None)[0]["lines"] == ["start", "one after 1", "two after 2", "three after 3"]


# ---- layouts


def test_renamed_tables_are_forked_into_the_names_that_langgraph_expects(order: Path) -> None:
    change(order, "ALTER TABLE checkpoints RENAME TO my_checkpoints")
    change(order, "ALTER TABLE writes RENAME TO my_writes")
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"), {"/count": 9})
        assert made.verified
        placed = studio.fork(studio.before("b"), {"/count": 1}, in_place=True)
        assert placed.verified
    assert graphs.run(made.stored_in, graphs.order_graph, "t", made.address.checkpoint_id)[1] == ["b", "d"]
    assert len(rows(order, "SELECT 1 FROM my_checkpoints")) == 6


def test_a_file_without_task_paths_keeps_its_columns(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "delta.sqlite", graphs.delta_graph, {"lines": ["start"]})
    change(path, "ALTER TABLE writes DROP COLUMN task_path")
    with studio_on(path) as studio:
        made = studio.fork(studio.before("two"), {"/turns": 5})
        assert made.verified
    for file in (path, made.stored_in):
        assert "task_path" not in [row[1] for row in rows(file, "PRAGMA table_info(writes)")]


OLD = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, thread_ts TEXT NOT NULL, parent_ts TEXT, checkpoint BLOB, metadata BLOB,
                          PRIMARY KEY (thread_id, thread_ts));
CREATE TABLE writes (thread_id TEXT NOT NULL, thread_ts TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL,
                     channel TEXT NOT NULL, value BLOB, PRIMARY KEY (thread_id, thread_ts, task_id, idx));
INSERT INTO checkpoints VALUES
 ('t', '1ef4f797-8335-6428-8001-8a1503f9b875', '1ef4f797-8335-6428-8000-8a1503f9b875',
  CAST('{"v": 1, "ts": "2024-07-31T20:14:19.804150+00:00", "id": "1ef4f797-8335-6428-8001-8a1503f9b875", "channel_values":
   {"n": 1.0, "kept": {"lc": 2, "type": "constructor", "id": ["my", "Note"], "kwargs": {"text": "hé"}}, "a": "a"},
   "channel_versions": {"n": "00000000000000000000000000000003.aa", "a": "00000000000000000000000000000003."},
   "versions_seen": {"a": {"start:a": "00000000000000000000000000000002."}, "b": {"a": "00000000000000000000000000000001."}},
   "pending_sends": [], "current_tasks": {}}' AS BLOB), CAST('{"source": "loop", "step": 1, "writes": {"a": {}}}' AS BLOB));
"""


def test_a_file_of_the_first_layout_is_forked_in_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD)
    with studio_on(path) as studio:
        origin = studio.points()[0]
        made = studio.fork(origin, {"/n": 2.0, "/kept/text": "new"})
        assert made.verified and made.next == ("b",)
        again = studio.fork(origin, goto="a")
        assert "'a'" in str(studio.preview(origin, goto="a")) and again.next == ("a",)
    columns = "SELECT parent_ts, checkpoint, metadata FROM checkpoints WHERE thread_ts = ?"
    (stored,) = rows(made.stored_in, columns, made.address.checkpoint_id)
    text = stored[1].decode()
    assert '"n": 2.0' in text and '"id": ["my", "Note"], "kwargs": {"text": "new"}' in text and '"a": "a"' in text
    assert stored[0] == "1ef4f797-8335-6428-8000-8a1503f9b875"
    assert stored[2] == b'{"source": "fork", "step": 2, "parents": {}, "writes": null}'


# ---- ids


def test_a_fork_sorts_after_ids_that_are_dated_in_the_future(order: Path) -> None:
    future = "9f1ede84-1111-6111-8001-000000000000"
    head = rows(order, "SELECT max(checkpoint_id) FROM checkpoints")[0][0]
    change(order, "UPDATE checkpoints SET checkpoint_id = ? WHERE checkpoint_id = ?", future, head)
    with studio_on(order) as studio:
        shown = studio.preview(studio.before("b"))
        assert any("dated in the future" in line for line in shown.warnings)
        assert studio.fork(studio.before("b")).address.checkpoint_id > future


def test_what_the_program_put_into_the_metadata_stays_findable(order: Path) -> None:
    change(order, """UPDATE checkpoints SET metadata = CAST(json_set(metadata, '$.user_id', 'u1', '$.run_id', 'r') AS BLOB)""")
    with studio_on(order) as studio:
        made = studio.fork(studio.before("b"))
        metadata = studio.explainer.state(made.address).metadata
        assert metadata["user_id"] == "u1" and "run_id" not in metadata and metadata["source"] == "fork"


# ---- together, and killed

FORKER = """
import sys
from tests.forks.helpers import studio_on
path, number = sys.argv[1], int(sys.argv[2])
in_place = sys.argv[3] == "in place"
with studio_on(path) as studio:
    origin = studio.before("b")
    print("ready", flush=True)
    sys.stdin.readline()
    for turn in range(5):
        made = studio.fork(origin, {"/count": number * 100 + turn}, in_place=in_place)
        print(made.address.checkpoint_id, made.verified, flush=True)
"""


@pytest.mark.parametrize("place", ["scratch", "in place"])
def test_two_forkers_at_once_lose_and_double_nothing(order: Path, place: str) -> None:
    both = [
        subprocess.Popen(
            [sys.executable, "-c", FORKER, str(order), str(number), place],
            cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for number in (1, 2)
    ]  # fmt: skip
    for one in both:
        assert one.stdout is not None and one.stdout.readline() == "ready\n"
    outputs = [""] * 2

    def finish(index: int) -> None:
        outputs[index] = both[index].communicate("go\n", timeout=60)[0]

    threads = [threading.Thread(target=finish, args=(index,)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = [line.split() for output in outputs for line in output.splitlines()]
    assert len(lines) == 10 and all(verified == "True" for _, verified in lines)
    with studio_on(order) as studio:
        made = [at for at in studio.points() if studio.explainer.state(at).metadata["source"] == "fork"]
        assert sorted(at.checkpoint_id for at in made) == sorted(line[0] for line in lines)
        assert sorted(studio.explainer.state(at).values["count"] for at in made) == [*range(100, 105), *range(200, 205)]
        assert set(studio.scratch.origins()) == set(made)


FORKING = """
from tests.forks.helpers import studio_on
with studio_on(sys.argv[1]) as studio:
    studio.fork(studio.before("in2", ns=studio.namespaces()[1]), {"/note": "EDIT"}, in_place=sys.argv[3] == "in place")
"""


@pytest.mark.parametrize("place", ["scratch", "in place"])
@pytest.mark.parametrize("after", [1, 2])
def test_a_forker_that_is_killed_leaves_all_or_nothing(tmp_path: Path, place: str, after: int) -> None:
    path = graphs.make(tmp_path / "nested.sqlite", graphs.nested_graph, {"item": "x", "log": []})
    with studio_on(path) as studio:
        before = studio.points() + studio.points(ns=studio.namespaces()[1])
    killed(FORKING, path, after, place)
    with studio_on(path) as studio:
        assert studio.points() + studio.points(ns=studio.namespaces()[1]) == before
        assert studio.fork(studio.before("in2", ns=studio.namespaces()[1]), {"/note": "EDIT"}).verified


def test_a_fork_waits_for_a_short_write_of_another_program(order: Path) -> None:
    with studio_on(order) as studio:
        studio.fork(studio.before("b"))
        with closing(sqlite3.connect(studio.scratch.path, isolation_level=None, check_same_thread=False)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            timer = threading.Timer(0.3, lambda: writer.execute("COMMIT"))
            timer.start()
            begun = time.monotonic()
            assert studio.fork(studio.before("b")).verified
            assert time.monotonic() - begun > 0.2
            timer.join()


def test_bringing_a_checkpoint_makes_it_usable_in_the_scratch_file(order: Path) -> None:
    before = folder_snapshot(order.parent)
    with studio_on(order) as studio:
        point = studio.before("c")
        studio.forker.bring(point)
        studio.forker.bring(point)
        path = studio.scratch.path
        assert point in studio.points() and len(studio.points()) == 5
    with saver_at(path) as saver:
        graph = graphs.order_graph(saver)
        edited = graph.update_state(config("t", point.checkpoint_id), {"count": 50}, as_node="b")
        assert graph.get_state(edited).next == ("d",)
    with studio_on(order) as studio:
        new = studio.points()[-1]
        assert new == Address("t", "", edited["configurable"]["checkpoint_id"])
        assert studio.explainer.state(new).checkpoint.parent_checkpoint_id == point.checkpoint_id
    assert folder_snapshot(order.parent) == before
