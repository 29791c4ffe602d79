"""What promoting meets in files that others made or work with: it is told before, refused without loss, never half done."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from studio.errors import PatchError, StudioError
from studio.forks import writing
from studio.interrupted import this_process
from studio.model import Address
from studio.notes import Notes
from studio.requests import ForkRequest, Patch
from studio.session import Session
from tests.forks import graphs
from tests.forks.helpers import change, rows
from tests.forks.test_promoting import CHECKPOINTS, WRITES, before, fork, promote, ran, refusal_of

ROOT = Path(__file__).parents[2]


@pytest.fixture
def order(tmp_path: Path) -> Path:
    folder = tmp_path / "order"
    folder.mkdir()
    return graphs.make(folder / "order.sqlite", graphs.order_graph, {"item": "cup", "count": 2})


def remade(path: Path, table: str, more: str) -> None:
    """Give a table of the file one more column, `extra`, and the rule that comes with it."""
    ((sql,),) = rows(path, "SELECT sql FROM sqlite_master WHERE name = ?", table)
    names = ", ".join(row[1] for row in rows(path, f"PRAGMA table_info({table})"))
    assert "PRIMARY KEY (" in sql
    change(path, f"ALTER TABLE {table} RENAME TO old")
    change(path, sql.replace("PRIMARY KEY (", f"extra {more}, PRIMARY KEY (", 1))
    change(path, f"INSERT INTO {table} ({names}, extra) SELECT {names}, 'x' FROM old")
    change(path, "DROP TABLE old")


def threads_table(path: Path, rule: str = "") -> None:
    """Each checkpoint must belong to a row of a table `threads`, which has `t` alone."""
    change(path, "CREATE TABLE threads (id TEXT PRIMARY KEY)")
    change(path, "INSERT INTO threads VALUES ('t')")
    remade(path, "checkpoints", f"TEXT, FOREIGN KEY (thread_id) REFERENCES threads (id) {rule}")


@pytest.mark.parametrize("table", ["checkpoints", "writes"])
def test_a_column_that_only_another_program_fills_is_told_before(order: Path, table: str) -> None:
    remade(order, table, "TEXT NOT NULL")
    old = rows(order, CHECKPOINTS)
    with closing(Session.open(str(order))) as session:
        made = ran(session, graphs.order_graph, fork(session, before(session, "b"), {"/count": 9}))
        assert session.state(made).values["log"] == ["a", "b", "d"], "the scratch file has no such rule: forks and runs are kept"
        error = refusal_of(session, made)
        assert error is not None and error.slug == "unfilled" and f"{table}.extra" in error.message
        assert "stays in the scratch file" in error.hint
    assert rows(order, CHECKPOINTS) == old


def test_a_fork_into_a_file_with_such_a_column_is_one_clear_refusal(order: Path) -> None:
    remade(order, "checkpoints", "TEXT NOT NULL")
    with closing(Session.open(str(order))) as session, pytest.raises(PatchError, match="does not take these rows") as error:
        fork(session, before(session, "b"), {"/count": 9}, in_place=True)
    assert "--scratch" in error.value.hint


@pytest.mark.parametrize("rule", ["", "DEFERRABLE INITIALLY DEFERRED"])
@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "promoted"])
def test_a_foreign_key_is_kept_though_sqlite_does_not_see_to_it(order: Path, rule: str, in_place: bool) -> None:
    threads_table(order, rule)
    old = rows(order, CHECKPOINTS)
    with closing(Session.open(str(order))) as session:
        at = before(session, "b")

        def act() -> None:
            made = fork(session, at, {"/count": 9}, new_thread="second", in_place=in_place)
            if not in_place:
                session.promote(session.promotion(made))

        with pytest.raises(PatchError, match="FOREIGN KEY") as error:
            act()
        assert "threads" in error.value.message and error.value.hint
        assert rows(order, CHECKPOINTS) == old
        change(order, "INSERT INTO threads VALUES ('second')")
        session.refresh()
        if in_place:
            act()
        else:
            session.promote(session.promotion(session.resolve("s1", "second")))
    assert len(rows(order, CHECKPOINTS)) == len(old) + 1


def test_foreign_keys_that_were_broken_before_and_those_that_nobody_can_follow_are_no_reason(order: Path) -> None:
    threads_table(order)
    change(order, "DELETE FROM threads")
    change(order, "INSERT INTO threads VALUES ('second')")
    promote(order, lambda s: fork(s, before(s, "b"), {"/count": 9}, new_thread="second"))


def test_a_foreign_key_that_names_no_unique_column(order: Path) -> None:
    remade(order, "checkpoints", "TEXT, FOREIGN KEY (parent_checkpoint_id) REFERENCES checkpoints (checkpoint_id)")
    promote(order, lambda s: fork(s, before(s, "b"), {"/count": 9}))


def test_a_table_that_keeps_one_child_of_each_checkpoint_loses_no_fork_of_ours(order: Path) -> None:
    """LangGraph replaces rows when it stores them; in the scratch file such a rule would delete siblings."""
    change(order, "DELETE FROM checkpoints WHERE rowid NOT IN (SELECT max(rowid) FROM checkpoints GROUP BY parent_checkpoint_id)")
    remade(order, "checkpoints", "TEXT, UNIQUE (thread_id, parent_checkpoint_id)")
    with closing(Session.open(str(order))) as session:
        at = before(session, "b")
        made = [fork(session, at, {"/count": n}) for n in (7, 8, 9)]
        ran(session, graphs.order_graph, made[-1])
        kept = {row[0] for row in rows(session.scratch_path, "SELECT checkpoint_id FROM checkpoints")}
        assert {one.checkpoint_id for one in made} <= kept


def test_writes_that_lie_under_an_id_of_the_branch_are_told_before(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        change(
            order,
            "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)"
            " SELECT thread_id, checkpoint_ns, ?, task_id, idx, channel, type, value FROM writes LIMIT 1",
            made.checkpoint_id,
        )
        session.refresh()
        error = refusal_of(session, made)
        assert error is not None and error.slug == "writes-there" and made.checkpoint_id in error.message


def test_another_checkpoint_of_the_same_id_is_neither_replaced_nor_called_ours(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        shown = session.promotion(made)
        change(
            order,
            "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, ?, parent_checkpoint_id, type, checkpoint, metadata"
            " FROM checkpoints LIMIT 1",
            made.checkpoint_id,
        )
        old = rows(order, CHECKPOINTS)
        for act in (lambda: session.promote(shown), lambda: session.promotion(made)):
            with pytest.raises(PatchError, match="already, with other contents"):
                act()
    assert rows(order, CHECKPOINTS) == old


def test_a_head_whose_id_is_stored_as_bytes_is_the_head_that_was_shown(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        change(order, "INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, type, checkpoint, metadata)"
                      " VALUES ('t', '', x'ffff', 'msgpack', x'80', '{}')")  # fmt: skip
        assert session.promote(session.promotion(made)) == []


def test_a_damaged_file_is_not_written_to(order: Path) -> None:
    for page in (3, 5, 6):
        path = order.with_name(f"damaged{page}.sqlite")
        path.write_bytes(order.read_bytes())
        with closing(Session.open(str(path))) as session:
            at = before(session, "b")
            made = fork(session, at, {"/count": 9})
            data = bytearray(path.read_bytes())
            data[page * 4096 : (page + 1) * 4096] = b"\xa5" * 4096
            path.write_bytes(data)
            session.refresh()
            error = refusal_of(session, made)
            assert error is not None and error.slug == "damaged", error
            assert "is damaged" in error.message and "stays in the scratch file" in error.hint
        assert path.read_bytes() == bytes(data)


def test_a_thread_of_its_own_says_when_the_file_is_another_one(order: Path) -> None:
    other = graphs.make(order.parent / "other.sqlite", graphs.order_graph, {"item": "mug", "count": 5})
    with closing(Session.open(str(order))) as session:
        origin = before(session, "b")
        made = fork(session, origin, {"/count": 9}, new_thread="second")
        assert session.promotion(made).warnings == ()
        os.replace(other, order)
        session.refresh()
        (warning,) = session.promotion(made).warnings
        assert origin.checkpoint_id in warning and "is no longer in the file" in warning


def test_a_run_that_another_studio_follows_is_waited_for(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        notes = Notes(session.scratch.notes_path)
        notes.begin_run("other", made, {})
        error = refusal_of(session, made)
        assert error is not None and error.slug == "run-going"
        change(session.scratch.notes_path, "UPDATE runs SET studio = '1/1'")  # no such process: that run was interrupted
        assert session.promotion(made).rows
        change(session.scratch.notes_path, "UPDATE runs SET studio = ?, status = 'done'", this_process())
        assert session.promotion(made).rows


def test_a_reader_that_keeps_the_file_from_the_end_of_the_act(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file without a write-ahead log takes no commit while it is read; what was begun is told as not taken."""
    change(order, "PRAGMA journal_mode = DELETE")
    monkeypatch.setattr(writing, "COMMIT_SECONDS", 0.05)
    old = rows(order, CHECKPOINTS)
    with closing(Session.open(str(order))) as session, closing(sqlite3.connect(order, isolation_level=None)) as reader:
        shown = session.promotion(fork(session, before(session, "b"), {"/count": 9}))
        reader.execute("BEGIN")
        reader.execute(CHECKPOINTS).fetchall()
        with pytest.raises(PatchError) as error:
            session.promote(shown)
        assert error.value.slug == "locked"
        reader.execute("ROLLBACK")
        (entry,) = Notes(session.scratch.notes_path).audit()
        assert (entry.status, entry.added) == ("refused", ())
        assert rows(order, CHECKPOINTS) == old
        session.promote(session.promotion(shown.address))
        assert [one.status for one in Notes(session.scratch.notes_path).audit()] == ["refused", "done"]


