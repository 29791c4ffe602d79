"""Sessions of our own: what a coding agent writes to its file, record by record."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SESSION = "5e55101d-0000-4000-8000-000000000001"
Rec = dict[str, Any]


class Book:
    """Writes one session; each method appends a record below the last one, or below `parent`."""

    def __init__(self, session: str = SESSION, prefix: str = "a") -> None:
        self.session, self.prefix = session, prefix
        self.records: list[Rec] = []
        self.last: str | None = None

    def _add(self, kind: str, parent: str | None = "", **fields: Any) -> str:
        number = len(self.records) + 1
        ident = f"{self.prefix}{number:07}-0000-4000-8000-{number:012}"
        record = {
            "parentUuid": self.last if parent == "" else parent, "isSidechain": False, "userType": "external",
            "cwd": "/home/mara/bakery", "sessionId": self.session, "version": "2.1.89", "gitBranch": "main", "type": kind,
            "uuid": ident, "timestamp": f"2026-05-04T08:{number // 60:02}:{number % 60:02}.000Z", **fields,
        }  # fmt: skip
        self.records.append(record)
        self.last = ident
        return ident

    def prompt(self, text: str, parent: str | None = "", **fields: Any) -> str:
        return self._add("user", parent, message={"role": "user", "content": text}, **fields)

    def answer(self, *blocks: Any, key: str = "", parent: str | None = "", output: int = 10, **fields: Any) -> str:
        held = [{"type": "text", "text": one} if isinstance(one, str) else one for one in blocks]
        usage = {
            "input_tokens": 5, "output_tokens": output, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 7,
        }  # fmt: skip
        message = {
            "id": key or f"msg_{self.prefix}{len(self.records):06}", "role": "assistant", "model": "model-one",
            "content": held, "stop_reason": "end_turn", "usage": usage,
        }  # fmt: skip
        return self._add("assistant", parent, message=message, **fields)

    def result(self, call: str, text: str = "done", parent: str | None = "", error: bool = False, **fields: Any) -> str:
        block: Rec = {"type": "tool_result", "tool_use_id": call, "content": text}
        if error:
            block["is_error"] = True
        return self._add("user", parent, message={"role": "user", "content": [block]}, **fields)

    def note(self, **fields: Any) -> None:
        self.records.append({"sessionId": self.session, **fields})

    def lines(self) -> list[str]:
        return [json.dumps(record) for record in self.records]

    def write(self, folder: Path, name: str = "") -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name or self.session}.jsonl"
        path.write_text("".join(line + "\n" for line in self.lines()))
        return path


def call(ident: str, tool: str, **given: Any) -> Rec:
    return {"type": "tool_use", "id": ident, "name": tool, "input": given}


def bakery() -> Book:
    """Two prompts; a list of todos, an edit, and a shell command beside a second edit, in one answer."""
    book = Book()
    book.prompt("Scale the bread recipe for forty loaves.", permissionMode="default")
    todos = [{"content": "Read the recipe", "status": "in_progress"}, {"content": "Scale it", "status": "pending"}]
    book.answer("First a plan.", key="msg_plan", output=1)
    book.answer(call("call_plan", "TodoWrite", todos=todos), key="msg_plan", output=30)
    book.result("call_plan", "Todos have been modified")
    book.answer(call("call_edit", "Edit", file_path="/home/mara/bakery/bread.md", old_string="500 g", new_string="20 kg"))
    patch = [{"oldStart": 3, "oldLines": 1, "newStart": 3, "newLines": 1, "lines": ["-500 g", "+20 kg"]}]
    book.result("call_edit", "updated", toolUseResult={"filePath": "/home/mara/bakery/bread.md", "structuredPatch": patch})
    done = [{**one, "status": "completed"} for one in todos]
    first = book.answer(call("call_done", "TodoWrite", todos=done), key="msg_both")
    second = book.answer(call("call_ls", "Bash", command="ls"), key="msg_both")
    book.result("call_done", "ok", parent=first)
    book.result("call_ls", "bread.md", parent=second)
    book.answer("Scaled to forty loaves.")
    book.prompt("And the salt?")
    book.answer("Four hundred grams.")
    return book
