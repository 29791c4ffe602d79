"""`studio tree`: the rows of a thread's checkpoint tree."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Iterator
from itertools import chain

from studio.cli import lanes
from studio.cli.common import opened, say_problems
from studio.cli.documents import Documents
from studio.cli.out import Out
from studio.errors import RefError, StudioError, UsageError
from studio.model import Address, Problem, Row
from studio.render import explained, labels
from studio.render.gate import line
from studio.render.threadnames import thread_name
from studio.session import Session
from studio.stretch import Stretch
from studio.tagged import dumps
from studio.tree import CheckpointTree, Key

PAGE = 2_000
"""Rows that are made, printed and forgotten together."""
COLOURS = {"failed": "red", "paused": "yellow", "answered": "yellow", "ready": "blue", "done": "green"}


def run(options: Namespace, out: Out) -> int:
    if options.all_ns and options.ns is not None:
        raise UsageError("--ns and --all-ns exclude each other", "leave one out")
    with opened(options, out) as session:
        thread = session.one_thread(options.thread)
        ns = None if options.all_ns else options.ns or ""
        shown = _shown(session, thread, ns, options, redraw=not out.as_json)
        start, stop = _window(shown, session, options)
        pages = (shown.rows(first, min(stop, first + PAGE)) for first in range(start, stop, PAGE))
        if out.as_json:
            documents = Documents(out.show_secrets)
            head = dumps({"thread_id": thread, "total": len(shown), "first": start})
            lost: list[StudioError] = []
            rows = (dumps(documents.row(row)) for page in _until_lost(pages, lost) for row in page)
            problems = (dumps(documents.problems([*_told(lost, session), *shown.problems])) for _ in range(1))
            out.pieces(chain((head[:-1], ',"rows":['), _with_commas(rows), ('],"problems":',), problems, "}"))
            return lost[0].exit_code if lost else int(session.refused_key())
        _text(shown, pages, start, stop, out)
        if words := session.view_words:
            out.say(out.paint(f"shown: {line(words, 200)}", "dim"))
        _others(shown, ns, out)
        _say(out, [*session.problems(), *shown.problems])
        return int(session.refused_key())


class _Part:
    """The rows of a tree, or of one namespace of it, by their places among those."""

    def __init__(self, tree: CheckpointTree, ns: str | None, *, redraw: bool) -> None:
        """`redraw` gives the rows of one namespace lanes of their own."""
        self.thread_id = tree.thread_id
        self.namespaces, self.branch_count, self.lane_count = tree.namespaces, tree.branch_count, tree.lane_count
        self._tree = tree
        self._is_whole = ns is None or tree.namespaces == (ns,)
        self._keys = [] if self._is_whole else tree.keys(ns)
        self._own = lanes.own_lanes(tree, self._addresses(self._keys)) if redraw and not self._is_whole else None

    def __len__(self) -> int:
        return len(self._tree) if self._is_whole else len(self._keys)

    @property
    def problems(self) -> list[Problem]:
        return self._tree.problems

    def place(self, address: Address) -> int | None:
        if self._is_whole:
            return self._tree.index(address) if address in self._tree else None
        key = (address.checkpoint_ns, address.checkpoint_id)
        return self._keys.index(key) if key in self._keys else None

    def rows(self, start: int, stop: int) -> list[Row]:
        if self._is_whole:
            return self._tree.rows(start, stop)
        rows = [self._tree.row(address) for address in self._addresses(self._keys[start:stop])]
        return [lanes.redrawn(row, self._own) for row in rows] if self._own is not None else rows

    def _addresses(self, keys: list[Key]) -> list[Address]:
        return [Address(self.thread_id, *key) for key in keys]


def _shown(session: Session, thread: str, ns: str | None, options: Namespace, *, redraw: bool) -> _Part | Stretch:
    """What there is to show: without the whole tree where a few rows of a long plain thread are asked for."""
    few = options.around is not None if not options.limit else options.limit <= PAGE
    stretch = session.stretch(thread) if few and not ns else None
    if stretch is not None:
        return stretch
    tree = session.tree(thread)
    if ns and ns not in tree.namespaces:
        known = tuple(name for name in tree.namespaces if name)
        hint = "--all-ns shows every row" if known else "it has no subgraph: leave --ns out"
        raise RefError(f"thread {thread!r} has no namespace {ns!r}", hint, "no-such-namespace", candidates=known)
    return _Part(tree, ns, redraw=redraw)


def _window(shown: _Part | Stretch, session: Session, options: Namespace) -> tuple[int, int]:
    """First and one past the last row to show: the last `--limit`, or those around a row."""
    count = len(shown)
    limit = options.limit or (count if options.around is None else 21)
    if options.around is None:
        return max(0, count - limit), count
    around = session.resolve(options.around, shown.thread_id, options.ns)
    middle = shown.place(around)
    if middle is None:
        raise RefError(
            f"#{session.number(around)} is in the namespace {around.checkpoint_ns or 'of the root'!r}",
            "--all-ns shows all rows, --ns NS those of one namespace",
        )
    start = max(0, min(middle - limit // 2, count - limit))
    return start, min(count, start + limit)


def _until_lost(pages: Iterator[list[Row]], lost: list[StudioError]) -> Iterator[list[Row]]:
    """The pages up to one that the file does not give any more, so that a document that has begun ends as one."""
    try:
        yield from pages
    except StudioError as error:
        lost.append(error)


def _told(lost: list[StudioError], session: Session) -> list[Problem]:
    return [*(Problem(error.slug, session.location, error.message) for error in lost), *session.problems()]


def _with_commas(texts: Iterable[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield f",{text}" if number else text


def _text(shown: _Part | Stretch, pages: Iterator[list[Row]], start: int, stop: int, out: Out) -> None:
    branches = labels.plural(shown.branch_count, "branch")
    out.say(out.paint(f"{thread_name(shown.thread_id)} · {labels.plural(len(shown), 'checkpoint')} · {branches}", "bold"))
    if start:
        out.say(out.paint(f"  … {start:,} earlier", "dim"))
    first = next(pages, [])
    alone = len(first) == stop - start  # of more than a page, the columns must do for all that follows
    width = max((max(row.lanes, default=row.lane) for row in first), default=0) + 1 if alone else shown.lane_count
    number = max((len(row.number) for row in first), default=1) + 1 if alone else len(str(len(shown))) + 3
    label = min(34, max((len(line(row.label)) for row in first), default=1)) if alone else 34
    rest = len(f"+{width}") if width > lanes.MOST else 0
    above: Row | None = None
    for row in chain(first, chain.from_iterable(pages)):
        out.say(_line(row, above, (min(lanes.MOST, width), rest), number, label, out))
        above = row
    if stop < len(shown):
        out.say(out.paint(f"  … {len(shown) - stop:,} later", "dim"))


def _line(row: Row, above: Row | None, widths: tuple[int, int], number: int, label: int, out: Out) -> str:
    """`widths`: lanes that are drawn, and characters that tell of the others."""
    width, rest = widths
    colour = COLOURS.get(row.status or "", "blue") if row.status != "ran" else "blue"
    if row.origin_checkpoint_id is not None or row.checkpoint.origin == "scratch":
        colour = "magenta" if row.status not in ("failed", "paused") else colour
    step = "" if row.checkpoint.step is None else f"step {row.checkpoint.step}"
    name = "  " * row.depth + line(row.label, label - 2 * row.depth if row.depth * 2 < label else None)
    marks = [
        out.paint(line(", ".join(row.channels[:4]) + (f" +{len(row.channels) - 4}" if len(row.channels) > 4 else ""), 48), "cyan")
    ]
    if row.missing_steps is not None:
        marks.append(out.paint(explained.gap_short(row), "dim"))
    if row.next and (row.is_leaf or row.is_head):
        marks.append("next " + line(", ".join(node or "?" for node in row.next), 60))
    if row.is_leaf and row.status not in ("ran", None):
        marks.append(out.paint(labels.status_word(row.status), COLOURS.get(row.status, "dim")))
    if row.checkpoint.encrypted:
        marks.append(out.paint("encrypted", "dim"))
    if row.is_head:
        marks.append(out.paint("HEAD", "bold"))
    cells = [
        out.paint(lanes.draw(row, above, width), colour),
        *([out.paint(lanes.beyond(row, width).ljust(rest), "dim")] if rest else ()),
        out.paint(f"#{row.number}".rjust(number), "dim"),
        out.paint(name.ljust(label), "bold"),
        out.paint(f"{step:<8}", "dim"),
        out.paint(f"{labels.when(row.checkpoint.created_at, date=False):<12}" if row.checkpoint.created_at else " " * 12, "dim"),
        out.paint(f"{labels.duration(row.seconds):>9}", "dim"),
        "  ".join(mark for mark in marks if mark),
    ]
    return " ".join(cells).rstrip()


def _others(shown: _Part | Stretch, ns: str | None, out: Out) -> None:
    rest = [one for one in shown.namespaces if one != ns] if ns is not None else []
    if rest:
        first = line(rest[0], 60) + (", …" if len(rest) > 1 else "")
        words = f"{labels.plural(len(rest), 'more namespace')}: --all-ns shows them, --ns NS one ({first})"
        out.say(out.paint(words, "dim"))


def _say(out: Out, problems: list[Problem]) -> None:
    say_problems(out, problems)