def test_subgraph_checkpoints_of_which_nobody_knows_the_caller_are_counted(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "nested.sqlite", graphs.nested_graph, {"item": "x", "log": []})
    with closing(Session.open(str(path))) as session:
        made = ran(session, graphs.nested_graph, fork(session, before(session, "sub"), {"/item": "y"}))
        assert session.promotion(made).warnings == ()
        inner = next(row.address for row in session.promotion(made).rows if row.address.checkpoint_ns)
        lost = Address("t", "lost:00000000-0000-0000-0000-000000000000", inner.checkpoint_id)
        change(
            session.scratch_path,
            "INSERT INTO checkpoints SELECT thread_id, ?, checkpoint_id, NULL, type, checkpoint, ? FROM checkpoints"
            " WHERE checkpoint_ns = ? AND checkpoint_id = ?",
            lost.checkpoint_ns, json.dumps({"source": "loop", "step": 1}), inner.checkpoint_ns, inner.checkpoint_id,
        )  # fmt: skip
        session.refresh()
        (warning,) = session.promotion(made).warnings
        assert "1 subgraph checkpoint stays in the scratch file" in warning


PROMOTING = """
import sys
from contextlib import closing
from studio.errors import PatchError, StudioError
from studio.session import Session
with closing(Session.open(sys.argv[1])) as session:
    shown = session.promotion(session.resolve(sys.argv[2], "t"))
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        session.promote(shown)
        print("added", flush=True)
    except PatchError as error:
        print(error.slug, flush=True)
"""


