"""`TranscriptExplainer`: states, tasks, authors and edges of an agent's transcript, told from its records.

A transcript has no rows of writes and schedules nothing, but it says who did what: an answer is a task of the model, each of its
calls a task of a tool. As in a checkpoint database the tasks stand at the turn from which they ran, and what they wrote is in
the turn that they made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from studio.cache import LRU
from studio.errors import RefError
from studio.explain.branch import Branch, Brief, brief
from studio.explain.edges import Graphs
from studio.explain.explainer import Explainer
from studio.explain.glance import Glance
from studio.explain.sizes import Sizes
from studio.history.facts import Reading
from studio.model import (
    END,
    START,
    Address,
    Author,
    Change,
    Checkpoint,
    NodeRun,
    Problem,
    RawCheckpoint,
    SeenGraph,
    State,
    Status,
    Task,
    TaskStatus,
    Trigger,
    Value,
    Verdict,
    Write,
    WriteRow,
)
from studio.stores.base import Store
from studio.stores.transcripts import content
from studio.stores.transcripts.codex import SHELLS
from studio.stores.transcripts.fold import MODEL, Said, apply
from studio.stores.transcripts.store import TranscriptStore
from studio.stores.transcripts.transcript import Transcript
from studio.stores.transcripts.turns import Turn
from studio.tagged import split_path
from studio.value import decode_metadata

_TEXTS = 400
"""Turns that are asked for the last words of a person."""
_BESIDE = ("cwd", "git_branch", "permission_mode", "model")
_MODELS_ASKED = 50
_BRANCHES_KEPT, _BRIEFS_KEPT = 4, 4_000


class TranscriptExplainer(Explainer):
    """The same answers as `Explainer`, for a store of transcripts."""

    measures = frozenset({"tokens", "context_tokens", "cost_usd"})

    def __init__(self, store: Store, base: TranscriptStore) -> None:
        super().__init__(store)
        self.base = base

    def _at(self, address: Address) -> tuple[Transcript, Turn]:
        found = self.base.turn(address)
        if found is None:
            raise RefError(f"there is no checkpoint {address.checkpoint_id} in thread {address.thread_id}")
        return found

    def forget(self) -> None:
        super().forget()
        self._branches: LRU[Address, Branch] = LRU(_BRANCHES_KEPT)
        self._briefs: LRU[Address, Brief] = LRU(_BRIEFS_KEPT)

    # ---- as it is read

    def branch(self, address: Address) -> Branch | None:
        found = self.base.turn(address)
        if found is None:
            return None
        kept = self._branches.get(address)
        if kept is None or kept.folded is not found[0].folded():
            kept = Branch(*found)
            self._branches.put(address, kept)
        return kept

    def brief(self, address: Address) -> Brief | None:
        briefs = self._briefs
        kept = briefs.get(address)
        if kept is None:
            found = self.base.turn(address)
            if found is None:
                return None
            kept = brief(*found)
            briefs.put(address, kept)
        return kept

    # ---- one turn

    def state(self, address: Address) -> State:
        one, turn = self._at(address)
        return self._state(one, turn)

    def states(self, raws: Iterable[RawCheckpoint]) -> Iterator[State]:
        for raw in raws:
            yield self.state(raw.header.address)

    def prefetch(self, addresses: Sequence[Address]) -> None:
        """Turns are decoded once anyway."""

    def _state(self, one: Transcript, turn: Turn) -> State:
        folded = one.folded()
        turns = one.woven.turns
        tasks = [task for child in turn.children for task in self._tasks(one, turns[child])]
        status: Status = "ran"
        if not turn.children:
            tasks, status = self._waiting(one, turn)
        problems = []
        if turn.lost:
            problems.append(
                Problem("link-lost", turn.id, f"its parent {turn.parent} is in no file: what was before is not known")
            )
        if turn.copy_of is not None:
            problems.append(
                Problem("copied-turn", turn.id, f"repeats {turn.copy_of} of another file; its tokens are counted there")
            )
        return State(
            checkpoint=self.base.header(one, turn),
            values=folded.values(turn.id),
            internal={},
            rebuilt={},
            tasks=tuple(tasks),
            next=tuple(task.name for task in tasks),
            metadata=decode_metadata(one.metadata(turn)),
            format=None,
            status=status,
            problems=tuple(problems),
        )

    def _waiting(self, one: Transcript, turn: Turn) -> tuple[list[Task], Status]:
        """(tasks that a last turn left open, where the transcript stands)."""
        if turn.failed:
            return [], "failed"
        open_calls = [(ident, name) for ident, name in turn.calls if ident not in turn.results]
        if open_calls:
            return [Task(ident, name, None, "pending", subgraph_ns=self._lane(one, ident)) for ident, name in open_calls], "ready"
        if turn.kind == "input" and turn.has_message:
            return [Task(None, MODEL, None, "pending")], "ready"
        return [], "done"

    def standing(self, address: Address) -> tuple[Status, tuple[str | None, ...]]:
        """(where a last turn stands, what waits in it), without its state."""
        tasks, status = self._waiting(*self._at(address))
        return status, tuple(task.name for task in tasks)

    def _lane(self, one: Transcript, call: str) -> tuple[str, ...]:
        return tuple(lane.ns for lane in one.woven.lanes.values() if lane.call == call)

    def _tasks(self, one: Transcript, turn: Turn) -> list[Task]:
        """The tasks that made a turn."""
        if turn.kind == "input":
            return []
        said = one.folded().said(turn)
        if turn.kind == "compaction":
            return [Task(turn.id, "compact", None, "done", writes=(Write("messages", said.messages),))]
        writes = self._writes(said)
        above = one.woven.turns.get(turn.parent or "") if not turn.lost else None
        before = self._runs(one, above)[1:] if above is not None else ()
        asked = tuple(Author(run.name, run.task_id, "writes") for run in before) or (Author(START, None, "source"),)
        called = (Author(MODEL, self._runs(one, turn)[0].task_id, "writes"),)
        found = []
        for run in self._runs(one, turn):
            error = None
            if run.status == "failed":
                told: list[Any] = next(
                    (value for channel, value in writes.get(run.task_id or "", ()) if channel == "messages"), []
                )
                error = content.text_of(told[0].get("content")) if told else "failed"
                if run.name == MODEL:
                    error = content.text_of(said.messages[0].get("content")) if said.messages else "failed"
            mine = writes.get(run.task_id or "", ()) if run.name != MODEL else writes.get("", ())
            lanes = self._lane(one, run.task_id) if run.task_id is not None else ()
            why = Trigger("messages", asked) if run.name == MODEL else Trigger("tool_calls", called)
            wrote = tuple(Write(*pair) for pair in mine)
            found.append(Task(run.task_id, run.name, None, run.status, error, (why,), writes=wrote, subgraph_ns=lanes))
        return found

    @staticmethod
    def _writes(said: Said) -> dict[str, list[tuple[str, Value]]]:
        """Call ("" for the model) -> what it wrote."""
        found: dict[str, list[tuple[str, Value]]] = {}
        for message in said.messages:
            call = message.get("tool_call_id") if message.get("type") == "tool" else ""
            if message.get("type") in ("ai", "tool"):
                found.setdefault(call or "", []).append(("messages", [message]))
        for what, call, detail in said.effects:
            values: dict[str, Any] = {}
            apply(values, what, detail)
            found.setdefault(call or "", []).extend(values.items())
        return found

    @staticmethod
    def _runs(one: Transcript, turn: Turn) -> tuple[NodeRun, ...]:
        if turn.kind == "compaction":
            return (NodeRun("compact", turn.id, "done"),)
        if turn.kind == "input":
            return ()
        key = one.woven.records[turn.records[0]].key or turn.id
        runs = [NodeRun(MODEL, key, "failed" if turn.failed else "done")]
        for ident, name in turn.calls:
            failed = turn.results.get(ident)
            status: TaskStatus = "pending" if failed is None else "failed" if failed else "done"
            runs.append(NodeRun(name, ident, status))
        return tuple(runs)

    def glances(self, addresses: Sequence[Address]) -> dict[Address, Glance]:
        found = {}
        for address in addresses:
            known = self.base.look(address)
            if known is not None:
                header = Checkpoint(address, known.parent, known.step, known.source, known.created_at, known.size_bytes)
                texts = [{"type": "human", "content": text} for text in known.texts]
                found[address] = Glance(header, known.status, {"messages": texts}, {})
                continue
            at = self.base.turn(address)
            if at is None:
                continue
            one, turn = at
            status = self._waiting(one, turn)[1] if not turn.children else "ran"
            branch = [step for step in one.folded().branch(turn.id) if step.kind == "input"]
            said = [*self._people(one, branch[:_TEXTS])[:1], *self._people(one, branch[-_TEXTS:][::-1])[:1]]
            found[address] = Glance(self.base.header(one, turn), status, {"messages": said}, {})
            texts_said = [_joined(message.get("content")) for message in said]
            self.base.note_look(address, found[address].header, status, texts_said)
        return found

    @staticmethod
    def _people(one: Transcript, turns: Sequence[Turn]) -> list[dict[str, Any]]:
        for turn in turns:
            said = [message for message in one.folded().said(turn).messages if message.get("type") == "human"]
            if said:
                return said
        return []

    def sizes(self, address: Address) -> Sizes:
        one, turn = self._at(address)
        import msgspec

        channels = {name: len(msgspec.json.encode(value)) for name, value in one.folded().small(turn.id).items()}
        channels["messages"] = sum(step.size for step in one.folded().branch(turn.id))
        return Sizes(sum(channels.values()), channels)

    # ---- changes

    def with_authors(self, before: State | None, after: State, changes: Sequence[Change]) -> tuple[Change, ...]:
        if not changes:
            return ()
        at = self.base.turn(after.checkpoint.address)
        if at is None:
            return tuple(changes)
        one, turn = at
        said = one.folded().said(turn)
        held = before.values.get("messages") if before is not None else None
        base = len(held) if isinstance(held, list) else 0
        names = dict(turn.calls)
        model = Author(MODEL, one.woven.records[turn.records[0]].key or turn.id, "writes")
        person = Author(START, None, "source")
        mine = person if turn.kind == "input" else Author("compact", turn.id, "writes") if turn.kind == "compaction" else model

        def of_call(call: str | None) -> Author:
            return Author(names[call], call, "writes") if call in names else mine

        def of_message(place: int) -> tuple[Author, ...]:
            if not 0 <= place < len(said.messages):
                return (Author(None, None, "none"),)
            message = said.messages[place]
            kind = message.get("type")
            if kind == "tool":
                return (of_call(message.get("tool_call_id")),)
            return (model if kind == "ai" and turn.kind == "loop" else person if kind == "human" else mine,)

        calls: dict[str, list[Author]] = {}
        for what, call, detail in said.effects:
            name = {"todos": "/todos", "task": "/tasks", "file": "/files"}.get(what, "")
            calls.setdefault(name, []).append(of_call(call))
            if what in ("file", "task"):
                calls.setdefault(f"{name}/{detail[0]}", []).append(of_call(call))

        def authors(change: Change) -> tuple[Author, ...]:
            steps = split_path(change.path)
            channel = str(steps[0]) if steps else ""
            if channel == "messages":
                if len(steps) > 1:
                    place = steps[1]
                    return of_message(int(place) - base) if str(place).isdigit() else (mine,)
                return tuple(dict.fromkeys(one for place in range(len(said.messages)) for one in of_message(place)))
            if channel in ("todos", "tasks", "files"):
                exact = calls.get(f"/{channel}/{steps[1]}") if len(steps) > 1 else None
                return tuple(dict.fromkeys(exact or calls.get(f"/{channel}", [mine])))
            return (mine if channel in ("model", "tokens", "context_tokens", "cost_usd") else person,)

        return tuple(replace(change, authors=authors(change)) for change in changes)

    def checked(self, before: State | None, after: State) -> dict[str, Verdict]:
        """Nothing to check: the state is made of the records."""
        return {}

    # ---- whole threads

    def read_turns(self, thread_id: str, headers: Sequence[Checkpoint]) -> Reading:
        """What made each turn, and what ran from it."""
        reading = Reading()
        for header in headers:
            at = self.base.turn(header.address)
            if at is None:
                continue
            one, turn = at
            key = (turn.ns, turn.id)
            reading.made[key] = self._runs(one, turn)
            reading.changed[key] = self._channels(one, turn)
            reading.labels[key] = _label(one, turn)
            reading.ran[key] = tuple(run for child in turn.children for run in self._runs(one, one.woven.turns[child]))
        return reading

    @staticmethod
    def _channels(one: Transcript, turn: Turn) -> tuple[str, ...]:
        """What a turn wrote or changed, from its index alone; only a command of a shell is looked into for a patch."""
        folded, records = one.folded(), one.woven.records
        names = {name for ident, name in turn.calls if turn.results.get(ident) is False}
        more = {name for at in turn.records for name in records[at].more or ()}
        found = ["messages"] if turn.has_message or turn.calls else []
        found += ["todos"] if names & content.TODOS else []
        found += ["tasks"] if names & content.TASKS else []
        if names & (content.EDITS | {"apply_patch", "Read"}) or (
            names & SHELLS and any(what == "file" for what, _, _ in folded.said(turn).effects)
        ):
            found.append("files")
        found += [name for name in _BESIDE if name in more]
        model = next((name for at in turn.records if (name := records[at].model)), None)
        if model is not None and model != _model_before(one, turn):
            found.append("model")
        found += ["tokens", "context_tokens"] if any(turn.tokens) else []
        found += ["cost_usd"] if "cost" in more else []
        return tuple(dict.fromkeys([*found, *(name for name, _ in folded.beside(turn))]))

    def node_runs(
        self, thread_id: str, headers: Sequence[Checkpoint], rows: Sequence[WriteRow], last: Sequence[Checkpoint] | None = None
    ) -> dict[tuple[str, str], tuple[NodeRun, ...]]:
        return self.read_turns(thread_id, headers).ran

    def written_channels(
        self, thread_id: str, rows: Iterable[WriteRow], last: Sequence[Checkpoint]
    ) -> dict[tuple[str, str], tuple[str, ...]]:
        return {}

    def searched(self, thread_id: str, holds: Callable[[bytes], bool]) -> Iterator[tuple[Address, dict[str, Value]]]:
        """(turn, what is new in it), of the turns whose records hold something; messages by their ids."""
        for raw in self.base.scan(thread_id):
            if not holds(raw.blob):
                continue
            one, turn = self._at(raw.header.address)
            said = one.folded().said(turn)
            values: dict[str, Any] = {"messages": {f"id:{message.get('id')}": message for message in said.messages}}
            for what, _, detail in said.effects:
                apply(values, what, detail)
            yield raw.header.address, values

    def _count(self, thread_id: str) -> tuple[SeenGraph, ...]:
        one = self.base.transcript(thread_id)
        graphs = Graphs()
        for turn in one.woven.turns.values() if one is not None else ():
            assert one is not None
            tally = graphs.of(turn.ns)
            runs = self._runs(one, turn)
            above = (turn.ns, turn.parent or turn.id)
            for run in runs:
                tally.ran(run.name, above)
            if turn.kind == "input":
                tally.edges.update((START, MODEL) for child in turn.children if one.woven.turns[child].kind == "loop")
            if turn.kind == "loop":
                tools = Counter(run.name for run in runs[1:])
                tally.edges.update({(MODEL, str(name)): count for name, count in tools.items()})
                follow = [one.woven.turns[child].kind == "loop" for child in turn.children]
                if any(follow):
                    tally.edges.update({(str(name), MODEL): count for name, count in tools.items()})
                elif not tools:
                    tally.edges[MODEL, END] += 1
        return graphs.done()


def _joined(held: Any) -> str:
    """The text of a message in one line, as a list shows it."""
    if isinstance(held, list):
        blocks = (block.get("text") if isinstance(block, dict) else block for block in held)
        return " ".join(block for block in blocks if isinstance(block, str))
    return held if isinstance(held, str) else ""


def _model_before(one: Transcript, turn: Turn) -> str | None:
    turns, records = one.woven.turns, one.woven.records
    above = turn.parent if not turn.lost else None
    for _ in range(_MODELS_ASKED):
        if above not in turns:
            return None
        held = turns[above]
        found = next((name for at in held.records if (name := records[at].model)), None)
        if found is not None:
            return found
        above = held.parent if not held.lost else None
    return None


def _label(one: Transcript, turn: Turn) -> str:
    first = one.woven.records[turn.records[0]]
    names = Counter(name for _, name in turn.calls)
    told = " ∥ ".join(f"{name} ×{count}" if count > 1 else name for name, count in names.items())
    said = "agent reported" if first.kind == "result" else "prompt" if turn.has_message else "context"
    label = {"input": said, "compaction": "compacted", "loop": told or "answer"}[turn.kind]
    return " · ".join([label, *(["copy"] if turn.copy_of else []), *(["link lost"] if turn.lost else [])])
