"""What records say, in the forms that front ends draw: texts, images as chips, what tools changed."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

from studio.stores.transcripts.names import Names

TEXT_LIMIT = 1_000_000
"""Characters of a text that a state holds; the record has the rest."""
CHIP = 512
"""Characters of base64 from which on it is shown as a chip."""
PATCH_LIMIT = 100_000

EDITS = Names(("Edit", "MultiEdit", "Write", "NotebookEdit", "Update"))
TASKS = Names(("TaskCreate", "TaskUpdate"))
TODOS = Names(("TodoWrite", "update_plan"))
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_MOVED = re.compile(r"^\*\*\* Move to: (.+?)\s*$", re.MULTILINE)


def text_of(content: Any) -> str:
    """The text of a message: a string, or the text blocks of a list."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        parts = [one if isinstance(one, str) else one.get("text") for one in content if isinstance(one, (str, dict))]
        return "\n".join(part for part in parts if isinstance(part, str))
    if isinstance(content, dict):
        return text_of(content.get("text") or content.get("content") or content.get("message"))
    return ""


def shown(content: Any, depth: int = 0) -> Any:
    """Content with binary blocks as chips and endless texts cut; a list of one text as that text."""
    if isinstance(content, str):
        return cut(content)
    if not isinstance(content, list):
        return small(content)
    blocks = [block(one) for one in content]
    if len(blocks) == 1 and isinstance(blocks[0], dict) and blocks[0].keys() == {"type", "text"}:
        return blocks[0]["text"]
    return blocks


def block(one: Any) -> Any:
    if not isinstance(one, dict):
        return small(one)
    kind = one.get("type")
    if kind in ("text", "input_text", "output_text", "summary_text", "reasoning_text") and isinstance(one.get("text"), str):
        return {"type": "text", "text": cut(one["text"])}
    if kind == "thinking" and isinstance(one.get("thinking"), str):
        return {"type": "thinking", "thinking": cut(one["thinking"])}
    source = one.get("source")
    if isinstance(source, dict) and isinstance(source.get("data"), str):
        return {**chip(source["data"], source.get("media_type")), "type": str(kind)}
    return small(one)


def small(value: Any, depth: int = 0) -> Any:
    """A plain value with long base64 as chips and endless texts cut."""
    if isinstance(value, str):
        if len(value) > CHIP and value.startswith("data:") and ";base64," in value[:100]:
            kind, _, data = value[5:].partition(";base64,")
            return chip(data, kind)
        return cut(value)
    if depth > 40:
        return value
    if isinstance(value, list):
        return [small(one, depth + 1) for one in value]
    if isinstance(value, dict):
        held: Any = value.get("data") or value.get("base64") or value.get("result")
        if (
            isinstance(held, str)
            and len(held) > CHIP
            and ("media_type" in value or "base64" in value or value.get("type") == "image_generation_call")
        ):
            return {
                **{name: small(one, depth + 1) for name, one in value.items() if one is not held},
                **chip(held, value.get("media_type")),
            }
        return {name: small(one, depth + 1) for name, one in value.items()}
    return value


