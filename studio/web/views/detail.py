"""The tabs State, Tasks and Raw of one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from studio import noted, tagged, toolcalls
from studio.growing import Compared
from studio.model import Interrupt, State, Task, Value
from studio.render import gate, labels, masking, preview, questions, secrets
from studio.sends import argument_path
from studio.tree import CheckpointTree
from studio.web.links import Place
from studio.web.views.changes import STATUS_KINDS, Runs, tracks
from studio.web.views.sizes import SizesView, sized, sizes_view
from studio.web.views.values import PAGE, Line, Node, Reveal, Shown, node, shown
from studio.web.views.why import because

MOST_INTERNAL = 60
RAW_LIMIT = 200_000
"""Characters of one JSON text in Raw before it is cut."""
RAW_PART = 4_000
"""Characters of one text in it, and entries of one list or map."""


@dataclass(frozen=True, slots=True)
class StateView:
    sizes: SizesView
    nodes: tuple[Node, ...]
    rest: Node | None
    """Stands for the channels that are not listed yet."""
    internal: tuple[Node, ...]
    internal_count: int
    imports: tuple[str, ...]
    """What loading a state that is a pickle would import."""
    empty: str
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Question:
    id: str
    text: str
    answered: bool
    answer: str
    value: Node | None


@dataclass(frozen=True, slots=True)
class TaskView:
    name: str
    status: str
    status_kind: str
    because: str
    triggers: tuple[str, ...]
    writes: tuple[Line, ...]
    questions: tuple[Question, ...]
    earlier: tuple[str, ...]
    """Answers to questions that it asked before."""
    error: str
    arg: str
    arg_href: str
    """Where the argument of a waiting Send is edited; empty where it cannot be."""
    links: tuple[tuple[str, str], ...]
    id: str
    path: str
    inferred: bool


@dataclass(frozen=True, slots=True)
class TasksView:
    tasks: tuple[TaskView, ...]
    empty: str


@dataclass(frozen=True, slots=True)
class RawView:
    facts: tuple[tuple[str, str], ...]
    sections: tuple[tuple[str, str, int], ...]
    """(title, JSON text, characters that were cut)."""


def state_view(state: State, sizes: Compared, place: Place, tree: CheckpointTree, reveal: Reveal) -> StateView:
    closed = state.closed and not state.values
    opened = (place.path,) if place.path else ()
    names = list(state.values)
    wanted = (tagged.split_path(place.path) or [""])[0] if place.path else ""
    start = names.index(wanted) // PAGE * PAGE if wanted in state.values else 0
    depth = 1 if len(names) <= 12 else 0

    def top(index: int) -> Node:
        value, path = state.values[names[index]], tagged.join_path([names[index]])
        note, hint = labels.REBUILT_WORDS.get(state.rebuilt.get(names[index], ""), ("", ""))
        drawn = node(
            path,
            names[index],
            value,
            opened=opened,
            depth=0 if _big(value) else depth,
            position=index + 1,
            of=len(names),
            selected=place.path,
            reveal=reveal,
            note=note,
            hint=hint,
        )
        return sized(drawn, sizes)

    def lost(name: str) -> Node:
        label = labels.REBUILT_WORDS["unavailable"][0]
        why = gate.line(state.unrebuilt[name], 300)
        return replace(node("", name, None, note=label, hint=why), value=Shown(why, "opaque"))

    return StateView(
        sizes=sizes_view(sizes, place),
        nodes=(
            *(top(index) for index in range(start, min(start + PAGE, len(names)))),
            *(lost(name) for name in list(state.unrebuilt)[:MOST_INTERNAL]),
        ),
        rest=replace(node("", "", None), more=len(names) - start - PAGE, next_start=start + PAGE)
        if len(names) > start + PAGE
        else None,
        internal=tuple(
            node("", name, value, depth=0, position=index + 1, of=len(state.internal))
            for index, (name, value) in enumerate(list(state.internal.items())[:MOST_INTERNAL])
        ),
        internal_count=len(state.internal),
        empty=""
        if names or state.unrebuilt
        else gate.line(labels.empty_state(state, "This checkpoint holds no state channels yet."), 400),
        imports=labels.imports(state),
        problems=noted.sentences(
            (
                problem
                for problem in (*state.problems, *toolcalls.problems(state))
                if problem.kind != "rebuilt-unavailable"  # said at the channel
                and not (closed and problem.kind == "undecodable")  # said in place of the values
            ),
            tree,
            state.checkpoint.address,
        ),
    )


def _big(value: Value) -> bool:
    return isinstance(value, (list, dict)) and len(value) > 12 or isinstance(value, str)


def subtree(
    state: State, place: Place, path: str, reveal: Reveal, *, start: int = 0, unfold: bool = True, whole: bool = False
) -> Node:
    """One node of the State tree, open or closed; RefError when the path is not there."""
    steps = tagged.split_path(path)
    value = tagged.get(dict(state.values), path)
    return node(
        path,
        steps[-1] if steps else "",
        value,
        depth=1 if unfold else 0,
        level=len(steps),
        selected=place.path,
        reveal=reveal,
        start=start,
        whole=whole,
    )


def tasks_view(state: State, place: Place, tree: CheckpointTree, runs: Runs) -> TasksView:
    tasks = tuple(_task(task, argument_path(state, task), place, tree, runs) for task in state.tasks)
    return TasksView(tasks, "" if tasks else noted.nothing_scheduled(state))


def _task(task: Task, arg_path: str | None, place: Place, tree: CheckpointTree, runs: Runs) -> TaskView:
    return TaskView(
        name=gate.line(task.name, 120) if task.name else "name not known",
        status=labels.TASK_WORDS[task.status],
        status_kind=STATUS_KINDS[task.status],
        because=because(task),
        triggers=tuple(gate.line(trigger.channel, 120) for trigger in task.triggers),
        writes=tuple(Line(gate.line(write.channel, 80), shown(write.value, write.channel)) for write in task.writes),
        questions=tuple(_question(interrupt) for interrupt in task.interrupts),
        earlier=tuple(preview.summary(answer, 200) for answer in task.earlier_answers[:8]),
        error=gate.clean(secrets.mask_text(task.error)) if task.error else "",
        arg=preview.summary(task.arg, 300) if task.arg is not None else "",
        arg_href=place.to(path=arg_path).url() if arg_path is not None else "",
        links=tracks(task, place, tree, runs, word=""),
        id=gate.line(task.id or "not known", 80),
        path=gate.line(task.path or "", 200),
        inferred=task.inferred,
    )


def _question(interrupt: Interrupt) -> Question:
    structured = not isinstance(interrupt.value, (str, int, float, bool, type(None)))
    return Question(
        id=gate.line(interrupt.id or "", 80),
        text=questions.asked(interrupt.value).quoted,
        answered=interrupt.answered,
        answer=preview.summary(interrupt.answer, 200) if interrupt.answered else "",
        value=node("", "question", interrupt.value, depth=2) if structured else None,
    )


def raw_view(state: State, show_secrets: bool) -> RawView:
    header = state.checkpoint
    facts = (
        ("thread_id", header.thread_id),
        ("checkpoint_ns", header.checkpoint_ns or "(root)"),
        ("checkpoint_id", header.checkpoint_id),
        ("parent_checkpoint_id", header.parent_checkpoint_id or "none"),
        ("step", "none" if header.step is None else str(header.step)),
        ("source", header.source or "none"),
        ("created_at", labels.when(header.created_at) + " UTC"),
        ("size", labels.size(header.size_bytes)),
        ("format", "not known" if state.format is None else f"checkpoint.v {state.format}"),
        ("stored in", header.origin),
    )
    names = labels.imports(state)
    sections = (
        *([_names(names)] if names else []),
        _section("values", dict(state.values), show_secrets),
        _section("scheduling channels", dict(state.internal), show_secrets),
        _section("metadata", dict(state.metadata), show_secrets),
        _section("channel_versions", _plain(state.channel_versions), True),
        _section("versions_seen", _plain(state.versions_seen), True),
    )
    return RawView(tuple((name, gate.line(value, 300)) for name, value in facts), sections)


def _plain(value: Any) -> Any:
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _names(names: tuple[str, ...]) -> tuple[str, str, int]:
    text = "\n".join(names)
    return labels.would_import(names), text[:RAW_LIMIT], max(0, len(text) - RAW_LIMIT)


def _section(title: str, value: dict[str, Any], show_secrets: bool) -> tuple[str, str, int]:
    text = tagged.dumps(masking.document(value, show_secrets=show_secrets, limit=RAW_PART), indent=2)
    return title, text[:RAW_LIMIT], max(0, len(text) - RAW_LIMIT)
