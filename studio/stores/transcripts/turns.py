"""From records to *turns*: the supersteps of a transcript, as a tree in lanes.

A turn is one answer of the model with all its lines and the results of its calls, or one prompt with what the program put beside
it, or one compaction. Its id is that of its first record, so it is stable while it grows. A lane is the main conversation (the
namespace "") or one subagent, below the call that started it. Nothing here recurses or raises for what a file holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from msgspec import Struct, field

from studio.model import Problem
from studio.stores.transcripts.names import Names
from studio.stores.transcripts.record import NO_TOKENS, Indexed, Note, Record, Tokens, iso

MOST_TOLD = 20
"""Problems of one kind that are told one by one."""
NO_RESULTS: Mapping[str, bool] = MappingProxyType({})
AGENT_TOOLS = Names(("Task", "Agent", "spawn_agent"))


class Turn(Struct):
    id: str
    kind: Literal["input", "loop", "compaction"]
    lane: str
    records: list[int] = field(default_factory=list)
    ns: str = ""
    parent: str | None = None
    """The turn it follows, or the missing record that it names."""
    lost: bool = False
    """Its parent is in no file: an island."""
    has_message: bool = False
    queued: Sequence[Note] = ()
    """Prompts that were typed meanwhile, and stand nowhere else."""
    copy_of: str | None = None
    """The turn of another file that it repeats under fresh ids."""
    tokens: Tokens = NO_TOKENS
    began: int | None = None
    ended: int | None = None
    """The time of its first record, and its latest; microseconds since 1970."""
    size: int = 0
    calls: tuple[tuple[str, str], ...] = ()
    results: Mapping[str, bool] = NO_RESULTS
    """Call -> whether it failed."""
    failed: bool = False
    """The answer is an error of the service."""
    children: Sequence[str] = ()

    @property
    def at(self) -> str | None:
        return iso(self.began)

    @property
    def last_at(self) -> str | None:
        return iso(self.ended)


class Lane(Struct):
    name: str
    ns: str
    call: str | None = None
    turn: str | None = None
    """The turn that made the call."""


class Woven(Struct):
    """A whole transcript: its files as one tree."""

    files: list[Indexed]
    records: list[Record]
    place: dict[str, int]
    turns: dict[str, Turn]
    """In the order of their first records; parents may come later."""
    turn_of: list[str]
    lanes: dict[str, Lane]
    problems: list[Problem]
    head: str | None = None
    why: str = ""
    by_call: dict[str, str] = field(default_factory=dict)
    """Call or answer id -> turn."""
    tokens: Tokens | None = None
    all_tokens: Tokens | None = None
    """Of all files together, what they share counted once, where `tokens` is the program's own total of one branch."""
    copied: int = 0
    repeats: int = 0
    shared: int = 0

    ours: frozenset[str] = frozenset()
    """Turns of forks that the studio wrote."""

    def heads(self) -> list[str]:
        return [turn.id for turn in self.turns.values() if not turn.ns and not turn.children and turn.id not in self.ours]

    def take(self, turn_id: str, why: str) -> bool:
        """Make the branch through a turn the active one, up to the newest turn below it; False for a subagent's turn."""
        turn = self.turns.get(turn_id)
        if turn is None or turn.ns:
            return False
        leaves, todo = [], [turn]
        while todo:
            at = todo.pop()
            mains = [self.turns[one] for one in at.children if one in self.turns and not self.turns[one].ns]
            todo += mains
            if not mains:
                leaves.append(at)
        self.head = max(leaves, key=lambda one: (_or_never(one.ended), one.records[-1])).id
        self.why = why
        return True

    def ends(self) -> list[str]:
        """The heads, and where a rollout ends that another one goes on from: each can be resumed."""
        if not self.files or not self.files[0].format.startswith("codex"):
            return self.heads()
        file_of = {turn.id: self.records[turn.records[0]].file for turn in self.turns.values()}
        mains = [turn for turn in self.turns.values() if not turn.ns]
        return [turn.id for turn in mains if all(file_of[child] != file_of[turn.id] for child in turn.children)]


