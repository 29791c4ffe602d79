"""`studio diff`: what changed from one checkpoint to another, and who wrote it."""

from __future__ import annotations

from argparse import Namespace

from studio.cli.common import note_problems, opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import UsageError
from studio.model import Author, Change, Comparison
from studio.noted import hidden_change
from studio.render import explained, labels, likeness, secrets
from studio.render.gate import line
from studio.render.masking import name_in
from studio.render.words import word_diff
from studio.session import Session

SIGNS = {"add": ("+", "green"), "remove": ("-", "red"), "replace": ("~", "yellow"), "move": (">", "blue")}
WORDS_FROM = 24
"""Shorter texts are shown whole on both sides of an arrow."""


def run(options: Namespace, out: Out) -> int:
    if options.origin and options.ref2 is not None:
        raise UsageError("--origin and REF2 exclude each other", "leave one out")
    with opened(options, out) as session:
        first = session.resolve(options.ref, options.thread, options.ns)
        if options.ref2 is None:
            found = session.compare(first, origin=options.origin)
        else:
            found = session.compare(session.resolve(options.ref2, options.thread or first.thread_id, options.ns), first)
        if out.as_json:
            documents = Documents(out.show_secrets)
            document = documents.comparison(found)
            document["problems"] += documents.problems(session.problems())
            out.document(document)
        else:
            _text(session, found, out)
            note_problems(out, session)
        sides = [one.address for one in (found.before, found.after) if one is not None]
        return int(options.exit_code and bool(found.changes or found.closed) or session.refused_key(*sides))


def _text(session: Session, found: Comparison, out: Out) -> None:
    after = session.row(found.after.address)
    before = f"#{session.number(found.before.address)}" if found.before is not None else "nothing"
    title = f"{before} → #{after.number} {line(after.label)}"
    number = "not known" if found.closed else labels.plural(len(found.changes), "change")
    out.say(out.paint(title, "bold") + out.paint(f"  {number}", "dim"))
    if found.closed:
        out.say(out.paint(hidden_change(found), "yellow"))
    gap = explained.gap_between(found, after)
    if gap:
        out.say(out.paint(gap, "dim"))
    told = explained.told_at(found.changes, found.explained)
    apart = likeness.told_apart(found.changes, show_secrets=out.show_secrets)
    for change in found.changes:
        for text in change_lines(change, out, before):
            out.say(text)
        if (change.op, change.path) in apart:
            out.say(out.paint(f"    ({apart[change.op, change.path]})", "dim"))
        if change.path in told:
            out.say(out.paint(f"    ≠ {explained.sentence(told[change.path])}", "yellow"))
    say_problems(out, found.problems)


def change_lines(change: Change, out: Out, before: str) -> list[str]:
    """One change as lines: sign, path, what was and what is, who wrote it; `before` is the number of the other side."""
    sign, colour = SIGNS[change.op]
    key, room = name_in(change.path), max(40, out.width - 20)
    path = line(change.path, 120)
    who = out.paint("  " + authors_text(change.authors, before), "dim")
    if change.op == "move":
        return [f"{out.paint(sign, colour)} {path}  from {line(change.from_path or '', 120)}{who}"]

    def shown(value: object) -> str:
        return out.brief(value, room, key)

    if change.op in ("add", "remove"):
        return [
            f"{out.paint(sign, colour)} {path}{who}",
            f"    {out.paint(shown(change.after if change.op == 'add' else change.before), colour)}",
        ]
    words = _words(change, key, out)
    if words is not None:
        return [f"{out.paint(sign, colour)} {path}{who}", *(f"    {text}" for text in words)]
    left, right = shown(change.before), shown(change.after)
    if len(left) + len(right) + len(path) < room:
        return [f"{out.paint(sign, colour)} {path}  {out.paint(left, 'red')} → {out.paint(right, 'green')}{who}"]
    return [
        f"{out.paint(sign, colour)} {path}{who}",
        f"    {out.paint('- ' + left, 'red')}",
        f"    {out.paint('+ ' + right, 'green')}",
    ]


def _words(change: Change, key: str | None, out: Out) -> list[str] | None:
    """A changed text word by word; None where it is short, secret, or too long to be compared."""
    before, after = change.before, change.after
    if not isinstance(before, str) or not isinstance(after, str) or max(len(before), len(after)) < WORDS_FROM:
        return None
    if not out.show_secrets and (secrets.reason(key, before) or secrets.reason(key, after)):
        return None
    parts = word_diff(before, after)
    if parts is None:
        return [f"replaced, {len(before):,} → {len(after):,} characters"]
    text = ""
    for at, (op, part) in enumerate(parts):
        if op == "=":
            text += line(_middle(part, at == 0, at == len(parts) - 1))
        elif op == "-":
            text += out.paint(line(part, 400), "red") if out.colour else f"[-{line(part, 400)}-]"
        else:
            text += out.paint(line(part, 400), "green") if out.colour else f"{{+{line(part, 400)}+}}"
    return [text]


def _middle(text: str, first: bool, last: bool, keep: int = 60) -> str:
    """An unchanged part, folded where it is long."""
    if len(text) <= 2 * keep + 3:
        return text
    return ("" if first else text[:keep]) + " … " + ("" if last else text[-keep:])


def authors_text(authors: tuple[Author, ...], before: str) -> str:
    """Who made a change, and how sure that is."""
    words = []
    for author in authors:
        name = line(author.node) if author.node else {"source": "edit"}.get(author.basis, "author not known")
        words.append(name + {"versions": " (inferred)"}.get(author.basis, ""))
    if not any(author.node or author.basis == "source" for author in authors):
        return "author not known"
    where = labels.made_towards(authors, before)
    return "by " + ", ".join(dict.fromkeys(words)) + (f" {where}" if where else "")
