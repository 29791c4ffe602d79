"""Noticing that a location changed: one thread that asks for its change token, and only while somebody wants to know."""

from __future__ import annotations

import threading
from collections.abc import Callable

SLOWEST_SECONDS = 5.0


class Watcher:
    """Calls subscribers back when the result of `poll` changes, from a thread of its own.

    `poll` is called every `interval` seconds (less often while it raises: a file that is gone for a moment must not end the
    watching). The first call when somebody subscribes sets the value to compare with, so subscribe first, then read.
    """

    def __init__(self, poll: Callable[[], object], interval: float = 0.25) -> None:
        self._poll = poll
        self._interval = interval
        self._changed = threading.Condition()
        self._subscribers: list[Callable[[], None]] = []
        self._thread: threading.Thread | None = None
        self._closed = False

    def subscribe(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Returns the way to stop; stopping twice is harmless."""
        entry = _Entry(callback)
        with self._changed:
            if not self._closed:
                self._subscribers.append(entry)
                if self._thread is None:
                    self._thread = threading.Thread(target=self._run, name="studio-watcher", daemon=True)
                    self._thread.start()

        def unsubscribe() -> None:
            with self._changed:
                if entry in self._subscribers:
                    self._subscribers.remove(entry)
                self._changed.notify_all()

        return unsubscribe

    def close(self) -> None:
        """Stop watching; returns when the thread has ended (unless it is the caller)."""
        with self._changed:
            self._closed = True
            self._subscribers.clear()
            self._changed.notify_all()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout=2)

    def _run(self) -> None:
        known, failures = self._ask(None, 0)
        while True:
            pause = min(self._interval * 2**failures, max(SLOWEST_SECONDS, self._interval))
            with self._changed:
                if self._subscribers and not self._closed:
                    self._changed.wait(pause)
                if self._closed or not self._subscribers:
                    self._thread = None
                    return
            before = known
            known, failures = self._ask(known, failures)
            if known != before:
                with self._changed:
                    entries = list(self._subscribers)
                for entry in entries:
                    entry()

    def _ask(self, known: object, failures: int) -> tuple[object, int]:
        try:
            return self._poll(), 0
        except Exception:  # the thread serves everyone who watches: it outlives any single failure
            return known, min(failures + 1, 8)


class _Entry:
    """One subscription; two of the same callback are two entries."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback

    def __call__(self) -> None:
        try:
            self._callback()
        except Exception:  # one subscriber's failure is not another's
            return
