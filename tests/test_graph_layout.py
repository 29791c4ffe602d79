"""The layout of graphs: every node once, ranks downward, the same picture each time, and never for long."""

from __future__ import annotations

import random
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studio.render.graph_layout import Layout, lay_out, ranked

Edges = list[tuple[int, int]]


def overlap(layout: Layout) -> bool:
    boxes = layout.boxes
    return any(
        abs(one.x - other.x) < (one.width + other.width) / 2 and abs(one.y - other.y) < min(one.height, other.height)
        for at, one in enumerate(boxes)
        for other in boxes[:at]
    )


def test_a_chain_is_one_straight_line_from_start_to_end() -> None:
    layout = lay_out([18, 90, 140, 18], [(0, 1), (1, 2), (2, 3)], 0, 3)
    assert layout is not None
    assert len({round(box.x) for box in layout.boxes}) == 1
    assert [box.y for box in layout.boxes] == sorted(box.y for box in layout.boxes)
    assert all(re.fullmatch(r"M[\d.]+ [\d.]+L[\d.]+ [\d.]+", route.line) for route in layout.routes)


def test_parallel_nodes_stand_side_by_side_and_their_join_below() -> None:
    layout = lay_out([80] * 4, [(0, 1), (0, 2), (1, 3), (2, 3)])
    assert layout is not None
    top, left, right, bottom = layout.boxes
    assert left.y == right.y and left.x < top.x < right.x
    assert top.y < left.y < bottom.y and round(top.x) == round(bottom.x)


def test_a_line_that_leads_back_runs_beside_the_graph() -> None:
    layout = lay_out([80, 80, 80], [(0, 1), (1, 2), (2, 0)])
    assert layout is not None
    lane = layout.routes[2].label[0]
    assert lane > max(box.x + box.width / 2 for box in layout.boxes) or lane < min(box.x - box.width / 2 for box in layout.boxes)
    assert 0 < lane < layout.width


def test_ranks_say_which_edges_lead_back_and_which_to_themselves() -> None:
    found = ranked(5, [(0, 1), (1, 2), (2, 1), (2, 2), (2, 4), (1, 3)], 0, 4)
    assert found is not None
    assert found.kinds == ("down", "down", "back", "self", "down", "down")
    assert [set(rank) for rank in found.ranks] == [{0}, {1}, {2, 3}, {4}]


@pytest.mark.parametrize("count", [0, 1, 7])
def test_nodes_without_edges_are_drawn_too(count: int) -> None:
    layout = lay_out([60] * count, [])
    assert layout is not None and len(layout.boxes) == count and not overlap(layout)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 24).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)))))
)
def test_any_graph_is_laid_out_inside_its_frame_without_overlaps_and_always_alike(
    graph: tuple[int, set[tuple[int, int]]],
) -> None:
    count, pairs = graph
    edges = sorted(pairs)
    layout = lay_out([70.0] * count, edges, 0 if count > 2 else None, count - 1 if count > 2 else None)
    assert layout is not None and layout == lay_out(
        [70.0] * count, edges, 0 if count > 2 else None, count - 1 if count > 2 else None
    )
    assert not overlap(layout)
    for box in layout.boxes:
        assert box.x - box.width / 2 >= 0 and box.x + box.width / 2 <= layout.width and box.y + box.height <= layout.height
    for route in layout.routes:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", route.line.replace("V", "V0 "))]
        assert all(-1 <= number <= max(layout.width, layout.height) + 1 for number in numbers)


def test_two_hundred_nodes_and_a_thousand_edges_take_no_time_and_more_is_no_picture() -> None:
    chance = random.Random(1)
    ranks = [range(first, first + 20) for first in range(0, 200, 20)]
    edges = set()
    while len(edges) < 1_000:
        at = chance.randrange(9)
        edges.add((chance.choice(ranks[at]), chance.choice(ranks[at + 1])))
    began = time.process_time()
    assert lay_out([90.0] * 200, sorted(edges)) is not None
    assert time.process_time() - began < 5
    assert lay_out([90.0] * 201, []) is None
    assert lay_out([90.0] * 200, [(one, other) for one in range(40) for other in range(40)]) is None


def fan(count: int) -> tuple[Edges, int]:
    """One node that leads to `count` others, which all lead to one."""
    return [*((0, one) for one in range(1, count + 1)), *((one, count + 1) for one in range(1, count + 1))], count + 2


@pytest.mark.parametrize("count", [8, 25, 60, 120])
def test_a_wide_layer_stands_in_rows_instead_of_running_off_to_the_side(count: int) -> None:
    edges, nodes = fan(count)
    layout = lay_out([130.0] * nodes, edges)
    assert layout is not None and not overlap(layout)
    assert layout.width < max(1_100, 1.7 * layout.height)
    first, last = layout.boxes[0], layout.boxes[-1]
    assert all(first.y < box.y < last.y for box in layout.boxes[1:-1])
    rows = {box.y for box in layout.boxes[1:-1]}
    assert len(rows) > 1 and all(sum(box.y == row for box in layout.boxes) <= count / 2 for row in rows)


def test_a_line_to_a_lower_row_passes_between_the_boxes_above_it() -> None:
    edges, nodes = fan(25)
    layout = lay_out([130.0] * nodes, edges)
    assert layout is not None
    for (source, target), route in zip(edges, layout.routes, strict=True):
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", re.sub(r"V[\d.]+", "", route.line))]
        points = list(zip(numbers[::2], numbers[1::2], strict=True))
        for at, box in enumerate(layout.boxes):
            if at not in (source, target):
                assert not any(abs(x - box.x) < box.width / 2 and box.y <= y <= box.y + box.height for x, y in points)


def test_a_layer_that_fits_stays_one_row() -> None:
    edges, nodes = fan(4)
    layout = lay_out([240.0] * nodes, edges)
    assert layout is not None and len({box.y for box in layout.boxes}) == 3
