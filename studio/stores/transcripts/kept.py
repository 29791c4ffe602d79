"""The index of a large file, kept in the data folder: an unchanged file is not read again. A session of Claude Code that grew is
read from its old end on, a rollout as a whole: what it counts and rolls back may reach far up.

It is taken only where the file is the same one, and its bytes at the places that were looked at (the first, the last, and some
between) are those that were indexed. Records stand in columns; strings that come again are one object, as in a fresh index.
"""

from __future__ import annotations

import hashlib
import os
from array import array
from collections.abc import Iterator, Sequence
from sys import intern
from typing import Any, get_args

import msgspec
from msgspec import Struct

from studio.model import Problem
from studio.stores.transcripts import keeping
from studio.stores.transcripts.claude import Claude, Reading
from studio.stores.transcripts.record import Indexed, Kind, Note, Record, Tokens
from studio.stores.transcripts.source import Source

LARGE = 8 << 20
"""Bytes of a file whose index is worth keeping."""
SHARE = 8
"""A file that grew by this part is kept anew."""
PART, PLACES = 4096, 64
KINDS: tuple[Kind, ...] = get_args(Kind)
_KIND_OF = {kind: at for at, kind in enumerate(KINDS)}
NONE, TEXT = -1, -2
NO_TIME = -(2**63)
SUFFIX = "index"
FORMATS = frozenset((Claude.format, "codex", "codex-old"))
TUPLES = frozenset(("base", "tokens"))
"""Facts that are tuples."""


class _Columns(Struct, array_like=True):
    """Records, one place of each column for each."""

    ids: list[str]
    above: bytes
    """The place of the parent, NONE, or TEXT: it stands in `parents`."""
    parents: dict[int, str]
    kinds: bytes
    lines: bytes
    offsets: bytes
    lengths: bytes
    at: bytes
    key_of: bytes
    keys: list[str]
    lane_of: bytes
    lanes: list[str]
    model_of: bytes
    models: list[str | None]
    tokens_of: bytes
    tokens: list[Tokens | None]
    said: dict[int, int]
    calls: dict[int, tuple[tuple[str, str], ...]]
    results: dict[int, tuple[tuple[str, bool], ...]]
    more: dict[int, dict[str, Any]]
    shown: bytes


class _NoteRow(Struct, array_like=True):
    line: int
    offset: int
    length: int
    parent: str | None
    above: int
    at: int | None
    what: str
    value: Any
    is_tuple: bool


class _Kept(Struct, array_like=True):
    path: str
    format: str
    agent: str | None
    stat: tuple[int, int, int]
    changed: int
    """When its inode changed last: a time that no program sets."""
    complete: int
    lines: int
    sample: bytes
    session: str
    total: int
    repeats: int
    unknown: dict[str, int]
    facts: dict[str, Any]
    problems: list[tuple[str, int, str]]
    told: list[tuple[str, str, str]]
    crlf: bool
    sessions: dict[str, int]
    last: str | None
    context: tuple[str | None, str | None, str | None]
    counted: tuple[Tokens | None, tuple[Tokens, Tokens] | None]
    """Of a rollout: its running total, and that before and after its first answer."""
    notes: list[_NoteRow]
    columns: _Columns


_decoder = msgspec.msgpack.Decoder(_Kept)


def load(path: str, kind: str, agent: str | None) -> tuple[Indexed, bool] | None:
    """(the index, whether it is of the file as it is now: else the file grew and is to be read on).

    None where the file must be read whole.
    """
    if kind not in FORMATS:
        return None
    source = Source(path)
    now = source.token()
    if now is None or now[0] < LARGE:
        return None
    data = keeping.read(keeping.path_for(path, SUFFIX))
    if data is None:
        return None
    try:
        held = _decoder.decode(data)
        del data
        if held.path != os.path.realpath(path) or held.format != kind or held.agent != agent:
            return None
        if now[2] != held.stat[2] or now[0] < held.complete or sample(path, held.complete) != held.sample:
            return None
        unchanged = now == held.stat and held.complete == now[0] and _changed(path) == held.changed
        if not unchanged and (now[0] == held.complete or kind != Claude.format):
            return None  # written to, and no longer than it was, or nothing that is read on
        return _indexed(held, source, now if unchanged else held.stat), unchanged
    except (msgspec.DecodeError, ValueError, IndexError, TypeError, OverflowError):
        return None


def save(indexed: Indexed) -> None:
    """Keep the index of a large file that ends in a whole line."""
    source = indexed.source
    if indexed.format not in FORMATS or indexed.state is None or source.stat is None or not source.is_plain:
        return
    if source.stat[0] < LARGE or source.complete != source.stat[0]:
        return
    changed = _changed(source.path)
    rollout = indexed.state if isinstance(indexed.state, dict) else {}
    state = indexed.state if isinstance(indexed.state, Reading) else Reading()
    kept = _Kept(
        path=os.path.realpath(source.path),
        format=indexed.format,
        agent=indexed.agent,
        stat=source.stat,
        changed=changed,
        complete=source.complete,
        lines=source.lines,
        sample=sample(source.path, source.complete),
        session=indexed.session,
        total=indexed.total,
        repeats=indexed.repeats,
        unknown=indexed.unknown,
        facts=indexed.facts,
        problems=indexed.problems,
        told=[(one.kind, one.where, one.message) for one in source.problems],
        crlf=source.noted_crlf,
        sessions=state.sessions,
        last=state.last,
        context=(state.cwd, state.git_branch, state.permission_mode),
        counted=(rollout.get("total"), rollout.get("first")),
        notes=[],
        columns=_columns(indexed.records),
    )
    place = {record.id: at for at, record in enumerate(indexed.records)}
    for note in indexed.notes:
        record = note.record
        above = place.get(record.parent, TEXT) if record.parent is not None else NONE
        parent = record.parent if above == TEXT else None
        is_tuple = isinstance(note.value, tuple)
        kept.notes.append(
            _NoteRow(record.line, record.offset, record.length, parent, above, record.at, note.what, note.value, is_tuple)
        )
    del place
    try:
        data = msgspec.msgpack.encode(kept)
    except (ValueError, TypeError, OverflowError):
        return  # a text that is no Unicode, say
    if source.token() == source.stat:
        keeping.write(keeping.path_for(source.path, SUFFIX), data)


