"""What a check of a superstep against its writes says, in one sentence each; and supersteps that were not stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from studio.model import Change, Comparison, Row, Verdict

RULES = {
    "last": "explained: it is what was written last",
    "append": "explained: what was written was appended to the list",
    "messages": "explained: what was written was merged in by message id",
    "union": "explained: what was written was merged in",
    "sum": "explained: what was written was added up",
    "cleared": "explained: it is kept for one superstep, and nobody wrote it again",
    "renamed": "explained: nobody wrote it; it was stored again, and its type has another module now",
}
EXIT = "normal with durability exit, which keeps the last checkpoint of a run"


def sentence(found: Verdict) -> str:
    """How a channel's value came about, or why that cannot be told."""
    if found.how == "outside":
        return f"changed outside its writes: {found.why}"
    if found.how == "unknown":
        return f"not explained: {found.why}" if found.unruled else f"not checked: {found.why}"
    return RULES[found.how]


def kind(found: Verdict) -> str:
    """`explained`, `outside`, `unruled` (the writes are there, and lead elsewhere by every known rule) or `unknown`."""
    if found.how == "unknown":
        return "unruled" if found.unruled else "unknown"
    return "outside" if found.how == "outside" else "explained"


def mark(found: Verdict) -> str:
    """`✓` explained, `≠` not explained, `·` not told."""
    return {"explained": "✓", "unknown": "·"}.get(kind(found), "≠")


def told_at(changes: Iterable[Change], explained: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """Path -> verdict, once for each channel that its writes do not explain: at the change that has no author, else the first."""
    places: dict[str, str] = {}
    for change in changes:
        found = explained.get(change.channel)
        if found is not None and mark(found) == "≠":
            nobodys = not any(author.node for author in change.authors)
            if change.channel not in places or (nobodys and places[change.channel].startswith("?")):
                places[change.channel] = change.path if nobodys else f"?{change.path}"
    return {path.removeprefix("?"): explained[channel] for channel, path in places.items()}


def gap_between(comparison: Comparison, row: Row) -> str:
    """`gap_note` of the row that is compared; empty where it is compared with something else than its parent."""
    before = comparison.before.checkpoint_id if comparison.before is not None else None
    return gap_note(row) if before in (None, row.checkpoint.parent_checkpoint_id) else ""


def gap_note(row: Row) -> str:
    """`supersteps 3 to 5 were not stored: normal with durability exit, …`; empty where none is missing."""
    if row.missing_steps is None:
        return ""
    first, last = row.missing_steps
    what = f"superstep {first} was" if first == last else f"supersteps {first} to {last} were"
    return f"{what} not stored: {EXIT}"


def gap_short(row: Row) -> str:
    """`steps 3 to 5 not stored`; empty where none is missing."""
    if row.missing_steps is None:
        return ""
    first, last = row.missing_steps
    return f"step {first} not stored" if first == last else f"steps {first} to {last} not stored"
