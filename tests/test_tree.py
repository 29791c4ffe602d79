"""Every checkpoint stands in exactly one row, after what it grew from; growth never renumbers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.errors import RefError
from studio.model import Address, Checkpoint, Origin
from studio.tree import CheckpointTree


def header(
    name: str, parent: str | None = None, ns: str = "", at: int = 0, origin: Origin = "base", source: str = "loop"
) -> Checkpoint:
    stamp = f"2026-03-14T{at // 3600:02d}:{at // 60 % 60:02d}:{at % 60:02d}+00:00"
    return Checkpoint(Address("t", ns, name), parent, at, source, stamp, 10, origin)


def tree_of(*headers: Checkpoint) -> CheckpointTree:
    tree = CheckpointTree("t")
    tree.extend(headers)
    return tree


def names(tree: CheckpointTree) -> list[str]:
    return [row.checkpoint.checkpoint_id for row in tree.rows()]


def numbers(tree: CheckpointTree) -> dict[str, str]:
    return {row.checkpoint.checkpoint_id: row.number for row in tree.rows()}


@st.composite
def histories(draw: st.DrawFn) -> list[Checkpoint]:
    """Random trees in topological order, with clocks that may step back."""
    count = draw(st.integers(1, 40))
    out = []
    for i in range(count):
        parent = draw(st.one_of(st.none(), st.integers(0, i - 1))) if i else None
        out.append(header(f"cp-{i:03d}", f"cp-{parent:03d}" if parent is not None else None, at=draw(st.integers(0, 5000))))
    return out


@given(histories())
@settings(max_examples=150, deadline=None)
def test_each_checkpoint_is_in_one_row_after_its_parent(history: list[Checkpoint]) -> None:
    tree = tree_of(*history)
    order = names(tree)
    assert sorted(order) == sorted(h.checkpoint_id for h in history)
    place = {name: i for i, name in enumerate(order)}
    for h in history:
        assert h.parent_checkpoint_id is None or place[h.parent_checkpoint_id] < place[h.checkpoint_id]


@given(histories(), st.lists(st.integers(1, 39), max_size=5))
@settings(max_examples=150, deadline=None)
def test_growing_in_batches_keeps_numbers_and_gives_the_same_shape(history: list[Checkpoint], cuts: list[int]) -> None:
    tree = CheckpointTree("t")
    seen: dict[str, str] = {}
    edges = [0, *sorted({cut for cut in cuts if cut < len(history)}), len(history)]
    for start, stop in zip(edges, edges[1:], strict=False):
        tree.extend(history[start:stop])
        now = numbers(tree)
        assert all(now[name] == number for name, number in seen.items())
        seen = now
    whole = tree_of(*history)
    assert len(set(seen.values())) == len(history)
    for h in history:
        assert tree.parent(h.address) == whole.parent(h.address)
        assert set(tree.children(h.address)) == set(whole.children(h.address))
    place = {name: i for i, name in enumerate(names(tree))}
    for h in history:
        assert h.parent_checkpoint_id is None or place[h.parent_checkpoint_id] < place[h.checkpoint_id]


@given(st.lists(st.integers(0, 11), min_size=12, max_size=12))
@settings(max_examples=200, deadline=None)
def test_any_parent_links_end_with_every_row_shown_once(links: list[int]) -> None:
    tree = tree_of(*(header(f"cp-{i:02d}", f"cp-{link:02d}", at=i) for i, link in enumerate(links)))
    assert sorted(names(tree)) == [f"cp-{i:02d}" for i in range(12)]
    assert any(problem.kind == "parent-loop" for problem in tree.problems)


@given(histories())
@settings(max_examples=80, deadline=None)
def test_two_branches_never_share_a_lane_at_one_row(history: list[Checkpoint]) -> None:
    tree = tree_of(*history)
    rows = tree.rows()
    for row in rows:
        assert row.lane in row.lanes
        assert max(row.lanes) < tree.lane_count
    by_id = {row.checkpoint.checkpoint_id: (i, row) for i, row in enumerate(rows)}
    for i, row in enumerate(rows):
        parent = row.checkpoint.parent_checkpoint_id
        if parent is not None:
            start, _ = by_id[parent]
            for between in range(start + 1, i):
                assert row.lane in rows[between].lanes
                assert rows[between].lane != row.lane, "a line runs through a dot of another branch"


def test_an_orphan_is_a_root_until_its_parent_comes() -> None:
    tree = tree_of(header("b", "a", at=2))
    assert tree.roots() == (Address("t", "", "b"),)
    assert [p.kind for p in tree.problems] == ["orphan-parent"]
    tree.extend([header("a", at=1)])
    assert names(tree) == ["a", "b"]
    assert tree.problems == []
    assert numbers(tree) == {"b": "0", "a": "1"}


def test_a_copy_in_scratch_hangs_from_its_origin_and_never_shifts_base_numbers() -> None:
    tree = tree_of(header("a", at=1), header("b", "a", at=2), header("c", "b", at=3))
    tree.facts.origins["", "x"] = ("", "b")
    tree.extend([header("x", "a", at=9, origin="scratch", source="fork"), header("y", "x", at=10, origin="scratch")])
    tree.extend([header("d", "c", at=11)])
    assert numbers(tree) == {"a": "0", "b": "1", "c": "2", "d": "3", "x": "s1", "y": "s2"}
    fork = tree.row(Address("t", "", "x"))
    assert fork.origin_checkpoint_id == "b"
    assert fork.parent_number == "1"
    assert fork.label == "copy of #1"
    assert tree.head == Address("t", "", "d")
    assert tree.branch(Address("t", "", "y")) == [Address("t", "", name) for name in ("a", "x", "y")]


def test_subgraph_rows_stand_below_the_row_that_called_them() -> None:
    tree = CheckpointTree("t")
    tree.facts.callers["task-1"] = ("", "b")
    tree.facts.callers["task-2"] = ("node:task-1", "n")
    tree.extend(
        [
            header("a", at=1),
            header("b", "a", at=2),
            header("m", ns="node:task-1", at=3),
            header("n", "m", ns="node:task-1", at=4),
            header("deep", ns="node:task-1|inner:task-2", at=5),
            header("c", "b", at=6),
        ]
    )
    assert [(row.checkpoint.checkpoint_id, row.number, row.depth) for row in tree.rows()] == [
        ("a", "0", 0),
        ("b", "1", 0),
        ("m", "1.1", 1),
        ("n", "1.2", 1),
        ("deep", "1.2.1", 2),
        ("c", "2", 0),
    ]
    assert tree.resolve("1.2.1") == Address("t", "node:task-1|inner:task-2", "deep")


def test_a_reference_is_an_id_a_number_a_word_or_part_of_an_id() -> None:
    tree = tree_of(header("1abc0001", at=1), header("1abc0002", "1abc0001", at=2), header("2def0003", "1abc0002", at=3))
    last, first = Address("t", "", "2def0003"), Address("t", "", "1abc0001")
    assert (
        tree.resolve("2def0003")
        == tree.resolve("2")
        == tree.resolve("#2")
        == tree.resolve("head")
        == tree.resolve("def0")
        == last
    )
    assert tree.resolve("head~2") == tree.resolve("root") == tree.resolve("at:2026-03-14T00:00:01.5") == first
    with pytest.raises(RefError) as ambiguous:
        tree.resolve("1abc")
    assert len(ambiguous.value.candidates) == 2
    for wrong in ("9", "nope", "head~9", "at:2020-01-01"):
        with pytest.raises(RefError):
            tree.resolve(wrong)


def test_a_long_chain_is_built_without_recursion() -> None:
    chain = [header(f"cp-{i:06d}", f"cp-{i - 1:06d}" if i else None, at=i) for i in range(30_000)]
    tree = tree_of(*chain)
    started = time.perf_counter()
    for i in range(30_000, 30_050):
        tree.extend([header(f"cp-{i:06d}", f"cp-{i - 1:06d}", at=i)])
    assert len(tree) == 30_050
    assert tree.rows(30_000, 30_001)[0].number == "30000"
    assert time.perf_counter() - started < 30  # a bound against quadratic growth, not a benchmark


@given(
    st.permutations(range(14)), st.lists(st.integers(-1, 13), min_size=14, max_size=14), st.lists(st.integers(1, 13), max_size=6)
)
@settings(max_examples=300, deadline=None)
def test_rows_that_arrive_in_any_order_with_any_links_are_each_shown_once(
    order: list[int], links: list[int], cuts: list[int]
) -> None:
    headers = [header(f"cp-{i:02d}", f"cp-{links[i]:02d}" if links[i] >= 0 else None, at=i) for i in order]
    tree = CheckpointTree("t")
    edges = [0, *sorted(set(cuts)), len(headers)]
    for start, stop in zip(edges, edges[1:], strict=False):
        tree.extend(headers[start:stop])
        shown = names(tree)
        assert sorted(shown) == sorted(h.checkpoint_id for h in headers[:stop])
        for i, name in enumerate(shown):
            assert tree.index(Address("t", "", name)) == i
            assert tree.branch(Address("t", "", name))[-1].checkpoint_id == name
