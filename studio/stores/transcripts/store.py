"""Agent transcripts as a `Store`: a file, a project folder or a program's home, each transcript as a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import replace

from studio.errors import OpenError, PatchError
from studio.history.gathered import Gathered
from studio.history.packed import BATCH
from studio.model import Address, Checkpoint, Problem, RawCheckpoint, Status, WriteRow
from studio.prices import Prices
from studio.stores.base import Capability, ThreadKeys
from studio.stores.outline import Summary
from studio.stores.transcripts import cards, costs, parts
from studio.stores.transcripts.adopted import Fork, of_sources
from studio.stores.transcripts.cards import Card, Look
from studio.stores.transcripts.finding import Found, Group, beside, groups, look_at, transcripts_in
from studio.stores.transcripts.parts import Part
from studio.stores.transcripts.record import iso
from studio.stores.transcripts.transcript import COST, Transcript, stat_of, turn_source
from studio.stores.transcripts.turns import Turn

T = TypeVar("T")

NO_TRANSCRIPT = "no-transcript"


class TranscriptStore:
    """Headers are turns; their rows are their records as stored. States are told by `studio.explain.transcripts`.

    Raises OpenError for a location without any transcript.
    """

    kind = "transcript"
    layout = "transcript"
    capabilities = frozenset({Capability.NAMESPACES, Capability.LIVE})
    words = ""
    no_forks = PatchError(
        "This is an agent's transcript: no graph of yours runs in it.",
        "`studio fork` makes a new session of a turn, which its program goes on from.",
        "transcript",
    )

    def __init__(self, location: str) -> None:
        self.location = os.path.abspath(location)
        self._lock = threading.RLock()
        self._closed = False
        self._known: dict[str, Transcript] = {}
        self._looked: object = None
        self._found: dict[str, tuple[object, Found | None]] = {}
        self._lost: list[Problem] = []
        self._aside: list[Problem] = []
        self._cards = cards.load(self.location)
        self._told: dict[str, Card] = {}
        """The cards that hold, as of the last list."""
        self._passing: set[str] = set()
        """Transcripts that were read for a list alone."""
        self._summed: dict[str, Summary] = {}
        self._looks: dict[str, Look] = {}
        self._has_new_cards = False
        self._parts: list[Part] = []
        """What further processes read for a list that is under way."""
        self._only: frozenset[str] | None = None
        self._forks: list[Fork] = []
        self._prices: Prices | None = None
        self._refresh()
        if not self._known:
            raise OpenError(f"There is no transcript in {self.location}.", "Name a .jsonl file of a session.", NO_TRANSCRIPT)

    # ---- finding

    def _paths(self) -> list[str]:
        if os.path.isdir(self.location):
            return list(transcripts_in(self.location))
        return [self.location, *beside(self.location)]

    def _find(self) -> None:
        """Look which files there are, and which of them belong together."""
        paths = self._paths()
        found: list[Found] = []
        self._aside = []
        for path in paths:
            stat = stat_of(path)
            held = self._found.get(path)
            if held is None or held[0] != stat and (held[1] is None or held[1].format in ("raw", "empty") or stat is None):
                held = self._found[path] = (stat, look_at(path))
            one = held[1]
            if one is None and path.endswith(".jsonl"):
                self._aside.append(Problem("left-aside", os.path.basename(path), "no transcript: left aside"))
            if one is not None:
                one.modified = stat[1] / 1e9 if stat is not None else 0.0
                found.append(one)
        if not os.path.isdir(self.location):
            found = self._of_file(found)
        found += self._forks_of(found)
        known: dict[str, Transcript] = {}
        by_first = {self._first(one.group): one for one in self._known.values()}
        for group in groups(found):
            old = by_first.get(self._first(group))
            if old is not None:
                group.thread_id = old.thread_id
                old.group = group
                known[old.thread_id] = old
            else:
                known[group.thread_id] = Transcript(group)
                known[group.thread_id].prices = self._prices
        self._known = known

    def set_prices(self, prices: Prices) -> None:
        """Estimate what answers cost where nobody recorded it; before anything is read."""
        with self._lock:
            self._prices = prices
            for one in self._known.values():
                one.prices = prices
                one.let_go()

    def take_branch(self, address: Address) -> bool:
        """Take the branch through a turn for the active one of its transcript, instead of what the rule chose."""
        one = self.transcript(address.thread_id)
        return one is not None and one.choose(address.checkpoint_id)

    def set_forks(self, forks: Sequence[Fork]) -> None:
        """Read these forks of ours along with the sessions that they were made from."""
        with self._lock:
            if list(forks) != self._forks:
                self._forks, self._looked = list(forks), None
                self._find()

    def _forks_of(self, found: list[Found]) -> list[Found]:
        if not self._forks:
            return []
        sources = {os.path.realpath(one.path): one.path for one in found if one.agent is None}
        by_path = {one.path: one for one in found}
        sessions = frozenset(one.session for one in found if one.session is not None)
        made = []
        for fork, source in of_sources(self._forks, sources, sessions):
            one = look_at(fork.path)
            if one is None:
                continue
            mark = frozenset((f"fork of {source}",))
            origin = by_path[source]
            origin.keys |= mark
            one.format, one.keys, one.base, one.fork = origin.format, mark, (), fork
            made.append(one)
        return made

    def _of_file(self, found: list[Found]) -> list[Found]:
        """The named file with its subagents alone: others may lie beside it."""
        main = next((one for one in found if one.path == self.location), None)
        if main is None:
            return []
        if main.agent is not None:
            return [replace(main, agent=None)]  # a subagent's file that is named is looked at alone
        inner = os.path.join(os.path.dirname(main.path), os.path.basename(main.path).removesuffix(".gz").removesuffix(".jsonl"))
        return [
            main,
            *(
                one
                for one in found
                if one is not main and (one.path.startswith(inner + os.sep) or (main.session and one.session == main.session))
            ),
        ]

    @staticmethod
    def _first(group: Group) -> str:
        return (group.files or group.agents)[0].path

    def _refresh(self) -> None:
        if self._closed:
            raise OpenError(f"{self.location} was closed.")
        with self._lock:
            paths = self._paths()
            looked = tuple((path, stat_of(path) is not None) for path in paths)
            if looked != self._looked:
                self._looked = looked
                self._find()

    def transcript(self, thread_id: str) -> Transcript | None:
        """One thread, as it was found last."""
        if self._closed:
            raise OpenError(f"{self.location} was closed.")
        with self._lock:
            return self._known.get(thread_id)

    def _transcripts(self) -> list[Transcript]:
        with self._lock:
            self._refresh()
            return list(self._known.values())

    # ---- what every store has

    def token(self) -> object:
        with self._lock:
            paths = self._paths()
            chosen = tuple(one.chosen for one in self._known.values() if one.chosen is not None)
        own = stat_of(self.location)
        if own is None:
            return (None,)
        forks = [fork.path for fork in self._forks]
        where = own if not os.path.isdir(self.location) else own[2]
        return (where, chosen, *((path, stat_of(path)) for path in (*paths, *forks)))

    def problems(self) -> list[Problem]:
        """Of the transcripts that were looked at."""
        with self._lock:
            known = list(self._known.values())
        return [
            *self._lost,
            *self._aside,
            *(problem for one in known for problem in self._problems_of(one)),
        ]

    def _problems_of(self, one: Transcript) -> list[Problem]:
        if one.is_read:
            return one.woven.problems
        card = self._told.get(one.thread_id)
        return [Problem(*problem) for problem in card.problems] if card is not None else []

    def close(self) -> None:
        for part in self._parts:
            part.stop()
        if self._has_new_cards:
            self._has_new_cards = False
            cards.save(self.location, list(self._cards.values()))
        self._closed = True

    # ---- what is known of a transcript that was not read

    def _card(self, one: Transcript) -> Card | None:
        """Its card, where that holds for its files as they are."""
        part = next((part for part in self._parts if one.thread_id in part.threads), None)
        if part is not None:
            self._parts.remove(part)
            made = part.cards()
            self._cards |= {card.first: card for card in made}
            self._has_new_cards = self._has_new_cards or bool(made)
        card = self._cards.get(self._first(one.group)) if not one.is_read else None
        if card is None or card.thread_id != one.thread_id or one.chosen is not None:
            return None
        return card if cards.files_now([*one.paths(), *one.beside()]) == card.files else None

    def _make_card(self, one: Transcript, facts: dict[str, Any]) -> None:
        if one.chosen is not None:
            return  # what a person chose for this call is nothing to keep
        summary = self._summed.pop(one.thread_id, None)
        files = cards.files_now([*one.paths(), *one.beside()])
        if summary is None or files is None or not one.as_read([then[:3] for _, then in files[: len(one.paths())]]):
            return
        woven = one.woven
        problems = [(problem.kind, problem.where, problem.message) for problem in woven.problems]
        look = self._looks.pop(one.thread_id, None)
        card = Card(files, one.thread_id, one.spaces, len(woven.turns), woven.head, summary, look, facts, problems)
        self._cards[card.first] = self._told[one.thread_id] = card
        self._has_new_cards = True
        if one.thread_id in self._passing and len(self._known) >= cards.MANY:
            self._passing.discard(one.thread_id)
            one.let_go()

    def look(self, address: Address) -> Look | None:
        """What its card says of the head of a transcript that was not read."""
        one, card = self.transcript(address.thread_id), self._told.get(address.thread_id)
        if one is None or one.is_read or card is None or card.look is None or card.look.id != address.checkpoint_id:
            return None
        return card.look

    def note_look(self, address: Address, header: Checkpoint, status: Status | None, texts: Sequence[str]) -> None:
        """Something was said of a head: its card will say so, too."""
        self._looks[address.thread_id] = Look(
            address.checkpoint_id, header.parent_checkpoint_id, header.step, header.source, header.created_at, header.size_bytes,
            status, [text[: cards.TEXT] for text in texts],
        )  # fmt: skip

    def share(self, work: Callable[[], object]) -> None:
        """Let further processes begin with the later parts of a list that has much to read. `work` goes through a whole list; in
        such a process `threads` gives its part alone."""
        if self._parts:
            return

        def read(wanted: frozenset[str]) -> list[Card]:
            self._only, self._cards = wanted, {}
            work()
            return list(self._cards.values())

        unread = [one for one in self._transcripts() if not one.is_read and self._card(one) is None]
        sizes = [sum(then[0] for _, then in cards.files_now(one.paths()) or ()) for one in unread]
        for stretch in parts.divided(sizes, parts.number(sum(sizes)))[1:]:
            part = parts.begin([unread[at].thread_id for at in stretch], read) if stretch else None
            if part is not None:
                self._parts.append(part)

    def threads(self) -> Iterator[ThreadKeys]:
        """Newest first."""
        for one in self._transcripts():
            if self._only is not None and one.thread_id not in self._only:
                continue
            card = self._card(one)
            if card is not None:
                self._told[one.thread_id], one.spaces = card, card.spaces
                yield ThreadKeys(one.thread_id, card.spaces, card.turns, card.head)
                continue
            self._told.pop(one.thread_id, None)
            if not one.is_read:
                self._passing.add(one.thread_id)
            try:
                woven = one.look().woven
            except OpenError as error:
                self._lost.append(Problem(error.slug, self._first(one.group), error.message))
                continue
            if not woven.turns and os.path.isdir(self.location) and one.is_empty():
                continue  # a start that led to nothing: told as a problem
            yield ThreadKeys(one.thread_id, one.spaces, len(woven.turns), woven.head)

    def newest_thread(self) -> str | None:
        """The one that was written last, without reading the others."""
        for one in self._transcripts():
            if one.look().woven.turns:
                return one.thread_id
        return None

    def namespaces(self, thread_id: str) -> tuple[str, ...]:
        one = self.transcript(thread_id)
        return one.spaces if one is not None else ()

    def head(self, thread_id: str) -> str | None:
        """The turn that the program would go on from."""
        one = self.transcript(thread_id)
        return one.woven.head if one is not None else None

    def summaries(self, batch: Sequence[ThreadKeys]) -> dict[str, Summary]:
        found = {}
        for keys in batch:
            one = self.transcript(keys.thread_id)
            if one is None:
                continue
            if not one.is_read and keys.thread_id in self._told:
                found[keys.thread_id] = self._told[keys.thread_id].summary
                continue
            turns = one.woven.turns.values()
            mains = [turn for turn in turns if not turn.ns and turn.id not in one.woven.ours]
            times = [turn.began for turn in turns if turn.began is not None]
            lasts = [turn.ended for turn in turns if turn.ended is not None]
            roots = tuple(turn.id for turn in mains if turn.lost or turn.parent is None)
            heads = tuple(one.woven.ends())
            size = sum(turn.size for turn in turns)
            found[keys.thread_id] = self._summed[keys.thread_id] = Summary(
                roots, heads, one.woven.head, size, iso(min(times, default=None)), iso(max(lasts, default=None))
            )
        return found

    def thread_facts(self, thread_id: str) -> dict[str, Any]:
        """Title, model, tokens, …: what a list says beside what every thread has."""
        one, card = self.transcript(thread_id), self._told.get(thread_id)
        if one is None:
            return {}
        if not one.is_read and card is not None and (COST in card.facts or self._prices is None):
            return self._priced(card.facts)
        facts = one.facts()
        self._make_card(one, facts)
        return self._priced(facts)

    def thread_title(self, thread_id: str) -> str:
        one = self.transcript(thread_id)
        return (one.title if one is not None else None) or ""

    def _priced(self, facts: dict[str, Any]) -> dict[str, Any]:
        """With the cost as it is told; nothing where it is not known."""
        held = facts.get(COST)
        cost = costs.told(held, self._prices) if held is not None else None
        return {name: value if name != COST else cost for name, value in facts.items() if name != COST or cost is not None}

    def named(self, thread_id: str, ref: str) -> Address | None:
        """The turn of a record, an answer or a call."""
        one = self.transcript(thread_id)
        ident = one.named(ref) if one is not None else None
        return Address(thread_id, one.woven.turns[ident].ns, ident) if one is not None and ident is not None else None

    # ---- rows

    def header(self, one: Transcript, turn: Turn) -> Checkpoint:
        address = Address(one.thread_id, turn.ns, turn.id)
        if turn.id in one.woven.ours:
            source = turn_source(turn) if turn.parent in one.woven.ours else "fork"
            made = one.woven.files[one.woven.records[turn.records[0]].file].facts.get("created_at") or turn.at
            return Checkpoint(address, turn.parent, one.depth(turn.id), source, made, turn.size, "scratch")
        return Checkpoint(address, turn.parent, one.depth(turn.id), turn_source(turn), turn.at, turn.size)

    def checkpoints(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, Checkpoint]]:
        self._refresh()  # a subagent's file may have come
        one = self.transcript(thread_id)
        if one is None:
            return []
        one.look()
        found = [(one.cursor(turn.id), turn) for turn in one.woven.turns.values()]
        found = sorted((pair for pair in found if pair[0] > after), key=lambda pair: pair[0])
        return [(cursor, self.header(one, turn)) for cursor, turn in found]

    def gather(self, thread_id: str) -> Gathered | None:
        """`checkpoints` of a whole thread in columns."""
        self._refresh()
        one = self.transcript(thread_id)
        if one is None:
            return None
        one.look()
        found = Gathered(thread_id)
        turns = iter(sorted(one.woven.turns.values(), key=lambda turn: one.cursor(turn.id)))
        while batch := list(islice(turns, BATCH)):
            if not found.take([(one.cursor(turn.id), self.header(one, turn)) for turn in batch]):
                return None
        return found

    def census(self, thread_id: str, upto: int, writes_upto: int) -> tuple[int, object] | None:
        one = self.transcript(thread_id)
        if one is None:
            return 0, None
        one.look()
        woven, links = one.woven, []
        for turn in woven.turns.values():
            if one.cursor(turn.id) <= upto:
                first = woven.records[turn.records[0]]  # what is only added to keeps its place
                links.append((turn.ns, turn.id, turn.parent, first.file, first.offset, first.length))
        return len(links), hash(frozenset(links))

    def task_keys(self, thread_id: str) -> Sequence[tuple[str, str, str]]:
        """The calls that started subagents."""
        one = self.transcript(thread_id)
        spaces = one.spaces if one is not None else ()
        return [caller for ns in spaces if ns and one is not None and (caller := one.caller(ns)) is not None]

    def metadata(self, thread_id: str, ns: str, take: Callable[[bytes], T]) -> Mapping[str, T]:
        one = self.transcript(thread_id)
        if one is None:
            return {}
        return {turn.id: take(one.metadata(turn)) for turn in one.woven.turns.values() if turn.ns == ns}

    def turn(self, address: Address) -> tuple[Transcript, Turn] | None:
        one = self.transcript(address.thread_id)
        turn = one.woven.turns.get(address.checkpoint_id) if one is not None else None
        return (one, turn) if one is not None and turn is not None and turn.ns == address.checkpoint_ns else None

    def raw(self, addresses: Iterable[Address]) -> dict[Address, RawCheckpoint]:
        found = {}
        for address in addresses:
            at = self.turn(address)
            if at is not None:
                found[address] = self._row(*at)
        return found

    def _row(self, one: Transcript, turn: Turn) -> RawCheckpoint:
        return RawCheckpoint(self.header(one, turn), "json", one.raw(turn), "json", one.metadata(turn))

    def scan(self, thread_id: str | None = None) -> Iterator[RawCheckpoint]:
        ids = [thread_id] if thread_id is not None else [one.thread_id for one in self._transcripts()]
        for ident in ids:
            one = self.transcript(ident)
            if one is not None:
                for turn in sorted(one.woven.turns.values(), key=lambda turn: one.cursor(turn.id)):
                    yield self._row(one, turn)

    # ---- a transcript has no rows of writes: its records are told apart by who wrote them

    def write_headers(self, thread_id: str, after: int = 0) -> Sequence[tuple[int, WriteRow]]:
        return []

    def writes_end(self, thread_id: str) -> int:
        return 0

    def write_headers_under(self, addresses: Iterable[Address]) -> Mapping[Address, Sequence[WriteRow]]:
        return {}

    def writes(self, addresses: Iterable[Address]) -> dict[Address, tuple[WriteRow, ...]]:
        return {}

    def scan_writes(self, thread_id: str, channels: Sequence[str]) -> Iterator[WriteRow]:
        return iter(())

    def write_bytes(self, thread_id: str) -> int:
        return 0
