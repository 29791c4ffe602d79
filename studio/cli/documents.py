"""The JSON shapes that scripts rely on. Fields may be added, never renamed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from studio.codec.oddities import oddities
from studio.comparing import unexplained
from studio.growing import Compared
from studio.history.gaps import missing_steps
from studio.model import (
    Address,
    Author,
    Change,
    Checkpoint,
    Comparison,
    Hit,
    Interrupt,
    Problem,
    RawCheckpoint,
    Row,
    State,
    Task,
    Thread,
    Value,
    Verdict,
)
from studio.noted import hidden_change
from studio.render import masking
from studio.render.masking import name_in
from studio.value import decode, decode_metadata

if TYPE_CHECKING:
    from studio.forks.sessions.outlook import Outlook
    from studio.kinship import Kin
    from studio.neighbours import Item
    from studio.requests import Drift, ForkPreview, ForkRequest, ForkResult, NodeUpdate, Resume, RunPlan
    from studio.running.candidates import Candidates
    from studio.session import Session
    from studio.stores.neighbours import Neighbour
    from studio.stores.table_sets import CountedSet

Doc = dict[str, Any]

OBJECTS_KEPT = 5_000
"""Converted objects remembered within one call."""


class Documents:
    """Makes documents, with secrets masked unless they are asked for."""

    def __init__(self, show_secrets: bool) -> None:
        self.show_secrets = show_secrets
        self._clean: set[bytes] = set()
        self._objects: dict[Any, Any] = {}

    def value(self, value: Value, key: str | None = None) -> Any:
        """A value as tagged JSON; stored objects that many checkpoints carry are converted once."""
        if len(self._objects) > OBJECTS_KEPT:
            self._objects.clear()
            self._clean.clear()
        return masking.document(value, key, show_secrets=self.show_secrets, cache=self._objects)

    def values(self, values: Mapping[str, Value]) -> Doc:
        return {name: self.value(value, name) for name, value in values.items()}

    def text(self, text: str | None, key: str | None = None) -> str | None:
        """A stored text that stands as itself in a document: its secret parts are replaced."""
        return None if text is None else masking.text(text, key, show_secrets=self.show_secrets)

    def address(self, address: Address) -> Doc:
        return {"thread_id": address.thread_id, "checkpoint_ns": address.checkpoint_ns, "checkpoint_id": address.checkpoint_id}

    def header(self, checkpoint: Checkpoint) -> Doc:
        return {
            **self.address(checkpoint.address),
            "parent_checkpoint_id": checkpoint.parent_checkpoint_id,
            "step": checkpoint.step,
            "source": checkpoint.source,
            "created_at": checkpoint.created_at,
            "size_bytes": checkpoint.size_bytes,
            "origin": checkpoint.origin,
            "encrypted": checkpoint.encrypted,
        }

    def problems(self, problems: Iterable[Problem]) -> list[Doc]:
        return [
            {
                "kind": one.kind,
                "where": one.where,
                "message": self.text(one.message),
                **({"names": [self.text(name) for name in one.names]} if one.names else {}),
            }
            for one in problems
        ]

    def table(self, table: Neighbour) -> Doc:
        return {
            "name": table.name,
            "kind": table.kind,
            "rows": table.rows,
            "more": table.more,
            "columns": list(table.columns),
            "shown": table.shown,
        }

    def table_set(self, one: CountedSet) -> Doc:
        return {"checkpoints": one.checkpoints, "writes": one.writes, "rows": one.rows, "more": one.more, "shown": one.shown}

    def item(self, item: Item, kind: str) -> Doc:
        """An entry of a store or cache, or a row of another table; sizes of what was not read whole are in `cut`."""
        cut = {"cut": dict(item.cut)} if item.cut else {}
        if kind not in ("store", "cache"):
            return {"row": self.values(item.facts), **cut}
        return {
            "namespace": self.text(item.namespace),
            "key": self.text(item.key),
            "value": self.value(item.value, item.key) if item.whole else None,
            "whole": item.whole,
            "size_bytes": item.size_bytes,
            **self.values(item.facts),
            **cut,
        }

    def thread(self, thread: Thread) -> Doc:
        return {
            "thread_id": thread.thread_id,
            "location": thread.location,
            "namespaces": list(thread.namespaces),
            "checkpoints": thread.checkpoints,
            "roots": list(thread.roots),
            "heads": list(thread.heads),
            "head": thread.head,
            "status": thread.status,
            "first_at": thread.first_at,
            "last_at": thread.last_at,
            "size_bytes": thread.size_bytes,
            "first_text": self.text(thread.first_text),
            "last_text": self.text(thread.last_text),
            "metadata": self.values(thread.metadata),
            "scratch_checkpoints": thread.scratch_checkpoints,
            "unread": thread.closed or None,
            **{name: self.value(value, None if name == "tokens" else name) for name, value in thread.facts.items()},
        }

    def row(self, row: Row) -> Doc:
        return {
            "number": row.number,
            **self.header(row.checkpoint),
            "lane": row.lane,
            "origin_checkpoint_id": row.origin_checkpoint_id,
            "nodes": [{"name": node.name, "task_id": node.task_id, "status": node.status} for node in row.nodes],
            "next": None if row.next is None else list(row.next),
            "status": row.status,
            "is_head": row.is_head,
            "channels": list(row.channels),
            "label": self.text(row.label),
            "parent_number": row.parent_number,
            "depth": row.depth,
            "seconds": row.seconds,
            "missing_steps": None if row.missing_steps is None else list(row.missing_steps),
        }

    def shown(self, state: State, explained: Mapping[str, Verdict]) -> Doc:
        """The `show` document with the check of the superstep that made the checkpoint."""
        doc = self.state(state)
        doc["problems"] += self.problems(unexplained(state, explained))
        return {**doc, "explained": self.explained(explained)}

    def state(self, state: State, *, values: bool = True) -> Doc:
        """The `show` document; without `values` the two maps of values are left out."""
        stored = {"values": self.values(state.values), "internal": self.values(state.internal)} if values else {}
        return {
            "checkpoint": self.header(state.checkpoint),
            **stored,
            "rebuilt": dict(state.rebuilt),
            "next": None if state.next is None else list(state.next),
            "tasks": [self.task(task) for task in state.tasks],
            "metadata": self.values(state.metadata),
            "format": state.format,
            "problems": self.problems(all_problems(state, self._clean)),
        }

    def task(self, task: Task) -> Doc:
        return {
            "id": task.id,
            "name": task.name,
            "path": task.path,
            "status": task.status,
            "error": self.text(task.error),
            "triggers": [{"channel": one.channel, "authors": self.authors(one.authors)} for one in task.triggers],
            "interrupts": [self.interrupt(one) for one in task.interrupts],
            "writes": [{"channel": one.channel, "value": self.value(one.value, one.channel)} for one in task.writes],
            "arg": self.value(task.arg),
            "subgraph_ns": list(task.subgraph_ns),
            "earlier_answers": [self.value(one) for one in task.earlier_answers],
            "unstored": task.unstored,
            "inferred": task.inferred,
        }

    def interrupt(self, interrupt: Interrupt) -> Doc:
        return {
            "id": interrupt.id,
            "value": self.value(interrupt.value),
            "answered": interrupt.answered,
            "answer": self.value(interrupt.answer),
        }

    def authors(self, authors: Iterable[Author]) -> list[Doc]:
        return [
            {
                "node": one.node,
                "task_id": one.task_id,
                "basis": one.basis,
                **({"side": one.side} if one.side == "before" else {}),
            }
            for one in authors
        ]

    def change(self, change: Change) -> Doc:
        key = name_in(change.path)
        origin = {} if change.from_path is None else {"from": change.from_path}
        return {
            "path": change.path,
            "op": change.op,
            **origin,
            "before": None if change.op == "add" else self.value(change.before, key),
            "after": None if change.op == "remove" else self.value(change.after, key),
            "authors": self.authors(change.authors),
        }

    def kin(self, found: Kin) -> Doc:
        """What a checkpoint was made from and what was made of it, in other threads too."""
        origin = found.made_from
        return {"made_from": None if origin is None else self.address(origin), "forks": [self.address(at) for at in found.made]}

    def explained(self, found: Mapping[str, Verdict]) -> Doc:
        return {channel: verdict.how for channel, verdict in found.items()}

    def calls(self, session: Session, state: State) -> Doc:
        """`called_from` of a subgraph's checkpoint, and the `subgraph_runs` that the tasks of a checkpoint started."""
        caller, started = session.caller(state), session.subgraph_runs(state)
        if caller is None and not started:
            return {"called_from": None, "subgraph_runs": []}
        tree = session.tree(state.checkpoint.thread_id)
        runs = [
            {
                "task_id": ident,
                "checkpoint_ns": run.checkpoint_ns,
                "first": {"number": tree.number(run.first), "checkpoint_id": run.first.checkpoint_id},
                "last": {"number": tree.number(run.last), "checkpoint_id": run.last.checkpoint_id},
                "checkpoints": run.count,
            }
            for ident, found in started.items()
            for run in found
        ]
        named = None
        if caller is not None:
            number = tree.number(caller.address)
            named = {**self.address(caller.address), "number": number, "task_id": caller.task_id, "task": caller.name}
        return {"called_from": named, "subgraph_runs": runs}

    def sizes(self, found: Compared) -> Doc:
        """Channel -> bytes of its stored value, scheduling channels included; one that is rebuilt has none here."""
        return {**found.here.channels, **found.here.scheduling}

    def missing_steps(self, before: Checkpoint | None, after: Checkpoint) -> list[int] | None:
        """First and last step between a checkpoint and its parent that were not stored; None where `before` is another one."""
        if before is not None and before.checkpoint_id != after.parent_checkpoint_id:
            return None
        gap = missing_steps(after, before)
        return None if gap is None else list(gap)

    def comparison(self, found: Comparison) -> Doc:
        return {
            "before": None if found.before is None else self.header(found.before),
            "after": self.header(found.after),
            "changes": [self.change(change) for change in found.changes],
            "unknown": hidden_change(found) or None,
            "explained": self.explained(found.explained),
            "missing_steps": self.missing_steps(found.before, found.after),
            "problems": self.problems(found.problems),
        }

    def raw(self, raw: RawCheckpoint) -> Doc:
        """The stored record: every entry of the blob, metadata, tags, nothing derived."""
        return {
            "checkpoint": self.header(raw.header),
            "type": raw.tag,
            "record": self.value(decode(raw.tag, raw.blob)),
            "metadata": self.value(decode_metadata(raw.metadata)),
        }

    def hit(self, hit: Hit) -> Doc:
        return {**self.address(hit.address), "number": hit.number, "path": hit.path, "excerpt": hit.excerpt}

    def fork(self, result: ForkResult) -> Doc:
        return {
            **self.address(result.address),
            "parent_checkpoint_id": result.parent_checkpoint_id,
            "stored_in": result.stored_in,
            "forked_from": self.address(result.forked_from),
            "recipe": result.recipe,
            "next": None if result.next is None else list(result.next),
            "verified": result.verified,
            "surprises": [self.text(one) for one in result.surprises],
            "root": self.address(result.root),
            "created": [self.address(one) for one in result.created],
            **({"updates": self.updates(result.updates)} if result.updates else {}),
            **(self.resume(result.session) if result.session is not None else {}),
        }

    def preview(self, request: ForkRequest, preview: ForkPreview) -> Doc:
        """What a fork would do; nothing of it is stored."""
        from studio.render import forkwords

        return {
            "forked_from": self.address(request.address),
            "new_thread": request.new_thread,
            "act": forkwords.act(request),
            "updates": self.updates(request.updates, preview.as_node),
            "changes": [self.change(one) for one in preview.changes],
            "next": None if preview.next is None else list(preview.next),
            "merged": list(preview.merged),
            "can_overwrite": preview.can_replace,
            "warnings": [self.text(one) for one in preview.warnings],
            "refused": None if preview.refused is None else self.text(preview.refused),
            **(self.resume(preview.session) if preview.session is not None else {}),
        }

    def outlook(self, found: Outlook) -> Doc:
        """What a fork of a session leaves as it is."""
        return {
            "cwd": found.cwd,
            "git_branch": found.git_branch,
            "worktree": found.worktree,
            "files": [{"path": one.path, "edits": one.edits, "known": one.known, "source": one.source} for one in found.files],
            "effects": [
                {"call": one.call, "tool": one.tool, "status": one.status, "checkpoint_id": one.turn, "what": self.text(one.what)}
                for one in found.effects
            ],
            "more": found.more,
        }

    def resume(self, found: Resume) -> Doc:
        """How a program goes on from the fork of a session."""
        commands = {name: self.text(text) for name, text in found.commands.items()}
        return {
            "resume": {
                "session_id": found.session,
                "program": found.program,
                "version": found.version,
                "cwd": found.cwd,
                "prompt": self.text(found.prompt),
                "commands": commands,
                "install_to": found.target,
                "installed": found.installed,
            },
            "notes": [self.text(one) for one in found.notes],
            "warnings": [self.text(one) for one in found.warnings],
        }

    def updates(self, found: Sequence[NodeUpdate], chosen: str | None = None) -> list[Doc]:
        """Which nodes were written as, and the channels that each wrote to; `chosen`: the node where none was named."""
        return [
            {"as_node": one.as_node or chosen, "channels": list(one.channels), "overwrite": list(one.overwrite)} for one in found
        ]

    def writers(self, address: Address, found: Candidates) -> Doc:
        return {
            **self.address(address),
            "basis": found.basis,
            "default": found.default,
            "note": self.text(found.note),
            "nodes": [
                {
                    "node": one.node,
                    "kind": one.kind,
                    "default": one.default,
                    "next": list(one.next),
                    "decides": one.decides,
                    "words": one.words,
                }
                for one in found.found
            ],
        }

    def plan(self, plan: RunPlan) -> Doc:
        return {
            **self.address(plan.address),
            "runs": list(plan.runs),
            "kept": list(plan.kept),
            "asks": [self.text(one) for one in plan.asks],
            "side_effects": [self.text(one) for one in plan.side_effects],
            "graph": plan.graph,
            "graph_file": plan.graph_file,
            "interpreter": plan.interpreter,
            "types": [
                {
                    "name": one.name,
                    "count": one.count,
                    "safe": one.safe,
                    "channels": list(one.channels),
                    "becomes": one.becomes,
                }
                for one in plan.types
            ],
            "needs_trust": plan.needs_trust,
            "config": {key: self.text(given) for key, given in plan.config.items()},
            "context": {key: self.text(given) for key, given in plan.context.items()},
            "recursion_limit": plan.recursion_limit,
            "past_calls": [
                {"tool": one.tool, "call_id": one.call_id, "arguments": self.text(one.arguments), "outcome": one.outcome}
                for one in plan.past_calls
            ],
            "past_nodes": [{"name": one.name, "runs": one.runs} for one in plan.past_nodes],
            "open_calls": [self.text(one) for one in plan.open_calls],
            "reused": [self.text(one) for one in plan.reused],
            "subgraphs": [{"node": one.node, "how": one.how} for one in plan.subgraphs],
            "drift": None if plan.drift is None else self.drift(plan.drift),
            "steps": plan.steps,
            "timeout": plan.timeout,
            "stored_in": plan.stored_in,
            "makes_copy": plan.makes_copy,
            "new_thread": plan.new_thread,
            "warnings": [self.text(one) for one in plan.warnings],
        }

    def drift(self, drift: Drift) -> Doc:
        return {
            "channels_gone": list(drift.channels_gone),
            "channels_new": list(drift.channels_new),
            "types": [{"channel": one.channel, "stored": one.stored, "declared": one.declared} for one in drift.types],
            "nodes_gone": list(drift.nodes_gone),
            "nodes_new": list(drift.nodes_new),
            "schema_version": list(drift.schema_version) if drift.schema_version is not None else None,
        }


def all_problems(state: State, clean: set[bytes] | None = None) -> list[Problem]:
    """What the explainer noted, and what is odd inside the values; whole values that stay closed were noted already."""
    from studio import toolcalls

    noted = {one.kind for one in state.problems}
    odd = oddities(state.values, state.checkpoint.checkpoint_id, clean)
    return [
        *state.problems,
        *toolcalls.problems(state),
        *(one for one in odd if not (one.kind in ("undecodable", "unknown-extension") and one.kind in noted)),
    ]