def weave(files: Sequence[Indexed], call_of: dict[str, str], prompts: Any) -> Woven:
    """One tree over files that belong together, the original first.

    `call_of`: agent -> the call that started it, where something beside the transcript says so. `prompts(record)` gives
    (call id, hash of its prompt) of the calls in a record that may start a subagent.
    """
    return _Weaver(list(files), call_of, prompts).woven()


class _Weaver:
    def __init__(self, files: list[Indexed], call_of: dict[str, str], prompts: Any) -> None:
        self.files, self.call_of, self.prompts = files, dict(call_of), prompts
        self.records: list[Record] = []
        self.place: dict[str, int] = {}
        self.problems: list[Problem] = []
        self.told: dict[str, int] = defaultdict(int)
        self.repeats = self.shared = 0
        self.turns: dict[str, Turn] = {}
        self.turn_of: list[str] = []
        self.call_owner: dict[str, str] = {}
        self.call_in: dict[tuple[int, str], str] = {}
        """The same by file: a fork repeats calls under their ids."""

    def tell(self, kind: str, file: int, line: int, message: str) -> None:
        self.told[kind] += 1
        if self.told[kind] <= MOST_TOLD:
            name = self.files[file].source.name
            self.problems.append(Problem(kind, f"{name}:{line}" if line else name, message))

    def woven(self) -> Woven:
        self._merge()
        self._lanes()
        self._uncross()
        self._cut_loops()
        order = self._order()
        self._answers()
        self._others(order)
        self._fold_empty()
        self._links()
        lanes = self._place_lanes()
        self._queued()
        found = Woven(self.files, self.records, self.place, self.turns, self.turn_of, lanes, self.problems)
        found.repeats, found.shared = self.repeats, self.shared
        if any(file.ours for file in self.files):
            own = (turn.id for turn in self.turns.values() if self.files[self.records[turn.records[0]].file].ours)
            found.ours = frozenset(own)
        self._copies(found)
        self._count(found)
        self._choose(found)
        found.by_call = self.call_owner
        for kind, count in self.told.items():
            if count > MOST_TOLD:
                found.problems.append(Problem(kind, self.files[0].source.name, f"{count - MOST_TOLD} more of this kind"))
        return found

    # ---- records

    def _merge(self) -> None:
        records, place = self.records, self.place
        for at, file in enumerate(self.files):
            shared: set[str] = set()
            for record in file.records:
                record.file = at
                held = place.setdefault(record.id, len(records))
                if held == len(records):
                    records.append(record)
                elif records[held].file == at or record.id in shared:
                    self.repeats += 1
                    self.tell("duplicate-uuid", at, record.line, f"record {record.id} is written again")
                else:
                    shared.add(record.id)
                    self.shared += not file.ours
                    if not record.lane and records[held].lane == "side":
                        records[held].lane = ""  # one session has it in its conversation
            for kind, line, message in file.problems:
                self.tell(kind, at, line, message)
            if file.unknown:
                named = ", ".join(f"{name} ({count})" for name, count in list(file.unknown.items())[:8])
                self.tell("unknown-type", at, 0, f"records of types that are not known here, kept as they are: {named}")
        self.parent = [-1] * len(self.records)
        self.lost = [False] * len(self.records)
        for at, record in enumerate(records):
            if record.parent is None:
                continue
            found = place.get(record.parent, -1)
            if found != at:
                self.parent[at] = found
            if found < 0 and not (record.more or {}).get("logical"):
                self.lost[at] = True

    def _numbered(self) -> Iterable[tuple[int, Record]]:
        """The records with their places, which are the same objects as those of `place`: there are many."""
        return zip(self.place.values(), self.records, strict=True)

    def _lanes(self) -> None:
        """Sidechains in the session's own file are told by their parent chains."""
        roots: dict[int, str] = {}
        for start, record in enumerate(self.records):
            if record.lane != "side" or start in roots:
                continue
            path, at = [], start
            on_path = set()
            while at not in roots:
                path.append(at)
                on_path.add(at)
                above = self.parent[at]
                if above >= 0 and self.records[above].lane.startswith("side:"):  # woven before its file grew
                    roots[at] = self.records[above].lane
                    break
                if above < 0 or self.records[above].lane != "side" or above in on_path:
                    roots[at] = f"side:{self.records[at].id}"
                    break
                at = above
            for one in path:
                roots[one] = roots[at]
        for at, name in roots.items():
            self.records[at].lane = name

    def _uncross(self) -> None:
        """A main record below a subagent's is joined to the main record before it; a subagent's first one has no parent."""
        last: dict[int, int] = {}
        for at, record in enumerate(self.records):
            above = self.parent[at]
            if above >= 0 and self.records[above].lane != record.lane:
                if record.lane:
                    self.parent[at] = -1
                else:
                    self.parent[at] = last.get(record.file, -1)
                    joined = self.records[self.parent[at]].id if self.parent[at] >= 0 else "nothing"
                    message = f"names a record of a subagent as its parent; joined to {joined}"
                    self.tell("lane-crossing", record.file, record.line, message)
            elif record.lane and self.lost[at]:
                self.lost[at] = False if record.parent is None else self.lost[at]
            if not record.lane:
                last[record.file] = at

    def _cut_loops(self) -> None:
        state = bytearray(len(self.records))
        for start in range(len(self.records)):
            if not state[start] and ((above := self.parent[start]) < 0 or state[above] == 2):
                state[start] = 2
                continue
            path, at = [], start
            while at >= 0 and not state[at]:
                state[at] = 1
                path.append(at)
                at = self.parent[at]
            if at >= 0 and state[at] == 1:
                ring = path[path.index(at) :]
                first = min(ring)
                self.parent[first] = -1
                record = self.records[first]
                self.tell(
                    "parent-loop", record.file, record.line, f"{len(ring)} records name each other as parents; cut at {record.id}"
                )
            for one in path:
                state[one] = 2

    def _order(self) -> list[int]:
        """File order, but each record after its parent."""
        done = bytearray(len(self.records))
        out: list[int] = []
        for start in self.place.values():
            if not done[start] and ((above := self.parent[start]) < 0 or done[above]):
                done[start] = 1
                out.append(start)
                continue
            path, at = [], start
            while at >= 0 and not done[at]:
                path.append(at)
                done[at] = 1
                at = self.parent[at]
            if len(path) > 1 and start != path[-1]:
                record = self.records[start]
                if any(one > start for one in path):
                    self.tell("child-before-parent", record.file, record.line, "stands before its parent")
            out.extend(reversed(path))
        return out

    # ---- turns

    def _new(self, at: int, kind: Literal["input", "loop", "compaction"]) -> Turn:
        record = self.records[at]
        turn = Turn(record.id, kind, record.lane)
        self.turns[turn.id] = turn
        self._join(turn, at)
        return turn

    def _join(self, turn: Turn, at: int) -> None:
        turn.records.append(at)
        self.turn_of[at] = turn.id

    def _answers(self) -> None:
        self.turn_of = [""] * len(self.records)
        by_key: dict[str | tuple[int, str, str], Turn] = {}
        for at, record in self._numbered():
            if record.kind != "answer":
                continue
            key = (record.file, record.lane, record.key) if record.file or record.lane else record.key
            turn = by_key.get(key)
            if turn is None:
                turn = by_key[key] = self._new(at, "loop")
                turn.has_message = True
                self.call_owner.setdefault(record.key, turn.id)
            else:
                self._join(turn, at)
            if record.calls:
                turn.calls = (*turn.calls, *record.calls)
                for call in record.calls:
                    self.call_owner.setdefault(call[0], turn.id)
                    self.call_in[record.file, call[0]] = turn.id

    def _others(self, order: Iterable[int]) -> None:
        answered: dict[tuple[str, str], int] = {}
        ways = self._ways(order)
        for at in order:
            record = self.records[at]
            if record.kind == "answer":
                continue
            above = self.turns.get(self.turn_of[self.parent[at]]) if self.parent[at] >= 0 else None
            kind = record.kind
            if kind == "result" and record.results:
                owners = [self._owner(record, ident) for ident, _ in record.results]
                owner = next((self.turns[one] for one in owners if one), None)
                for (ident, failed), named in zip(record.results, owners, strict=True):
                    if named is None:
                        self.tell(
                            "orphan-tool-result", record.file, record.line, f"answers the call {ident}, which is in no record"
                        )
                        continue
                    if (named, ident) in answered:
                        self.tell("duplicate-tool-result", record.file, record.line, f"answers the call {ident} again")
                    else:
                        answered[named, ident] = at
                        _answered(self.turns[named], ident, failed)
                if owner is not None or above is not None:
                    self._join(owner or above, at)  # type: ignore[arg-type]
                else:
                    self._new(at, "input")
            elif kind == "boundary" or (kind == "summary" and (above is None or above.kind != "compaction")):
                self._new(at, "compaction").has_message = True
            elif kind == "summary" and above is not None:
                self._join(above, at)
            elif kind in ("prompt", "result"):
                for ident, failed in record.results:  # a result with words of a person beside it
                    owner_id = self._owner(record, ident)
                    if owner_id is not None:
                        answered[owner_id, ident] = at
                        _answered(self.turns[owner_id], ident, failed)
                if record.results and above is not None:
                    self._join(above, at)
                elif (
                    above is not None
                    and above.kind == "input"
                    and not above.has_message
                    and all(ways[one] < 2 for one in above.records)
                ):
                    self._join(above, at)
                    above.has_message = True
                else:
                    self._new(at, "input").has_message = True
            elif above is not None:
                self._join(above, at)
            else:
                self._new(at, "input")

    def _owner(self, record: Record, call: str) -> str | None:
        """The turn that made a call: of the same file, else of another."""
        return self.call_in.get((record.file, call)) or self.call_owner.get(call)

    def _ways(self, order: Iterable[int]) -> list[int]:
        """For each record, on how many ways a message follows below it."""
        ways = [0] * len(self.records)
        for at in reversed(list(order)):
            above = self.parent[at]
            if above >= 0 and (ways[at] or self.records[at].kind in ("prompt", "answer")):
                ways[above] += 1
        return ways

    def _fold_empty(self) -> None:
        """A root without any message, which nothing with a message follows, joins the turn before it in the file."""
        followed = {
            self.turn_of[self.parent[turn.records[0]]] for turn in self.turns.values() if self.parent[turn.records[0]] >= 0
        }
        for turn in list(self.turns.values()):
            if turn.has_message or turn.id in followed or len(self.turns) == 1:
                continue
            first = turn.records[0]
            around = (*range(first - 1, -1, -1), *range(first + 1, len(self.records)))
            fits = (one for one in around if self.turn_of[one] != turn.id and self.records[one].lane == turn.lane)
            before = next(fits, None)
            if before is None:
                continue
            host = self.turns[self.turn_of[before]]
            for at in turn.records:
                self._join(host, at)
            del self.turns[turn.id]

    def _links(self) -> None:
        records, parent, turn_of = self.records, self.parent, self.turn_of
        for turn in self.turns.values():
            turn.records.sort()
        self.turns = {turn.id: turn for turn in sorted(self.turns.values(), key=lambda one: one.records[0])}
        for turn in self.turns.values():
            for at in turn.records:
                above = parent[at]
                if above >= 0 and turn_of[above] != turn.id:
                    if records[at].kind == "result" and turn.kind == "loop":
                        continue  # it may hang below another answer's result
                    turn.parent = turn_of[above]
                    break
                if self.lost[at] and at == turn.records[0]:
                    turn.parent, turn.lost = self.records[at].parent, True
                    record = self.records[at]
                    self.tell("orphan-parent", record.file, record.line, f"link lost: its parent {record.parent} is in no file")
                    break
            size, last, tokens = 0, None, None
            for at in turn.records:
                record = records[at]
                size += record.length
                time, used = record.at, record.tokens
                if time is not None:
                    turn.began = time if turn.began is None else turn.began
                    last = time if last is None or time > last else last
                if used is not None and used is not tokens:
                    tokens = used if tokens is None else _most(tokens, used)
                if record.more is not None and record.more.get("failed"):
                    turn.failed = True
            turn.size, turn.ended = size, last
            if tokens is not None:
                turn.tokens = tokens
        self._cut_turn_loops()
        for turn in self.turns.values():
            above_it = self.turns.get(turn.parent) if turn.parent is not None and not turn.lost else None
            if above_it is None:
                continue
            if isinstance(above_it.children, list):
                above_it.children.append(turn.id)
            else:
                above_it.children = (turn.id,) if not above_it.children else [*above_it.children, turn.id]

    def _cut_turn_loops(self) -> None:
        """Links between turns may form a loop where those of records do not: results that hang below later answers."""
        done: set[str] = set()
        for start in self.turns:
            above = self.turns[start].parent
            if start not in done and (above is None or above in done or above not in self.turns):
                done.add(start)
                continue
            path: list[str] = []
            on_path: set[str] = set()
            at: str | None = start
            while at is not None and at in self.turns and at not in done and at not in on_path:
                path.append(at)
                on_path.add(at)
                at = self.turns[at].parent
            if at is not None and at in on_path:
                ring = path[path.index(at) :]
                first = min(ring, key=lambda one: self.turns[one].records[0])
                self.turns[first].parent = None
            done.update(path)

    # ---- lanes

    def _place_lanes(self) -> dict[str, Lane]:
        names = dict.fromkeys(turn.lane for turn in self.turns.values() if turn.lane)
        if not names:
            return {}
        calls = dict(self.call_of)
        tool_of = {call: name for turn in self.turns.values() for call, name in turn.calls}
        for record in self.records:
            agent = (record.more or {}).get("agent")
            if agent and agent not in calls:
                ident = record.results[0][0] if record.results else (record.more or {}).get("notifies")
                if ident:
                    calls[agent] = ident
        taken = set(calls.values())
        wanted: dict[int, list[tuple[int, str]]] = {}
        if any(name not in calls for name in names):
            for at, record in enumerate(self.records):
                if any(tool in AGENT_TOOLS for _, tool in record.calls):
                    for ident, said in self.prompts(record):
                        wanted.setdefault(said, []).append((at, ident))
        lanes: dict[str, Lane] = {}
        firsts: dict[str, int] = {}
        for at, record in enumerate(self.records):
            if record.lane and record.lane not in firsts:
                firsts[record.lane] = at
        for name in names:
            call = calls.get(name)
            if call is None:
                root = self.records[firsts[name]]
                fitting = [
                    (at, ident) for at, ident in wanted.get(root.said, ()) if ident not in taken and self.records[at].lane != name
                ]
                before = [ident for at, ident in fitting if at < firsts[name]]
                call = before[-1] if before else (fitting[0][1] if fitting else None)
                if call is not None:
                    taken.add(call)
            lanes[name] = Lane(name, "", call, self.call_owner.get(call) if call is not None else None)
        for lane in lanes.values():
            self._name_lane(lane, lanes, tool_of)
        for turn in self.turns.values():
            turn.ns = lanes[turn.lane].ns if turn.lane else ""
        return lanes

    def _name_lane(self, lane: Lane, lanes: dict[str, Lane], tool_of: dict[str, str]) -> None:
        chain = [lane]
        while not chain[-1].ns and chain[-1].turn is not None:
            outer = lanes.get(self.turns[chain[-1].turn].lane)
            if outer is None or outer in chain:
                if outer is not None:
                    chain[-1].turn = chain[-1].call = None
                break
            chain.append(outer)
        around = chain[-1].ns if chain[-1].ns else ""
        for one in reversed(chain):
            if one.ns:
                continue
            if one.call is not None and one.turn is not None:
                own = f"{plain(tool_of.get(one.call, 'agent'))}:{plain(one.call)}"
            else:
                own = f"agent:{plain(one.name.removeprefix('side:'))}"
            one.ns = f"{around}|{own}" if around else own
            around = one.ns

    # ---- what stands beside the tree

    def _queued(self) -> None:
        """What was typed while a turn ran and stands nowhere but in the queue: prompts, and commands that left no row."""
        from studio.stores.transcripts.claude import is_command, said

        for at, file in enumerate(self.files):
            if not any(note.what == "queue-operation" for note in file.notes):
                continue
            waiting: dict[int, Note] = {}
            known = {record.said for record in file.records if record.said}
            known.update(mark for record in file.records for mark in (record.more or {}).get("typed", ()))
            queue: list[Note] = []
            for note in file.notes:
                if note.what != "queue-operation" or not isinstance(note.value, tuple):
                    continue
                operation, text = note.value
                mark = said(text) if text else 0
                if operation == "enqueue":
                    queue.append(note)
                    if mark and mark not in known:
                        waiting[mark] = note
                    continue
                first = queue.pop(0) if queue else None
                if operation == "dequeue" and first is not None and is_command(text := first.value[1] or ""):
                    if waiting.get(said(text)) is first:  # the program ran it: the model was never told
                        waiting[said(text)] = Note(first.record, "command", first.value)
            for note in waiting.values():
                place = self.place.get(note.record.parent or "")
                if place is None:
                    continue
                note.record.file = at
                turn = self.turns[self.turn_of[place]]
                if not any((self.records[one].more or {}).get("queued") for one in turn.records):
                    turn.queued = [*turn.queued, note]

    def _copies(self, found: Woven) -> None:
        """Answers that another file has under the same message id, and the prompts above them."""
        if len(self.files) < 2:
            return
        first: dict[tuple[str, str], Turn] = {}
        for turn in self.turns.values():
            record = self.records[turn.records[0]]
            if turn.kind != "loop" or not record.key:
                continue
            original = first.setdefault((record.lane, record.key), turn)
            if original is turn or self.records[original.records[0]].file == record.file:
                continue
            turn.copy_of = original.id
            if turn.id in found.ours:
                continue
            found.copied += 1
            above = self.turns.get(turn.parent or "")
            over = self.turns.get(original.parent or "")
            if above is not None and over is not None and above.kind == over.kind == "input" and above.copy_of is None:
                mine, its = (
                    next((self.records[at].said for at in one.records if self.records[at].said), 0) for one in (above, over)
                )
                if mine and mine == its and above is not over:
                    above.copy_of = over.id
                    found.copied += 1

    def _count(self, found: Woven) -> None:
        if any("tokens" in file.facts for file in self.files):
            totals = [file.facts["tokens"] for file in self.files if file.facts.get("tokens")]
            found.tokens = max(totals, key=sum) if totals else None  # the program's own count for the thread
            parts = [file.facts.get("own_tokens") or file.facts["tokens"] for file in self.files if file.facts.get("tokens")]
            found.all_tokens = tuple(sum(column) for column in zip(*parts, strict=True)) if parts else None
            return
        best: dict[str, Tokens] = {}
        for record in self.records:
            if record.tokens is not None and record.key and not self.files[record.file].ours:
                held = best.get(record.key)
                if held is not record.tokens:
                    best[record.key] = record.tokens if held is None else _most(held, record.tokens)
        if best:
            found.tokens = tuple(sum(column) for column in zip(*best.values(), strict=True))

    def _choose(self, found: Woven) -> None:
        """The head: what the program would go on from, and by which rule."""
        heads = found.heads()
        if not heads:
            main = [turn.id for turn in self.turns.values() if not turn.ns and turn.id not in found.ours]
            found.head, found.why = (main[-1] if main else next(iter(self.turns), None)), "the last turn of the file"
            return
        newest = max(heads, key=lambda one: (_or_never(self.turns[one].ended), self.turns[one].records[-1]))
        last = max(heads, key=lambda one: self.turns[one].records[-1])
        file = self.files[self.records[self.turns[newest].records[-1]].file]
        named = next((note for note in reversed(file.notes) if note.what == "last-prompt" and note.value in self.place), None)
        if named is not None:
            found.head, found.why = (
                self._below(self.turn_of[self.place[named.value]], named),
                "the program's own pointer (last-prompt)",
            )
        elif len(heads) == 1:
            found.head, found.why = heads[0], "the only branch"
        elif self.turns[newest].ended is not None:
            found.head = newest
            found.why = "the newest time" + ("; by file order it were another branch" if last != newest else "")
        else:
            found.head, found.why = last, "the last record of the file"

    def _below(self, turn: str, note: Note) -> str:
        """What was written below a pointer after it."""
        at = self.turns[turn]
        while at.children:
            later = [one for one in at.children if self.records[self.turns[one].records[0]].line > note.record.line]
            if not later:
                break
            at = self.turns[later[-1]]
        return at.id


def _answered(turn: Turn, call: str, failed: bool) -> None:
    if isinstance(turn.results, dict):
        turn.results[call] = failed
    else:
        turn.results = {call: failed}


def _most(one: Tokens, other: Tokens) -> Tokens:
    """The larger of each count."""
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _or_never(moment: int | None) -> int:
    return moment if moment is not None else -(2**62)


def plain(name: str) -> str:
    """A part of a namespace: `|` and `:` part them."""
    return name.replace("|", "_").replace(":", "_") or "_"
