"""`studio tree`: the rows of a thread's checkpoint tree."""

from __future__ import annotations

from argparse import Namespace

from studio.cli import lanes
from studio.cli.common import opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import RefError, UsageError
from studio.model import Address, Problem, Row
from studio.render import labels
from studio.render.gate import line
from studio.session import Session
from studio.tree import CheckpointTree

COLOURS = {"failed": "red", "paused": "yellow", "answered": "yellow", "ready": "blue", "done": "green"}


def run(options: Namespace, out: Out) -> int:
    if options.all_ns and options.ns is not None:
        raise UsageError("--ns and --all-ns exclude each other", "leave one out")
    with opened(options, out) as session:
        thread = session.one_thread(options.thread)
        tree = session.tree(thread)
        ns = None if options.all_ns else options.ns or ""
        if ns and ns not in tree.namespaces:
            known = tuple(name for name in tree.namespaces if name)
            hint = "--all-ns shows every row" if known else "it has no subgraph: leave --ns out"
            raise RefError(f"thread {thread!r} has no namespace {ns!r}", hint, "no-such-namespace", candidates=known)
        whole = ns is None or tree.namespaces == (ns,)
        addresses = [Address(thread, *key) for key in tree.keys(ns)]
        start, stop = _window(tree, addresses, options)
        if whole:
            rows = tree.rows(start, stop)
        else:
            rows = [tree.row(address) for address in addresses[start:stop]]
        problems = [*session.problems(), *tree.problems]
        if out.as_json:
            documents = Documents(out.show_secrets)
            out.document({
                "thread_id": thread, "rows": [documents.row(row) for row in rows], "total": len(addresses), "first": start,
                "problems": documents.problems(problems),
            })  # fmt: skip
            return 0
        if not whole:
            own = lanes.own_lanes(tree, addresses)
            rows = [lanes.redrawn(row, own) for row in rows]
        _text(session, tree, rows, addresses, start, out)
        _others(tree, ns, out)
        _say(out, problems)
    return 0


def _window(tree: CheckpointTree, addresses: list[Address], options: Namespace) -> tuple[int, int]:
    """First and one past the last row to show: the last `--limit`, or those around a row."""
    count = len(addresses)
    limit = options.limit or (count if options.around is None else 21)
    if options.around is None:
        return max(0, count - limit), count
    around = tree.resolve(options.around, options.ns)
    if around not in addresses:
        raise RefError(
            f"#{tree.number(around)} is in the namespace {around.checkpoint_ns or 'of the root'!r}",
            "--all-ns shows all rows, --ns NS those of one namespace",
        )
    middle = addresses.index(around)
    start = max(0, min(middle - limit // 2, count - limit))
    return start, min(count, start + limit)


def _text(session: Session, tree: CheckpointTree, rows: list[Row], addresses: list[Address], start: int, out: Out) -> None:
    thread = addresses[0].thread_id if addresses else ""
    head = f"{line(thread)} · {labels.plural(len(addresses), 'checkpoint')} · {labels.plural(tree.branch_count, 'branch')}"
    out.say(out.paint(head, "bold"))
    if start:
        out.say(out.paint(f"  … {start:,} earlier", "dim"))
    width = min(lanes.MOST, max((max(row.lanes, default=row.lane) for row in rows), default=0) + 1)
    number = max((len(row.number) for row in rows), default=1) + 1
    label = min(34, max((len(line(row.label)) for row in rows), default=1))
    above: Row | None = None
    for row in rows:
        out.say(_line(row, above, width, number, label, out))
        above = row
    if start + len(rows) < len(addresses):
        out.say(out.paint(f"  … {len(addresses) - start - len(rows):,} later", "dim"))


def _line(row: Row, above: Row | None, width: int, number: int, label: int, out: Out) -> str:
    colour = COLOURS.get(row.status or "", "blue") if row.status != "ran" else "blue"
    if row.origin_checkpoint_id is not None or row.checkpoint.origin == "scratch":
        colour = "magenta" if row.status not in ("failed", "paused") else colour
    step = "" if row.checkpoint.step is None else f"step {row.checkpoint.step}"
    name = "  " * row.depth + line(row.label, label - 2 * row.depth if row.depth * 2 < label else None)
    marks = [
        out.paint(line(", ".join(row.channels[:4]) + (f" +{len(row.channels) - 4}" if len(row.channels) > 4 else ""), 48), "cyan")
    ]
    if row.next and (row.is_leaf or row.is_head):
        marks.append("next " + line(", ".join(node or "?" for node in row.next), 60))
    if row.is_leaf and row.status not in ("ran", None):
        marks.append(out.paint(labels.status_word(row.status), COLOURS.get(row.status, "dim")))
    if row.is_head:
        marks.append(out.paint("HEAD", "bold"))
    cells = [
        out.paint(lanes.draw(row, above, width), colour),
        out.paint(f"#{row.number}".rjust(number), "dim"),
        out.paint(name.ljust(label), "bold"),
        out.paint(f"{step:<8}", "dim"),
        out.paint(f"{labels.when(row.checkpoint.created_at, date=False):<12}" if row.checkpoint.created_at else " " * 12, "dim"),
        out.paint(f"{labels.duration(row.seconds):>9}", "dim"),
        "  ".join(mark for mark in marks if mark),
    ]
    return " ".join(cells).rstrip()


def _others(tree: CheckpointTree, ns: str | None, out: Out) -> None:
    rest = [one for one in tree.namespaces if one != ns] if ns is not None else []
    if rest:
        first = line(rest[0], 60) + (", …" if len(rest) > 1 else "")
        words = f"{labels.plural(len(rest), 'more namespace')}: --all-ns shows them, --ns NS one ({first})"
        out.say(out.paint(words, "dim"))


def _say(out: Out, problems: list[Problem]) -> None:
    say_problems(out, problems)
