"""`studio show`: one checkpoint, or one value of it."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from typing import Any

from studio import kinship
from studio.cli.common import note_problems, opened, say_problems
from studio.cli.documents import Documents, all_problems
from studio.cli.out import Out
from studio.codec import jsontext
from studio.comparing import unexplained
from studio.growing import Compared
from studio.model import Address, Checkpoint, State, Task, Value, Verdict
from studio.render import explained as explained_words
from studio.render import labels, secrets, sizes
from studio.render.gate import clean, line
from studio.render.masking import name_in
from studio.render.threadnames import thread_name
from studio.session import Session
from studio.tagged import get

MOST_NAMES = 300
"""Names of a pickle that are listed."""

TASK_COLOURS = {"done": "green", "failed": "red", "paused": "yellow", "pending": "blue", "unknown": "dim"}


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        address = session.resolve(options.ref, options.thread, options.ns)
        documents = Documents(out.show_secrets)
        if options.raw:
            _raw(session, address, options, documents, out)
            note_problems(out, session)
            return int(session.refused_key(address))
        state = session.state(address)
        if options.path is not None:
            _one_value(address, options.path, {**state.internal, **state.values}, documents, out)
        elif out.as_json:
            more = documents.calls(session, state) | documents.kin(session.kin(state.checkpoint))
            more |= {"sizes": documents.sizes(session.sizes(address))} if options.sizes else {}
            document = documents.shown(state, session.checked(state))
            document["problems"] += documents.problems(session.problems())
            out.document({**document, **more})
        else:
            _text(session, state, out)
            if options.sizes:
                _sizes(session.sizes(address), out)
        if options.path is not None or not out.as_json:
            note_problems(out, session)
        return int(session.refused_key(address))


def _raw(session: Session, address: Address, options: Namespace, documents: Documents, out: Out) -> None:
    raw = session.raw(address)
    if options.path is not None:
        from studio.value import decode

        _one_value(address, options.path, decode(raw.tag, raw.blob), documents, out)
    elif out.as_json:
        out.document(documents.raw(raw))
    else:
        out.say(pretty(documents.raw(raw)))


def _one_value(address: Address, path: str, root: Value, documents: Documents, out: Out) -> None:
    value, key = get(root, path), name_in(path, root)
    if out.as_json:
        out.document({"checkpoint": documents.address(address), "path": path, "value": documents.value(value, key)})
    elif isinstance(value, str) and (out.show_secrets or not secrets.hides_all(key, value)):
        out.say(clean(value if out.show_secrets else secrets.mask_text(value)))
    else:
        out.say(pretty(documents.value(value, key)))


def pretty(doc: Any) -> str:
    """Tagged JSON for reading: indented, real characters, gated."""
    return clean(jsontext.dumps(doc, indent=2))


def _text(session: Session, state: State, out: Out) -> None:
    checkpoint = state.checkpoint
    row = session.row(checkpoint.address)
    out.say(out.paint(f"#{row.number} {line(row.label)}", "bold") + out.paint(f"  {line(checkpoint.checkpoint_id)}", "dim"))
    kin = session.kin(checkpoint)
    facts = [
        ("thread", thread_name(checkpoint.thread_id)),
        ("namespace", line(checkpoint.checkpoint_ns)),
        ("called from", _caller(session, state)),
        ("parent", f"#{row.parent_number}" if row.parent_number else ""),
        ("made from", _named(session, kin.made_from, checkpoint.thread_id) if kin.made_from is not None else ""),
        ("forks", ", ".join(_named(session, at, checkpoint.thread_id) for at in kin.made)),
        ("source", _source(checkpoint)),
        ("gap", explained_words.gap_note(row)),
        ("created", labels.when(checkpoint.created_at)),
        ("size", labels.size(checkpoint.size_bytes)),
        ("status", labels.status_word(row.status or state.status)),
        (
            "next",
            "not known from this file"
            if state.next is None
            else ", ".join(line(name or "?") for name in state.next) or "nothing",
        ),
    ]
    out.table([[name, value] for name, value in facts if value], [("dim",), ()])
    if words := session.view_words:
        out.say(out.paint(f"shown: {line(words, 200)}", "dim"))
    explained = session.checked(state)
    _values(state.values, "state", state, out, explained)
    if state.tasks:
        out.say()
        out.say(out.paint("tasks", "bold"))
        runs = session.subgraph_runs(state)
        for task in state.tasks:
            _task(task, out)
            for run in runs.get(task.id or "", ()):
                ends = " … ".join(f"#{session.number(one)}" for one in dict.fromkeys((run.first, run.last)))
                out.say(f"    subgraph {ends}  {out.paint(line(run.checkpoint_ns, 100), 'dim')}")
    if state.metadata:
        _values(state.metadata, "metadata", None, out)
    if state.internal:
        out.say()
        out.say(out.paint(f"{labels.plural(len(state.internal), 'scheduling channel')}: --json shows them", "dim"))
    told = [one for one in all_problems(state) if one.kind != "rebuilt-unavailable"]  # said at the channel
    say_problems(out, [*told, *unexplained(state, explained)])


def _named(session: Session, at: Address, thread_id: str) -> str:
    """`#4`, or `#4 of thread refund-4711` where that is another one."""
    return kinship.name(session, at) + (f" of thread {thread_name(at.thread_id, 80)}" if at.thread_id != thread_id else "")


def _source(checkpoint: Checkpoint) -> str:
    if checkpoint.source is None and checkpoint.step is None:
        return "not known from this file"
    step = f"step {checkpoint.step}" if checkpoint.step is not None else "step not known"
    return f"{line(checkpoint.source) if checkpoint.source is not None else 'not known'}, {step}"


def _caller(session: Session, state: State) -> str:
    """`#4 task writer`; empty in the root graph, and where the caller is not in this file."""
    found = session.caller(state)
    if found is None:
        return ""
    return f"#{session.number(found.address)} task {line(found.name or 'not known')}"


def _values(values: Any, title: str, state: State | None, out: Out, explained: Mapping[str, Verdict] | None = None) -> None:
    out.say()
    out.say(out.paint(title, "bold"))
    lost = state.unrebuilt if state is not None else {}
    if not values and not lost:
        empty = labels.empty_state(state, "nothing") if state is not None else "nothing"
        out.say(out.paint(f"  {line(empty, 300)}", "dim"))
        _imports(labels.imports(state) if state is not None else (), out)
    width = min(28, max((len(line(name)) for name in (*values, *lost)), default=0))
    for name, value in values.items():
        rebuilt = state.rebuilt.get(name) if state is not None else None
        note = f" ({labels.REBUILT_WORDS[rebuilt][0]})" if rebuilt else ""
        found = (explained or {}).get(name)
        if found is not None and explained_words.mark(found) == "≠":
            note += " ≠ changed outside its writes" if found.how == "outside" else " ≠ not explained by its writes"
        items = f"{len(value):,} × " if isinstance(value, list) and len(value) > 3 else ""
        shown = out.brief(value, max(40, out.width - width - 6), name)
        out.say(f"  {out.paint(line(name).ljust(width), 'cyan')}  {out.paint(items, 'dim')}{shown}{out.paint(note, 'yellow')}")
    for name, why in lost.items():
        told = f"{labels.REBUILT_WORDS['unavailable'][0]}: {line(why, 300)}"
        out.say(f"  {out.paint(line(name).ljust(width), 'cyan')}  {out.paint(told, 'yellow')}")
    for how in sorted(set(state.rebuilt.values()) - {"unavailable"}) if state is not None else ():
        label, sentence = labels.REBUILT_WORDS[how]
        out.say(out.paint(f"  {label} = {sentence}", "dim"))


def _imports(names: tuple[str, ...], out: Out) -> None:
    """What loading a pickle would import: every name, as many to a line as fit."""
    if not names:
        return
    out.say(out.paint(f"  {labels.would_import(names)}:", "dim"))
    words = [f"{name}," for name in names[:MOST_NAMES]]
    words[-1] = words[-1].removesuffix(",")
    row = ""
    for word in words:
        if row and len(row) + 1 + len(word) > out.width - 4:
            out.say(f"    {row}")
            row = word
        else:
            row = f"{row} {word}" if row else word
    out.say(f"    {row}")
    if len(names) > MOST_NAMES:
        out.say(out.paint(f"    and {len(names) - MOST_NAMES:,} more (--json lists all)", "dim"))


def _sizes(found: Compared, out: Out) -> None:
    """The channels, largest first: bytes, share of the record, growth since the parent."""
    out.say()
    out.say(out.paint("sizes", "bold"))
    out.table(
        [
            [f"  {line(one.name, 40)}", one.size.rjust(8), one.share.rjust(5), one.bar, one.grew]
            for one in sizes.lines(found, bar=20, names=40)
        ],
        [("cyan",), (), ("dim",), ("blue",), ()],
    )


def _task(task: Task, out: Out) -> None:
    name = line(task.name or "?") + (" (derived)" if task.inferred else "")
    out.say(f"  {out.paint(name, 'bold')}  {out.paint(labels.TASK_WORDS[task.status], TASK_COLOURS[task.status])}")
    if task.triggers:
        out.say(out.paint("    ran because of " + ", ".join(line(one.channel) for one in task.triggers), "dim"))
    if task.arg is not None:
        out.say(f"    argument {out.brief(task.arg, 100)}")
    for write in task.writes:
        out.say(f"    wrote {line(write.channel)} = {out.brief(write.value, 100, write.channel)}")
    if task.unstored:
        out.say(out.paint(f"    {labels.UNSTORED}: {line(task.unstored, 200)}", "yellow"))
    if task.error:
        text = task.error if out.show_secrets else secrets.mask_text(task.error)
        out.say(out.paint(f"    error {line(text, 400)}", "red"))
    if task.earlier_answers:
        out.say("    answered before " + ", ".join(out.brief(one, 100) for one in task.earlier_answers[:8]))
    for one in task.interrupts:
        out.say(out.paint(f"    asks {out.brief(one.value, 200)}  id {line(one.id or 'none')}", "yellow"))
        if one.answered:
            out.say(f"    answered {out.brief(one.answer, 200)}")
