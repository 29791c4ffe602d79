"""One child process: started in the user's interpreter, fed its request, listened to, and ended with all that it started.

The child (`child.py`) writes events as JSON lines on its stdout and leaves stderr to the user's prints. Anything that is not an
event counts as a log line; a flood of output is cut, counted and never stops the run.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any, cast

from studio.errors import RunError
from studio.requests import LOAD_SECONDS
from studio.running.descendants import Process, descendants, kill
from studio.running.graphs import GraphFound

CHILD = Path(__file__).with_name("child.py")

EVENTS = frozenset({"ready", "checkpoint", "task", "task_result", "log", "part", "end"})
_EVENT_LIMIT = 4_000_000
"""Bytes of one event line; the child keeps its events far below."""
_LINE_LIMIT = 2_000
_LINES_AT_ONCE = 200
_LINES_PER_SECOND = 100
_TERM_SECONDS = 2.0
_SILENT_LOOKS = 10
_USUAL_EXIT_SECONDS = 1.0
_EXIT_SECONDS = 6.0

Handler = Callable[[dict[str, Any]], None]


class Child:
    """A running child process. `run()` calls the handler for each event, from the calling thread, and returns the end event.

    `cancel()` may come from any thread. Raises RunError when the interpreter cannot be started.
    """

    def __init__(
        self,
        graph: GraphFound,
        request: Mapping[str, Any],
        *,
        timeout: float | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`environment` is added to the studio's own: what the request must not carry."""
        self.interpreter = graph.interpreter
        self._timeout = timeout
        self._cancelled = threading.Event()
        self._lock = threading.Lock()
        self._done = False
        self._seen: set[Process] = set()
        """Processes that the child had started when it was cancelled, those in sessions of their own among them."""
        self._queue: queue.Queue[dict[str, Any] | None] = queue.Queue(maxsize=10_000)
        self.tail: deque[str] = deque(maxlen=40)
        """The last lines that the user's code printed, for a process that dies without a word."""
        document = {**request, "graph": graph.request(), "watch": True}
        try:
            self._request = json.dumps(document).encode("ascii") + b"\n"
        except ValueError as error:  # Python's limit, which holds in the user's interpreter too
            raise RunError(
                "an integer of more than 4,300 digits cannot be given to a graph", "Give it as a text.", "too-large"
            ) from error
        variables = {**os.environ, "PYTHONIOENCODING": "utf-8:backslashreplace", **(environment or {})}
        try:
            self._process = subprocess.Popen(
                [graph.interpreter, "-u", str(CHILD)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                cwd=graph.project_dir, env=variables, start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            message = f"cannot start {graph.interpreter}: {error.strerror}"
            raise RunError(message, "choose another interpreter with --python", "no-interpreter") from error

    @property
    def pid(self) -> int:
        return self._process.pid

    def cancel(self) -> None:
        """Ask the whole process group to end, and make it: SIGTERM, then SIGKILL, with all that the child has started (Linux)."""
        if not self._cancelled.is_set():
            self._cancelled.set()
            self._see_descendants()
            self._signal(signal.SIGTERM)
            threading.Thread(target=self._kill_later, daemon=True).start()

    def run(self, handle: Handler) -> dict[str, Any]:
        """Feed the request and hand on events until the end. The returned end event has a `status` in any case."""
        threads = [threading.Thread(target=target, daemon=True) for target in (self._read_events, self._read_log, self._feed)]
        for thread in threads:
            thread.start()
        end = self._listen(handle)
        cancelled = self._cancelled.is_set()
        lost = end is None and not self._exited()
        if lost:
            self._see_descendants()
            self._signal(signal.SIGKILL)
        if end is None or self._wait(_USUAL_EXIT_SECONDS):
            self._finish()
            for thread in threads[:2]:
                thread.join(1.0)
        else:  # threads or processes that the user's code left behind: nobody needs to wait for them
            threading.Thread(target=self._finish, daemon=True).start()
        self._drain(handle)
        if cancelled and (end is None or end["status"] == "failed"):
            return {"event": "end", "status": "cancelled", "interrupts": [], "error": None, "head": None}
        if lost:
            return _failed("died", "the graph's code closed the pipe for events: the run could not be followed and was ended")
        return end if end is not None else self._died()

    def _listen(self, handle: Handler) -> dict[str, Any] | None:
        """Events up to the end event; None when the process ends without one."""
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        silent = 0
        while True:
            if deadline is not None and time.monotonic() > deadline and not self._cancelled.is_set():
                self._see_descendants()
                self._signal(signal.SIGKILL)
                return _failed("timeout", f"no end after {self._timeout:g} seconds")
            try:
                event = self._queue.get(timeout=0.1)
            except queue.Empty:
                silent += self._exited()
                if silent > _SILENT_LOOKS:  # dead, but a grandchild holds the pipe open
                    return None
                continue
            if event is None:
                self._wait(_EXIT_SECONDS)
                return None
            if event["event"] == "end":
                return event
            handle(event)

    def _drain(self, handle: Handler) -> None:
        while True:
            try:
                event = self._queue.get_nowait()
            except queue.Empty:
                return
            if event is not None and event["event"] != "end":
                handle(event)

    def _exited(self) -> bool:
        """Whether the child is dead; it is left unreaped, so that its id still names its group and nobody else's."""
        if self._done:
            return True
        if not hasattr(os, "waitid"):
            return self._process.poll() is not None
        try:
            return os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:
            return True

    def _wait(self, seconds: float) -> bool:
        """Wait for the child to exit, at most so long."""
        end = time.monotonic() + seconds
        while not self._exited():
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True

    def _finish(self) -> None:
        """Let the child exit by itself, end what is left of its group, reap it."""
        self._wait(_EXIT_SECONDS)
        self._signal(signal.SIGKILL)
        with self._lock:
            self._process.wait()
            self._done = True
        for process in self._seen:
            kill(process)
        with contextlib.suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()

    def _feed(self) -> None:
        """The pipe stays open after the request: its end tells the child that the studio is gone."""
        with contextlib.suppress(OSError, ValueError):
            if self._process.stdin is not None:
                self._process.stdin.write(self._request)
                self._process.stdin.flush()

    def _read_events(self) -> None:
        with contextlib.suppress(OSError, ValueError), cast("IO[bytes]", self._process.stdout) as pipe:
            while line := pipe.readline(_EVENT_LIMIT):
                self._queue.put(_parse(line))
                while line and not line.endswith(b"\n") and len(line) == _EVENT_LIMIT:  # the rest of a line that is too long
                    line = pipe.readline(_EVENT_LIMIT)
        self._queue.put(None)

    def _read_log(self) -> None:
        throttle = _Throttle(self._queue.put)
        rest = b""
        with contextlib.suppress(OSError, ValueError), cast("IO[bytes]", self._process.stderr) as pipe:
            while chunk := os.read(pipe.fileno(), 1 << 16):
                lines = (rest + chunk).split(b"\n")
                rest = lines.pop()
                if len(rest) > _LINE_LIMIT:
                    lines.append(rest)
                    rest = b""
                for line in lines:
                    throttle.line(line)
                self.tail.extend(_text(line) for line in lines[-40:])
        if rest:
            throttle.line(rest)
            self.tail.append(_text(rest))
        throttle.close()

    def _died(self) -> dict[str, Any]:
        """The process is gone without an end event: killed, out of memory, `os._exit`, a crash in C code.

        What it printed is not repeated here: each line was an event.
        """
        code = self._process.returncode
        if code < 0:
            with contextlib.suppress(ValueError):
                return _failed("died", f"the process was ended by {signal.Signals(-code).name}")
        return _failed("died", f"the process ended by itself with exit code {code}, before the graph did")

    def _see_descendants(self) -> None:
        """Note the processes that the child started, before they lose their parent."""
        with self._lock:
            if not self._done:
                self._seen |= descendants(self._process.pid)

    def _kill_later(self) -> None:
        self._wait(_TERM_SECONDS)
        self._see_descendants()
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        """Signal the process group, unless the child has been reaped: then its id may be another process's."""
        with self._lock, contextlib.suppress(ProcessLookupError, PermissionError):
            if self._done:
                return
            if sys.platform == "win32":
                self._process.kill()
            else:
                os.killpg(self._process.pid, number)


class _Throttle:
    """Lets a burst of lines through, then so many per second; says how many it dropped."""

    def __init__(self, put: Callable[[dict[str, Any]], None]) -> None:
        self._put = put
        self._budget = float(_LINES_AT_ONCE)
        self._last = time.monotonic()
        self._dropped = 0

    def line(self, raw: bytes) -> None:
        now = time.monotonic()
        self._budget = min(_LINES_AT_ONCE, self._budget + (now - self._last) * _LINES_PER_SECOND)
        self._last = now
        if self._budget < 1:
            self._dropped += 1
            return
        self._budget -= 1
        self.close()
        self._put({"event": "log", "stream": "output", "text": _text(raw)})

    def close(self) -> None:
        if self._dropped:
            text = f"… {self._dropped:,} {'line' if self._dropped == 1 else 'lines'} not shown"
            self._put({"event": "log", "stream": "studio", "text": text, "dropped": self._dropped})
            self._dropped = 0


def _text(raw: bytes) -> str:
    cut = raw[:_LINE_LIMIT].decode("utf-8", "backslashreplace").rstrip("\r")
    return cut if len(raw) <= _LINE_LIMIT else f"{cut}… (+{len(raw) - _LINE_LIMIT:,} bytes)"


def _parse(line: bytes) -> dict[str, Any]:
    """An event, or a log line for whatever else stands on the pipe."""
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if isinstance(event, dict) and event.get("event") in EVENTS:
        return event
    return {"event": "log", "stream": "output", "text": _text(line.rstrip(b"\n"))}


def _failed(kind: str, message: str) -> dict[str, Any]:
    error = {"kind": kind, "type": "", "message": message, "traceback": ""}
    return {"event": "end", "status": "failed", "interrupts": [], "error": error, "head": None}


def call(
    graph: GraphFound,
    request: Mapping[str, Any],
    *,
    timeout: float = LOAD_SECONDS,
    environment: Mapping[str, str] | None = None,
    handle: Handler = lambda event: None,
) -> dict[str, Any]:
    """Start a child, wait for its end and return its `result`; `handle` gets its other events. Raises RunError otherwise."""
    child = Child(graph, request, timeout=timeout, environment=environment)
    end = child.run(handle)
    if end["status"] == "done":
        return dict(end.get("result") or {})
    error = dict(end.get("error") or {})
    last = next((text.strip() for text in reversed(child.tail) if text.strip()), "")
    if error.get("kind") == "died" and last:  # nobody has seen what it printed
        error["hint"] = f"It printed last: {last}"
    elif error.get("kind") == "timeout":
        error["hint"] = "look at what the code does while it is loaded: what it waits for"
    raise failure(error, graph)


def failure(error: Mapping[str, Any], graph: GraphFound) -> RunError:
    """The error of an end event as an exception with one message and one hint."""
    kind, message = error.get("kind", "run"), error.get("message", "")
    hint = (
        error.get("hint")
        or error.get("place")
        or {
            "types": "look at the plan; with --trust-types these types are imported",
            "timeout": "give it more time; what it had finished is stored",
            "died": "what had finished is stored: run again from the newest checkpoint",
        }.get(kind, "")
    )
    named = f"{error['type']}: {message}" if error.get("type") else message
    candidates = tuple(str(name) for name in error.get("candidates") or ())
    if candidates:
        hint = "choose with --as-node: " + ", ".join(candidates)
    return RunError(named or f"{graph.title} failed", hint, f"run-{kind}", candidates=candidates)
