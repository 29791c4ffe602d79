"""The way a run starts: in which file, from which copy, with or without the checkpoint's id, with which rows carried along.

The rules come from the fork recipes: a plain fork runs with its id; one with rows of its own, a fork inside a subgraph and a
paused head run without it, since LangGraph would otherwise run finished tasks again. A checkpoint of the user's file is copied
first. Where a question is answered, the finished siblings of the asking task keep their results.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field
from msgspec.structs import replace

from studio.errors import RefError, UsageError
from studio.forks.writing import check_writable
from studio.history.namespaces import ns_task_id
from studio.history.walk import upward
from studio.model import Address, Interrupt, State, Task, WriteRow
from studio.render.gate import line
from studio.render.preview import summary
from studio.requests import ForkRequest, RunRequest, SubgraphStart

if TYPE_CHECKING:
    from studio.session import Session

NOTHING_LEFT = "Nothing is left to run here: the graph had ended. Give it an input, or fork with a goto."
_CONTROL = ("__error__", "__error_source_node__", "__interrupt__", "__resume__")
_STEPS_ASKED = 200
"""Steps of a subgraph to look through for a question."""
_OTHER_METADATA = frozenset(
    {"source", "step", "parents", "writes", "thread_id", "run_id", "created_by", "run_attempt", "assistant_id", "graph_id",
     "revision_id", "counters_since_delta_snapshot", "user_agent"}
)  # fmt: skip
_OTHER_PREFIXES = ("langgraph_", "checkpoint_", "__", "ls_", "lc_")


class Way(Struct, frozen=True):
    database: str
    inside: Address | None = None
    """The fork inside a subgraph that a run of its root is a run of."""
    copy_of: Address | None = None
    """Copied first, and the copy runs; None = the checkpoint runs where it stands."""
    brings: bool = False
    """The checkpoint itself is put into the scratch file, and the run makes children of it."""
    with_id: bool = True
    carry: tuple[dict[str, Any], ...] = ()
    """Rows of the origin's tasks for the copy, as the child takes them."""
    resume: Any = None
    has_resume: bool = False
    """Answer whatever is asked first."""
    answers: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[dict[str, Any], ...] = ()
    """Which questions the ids in `answers` mean, for a copy that asks them under new ids."""
    ask_first: bool = False
    runs: tuple[str, ...] = ()
    keep: frozenset[str] = frozenset()
    """Ids of finished tasks of the copied step, whose results the copy itself takes along."""
    kept: tuple[Task, ...] = ()
    """Finished tasks that are not run again."""
    beside: tuple[Task, ...] = ()
    """Tasks of the steps that called the subgraph, which run with it."""
    asks: tuple[str, ...] = ()
    answered: tuple[Task, ...] = ()
    """Tasks whose earlier answers go along with the new one."""
    reused: tuple[str, ...] = ()
    """Answers that count again, in words."""
    subgraphs: tuple[SubgraphStart, ...] = ()
    warnings: tuple[str, ...] = ()


def choose_way(session: Session, request: RunRequest, state: State) -> Way:
    """How to run from this checkpoint. Raises UsageError for an answer that fits no question, or several.

    Raises PatchError where nothing can be stored under the ids.
    """
    check_writable(request.address)
    inner = _fork_inside(session, request)
    if inner is not None:
        request, state = replace(request, address=inner), session.state(inner)
    address = request.address
    own = _is_own(session, request, state)
    database = session.location if request.in_place or session.scratch.is_store else session.scratch.path
    answers = _answers(request, state.tasks)
    if request.new_thread is not None:
        session.forker.check_thread(address, request.new_thread)
        way = Way(database, copy_of=address, with_id=not address.checkpoint_ns)
    elif address.checkpoint_ns:
        way = _inside_subgraph(session, request, state, own, database)
    else:
        way = _in_root(session, request, state, own, database)
    if way.copy_of is not None and not request.has_input:
        way = _with_rows(session, request, state, way, answers)
    elif request.answers:
        way = replace(way, answers=_by_id(answers))
    elif request.has_resume:
        way = replace(way, resume=request.resume, has_resume=True)
    return replace(_in_words(request, state, _with_tasks_beside(session, state, way), answers), inside=inner)


