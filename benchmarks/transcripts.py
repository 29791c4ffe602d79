"""Time whole `studio` processes on big transcripts beside a bare parse of the same file, and print a table.

    python benchmarks/transcripts.py [--mb 10 100] [--runs 3]

The file is a session with split answers, parallel calls, todo lists, edits and images, deterministic. The bare parse decodes the
named fields of every line with msgspec and keeps nothing. Each figure is a fresh process with a warm file cache: the best of
`--runs`, with its peak memory.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

WORDS = "flour water salt oven loaf crust knead proof bake scale gram rise fold starter rye wheat".split()  # noqa: SIM905
PARSE = """
import sys, msgspec
class Line(msgspec.Struct):
    type: str | None = None
    uuid: str | None = None
    parentUuid: str | None = None
decode = msgspec.json.Decoder(Line).decode
with open(sys.argv[1], "rb", buffering=4 << 20) as file:
    for line in file:
        decode(line)
"""


def session(path: Path, megabytes: int) -> None:
    """Write a session of about so many megabytes."""
    chance = random.Random(7)
    last: str | None = None
    count = size = 0
    with path.open("w") as file:

        def add(kind: str, message: dict[str, Any], parent: str | None, **fields: Any) -> str:
            nonlocal last, count, size
            count += 1
            ident = f"{count:08x}-0000-4000-8000-{count:012x}"
            record = {
                "parentUuid": parent, "isSidechain": False, "cwd": "/home/mara/bakery", "sessionId": "bench", "version": "2.1.89",
                "gitBranch": "main", "type": kind, "message": message, "uuid": ident,
                "timestamp": f"2026-05-{1 + count // 86400:02}T{count // 3600 % 24:02}:{count // 60 % 60:02}:{count % 60:02}.000Z",
                **fields,
            }  # fmt: skip
            line = json.dumps(record)
            size += len(line) + 1
            file.write(line + "\n")
            last = ident
            return ident

        def text(words: int) -> str:
            return " ".join(chance.choice(WORDS) for _ in range(words))

        while size < megabytes << 20:
            add("user", {"role": "user", "content": text(40)}, last)
            for step in range(6):
                usage = {
                    "input_tokens": 4,
                    "output_tokens": 80,
                    "cache_read_input_tokens": 9000,
                    "cache_creation_input_tokens": 90,
                }
                head = {"id": f"msg_{count}", "role": "assistant", "model": "model-one", "usage": usage}
                tool, given = "Edit", {"file_path": f"/{chance.randrange(40)}.md", "old_string": text(30), "new_string": text(30)}
