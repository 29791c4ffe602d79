"""A long thread that is one plain chain is answered without its tree, and says what the tree says."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from studio import spots
from studio.errors import RefError
from studio.forest import Forest
from studio.model import Address, Row
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.stores import chain
from studio.tree import CheckpointTree
from studio.value import encode
from tests.cli.conftest import Studio, studio
from tests.factories import make_states

__all__ = ["studio"]

SAMPLES = Path(__file__).parent.parent / "sample_threads"
UNIQUE = ", PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id)"
TABLES = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB{unique});
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
  task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB, task_path TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
CREATE INDEX by_key ON checkpoints (thread_id, checkpoint_ns, checkpoint_id);
"""
Stored = tuple[str, str, str | None, int]
"""Namespace, id, parent, second of the clock."""
BLANK, SEALED = -1, -2
"""Instead of a second: a row without step and source, an encrypted one."""


def add(path: Path, rows: list[Stored], thread: str = "t") -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for ns, identity, parent, second in rows:
            tag, clock = "msgpack+aes" if second == SEALED else "msgpack", second if second >= 0 else 30
            stamp = f"2026-03-14T14:{clock // 60:02d}:{clock % 60:02d}.000001+00:00"
            blob = encode("msgpack", {"v": 4, "ts": stamp, "id": identity, "channel_values": {"n": second}})
            metadata = f'{{"source": "loop", "step": {second}, "parents": {{}}}}'.encode() if second != BLANK else b"{}"
            connection.execute(
                "INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", (thread, ns, identity, parent, tag, blob, metadata)
            )


def lay_down(path: Path, rows: list[Stored], unique: str = UNIQUE) -> Path:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(TABLES.format(unique=unique))
    add(path, rows)
    return path


def plain(count: int, ns: str = "", width: int = 5) -> list[Stored]:
    ids = [f"c{at:0{width}d}" for at in range(count)]
    return [(ns, one, ids[at - 1] if at else None, at) for at, one in enumerate(ids)]


@contextmanager
def opened(path: Path) -> Iterator[Session]:
    with closing(Session.open(str(path), scratch=str(path) + ".scratch")) as session:
        session.refresh()
        yield session


@pytest.fixture
def any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short threads are answered as long ones are, and long pages end soon."""
    monkeypatch.setattr(spots, "LONG", 0)
    monkeypatch.setattr(chain, "PAGE", 3)


@pytest.fixture
def without_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> CheckpointTree:
        raise AssertionError("the tree was asked for")

    monkeypatch.setattr(Forest, "tree", refuse)


def of_tree(tree: CheckpointTree) -> dict[Address, Row]:
    return {row.checkpoint.address: row for row in tree.rows()}


def without_lanes(row: Row) -> Row:
    return replace(row, lane=0, lanes=(), parent_lane=None)


def named(session: Session, ref: str, ns: str | None) -> Address | str:
    try:
        return session.resolve(ref, "t", ns)
    except RefError as error:
        return error.message


def agree(path: Path, refs: list[str], thread: str = "t") -> None:
    """Two sessions, one of which has the tree, say the same of every row and every name."""
    with opened(path) as whole:
        tree = whole.tree(thread)
        for address, row in of_tree(tree).items():
            with opened(path) as session:
                assert session.number(address) == row.number
                assert without_lanes(session.row(address)) == without_lanes(row)
                assert session.base_of(address) == whole.base_of(address)
                assert session.origin(address) == whole.origin(address)
        with opened(path) as session:
            stretch = session.stretch(thread)
            if stretch is not None:
                rows = tree.rows()
                for start, stop in {(0, len(tree)), (0, 1), (len(tree) - 1, len(tree)), (len(tree) // 2, len(tree) // 2 + 1)}:
                    assert stretch.rows(start, stop) == rows[start:stop]
                assert [stretch.place(row.checkpoint.address) for row in rows] == list(range(len(stretch)))
                assert (stretch.problems, stretch.namespaces) == (tree.problems, tree.namespaces)
                assert (stretch.branch_count, stretch.lane_count) == (tree.branch_count, tree.lane_count)
                assert session.problems() == whole.problems()
        for ref in refs:
            for ns in (None, ""):
                with opened(path) as session:
                    assert named(session, ref, ns) == named(whole, ref, ns)


@st.composite
def histories(draw: st.DrawFn) -> list[Stored]:
    """Mostly one chain; now and then a branch, an orphan, a second root, a loop, a clock step, an odd id, a subgraph's row."""
    count = draw(st.integers(1, 12))
    ids = [f"c{at:03d}" for at in range(count)]
    rows: list[Stored] = []
    for at, identity in enumerate(ids):
        parent = ids[at - 1] if at else draw(st.sampled_from([None, None, None, "", "gone", ids[-1], identity]))
        rows.append(("", identity, parent, at))
    for _ in range(draw(st.integers(0, 2))):
        at = draw(st.integers(0, count - 1))
        ns, identity, parent, second = rows[at]
        odd = draw(st.sampled_from(["parent", "clock", "id", "inner", "twice", "own child", "blank", "sealed"]))
        if odd == "parent":
            rows[at] = (ns, identity, draw(st.sampled_from([None, "gone", *ids])), second)
        elif odd == "clock":
            rows[at] = (ns, identity, parent, draw(st.integers(0, 30)))
        elif odd == "id":
            rows[at] = (ns, draw(st.sampled_from(["4", "zz", "c,12", "ä001", "c0001"])), parent, second)
        elif odd == "inner":
            rows.append((draw(st.sampled_from(["sub", "sub:1"])), draw(st.sampled_from(["3", "c001", "c900"])), None, second))
        elif odd in ("blank", "sealed"):
            rows[at] = (ns, identity, parent, BLANK if odd == "blank" else SEALED)
        else:
            rows.append(rows[at] if odd == "twice" else (ns, identity, identity, second))
    return draw(st.sampled_from([rows, rows[::-1], random.Random(7).sample(rows, len(rows))]))