def _fork_inside(session: Session, request: RunRequest) -> Address | None:
    """The fork inside a subgraph that a root checkpoint was made for and that no run has gone on from.

    A run of that root is a run of the fork: a copy of the root alone would leave the edit inside behind.
    """
    if request.address.checkpoint_ns or request.has_input or request.has_resume or request.answers:
        return None
    tree = session.tree(request.address.thread_id)
    found, at = None, request.address
    while not tree.children(at):
        inside = tree.inner(at)
        if len(inside) != 1 or tree.origin(inside[0]) is None:
            return found
        found = at = inside[0]
    return None


def _with_tasks_beside(session: Session, state: State, way: Way) -> Way:
    """What becomes of the other tasks of the steps that called a subgraph: kept by the copy, or run with it."""
    at = way.copy_of or state.checkpoint.address
    if not at.checkpoint_ns:
        return way
    kept, again = session.forker.beside(ForkRequest(at, keep=way.keep))
    own = {task.id for task in state.tasks}
    return replace(way, kept=(*way.kept, *kept), beside=tuple(task for task in again if task.id not in own))


def _is_own(session: Session, request: RunRequest, state: State) -> bool:
    """Whether the checkpoint lies in the file that the run writes to."""
    origin = state.checkpoint.origin
    if session.scratch.is_store:
        return True
    if request.in_place and origin == "scratch":
        raise UsageError("this checkpoint is in the scratch file, not in your own", "run it without --in-place", "not-in-base")
    return request.in_place or origin == "scratch"


def _newest(session: Session, request: RunRequest, ns: str = "") -> str | None:
    """Largest id of a namespace in the file that the run writes to: what LangGraph resumes without an id."""
    overlay = session.overlay
    store = overlay.base if request.in_place or session.scratch.is_store else overlay.scratch
    rows = store.checkpoints(request.address.thread_id) if store is not None else ()
    return max((header.checkpoint_id for _, header in rows if header.checkpoint_ns == ns), default=None)


def _in_root(session: Session, request: RunRequest, state: State, own: bool, database: str) -> Way:
    address = request.address
    tree = session.tree(address.thread_id)
    rows = session.overlay.writes([address]).get(address, ())
    has_more = bool(rows) or bool(tree.inner(address))
    newest = own and _newest(session, request) == address.checkpoint_id
    if request.has_input:
        return Way(database, brings=not own, with_id=not newest)
    if own and not tree.children(address) and (newest or not has_more):
        plain = not has_more and state.checkpoint.source in ("fork", "update")
        done = () if plain or not newest else tuple(task for task in state.tasks if task.status == "done")
        return Way(database, with_id=plain or not newest, kept=done)
    return Way(database, copy_of=address)


def _inside_subgraph(session: Session, request: RunRequest, state: State, own: bool, database: str) -> Way:
    """A run inside a subgraph is a run of the whole thread: the copied path from the root down must be its head."""
    address = state.checkpoint.address
    tree = session.tree(address.thread_id)
    parents = state.metadata.get("parents")
    root = Address(address.thread_id, "", str(parents.get("")) if isinstance(parents, dict) else "")
    if own and root in tree and not tree.children(root) and not tree.children(address):
        newest = [_newest(session, request, ns) for ns in ("", address.checkpoint_ns)]
        if newest == [root.checkpoint_id, address.checkpoint_id]:
            return Way(database, with_id=False)
    return Way(database, copy_of=address, with_id=False)


def run_address(session: Session, address: Address) -> Address:
    """The root checkpoint under which a checkpoint runs: itself, or the one that called its subgraph."""
    if not address.checkpoint_ns:
        return address
    parents = session.state(address).metadata.get("parents")
    if not isinstance(parents, dict) or not isinstance(parents.get(""), str):
        raise RefError("the checkpoint that called this subgraph is not known", "run a checkpoint of the outer graph")
    return Address(address.thread_id, "", parents[""])


# ---------------------------------------------------------------------- answers and carried rows


class Answer(Struct, frozen=True):
    """What a person answers to one recorded question."""

    task: Task
    question: Interrupt
    value: Any


def _answers(request: RunRequest, tasks: Sequence[Task]) -> list[Answer]:
    """Which question each answer is for. A plain `--resume` counts for the only question that there is."""
    asked = _questions(tasks)
    known = tuple(dict.fromkeys(question.id for _, question in asked if question.id))
    found = []
    for ident, value in request.answers.items():
        meant = [(task, question) for task, question in asked if question.id == ident]
        if not meant:
            hint = f"questions here: {', '.join(known)}" if known else "no question with an id is open here"
            raise UsageError(f"no question {ident!r} at this checkpoint", hint, "no-such-question", candidates=known)
        task, question = next((one for one in meant if not one[1].answered), meant[0])
        found.append(Answer(task, question, value))
    if request.has_resume and not request.answers:
        meant = [one for one in asked if not one[1].answered] or asked
        ids = tuple(question.id for _, question in meant if question.id)
        if len(set(ids)) > 1:
            hint = "answer each by its id: --answer ID=JSON"
            raise UsageError("several questions are open here", hint, "several-questions", candidates=ids)
        if len(meant) == 1:
            found.append(Answer(*meant[0], request.resume))
    return found


