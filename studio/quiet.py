"""The garbage collector stands still while many rows become objects: none of them is garbage, and it would look at all of them
again and again."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_held = 0
_was_on = True


@contextmanager
def no_collection() -> Iterator[None]:
    """May be nested and used from several threads; the collector goes on when the last one is done, unless it was off before."""
    global _held, _was_on
    with _lock:
        _held += 1
        if _held == 1:
            _was_on = gc.isenabled()
            gc.disable()
    try:
        yield
    finally:
        with _lock:
            _held -= 1
            if _held == 0 and _was_on:
                gc.enable()


def keep_for_good() -> None:
    """Spare later collections the objects that are there now, of which very many are kept; what is garbage among them stays."""
    gc.freeze()
