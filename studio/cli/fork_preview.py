"""`studio fork --dry-run` and `--nodes`: what a fork would do, and as which nodes one could write. Nothing is stored."""

from __future__ import annotations

from studio.cli.diff import change_lines
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.model import Address
from studio.render import forkwords, labels, likeness, secrets
from studio.render.gate import line
from studio.requests import ForkPreview, ForkRequest
from studio.session import Session


def show(session: Session, request: ForkRequest, out: Out) -> int:
    """Exit code 1 where the fork would be refused."""
    preview = session.preview(request)
    if out.as_json:
        out.document(Documents(out.show_secrets).preview(request, preview))
    else:
        _text(session, request, preview, out)
    return 1 if preview.refused is not None else 0


def _text(session: Session, request: ForkRequest, preview: ForkPreview, out: Out) -> None:
    def said(text: str) -> str:
        return line(text if out.show_secrets else secrets.mask_text(text), 600)

    number = f"#{session.number(request.address)}"
    if preview.refused is not None:
        out.say(out.paint(f"would be refused: {said(preview.refused)}", "red"))
        return
    out.say(out.paint(f"would fork {number}", "bold") + f": {forkwords.title(request, preview)}" + _where(request))
    apart = likeness.told_apart(preview.changes, show_secrets=out.show_secrets)
    for change in preview.changes:
        first, *rest = change_lines(change, out, number)
        out.say("  " + first.removesuffix(out.paint("  author not known", "dim")))
        for text in rest:
            out.say("  " + text)
        if (change.op, change.path) in apart:
            out.say(out.paint(f"      ({apart[change.op, change.path]})", "dim"))
    if not preview.changes:
        out.say(out.paint("  no value changes", "dim"))
    following = "not known" if preview.next is None else labels.names(preview.next) or "nothing"
    out.say(f"  {out.paint('then runs', 'dim')}  {following}")
    told = forkwords.merged(preview, _overwrite(preview))
    for warning in (*preview.warnings, *([told] if told else ())):
        out.say(out.paint(f"! {said(warning)}", "yellow"))
    out.say(out.paint("nothing was stored", "dim"))


def _where(request: ForkRequest) -> str:
    return f", into the new thread {line(request.new_thread, 80)}" if request.new_thread is not None else ""


def _overwrite(preview: ForkPreview) -> str:
    return " ".join(f"--overwrite {line(name, 60)}" for name in preview.merged)


def nodes(session: Session, address: Address, out: Out, *, look: bool) -> int:
    """The nodes to write as. `look`: a graph was named, whose code may be loaded for its edges."""
    found = session.writers(address, look=look)
    if out.as_json:
        out.document(Documents(out.show_secrets).writers(address, found))
        return 0
    out.say(out.paint(f"to write as at #{session.number(address)}, best first", "bold"))
    out.table(
        [["  " + line(one.node, 40), "default" if one.default else "", line(one.words, 400)] for one in found.found],
        [("bold",), ("green",), ()],
    )
    if found.note:
        out.say(out.paint(f"! {line(found.note, 400)}", "yellow"))
    if found.basis == "file":
        out.say(out.paint("What runs is what this file has seen; --graph NAME asks your graph for all its edges.", "dim"))
    return 0
