"""Compare a stored fork with its plan: an edit is never lost without a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from studio import value
from studio.forks import patch
from studio.forks.plan import Plan
from studio.history.namespaces import ns_task_id
from studio.model import START, Address, RawCheckpoint, State, Value


def differences(plan: Plan, raw: RawCheckpoint, record: Mapping[str, Value], state: State) -> list[str]:
    """Each difference between the plan and what was read back (its row, the decoded record, the state) as one line."""
    found = []
    draft = plan.draft
    for name, wanted in plan.values.items():
        if name in record["channel_values"]:
            got = patch.plain(record["channel_values"][name])
        elif name in state.values:
            got = state.values[name]
        else:
            found.append(f"{name} is not in the stored fork.")
            continue
        if not value.equal(got, wanted):
            found.append(f"{name} is not what was asked for.")
    if "pending_sends" in draft.record and not value.equal(record.get("pending_sends"), draft.record["pending_sends"]):
        found.append("The waiting Sends are not what was asked for.")
    extra = [name for name in record["channel_values"] if name not in plan.values]
    found += [f"{name} is in the stored fork, though it was not asked for." for name in extra]
    before = value.decode(draft.origin.tag, draft.origin.blob)["channel_values"]
    for name, kept in before.items():
        if name in draft.edited or name not in record["channel_values"]:
            continue
        if value.encode(raw.tag, kept) != value.encode(raw.tag, record["channel_values"][name]):
            found.append(f"The stored bytes of {name} changed, though it was not edited.")
    # formats 1 and 2 store no names of what runs next: the origin's own rows or thread told, and the fork has none of them
    untold = draft.format < 3 and (state.next is None or None in state.next)
    # the first task of a functional entrypoint is named by later rows only
    untold = untold or (state.next == (START,) and len(plan.next or ()) == 1 and draft.origin.header.source == "input")
    if plan.next is not None and not untold and sorted(map(str, state.next or ())) != sorted(map(str, plan.next)):
        found.append(f"Next is {_names(state.next)}, where {_names(plan.next)} was expected.")
    return found


def lost_calls(created: Sequence[Address], states: Sequence[State]) -> list[str]:
    """Inside a subgraph: a calling checkpoint, `states` in the order of `created`, whose tasks do not lead to the next level."""
    found = []
    for inner, outer in zip(created[1:], states, strict=False):
        wanted, tasks = ns_task_id(inner.checkpoint_ns), [task.id for task in outer.tasks]
        if wanted is not None and None not in tasks and wanted not in tasks:
            found.append(f"A run would not find the fork in {inner.checkpoint_ns}: no task of the step before leads there.")
    return found


def _names(nodes: Sequence[str | None] | None) -> str:
    if nodes is None:
        return "not known"
    return ", ".join(name or "?" for name in nodes) or "nothing"
