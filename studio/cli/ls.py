"""`studio ls`: the threads of a file, or of each file in a folder, one by one as they are read."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from studio.cli.common import files_in, key_in, note_no_forks, open_session, say_problems
from studio.cli.out import Out
from studio.errors import RefError, StudioError
from studio.model import Problem, Thread
from studio.render import labels
from studio.render.gate import line
from studio.render.secrets import shown
from studio.render.threadnames import thread_name
from studio.session import Session

if TYPE_CHECKING:
    from studio.cli.documents import Documents

COLOURS = {"done": "green", "ready": "blue", "paused": "yellow", "failed": "red", "unknown": "dim"}

STATUS = max(len(labels.status_word(status)) for status in COLOURS)


def run(options: Namespace, out: Out) -> int:
    folder = os.path.isdir(options.location)
    inside = files_in(options)
    key_in(options)  # a key that is none is no problem of one file of the folder
    with ExitStack() as stack:
        sessions, problems = [], list(inside.problems)
        for path in inside.files:
            try:
                sessions.append(open_session(path, options, out))
                stack.callback(sessions[-1].close)
                note_no_forks(sessions[-1], options, out)
            except StudioError as error:
                if not folder:
                    raise
                problems.append(Problem(error.slug, path, error.message))
        if options.thread is not None and sessions and not any(_has(session, options.thread) for session in sessions):
            raise RefError(f"no thread {options.thread!r}", "`studio ls` without --thread lists them", "no-such-thread")
        if out.as_json:
            location = os.path.abspath(options.location) if folder else sessions[0].location
            return _json(location, "folder" if folder else sessions[0].kind, sessions, options.thread, problems, out)
        code = 0
        for session in sessions:
            if folder:
                out.say(out.paint(line(os.path.basename(session.location)), "bold", "cyan"))
            if words := session.view_words:
                out.say(out.paint(f"shown: {line(words, 200)}", "dim"))
            try:
                _text(session, options.thread, out)
                _beside(session, out)
            except StudioError as error:  # gone, or no database any more, since it was opened
                if not folder:
                    raise
                problems.append(Problem(error.slug, session.location, error.message))
                code = error.exit_code
        found = [*problems, *_found(sessions, folder)]
        say_problems(out, [problem for problem in found if problem.kind != "second-table"])  # said beside the threads
        return code or int(any(session.refused_key() for session in sessions))


def _has(session: Session, thread: str) -> bool:
    """Whether a file holds rows of a thread; without looking at any other thread."""
    try:
        return bool(session.one_thread(thread))
    except RefError:
        return False


def _threads(session: Session, wanted: str | None) -> Iterator[Thread]:
    return (thread for thread in session.threads() if wanted in (None, thread.thread_id))


def _text(session: Session, wanted: str | None, out: Out) -> None:
    width, count = 0, 0
    for thread in _threads(session, wanted):
        if not count:
            width = max(24, min(40, len(thread_name(thread.thread_id))))
            out.say(
                out.paint(
                    f"{'thread':<{width}}  {'status':<{STATUS}}  {'checkpoints':>11}  {'last':<19}  {'size':>8}  text", "dim"
                )
            )
        count += 1
        out.say(_line(thread, out, width), flush=count == 1)
    if not count:
        out.say("not in this file" if wanted is not None else "no threads yet")


def _beside(session: Session, out: Out) -> None:
    """What else the file holds, in one line each."""
    from studio.neighbours import in_words, rows_in_words

    neighbours = session.neighbours()
    name = line(os.path.basename(session.location), 60)
    others = [f"{line(one.checkpoints, 60)} ({rows_in_words(one)})" for one in neighbours.sets() if not one.shown]
    if others:
        out.say(out.paint(f"other checkpoints in this file: {', '.join(others[:6])} — studio ls {name} --tables NAME", "dim"))
    if found := in_words(neighbours.tables()):
        out.say(out.paint(f"also in this file: {line(', '.join(found), 300)} — studio tables {name}", "dim"))


def _found(sessions: list[Session], folder: bool) -> list[Problem]:
    """What is wrong in the files; in a folder each place says its file."""
    return [_in_file(one, session.location) if folder else one for session in sessions for one in session.problems()]


def _in_file(problem: Problem, location: str) -> Problem:
    if location in problem.where:
        return problem
    return Problem(problem.kind, f"{os.path.basename(location)}, {problem.where}", problem.message)


def _json(location: str, kind: str, sessions: list[Session], wanted: str | None, problems: list[Problem], out: Out) -> int:
    """One document, written thread by thread; the exit code. A file that cannot be read on ends its part of it as a problem."""
    from studio.cli.documents import Documents
    from studio.tagged import dumps

    documents = Documents(out.show_secrets)
    code = 0
    beside: dict[str, Any] = {"tables": [], "table_sets": [], "views": []}

    out.say(f'{{"location": {dumps(location)}, "kind": {dumps(kind)}, "threads": [')
    first = True
    for session in sessions:
        try:
            for thread in _threads(session, wanted):
                out.say(("" if first else ", ") + dumps({**documents.thread(thread), "tables": session.view.tables}), flush=first)
                first = False
            for name, found_beside in _beside_documents(session, documents).items():
                beside[name] += found_beside
        except StudioError as error:
            problems.append(Problem(error.slug, session.location, error.message))
            code = error.exit_code
    found = [*problems, *_found(sessions, kind == "folder")]
    out.say("], " + "".join(f'"{name}": {dumps(doc)}, ' for name, doc in beside.items()), flush=False)
    out.say(f'"problems": {dumps(documents.problems(found))}}}')
    return code or int(any(session.refused_key() for session in sessions))


def _beside_documents(session: Session, documents: Documents) -> dict[str, list[Any]]:
    """Which part of a file is shown, its sets of checkpoints, its other tables; each says its file, as a folder has several."""
    neighbours = session.neighbours()
    where = {"location": session.location}
    return {
        "tables": [{**documents.table(one), **where} for one in neighbours.tables()],
        "table_sets": [{**documents.table_set(one), **where} for one in neighbours.sets()],
        "views": [{"tables": session.view.tables, "without_wal": session.view.without_wal, **where}],
    }


def _line(thread: Thread, out: Out, width: int) -> str:
    status = out.paint(f"{labels.status_word(thread.status):<{STATUS}}", COLOURS.get(thread.status, "dim"))
    rule = f" (active: {line(thread.active, 80)})" if thread.active else ""
    branches = f" {len(thread.heads)} branches{rule}" if len(thread.heads) > 1 else ""
    scratch = f" +{thread.scratch_checkpoints} forked" if thread.scratch_checkpoints else ""
    metadata = " ".join(f"{line(key)}={_fact(key, value, out)}" for key, value in list(thread.metadata.items())[:4])
    room = max(40, out.width - width - STATUS - 48)
    first = f"{thread.title} — {thread.first_text or ''}" if thread.title else thread.first_text or ""
    said = line(shown(first, show_secrets=out.show_secrets), room)
    closed = out.paint(line(thread.closed, 120), "yellow") if thread.closed and not first else ""
    parts = [said or closed, *([line(thread.model, 40)] if thread.model else [])]
    if "cost_usd" in thread.facts:
        from studio.wording import cost_words

        parts.append(cost_words(thread.facts["cost_usd"]))
    tail = "  ".join(
        part for part in [*parts, out.paint(metadata, "cyan"), out.paint((branches + scratch).strip(), "magenta")] if part
    )
    name = out.paint(f"{thread_name(thread.thread_id):<{width}}", "bold")
    facts = f"{thread.checkpoints:>11}  {labels.when(thread.last_at):<19}  {labels.size(thread.size_bytes):>8}"
    return f"{name}  {status}  {facts}  {tail}".rstrip()


def _fact(key: str, value: Any, out: Out) -> str:
    if isinstance(value, str):
        return line(shown(value, key, show_secrets=out.show_secrets), 40)
    return out.brief(value, 40, key)
