"""Stored things that have no plain Python form: maps with other keys than text, and bytes that nobody may open."""

from __future__ import annotations

import hashlib
import pickletools
from typing import Any, Final

MAX_PICKLE_OPS = 200_000
MAX_PICKLE_NAMES = 1_000
UNREAD = "… (not read to its end)"
"""Stands behind the names of a pickle whose opcodes were not all read."""
_NAME = 300
KEY_HINT = "encrypted (AES): start with --aes-key-env NAME"
"""What stands in the place of a value that nobody can read without a key."""


class Missing:
    """The type of `MISSING`: no value at all, which is not the stored value `None`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class MapValue:
    """A map whose keys are not all text (or not all different): `pairs` in stored order."""

    __slots__ = ("pairs",)
    pairs: tuple[tuple[Any, Any], ...]

    def __init__(self, pairs: Any) -> None:
        object.__setattr__(self, "pairs", tuple((key, value) for key, value in pairs))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a stored value is not changed in place")

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"MapValue({len(self.pairs)} pairs)"


class Opaque:
    """Bytes that stay closed: `reason` is `pickle`, `encrypted`, `damaged` or `unsupported`."""

    __slots__ = ("_names", "raw", "reason")
    reason: str
    raw: bytes

    def __init__(self, reason: str, raw: bytes) -> None:
        self.reason = reason
        self.raw = raw
        self._names: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        return len(self.raw)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """What loading a pickle would import, `module.name`, read from its opcodes without loading it.

        The last one is `UNREAD` where they were not read to their end.
        """
        if self._names is None:
            found, whole = _pickle_names(self.raw) if self.reason == "pickle" else ((), True)
            self._names = found if whole else (*found, UNREAD)
        return self._names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.reason == other.reason and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.reason, self.raw))

    def __repr__(self) -> str:
        return f"Opaque({self.reason!r}, {self.size} bytes)"


def pickle_names(blob: bytes) -> tuple[str, ...]:
    """What loading a pickle would import, in order, from its opcodes, as far as they can be read."""
    return _pickle_names(blob)[0]


def _pickle_names(blob: bytes) -> tuple[tuple[str, ...], bool]:
    """(the names, whether they are all: not where it is damaged, cut, too long to wait for, or has too many)."""
    names: dict[str, None] = {}
    memo: dict[int, str | None] = {}
    stack: list[str | None] = []  # texts; None for anything else
    marks: list[int] = []
    ended = False
    try:
        for count, (op, arg, _) in enumerate(pickletools.genops(blob)):
            if count > MAX_PICKLE_OPS or len(names) > MAX_PICKLE_NAMES:
                break
            ended = op.name == "STOP"
            _step(op, arg, stack, marks, memo, names)
    except Exception:
        ended = False
    return tuple(names), ended


def _step(
    op: pickletools.OpcodeInfo,
    arg: Any,
    stack: list[str | None],
    marks: list[int],
    memo: dict[int, str | None],
    names: dict[str, None],
) -> None:
    """Do to the stack what an opcode does to it, as far as texts are concerned."""
    name, result = op.name, None
    if name in ("GLOBAL", "INST"):
        names[_cut(str(arg).replace(" ", ".", 1))] = None
    elif name == "STACK_GLOBAL":
        known = [text for text in stack[-2:] if text is not None]
        names[_cut(".".join(known)) if len(known) == 2 else "?"] = None
    elif name in ("EXT1", "EXT2", "EXT4"):
        names[f"copyreg extension {arg}"] = None
    elif "UNICODE" in name or "STRING" in name:
        result = str(arg)
    elif name in ("GET", "BINGET", "LONG_BINGET"):
        result = memo.get(int(arg or 0))
    top = stack[-1] if stack else None
    if name == "MARK":
        marks.append(len(stack))
    elif name == "MEMOIZE":
        memo[len(memo)] = top
    elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
        memo[int(arg or 0)] = top
    elif name == "DUP":
        stack.append(top)
    elif name == "POP" and marks and marks[-1] == len(stack):
        marks.pop()
    else:
        before = op.stack_before
        if pickletools.markobject in before:
            del stack[marks.pop() if marks else 0 :]
            before = before[: before.index(pickletools.markobject)]
        del stack[max(0, len(stack) - len(before)) :]
        stack.extend([result] * len(op.stack_after))


def _cut(name: str) -> str:
    return name if len(name) <= _NAME else name[: _NAME - 1] + "…"


class Stored:
    """Mixin for a root value whose stored form is not the encoder's own: `stored` is given back while it is unchanged."""

    stored: bytes


class StoredDict(dict[str, Any], Stored):
    pass


class StoredList(list[Any], Stored):
    pass


class StoredStr(str, Stored):
    pass


class StoredInt(int, Stored):
    pass


class StoredFloat(float, Stored):
    pass


class StoredBytes(bytes, Stored):
    pass


class StoredMap(MapValue, Stored):
    pass


STORED: dict[type, Any] = {
    dict: StoredDict,
    list: StoredList,
    str: StoredStr,
    int: StoredInt,
    float: StoredFloat,
    bytes: StoredBytes,
    MapValue: lambda value: StoredMap(value.pairs),
}
"""How to make the remembering kind of a value; `studio.codec.objects` adds `Tagged`."""


def with_stored_form(value: Any, blob: bytes) -> Any:
    """The same value, remembering the bytes it was read from; `Opaque` for the few that have no form but one."""
    make = STORED.get(type(value))
    if make is None:
        return Opaque("damaged", blob)
    kept = make(value)
    object.__setattr__(kept, "stored", blob)
    return kept
