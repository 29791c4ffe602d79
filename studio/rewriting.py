"""The messages of one channel while a person edits them: steps over the stored list, each of which can be taken back.

A message is changed where it is changed, and nowhere else: the rest of it, and each other message, keeps its stored form. What
comes out is an ordinary `Patch`.
"""

from __future__ import annotations

import uuid
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from studio import tagged, toolcalls
from studio.codec.inert import MISSING, Missing
from studio.codec.paths import join_path, key_step, map_of
from studio.errors import PatchError
from studio.model import State, Tagged_JSON, Value
from studio.render import masking, preview, secrets
from studio.render.preview import ToolCall
from studio.render.spoken import new_message, with_call, with_text, without_call
from studio.requests import Patch
from studio.value import Tagged, equal

ROLES = ("user", "assistant", "tool", "system")
MOST_STEPS = 1_000
_KEPT_LISTS = 30
Step = Mapping[str, Any]
"""`do` and what it needs, all of it JSON: `edit` (texts, calls), `doc` (doc), `uncall` (call), `delete`, `restore`, `move` (to),
`insert` (role, text, call, id); each has `at`, the place among all entries, deleted ones included."""


class Entry(Struct, frozen=True):
    """One message of the edited list. A deleted one stays in its place until the fork, so that it can be put back."""

    value: Value
    origin: int | None
    """Its index in the stored list; None where it was inserted."""
    gone: bool = False


def channels(state: State, *, show_secrets: bool = False) -> list[str]:
    """Channels whose messages can be edited: lists that hold messages, the longest first, and an empty `messages`."""
    found = [name for name in preview.message_channels(state.values) if show_secrets or not secrets.is_secret_name(name)]
    found.sort(key=lambda name: (-len(state.values[name]), name))
    return found or [name for name in ("messages",) if state.values.get(name) == []]


Entries = tuple[Entry, ...]


class _Seen:
    """What was worked out on the way, for all of its steps: lists of a few thousand messages answer at once.

    Messages are known by their identity: each list that is kept holds them.
    """

    def __init__(self) -> None:
        self._lists: dict[tuple[int, ...], tuple[tuple[Step, ...], Entries]] = {}
        self._said: dict[int, tuple[Value, toolcalls.Said | None]] = {}

    def keep(self, steps: tuple[Step, ...], entries: Entries) -> None:
        self._lists.pop(key := tuple(map(id, steps)), None)
        self._lists[key] = steps, entries
        while len(self._lists) > _KEPT_LISTS:
            self._lists.pop(next(iter(self._lists)))

    def kept(self, steps: tuple[Step, ...]) -> Entries | None:
        found = self._lists.get(tuple(map(id, steps)))
        return found[1] if found is not None else None

    def said(self, value: Value) -> toolcalls.Said | None:
        found = self._said.get(id(value))
        if found is None:
            found = self._said[id(value)] = value, toolcalls.said(value)
        return found[1]