def start(path: Path, ref: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROMOTING, str(path), ref]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.parametrize("same", [True, False], ids=["the same branch", "two branches"])
def test_of_two_studios_that_promote_at_once_one_does_and_one_is_told(order: Path, same: bool) -> None:
    with closing(Session.open(str(order))) as session:
        made = [ran(session, graphs.order_graph, fork(session, before(session, "b"), {"/count": n})) for n in (8, 9)]
        refs = [session.number(made[1])] * 2 if same else [session.number(at) for at in made]
    old, old_writes = rows(order, CHECKPOINTS), rows(order, WRITES)
    both = [start(order, ref) for ref in refs]
    try:
        for one in both:
            assert one.stdout is not None and one.stdout.readline() == "ready\n"
        for one in both:
            assert one.stdin is not None
            one.stdin.write("\n")
            one.stdin.flush()
        said = sorted(one.communicate(timeout=60)[0].strip() for one in both)
    finally:
        for one in both:
            one.kill()
            one.wait()
    assert said[0] == "added" and said[1] in ("in-base", "moved")
    now = rows(order, CHECKPOINTS)
    assert now[: len(old)] == old and len(now) == len(old) + 3
    assert rows(order, WRITES)[: len(old_writes)] == old_writes
    final = graphs.history(order, graphs.order_graph)[0]
    assert final.values["log"] == ["a", "b", "d"]


def test_the_side_files_of_a_log_at_rest_hold_nothing_that_is_lost(order: Path) -> None:
    change(order, "PRAGMA journal_mode = WAL")
    writer = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('CREATE TABLE busy (x)'); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", writer, str(order)], check=True, timeout=60)
    assert order.with_name("order.sqlite-wal").stat().st_size > 0
    with closing(Session.open(str(order))) as session:
        shown = session.promotion(fork(session, before(session, "b"), {"/count": 9}))
        assert session.promote(shown) == []
    assert rows(order, "SELECT name FROM sqlite_master WHERE name = 'busy'")
    assert shown.head_after in {row[2] for row in rows(order, CHECKPOINTS)}


@pytest.mark.parametrize("how", ["gone", "empty", "no tables"])
def test_a_file_that_is_away_when_it_is_written_gets_nothing(order: Path, how: str) -> None:
    with closing(Session.open(str(order))) as session:
        made = session.fork(ForkRequest(before(session, "b"), Patch({"/count": 9}))).address
        shown = session.promotion(made)
        if how == "gone":
            order.rename(order.with_suffix(".away"))
        elif how == "empty":
            order.write_bytes(b"")
        else:
            change(order, "DROP TABLE checkpoints")
        held = order.read_bytes() if order.exists() else None
        with pytest.raises(StudioError) as error:
            session.promote(shown)
        assert error.value.message and error.value.hint
        assert (order.read_bytes() if order.exists() else None) == held
        assert made.checkpoint_id in {row[2] for row in rows(session.scratch_path, CHECKPOINTS)}