REFS = [
    "0",
    "1",
    "#2",
    "3",
    "4",
    "11",
    "99",
    "c001",
    "c00",
    "c0",
    "001",
    "head",
    "head~1",
    "head~2",
    "head~40",
    "root",
    "at:2027",
]


@pytest.mark.usefixtures("any_length")
@settings(max_examples=60, deadline=None)
@given(histories())
def test_numbers_rows_and_names_are_those_of_the_tree(history: list[Stored]) -> None:
    with TemporaryDirectory() as folder:
        agree(lay_down(Path(folder) / "x.sqlite", history, unique=""), REFS)


@pytest.mark.usefixtures("any_length")
@settings(max_examples=60, deadline=None)
@given(histories(), st.lists(st.tuples(st.sampled_from("bcdz"), st.integers(0, 14), st.integers(0, 30)), max_size=4))
def test_numbers_that_were_told_stay_when_the_file_grows(first: list[Stored], more: list[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        path = lay_down(Path(folder) / "x.sqlite", first, unique="")
        with opened(path) as whole, opened(path) as session:
            told = {address: session.number(address) for address in of_tree(whole.tree("t"))}
            add(path, [("", f"{letter}{at:03d}x"[:4], f"c{parent:03d}", at) for letter, at, parent in more])
            for one in (whole, session):
                one.refresh()
            later = {address: session.number(address) for address in of_tree(whole.tree("t"))}
            assert later.items() >= told.items()
            assert later == {address: row.number for address, row in of_tree(whole.tree("t")).items()}


@pytest.mark.usefixtures("any_length")
@pytest.mark.parametrize("file", sorted(SAMPLES.glob("*.sqlite")), ids=lambda file: file.stem)
def test_a_row_of_a_real_file_is_the_one_in_its_tree(file: Path) -> None:
    with closing(Session.open(str(file))) as whole:
        for thread in whole.thread_ids():
            agree(file, [], thread)


@pytest.mark.usefixtures("any_length")
def test_forks_keep_their_place_and_their_names(tmp_path: Path) -> None:
    path = make_states(tmp_path / "x.sqlite", {"n": 1}, {"n": 2}, {"n": 3}, thread_id="t")
    with opened(path) as session:
        session.fork(ForkRequest(session.resolve("1", "t"), Patch({"/n": 7})))
    agree(path, ["0", "1", "2", "s1", "head", "head~1"])


@pytest.mark.usefixtures("without_tree")
def test_one_checkpoint_of_a_long_thread_is_shown_and_compared_without_its_tree(studio: Studio, tmp_path: Path) -> None:
    path = lay_down(tmp_path / "x.sqlite", plain(4_000) + plain(20, "sub:1"))
    assert studio("show", path, "2000").out.splitlines()[0] == "#2000 superstep  c02000"
    for ref, number in (("#17", 17), ("c03999", 3_999), ("head", 3_999), ("head~10", 3_989), ("root", 0)):
        assert studio("show", path, ref).out.startswith(f"#{number} superstep")
    assert studio("diff", path, "2000").out.startswith("#1999 → #2000 superstep")
    assert studio("diff", path, "1000", "1010").out.startswith("#1000 → #1010 superstep")


@pytest.mark.usefixtures("without_tree")
def test_some_rows_of_a_long_thread_are_listed_without_its_tree(studio: Studio, tmp_path: Path) -> None:
    rows = plain(4_000)
    rows[9] = (*rows[9][:3], 3)
    rows[17] = (*rows[17][:3], BLANK)
    path = lay_down(tmp_path / "x.sqlite", [("", "c00000", "gone", 0), *rows[1:]])
    last = studio("tree", path, "--limit", "3").out.splitlines()
    assert last[:2] == ["t · 4,000 checkpoints · 1 branch", "  … 3,997 earlier"]
    assert [text.split()[1] for text in last[2:5]] == ["#3997", "#3998", "#3999"]
    assert "#3999" in last[4] and last[4].endswith("HEAD")
    found = studio("tree", path, "--around", "2000", "--json").doc
    assert [row["number"] for row in found["rows"]] == [str(at) for at in range(1_990, 2_011)]
    assert [(one["kind"], one["where"]) for one in found["problems"]] == [
        ("orphan-parent", "t #0"),
        ("no-metadata", "t"),
        ("clock-step", "t"),
    ]