class Rewriting:
    """The edited messages of a channel. Steps are done in order up to `done`; those behind it were taken back."""

    def __init__(self, state: State, channel: str, steps: Sequence[Step] = (), done: int | None = None) -> None:
        """Raises PatchError where the channel holds no list, or a step does not fit it."""
        stored = state.values.get(channel, MISSING)
        if not isinstance(stored, list):
            raise PatchError(
                f"The channel {channel!r} holds no list of messages here.", "Edit it as JSON instead.", "no-messages"
            )
        if len(steps) > MOST_STEPS:
            raise PatchError(f"More than {MOST_STEPS:,} steps were made.", "Fork, and go on from the fork.", "too-many")
        done = len(steps) if done is None else max(0, min(done, len(steps)))
        entries = [Entry(value, at) for at, value in enumerate(stored)]
        for step in steps[:done]:
            entries = _do(entries, stored, step)
        self._set(state, channel, stored, (tuple(steps), done), tuple(entries), _Seen())

    def _set(
        self, state: State, channel: str, stored: list[Value], steps: tuple[tuple[Step, ...], int], entries: Entries, seen: _Seen
    ) -> None:
        self.state = state
        self.channel = channel
        self.stored = stored
        self.steps, self.done = steps
        self.entries: Entries = entries
        self._seen = seen
        self._moved: frozenset[int] | None = None
        seen.keep(self.steps[: self.done], entries)

    def _went(self, steps: tuple[Step, ...], done: int, entries: Entries | None = None) -> Rewriting:
        """The same messages elsewhere on the way: what was made there before is not made again."""
        found = entries if entries is not None else self._seen.kept(steps[:done])
        if found is None:
            found = Rewriting(self.state, self.channel, steps, done).entries
        made = object.__new__(Rewriting)
        made._set(self.state, self.channel, self.stored, (steps, done), found, self._seen)
        return made

    # ------------------------------------------------------------------ going on

    def then(self, step: Step) -> Rewriting:
        """One step further; what had been taken back is forgotten."""
        steps = (*self.steps[: self.done], step)
        if len(steps) > MOST_STEPS:
            return Rewriting(self.state, self.channel, steps)
        return self._went(steps, len(steps), tuple(_do(list(self.entries), self.stored, step)))

    def undo(self) -> Rewriting:
        return self._went(self.steps, max(0, self.done - 1))

    def redo(self) -> Rewriting:
        return self._went(self.steps, min(self.done + 1, len(self.steps)))

    def reset(self) -> Rewriting:
        """Everything as stored; `redo` still brings the steps back."""
        return self._went(self.steps, 0)

    def insertion(self, after: int, role: str, text: str = "", call: str | None = None) -> Step:
        """The step that puts a new message behind an entry (-1: first), with an id of its own.

        A tool result answers `call`, else the first call before it without a result. Raises PatchError where there is none.
        """
        if role == "tool" and call is None:
            open_calls = self.open_calls(after + 1)
            if not open_calls:
                raise PatchError("No tool call before this place is without a result.", "Put it behind a call.", "no-open-call")
            call = open_calls[0].id
        return {"do": "insert", "at": after + 1, "role": role, "text": text, "call": call, "id": str(uuid.uuid4())}

    # ------------------------------------------------------------------ what it is now

    @property
    def values(self) -> list[Value]:
        """The messages as the fork will hold them."""
        return [entry.value for entry in self.entries if not entry.gone]

    def changed(self, at: int) -> bool:
        """Whether an entry says something else than what is stored: another content, not another place."""
        entry = self.entries[at]
        return entry.origin is None or (entry.value is not self.stored[entry.origin])

    def moved(self) -> frozenset[int]:
        """Entries that stand elsewhere among the stored ones: the fewest that explain the order."""
        if self._moved is None:
            kept = [(at, entry.origin) for at, entry in enumerate(self.entries) if entry.origin is not None]
            first, last = _out_of_place([origin for _, origin in kept])
            stays = _longest_rise([origin for _, origin in kept[first:last]])
            self._moved = frozenset(at for index, (at, _) in enumerate(kept[first:last]) if index not in stays)
        return self._moved

    def unanswered(self) -> list[tuple[int, ToolCall]]:
        """(entry, call) of the tool calls that no entry answers: those of the last caller first."""
        found: list[list[tuple[int, ToolCall]]] = []
        answered: set[str] = set()
        for at, entry in enumerate(self.entries):
            said = None if entry.gone else self._seen.said(entry.value)
            if said is None:
                continue
            if said.answers is not None:
                answered.add(said.answers)
            elif said.calls:
                found.append([(at, call) for call in said.calls])
        return [(at, call) for calls in reversed(found) for at, call in calls if call.id not in answered]

    def open_calls(self, before: int) -> list[ToolCall]:
        """The unanswered calls of the entries before a place."""
        return [call for at, call in self.unanswered() if at < before]

    def problems(self) -> dict[int, tuple[str, ...]]:
        """Entry -> what is wrong with its tool calls or its answer now, in words."""
        places = [at for at, entry in enumerate(self.entries) if not entry.gone]
        found: dict[int, tuple[str, ...]] = {}
        for one in toolcalls.findings(replace(self.state, values={self.channel: self.values}), self._seen.said):
            at = places[one.index]
            found[at] = (*found.get(at, ()), one.message)
        return found

    def summary(self) -> str:
        """`2 changed, 1 deleted, 1 new, 1 moved`; "" where nothing was done."""
        gone = new = edited = 0
        for entry in self.entries:
            if entry.gone:
                gone += entry.origin is not None
            elif entry.origin is None:
                new += 1
            else:
                edited += entry.value is not self.stored[entry.origin]
        moved = sum(1 for at in self.moved() if not self.entries[at].gone)
        parts = ((edited, "changed"), (gone, "deleted"), (new, "new"), (moved, "moved"))
        return ", ".join(f"{count:,} {word}" for count, word in parts if count)

    # ------------------------------------------------------------------ what is asked for

    def patch(self) -> Patch:
        """The edits as a patch: changed parts at their own paths; then what was deleted and added, or the list in its new order.

        In a new order each message that stays is named by its place, so no message is written out but those that were inserted.
        """
        live = [entry for entry in self.entries if not entry.gone]
        kept = [entry.origin for entry in live if entry.origin is not None]
        new = [entry for entry in live if entry.origin is None]
        left = sorted(set(range(len(self.stored))) - set(kept))
        ordered = kept == sorted(kept) and all(entry.origin is None for entry in live[len(kept) :]) and not (new and left)
        values: dict[str, Tagged_JSON] = {}
        unset: list[str] = []
        items: list[Tagged_JSON] = []
        for entry in live:
            if entry.origin is None:
                items.append(tagged.to_tagged(entry.value))
                continue
            inner, gone = _differences(self._path(entry.origin), self.stored[entry.origin], entry.value)
            if gone and not ordered:  # a removal comes last in a patch, when the list has its new order already
                items.append(tagged.to_tagged(entry.value))
                continue
            items.append({"$item": entry.origin})
            values.update(inner)
            unset += gone
        if not ordered:
            return Patch({**values, tagged.join_path([self.channel]): items})
        for at, doc in enumerate(items[len(kept) :], len(self.stored)):
            values[self._path(at)] = doc
        return Patch(values, (*unset, *map(self._path, left)))

    def _path(self, at: int) -> str:
        return tagged.join_path([self.channel, str(at)])


