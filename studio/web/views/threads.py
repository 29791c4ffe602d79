"""The thread list: what each conversation was about, how it ended, and a filter over all of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from studio import wording
from studio.codec import jsontext
from studio.model import Hit, Thread
from studio.render import gate, labels, masking, preview
from studio.render.threadnames import thread_name, titled
from studio.web.links import Place

MOST_THREADS = 300
"""Drawn at once; the filter finds the rest."""
MOST_HITS = 100


@dataclass(frozen=True, slots=True)
class ThreadRow:
    href: str
    title: str
    first: str
    last: str
    status: str
    status_kind: str
    facts: str
    when: str
    iso: str
    metadata: tuple[tuple[str, str], ...]
    selected: bool


@dataclass(frozen=True, slots=True)
class ThreadList:
    file: str
    rows: tuple[ThreadRow, ...]
    total: int
    matched: int
    query: str
    href: str
    """Where the filter asks."""
    empty: str


@dataclass(frozen=True, slots=True)
class HitRow:
    href: str
    number: str
    label: str
    """What its row is called."""
    thread: str
    path: str
    before: str
    match: str
    after: str


@dataclass(frozen=True, slots=True)
class Search:
    query: str
    here: tuple[HitRow, ...]
    elsewhere: tuple[HitRow, ...]
    thread: str
    note: str
    passed: str = ""
    """What could not be searched."""


STATUS_KINDS = {
    "done": "ok",
    "ready": "idle",
    "paused": "wait",
    "failed": "fail",
    "unknown": "idle",
    "ran": "ok",
    "answered": "wait",
}


def thread_list(place: Place, file: str, threads: Iterable[Thread], query: str) -> ThreadList:
    """Newest activity first; `query` keeps threads in which every word occurs somewhere in what `ls` prints."""
    found = sorted(threads, key=lambda thread: thread.last_at or "", reverse=True)
    words = query.casefold().split()
    kept = [thread for thread in found if all(word in _haystack(thread) for word in words)] if words else found
    empty = ""
    if not found:
        empty = "This file holds no thread yet. One that is written while you look appears here."
    elif not kept:
        empty = f"No match for “{gate.line(query, 60)}”."
    return ThreadList(
        file=gate.line(file, 80),
        rows=tuple(_row(place, thread) for thread in kept[:MOST_THREADS]),
        total=len(found),
        matched=len(kept),
        query=query,
        href=Place(place.file).url("threads"),
        empty=empty,
    )


def _haystack(thread: Thread) -> str:
    parts = (
        thread.thread_id,
        thread.first_text or "",
        thread.last_text or "",
        thread.status,
        jsontext.dumps(dict(thread.metadata)),
        thread.title,
        thread.model,
    )
    return " ".join(parts).casefold()


def _row(place: Place, thread: Thread) -> ThreadRow:
    facts = [labels.plural(thread.checkpoints, "checkpoint")]
    if len(thread.heads) > 1:
        rule = f" (active: {gate.line(thread.active, 80)})" if thread.active else ""
        facts.append(labels.plural(len(thread.heads), "branch") + rule)
    if len(thread.namespaces) > 1:
        facts.append(labels.plural(len(thread.namespaces) - 1, "subgraph"))
    if thread.scratch_checkpoints:
        facts.append(f"{thread.scratch_checkpoints:,} in scratch")
    facts.append(labels.size(thread.size_bytes))
    if "cost_usd" in thread.facts:
        facts.append(wording.cost_words(thread.facts["cost_usd"]))
    title, model = masking.text(thread.title), masking.text(thread.model)
    facts += [gate.line(one, 80) for one in (model, thread.thread_id if title else "") if one]
    return ThreadRow(
        href=Place(place.file, thread.thread_id, tab="conversation" if thread.is_session else "changes").url(),
        title=titled(thread.title, thread.thread_id),
        first=gate.line(masking.text(thread.first_text or ""), 220) or gate.line(labels.sentence(thread.closed), 220),
        last=gate.line(masking.text(thread.last_text or ""), 220) if thread.last_text != thread.first_text else "",
        status=labels.status_word(thread.status),
        status_kind=STATUS_KINDS[thread.status],
        facts=" · ".join(facts),
        when=labels.when(thread.last_at) + (" UTC" if thread.last_at else ""),
        iso=thread.last_at or "",
        metadata=tuple(
            (gate.line(str(key), 40), preview.summary(value, 60, key=str(key)))
            for key, value in list(thread.metadata.items())[:6]
        ),
        selected=thread.thread_id == place.thread,
    )


def search_view(place: Place, query: str, here: Iterable[Hit], elsewhere: Iterable[Hit]) -> Search:
    mine = tuple(_hit(place, hit, query) for hit in here)
    others = tuple(_hit(place, hit, query) for hit in elsewhere)
    note = (
        ""
        if mine or others
        else f"No match for “{gate.line(query, 80)}”: it does not occur in any value that is shown."
        if query
        else "Type what a value contains: a name, a number, an order."
    )
    return Search(query, mine, others, thread_name(place.thread or "", 80), note)


def _hit(place: Place, hit: Hit, query: str) -> HitRow:
    text = gate.line(hit.excerpt, 240)
    at = text.casefold().find(query.casefold())
    start, stop = (at, at + len(query)) if at >= 0 else (0, 0)
    return HitRow(
        href=Place(place.file, tab="state").at_address(hit.address, path=hit.path or None).url(),
        number=hit.number or "",
        label=gate.line(hit.label, 60),
        thread=thread_name(hit.address.thread_id, 60),
        path=gate.line(hit.path, 160),
        before=text[:start],
        match=text[start:stop],
        after=text[stop:],
    )
