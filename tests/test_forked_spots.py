"""A long thread with branches is answered without its tree where its numbers are the places of its ids, and as its tree does."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from studio.forest import Forest
from studio.requests import ForkRequest, Patch
from studio.stores.chain import Chain
from studio.stores.forked import Forked
from studio.stores.sqlite import SqliteStore
from studio.tree import CheckpointTree
from studio.value import encode
from tests.cli.conftest import Studio, studio
from tests.factories import make_states
from tests.test_spots import TABLES, UNIQUE, agree, any_length, named, opened, without_lanes, without_tree

__all__ = ["any_length", "studio", "without_tree"]

PULLED, UPDATED = "~__pregel_pull, work", "~__interrupt__, 0000000000"


class Stored(Struct):
    id: str
    parent: str | None
    second: int
    source: str = "loop"
    version: int = 1
    ns: str = ""
    wrote: str | None = None
    """The path of a task that wrote under it."""


def lay_down(path: Path, rows: list[Stored]) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES.format(unique=UNIQUE))
        for at, row in enumerate(rows):
            stamp = f"2026-03-14T14:{row.second // 60:02d}:{row.second % 60:02d}.000001+00:00"
            doc = {"v": 4, "ts": stamp, "id": row.id, "channel_values": {"n": at}, "channel_versions": {"n": row.version}}
            metadata = f'{{"source": "{row.source}", "step": {row.second}, "parents": {{}}}}'.encode()
            key = ("t", row.ns, row.id)
            stored = (*key, row.parent, "msgpack", encode("msgpack", {**doc, "versions_seen": {}}), metadata)
            connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", stored)
            if row.wrote is not None:
                written = (*key, f"task-{at}", 0, "n", "msgpack", encode("msgpack", at), row.wrote)
                connection.execute("INSERT INTO writes VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", written)
    return path


def with_branches(count: int, *forks: tuple[int, int], source: str = "update") -> list[Stored]:
    """A chain; each of `forks` says from which row so many new ones go on, behind all others."""
    rows = [Stored(f"c{at:05d}", f"c{at - 1:05d}" if at else None, at % 3_000) for at in range(count)]
    for row in rows:
        row.second = min(int(row.id[1:]), 3_000)
    for parent, more in forks:
        above = f"c{parent:05d}"
        for _ in range(more):
            rows.append(Stored(f"c{len(rows):05d}", above, 3_001, source))
            above = rows[-1].id
    return rows


@st.composite
def histories(draw: st.DrawFn) -> list[Stored]:
    """Branches, several beginnings, orphans, copies; now and then a clock step, a parent that comes later, a subgraph's row."""
    count = draw(st.integers(1, 10))
    ids = [f"c{at:03d}" for at in range(count)]
    rows: list[Stored] = []
    second = 0
    for at, identity in enumerate(ids):
        second = max(0, second + draw(st.sampled_from([0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, -2])))
        before = ids[:at] or [None]
        parents = [before[-1]] * 6 + [draw(st.sampled_from(before))] * 6 + ["gone", None, draw(st.sampled_from(ids))]
        rows.append(
            Stored(
                identity,
                draw(st.sampled_from(parents)),
                second,
                draw(st.sampled_from(["loop", "loop", "input", "update", "fork"])),
                draw(st.integers(1, 3)),
                wrote=draw(st.sampled_from([None, PULLED, UPDATED])),
            )
        )
    if draw(st.booleans()):
        rows.append(Stored(draw(st.sampled_from(["3", "c001", "c900"])), None, 5, ns=draw(st.sampled_from(["sub", "sub:1"]))))
    return draw(st.one_of(st.just(rows), st.permutations(rows)))


REFS = ["0", "1", "#2", "3", "9", "99", "c001", "c00", "head", "head~1", "head~2", "head~40", "root", "at:2027"]


@pytest.mark.usefixtures("any_length")
@settings(max_examples=80, deadline=None)
@given(histories())
def test_numbers_rows_and_names_are_those_of_the_tree(history: list[Stored]) -> None:
    with TemporaryDirectory() as folder:
        path = lay_down(Path(folder) / "x.sqlite", history)
        agree(path, REFS)
        with opened(path) as whole:
            tree = whole.tree("t")
            addresses = [row.checkpoint.address for row in tree.rows()]
            for address in addresses:
                with opened(path) as session:
                    session.number(address)
                    assert list(session.explainer.threads.children_of(address)) == tree.children_of(address)
            for one in addresses[:4]:
                for other in addresses[:4]:
                    with opened(path) as session:
                        way = session.chain_between(one, other, 3)
                        branch = tree.branch(other)
                        if way:
                            assert list(way) == branch[branch.index(one) + 1 :]


