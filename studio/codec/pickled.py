"""The names in a pickle, read from its opcodes: nothing is loaded, nothing is imported."""

from __future__ import annotations

import pickletools
from typing import Any

MAX_PICKLE_OPS = 200_000
MAX_PICKLE_NAMES = 1_000
_NAME = 300


def imported_names(blob: bytes) -> tuple[tuple[str, ...], bool]:
    """What loading a pickle would import, `module.name`, in order, read from its opcodes without loading it.

    The second value: whether these are all; not where it is damaged, cut, too long to wait for, or has too many.
    """
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
