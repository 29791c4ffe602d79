"""Look at one file by the command line, the browser view and the panes, in this process; list what should not have happened."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import fronts
from benchmarks.forking import forks
from studio.cli import main
from studio.codec import jsontext
from studio.errors import StudioError
from studio.model import Address
from studio.session import Session
from studio.stores.private_copy import PREFIX

RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""What no output may hold as it is; said here apart from the gate, which is what is checked."""
CODES = (0, 2, 3)
"""Fine, choose a thread, cannot open or no such checkpoint."""
SLOW_SECONDS, WAITING_SECONDS = 10.0, 30.0
"""What one command may work, and what it may take on a busy machine; the slowest give up a damaged table after some seconds."""
MOST_THREADS, MOST_SHOWN = 2, 2
READERS = ("markdown_it", "mdurl", "linkify_it", "uc_micro", "pygments")
OWN = ("studio", "encodings", "fast_diff_match_patch", "pickletools", *READERS)
"""What the studio itself may import in the middle of a look; `pickletools` reads opcodes and runs none."""
FORBIDDEN = (
    "os.system",
    "os.exec",
    "os.posix_spawn",
    "os.fork",
    "subprocess.Popen",
    "pickle.find_class",
    "socket.connect",
    "ctypes.dlopen",
    "exec.file",
)

_events: list[str] = []
_watching = False


class Clock:
    """How long something takes from now on."""

    def __init__(self) -> None:
        self._worked, self._started = time.process_time(), time.perf_counter()

    def slow(self) -> str:
        """How long, where that is too long; else empty."""
        worked, took = time.process_time() - self._worked, time.perf_counter() - self._started
        return f"took {took:.1f} s, worked {worked:.1f} s" if worked > SLOW_SECONDS or took > WAITING_SECONDS else ""


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watching:
        return
    if event in FORBIDDEN:
        _events.append(f"{event} {arguments!r:.200}")
    elif event == "open" and isinstance(arguments[0], str) and isinstance(arguments[2], int):
        writes = arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if (
            writes
            and not arguments[0].startswith(os.path.join(tempfile.gettempdir(), PREFIX))
            and not arguments[0].startswith("/dev/")
        ):
            _events.append(f"open for writing {arguments[0]!r:.200}")


def prepare(warm_up: Path, data_folder: Path) -> None:
    """Once in a process, before the first `faults`: import what looking needs, then watch for more."""
    os.environ["STUDIO_DATA_DIR"] = str(data_folder)
    os.environ["NO_COLOR"] = "1"
    sys.dont_write_bytecode = True  # modules of ours that a look imports for the first time would be files written
    faults(warm_up, random.Random(0), share=1.0)
    sys.addaudithook(_audit)


def faults(path: Path, rng: random.Random, share: float = 0.0) -> list[str]:
    """All that is wrong with how the studio looks at a file alone in its folder; `rng` picks what is looked at closely.

    `share`: how often the pages of the browser view and the panes of the terminal UI are looked at as well, and how often
    checkpoints are forked (into the data folder, which is emptied), 0 to 1.
    """
    global _watching
    before, modules = snapshot(path.parent), set(sys.modules)
    _events.clear()
    _watching = True
    try:
        found = _looks(path, rng, share)
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        found = [f"{type(error).__name__} escapes: {error!s:.200}\n{traceback.format_exc()}"]
    finally:
        _watching = False
    after = snapshot(path.parent)
    if after != before:
        found.append(f"the folder changed: {sorted(set(after.items()) ^ set(before.items()))!r:.400}")
    new = sorted(name for name in set(sys.modules) - modules if name.partition(".")[0] not in OWN)
    if new:
        found.append(f"imported {new}")
    found += [f"did {event}" for event in _events]
    kept = Path(os.environ["STUDIO_DATA_DIR"])
    if kept.exists() and any(kept.iterdir()):
        found.append(f"left {[one.name for one in kept.iterdir()]} in the data folder")
    left = [one.name for one in Path(tempfile.gettempdir()).glob(f"{PREFIX}*")]
    if left:
        found.append(f"left private copies {left}")
    return found


def snapshot(folder: Path) -> dict[str, tuple[str, int]]:
    return {
        one.name: (hashlib.sha256(one.read_bytes()).hexdigest() if one.is_file() else "", one.stat().st_mtime_ns)
        for one in [folder, *folder.iterdir()]
    }


