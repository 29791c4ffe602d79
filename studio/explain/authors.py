"""Who made a change: the tasks whose rows under the parent checkpoint lead to the new value.

A checkpoint may have several children and nothing says which of them took which rows, so rows are named as a cause only if they
explain the value. What an edit or an input changed has that as its source. Everything else is honestly nobody's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from studio.explain.channels import NULL_TASK, members
from studio.explain.ids import parse_path, update_ids
from studio.explain.placed import Placed, placed
from studio.explain.reducers import (
    Kind,
    begins_with,
    explaining,
    fold,
    same_value,
)
from studio.explain.rows import row_value
from studio.explain.written import WrittenItems
from studio.model import START, Author, Change, Value, WriteRow
from studio.value import MISSING

NOBODY = (Author(None, None, "none"),)


class Written(Struct):
    """What one task wrote to one channel, in order."""

    author: Author
    values: list[Value]
    by_edit: bool = False
    has_path: bool = False
    """Whether its place among the writers is that in which LangGraph applied them."""


class Step(Struct):
    """All that authorship of one checkpoint needs to know.

    `before` and `after` are whole channels. `writers` gives what was written to one under the parent, in order of application,
    `commanded` what a `Command` wrote to it under the checkpoint itself, `noted` what the checkpoint's own metadata says was
    written (old releases). `source` is the checkpoint's own, `editor` who is named for an edit. `sole_child`: no other child can
    have taken the rows. `only_task`: the one task that ran where no rows are stored, None where there were more.
    """

    before: Mapping[str, Value]
    after: Mapping[str, Value]
    writers: Callable[[str], list[Written]]
    commanded: Callable[[str], list[Written]]
    noted: Callable[[str], list[Written]]
    source: str | None
    editor: Author
    sole_child: Callable[[], bool]
    only_task: Callable[[], Author | None]


def by_channel(rows: Iterable[WriteRow]) -> dict[str, list[WriteRow]]:
    """The rows of each channel in their order: a superstep may write thousands of channels."""
    found: dict[str, list[WriteRow]] = {}
    for row in rows:
        found.setdefault(row.channel, []).append(row)
    return found


def written_by_task(rows: Iterable[WriteRow], channel: str, name_of: Callable[[str, str | None], str | None]) -> list[Written]:
    """Rows of one channel, grouped by task; the null task's rows are an input."""
    found: dict[str, Written] = {}
    for row in rows:
        if row.channel != channel or row.idx < 0:
            continue
        one = found.get(row.task_id)
        if one is None:
            edit = parse_path(row.task_path).kind == "update" or row.task_id in update_ids(row.checkpoint_id)
            if row.task_id == NULL_TASK:
                author = Author(START, row.task_id, "source")
            else:
                author = Author(name_of(row.task_id, row.task_path), row.task_id, "writes")
            one = found[row.task_id] = Written(author, [], edit, row.task_path is not None)
        one.values.append(row_value(row))
    return list(found.values())


def noted_writes(metadata: Mapping[str, Value]) -> dict[str, dict[str, list[Value]]]:
    """channel -> node -> values, as `metadata.writes` of releases up to 0.4 tells for the step that made a checkpoint."""
    noted: dict[str, dict[str, list[Value]]] = {}
    written = metadata.get("writes")
    for node, update in written.items() if isinstance(written, Mapping) else ():
        for part in update if isinstance(update, list) else [update]:
            for channel, value in part.items() if isinstance(part, Mapping) else ():
                noted.setdefault(channel, {}).setdefault(node, []).append(value)
    return noted


def attribute(changes: Sequence[Change], step: Step) -> list[Change]:
    """The changes with their authors."""
    views: dict[str, _View] = {}
    result = []
    for change in changes:
        channel = change.channel
        view = views.get(channel)
        if view is None:
            view = views[channel] = _view(channel, step)
        result.append(replace(change, authors=view.authors_of(change)))
    return result


