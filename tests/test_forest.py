"""Trees of an open session while rows of the file come, go and are replaced."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from studio import forest
from studio.errors import RefError
from studio.forest import TREES_KEPT
from studio.history.walk import leaves
from studio.model import Address
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.stores import open_store
from studio.tree import CheckpointTree
from tests.factories import make_shop, saver_at

SAMPLES = Path(__file__).parent.parent / "sample_threads"


def numbers(session: Session, thread: str) -> dict[str, str]:
    return {row.checkpoint.checkpoint_id: row.number for row in session.tree(thread).rows()}


def run_sql(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def take_rows(path: Path, other: Path, thread: str, name: str) -> None:
    """Put a thread of another file into this one, under the given name."""
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ATTACH ? AS other", (str(other),))
        for table, columns in (("checkpoints", 7), ("writes", 9)):
            rows = connection.execute(f"SELECT * FROM other.{table} WHERE thread_id = ? ORDER BY rowid", (thread,)).fetchall()
            marks = ", ".join("?" * columns)
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", [(name, *row[1:]) for row in rows])


def test_a_thread_that_is_deleted_and_written_again_is_seen_in_an_open_session(shop: Path, tmp_path: Path) -> None:
    other = make_shop(tmp_path / "other.sqlite")  # the same run: other ids, and row numbers that are taken up again
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        before = numbers(session, "done")
        with saver_at(shop) as saver:
            saver.delete_thread("done")
        take_rows(shop, other, "done", "done")
        assert session.refresh()
        after = numbers(session, "done")
        with closing(Session.open(str(other))) as fresh:
            assert after == numbers(fresh, "done")
        assert not set(after) & set(before)


def test_the_ends_of_branches_are_those_of_a_thread_that_was_deleted_and_written_again(shop: Path, tmp_path: Path) -> None:
    other = make_shop(tmp_path / "other.sqlite")
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        before = leaves(session.tree("done"))
        with saver_at(shop) as saver:
            saver.delete_thread("done")
        take_rows(shop, other, "done", "done")
        session.refresh()
        tree = session.tree("done")
        assert leaves(tree) == tree.leaves() != before


def test_a_deleted_thread_is_gone(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        session.tree("done")
        with saver_at(shop) as saver:
            saver.delete_thread("done")
        session.refresh()
        with pytest.raises(RefError):
            session.tree("done")


def test_rows_that_stay_when_old_ones_are_pruned_keep_their_numbers(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        before = numbers(session, "done")
        gone = next(iter(before))
        run_sql(shop, f"DELETE FROM checkpoints WHERE checkpoint_id = '{gone}'")
        session.refresh()
        del before[gone]
        assert numbers(session, "done") == before
        assert [problem.kind for problem in session.tree("done").problems] == ["orphan-parent"]


def test_writes_that_are_removed_are_no_longer_shown_in_an_open_session(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        assert any(row.channels for row in session.tree("done").rows())
        run_sql(shop, "DELETE FROM writes WHERE thread_id = 'done'")
        session.refresh()
        with closing(Session.open(str(shop))) as fresh:
            assert session.tree("done").rows() == fresh.tree("done").rows()


def test_a_file_that_is_put_in_the_place_of_another_is_seen(shop: Path, tmp_path: Path) -> None:
    other = make_shop(tmp_path / "other.sqlite")
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        session.tree("done")
        other.replace(shop)
        session.refresh()
        with closing(Session.open(str(shop))) as fresh:
            assert numbers(session, "done") == numbers(fresh, "done")


def test_a_fork_whose_origin_was_replaced_is_listed_as_of_another_version(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        origin = session.resolve("3", "done")
        made = session.fork(ForkRequest(origin, Patch({"/price": 59.0})))
        assert session.tree("done").origin(made.address) == origin
        run_sql(shop, f"UPDATE checkpoints SET checkpoint = checkpoint || x'00' WHERE checkpoint_id = '{origin.checkpoint_id}'")
    with closing(Session.open(str(shop))) as session:
        tree = session.tree("done")
        row = tree.row(made.address)
        assert (row.label, row.origin_checkpoint_id, tree.origin(made.address)) == ("fork of another version", None, None)
        assert [problem.message for problem in tree.problems if problem.kind == "other-version"] == [
            "forks of another version of this file: #s1"
        ]


def test_a_state_that_was_read_before_a_growth_is_not_kept_after_it(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        leaf = session.resolve("head", "paused")
        explainer, in_the_middle, go_on = session.explainer.state, threading.Event(), threading.Event()

        def slow(address: Address) -> object:
            state = explainer(address)
            in_the_middle.set()
            assert go_on.wait(10)
            return state

        monkeypatch.setattr(session.explainer, "state", slow)
        reading = threading.Thread(target=session.state, args=[leaf])
        reading.start()
        assert in_the_middle.wait(10)
        monkeypatch.undo()
        run_sql(shop, f"DELETE FROM writes WHERE checkpoint_id = '{leaf.checkpoint_id}'")
        session.refresh()
        go_on.set()
        reading.join()
        assert session.state(leaf) == session.explainer.state(leaf)
        assert session.state(leaf).status == "ready"


def test_a_row_is_the_asked_one_while_the_tree_grows(shop: Path, tmp_path: Path) -> None:
    """Rows of subgraphs come between others, so an index is only true for a moment."""
    with closing(open_store(str(SAMPLES / "research_team.sqlite"))) as store:
        thread = next(keys.thread_id for keys in store.threads() if len(keys.namespaces) > 1)
        headers = [header for _, header in store.checkpoints(thread)]
    from studio.tree import CheckpointTree

    wrong: list[str] = []
    for _ in range(20):
        tree = CheckpointTree(thread)
        tree.extend(headers[:3])
        done = threading.Event()

        def look(tree: CheckpointTree = tree, done: threading.Event = done) -> None:
            while not done.is_set():
                for header in headers[:3]:
                    if tree.row(header.address).checkpoint != header:
                        wrong.append(header.checkpoint_id)

        reader = threading.Thread(target=look)
        reader.start()
        for header in headers[3:]:
            tree.extend([header])
        done.set()
        reader.join()
    assert wrong == []


def test_a_session_keeps_the_trees_of_a_few_threads(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.sqlite"
    path.write_bytes(shop.read_bytes())
    for number in range(3 * TREES_KEPT):
        take_rows(path, shop, "done", f"more-{number:02}")
    with closing(Session.open(str(path))) as session:
        for thread in session.thread_ids():
            assert len(session.tree(thread)) > 0
        assert len(session.forest._grown) == TREES_KEPT


def add_row(path: Path, thread: str, ident: str, parent: str | None, ns: str = "") -> None:
    """A checkpoint with the contents of the thread's oldest one."""
    link = "NULL" if parent is None else f"'{parent}'"
    run_sql(
        path,
        f"INSERT INTO checkpoints SELECT thread_id, '{ns}', '{ident}', {link}, type, checkpoint, metadata FROM checkpoints"
        f" WHERE thread_id = '{thread}' ORDER BY checkpoint_id LIMIT 1",
    )


