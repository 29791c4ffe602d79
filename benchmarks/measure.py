"""Time whole `studio` processes beside LangGraph's own calls on the same files, and print a table.

    python benchmarks/measure.py [--data DIR] [--runs 3]

This program imports nothing big, since a child's peak counts its parent's size. Each figure is a fresh process with a warm
file cache: the best of `--runs`, with its peak memory. The LangGraph lines run in a process of their own too, and count
importing it, since a script that uses it must. Databases are made on first use.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent
SAMPLES = HERE.parent / "sample_threads"
HISTORY = """
import sqlite3, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph, START
from typing import TypedDict
class S(TypedDict, total=False):
    count: int
    messages: list
b = StateGraph(S); b.add_node("work", lambda s: {}); b.add_edge(START, "work")
g = b.compile(checkpointer=SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False)))
print(sum(1 for _ in g.get_state_history({"configurable": {"thread_id": "long"}})))
"""
DELTA = """
import sqlite3, sys
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph, START
sys.path.insert(0, sys.argv[2])
from generate import Growing
b = StateGraph(Growing); b.add_node("work", lambda s: {}); b.add_edge(START, "work")
g = b.compile(checkpointer=SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False)))
query = "SELECT checkpoint_id FROM checkpoints ORDER BY rowid LIMIT 1 OFFSET 2450"
at = sqlite3.connect(sys.argv[1]).execute(query).fetchone()[0]
state = g.get_state({"configurable": {"thread_id": "delta", "checkpoint_ns": "", "checkpoint_id": at}})
print(len(state.values["messages"]))
"""
STATES = """
import gc, sys, time
from studio.session import Session
gc.set_threshold(100_000, 50, 100)  # as the command line does
session = Session.open(sys.argv[1])
began = time.perf_counter()
count = sum(1 for _ in session.explainer.states(session.overlay.scan("delta")))
print(f"{count} states in {time.perf_counter() - began:.2f} s with the file open", file=sys.stderr)
"""
LISTING = """
import sqlite3, sys
from langgraph.checkpoint.sqlite import SqliteSaver
saver = SqliteSaver(sqlite3.connect(sys.argv[1], check_same_thread=False))
kept = list(saver.list(None)) if sys.argv[2] == "kept" else saver.list(None)
print(len({t.config["configurable"]["thread_id"] for t in kept}))
"""


def measure(command: Sequence[str], runs: int, env: dict[str, str]) -> tuple[float, float, float]:
    """(best seconds, seconds to the first line of that run, peak MB) of a whole process."""
    best = (float("inf"), 0.0, 0.0)
    for _ in range(runs):
        started = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.PIPE, env=env)
        assert process.stdout is not None
        process.stdout.readline()
        first = time.perf_counter() - started
        while process.stdout.read(1 << 20):
            pass
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = time.perf_counter() - started
        if process.returncode not in (0, 1):
            raise SystemExit(f"{' '.join(command)} exits {process.returncode}")
        best = min(best, (took, first, usage.ru_maxrss / 1024))
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    options.data.mkdir(parents=True, exist_ok=True)
    files = {}
    for kind in ("long", "wide", "delta", "deep"):
        files[kind] = options.data / f"{kind}.sqlite"
        if not files[kind].exists():
            print(f"making {files[kind].name} …", file=sys.stderr)
            subprocess.run([sys.executable, str(HERE / "generate.py"), kind, str(files[kind])], check=True)
    studio = [sys.executable, "-m", "studio"]
    long, wide, delta, deep = (str(files[kind]) for kind in ("long", "wide", "delta", "deep"))
    cases: list[tuple[str, list[str]]] = [
        ("studio ls, samples", [*studio, "ls", str(SAMPLES / "support_agent.sqlite")]),
        ("studio tree, 5,000 checkpoints", [*studio, "tree", long]),
        ("studio tree --limit 50, 5,000 checkpoints", [*studio, "tree", long, "--limit", "50"]),
        ("studio show 2500, 5,000 checkpoints", [*studio, "show", long, "2500"]),
        ("studio diff 2500, 5,000 checkpoints", [*studio, "diff", long, "2500"]),
        ("LangGraph get_state_history, 5,000 checkpoints", [sys.executable, "-c", HISTORY, long]),
        ("studio ls, 2,000 threads", [*studio, "ls", wide]),
        ("LangGraph list(saver.list(None)), 2,000 threads", [sys.executable, "-c", LISTING, wide, "kept"]),
        ("LangGraph saver.list(None), each let go of at once", [sys.executable, "-c", LISTING, wide, "streamed"]),
        ("studio show 2450, 5,000 delta states", [*studio, "show", delta, "2450"]),
        ("LangGraph get_state of the same checkpoint", [sys.executable, "-c", DELTA, delta, str(HERE)]),
        ("Explainer.states, all 5,000 delta states", [sys.executable, "-c", STATES, delta]),
        ("studio search, a text that is nowhere in 132 MB", [*studio, "search", long, "nowhere-to-be-found"]),
        ("studio tree --limit 50, 100,000 checkpoints", [*studio, "tree", deep, "--limit", "50"]),
        ("studio show 50000, 100,000 checkpoints", [*studio, "show", deep, "50000"]),
        ("studio tree --json, all 100,000 checkpoints", [*studio, "tree", deep, "--json"]),
        ("studio export --values none, 100,000 checkpoints", [*studio, "export", deep, "--json", "--values", "none"]),
    ]
    with tempfile.TemporaryDirectory() as home:
        env = dict(os.environ, STUDIO_DATA_DIR=home, NO_COLOR="1", PYTHONPATH=str(HERE.parent))
        print("| work | seconds | first line | peak MB |\n| --- | --- | --- | --- |")
        for name, command in cases:
            runs = 1 if name.startswith("LangGraph") else options.runs
            seconds, first, peak = measure(command, runs, env)
            print(f"| {name} | {seconds:.2f} | {first:.2f} | {peak:.0f} |", flush=True)
    print(
        f"\nbest of {options.runs}; Python {sys.version.split()[0]}, {os.cpu_count()} cores; own peak {_own_peak():.0f} MB",
        file=sys.stderr,
    )


def _own_peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
