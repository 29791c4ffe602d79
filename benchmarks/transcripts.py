"""Time whole `studio` processes on big transcripts beside a bare parse of the same file, and print a table.

    python benchmarks/transcripts.py [--mb 10 100 500] [--runs 3] [--rollout-mb 100] [--sessions 1000]
        [--viewers BIN]

The file is a session with split answers, todo lists, edits and images, deterministic. The bare parses decode every line with a
library and keep nothing. Each figure is a fresh process with a warm file cache: the best of `--runs`, with its peak memory;
`wall` counts what a person waits, `cpu` what the processor did.
Rows marked `first` have an empty data folder, the others have opened
the file before. `--viewers` names the folder of programs of an environment that has makers of HTML pages installed
(claude-code-log, claude-code-transcripts, ai-replay); those that are there are timed on files up to `--viewers-mb`.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

WORDS = ("flour", "water", "salt", "oven", "loaf", "crust", "knead", "proof", "bake", "scale", "gram", "rise", "fold", "rye")
READ = """
import sys, {library}
decode = {decode}
with open(sys.argv[1], "rb", buffering=4 << 20) as file:
    for line in file:
        decode(line)
"""
PARSERS = {
    "json, every line": READ.format(library="json", decode="json.loads"),
    "orjson, every line": READ.format(library="orjson", decode="orjson.loads"),
    "msgspec, every line": READ.format(library="msgspec", decode="msgspec.json.Decoder().decode"),
}
LOOKS = {
    "ls": ["ls", "FILE"],
    "tree --limit 40": ["tree", "FILE", "--limit", "40"],
    "show 20": ["show", "FILE", "20"],
    "show in the middle": ["show", "FILE", "MIDDLE"],
    "show head": ["show", "FILE", "head"],
    "diff head": ["diff", "FILE", "head"],
    "search a text that is nowhere": ["search", "FILE", "nowhere to be found"],
}
VIEWERS = {
    "claude-code-log": ["{bin}/claude-code-log", "{file}", "-o", "{out}/page.html"],
    "claude-code-transcripts": ["{bin}/claude-code-transcripts", "json", "{file}", "-o", "{out}"],
    "ai-replay": ["{bin}/ai-replay", "{file}", "-o", "{out}/page.html"],
}
GIVE_UP = 600
"""Seconds for a viewer."""


def session(path: Path, size_wanted: int, seed: int = 7, image: int = 0) -> None:
    """Write a session of about so many bytes; its ids are its own for each seed. With `image`, one result holds one so large."""
    chance = random.Random(seed)
    parent: str | None = None
    count = size = 0
    usage = {"input_tokens": 4, "output_tokens": 80, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 90}
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 40_000}}
    with path.open("w") as file:

        def text(words: int) -> str:
            return " ".join(chance.choice(WORDS) for _ in range(words))

        def add(kind: str, content: Any, key: str = "", **fields: Any) -> None:
            nonlocal parent, count, size
            count += 1
            message = {"role": kind, "content": content}
            if kind == "assistant":
                message |= {"id": key, "type": "message", "model": "model-one", "stop_reason": None, "stop_sequence": None}
                message |= {"usage": usage}
            at = f"2026-05-{1 + count // 86400:02}T{count // 3600 % 24:02}:{count // 60 % 60:02}:{count % 60:02}.000Z"
            uuid = f"{count:08x}-0000-4000-8000-{seed:06x}{count:06x}"
            place = {"cwd": "/home/mara/bakery", "sessionId": path.stem, "gitBranch": "main", "isSidechain": False}
            place |= {"userType": "external", "version": "2.1.89"}
            record = {"parentUuid": parent, **place, "type": kind, "message": message, "uuid": uuid, "timestamp": at, **fields}
            line = json.dumps(record)
            file.write(line + "\n")
            size, parent = size + len(line) + 1, uuid

        if image:
            add("user", "Look at this.")
            add(
                "assistant",
                [{"type": "tool_use", "id": "call_large", "name": "Read", "input": {"file_path": "a.png"}}],
                "msg_large",
            )
            source = {"type": "base64", "media_type": "image/png", "data": "QUJD" * (image // 4)}
            held = [{"type": "image", "source": source}]
            add("user", [{"type": "tool_result", "tool_use_id": "call_large", "content": held}])
            size = 0
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
                said: Any = [shot] if chance.random() < 0.004 else text(300)
                block = {"type": "tool_result", "tool_use_id": call, "content": said}
                add("user", [block], toolUseResult={"stdout": text(100)})
            add("assistant", [{"type": "text", "text": text(80)}], f"msg_{seed}_{count}")


def rollout(path: Path, size_wanted: int) -> None:
    """Write a rollout of Codex of about so many bytes."""
    chance = random.Random(11)
    count = size = 0
    with path.open("w") as file:

        def text(words: int) -> str:
            return " ".join(chance.choice(WORDS) for _ in range(words))

        def add(kind: str, **payload: Any) -> None:
            nonlocal count, size
            count += 1
            at = f"2026-05-{1 + count // 86400:02}T{count // 3600 % 24:02}:{count // 60 % 60:02}:{count % 60:02}.000Z"
            line = json.dumps({"timestamp": at, "type": kind, "payload": payload})
            file.write(line + "\n")
            size += len(line) + 1

        def say(role: str, words: str) -> None:
            kind = "output_text" if role == "assistant" else "input_text"
            add("response_item", type="message", role=role, content=[{"type": kind, "text": words}])

        add("session_meta", id="01a00000-0000-7000-8000-000000000001", cwd="/home/mara/bakery", cli_version="0.98.0")
        while size < size_wanted:
            say("user", text(40))
            for _ in range(6):
                say("assistant", text(60))
                asked = json.dumps({"command": ["bash", "-lc", text(12)]})
                add("response_item", type="function_call", name="shell", arguments=asked, call_id=f"call_{count}")
                add("response_item", type="function_call_output", call_id=f"call_{count - 1}", output=text(500))
                usage = {"input_tokens": 9 * count, "cached_input_tokens": 8 * count, "output_tokens": 7 * count}
                add("event_msg", type="token_count", info={"total_token_usage": usage})
            say("assistant", text(80))


class Took(NamedTuple):
    wall: float
    cpu: float
    peak: float
    """Megabytes."""
    ended: bool = True


def elsewhere(work: Callable[..., None], *given: Any) -> None:
    """Run in a process of its own: what this one takes counts for its children."""
    process = multiprocessing.get_context("fork").Process(target=work, args=given)
    process.start()
    process.join()


def sessions(folder: Path, count: int) -> None:
    """A folder of sessions of 50 to 300 KB."""
    chance = random.Random(3)
    folder.mkdir()
    for number in range(count):
        name = f"{number:08x}-aaaa-4bbb-8ccc-{number:012x}.jsonl"
        session(folder / name, chance.randrange(50_000, 300_000), number + 1)


def timed(command: list[str], runs: int, fresh: Path | None = None) -> Took:
    """The best of some runs; `fresh` is a folder that is removed before each."""
    found = []
    for _ in range(runs):
        if fresh is not None:
            shutil.rmtree(fresh, ignore_errors=True)
        began = time.perf_counter()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        stop = threading.Timer(GIVE_UP, child.kill)
        stop.start()
        _, status, used = os.wait4(child.pid, 0)
        stop.cancel()
        peak = used.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1024)
        found.append(Took(time.perf_counter() - began, used.ru_utime + used.ru_stime, peak, status == 0))
    columns = list(zip(*found, strict=True))
    return Took(min(columns[0]), min(columns[1]), max(columns[2]), all(columns[3]))


def say(where: str, what: str, took: Took, more: str = "") -> None:
    ended = "" if took.ended else " (failed)"
    print(f"| {where} | {what}{ended} | {took.wall:.2f} | {took.cpu:.2f} | {took.peak:.0f} | {more} |", flush=True)


def one_file(path: Path, name: str, data: Path, runs: int) -> None:
    studio = [sys.executable, "-m", "studio"]
    for parser, code in PARSERS.items():
        say(name, parser, timed([sys.executable, "-c", code, str(path)], runs))
    listed = json.loads(subprocess.run([*studio, "ls", str(path), "--json"], capture_output=True, check=True).stdout)
    middle = str(listed["threads"][0]["checkpoints"] // 2)
    for look, words in LOOKS.items():
        given = [{"FILE": str(path), "MIDDLE": middle}.get(word, word) for word in words]
        say(name, f"studio {look}, first", timed([*studio, *given], runs, fresh=data))
        say(name, f"studio {look}", timed([*studio, *given], runs))


def viewers(path: Path, name: str, programs: str, runs: int) -> None:
    for viewer, words in VIEWERS.items():
        if not os.path.exists(os.path.join(programs, viewer)):
            continue
        with tempfile.TemporaryDirectory() as out:
            took = timed([word.format(bin=programs, file=path, out=out) for word in words], runs)
            size = sum(one.stat().st_size for one in Path(out).rglob("*") if one.is_file())
        say(name, viewer, took, f"{size / 1e6:.0f} MB")


def many(folder: Path, count: int, data: Path, runs: int) -> None:
    elsewhere(sessions, folder, count)
    size = sum(one.stat().st_size for one in folder.iterdir())
    where = f"{count:,} sessions, {size / 1e6:.0f} MB"
    ls = [sys.executable, "-m", "studio", "ls", str(folder)]
    say(where, "studio ls, first", timed(ls, runs, fresh=data))
    say(where, "studio ls", timed(ls, runs))
    with next(folder.iterdir()).open("a") as file:
        file.write("\n")
    say(where, "studio ls, one of them changed", timed(ls, 1))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--mb", type=int, nargs="*", default=[10, 100])
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--rollout-mb", type=int, default=100)
    options.add_argument("--sessions", type=int, default=1000)
    options.add_argument("--viewers", default="")
    options.add_argument("--viewers-mb", type=int, default=100)
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        os.environ["STUDIO_DATA_DIR"] = str(data)
        print("| what is read | by | wall | cpu | peak MB | output |\n| --- | --- | --- | --- | --- | --- |")
        for megabytes in chosen.mb:
            path = Path(folder) / f"{megabytes}.jsonl"
            elsewhere(session, path, megabytes << 20)
            one_file(path, f"{megabytes} MB", data, chosen.runs)
            if chosen.viewers and megabytes <= chosen.viewers_mb:
                viewers(path, f"{megabytes} MB", chosen.viewers, 1)
            path.unlink()
        if chosen.rollout_mb:
            path = Path(folder) / "rollout.jsonl"
            elsewhere(rollout, path, chosen.rollout_mb << 20)
            one_file(path, f"rollout, {chosen.rollout_mb} MB", data, chosen.runs)
            path.unlink()
        path = Path(folder) / "long-line.jsonl"
        elsewhere(session, path, 1 << 20, 7, 30 << 20)
        one_file(path, "1 MB and a line of 30 MB", data, chosen.runs)
        path.unlink()
        if chosen.sessions:
            many(Path(folder) / "many", chosen.sessions, data, chosen.runs)


if __name__ == "__main__":
    main()