def _looks(path: Path, rng: random.Random, share: float) -> list[str]:
    found: list[str] = []

    def call(*arguments: str, codes: tuple[int, ...] = ()) -> str:
        begun = Clock()
        code, out, err = called(*arguments)
        slow = begun.slow()
        words = " ".join(arguments).replace(str(path), "FILE")
        if code not in (*CODES, *codes) or "Traceback" in err or "internal error" in err:
            _, _, trace = called(*arguments, "--debug")
            found.append(f"{words}: exits {code}: {trace[-3000:]}")
        if slow:
            found.append(f"{words}: {slow}")
        if code == 3 and len(err.splitlines()) > 60:
            found.append(f"{words}: {len(err.splitlines())} lines of error")
        for text in (out, err):
            found.extend(_raw_in(words, text))
        if "--json" in arguments and out:
            if not out.isascii():
                found.append(f"{words}: JSON that is not ASCII")
            try:
                for text in out.splitlines() if arguments[0] == "export" else [out]:
                    jsontext.loads(text, dict)
            except ValueError as error:
                found.append(f"{words}: no JSON: {error}")
        return out if code == 0 else ""

    file = str(path)
    as_json = rng.choice(([], ["--json"]))
    call("ls", file, *as_json)
    if rng.random() < 0.5:
        call("search", file, rng.choice(("a", "kettle", "0", "\u202e", "messages")), "--limit", "20")
    if rng.random() < 0.3:
        tables = call("tables", file, *as_json)
        for name in [one["name"] for one in json.loads(tables)["tables"]][:3] if as_json and tables else ():
            call("tables", file, name, "--limit", "20", *rng.choice(([], ["--json"])))
    try:
        session = Session.open(file)
    except StudioError:
        return found
    try:
        threads = session.thread_ids()
        session.problems()
        places = _places(session, rng.sample(threads, min(MOST_THREADS, len(threads))), rng)
    except StudioError:
        return found
    finally:
        session.close()
    for thread, addresses in places:
        name = json.dumps(thread)
        call("tree", file, "--thread", name, *rng.choice((["--all-ns"], ["--json"])))
        call("export", file, "--thread", name, "--json")
        call("edges", file, "--thread", name, *as_json)
        for ns, identity in addresses:
            call("show", file, identity, "--thread", name, "--ns", ns)
            call("diff", file, identity, "--thread", name, "--ns", ns)
        if addresses:
            call(
                "show",
                file,
                *rng.choice(
                    (
                        [addresses[0][1], "--ns", addresses[0][0], "--raw"],
                        [addresses[0][1], "--ns", addresses[0][0], "--sizes"],
                        ["head", "--json", "--show-secrets"],
                    )
                ),
                "--thread",
                name,
            )
    addresses = [Address(thread, *key) for thread, keys in places for key in keys[:1]]
    if rng.random() < share:
        found += _fronts(file, addresses, rng)
    if rng.random() < share:
        try:
            found.extend(forks(call, file, addresses, rng))
        finally:
            shutil.rmtree(os.environ["STUDIO_DATA_DIR"], ignore_errors=True)
    return found


def _fronts(file: str, addresses: list[Address], rng: random.Random) -> Iterator[str]:
    """What is wrong with the pages and panes of some checkpoints; a file that was opened before may not be by now."""
    begun = Clock()
    with contextlib.suppress(StudioError), contextlib.redirect_stderr(io.StringIO()) as said:
        for url, status, text in fronts.pages(file, addresses, rng):
            if status >= 500:
                yield f"{url} answers {status}: {said.getvalue()[-3000:] or text[:300]}"
            yield from _raw_in(url, text)
            if slow := begun.slow():
                yield f"{url}: {slow}"
            begun = Clock()
    with contextlib.suppress(StudioError):
        for pane, text in fronts.panes(file, addresses):
            yield from _raw_in(pane, text)


def _raw_in(where: str, text: str) -> Iterator[str]:
    raw = RAW.search(text)
    if raw:
        yield f"{where}: shows {raw.group()!r} raw: {text[max(0, raw.start() - 60) : raw.end() + 20]!r}"


def _places(session: Session, threads: list[str], rng: random.Random) -> list[tuple[str, list[tuple[str, str]]]]:
    """Some checkpoints of each thread, as (namespace, id); ids that no command line can carry are left out."""
    found = []
    for thread in threads:
        try:
            keys = list(session.tree(thread).keys(None))
        except StudioError:
            keys = []
        found.append((thread, rng.sample(keys, min(MOST_SHOWN, len(keys)))))
    return found


def called(*arguments: str) -> tuple[int, str, str]:
    """One call of the command line in this process: exit code, stdout, stderr."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(list(arguments))
    return code, out.getvalue(), err.getvalue()
