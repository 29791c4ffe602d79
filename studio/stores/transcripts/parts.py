"""A long list of transcripts that nobody has read yet, read in parts by further processes at the same time.

Each process is a fork of this one, so that it knows what was found in the folder; it reads its part as a list does, hands the
cards over that came of it, and ends. A part that is not handed over whole is read here: a list is never shorter for it.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from itertools import accumulate

import msgspec
from msgspec import Struct

from studio.stores.transcripts.cards import Card

WORTH = 16 << 20
"""Bytes that nobody has read from which on a second process pays: starting it takes some hundredths of a second."""
MOST = 8
_decoder = msgspec.msgpack.Decoder(list[Card])


class Part(Struct):
    """Threads that another process reads; `pipe` is where their cards come from."""

    threads: frozenset[str]
    pipe: int
    process: int

    def cards(self) -> list[Card]:
        """What the process made, once it has ended; [] if it was stopped."""
        try:
            with open(self.pipe, "rb") as file:
                return _decoder.decode(file.read())
        except (OSError, msgspec.DecodeError, ValueError):
            return []
        finally:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.process, 0)

    def stop(self) -> None:
        """End the process; nobody wants its part any more."""
        with contextlib.suppress(OSError):
            os.close(self.pipe)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.process, signal.SIGKILL)
            os.waitpid(self.process, 0)


def number(size: int) -> int:
    """How many processes shall read so many bytes. A process with threads is not forked: a lock of theirs would stay locked."""
    if size < WORTH or sys.platform != "linux" or threading.active_count() > 1:
        return 1
    return max(1, min(len(os.sched_getaffinity(0)), MOST, size // (WORTH // 2)))


def divided(sizes: Sequence[int], parts: int) -> list[range]:
    """Neighbours in about equal parts."""
    ends = [*accumulate(sizes)]
    whole = ends[-1] if ends else 0
    cuts = [next((at + 1 for at, end in enumerate(ends) if end * parts >= whole * part), len(ends)) for part in range(1, parts)]
    return [range(start, stop) for start, stop in zip([0, *cuts], [*cuts, len(sizes)], strict=True)]


def begin(threads: Sequence[str], work: Callable[[frozenset[str]], Sequence[Card]]) -> Part | None:
    """Let a fork of this process do `work` on some threads; None where the system gives none."""
    wanted = frozenset(threads)
    out, into = os.pipe()
    try:
        process = os.fork()
    except OSError:
        os.close(out)
        os.close(into)
        return None
    if process:
        os.close(into)
        return Part(wanted, out, process)
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        gc.disable()  # it ends soon, and a collection would copy all memory that it shares
        os.close(out)
        with open(into, "wb") as file:
            file.write(msgspec.msgpack.encode(list(work(wanted))))
    finally:
        os._exit(0)  # the exit handlers and the output are the other process' own
