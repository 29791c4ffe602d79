"""Damage real databases at random and look at each: no crash, no hang, no import, no file changed, nothing printed raw.

    python -m benchmarks.fuzz [FOLDER|FILE ...] [--count 10000] [--seed N] [--seconds N] [--jobs 2] [--pages 0.1]
                            [--shapes 0.3]
    python -m benchmarks.fuzz [FOLDER|FILE ...] --seed N --replay NUMBER [--keep FOLDER]

The looks are those of the command line and, for a share of the files, the pages of the browser view, the panes of the
terminal UI and forks. Each mutation has a number; the seed, the number and the list of files give the same damage again. The
looks run in worker processes with a limit on memory; one that says nothing for a minute is ended, and that counts as a hang.
Exit code 1: faults.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
HANG_SECONDS = 60.0
MEMORY_BYTES = 3 << 30
SUFFIXES = (".sqlite", ".db", ".sqlite3")


FAST_FOLDER = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
"""Where the copies lie: ten thousand files need no disk."""


def sources(places: list[str]) -> list[Path]:
    """The databases named, and those in the folders named, in a fixed order."""
    found: list[Path] = []
    for place in places or [str(ROOT / "sample_threads")]:
        path = Path(place)
        found += sorted(one for one in path.rglob("*") if one.suffix in SUFFIXES) if path.is_dir() else [path]
    return [one for one in found if one.is_file()]


def one(files: list[Path], seed: int, number: int, folder: Path, share: float, shapes: float) -> dict[str, Any]:
    """Make mutation `number` in a fresh folder and look at it."""
    from benchmarks.looking import faults
    from benchmarks.mutations import MUTATIONS, mutate
    from benchmarks.shapes import SHAPES

    rng = random.Random(f"{seed}:{number}")
    source = rng.choice(files)
    path = folder / "case.sqlite"
    shutil.copyfile(source, path)
    names = mutate(path, rng, SHAPES if rng.random() < shapes else MUTATIONS)
    for file in folder.iterdir():  # a file written just now is waited for, in case it is still being written
        os.utime(file, (time.time() - 60,) * 2)
    started = time.perf_counter()
    found = faults(path, rng, share)
    took = time.perf_counter() - started
    return {"number": number, "file": str(source), "mutations": names, "seconds": took, "faults": found}


def work(files: list[Path], seed: int, numbers: list[int], share: float, shapes: float) -> None:
    """A worker: one line of JSON before and one after each mutation."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    from benchmarks.looking import prepare

    sys.setrecursionlimit(1000)
    say, sys.stdout = sys.stdout, sys.stderr
    with tempfile.TemporaryDirectory(prefix="studio-fuzz-", dir=FAST_FOLDER) as base:
        tempfile.tempdir = base
        warm_up = Path(base, "warm-up")
        warm_up.mkdir()
        shutil.copyfile(ROOT / "sample_threads" / "research_team.sqlite", warm_up / "case.sqlite")
        prepare(warm_up / "case.sqlite", Path(base, "data"))
        for number in numbers:
            print(json.dumps({"started": number}), file=say, flush=True)
            folder = Path(base, str(number))
            folder.mkdir()
            print(json.dumps(one(files, seed, number, folder, share, shapes)), file=say, flush=True)
            shutil.rmtree(folder, ignore_errors=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(json.dumps({"peak_mb": peak}), file=say, flush=True)


class Attack:
    """Workers over the numbers that are left, until all are done or the time is up."""

    def __init__(self, options: argparse.Namespace, files: list[Path]) -> None:
        self.options, self.files = options, files
        self.left = collections.deque(range(options.first, options.first + options.count))
        self.ends = time.monotonic() + options.seconds if options.seconds else float("inf")
        self.lock = threading.Lock()
        self.done, self.peak, self.slowest = 0, 0, (0.0, -1)
        self.faults: list[dict[str, Any]] = []

    def run(self) -> None:
        threads = [threading.Thread(target=self._worker) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _worker(self) -> None:
        while time.monotonic() < self.ends:
            with self.lock:
                batch = [self.left.popleft() for _ in range(min(100, len(self.left)))]
            if not batch:
                return
            while batch and time.monotonic() < self.ends:
                batch = self._batch(batch)

    def _batch(self, numbers: list[int]) -> list[int]:
        """Run a worker over the numbers; returns those that it left when it died or hung."""
        call = [sys.executable, "-m", "benchmarks.fuzz", *map(str, self.files), "--pages", str(self.options.pages)]
        call += ["--shapes", str(self.options.shapes), "--seed", str(self.options.seed), "--numbers"]
        process = subprocess.Popen(
            [*call, ",".join(map(str, numbers))], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        lines: queue.Queue[str] = queue.Queue()
        said: list[str] = []
        readers = [
            threading.Thread(target=_pump, args=(process.stdout, lines.put)),
            threading.Thread(target=_pump, args=(process.stderr, said.append)),
        ]
        for reader in readers:
            reader.start()
        current: int | None = None
        why = ""
        while time.monotonic() < self.ends:
            try:
                text = lines.get(timeout=HANG_SECONDS)
            except queue.Empty:
                why = f"hang: nothing for {HANG_SECONDS:.0f} s"
                break
            if not text:
                break
            entry = json.loads(text)
            if "started" in entry:
                current = entry["started"]
            elif "peak_mb" in entry:
                self.peak = max(self.peak, entry["peak_mb"])
            else:
                self._count(entry)
                numbers, current = [one for one in numbers if one > entry["number"]], None
        process.kill()
        process.wait()
        for reader in readers:
            reader.join()
        if current is not None and time.monotonic() < self.ends:
            self._count(
                {"number": current, "faults": [why or f"the worker died ({process.returncode}): {''.join(said)[-1500:]}"]}
            )
            numbers = [one for one in numbers if one > current]
        elif numbers and current is None and not why and time.monotonic() < self.ends:
            raise SystemExit(f"the worker cannot start: {''.join(said)[-1500:]}")
        return numbers

    def _count(self, entry: dict[str, Any]) -> None:
        with self.lock:
            self.done += 1
            self.slowest = max(self.slowest, (entry.get("seconds", HANG_SECONDS), entry["number"]))
            if entry["faults"]:
                self.faults.append(entry)
                print(f"FAULT {entry['number']} {entry.get('file', '')} {entry.get('mutations', '')}", flush=True)
                for text in entry["faults"][:3]:
                    print("    " + text.replace("\n", "\n    "), flush=True)


def _pump(stream: Any, put: Any) -> None:
    for text in stream:
        put(text)
    put("")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="databases, or folders of them (default: the samples)")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="number of the first mutation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=0, help="stop after so long")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--pages",
        type=float,
        default=0.1,
        metavar="SHARE",
        help="of how many the browser view and the panes are looked at, and forks made",
    )
    parser.add_argument(
        "--shapes", type=float, default=0.3, metavar="SHARE", help="how many are sound files of a shape that no saver writes"
    )
    parser.add_argument("--replay", type=int, metavar="NUMBER", help="make one mutation again and say what happens")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="with --replay: keep the file there")
    parser.add_argument("--numbers", help=argparse.SUPPRESS)
    options = parser.parse_args()
    files = sources(options.files)
    if not files:
        raise SystemExit("no database there")
    if options.numbers is not None:
        work(files, options.seed, [int(number) for number in options.numbers.split(",")], options.pages, options.shapes)
        return 0
    if options.replay is not None:
        return replay(files, options)
    started = time.monotonic()
    attack = Attack(options, files)
    attack.run()
    took = time.monotonic() - started
    print(
        f"{attack.done} mutated databases of {len(files)} files in {took:.0f} s (seed {options.seed}), "
        f"slowest {attack.slowest[0]:.1f} s (number {attack.slowest[1]}), peak {attack.peak} MB: {len(attack.faults)} with faults"
    )
    if attack.faults:
        print(
            f"again: python -m benchmarks.fuzz {' '.join(options.files)} --seed {options.seed} "
            f"--pages {options.pages} --shapes {options.shapes} --replay {attack.faults[0]['number']}"
        )
    return 1 if attack.faults else 0


def replay(files: list[Path], options: argparse.Namespace) -> int:
    from benchmarks.looking import prepare

    with tempfile.TemporaryDirectory(prefix="studio-fuzz-", dir=FAST_FOLDER) as base:
        tempfile.tempdir = base
        for name in ("warm-up", "case"):
            Path(base, name).mkdir()
        shutil.copyfile(ROOT / "sample_threads" / "research_team.sqlite", Path(base, "warm-up", "case.sqlite"))
        prepare(Path(base, "warm-up", "case.sqlite"), Path(base, "data"))
        found = one(files, options.seed, options.replay, Path(base, "case"), options.pages, options.shapes)
        if options.keep is not None:
            shutil.copytree(Path(base, "case"), options.keep, dirs_exist_ok=True)
    print(json.dumps({name: value for name, value in found.items() if name != "faults"}))
    for text in found["faults"]:
        print(text)
    return 1 if found["faults"] else 0


if __name__ == "__main__":
    sys.exit(main())
