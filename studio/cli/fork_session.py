"""`studio fork` on an agent's session: a new session file, and the command with which its program goes on from it."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from studio.cli import fork_preview
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import UsageError
from studio.model import Address
from studio.render import labels, secrets, shell
from studio.render.gate import line
from studio.requests import ForkRequest, ForkResult, Patch, Resume
from studio.session import Session

if TYPE_CHECKING:
    from studio.forks.sessions.outlook import Outlook


def request_of(options: Namespace, address: Address, patch: Patch) -> ForkRequest:
    """What a call asks for; UsageError for what only checkpoints have."""
    if options.nodes or options.write_words:
        raise UsageError("--nodes, --as-node and --update are for checkpoints", "an agent's session runs no graph of yours")
    return ForkRequest(
        address,
        patch,
        options.goto,
        new_thread=options.new_thread,
        in_place=options.in_place,
        install=options.install,
        record=options.ref,
    )


def run(session: Session, request: ForkRequest, options: Namespace, out: Out) -> int:
    if options.dry_run:
        return _plan(session, request, out)
    result = session.fork(request)
    if out.as_json:
        out.document(Documents(out.show_secrets).fork(result))
    else:
        _text(session, request.address, result, out)
    return 0 if result.verified else 1


def _plan(session: Session, request: ForkRequest, out: Out) -> int:
    """What the fork would be, and what it leaves as it is: files, and what calls did outside."""
    found = session.outlook(request.address)
    if out.as_json:
        preview = session.preview(request)
        documents = Documents(out.show_secrets)
        out.document({**documents.preview(request, preview), "outlook": documents.outlook(found)})
        return 1 if preview.refused is not None else 0
    code = fork_preview.show(session, request, out)
    _outlook(found, out)
    return code


def _outlook(found: Outlook, out: Out) -> None:
    def said(text: str, most: int = 200) -> str:
        return line(text if out.show_secrets else secrets.mask_text(text), most)

    if not found.files and not found.effects:
        out.say(out.paint("nothing was done outside after this turn", "dim"))
        return
    out.say(out.paint("a fork does not rewind what was done after this turn", "bold"))
    words = {
        "content": "at hand as it was",
        "patch": "only the patch is known",
        "absent": "was not there",
        "unknown": "not known",
    }
    rows = [
        [f"  {said(one.path, 120)}", labels.plural(one.edits, "edit"), words[one.known], said(one.source)] for one in found.files
    ]
    out.table(rows, [(), ("dim",), ("bold",), ("dim",)])
    if found.files:
        out.say(out.paint("  studio files LOCATION REF --out DIR writes what is known of a turn into a new folder", "dim"))
    out.table(
        [[f"  {one.status}", said(one.tool, 60), said(one.what)] for one in found.effects[:30]], [("yellow",), ("bold",), ()]
    )
    left = len(found.effects) - 30 + found.more
    if left > 0:
        out.say(out.paint(f"  and {left} more calls (--json lists them)", "dim"))
    if found.worktree is not None:
        out.say(out.paint(f"  the recorded branch {said(found.git_branch or '', 80)} as it was then:", "dim"))
        out.say(f"  {said(found.worktree, 2000)}")


def _text(session: Session, origin: Address, result: ForkResult, out: Out) -> None:
    def said(text: str, most: int = 400) -> str:
        return line(text if out.show_secrets else secrets.mask_text(text), most)

    tree = session.tree(result.address.thread_id)
    number = f"#{tree.number(result.address)} " if result.address in tree else ""
    out.say(
        f"{out.paint('forked', 'bold')} #{session.number(origin)} → {out.paint(number, 'bold', 'magenta')}"
        f"{line(result.address.checkpoint_id)}"
    )
    found = result.session
    assert found is not None
    facts = [
        ("session", found.session),
        ("recipe", line(result.recipe)),
        ("stored in", line(result.stored_in, 600)),
        ("installed", line(found.installed or "", 600)),
        ("verified", "yes, read back and equal" if result.verified else "NO: what is stored differs from what was asked for"),
    ]
    out.table([["  " + name, value] for name, value in facts if value], [("dim",), ()])
    for surprise in (*result.surprises, *found.warnings):
        out.say(out.paint(f"! {said(surprise)}", "yellow"))
    for note in found.notes:
        out.say(out.paint(f"  {said(note)}", "dim"))
    go_on(found, result.stored_in, out)


def go_on(found: Resume, path: str | None, out: Out) -> None:
    """The commands with which the program goes on, each on a line of its own, to be copied as it is."""

    def said(text: str) -> str:
        return line(text if out.show_secrets else secrets.mask_text(text), 4000)

    if not found.commands:
        return
    out.say(out.paint("go on with", "bold"))
    if found.installed is None and found.target is not None and path is not None:
        folder = shell.word(found.target.rpartition("/")[0])
        out.say(f"  mkdir -p {folder} && cp -n {said(shell.word(path))} {folder}/")
    for name in ("interactive", "print"):
        if name in found.commands:
            out.say(f"  {said(found.commands[name])}")