def _questions(tasks: Iterable[Task]) -> list[tuple[Task, Interrupt]]:
    return [(task, question) for task in tasks for question in task.interrupts]


def _with_rows(session: Session, request: RunRequest, state: State, way: Way, answers: Sequence[Answer]) -> Way:
    """What a copy takes along. Answers become rows under the copy where that can be, else LangGraph is told as it runs."""
    live = not session.tree(request.address.thread_id).children(request.address)
    answering, inside = bool(answers or request.has_resume), bool(request.address.checkpoint_ns)
    tasks = _numbered(state.tasks)
    keeps = live or bool(answers)
    inner = _asked_inside(session, request.address.thread_id, answers) if not inside else None
    if inner is not None or inside:
        at = inner or request.address
        own = session.state(at).tasks if keeps else ()
        asking = {task.id for task in own if any(_asks(task, answer.question) for answer in answers)}
        keep = frozenset(task.id for task in own if task.status == "done" and task.id is not None and task.id not in asking)
        way = replace(way, copy_of=at, with_id=False, keep=keep)
        return _told(request, answers, tasks, way) if answering else way
    if not keeps:
        return _told(request, answers, tasks, way) if answering else way
    asked_by = [answer.task for answer in answers]
    by_rows = all(sum(not one.answered for one in task.interrupts) <= 1 and not task.calls for task in asked_by)
    by_rows = by_rows and not any(task.subgraph_ns for task in asked_by)
    rows = session.overlay.writes([request.address]).get(request.address, ())
    carry, kept, answered = [], [], []
    for name, ordinal, task in tasks:
        mine = [row for row in rows if row.task_id == task.id]
        answer = next((one for one in answers if one.task is task), None)
        item: dict[str, Any] = {"name": name, "ordinal": ordinal, "rows": []}
        if answer is not None and by_rows:
            before = next((row for row in mine if row.channel == "__resume__"), None)
            item |= {"answer": answer.value, "task_path": mine[0].task_path if mine else None}
            item |= {"answered": _row(before) if before is not None else None, "again": answer.question.answered}
            carry.append(item)
            answered += [task] if before is not None else []
        elif answer is None and task.status == "done":
            item["rows"] = [_row(row) for row in mine if row.channel not in _CONTROL]
            carry.append(item)
            kept.append(task)
    if carry:
        way = replace(way, carry=tuple(carry), kept=tuple(kept), answered=tuple(answered), with_id=False)
    # answers by row are told too, should the tasks differ under this code
    return _told(request, answers, tasks, way) if answering else way


def _told(request: RunRequest, answers: Sequence[Answer], tasks: list[tuple[str, int, Task]], way: Way) -> Way:
    """One answer goes to the first question of the run, where no other can be asked first; else they wait for their questions."""
    others = [one for _, _, task in tasks for one in task.interrupts if not one.answered]
    mistakable = any(all(one is not answer.question for answer in answers) for one in others)
    if len(answers) > 1 or (answers and mistakable and answers[0].question.id):
        return replace(way, answers=_by_id(answers), asked=_asked(tasks), ask_first=True)
    return replace(way, resume=answers[0].value if answers else request.resume, has_resume=True)


def _by_id(answers: Iterable[Answer]) -> dict[str, Any]:
    return {answer.question.id: answer.value for answer in answers if answer.question.id}


def _asked_inside(session: Session, thread_id: str, answers: Sequence[Answer]) -> Address | None:
    """The innermost checkpoint that asks, when a question of a single task was asked in a subgraph."""
    found: Address | None = None
    current = [answer.task for answer in answers]
    while len(current) == 1 and current[0].subgraph_ns:
        tree = session.tree(thread_id)
        leaves = tree.leaves(current[0].subgraph_ns[-1])
        for at in islice(upward(tree, leaves[-1]), _STEPS_ASKED) if leaves else ():
            asking = [task for task in session.state(at).tasks if _asks(task, answers[0].question)]
            if asking:
                found, current = at, asking
                break
        else:
            break
    return found


