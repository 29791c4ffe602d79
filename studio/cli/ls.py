"""`studio ls`: the threads of a file, one by one as they are read."""

from __future__ import annotations

from argparse import Namespace

from studio.cli.common import opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.model import Problem, Thread
from studio.render import labels
from studio.render.gate import line
from studio.session import Session

COLOURS = {"done": "green", "ready": "blue", "paused": "yellow", "failed": "red", "unknown": "dim"}


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        documents = Documents(out.show_secrets)
        threads = (thread for thread in session.threads() if options.thread in (None, thread.thread_id))
        if out.as_json:
            _json(session, documents, threads, out)
            return 0
        width, count = 0, 0
        for thread in threads:
            if not count:
                width = max(24, min(40, len(line(thread.thread_id))))
                out.say(out.paint(f"{'thread':<{width}}  {'status':<8} {'rows':>6}  {'last':<19}  {'size':>8}  text", "dim"))
            count += 1
            out.say(_line(thread, documents, out, width), flush=count == 1)
        if not count:
            out.say("no such thread" if options.thread is not None else "no threads yet")
        say_problems(out, _problems(session))
    return 0


def _json(session: Session, documents: Documents, threads: object, out: Out) -> None:
    """One document, written thread by thread."""
    from studio.tagged import dumps

    out.say(f'{{"location": {dumps(session.location)}, "kind": {dumps(session.kind)}, "threads": [')
    first = True
    for thread in threads:  # type: ignore[attr-defined]
        out.say(("" if first else ", ") + dumps(documents.thread(thread)), flush=first)
        first = False
    out.say(f'], "problems": {dumps(documents.problems(_problems(session)))}}}')


def _line(thread: Thread, documents: Documents, out: Out, width: int) -> str:
    status = out.paint(f"{thread.status:<8}", COLOURS.get(thread.status, "dim"))
    branches = f" {len(thread.heads)} branches" if len(thread.heads) > 1 else ""
    scratch = f" +{thread.scratch_checkpoints} forked" if thread.scratch_checkpoints else ""
    metadata = " ".join(
        f"{line(key)}={line(str(documents.text(str(value), key)), 40)}" for key, value in list(thread.metadata.items())[:4]
    )
    room = max(30, out.width - width - 50)
    parts = [line(documents.text(thread.first_text) or "", room)]
    tail = "  ".join(
        part for part in [*parts, out.paint(metadata, "cyan"), out.paint((branches + scratch).strip(), "magenta")] if part
    )
    name = out.paint(f"{line(thread.thread_id):<{width}}", "bold")
    facts = f"{thread.checkpoints:>6}  {labels.when(thread.last_at):<19}  {labels.size(thread.size_bytes):>8}"
    return f"{name}  {status} {facts}  {tail}".rstrip()


def _problems(session: Session) -> list[Problem]:
    return session.problems()
