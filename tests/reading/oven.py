"""A session that went wrong: prose with code, an edit that was made and one that was refused, a failed command, an error of the
service, a compaction, a picture, a rewind, a call without an answer."""

from __future__ import annotations

import base64
import hashlib
import struct
import zlib

from tests.stores.transcripts.sessions import Book, call

KEY = "sk-ant-api03-" + "A" * 40
ANSWER = """The comparison is **exact**. Ways on:

1. Use `pytest.approx`
2. Round, see [the docs](https://docs.example.org/approx)

| way | risk |
|---|---|
| approx | low |

```python
def test_heat():
    return 230  # never exact
```
"""
PATCH = [
    {"oldStart": 4, "oldLines": 1, "newStart": 4, "newLines": 2, "lines": ["-    assert 230", "+    # near", "+    assert True"]}
]


def png(width: int = 40, height: int = 30) -> bytes:
    rows = b"".join(b"\0" + bytes((x * 5 + y) % 256 for x in range(width)) for y in range(height))

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows, 0)) + part(b"IEND", b"")


def digest(raw: bytes) -> str:
    return hashlib.sha256(base64.b64encode(raw)).hexdigest()


def image(raw: bytes, kind: str = "image/png") -> dict[str, object]:
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": base64.b64encode(raw).decode()}}


def oven() -> Book:
    book = Book()
    test, code = "/home/mara/bakery/test_oven.py", "/home/mara/bakery/oven.py"
    book.prompt("Fix the flaky test in `test_oven.py`.", permissionMode="default")
    book.answer({"type": "thinking", "thinking": "Floats, I guess."}, "First the test.", call("read", "Read", file_path=test))
    book.result("read", "1\timport oven\n2\t\n")
    book.answer(
        ANSWER,
        call("made", "Edit", file_path=test, old_string="    assert 230", new_string="    # near\n    assert True"),
        call("refused", "Edit", file_path=code, old_string="return t", new_string="return round(t)"),
    )
    book.result("made", "updated", toolUseResult={"filePath": test, "structuredPatch": PATCH})
    book.result("refused", "File has not been read yet.", error=True)
    todos = [
        {"content": "Fix the test", "status": "completed"},
        {"content": "Run the suite", "status": "in_progress"},
        {"content": "Tell", "status": "pending"},
    ]
    book.answer(call("list", "TodoWrite", todos=todos), call("run", "Bash", command="pytest -q", description="Run"))
    book.result("list", "ok")
    book.result("run", "\x1b[31mFAILED\x1b[0m \u202etest", error=True)
    book._add("system", subtype="api_error", error={"message": "Overloaded"}, retryInMs=500, retryAttempt=1, maxRetries=10)
    book.answer("API Error: 529", isApiErrorMessage=True)
    meta = {"trigger": "manual", "preTokens": 98123, "postTokens": 4200}
    book._add("system", None, subtype="compact_boundary", logicalParentUuid=book.last, compactMetadata=meta)
    book.prompt("It goes on. **Floats** were compared.", isCompactSummary=True, isVisibleInTranscriptOnly=True)
    turn = book.prompt("Look at the picture.")
    book.answer(call("look", "Read", file_path="/home/mara/bakery/oven.png"))
    shown = {"type": "tool_result", "tool_use_id": "look", "content": [image(png())]}
    book._add("user", message={"role": "user", "content": [shown]})
    book.answer(f"Blue <b>oven</b> <script>alert(1)</script> {KEY}")
    later = [{**todos[0]}, {**todos[1], "status": "completed"}, {"content": "Rest", "status": "pending"}]
    book.prompt("Rewound: run it all.", parent=turn)
    book.answer(call("list2", "TodoWrite", todos=later))
    book.result("list2", "ok")
    book.answer(call("again", "Edit", file_path=test, old_string="a\nb\nc", new_string="a\nB\nc"))
    book.result("again", "updated")
    book.answer(call("open", "Bash", command="pytest -q"))
    return book
