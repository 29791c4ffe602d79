"""A branch of the scratch file is put into the user's own file: only its rows are added, and LangGraph goes on from there."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from studio.errors import PatchError
from studio.forks import writing
from studio.model import Address
from studio.notes import Notes
from studio.requests import ForkRequest, Patch, Promotion
from studio.session import Session
from tests.factories import config, saver_at
from tests.forks import graphs
from tests.forks.helpers import change, killed, rows
from tests.forks.test_places import OLD
from tests.stores.writers import writer

CHECKPOINTS = "SELECT * FROM checkpoints ORDER BY rowid"
WRITES = "SELECT * FROM writes ORDER BY rowid"


@pytest.fixture
def order(tmp_path: Path) -> Path:
    folder = tmp_path / "order"
    folder.mkdir()
    return graphs.make(folder / "order.sqlite", graphs.order_graph, {"item": "cup", "count": 2})


def before(session: Session, *nodes: str, thread: str = "t", ns: str = "") -> Address:
    """The first checkpoint from which exactly these nodes run next."""
    for header in session.tree(thread).headers():
        if header.checkpoint_ns == ns and sorted(map(str, session.state(header.address).next or ())) == sorted(nodes):
            return header.address
    raise AssertionError(f"no checkpoint before {nodes}")


def fork(session: Session, at: Address, values: dict[str, Any] | None = None, **options: Any) -> Address:
    made = session.fork(ForkRequest(at, Patch(values or {}), **options))
    assert made.verified
    return made.address


def ran(session: Session, graph: Any, at: Address) -> Address:
    """Run a fork in the scratch file with the real LangGraph, to its end; returns the last checkpoint of the root."""
    root = at.checkpoint_id if not at.checkpoint_ns else None
    graphs.run(session.scratch_path, graph, at.thread_id, root)
    session.refresh()
    last = max(header.checkpoint_id for header in session.tree(at.thread_id).headers() if not header.checkpoint_ns)
    return Address(at.thread_id, "", last)


def promote(path: Path, work: Callable[[Session], Address]) -> Promotion:
    """Promote what `work` made; every row that the file held before is still there as it was."""
    old, old_writes = rows(path, CHECKPOINTS), rows(path, WRITES)
    with closing(Session.open(str(path))) as session:
        at = work(session)
        assert (rows(path, CHECKPOINTS), rows(path, WRITES)) == (old, old_writes)
        shown = session.promotion(at)
        assert session.promote(shown) == []
        assert all(session.tree(at.thread_id).header(row.address).origin == "base" for row in shown.rows)
    now, now_writes = rows(path, CHECKPOINTS), rows(path, WRITES)
    assert now[: len(old)] == old and len(now) == len(old) + len(shown.rows)
    assert now_writes[: len(old_writes)] == old_writes and len(now_writes) == len(old_writes) + shown.writes
    return shown


def test_a_fork_with_its_run_becomes_part_of_the_file_and_its_new_head(order: Path) -> None:
    shown = promote(order, lambda s: ran(s, graphs.order_graph, fork(s, before(s, "b"), {"/count": 9})))
    assert [row.kind for row in shown.rows] == ["fork", "loop", "loop"] and shown.writes > 0
    assert shown.head_after == shown.rows[-1].address.checkpoint_id and shown.head_before
    states = graphs.history(order, graphs.order_graph)
    assert states[0].values["log"] == ["a", "b", "d"] and states[0].next == ()
    assert states[0].config["configurable"]["checkpoint_id"] == shown.head_after
    assert shown.head_before in {state.config["configurable"]["checkpoint_id"] for state in states}
    with saver_at(order) as saver:
        again = graphs.order_graph(saver).invoke({"item": "mug", "count": 1}, config("t"))
    assert again["log"] == ["a", "b", "d", "a", "b", "c"]


def test_a_fork_that_has_not_run_is_run_by_the_users_own_program(order: Path) -> None:
    shown = promote(order, lambda s: fork(s, before(s, "b"), {"/count": 9}))
    assert len(shown.rows) == 1
    origin = next(row for row in rows(order, CHECKPOINTS) if row[2] == shown.forked_from.checkpoint_id)  # type: ignore[union-attr]
    assert shown.hangs_below == origin[3] == rows(order, CHECKPOINTS)[-1][3], "the sibling of its origin"
    assert graphs.run(order, graphs.order_graph, "t", None)[1] == ["b", "d"]


def test_only_the_branch_down_to_the_chosen_row_goes_along(order: Path) -> None:
    def work(session: Session) -> Address:
        fork(session, before(session, "b"), {"/count": 5})
        first = fork(session, before(session, "b"), {"/count": 9})
        ran(session, graphs.order_graph, first)
        return next(at for at in session.tree("t").children(first))

    shown = promote(order, work)
    assert [row.kind for row in shown.rows] == ["fork", "loop"]
    assert graphs.run(order, graphs.order_graph, "t", None)[0]["log"] == ["a", "b", "d"]


def test_a_fork_of_a_fork_brings_what_it_grew_from(order: Path) -> None:
    def work(session: Session) -> Address:
        first = fork(session, before(session, "b"), {"/count": 9})
        ran(session, graphs.order_graph, first)
        (after_b,) = session.tree("t").children(first)
        return fork(session, after_b, {"/price": 1.5})

    shown = promote(order, work)
    assert [row.kind for row in shown.rows] == ["fork", "fork"], "a sibling hangs below the parent of what it was made from"
    assert graphs.run(order, graphs.order_graph, "t", None)[0]["price"] == 1.5


def test_a_thread_of_its_own_comes_whole(order: Path) -> None:
    shown = promote(order, lambda s: ran(s, graphs.order_graph, fork(s, before(s, "b"), {"/count": 9}, new_thread="second")))
    assert shown.head_before is None and {row.address.thread_id for row in shown.rows} == {"second"}
    assert graphs.history(order, graphs.order_graph, "second")[0].values["log"] == ["a", "b", "d"]
    assert graphs.history(order, graphs.order_graph)[0].values["log"] == ["a", "b", "c"]


@pytest.mark.parametrize("with_run", [False, True])
def test_a_fork_inside_a_subgraph_comes_with_the_checkpoints_that_call_it(tmp_path: Path, with_run: bool) -> None:
    path = graphs.make(tmp_path / "nested.sqlite", graphs.nested_graph, {"item": "x", "log": []})

    def work(session: Session) -> Address:
        inner = next(ns for ns in session.tree("t").namespaces if ns and "|" not in ns)
        made = fork(session, before(session, "in2", ns=inner), {"/note": "EDIT"})
        return ran(session, graphs.nested_graph, made) if with_run else made

    shown = promote(path, work)
    assert {bool(row.address.checkpoint_ns) for row in shown.rows} == {False, True}
    if not with_run:
        assert graphs.run(path, graphs.nested_graph, "t", None)[1] == ["in2", "close"]
    assert "in2 saw EDIT" in graphs.history(path, graphs.nested_graph)[0].values["log"]


def test_what_a_subgraph_of_the_branch_did_comes_along(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "nested.sqlite", graphs.nested_graph, {"item": "x", "log": []})
    shown = promote(path, lambda s: ran(s, graphs.nested_graph, fork(s, before(s, "sub"), {"/item": "y"})))
    inner = [row for row in shown.rows if row.address.checkpoint_ns]
    assert len({row.address.checkpoint_ns for row in inner}) == 2, "the subgraph and the one inside it"


@pytest.mark.parametrize("thread", [None, "second"])
@pytest.mark.parametrize("with_run", [False, True])
def test_a_delta_channel_keeps_its_value_in_the_file(tmp_path: Path, thread: str | None, with_run: bool) -> None:
    path = graphs.make(tmp_path / "delta.sqlite", graphs.delta_graph, {"lines": ["start"]})

    def work(session: Session) -> Address:
        made = fork(session, before(session, "two"), {"/turns": 5}, new_thread=thread)
        return ran(session, graphs.delta_graph, made) if with_run else made

    promote(path, work)
    where = thread or "t"
    if not with_run:
        graphs.run(path, graphs.delta_graph, where, None)
    assert graphs.history(path, graphs.delta_graph, where)[0].values["lines"] == [
        "start", "one after 1", "two after 2", "three after 3",
    ]  # fmt: skip


def test_a_delta_channel_that_rests_on_writes_beside_the_files_own_is_refused(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "delta.sqlite", graphs.delta_graph, {"lines": ["start"]})
    with closing(Session.open(str(path))) as session:
        head = before(session)
        session.forker.bring(head)
        with saver_at(session.scratch_path) as saver:
            graphs.delta_graph(saver).update_state(config("t", head.checkpoint_id), {"lines": ["by hand"]}, as_node="three")
        session.refresh()
        (made,) = session.tree("t").children(head)
        refused = refusal_of(session, made)
        assert refused is not None and "lines is stored as writes under" in refused.message and "--in-place" in refused.hint


def test_a_delta_channel_under_which_the_file_has_got_more_writes_since_is_refused(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "delta.sqlite", graphs.delta_graph, {"lines": ["start"]})

    def another_writer(checkpoint_id: str) -> None:
        change(
            path,
            "INSERT INTO writes (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value)"
            " SELECT thread_id, checkpoint_ns, checkpoint_id, 'another', idx, channel, type, value FROM writes"
            " WHERE checkpoint_id = ? AND channel = 'lines'",
            checkpoint_id,
        )

    with closing(Session.open(str(path))) as session:
        origin = before(session, "two")
        made = fork(session, origin, {"/turns": 5})
        another_writer(origin.checkpoint_id)
        session.refresh()
        assert session.promotion(made).rows, "what was written under another checkpoint is nothing to it"
        parent = session.tree("t").header(made).parent_checkpoint_id
        assert parent is not None
        another_writer(parent)
        session.refresh()
        refused = refusal_of(session, made)
        assert refused is not None and refused.slug == "origin-changed" and "lines rests on the writes under" in refused.message


def refusal_of(session: Session, at: Address) -> PatchError | None:
    try:
        session.promotion(at)
    except PatchError as error:
        return error
    return None


def test_a_subgraph_with_a_memory_remembers_in_a_thread_of_its_own(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "memory.sqlite", graphs.memory_graph, {"item": "x", "log": []})
    graphs.run(path, graphs.memory_graph, "t", None, {"item": "y"})

    def work(session: Session) -> Address:
        second = [h.address for h in session.tree("t").headers() if session.state(h.address).next == ("call",)][-1]
        return fork(session, second, {"/item": "z"}, new_thread="second")

    shown = promote(path, work)
    assert len(shown.rows) > 1, "the memory goes along"
    final, _ = graphs.run(path, graphs.memory_graph, "second", shown.head_after)
    assert final["log"][-1] == "calls 2"


def test_a_file_without_task_paths_keeps_its_columns(order: Path) -> None:
    change(order, "ALTER TABLE writes DROP COLUMN task_path")
    promote(order, lambda s: ran(s, graphs.order_graph, fork(s, before(s, "b"), {"/count": 9})))
    assert "task_path" not in [row[1] for row in rows(order, "PRAGMA table_info(writes)")]
    assert graphs.history(order, graphs.order_graph)[0].values["log"] == ["a", "b", "d"]


def test_marks_numbers_and_origins_stay(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        first = fork(session, before(session, "b"), {"/count": 9})
        ran(session, graphs.order_graph, first)
        second = fork(session, before(session, "a"), {"/count": 1})
        numbers = {h.address: session.number(h.address) for h in session.tree("t").headers()}
        origin = session.origin(first)
        session.promote(session.promotion(first))
        assert {at: session.number(at) for at in numbers} == numbers
        assert (session.origin(first), session.row(first).label) == (origin, "set /count")
    with closing(Session.open(str(order))) as again:
        assert {at: again.number(at) for at in numbers} == numbers
        assert again.tree("t").header(first).origin == "base" and again.tree("t").header(second).origin == "scratch"
        assert again.origin(first) == origin
        assert again.tree("t").head == first
        (entry,) = Notes(again.scratch.notes_path).audit()
        assert (entry.store, entry.act, entry.added, entry.status) == (str(order), "promote", (first,), "done")


def test_a_thread_that_went_on_keeps_its_head_and_that_is_said_before(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        with saver_at(order) as saver:
            graphs.order_graph(saver).invoke({"item": "mug", "count": 1}, config("t"))
        shown = session.promotion(made)
        assert shown.head_before == shown.head_after != made.checkpoint_id
        assert made.checkpoint_id in shown.warnings[0]
        session.promote(shown)
    assert graphs.history(order, graphs.order_graph)[0].config["configurable"]["checkpoint_id"] == shown.head_before
    assert graphs.run(order, graphs.order_graph, "t", made.checkpoint_id)[1] == ["b", "d"]


def test_a_branch_may_come_in_two_goes(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        first = fork(session, before(session, "b"), {"/count": 9})
        last = ran(session, graphs.order_graph, first)
        assert len(session.promotion(first).rows) == 1
        session.promote(session.promotion(first))
        rest = session.promotion(last)
        assert [row.kind for row in rest.rows] == ["loop", "loop"] and rest.hangs_below == first.checkpoint_id
        session.promote(rest)
    assert graphs.history(order, graphs.order_graph)[0].values["log"] == ["a", "b", "d"]


def test_tables_of_another_name_are_added_to(order: Path) -> None:
    for table in ("checkpoints", "writes"):
        change(order, f"ALTER TABLE {table} RENAME TO my_{table}")
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        session.promote(session.promotion(made))
    assert made.checkpoint_id in {row[2] for row in rows(order, "SELECT * FROM my_checkpoints")}


def test_a_file_of_the_first_layout_gets_rows_of_its_own_columns(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(OLD)
    shown = promote(path, lambda s: fork(s, next(iter(s.tree("t").headers())).address, {"/n": 2.0}))
    (stored,) = rows(path, "SELECT parent_ts, checkpoint FROM checkpoints WHERE thread_ts = ?", shown.head_after)
    assert stored[0] == shown.hangs_below and b'"n": 2.0' in stored[1]


# ---- what is refused, without loss


def refused(order: Path, spoil: Callable[[Session, Address, Promotion], None], slug: str, words: str = "") -> None:
    """The branch is made and shown, `spoil` happens, and promoting it is refused: nothing is added, the branch stays."""
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"), {"/count": 9})
        shown = session.promotion(made)
        spoil(session, made, shown)
        old = rows(order, CHECKPOINTS)
        with pytest.raises(PatchError) as error:
            session.promote(shown)
        assert error.value.slug == slug and words in error.value.message
        assert error.value.hint and "\n" not in error.value.message
        assert rows(order, CHECKPOINTS) == old
        assert made.checkpoint_id in {row[2] for row in rows(session.scratch_path, CHECKPOINTS)}


def test_a_thread_that_went_on_after_it_was_shown(order: Path) -> None:
    def spoil(session: Session, made: Address, shown: Promotion) -> None:
        with saver_at(order) as saver:
            graphs.order_graph(saver).invoke({"item": "mug", "count": 1}, config("t"))

    refused(order, spoil, "moved", "has changed since")


def test_a_thread_that_was_deleted_meanwhile(order: Path) -> None:
    refused(order, lambda *_: change(order, "DELETE FROM checkpoints"), "origin-gone", "no longer in the file")


def test_an_origin_that_was_stored_anew_meanwhile(order: Path) -> None:
    def spoil(session: Session, made: Address, shown: Promotion) -> None:
        assert shown.forked_from
        change(
            order,
            "UPDATE checkpoints SET checkpoint = (SELECT checkpoint FROM checkpoints LIMIT 1) WHERE checkpoint_id = ?",
            shown.forked_from.checkpoint_id,
        )

    refused(order, spoil, "origin-changed", "has changed since")


def test_what_changes_between_the_last_look_and_the_lock_is_seen(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = writing._connect

    def connect(path: str) -> sqlite3.Connection:
        if path == str(order):
            monkeypatch.setattr(writing, "_connect", real)
            change(order, "DELETE FROM checkpoints WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)")
        return real(path)

    monkeypatch.setattr(writing, "_connect", connect)
    with closing(Session.open(str(order))) as session:
        shown = session.promotion(fork(session, before(session, "b"), {"/count": 9}))
        count = len(rows(order, CHECKPOINTS))
        with pytest.raises(PatchError, match="has changed since the rows to add were shown"):
            session.promote(shown)
    assert len(rows(order, CHECKPOINTS)) == count - 1, "nothing but what somebody else did"


def test_triggers_on_the_tables(order: Path) -> None:
    trigger = "CREATE TRIGGER tidy AFTER INSERT ON writes BEGIN DELETE FROM checkpoints; END"
    refused(order, lambda *_: change(order, trigger), "has-triggers", "tidy")
    with closing(Session.open(str(order))) as session, pytest.raises(PatchError, match="tidy"):
        session.promotion(session.resolve("s1", "t"))


def test_another_writer_that_holds_the_lock(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "BUSY_SECONDS", 0.05)
    with closing(sqlite3.connect(order, isolation_level=None)) as other:

        def hold(session: Session, made: Address, shown: Promotion) -> None:
            other.execute("BEGIN IMMEDIATE")

        refused(order, hold, "locked", "locked")
        other.execute("ROLLBACK")


def test_a_file_that_cannot_be_written(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = writing._connect

    def connect(path: str) -> sqlite3.Connection:  # what a read-only file system does
        return sqlite3.connect(f"file:{path}?mode=ro", uri=True, isolation_level=None) if path == str(order) else real(path)

    refused(order, lambda *_: monkeypatch.setattr(writing, "_connect", connect), "read-only", "cannot be written")


def test_a_file_that_may_not_be_written_is_told_before(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.access
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"))
        monkeypatch.setattr(os, "access", lambda path, mode: str(path) != str(order) and real(path, mode))  # root may write all
        error = refusal_of(session, made)
        assert error is not None and error.slug == "read-only" and "stays in the scratch file" in error.hint


def test_a_branch_that_a_run_makes_longer(order: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"))
        monkeypatch.setattr(session, "runs", lambda: [SimpleNamespace(status="running", thread_id=made.thread_id)])
        error = refusal_of(session, made)
        assert error is not None and error.slug == "run-going"


def test_a_rule_of_the_file_that_the_rows_break(order: Path) -> None:
    def spoil(session: Session, made: Address, shown: Promotion) -> None:
        change(order, "CREATE UNIQUE INDEX one_per_thread ON checkpoints (thread_id, parent_checkpoint_id)")

    refused(order, spoil, "fork-refused", "does not take these rows")


@pytest.mark.parametrize(
    ("tag", "blob", "slug"), [("msgpack", b"\x81\xa1v\x09", "newer-format"), ("msgpack+aes", b"x", "encrypted")]
)
def test_rows_that_cannot_be_checked(order: Path, tag: str, blob: bytes, slug: str) -> None:
    with closing(Session.open(str(order))) as session:
        made = fork(session, before(session, "b"))
        change(
            session.scratch_path,
            "UPDATE checkpoints SET type = ?, checkpoint = ? WHERE checkpoint_id = ?",
            tag,
            blob,
            made.checkpoint_id,
        )
        session.refresh()
        error = refusal_of(session, made)
        assert error is not None and error.slug == slug


def test_a_row_of_the_file_itself(order: Path) -> None:
    with closing(Session.open(str(order))) as session:
        error = refusal_of(session, before(session, "b"))
        assert error is not None and error.slug == "in-base"


# ---- files of others


def test_a_living_writer_keeps_its_side_files(order: Path) -> None:
    change(order, "PRAGMA journal_mode = WAL")
    with writer(order) as other:
        other("CREATE TABLE busy (x)")
        shown = promote(order, lambda s: fork(s, before(s, "b"), {"/count": 9}))
        assert {"order.sqlite-wal", "order.sqlite-shm"} <= {file.name for file in order.parent.iterdir()}
    assert shown.head_after in {row[2] for row in rows(order, CHECKPOINTS)}


PROMOTING = """
from contextlib import closing
from studio.session import Session
with closing(Session.open(sys.argv[1])) as session:
    session.promote(session.promotion(session.resolve("s3", "t")))
"""


@pytest.mark.parametrize("after", [1, 4])
def test_a_process_that_is_killed_in_the_middle_leaves_all_or_nothing(order: Path, after: int) -> None:
    with closing(Session.open(str(order))) as session:
        ran(session, graphs.order_graph, fork(session, before(session, "b"), {"/count": 9}))
    old, old_writes = rows(order, CHECKPOINTS), rows(order, WRITES)
    killed(PROMOTING, order, after)
    assert (rows(order, CHECKPOINTS), rows(order, WRITES)) == (old, old_writes)
    shown = promote(order, lambda s: s.resolve("s3", "t"))
    assert len(shown.rows) == 3
