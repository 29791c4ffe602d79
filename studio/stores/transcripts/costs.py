"""What a transcript cost: as its program recorded it, or estimated by a table of prices, and then marked so.

A recorded cost is a number. An estimate is an object that names its table, so that nobody takes it for a record:
`{"estimate": 0.0312, "prices": "prices.toml"}`, with `recorded`, the part that is not estimated, and `not_priced`, the models
that the table does not have with their tokens, which are in no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from studio.prices import KINDS, MOST, Prices
from studio.stores.transcripts.record import Note
from studio.stores.transcripts.turns import Turn, Woven

NO_MODEL = "unknown model"
PLACES = 10
Four = tuple[int, int, int, int]


def is_money(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MOST


def own(woven: Woven, turn: Turn) -> float:
    """What the answers of a turn say that they cost."""
    found: float = sum((woven.records[at].more or {}).get("cost", 0) for at in turn.records)
    return found


def model(woven: Woven, turn: Turn) -> str | None:
    """Which model gave an answer: said there, or before it on its branch."""
    at: Turn | None = turn
    seen = 0
    while at is not None and seen <= len(woven.turns):
        for place in at.records:
            record = woven.records[place]
            if found := record.model or (record.more or {}).get("model"):
                return str(found)
        at, seen = (woven.turns.get(at.parent or "") if not at.lost else None), seen + 1
    return None


def charged(held: Any, woven: Woven, turn: Turn, totals: Iterable[tuple[str, Any]], prices: Prices | None) -> Any:
    """The channel `cost_usd` after a turn, from what it was before; None where nothing is known.

    `totals` is what notes at this turn set: a running total of the program replaces whatever was estimated.
    """
    noted = False
    for name, value in totals:
        if name == "cost_usd" and is_money(value):
            held, noted = value, True
    if more := own(woven, turn):
        if isinstance(held, dict):
            return {
                **held,
                "estimate": round((held["estimate"] or 0) + more, PLACES),
                "recorded": round(held.get("recorded", 0) + more, PLACES),
            }
        return round((held or 0) + more, PLACES)
    if noted or prices is None or not any(turn.tokens):
        return held
    return estimated(held, model(woven, turn), _four(turn), prices)


def estimated(held: Any, model: str | None, counts: Four, prices: Prices) -> dict[str, Any]:
    """A cost with that of these tokens added."""
    made = dict(held) if isinstance(held, dict) else {"estimate": held, "prices": prices.name}
    if held is not None and not isinstance(held, dict):
        made["recorded"] = held
    price = prices.of(model) if model is not None else None
    if price is not None:
        made["estimate"] = round((made["estimate"] or 0) + price.of(counts), PLACES)
        return made
    name = model or NO_MODEL
    before = made.get("not_priced") or {}
    so_far = before.get(name) or dict.fromkeys(KINDS, 0)
    made["not_priced"] = {**before, name: {kind: so_far[kind] + count for kind, count in zip(KINDS, counts, strict=True)}}
    return made


def whole(woven: Woven) -> dict[str, Any]:
    """What all branches and subagents took together, what they share counted once: `recorded` dollars or None, and `spent`, the
    tokens of each model whose cost nobody recorded."""
    totals, until = _totals(woven)
    recorded = sum(totals) if totals else None
    spent: dict[str, Four] = {}
    seen: set[tuple[int, str]] = set()
    for turn in woven.turns.values():
        record = woven.records[turn.records[0]]
        if turn.id in woven.ours or turn.copy_of is not None:
            continue
        key = (0, record.key) if record.key else (1, turn.id)
        if key in seen:
            continue
        seen.add(key)
        if cost := own(woven, turn):
            recorded = (recorded or 0.0) + cost
        elif any(turn.tokens) and not _is_covered(woven, turn, until):
            name = model(woven, turn) or NO_MODEL
            before = spent.get(name, (0, 0, 0, 0))
            mine = _four(turn)
            spent[name] = (before[0] + mine[0], before[1] + mine[1], before[2] + mine[2], before[3] + mine[3])
    return {"recorded": round(recorded, PLACES) if recorded is not None else None, "spent": spent}


def told(whole: dict[str, Any], prices: Prices | None) -> Any:
    """What a list says of it: as the channel at a turn, over all branches."""
    found = whole["recorded"]
    if prices is not None:
        for name, counts in whole["spent"].items():
            fresh, output, read, made = counts
            found = estimated(found, name if name != NO_MODEL else None, (fresh, output, read, made), prices)
    return found


def _totals(woven: Woven) -> tuple[list[float], dict[int, int]]:
    """By how much each running total grew, and for each file the line of its last one.

    A program that goes on in a new file, as a fork does, begins with the total of where it came from.
    """
    grown: list[float] = []
    until: dict[int, int] = {}
    noted: dict[str, float] = {}
    for at, file in enumerate(woven.files):
        last: float | None = None
        for note in file.notes if not file.ours else ():
            if note.what != "cost-state" or not is_money(note.value):
                continue
            turn = _turn_of(woven, note)
            before = last if last is not None else _before(woven, turn, noted)
            grown.append(note.value - before if note.value >= before else note.value)
            last = float(note.value)
            until[at] = max(until.get(at, 0), note.record.line)
            if turn is not None:
                noted[turn.id] = last
    return grown, until


def _turn_of(woven: Woven, note: Note) -> Turn | None:
    place = woven.place.get(note.record.parent or "")
    return woven.turns.get(woven.turn_of[place]) if place is not None else None


def _before(woven: Woven, turn: Turn | None, noted: dict[str, float]) -> float:
    """The last total on the way to a turn."""
    return next((noted[one.id] for one in _upward(woven, turn) if one.id in noted), 0.0)


def _upward(woven: Woven, turn: Turn | None) -> Iterator[Turn]:
    seen = 0
    while turn is not None and seen <= len(woven.turns):
        yield turn
        turn, seen = (woven.turns.get(turn.parent or "") if not turn.lost else None), seen + 1


def _is_covered(woven: Woven, turn: Turn, until: dict[int, int]) -> bool:
    """Whether a running total was written after it: of a subagent, after the call that started it."""
    seen = 0
    while turn.lane and seen <= len(woven.lanes):
        lane = woven.lanes.get(turn.lane)
        if lane is None or lane.turn is None or lane.turn not in woven.turns:
            return bool(until)
        turn, seen = woven.turns[lane.turn], seen + 1
    record = woven.records[turn.records[0]]
    return record.line < until.get(record.file, 0)


def _four(turn: Turn) -> Four:
    fresh, output, read, made = turn.tokens
    return fresh, output, read, made
