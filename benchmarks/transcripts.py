"""Time whole `studio` processes on big transcripts beside a bare parse of the same file, and print a table.

    python benchmarks/transcripts.py [--mb 10 100] [--runs 3]

The file is a session with split answers, todo lists, edits and images, deterministic. The bare parse decodes three named fields
of every line with msgspec and keeps nothing. Each figure is a fresh process with a warm file cache: the best of `--runs`, with
its peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WORDS = ("flour", "water", "salt", "oven", "loaf", "crust", "knead", "proof", "bake", "scale", "gram", "rise", "fold", "rye")
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


def session(path: Path, size_wanted: int, seed: int = 7) -> None:
    """Write a session of about so many bytes; its ids are its own for each seed."""
    chance = random.Random(seed)
    parent: str | None = None
    count = size = 0
    usage = {"input_tokens": 4, "output_tokens": 80, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90}
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 40_000}}
    with path.open("w") as file:

        def text(words: int) -> str:
            return " ".join(chance.choice(WORDS) for _ in range(words))

        def add(kind: str, content: Any, key: str = "", **fields: Any) -> None:
            nonlocal parent, count, size
            count += 1
            message = {"role": kind, "content": content}
            if kind == "assistant":
                message |= {"id": key, "model": "model-one", "usage": usage}
            at = f"2026-05-{1 + count // 86400:02}T{count // 3600 % 24:02}:{count // 60 % 60:02}:{count % 60:02}.000Z"
            uuid = f"{count:08x}-0000-4000-8000-{seed:06x}{count:06x}"
            place = {"cwd": "/home/mara/bakery", "sessionId": path.stem, "gitBranch": "main", "isSidechain": False}
            record = {"parentUuid": parent, **place, "type": kind, "message": message, "uuid": uuid, "timestamp": at, **fields}
            line = json.dumps(record)
            file.write(line + "\n")
            size, parent = size + len(line) + 1, uuid

        while size < size_wanted:
            add("user", text(40))
            for step in range(6):
                path_of = f"/home/mara/bakery/{chance.randrange(40)}.md"
                tool, given = "Edit", {"file_path": path_of, "old_string": text(30), "new_string": text(30)}
                if step == 0:
                    tool, given = "TodoWrite", {"todos": [{"content": text(4), "status": "pending"} for _ in range(6)]}
                elif step == 3:
                    tool, given = "Bash", {"command": text(12)}
                key, call = f"msg_{seed}_{count}", f"call_{seed}_{count}"
                add("assistant", [{"type": "text", "text": text(60)}], key)
                add("assistant", [{"type": "tool_use", "id": call, "name": tool, "input": given}], key)
                said: Any = [image] if chance.random() < 0.004 else text(300)
                block = {"type": "tool_result", "tool_use_id": call, "content": said}
                add("user", [block], toolUseResult={"stdout": text(100)})
            add("assistant", [{"type": "text", "text": text(80)}], f"msg_{seed}_{count}")


def timed(command: list[str], runs: int) -> tuple[float, float]:
    """(seconds, peak megabytes) of the best of some runs."""
    best, peak = 1e9, 0.0
    for _ in range(runs):
        began = time.perf_counter()
        child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, used = os.wait4(child.pid, 0)
        best = min(best, time.perf_counter() - began)
        peak = max(peak, used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024))
    return best, peak


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=int, nargs="+", default=[10, 100])
    options.add_argument("--runs", type=int, default=3)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["STUDIO_DATA_DIR"] = str(Path(folder) / "data")
        studio = [sys.executable, "-m", "studio"]
        print("| file | what | seconds | peak MB |\n| --- | --- | --- | --- |")
        for megabytes in chosen.mb:
            path = Path(folder) / f"{megabytes}.jsonl"
            session(path, megabytes << 20)
            for name, command in (
                ("bare parse", [sys.executable, "-c", PARSE, str(path)]),
                ("studio ls", [*studio, "ls", str(path)]),
                ("studio tree --limit 40", [*studio, "tree", str(path), "--limit", "40"]),
                ("studio show 20", [*studio, "show", str(path), "20"]),
                ("studio diff head", [*studio, "diff", str(path), "head"]),
                ("studio search", [*studio, "search", str(path), "nowhere to be found"]),
            ):
                seconds, peak = timed(command, chosen.runs)
                print(f"| {megabytes} MB | {name} | {seconds:.2f} | {peak:.0f} |", flush=True)


if __name__ == "__main__":
    main()
