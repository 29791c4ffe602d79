"""Forks by the studio, run by the LangGraph release that made the file: each kind of fork in each release that supports it.

    python -m benchmarks.eras [--folder DIR] [--only RELEASE ...] [--build]

`--build` makes an environment for each release in the folder (default `benchmarks/data/eras`) from the package registry; a
release without one is skipped and named. Every cell: the fork is written by `studio fork`, run by that release itself in a fresh
process (not by the studio's runner), and checked: the edit is kept, exactly these nodes ran, types are kept, the original file
is byte-identical. Prints a table; exit code 1 where a cell is wrong.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

HERE = Path(__file__).resolve().parent
RELEASES = {
    "0.1.19": (),
    "0.2.0": ("langgraph-checkpoint==1.0.2", "langgraph-checkpoint-sqlite==1.0.0"),
    "0.2.20": ("langgraph-checkpoint==1.0.12", "langgraph-checkpoint-sqlite==1.0.4"),
    "0.2.34": ("langgraph-checkpoint==2.0.1", "langgraph-checkpoint-sqlite==2.0.0"),
    "0.2.76": ("langgraph-checkpoint==2.0.16", "langgraph-checkpoint-sqlite==2.0.5"),
    "0.3.10": ("langgraph-checkpoint==2.0.25", "langgraph-checkpoint-sqlite==2.0.6"),
    "0.3.34": ("langgraph-checkpoint==2.0.25", "langgraph-checkpoint-sqlite==2.0.6"),
    "0.4.10": ("langgraph-checkpoint==2.1.0", "langgraph-checkpoint-sqlite==2.0.11"),
    "0.6.11": ("langgraph-checkpoint==2.1.2", "langgraph-checkpoint-sqlite==2.0.11"),
    "1.0.3": ("langgraph-checkpoint==3.0.1", "langgraph-checkpoint-sqlite==3.0.1"),
    "1.1.10": ("langgraph-checkpoint==4.0.3", "langgraph-checkpoint-sqlite==3.0.3"),
    "1.2.24": ("langgraph-checkpoint==4.3.2", "langgraph-checkpoint-sqlite==3.1.2"),
}


class Wrong(Exception):
    """What a cell shows instead of what it should."""


class Unsupported(Exception):
    """The release has no such feature, or the studio says why it refuses."""


class Era(Struct):
    """One release with its file; `run` and `fork` are processes of their own."""

    python: Path
    file: Path
    home: Path
    threads: dict[str, str]

    def studio(self, *args: str) -> Any:
        command = [sys.executable, "-m", "studio", *args, "--json", "--scratch", str(self.home / "scratch.sqlite")]
        env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(HERE.parent), "STUDIO_DATA_DIR": str(self.home)}
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=60, check=False)
        if done.returncode == 1 and not done.stdout:
            raise Unsupported(done.stderr.strip().splitlines()[0])
        if done.returncode not in (0, 1):
            raise Wrong(f"studio {args[0]}: {done.stderr.strip()[:200]}")
        return json.loads(done.stdout)

    def rows(self, thread: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.studio("tree", str(self.file), "--thread", thread, "--all-ns")["rows"]
        return found

    def at(self, thread: str, *nodes: str, inner: bool = False) -> str:
        """The number of the last row from which exactly these nodes run."""
        for row in reversed(self.rows(thread)):
            if row["origin"] == "base" and bool(row["checkpoint_ns"]) == inner:
                shown = self.studio("show", str(self.file), str(row["number"]), "--thread", thread)
                if sorted(shown["next"] or ()) == sorted(nodes):
                    return str(row["number"])
        raise Unsupported(f"no checkpoint of {thread} is followed by {', '.join(nodes) or 'nothing'}")

    def fork(self, thread: str, ref: str, *change: str) -> dict[str, Any]:
        found: dict[str, Any] = self.studio("fork", str(self.file), ref, "--thread", thread, *change)
        if not found["verified"] or found["surprises"]:
            raise Wrong(f"the fork is not as asked for: {found['surprises']}")
        return found

    def run(self, fork: dict[str, Any], graph: str, *, by_id: bool = True, resume: Any = None) -> dict[str, Any]:
        """What this release makes of a fork. `by_id`: begin at its id, as a rule; else at the thread's head."""
        root = fork["root"]
        command = [str(self.python), "era_graph.py", "run", fork["stored_in"], graph, root["thread_id"]]
        command += ["--at", root["checkpoint_id"]] if by_id else []
        command += ["--resume", json.dumps(resume)] if resume is not None else []
        done = subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=60, check=False)
        if done.returncode:
            raise Wrong(done.stderr.strip().splitlines()[-1])
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def check(found: dict[str, Any], ran: str, **values: Any) -> None:
    """Exactly these nodes ran (of each step in any order), and these values are there at the end."""
    if sorted(found["ran"]) != sorted(ran.split()):
        raise Wrong(f"ran {' '.join(found['ran'])} instead of {ran}")
    for name, value in values.items():
        if found["values"].get(name) != value:
            raise Wrong(f"{name} is {found['values'].get(name)!r} instead of {value!r}")


def copy(era: Era) -> None:
    check(era.run(era.fork("chain", era.at("chain", "b")), "chain"), "b c", value=4, seen="Money 5 4")


def patch(era: Era) -> None:
    fork = era.fork("chain", era.at("chain", "b"), "--set", "/value=50", "--set", "/money/amount=7")
    check(era.run(fork, "chain"), "b c", value=100, money="Money 7 EUR", seen="Money 7 100", note="first")


