"""What a call of a tool is about, in one line: of its arguments the one that matters."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from studio.model import Value
from studio.render import gate, preview, secrets

FIRST = (
    "command", "cmd", "file_path", "notebook_path", "filePath", "pattern", "query", "url", "path", "description", "prompt",
    "skill", "subject", "taskId", "message", "text", "name", "id", "input",
)  # fmt: skip
"""Names of arguments, the most telling ones first."""
PATHS = frozenset(("file_path", "notebook_path", "filePath", "path"))
LISTS = {"todos": "todo", "plan": "step", "edits": "edit", "questions": "question"}
DONE = ("completed", "done")
"""What programs call a todo that is finished."""
LOOKED_AT = 2_000
"""Characters of an argument that are looked at for its one line."""


def about(name: str, args: Value, *, cwd: str = "", width: int = 200, show_secrets: bool = False) -> str:
    """`cart.py`, `pytest -q`, `3 todos, 1 done`: gated and masked, empty where there is no argument."""
    if isinstance(args, str):
        return _text(_patched(args) or args, None, width, show_secrets)
    if not isinstance(args, Mapping) or not args:
        return ""
    for key, word in LISTS.items():
        held = args.get(key)
        if isinstance(held, list):
            return _listed(held, word)
    if name in ("Task", "Agent", "spawn_agent") and isinstance(args.get("description"), str):
        return _text(args["description"], "description", width, show_secrets)
    said = next((one for one in FIRST if _says(args.get(one))), None)
    which: Any = said if said is not None else next((name for name, value in args.items() if _says(value)), None)
    if which is None:
        return preview.arguments_text(preview.ToolCall(None, name, dict(args)), width)
    held = args[which]
    if isinstance(held, list):
        words = [str(one) for one in held[:40]]
        held = (
            words[2] if len(words) == 3 and words[0] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc") else " ".join(words)
        )
    if isinstance(held, str) and which in PATHS:
        held = short_path(held, cwd)
    if isinstance(held, str):
        held = _patched(held) or held
    return _text(str(held), str(which), width, show_secrets)


def short_path(path: str, cwd: str) -> str:
    """A path as seen from the folder that the agent worked in."""
    base = cwd.rstrip("/")
    return path[len(base) + 1 :] if base and path.startswith(base + "/") else path


def _says(value: Any) -> bool:
    return isinstance(value, (str, int)) and value not in ("", None) or (isinstance(value, list) and bool(value))


def _patched(text: str) -> str:
    """The files that the text of a patch names."""
    if "*** Begin Patch" not in text[:LOOKED_AT]:
        return ""
    marks = ("*** Add File: ", "*** Update File: ", "*** Delete File: ")
    lines = text[: 50 * LOOKED_AT].split("\n")
    names = [os.path.basename(line.partition(": ")[2].strip()) for line in lines if line.startswith(marks)]
    return ", ".join(names)


def _listed(held: list[Any], word: str) -> str:
    done = sum(1 for one in held if isinstance(one, Mapping) and one.get("status") in DONE)
    return f"{len(held)} {word if len(held) == 1 else word + 's'}" + (f", {done} done" if done else "")


def _text(text: str, key: str | None, width: int, show_secrets: bool) -> str:
    head = text[:LOOKED_AT]
    shown = head if show_secrets else secrets.shown(head, key)
    return gate.line(" ".join(shown.split()), width)
