"""Lanes of a checkpoint tree in plain characters."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from studio.history.lanes import Lanes
from studio.model import Address, Row
from studio.render.labels import STATUS_SHAPES
from studio.tree import CheckpointTree

MOST = 8
"""Lanes that are drawn; the last one stands for all that follow."""


def own_lanes(tree: CheckpointTree, addresses: Sequence[Address]) -> dict[Address, tuple[int, tuple[int, ...]]]:
    """Lanes for a part of a tree, such as the root namespace alone: address -> (its lane, the lanes through its row)."""
    place = {address: index for index, address in enumerate(addresses)}
    parents, continues, taken = [], [], set()
    for address in addresses:
        above = tree.grew_from(address)
        at = place.get(above, -1) if above is not None else -1
        parents.append(at)
        continues.append(at >= 0 and at not in taken and tree.parent(address) == above)
        if continues[-1]:
            taken.add(at)
    lanes = Lanes.build(parents, continues)
    passing = lanes.passing(0, len(addresses))
    return {address: (lanes.lane(at), tuple(sorted(passing[at]))) for at, address in enumerate(addresses)}


def redrawn(row: Row, own: dict[Address, tuple[int, tuple[int, ...]]]) -> Row:
    lane, lanes = own[row.checkpoint.address]
    return replace(row, lane=lane, lanes=lanes)


def draw(row: Row, above: Row | None, width: int) -> str:
    """The lane part of one row, `2 * width` characters: `●─╮` where another lane begins. Lanes beyond share the last one."""
    last = width - 1
    own, passing = min(row.lane, last), {min(lane, last) for lane in row.lanes}
    before = frozenset(above.lanes) if above is not None else frozenset[int]()
    ended = above.lane if above is not None and above.is_leaf else None
    begins = {min(lane, last) for lane in row.lanes if lane != row.lane and (lane not in before or lane == ended)}
    left, right = min((*begins, own)), max((*begins, own))
    out = []
    for lane in range(width):
        between = left < lane < right
        if lane == own:
            cell = (
                "◌"
                if row.origin_checkpoint_id is not None and row.status not in ("failed", "paused")
                else STATUS_SHAPES.get(row.status, "●")
            )
        elif lane in begins:
            cell = ("╮" if lane == right else "┬") if lane > own else ("╭" if lane == left else "┬")
        elif lane in passing:
            cell = "┼" if between else "│"
        else:
            cell = "─" if between else " "
        out.append(cell + ("─" if left <= lane < right else " "))
    return "".join(out)


def beyond(row: Row, width: int) -> str:
    """`+2`: the lanes at this row that are not drawn, beside the last one that is; "" where all are."""
    hidden = sum(lane >= width for lane in {*row.lanes, row.lane})
    return f"+{hidden}" if hidden else ""