class _View(Struct):
    """How one channel's change is explained: by whom as a whole, and by which kind of reducer (None = not explained)."""

    writers: list[Written]
    kind: Kind | None
    otherwise: tuple[Author, ...]
    after: Value
    before: Value = MISSING
    index: WrittenItems | None = None
    order: Placed | None = None

    def authors_of(self, change: Change) -> tuple[Author, ...]:
        if not self.writers:
            return self.otherwise
        steps = change.path.split("/")[2:]
        if steps:
            item = self.item_authors(change, steps)
            if item:
                return item
            if self.kind is None:
                return self.otherwise
        elif self.kind is None:
            return self.otherwise
        elif self.kind == "last":
            exact = [one.author for one in self.writers if same_value(fold("last", MISSING, one.values), self.after)]
            return tuple(exact) or authors(self.writers)
        return authors(self.writers)

    def item_authors(self, change: Change, steps: Sequence[str]) -> tuple[Author, ...]:
        """Tasks that wrote the very item that changed: list item, message of that id, key of a map, member of a set."""
        key = steps[0].replace("~1", "/").replace("~0", "~")
        if self.index is None:
            self.index = WrittenItems(self.writers)
            self.order = placed(self.kind, self.before, self.writers, self.after)
        item = self.item(change, key, len(steps))
        one = self.order.of(key, item) if self.order is not None else None
        if one is not None:
            return authors([self.writers[one]])
        found = self.index.holding(key, item, change.op == "remove")
        return authors(self.writers[position] for position in sorted(found))

    def item(self, change: Change, key: str, depth: int) -> Value:
        """The whole list item that a change is in; MISSING where the channel is no list."""
        if depth == 1:
            return change.before if change.op == "remove" else change.after
        items = members(self.after)
        return items[int(key)] if items is not None and key.isdigit() and int(key) < len(items) else MISSING


def authors(writers: Iterable[Written]) -> tuple[Author, ...]:
    return tuple(dict.fromkeys(one.author for one in writers))


def _view(channel: str, step: Step) -> _View:
    before, after = step.before.get(channel, MISSING), step.after.get(channel, MISSING)
    told = step.commanded(channel)
    if told:
        return _View(told, explaining(before, values_of(told), after) or "last", (step.editor,), after)
    writers = step.writers(channel)
    edits = [one for one in writers if one.by_edit]
    runs = [one for one in writers if not one.by_edit]
    first = edits if step.source == "update" and edits else runs
    for group in (first, writers) if len(first) < len(writers) else (writers,):
        kind = explaining(before, values_of(group), after)
        if kind is not None:
            by = [as_edit(one, step) for one in group] if step.source == "update" else group
            return _View(by, kind, NOBODY, after, before)
    if step.source in ("update", "fork", "input"):
        return _View([], None, (step.editor,), after)
    noted = step.noted(channel)
    if noted:
        return _View(noted, "last", NOBODY, after)
    if not runs:
        guess = step.only_task()
        return _View([], None, (guess,) if guess is not None else NOBODY, after)
    if not step.sole_child():
        return _View([], None, NOBODY, after)
    if appended(before, after):  # items that nobody wrote stay nobody's
        return _View(runs, None, NOBODY, after)
    return _View(runs, None, tuple(dict.fromkeys(Author(one.author.node, one.author.task_id, "versions") for one in runs)), after)


def values_of(writers: Iterable[Written]) -> list[Value]:
    return [value for one in writers for value in one.values]


def as_edit(one: Written, step: Step) -> Written:
    """An edit's rows have the edit as their source; beside them a sibling may have finished before."""
    if one.by_edit or (step.editor.node is not None and one.author.node == step.editor.node):
        return Written(Author(one.author.node or step.editor.node, one.author.task_id, "source"), one.values, True, one.has_path)
    return one


def appended(before: Value, after: Value) -> bool:
    """A list that only grew: each new item can be looked for by itself."""
    if not isinstance(after, list) or not (before is MISSING or isinstance(before, list)):
        return False
    start: list[Value] = before if isinstance(before, list) else []
    return len(after) > len(start) and begins_with(after, start)