def chip(data: str, kind: Any) -> dict[str, Any]:
    """A binary block by its hash, type and size: the same bytes have the same hash wherever they stand."""
    digest = hashlib.sha256(data.encode("ascii", "replace")).hexdigest()
    return {"media_type": kind if isinstance(kind, str) else None, "bytes": len(data) * 3 // 4, "sha256_of_base64": digest}


def cut(text: str) -> str:
    if len(text) <= TEXT_LIMIT:
        return text
    return f"{text[:TEXT_LIMIT]}… [{len(text):,} characters in all; the raw record has the rest]"


def boundary(document: dict[str, Any]) -> str:
    """A compaction in words."""
    held = document.get("compactMetadata")
    meta: dict[str, Any] = held if isinstance(held, dict) else {}
    numbers = [f"{name} {meta[name]}" for name in ("preTokens", "postTokens", "cumulativeDroppedTokens") if name in meta]
    how = f"{meta['trigger']} compaction" if isinstance(meta.get("trigger"), str) else "the context was compacted"
    return ", ".join([how, *numbers])


# ---- what tools changed


def effects_of_tool(ident: str, call: dict[str, Any], result: dict[str, Any], failed: bool) -> list[tuple[str, str | None, Any]]:
    """(what, call, detail): `todos` a whole list, `task` a delta, `file` a path with what happened to it."""
    name, args = call.get("name"), call.get("args")
    given: dict[str, Any] = args if isinstance(args, dict) else {}
    if failed or not isinstance(name, str):
        return []
    if name in TODOS:
        todos = given.get("todos") if name == "TodoWrite" else given.get("plan")
        return [("todos", ident, [_todo(one) for one in todos if isinstance(one, dict)])] if isinstance(todos, list) else []
    if name == "TaskCreate":
        task = result.get("task")
        number = task.get("id") if isinstance(task, dict) else None
        made: dict[str, Any] = {key: given[key] for key in ("subject", "description", "activeForm") if key in given}
        return [("task", ident, (str(number), {**made, "status": "pending"}))] if number is not None else []
    if name == "TaskUpdate":
        number = given.get("taskId")
        if result.get("success") is False or number is None:
            return []
        return [("task", ident, (str(number), {key: value for key, value in given.items() if key != "taskId"}))]
    path = given.get("file_path") or given.get("notebook_path") or given.get("filePath") or result.get("filePath")
    if name in EDITS and isinstance(path, str):
        return [("file", ident, (path, edit(name, given, result)))]
    if name == "Read" and isinstance(path, str):
        return [("file", ident, (path, {"state": "read"}))]
    return []


def _todo(one: dict[str, Any]) -> dict[str, Any]:
    return {("content" if key == "step" else str(key)): value for key, value in one.items()}


def edit(name: str, given: dict[str, Any], result: dict[str, Any]) -> dict[str, Any]:
    """What an edit did to a file: created or edited, with its patch."""
    made: dict[str, Any] = {"state": "created" if result.get("type") == "create" else "edited"}
    patch = patch_text(result.get("structuredPatch"))
    if not patch and name == "Write" and isinstance(given.get("content"), str):
        lines = given["content"].splitlines()
        patch = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *("+" + line for line in lines)])
    elif not patch:
        several = given.get("edits")
        edits: list[Any] = several if isinstance(several, list) else [given]
        patch = "\n".join(_replaced(one) for one in edits if isinstance(one, dict))
    if patch:
        made["patch"] = patch if len(patch) <= PATCH_LIMIT else patch[:PATCH_LIMIT] + "\n… cut"
    if result.get("userModified") is True:
        made["by_person"] = True
    return made


def _replaced(one: dict[str, Any]) -> str:
    old, new = one.get("old_string"), one.get("new_string")
    if not isinstance(old, str) or not isinstance(new, str):
        return ""
    return "\n".join([*("-" + line for line in old.splitlines()), *("+" + line for line in new.splitlines())])


def patch_text(hunks: Any) -> str:
    """A structured patch as the text of a diff."""
    out = []
    for hunk in hunks if isinstance(hunks, list) else ():
        if isinstance(hunk, dict) and isinstance(hunk.get("lines"), list):
            numbers = [hunk.get(key, 0) for key in ("oldStart", "oldLines", "newStart", "newLines")]
            out.append("@@ -{},{} +{},{} @@".format(*numbers))
            out += [str(line) for line in hunk["lines"]]
    return "\n".join(out)


def patched(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, what happened) for each file of an `apply_patch` text."""
    found = list(_PATCHED.finditer(text))
    for at, match in enumerate(found):
        body = text[match.end() : found[at + 1].start() if at + 1 < len(found) else len(text)]
        body = body.partition("*** End Patch")[0].strip("\n")
        state = {"Add": "created", "Update": "edited", "Delete": "deleted"}[match[1]]
        moved = _MOVED.search(body)
        made: dict[str, Any] = {"state": state, "patch": body[:PATCH_LIMIT]}
        if moved:
            made["moved_to"] = moved[1]
        yield match[2], made