def sample(path: str, end: int) -> bytes:
    """A hash of the first and last bytes up to an end, and of some between."""
    found = hashlib.blake2b(digest_size=16)
    try:
        with open(path, "rb", buffering=0) as file:
            for at in sorted({0, max(0, end - PART), *range(0, end, max(PART, end // PLACES))}):
                file.seek(at)
                found.update(file.read(min(PART, end - at)))
    except OSError:
        return b""
    return found.digest()


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_ctime_ns
    except OSError:
        return 0


def _columns(records: Sequence[Record]) -> _Columns:
    place: dict[str, int] = {}
    above = array("q")
    parents: dict[int, str] = {}
    for at, record in enumerate(records):
        parent = record.parent
        found = NONE if parent is None else place.get(parent, TEXT)
        if found == TEXT and parent is not None:
            parents[at] = parent
        above.append(found)
        place[record.id] = at
    del place
    key_of, keys = _numbered(record.key for record in records)
    lane_of, lanes = _numbered(record.lane for record in records)
    model_of, models = _numbered(record.model for record in records)
    tokens_of, tokens = _numbered(record.tokens for record in records)
    return _Columns(
        ids=[record.id for record in records],
        above=above.tobytes(),
        parents=parents,
        kinds=bytes([_KIND_OF[record.kind] for record in records]),
        lines=array("q", [record.line for record in records]).tobytes(),
        offsets=array("q", [record.offset for record in records]).tobytes(),
        lengths=array("q", [record.length for record in records]).tobytes(),
        at=array("q", [NO_TIME if record.at is None else record.at for record in records]).tobytes(),
        key_of=key_of, keys=keys, lane_of=lane_of, lanes=lanes, model_of=model_of, models=models,
        tokens_of=tokens_of, tokens=tokens,
        said={at: record.said for at, record in enumerate(records) if record.said},
        calls={at: record.calls for at, record in enumerate(records) if record.calls},
        results={at: record.results for at, record in enumerate(records) if record.results},
        more={at: record.more for at, record in enumerate(records) if record.more is not None},
        shown=array("h", [min(record.shown, 30_000) for record in records]).tobytes(),
    )  # fmt: skip


def _numbered(values: Iterator[Any]) -> tuple[bytes, list[Any]]:
    """(which of the different values each is, those)"""
    known: dict[Any, int] = {}
    numbers = array("q", [known.setdefault(value, len(known)) for value in values])
    return numbers.tobytes(), list(known)


def _numbers(data: bytes, kind: str = "q") -> array[int]:
    found: array[int] = array(kind)
    found.frombytes(data)
    return found


def _indexed(held: _Kept, source: Source, stat: tuple[int, int, int]) -> Indexed:
    source.go_on_from(stat, held.complete, held.lines, held.crlf)
    source.problems = [Problem(*one) for one in held.told]
    one = Indexed(held.format, source, held.session, agent=held.agent)
    one.problems, one.unknown, one.total, one.repeats = held.problems, held.unknown, held.total, held.repeats
    one.facts = {name: tuple(value) if name in TUPLES and value is not None else value for name, value in held.facts.items()}
    cwd, git_branch, permission_mode = held.context
    if held.format == Claude.format:
        one.state = Reading(held.sessions, held.last, cwd, git_branch, permission_mode)
    else:
        one.state = {"total": held.counted[0], "first": held.counted[1]}
    one.records = _records(held.columns)
    ids = held.columns.ids
    for row in held.notes:
        parent = row.parent if row.above == TEXT else None if row.above == NONE else ids[row.above]
        record = Record(0, row.line, row.offset, row.length, "note", "", parent, row.at)
        one.notes.append(Note(record, intern(row.what), tuple(row.value) if row.is_tuple else row.value))
    return one


def _records(held: _Columns) -> list[Record]:
    ids, texts = held.ids, held.parents
    keys, lanes, models, tokens = held.keys, [intern(one) for one in held.lanes], held.models, held.tokens
    rows = zip(
        _numbers(held.lines), _numbers(held.offsets), _numbers(held.lengths), held.kinds, ids, _numbers(held.above),
        _numbers(held.at), _numbers(held.key_of), _numbers(held.lane_of), _numbers(held.tokens_of), _numbers(held.model_of),
        _numbers(held.shown, "h"), strict=True,
    )  # fmt: skip
    found = [
        Record(
            0, line, offset, length, KINDS[kind], ident, None if above < 0 else ids[above], None if at == NO_TIME else at,
            keys[key], lanes[lane], (), (), tokens[used], models[model], 0, None, shown,
        )
        for line, offset, length, kind, ident, above, at, key, lane, used, model, shown in rows
    ]  # fmt: skip
    for place, parent in texts.items():
        found[place].parent = parent
    for place, said in held.said.items():
        found[place].said = said
    for place, more in held.more.items():
        found[place].more = more
    names: dict[str, str] = {}
    for place, calls in held.calls.items():
        found[place].calls = tuple([(names.setdefault(ident, ident), intern(name)) for ident, name in calls])
    for place, results in held.results.items():
        found[place].results = tuple([(names.pop(ident, ident), failed) for ident, failed in results])
    return found