def _do(entries: list[Entry], stored: Sequence[Value], step: Step) -> list[Entry]:
    """The entries after a step. Raises PatchError where it does not fit them."""
    try:
        kind, at = step["do"], step["at"]
        if kind == "insert":
            if type(at) is not int or not 0 <= at <= len(entries):
                raise IndexError
            made = new_message(step["role"], step.get("text") or "", [entry.value for entry in entries], at, step)
            return [*entries[:at], Entry(made, None), *entries[at:]]
        if type(at) is not int or not 0 <= at < len(entries):
            raise IndexError
        entry, others = entries[at], [*entries[:at], *entries[at + 1 :]]
        if kind == "move":
            to = max(0, min(int(step["to"]), len(others)))
            return [*others[:to], entry, *others[to:]]
        if kind == "delete" and entry.origin is None:
            return others
        return [*entries[:at], _changed(entry, stored, kind, step), *entries[at + 1 :]]
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise PatchError("An edit of the messages does not fit them.", "Reload, and edit again.", "bad-step") from error


def _changed(entry: Entry, stored: Sequence[Value], kind: str, step: Step) -> Entry:
    if kind == "delete":
        return replace(entry, gone=True)
    if kind == "restore":
        return replace(entry, gone=False, value=stored[entry.origin] if entry.origin is not None else entry.value)
    was = stored[entry.origin] if entry.origin is not None else entry.value
    value = entry.value
    if kind == "edit":
        for block, text in step.get("texts") or ():
            value = with_text(value, block, text)
        for index, name, args in step.get("calls") or ():
            value = with_call(value, index, name, args)
    elif kind == "doc":
        value = tagged.from_tagged(step["doc"], value, masking.hidden_in(None, value))
        if preview.message(value) is None:
            raise PatchError("This is no message any more.", "Keep its role or type, and its content.", "no-message")
    elif kind == "uncall":
        value = without_call(value, step["call"])
    else:
        raise KeyError(kind)
    return replace(entry, value=was if equal(was, value) else value)


def _differences(path: str, old: Value, new: Value) -> tuple[dict[str, Tagged_JSON], list[str]]:
    """(what to set, what to remove) below a path, each at the deepest place that says it."""
    values: dict[str, Tagged_JSON] = {}
    unset: list[str] = []
    stack: list[tuple[str, Value, Value]] = [(path, old, new)]
    while stack:
        path, old, new = stack.pop()
        if old is new or equal(old, new):
            continue
        before, after = map_of(old), map_of(new)
        alike = type(old) is type(new) and (not isinstance(old, Tagged) or _same_shell(old, new))
        if before is not None and after is not None and alike:
            inside = [(path + join_path([key_step(key)]), before.get(key, MISSING), item) for key, item in after.items()]
            unset += [path + join_path([key_step(key)]) for key in before if key not in after]
            values.update({where: tagged.to_tagged(item) for where, was, item in inside if isinstance(was, Missing)})
            stack.extend((where, was, item) for where, was, item in inside if not isinstance(was, Missing))
        elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
            stack.extend((f"{path}/{at}", was, item) for at, (was, item) in enumerate(zip(old, new, strict=True)))
        else:
            values[path] = tagged.to_tagged(new)
    return values, unset


def _same_shell(old: Tagged, new: Value) -> bool:
    """Whether two objects differ in their fields alone."""
    if not isinstance(new, Tagged) or (old.type_name, old.code, old.method) != (new.type_name, new.code, new.method):
        return False
    try:
        return equal(old.replace(fields=new.fields), new)
    except PatchError:
        return False


def _out_of_place(numbers: Sequence[int]) -> tuple[int, int]:
    """Between which places different numbers are out of order: all before are smaller, and all behind larger, than any other."""
    first, last = 0, len(numbers)
    least = list(accumulate(reversed(numbers), min))[::-1]
    while first < last and numbers[first] == least[first]:
        first += 1
    most = list(accumulate(numbers, max))
    while last > first and numbers[last - 1] == most[last - 1]:
        last -= 1
    return first, last


def _longest_rise(numbers: Sequence[int]) -> set[int]:
    """Indices of a longest rising part of some different numbers: what stays where the rest was moved."""
    tails: list[int] = []
    at_end: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        place = bisect_left(tails, number)
        before.append(at_end[place - 1] if place else -1)
        tails[place : place + 1] = [number]
        at_end[place : place + 1] = [index]
    found: set[int] = set()
    index = at_end[-1] if at_end else -1
    while index >= 0:
        found.add(index)
        index = before[index]
    return found