def test_rows_of_a_thread_keep_their_numbers_while_other_threads_are_looked_at(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.sqlite"
    path.write_bytes(shop.read_bytes())
    threads = [f"more-{number}" for number in range(TREES_KEPT + 2)]
    for thread in threads:
        take_rows(path, shop, "done", thread)
    with closing(Session.open(str(path), scratch=str(tmp_path / "scratch.sqlite"))) as session:
        session.refresh()
        seen: dict[str, dict[str, str]] = {thread: numbers(session, thread) for thread in threads}
        first = {thread: next(iter(seen[thread])) for thread in threads}
        late = ("0fe", "0fd", "0fc")  # older by id than all others, each older than the one before
        for ident in late:
            for thread in reversed(threads):
                add_row(path, thread, ident, first[thread])
                add_row(path, thread, f"{ident}-inner", None, ns=f"sub:{ident}")
                made = session.fork(ForkRequest(session.resolve("2", thread))).address
                session.refresh()
                for other in threads:
                    now = numbers(session, other)
                    assert {row: number for row, number in now.items() if row in seen[other]} == seen[other]
                    assert len(set(now.values())) == len(now)
                    seen[other] = now
                assert made.checkpoint_id in seen[thread]
        for thread in threads:
            assert [session.resolve(f"s{n}", thread).checkpoint_id for n in (1, 2, 3)] == [
                row for row, number in seen[thread].items() if number.startswith("s")
            ]


def test_hits_of_a_search_keep_their_numbers_in_the_thread_that_is_opened_later(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        text = "kettle"
        before = {hit.address: hit.number for hit in session.search(text)}
        assert before
        for thread in {address.thread_id for address in before}:
            add_row(shop, thread, "0fe", None)
        session.refresh()
        assert {hit.address: hit.number for hit in session.search(text) if hit.address in before} == before
        assert {address: session.tree(address.thread_id).number(address) for address in before} == before


def test_a_file_that_went_away_is_told_until_it_is_back(shop: Path, tmp_path: Path) -> None:
    heard: list[str] = []
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        session.subscribe(heard.append)
        away = tmp_path / "away.sqlite"
        shop.rename(away)
        wait_for(lambda: [problem.kind for problem in session.problems()] == ["not-followed"])
        assert heard
        away.rename(shop)
        wait_for(lambda: not session.problems())


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.05)


@pytest.mark.parametrize("name", ["support_agent.sqlite", "research_team.sqlite"])
def test_rows_are_the_same_whether_writes_are_read_by_blocks_or_at_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Session.open(str(SAMPLES / name))) as session:
        at_once = {thread: session.tree(thread).rows() for thread in session.thread_ids()}
    monkeypatch.setattr("studio.tree.AT_ONCE", 0)
    monkeypatch.setattr("studio.tree.BLOCK", 3)
    monkeypatch.setattr("studio.stores.write_queries.ONE_BY_ONE", 2)
    with closing(Session.open(str(SAMPLES / name))) as session:
        for thread, rows in at_once.items():
            tree = session.tree(thread)
            assert [tree.rows(index, index + 1)[0] for index in reversed(range(len(rows)))] == rows[::-1]