def unset(era: Era) -> None:
    found = era.run(era.fork("chain", era.at("chain", "b"), "--unset", "/note"), "chain")
    check(found, "b c", value=4, note=None)


def goto_back(era: Era) -> None:
    fork = era.fork("chain", era.at("chain"), "--goto", "b", "--set", "/value=8")
    check(era.run(fork, "chain"), "b c", value=16, seen="Money 5 16")


def new_thread(era: Era) -> None:
    fork = era.fork("chain", era.at("chain", "b"), "--set", "/value=3", "--new-thread", "another")
    check(era.run(fork, "chain"), "b c", value=6)


def failed_task(era: Era) -> None:
    """The finished sibling is kept or runs again, as the studio says for this file."""
    fork = era.fork("failing", "head", "--set", "/bad=false")  # what comes next is not known in the oldest files
    found = era.run(fork, "failing", by_id=False)
    check(found, "right join" if len(found["ran"]) == 2 else "left right join", seen="Money 5 1")


def asked_again(era: Era) -> None:
    fork = era.fork("asking", "head", "--set", "/value=9")
    found = era.run(fork, "asking", by_id=False)
    if "join" in found["ran"] or "ask" not in found["next"]:
        raise Wrong(f"the question is not open: ran {found['ran']}, next {found['next']}")
    check(era.run(fork, "asking", by_id=False, resume="yes"), "ask join", answer="yes", seen="Money 5 9")


def inside_a_subgraph(era: Era) -> None:
    fork = era.fork("nested", era.at("nested", "y", inner=True), "--set", "/value=100")
    check(era.run(fork, "nested", by_id=False), "y after", value=300, seen="Money 5 300")


def waiting_send(era: Era) -> None:
    """One Send gets another argument, one is dropped."""
    ref = era.at("sending", "work", "work", "work")
    sends = era.studio("show", str(era.file), ref, "--thread", "sending", "--path", "/__pregel_tasks")["value"]
    place = "arg" if "fields" in sends[0] or "node" in sends[0] else "1"
    fork = era.fork("sending", ref, "--set", f"/__pregel_tasks/0/{place}/value=70", "--unset", "/__pregel_tasks/2")
    check(era.run(fork, "sending"), "work work", trace=["plan", 70, 2])


def as_node(era: Era) -> None:
    """`update_state` by that release, in the child."""
    code = ("--graph", f"{HERE / 'era_graph.py'}:chain", "--python", str(era.python))
    fork = era.fork("chain", era.at("chain", "b"), "--as-node", "b", "--update", '{"value": 70, "trace": ["by hand"]}', *code)
    check(era.run(fork, "chain"), "c", value=70, trace=["a", "by hand", "c"], seen="Money 5 70")


KINDS: dict[str, Callable[[Era], None]] = {
    "copy": copy,
    "patch": patch,
    "unset": unset,
    "goto back": goto_back,
    "new thread": new_thread,
    "failed task": failed_task,
    "question asked again, answered": asked_again,
    "inside a subgraph": inside_a_subgraph,
    "waiting Send": waiting_send,
    "as a node": as_node,
}
NEEDS = {
    "failed task": "failing",
    "question asked again, answered": "asking",
    "inside a subgraph": "nested",
    "waiting Send": "sending",
}


def build(folder: Path, release: str) -> None:
    place = folder / release
    if not (place / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
        wanted = [f"langgraph=={release}", *RELEASES[release]]
        subprocess.run([str(place / "bin" / "pip"), "install", "-q", "--disable-pip-version-check", *wanted], check=True)


def cell(python: Path, kind: str, folder: Path) -> str:
    """`yes`, `.` for what this release or file cannot, or what is wrong."""
    file = folder / "threads.sqlite"
    command = [str(python), "era_graph.py", "make", str(file)]
    for _ in range(3):  # the oldest releases fail now and then, by a race of their own
        file.unlink(missing_ok=True)
        made = subprocess.run(command, capture_output=True, text=True, cwd=HERE, timeout=120, check=False)
        if not made.returncode:
            break
    if made.returncode:
        return f"WRONG: the file was not made: {made.stderr.strip().splitlines()[-1]}"
    era = Era(python, file, folder, json.loads(made.stdout))
    if NEEDS.get(kind, "chain") not in era.threads:
        return "."
    before = hashlib.sha256(file.read_bytes()).digest()
    try:
        KINDS[kind](era)
    except Unsupported as error:
        return f". ({error})"
    except Wrong as error:
        return f"WRONG: {error}"
    return "yes" if hashlib.sha256(file.read_bytes()).digest() == before else "WRONG: the original changed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=HERE / "data" / "eras")
    parser.add_argument("--only", nargs="*", default=list(RELEASES), choices=list(RELEASES))
    parser.add_argument("--build", action="store_true")
    options = parser.parse_args()
    wrong = 0
    print("| release | " + " | ".join(KINDS) + " |\n|" + " --- |" * (len(KINDS) + 1))
    for release in options.only:
        if options.build:
            build(options.folder, release)
        python = options.folder / release / "bin" / "python"
        if not python.exists():
            print(f"| {release} | no environment: --build makes one |")
            continue
        found = []
        for kind in KINDS:
            with tempfile.TemporaryDirectory() as place:
                found.append(cell(python, kind, Path(place)))
        wrong += sum(one.startswith("WRONG") for one in found)
        print(f"| {release} | " + " | ".join(found) + " |", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
