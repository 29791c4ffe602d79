"""Rows of a thread with more branches than lanes can be drawn: each has its shape, and says how many lanes are left out."""

from __future__ import annotations

import re
from contextlib import closing
from pathlib import Path

import pytest

from studio.cli import lanes as plain
from studio.model import Row
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.tui import lanes
from tests.cli.conftest import Studio, studio  # noqa: F401 - a fixture

SHAPES = "●◌■▲▶?"


@pytest.fixture
def bushy(shop: Path) -> Path:
    """Thread `done` with a dozen forks of its early checkpoints in the scratch file."""
    with closing(Session.open(str(shop))) as session:
        for turn in range(12):
            session.fork(ForkRequest(session.resolve(str(1 + turn % 3), "done"), Patch({})))
    return shop


def rows_of(path: Path) -> list[Row]:
    with closing(Session.open(str(path))) as session:
        return session.tree("done").rows()


def test_each_line_of_the_tree_has_one_shape_and_counts_the_lanes_that_are_left_out(bushy: Path, studio: Studio) -> None:  # noqa: F811
    lines = studio("tree", bushy, "--thread", "done").out.splitlines()[1:]
    drawn = [(line.split("#")[0], row) for line, row in zip(lines, rows_of(bushy), strict=True)]
    for cells, row in drawn:
        assert len(re.findall(f"[{re.escape(SHAPES)}]", cells)) == 1, cells
        hidden = sum(lane >= plain.MOST for lane in {*row.lanes, row.lane})
        assert re.findall(r"\+(\d+)", cells) == ([str(hidden)] if hidden else [])
    assert any("+" in cells for cells, _ in drawn)


@pytest.mark.parametrize("first", [0, 2, 9])
def test_a_row_on_a_lane_that_is_not_drawn_has_its_shape_at_the_edge(bushy: Path, first: int) -> None:
    rows = rows_of(bushy)
    assert max(row.lane for row in rows) >= 11
    above = None
    for row in rows:
        cells = [cell for cell, _ in lanes.draw(row, above, first, first + 3, {})]
        mark = lanes.shape(row)[0]
        assert cells.count(mark) == 1, cells
        place = 1 if row.lane < first else 4 if row.lane >= first + 3 else 2 * (row.lane - first)
        assert cells[place] == mark
        above = row