def test_a_row_that_was_read_tells_what_is_written_under_it_later(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.tree.AT_ONCE", 0)
    monkeypatch.setattr("studio.tree.BLOCK", 2)
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        tree = session.tree("done")
        leaf = tree.rows(len(tree) - 1)[0].checkpoint
        assert tree.rows(0, 2)
        identity = leaf.checkpoint_id
        columns = "thread_id, checkpoint_ns, 'f' || substr(checkpoint_id, 2), checkpoint_id, type, checkpoint, metadata"
        run_sql(
            shop,
            f"INSERT INTO writes VALUES ('done', '', '{identity}', 't1', '~__pregel_pull, late', 0, 'total', 'null', x'')",
            f"INSERT INTO checkpoints SELECT {columns} FROM checkpoints WHERE checkpoint_id = '{identity}'",
        )
        session.refresh()
        child = tree.rows(len(tree) - 1)[0]
        assert child.checkpoint.parent_checkpoint_id == leaf.checkpoint_id
        assert [run.name for run in child.nodes] == ["late"] and child.channels == ("total",)


def test_a_long_thread_reads_the_writes_of_the_rows_in_view_alone(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.tree.AT_ONCE", 0)
    monkeypatch.setattr("studio.tree.BLOCK", 2)
    with closing(Session.open(str(shop))) as session:
        tree = session.tree("done")
        asked: list[str] = []
        read = session.overlay.base.write_headers_under
        base = session.overlay.base
        monkeypatch.setattr(
            base, "write_headers_under", lambda wanted: asked.extend(w.checkpoint_id for w in wanted) or read(wanted)
        )
        monkeypatch.setattr(base, "write_headers", lambda *_: pytest.fail("the writes of the whole thread were read"))
        rows = tree.rows(0, 2)
        assert set(asked) == {row.checkpoint.checkpoint_id for row in rows} and len(tree) > 4
        tree.rows(0, 2)
        assert len(asked) == 2


class Clock:
    """Time that passes a second with each look at it, and else when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        self.now += 1
        return self.now


def test_a_thread_that_is_slow_to_count_is_counted_now_and_then_and_loses_deleted_rows_all_the_same(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("studio.forest.COUNT_ALWAYS", 0)
    clock = Clock()
    monkeypatch.setattr(forest, "time", clock)
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        first = next(iter(session.tree("done").rows())).checkpoint.checkpoint_id
        run_sql(
            shop,
            f"DELETE FROM checkpoints WHERE checkpoint_id = '{first}'",
            "INSERT INTO checkpoints SELECT thread_id, checkpoint_ns, '1ff00000-0000-6000-8000-000000000001', checkpoint_id,"
            " type, checkpoint, metadata FROM checkpoints WHERE thread_id = 'done' ORDER BY rowid DESC LIMIT 1",
        )
        assert session.refresh()
        assert "1ff00000-0000-6000-8000-000000000001" in numbers(session, "done")  # growth is shown at once
        assert first in numbers(session, "done")
        assert not session.refresh()
        clock.now += 1000
        assert session.refresh()
        assert first not in numbers(session, "done")
        clock.now += 1000
        assert not session.refresh()


def counts(tree: CheckpointTree) -> tuple[object, ...]:
    """But for numbers, which rows keep from their first sight."""
    return tree.branch_count, tree.inner_count, tree.namespaces, [(one.kind, one.message.count("#")) for one in tree.problems]


def test_what_a_tree_counts_is_the_same_whether_it_grew_or_was_read_as_a_whole(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        session.refresh()
        tree = session.tree("done")
        assert tree.branch_count == 1
        for parent in ("head", "head~1", "root"):
            parent = tree.resolve(parent, "").checkpoint_id
            run_sql(
                shop,
                f"INSERT INTO checkpoints SELECT thread_id, '', 'ff' || length('{parent}') || (SELECT count(*) FROM checkpoints),"
                f" '{parent}', type, checkpoint, '' FROM checkpoints WHERE checkpoint_id = '{parent}'",
            )
            session.refresh()
            with closing(Session.open(str(shop))) as other:
                whole = other.tree("done")
                assert counts(tree) == counts(whole)
        assert tree.branch_count == 3
        assert [problem.kind for problem in tree.problems] == ["no-metadata"]


def test_after_all_forks_were_removed_the_next_one_is_the_first_again(shop: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch.sqlite"
    with closing(Session.open(str(shop), scratch=str(scratch))) as session:
        session.refresh()
        origin = session.resolve("#2", "done")
        for expected in ("s1", "s2"):
            assert session.tree("done").number(session.fork(ForkRequest(origin)).address) == expected
        for name in (scratch.name, scratch.name + "-wal", scratch.name + "-shm"):
            (tmp_path / name).unlink(missing_ok=True)
        session.refresh()
        assert not any(number.startswith("s") for number in numbers(session, "done").values())
        assert session.tree("done").number(session.fork(ForkRequest(origin)).address) == "s1"
