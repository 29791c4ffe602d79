"""`studio compare`: two branches side by side, from the checkpoint where they part to how their ends differ."""

from __future__ import annotations

from argparse import Namespace
from itertools import groupby
from typing import Any

from studio.beside import ends_differ, parted
from studio.branches import Branches, StepPair
from studio.chats import MessagePair
from studio.cli.common import note_problems, opened, say_problems
from studio.cli.diff import change_lines
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.model import Address, Value
from studio.noted import hidden_change
from studio.render import labels, masking
from studio.render.gate import line
from studio.session import Session

KEPT = 4
"""Of messages in a row that are the same, how many are printed: the last ones."""
HOW = {"same": ("=", "dim"), "changed": ("~", "yellow"), "left": ("<", "red"), "right": (">", "green")}


def run(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        left = session.resolve(options.ref, options.thread, options.ns)
        right = session.resolve(options.ref2, options.thread2 or options.thread or left.thread_id, options.ns)
        found = session.side_by_side(left, right)
        if out.as_json:
            out.document(_document(session, found, out))
        else:
            _text(session, found, out)
            note_problems(out, session)
        differs = found.first is not None or bool(found.ends.changes or found.ends.closed)
        return int(options.exit_code and differs or session.refused_key(left, right))


def _text(session: Session, found: Branches, out: Out) -> None:
    left, right = (_name(session, state.checkpoint.address, other) for state, other in _ends(found))
    out.say(out.paint(f"< {left}", "bold"))
    out.say(out.paint(f"> {right}", "bold"))
    out.say(parted(session, found))
    if found.first is not None:
        out.say(f"first difference  {_difference(session, found.steps[found.first], out)}")
    width = max((len(_side(session, pair.left)) for pair in found.steps), default=0)
    width = min(max(width, 16), max(16, (out.width - 12) // 2))
    if found.steps:
        out.say("")
    for pair in found.steps:
        sign, colour = _sign(pair)
        one, other = _side(session, pair.left), _side(session, pair.right)
        where = out.paint(f"  {line(pair.path, 60)}", "dim") if pair.path is not None else ""
        room = max(16, out.width - width - (64 if where else 4))
        out.say(f"{out.paint(sign, colour)} {_cut(one, width):<{width}}  {_cut(other, room)}{where}".rstrip())
    if found.cut:
        out.say(out.paint(f"{labels.plural(found.cut, 'more superstep')}, not aligned", "dim"))
    out.say(f"\nat their ends  {ends_differ(found.ends)}")
    for change in found.ends.changes:
        for text in change_lines(change, out, f"#{session.number(found.left.checkpoint.address)}"):
            out.say(text)
    _talk(found, out)
    say_problems(out, found.ends.problems)


def _ends(found: Branches) -> tuple[tuple[Any, str], tuple[Any, str]]:
    one, other = found.left.checkpoint.thread_id, found.right.checkpoint.thread_id
    return (found.left, one if one != other else ""), (found.right, other if one != other else "")


def _name(session: Session, address: Address, thread: str | None) -> str:
    row = session.row(address)
    return f"#{row.number} {line(row.label)}" + (f"  in thread {line(thread)}" if thread else "")


def _side(session: Session, address: Address | None) -> str:
    return _name(session, address, None) if address is not None else "–"


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _sign(pair: StepPair) -> tuple[str, str]:
    if pair.left is None or pair.right is None:
        return HOW["right" if pair.left is None else "left"]
    return HOW["same" if pair.same else "changed"] if pair.same is not None else (" ", "dim")


def _difference(session: Session, pair: StepPair, out: Out) -> str:
    if pair.left is None or pair.right is None:
        return f"only {_side(session, pair.right if pair.left is None else pair.left)}"
    sides = f"{_side(session, pair.left)} | {_side(session, pair.right)}"
    if pair.path is None:
        return sides
    key = masking.name_in(pair.path)
    before, after = (out.brief(value, 40, key) for value in (pair.before, pair.after))
    return f"{sides}  {line(pair.path, 80)}  {out.paint(before, 'red')} | {out.paint(after, 'green')}"


def _talk(found: Branches, out: Out) -> None:
    """Both chats in one column; of many messages in a row that are the same only the last ones."""
    if found.chats.channel is not None:
        out.say(f"\n{line(found.chats.channel, 60)}")
    for how, group in groupby(found.chats.pairs, key=lambda pair: pair.how):
        pairs = list(group)
        folded = len(pairs) - KEPT if how == "same" and len(pairs) > KEPT + 1 else 0
        if folded:
            out.say(out.paint(f"= {labels.plural(folded, 'message')} that both have", "dim"))
        for pair in pairs[folded:]:
            for text in _message_lines(pair, found.chats.channel, out):
                out.say(text)
    if found.chats.cut:
        out.say(out.paint(f"{labels.plural(found.chats.cut, 'more message')}, not aligned", "dim"))


def _message_lines(pair: MessagePair, channel: str | None, out: Out) -> list[str]:
    sign, colour = HOW[pair.how]
    if pair.how == "changed":
        one, other = _message(pair.left, channel, out), _message(pair.right, channel, out)
        return [f"{out.paint('<', 'red')} {one}", f"{out.paint('>', 'green')} {other}"]
    return [f"{out.paint(sign, colour)} {_message(pair.left if pair.how != 'right' else pair.right, channel, out)}"]


def _message(value: Value, channel: str | None, out: Out) -> str:
    return out.brief(value, max(60, out.width - 4), channel)


def _document(session: Session, found: Branches, out: Out) -> dict[str, Any]:
    documents = Documents(out.show_secrets)

    def address(at: Address | None) -> dict[str, Any] | None:
        return None if at is None else {**documents.address(at), "number": session.number(at)}

    def step(pair: StepPair) -> dict[str, Any]:
        key = None if pair.path is None else masking.name_in(pair.path)
        differs = {"path": pair.path, "left": documents.value(pair.before, key), "right": documents.value(pair.after, key)}
        return {
            "left": address(pair.left),
            "right": address(pair.right),
            "same": pair.same,
            "differs": None if pair.path is None else differs,
        }

    return {
        "left": documents.header(found.left.checkpoint),
        "right": documents.header(found.right.checkpoint),
        "ancestor": address(found.ancestor),
        "steps": [step(pair) for pair in found.steps],
        "first_divergence": found.first,
        "changes": [documents.change(change) for change in found.ends.changes],
        "messages": [
            {
                "how": pair.how,
                "left": None if pair.how == "right" else documents.value(pair.left, found.chats.channel),
                "right": None if pair.how == "left" else documents.value(pair.right, found.chats.channel),
            }
            for pair in found.chats.pairs
        ],
        "unknown": hidden_change(found.ends) or None,
        "cut": found.cut + found.chats.cut,
        "problems": [*documents.problems(found.ends.problems), *documents.problems(session.problems())],
    }
