"""A file with several sets of checkpoint tables: which belong together, which is shown, and that forks of one stay with it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from studio.errors import OpenError, PatchError
from studio.model import Address
from studio.requests import ForkRequest, Patch, RunRequest
from studio.session import Session
from studio.stores import open_store
from studio.stores.sqlite import SqliteStore
from studio.stores.table_sets import TableSet, find_sets
from studio.stores.view import View
from tests.factories import config, folder_snapshot, saver_at, shop_builder

CHECKPOINTS = ["thread_id", "checkpoint_ns", "checkpoint_id", "parent_checkpoint_id", "type", "checkpoint", "metadata"]
WRITES = ["thread_id", "checkpoint_ns", "checkpoint_id", "task_id", "idx", "channel", "type", "value"]


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def move(path: Path, checkpoints: str, writes: str) -> None:
    change(path, f"ALTER TABLE checkpoints RENAME TO {checkpoints}", f"ALTER TABLE writes RENAME TO {writes}")


@pytest.fixture
def two(shop: Path) -> Path:
    """The shop's threads under `lg_cp`/`lg_wr`, and one thread `lamp` under LangGraph's own names."""
    move(shop, "lg_cp", "lg_wr")
    with saver_at(shop) as saver:
        shop_builder().compile(checkpointer=saver).invoke({"item": "lamp"}, config("lamp"))
    return shop


@pytest.mark.parametrize(
    ("checkpoints", "writes", "pairs"),
    [
        (["b_checkpoints", "a_checkpoints"], ["a_writes", "b_writes"],
         {"a_checkpoints": "a_writes", "b_checkpoints": "b_writes"}),
        (["lg_cp", "checkpoints"], ["writes", "lg_wr"], {"lg_cp": "lg_wr", "checkpoints": "writes"}),
        (["cp_test", "cp_main"], ["wr_main", "wr_test"], {"cp_test": "wr_test", "cp_main": "wr_main"}),
        (["archive_checkpoints", "checkpoints"], ["writes"], {"archive_checkpoints": None, "checkpoints": "writes"}),
        (["Checkpoints", "checkpoints_v2"], ["Checkpoint_Writes_v2", "Writes"],
         {"Checkpoints": "Writes", "checkpoints_v2": "Checkpoint_Writes_v2"}),
        (["checkpoints"], ["checkpoint_writes", "writes"], {"checkpoints": "writes"}),
        (["graph_state"], ["pending"], {"graph_state": "pending"}),
    ],
)  # fmt: skip
def test_tables_belong_together_by_what_their_names_share(
    checkpoints: list[str], writes: list[str], pairs: dict[str, str | None]
) -> None:
    tables = {**dict.fromkeys(checkpoints, CHECKPOINTS), **dict.fromkeys(writes, WRITES), "users": ["id"]}
    assert find_sets(tables) == [TableSet(name, pairs[name]) for name in checkpoints]


def test_strangers_go_together_in_the_order_they_were_made() -> None:
    tables = {"one": CHECKPOINTS, "first": WRITES, "two": CHECKPOINTS, "next": WRITES}
    assert find_sets(tables) == [TableSet("one", "first"), TableSet("two", "next")]


def test_each_set_is_shown_when_it_is_named(two: Path) -> None:
    before = folder_snapshot(two.parent)
    with closing(open_store(str(two))) as store:
        assert [keys.thread_id for keys in store.threads()] == ["lamp"]
        (problem,) = store.problems()
        assert (problem.kind, "--tables lg_cp" in problem.message) == ("second-table", True)
    with closing(open_store(str(two), View("LG_CP"))) as store:
        assert [keys.thread_id for keys in store.threads()] == ["done", "failed", "forked", "paused"]
        assert store.write_headers("done")
    with closing(SqliteStore(str(two))) as store:
        sets = [(one.checkpoints, one.writes, one.rows, one.shown) for one in store.table_sets()]
        assert sets == [("lg_cp", "lg_wr", 29, False), ("checkpoints", "writes", 6, True)]
    with pytest.raises(OpenError) as caught:
        open_store(str(two), View("nothing"))
    assert caught.value.candidates == ("lg_cp", "checkpoints")
    assert folder_snapshot(two.parent) == before


def test_an_empty_set_is_not_shown_while_another_has_rows(two: Path) -> None:
    change(two, "DELETE FROM checkpoints", "DELETE FROM writes")
    with closing(open_store(str(two))) as store:
        assert {keys.thread_id for keys in store.threads()} == {"done", "failed", "forked", "paused"}
        with saver_at(two) as saver:  # the set that is open stays, whatever is added to the other one, and to the schema
            shop_builder().compile(checkpointer=saver).invoke({"item": "lamp"}, config("late"))
        change(two, "CREATE TABLE more (x)")
        assert "late" not in {keys.thread_id for keys in store.threads()}


def test_forks_of_one_set_are_no_forks_of_the_other(two: Path) -> None:
    with closing(Session.open(str(two), view=View("lg_cp"))) as session:
        head = session.tree("done").head
        assert head is not None
        made = session.fork(ForkRequest(head, Patch({"/price": 1.0})))
        assert made.verified
        renamed = session.scratch_path
        with closing(sqlite3.connect(renamed)) as connection:  # LangGraph finds its own names there
            assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] >= 1
    with closing(Session.open(str(two), view=View("lg_cp"))) as again:
        assert made.address in again.tree("done")
        assert again.beside(View("checkpoints")).scratch_path != renamed
    with closing(Session.open(str(two))) as other:
        assert other.scratch_path != renamed
        assert other.thread_ids() == ["lamp"]


def test_a_scratch_file_that_was_named_is_not_shared_by_two_sets(two: Path, tmp_path: Path) -> None:
    mine = str(tmp_path / "mine.sqlite")
    with closing(Session.open(str(two), scratch=mine, view=View("lg_cp"))) as session:
        head = session.tree("done").head
        assert head is not None
        session.fork(ForkRequest(head))
    with pytest.raises(PatchError, match="another part of this file: tables lg_cp"):
        Session.open(str(two), scratch=mine)


def test_in_place_a_fork_goes_into_the_set_that_is_shown_and_langgraph_into_none_but_its_own(two: Path) -> None:
    with closing(Session.open(str(two), view=View("lg_cp"))) as session:
        head = session.tree("done").head
        assert head is not None
        made = session.fork(ForkRequest(head, in_place=True))
        assert made.stored_in == str(two)
        with pytest.raises(PatchError, match="only writes to a table named checkpoints"):
            session.plan(RunRequest(head, in_place=True))
    with closing(sqlite3.connect(two)) as connection:
        where = "WHERE checkpoint_id = ?"
        assert connection.execute(f"SELECT count(*) FROM lg_cp {where}", [made.address.checkpoint_id]).fetchone()[0] == 1
        assert connection.execute(f"SELECT count(*) FROM checkpoints {where}", [made.address.checkpoint_id]).fetchone()[0] == 0


@pytest.mark.parametrize("name", ["my table", "select", 'a"b', "it's", "[x]", "naïve", "CheckPoint"])
def test_any_name_and_any_case_of_columns_is_read_and_forked(shop: Path, name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    move(shop, quoted, '"pending rows"')
    change(shop, *(f"ALTER TABLE {quoted} RENAME COLUMN {column} TO {column.upper()}" for column in CHECKPOINTS))
    change(
        shop, f"ALTER TABLE {quoted} ADD COLUMN tenant TEXT DEFAULT 'x'", f"CREATE VIEW checkpoint_view AS SELECT * FROM {quoted}"
    )
    with closing(Session.open(str(shop), view=View(name))) as session:
        assert session.thread_ids() == ["done", "failed", "forked", "paused"]
        head = session.tree("paused").head
        assert head is not None
        assert session.state(head).tasks[0].interrupts
        assert session.fork(ForkRequest(head, Patch({"/price": 2.0}))).verified
        assert session.fork(ForkRequest(head, in_place=True)).verified
        assert session.problems() == []


def test_a_table_that_sqlite_cannot_open_here_hides_no_other(shop: Path) -> None:
    change(
        shop, "PRAGMA writable_schema=ON",
        "INSERT INTO sqlite_master VALUES ('table', 'v', 'v', 0, 'CREATE VIRTUAL TABLE v USING vec0(embedding)')",
        "INSERT INTO sqlite_master SELECT 'table', CAST(x'ff61' AS TEXT), CAST(x'ff61' AS TEXT), 0, "
        "CAST('CREATE VIRTUAL TABLE \"' || CAST(x'ff61' AS TEXT) || '\" USING vec0(x)' AS TEXT)",
    )  # fmt: skip
    with closing(open_store(str(shop))) as store:
        assert len(list(store.threads())) == 4


def test_writes_without_rowid_are_named_as_not_read(shop: Path) -> None:
    change(
        shop, "CREATE TABLE w (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value, "
        "PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx)) WITHOUT ROWID", "DROP TABLE writes",
    )  # fmt: skip
    with closing(open_store(str(shop))) as store:
        store.checkpoints("done")
        assert [(problem.kind, problem.where) for problem in store.problems()] == [("without-rowid", "table w")]


def test_the_file_without_its_wal_is_a_view_with_forks_of_its_own(shop: Path) -> None:
    from tests.stores.test_opening import left_behind

    left_behind(shop, "PRAGMA journal_mode=wal", "DELETE FROM checkpoints WHERE thread_id = 'done'")
    before = folder_snapshot(shop.parent)
    with closing(Session.open(str(shop))) as session:
        assert "done" not in session.thread_ids()
        assert any(one.kind == "wal-disagrees" and "--without-wal" in one.message for one in session.problems())
        normal = session.scratch_path
    with closing(Session.open(str(shop), view=View(without_wal=True))) as session:
        assert "done" in session.thread_ids()
        assert session.view_words == "without its -wal"
        head = session.tree("done").head
        assert head is not None
        made = session.fork(ForkRequest(head, Patch({"/price": 3.0})))
        assert made.verified
        assert made.stored_in == session.scratch_path != normal
        with pytest.raises(PatchError, match="without its -wal"):
            session.fork(ForkRequest(head, in_place=True))
        assert session.preview(ForkRequest(head, in_place=True)).refused
        assert isinstance(made.address, Address)
    assert folder_snapshot(shop.parent) == before


def test_a_log_of_another_database_does_not_hide_that_the_file_alone_can_be_read(shop: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "other.sqlite")) as other:
        other.execute("PRAGMA journal_mode = wal")
        other.execute("CREATE TABLE accounts (name, filler)")
        other.execute("INSERT INTO accounts VALUES ('a', zeroblob(20000))")
        other.commit()
        shop.with_name(shop.name + "-wal").write_bytes((tmp_path / "other.sqlite-wal").read_bytes())
    with pytest.raises(OpenError, match="its tables are accounts") as refused:
        open_store(str(shop))
    assert "--without-wal" in refused.value.hint
    with closing(open_store(str(shop), View(without_wal=True))) as alone:
        assert "done" in {keys.thread_id for keys in alone.threads()}