@pytest.mark.usefixtures("any_length")
def test_branches_that_stand_in_the_order_of_their_ids_are_proven(tmp_path: Path) -> None:
    path = lay_down(tmp_path / "x.sqlite", with_branches(20, (3, 2), (3, 1), (12, 1)))
    with closing(SqliteStore(str(path))) as store:
        found = store.line("t", 0)
        assert isinstance(found, Forked) and len(found) == 24
        assert store.chain("t", 0) is None
        assert [found.below(at) for at in (2, 3, 19, 20, 23)] == [[3], [4, 20, 22], [], [21], []]
        assert [found.above(at) for at in (0, 4, 20, 21, 22, 23)] == [None, 3, 3, 20, 3, 12]


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE checkpoints SET checkpoint_id = 'c00009x' WHERE checkpoint_id = 'c00009'",
        "UPDATE checkpoints SET parent_checkpoint_id = 'c00022' WHERE checkpoint_id = 'c00009'",
        "UPDATE checkpoints SET checkpoint = x'81a17604' WHERE checkpoint_id = 'c00009'",
        "UPDATE checkpoints SET checkpoint = (SELECT checkpoint FROM checkpoints WHERE checkpoint_id = 'c00003')"
        " WHERE checkpoint_id = 'c00009'",
        "UPDATE checkpoints SET checkpoint = CAST(replace(CAST(checkpoint AS TEXT), '-03-', '-33-') AS BLOB)"
        " WHERE checkpoint_id = 'c00009'",
    ],
)
@pytest.mark.usefixtures("any_length")
def test_what_is_not_in_order_is_left_to_the_tree(tmp_path: Path, spoil: str) -> None:
    path = lay_down(tmp_path / "x.sqlite", with_branches(20, (3, 2), (12, 1)))
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(spoil).rowcount == 1
    with closing(SqliteStore(str(path))) as store:
        assert store.line("t", 0) is None
    agree(path, REFS)


def test_a_thread_without_branches_is_a_plain_chain_whatever_its_times(tmp_path: Path) -> None:
    rows = with_branches(20)
    rows[7].second = 900
    with closing(SqliteStore(str(lay_down(tmp_path / "x.sqlite", rows)))) as store:
        assert type(store.line("t", 0)) is Chain


@pytest.mark.usefixtures("without_tree")
def test_one_checkpoint_of_a_long_thread_with_branches_is_shown_and_compared_without_its_tree(
    studio: Studio, tmp_path: Path
) -> None:
    path = lay_down(tmp_path / "x.sqlite", with_branches(4_000, (1_000, 2), (3_000, 1), (1_000, 1)))
    assert studio("show", path, "2000").out.splitlines()[0] == "#2000 superstep  c02000"
    assert studio("show", path, "1000").out.startswith("#1000 superstep")
    for ref, number, above in (("#4000", 4_000, 1_000), ("c04001", 4_001, 4_000), ("4002", 4_002, 3_000), ("head", 4_003, 1_000)):
        shown = studio("show", path, ref).out.splitlines()
        assert shown[0].startswith(f"#{number} update")
        assert f"#{above}" in shown[2]
    assert studio("show", path, "head~2").out.startswith("#999 superstep")
    assert studio("diff", path, "4000").out.startswith("#1000 → #4000 update")
    assert studio("diff", path, "1001").out.startswith("#1000 → #1001 superstep")


def test_a_copy_in_a_long_thread_hangs_from_what_it_was_made_from(tmp_path: Path) -> None:
    rows = with_branches(4_000, (1_000, 1), source="fork")
    with opened(lay_down(tmp_path / "x.sqlite", rows)) as session, opened(tmp_path / "x.sqlite") as whole:
        tree = whole.tree("t")
        copy = named(session, "4000", None)
        assert not isinstance(copy, str)
        assert session.row(copy).label == tree.row(copy).label == "copy of #1001"
        assert session.base_of(copy) == whole.base_of(copy) == named(whole, "1001", None)


@pytest.mark.usefixtures("any_length")
@pytest.mark.parametrize("forked", [["3"], ["0"], ["3", "5"], ["3", "head"], ["head"]])
def test_forks_that_the_studio_stored_in_the_file_keep_their_numbers_and_names(tmp_path: Path, forked: list[str]) -> None:
    path = make_states(tmp_path / "x.sqlite", *({"n": at} for at in range(7)), thread_id="t")
    with opened(path) as session:
        for ref in forked:
            session.fork(ForkRequest(session.resolve(ref, "t"), Patch({"/n": 70}), in_place=True))
    agree(path, ["0", "1", "2", "7", "8", "head", "head~1", "root"])


def test_other_rows_of_a_long_thread_with_a_recorded_fork_need_no_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows_stored = with_branches(4_000)
    for row in rows_stored:  # as wide as the id that the fork gets
        row.id = f"10000000-0000-6000-8000-{row.id[1:]:0>12}"
        row.parent = f"10000000-0000-6000-8000-{row.parent[1:]:0>12}" if row.parent else None
    path = lay_down(tmp_path / "x.sqlite", rows_stored)
    with opened(path) as session:
        session.fork(ForkRequest(session.resolve("1000", "t"), Patch({"/n": 70}), in_place=True))
    with opened(path) as whole:
        rows = {row.number: row for row in whole.tree("t").rows()}
    monkeypatch.setattr(Forest, "tree", _refuse)
    with opened(path) as session:
        for number in ("0", "999", "1000", "1001", "3999"):
            at = session.resolve(number, "t")
            assert without_lanes(session.row(at)) == without_lanes(rows[number])
        assert session.number(session.resolve("head", "t")) == "4000"


def _refuse(*_: object) -> CheckpointTree:
    raise AssertionError("the tree was asked for")