def _asks(task: Task, question: Interrupt) -> bool:
    """Whether a task asks this question: in older releases, which know no ids, any question."""
    return any(question.id in (None, one.id) for one in task.interrupts)


def _numbered(tasks: Iterable[Task]) -> list[tuple[str, int, Task]]:
    """(name, how often that name came before, task): what tells the tasks of several Sends apart."""
    seen: dict[str, int] = {}
    found = []
    for task in tasks:
        name = task.name or "?"
        found.append((name, seen.get(name, 0), task))
        seen[name] = seen.get(name, 0) + 1
    return found


def _asked(tasks: Iterable[tuple[str, int, Task]]) -> tuple[dict[str, Any], ...]:
    return tuple(
        {"name": name, "ordinal": ordinal, "interrupts": [question.id for question in task.interrupts]}
        for name, ordinal, task in tasks
        if task.interrupts
    )


def _row(row: WriteRow) -> dict[str, Any]:
    tag, blob = (row.tag, row.value or b"") if row.sealed is None else (row.sealed.tag, row.sealed.blob)  # as they are stored
    value = base64.b64encode(blob).decode("ascii")
    return {"idx": row.idx, "channel": row.channel, "tag": tag, "value": value, "task_path": row.task_path}


# ---------------------------------------------------------------------- words


def _names(tasks: Iterable[Task]) -> tuple[str, ...]:
    return tuple(task.name or "?" for task in tasks)


def _in_words(request: RunRequest, state: State, way: Way, answers: Sequence[Answer]) -> Way:
    if request.has_input:
        return replace(way, runs=("__start__",))
    kept = {task.id for task in way.kept}
    again = [task for task in state.tasks if task.id is None or task.id not in kept]
    asks = [
        line(f"{task.name or 'a task'} asks: {summary(question.value, 120)}", 200)
        for task, question in _questions((*again, *way.beside))
        if not any(answer.question is question for answer in answers) and not (request.has_resume and not answers)
    ]
    warnings = []
    if not state.tasks:
        warnings.append(NOTHING_LEFT)
    if (request.has_resume or request.answers) and not _questions(state.tasks):
        warnings.append("Nothing is asked here: the answer goes to the first question of the run.")
    warnings += _repeated(way, again, answers)
    going_on = way.copy_of is None and not way.with_id
    reused = [
        line(f"{task.name or 'a task'} was answered {summary(answer, 120)}", 200)
        for task in (again if going_on else way.answered)
        for answer in task.earlier_answers
    ]
    return replace(
        way,
        runs=_names((*again, *way.beside)),
        asks=tuple(asks),
        reused=tuple(reused),
        subgraphs=tuple(_started(way, task, going_on) for task in (*again, *way.beside) if task.subgraph_ns),
        warnings=tuple(warnings),
    )


def _started(way: Way, task: Task, going_on: bool) -> SubgraphStart:
    """Where the subgraph of a task begins: a task of a copy has a new id, and with it a new namespace without checkpoints."""
    at = way.copy_of.checkpoint_ns if way.copy_of is not None else ""
    if any(at == ns or at.startswith(ns + "|") for ns in task.subgraph_ns):
        how = "chosen"
    elif any(ns_task_id(ns) is None for ns in task.subgraph_ns):
        how = "remembers"
    else:
        how = "continues" if going_on else "restarts"
    return SubgraphStart(line(task.name or "?", 60), how)


def _repeated(way: Way, again: Sequence[Task], answers: Sequence[Answer]) -> list[str]:
    """What a run does once more though nobody chose it: work of other tasks, and of subgraphs that should go on."""
    if way.copy_of is None:
        return []
    chosen = {answer.task.id for answer in answers}
    going_on = chosen if way.copy_of.checkpoint_ns else set()
    mine = list(again) if answers else []
    done = [task for task in (*mine, *way.beside) if task.status == "done" and task.id not in chosen]
    begun = [task for task in (*mine, *way.beside) if task.status != "done" and task.subgraph_ns and task.id not in going_on]
    return [
        *([f"{', '.join(_names(done))} has finished and will run again: its results cannot be carried over."] if done else []),
        *([f"{', '.join(_names(begun))} had begun and will start again from the first node."] if begun else []),
    ]


def stored_config(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the program that wrote a checkpoint gave in `config` (user ids and the like), as far as LangGraph keeps it."""
    return {
        key: value
        for key, value in metadata.items()
        if key not in _OTHER_METADATA and not key.startswith(_OTHER_PREFIXES) and isinstance(value, (str, int, float, bool))
    }
