"""Rows in columns are the same rows: a tree that packs them says of every forest what one says that keeps each row as it came."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.errors import RefError
from studio.history import packed
from studio.history.columns import pack_id, pack_ids, pack_numbers, pack_times
from studio.history.packed import Packed
from studio.model import Address, Checkpoint
from studio.tree import CheckpointTree

Columns = Callable[..., Any]


class RowByRow(CheckpointTree):
    """Every growth is taken in as one that turns the tree."""

    def _goes_on(self, fresh: range) -> bool:
        return False


def an_id(number: int, form: int) -> str:
    forms = (
        f"1f0{number:05x}-0000-6000-8000-{number * 7919:012x}",
        f"1F0{number:05x}-000A-6000-8000-{number:012x}",
        f"cp-{number}",
        f"{number * 2654435761 % 2**32:08x}-0000-4000-8000-{number:012x}",
        f"1f0{number:05x}-0000-6000-8000-00000000000g",
        f"é\ud800{number}",
    )
    return forms[form]


def a_time(moment: int, form: int) -> str | None:
    seconds, thousandths = divmod(moment, 1000)
    base = f"2026-03-14T{seconds // 3600 % 24:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    part = f".{thousandths * 1000 + 1:06d}"
    return (f"{base}{part}+00:00", f"{base}+00:00", None, f"{base}{part[:4]}Z", "not a time", f"{base}{part}+02:00")[form]


class Forest:
    """A random thread, in the order in which its rows come, and where they are cut into batches."""

    def __init__(self, seed: int) -> None:
        chance = random.Random(seed)
        count = chance.randint(1, chance.choice([6, 40]))
        goes_on = chance.choice([0.0, 0.6, 0.9, 0.97, 1.0])
        odd = chance.choice([0.0, 0.0, 0.1, 0.6])
        spaces = chance.choice([[""], ["", "a:t0"], ["", "a:t0", "a:t0|b:t1", "m"]])
        scratch = chance.choice([0, 0, 0.2])
        self.rows: list[Checkpoint] = []
        keys: list[tuple[str, str]] = []
        clock = 5000
        for at in range(count):
            is_odd = chance.random() < odd
            ns = "" if chance.random() < goes_on else chance.choice(spaces)
            name = an_id(
                at if chance.random() < 0.97 else chance.randrange(count), chance.choice([1, 2, 3, 4, 5]) if is_odd else 0
            )
            clock = max(0, clock + chance.choice([0, 1, 1000] if chance.random() < goes_on else [-3000, -3, 0, 7]))
            before = [identity for space, identity in keys if space == ns]
            parent: str | None = an_id(chance.randrange(count + 3), 0)
            if before and chance.random() < goes_on:
                parent = before[-1]
            elif chance.random() < 0.3:
                parent = chance.choice([None, ""])
            elif keys and chance.random() < 0.7:
                parent = chance.choice(keys)[1]
            step = chance.choice([at, -1, None, 2**70, 2**40]) if is_odd else at
            source = chance.choice(["loop", "input", "update", "fork", None, "é"]) if is_odd else "loop"
            size = chance.choice([10 * at, 2**65]) if is_odd else 10 * at
            at_time = a_time(clock, chance.choice([1, 2, 3, 4, 5]) if is_odd else 0)
            origin = "scratch" if chance.random() < scratch else "base"
            self.rows.append(Checkpoint(Address("t", ns, name), parent, step, source, at_time, size, origin, is_odd))
            keys.append((ns, name))
        if chance.random() < 0.3 * (1 - goes_on):
            chance.shuffle(self.rows)
        elif chance.random() < 0.2:
            one, other = chance.randrange(count), chance.randrange(count)
            self.rows[one], self.rows[other] = self.rows[other], self.rows[one]
        self.cuts = sorted({chance.randrange(count + 1) for _ in range(chance.choice([0, 0, 1, 3, 6]))})
        self.origins = {chance.choice(keys): chance.choice(keys)} if chance.random() < 0.3 else {}
        self.promoted = {chance.choice(keys)} if chance.random() < 0.1 else set()
        self.callers = {task: chance.choice(keys) for task in ("t0", "t1") if chance.random() < 0.7}
        self._parents = {key: {"": chance.choice(keys)[1], "a:t0": chance.choice(keys)[1]} for key in keys[::2]}
        self.again = chance.random() < 0.2
        self.batch = chance.choice([1, 2, 3, 1024])

    def parents(self, address: Address) -> Mapping[str, str]:
        return self._parents.get((address.checkpoint_ns, address.checkpoint_id), {})

    def tell(self, tree: CheckpointTree) -> None:
        tree.facts.origins.update(self.origins)
        tree.facts.promoted.update(self.promoted)
        tree.facts.callers.update(self.callers)

    def grow(
        self, kind: type[CheckpointTree], *, keeps: bool, after: CheckpointTree | None = None
    ) -> tuple[CheckpointTree, list[Any]]:
        """The tree and what it said as it grew. `keeps`: it gets the first rows in columns, as a file is read."""
        tree = kind("t", parents_of=self.parents)
        self.tell(tree)
        if after is not None:
            tree.keep_numbers(after.numbers())
        said: list[Any] = []
        edges = [0, *self.cuts, len(self.rows)]
        for number, (start, stop) in enumerate(zip(edges, edges[1:], strict=False)):
            batch = self.rows[start:stop]
            if keeps and not number:
                first = Packed("t")
                first.add(batch)
                said.append(tree.extend(first))
            else:
                said.append(tree.extend(batch))
            said.append(everything(tree))
        if self.again:
            tree.start_again([(row.checkpoint_ns, row.checkpoint_id) for row in self.rows[::2]])
            self.tell(tree)
            said += [tree.extend(self.rows[::2]), everything(tree)]
        return tree, said


def everything(tree: CheckpointTree) -> list[Any]:
    """All that a tree says."""
    keys = tree.keys()
    said: list[Any] = [tree.rows(), tree.rows(1, 4), len(tree), tree.lane_count, tree.branch_count, tree.namespaces, keys]
    said += [tree.inner_count, tree.problems, tree.head, list(tree.headers()), tree.by_number("5"), tree.by_number("x")]
    for ns in ("", "a:t0", "m"):
        said += [tree.leaves(ns), tree.roots(ns), tree.keys(ns)]
    for at, key in enumerate(keys):
        one = Address("t", *key)
        assert one in tree
        said += [tree.header(one), tree.index(one), tree.address_at(at), tree.parent(one), tree.grew_from(one), tree.origin(one)]
        said += [tree.children(one), tree.children_of(one), tree.forks(one), tree.caller(one), tree.inner(one), tree.branch(one)]
        said += [tree.row(one), tree.number(one), tree.by_number(tree.number(one))]
        said += [named(tree, ref, ns) for ref in (key[1], key[1][3:9], "#" + tree.number(one)) for ns in (None, key[0])]
    return [*said, *(named(tree, ref, None) for ref in ("head", "head~2", "root", "at:2026-03-14T00:00:06", "1", "1.1", "x"))]


def named(tree: CheckpointTree, ref: str, ns: str | None) -> object:
    try:
        return tree.resolve(ref, ns)
    except RefError as error:
        return str(error), error.hint


@given(st.integers(0, 2**32))
@settings(max_examples=150, deadline=None)
def test_a_tree_says_the_same_of_packed_rows_as_of_rows_kept_as_they_came(seed: int) -> None:
    forest = Forest(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "BATCH", forest.batch)
        patch.setattr(packed, "STRAYS", forest.batch)
        tree, said = forest.grow(CheckpointTree, keeps=True)
        assert forest.grow(CheckpointTree, keeps=False)[1] == said
        later = forest.grow(CheckpointTree, keeps=True, after=tree)[1]
        patch.setattr(packed, "_columns", row_by_row(packed._columns))
        patch.setattr(packed, "BATCH", 1)
        plain, expected = forest.grow(RowByRow, keeps=False)
        assert said == expected
        assert later == forest.grow(RowByRow, keeps=False, after=plain)[1]


def row_by_row(columns: Columns) -> Columns:
    """No row fits into columns, but the blank that stands there for it."""
    return lambda *values: columns(*values) if set(values[0]) == {packed._BLANK[0]} else None


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 5)), unique=True, min_size=1, max_size=30))
@settings(max_examples=100, deadline=None)
def test_an_id_is_packed_only_where_it_comes_out_the_same(parts: list[tuple[int, int]]) -> None:
    ids = [an_id(number, form) for number, form in parts]
    canonical = [form in (0, 3) for _, form in parts]
    assert [pack_id(one) is not None for one in ids] == canonical
    assert (pack_ids(ids) is not None) == all(canonical)
    rows = [Checkpoint(Address("t", "", one), None, 1, "loop", None, 1) for one in ids]
    kept = Packed("t")
    assert kept.add([*rows, *rows]) == len(rows)
    assert list(kept) == rows
    assert [kept.find("", one) for one in ids] == list(range(len(rows)))
    assert kept.find("a", ids[0]) == packed.NOT_HERE


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-14T00:00:00.000001Z     ", "2026-03-14T00:00:00.00000١+00:00", "2026-03-14 00:00:00.000001+00:00",
        "2026-03-14T00:00:00.000001+02:00", "2026-03-14T00:00:00.0+0000+00:00", "2026-03-14T00:00:00.-00001+00:00",
    ],
)  # fmt: skip
def test_a_time_of_another_form_is_not_packed(text: str) -> None:
    assert len(text) == 32
    assert pack_times([text]) is None
    assert pack_times(["2026-03-14T00:00:00.000001+00:00", text]) is None


def test_numbers_beyond_64_bits_and_truth_values_are_not_packed() -> None:
    assert pack_numbers([1, 2**63 - 1, -(2**63)]) is not None
    for odd in (2**63, None, True, 1.0):
        assert pack_numbers([1, odd]) is None


def test_a_row_of_a_long_chain_takes_little_memory() -> None:
    import tracemalloc

    def chain(count: int) -> Any:
        for at in range(count):
            yield Checkpoint(
                Address("t", "", an_id(at, 0)), an_id(at - 1, 0) if at else None, at, "loop", a_time(at, 0), 100 + at
            )

    tracemalloc.start()
    try:
        tree = CheckpointTree("t")
        tree.extend(chain(20_000))
        assert len(tree.rows(19_990)) == 10
        assert tree.problems == []
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 20_000 * 150
