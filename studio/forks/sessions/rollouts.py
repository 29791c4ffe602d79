"""A rollout that repeats another's lines, read by itself: all its lines are its own there, as its program sees them."""

from __future__ import annotations

from studio.stores.transcripts.finding import Found, Group
from studio.stores.transcripts.record import Indexed
from studio.stores.transcripts.transcript import Transcript
from studio.stores.transcripts.turns import Turn


def alone(one: Transcript, turn: Turn) -> tuple[Transcript, Turn, dict[str, str]] | None:
    """(the turn's file by itself, the turn in it, its ids -> those of `one`). None where the file repeats no other."""
    woven = one.woven
    said = [at for at in turn.records if woven.records[at].kind != "context"] or turn.records
    file = woven.files[woven.records[said[-1]].file]
    if not file.facts.get("forked_from") or file.facts.get("base") is not None or file.ours:
        return None
    single = _single(file)
    own = single.look().woven
    line = woven.records[said[-1]].line
    found = next((at for at, record in enumerate(own.records) if record.line == line), None)
    if found is None:
        return None
    names = _names(one, file, single, set())
    return single, own.turns[own.turn_of[found]], names


def _single(file: Indexed) -> Transcript:
    return Transcript(Group(file.session, [Found(file.source.path, file.format, session=file.session)]))


def _names(one: Transcript, file: Indexed, single: Transcript, seen: set[str]) -> dict[str, str]:
    woven = one.woven
    records = single.look().woven.files[0].records
    repeated = [record.id for record in records if record.id not in woven.place]
    source = next((other for other in woven.files if other.session == file.facts.get("forked_from")), None)
    if source is None or source.session in seen:
        return {}
    seen.add(source.session)
    above = _single(source)
    theirs = [record.id for record in above.look().woven.files[0].records]
    higher = _names(one, source, above, seen) if source.facts.get("forked_from") else {}
    return {mine: higher.get(its, its) for mine, its in zip(repeated, theirs, strict=False)}
