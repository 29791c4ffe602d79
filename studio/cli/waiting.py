"""A call that waits for the user's code says so: what it waits for, and how long at most."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from studio.cli.out import Out
from studio.render.gate import line
from studio.requests import LOAD_SECONDS

SILENT_SECONDS = 2.0
"""So long nothing is said: most code answers sooner."""


@contextmanager
def waiting(out: Out, graph: str | None) -> Iterator[None]:
    """Says on stderr, once, that the code of a graph has not answered yet."""
    what = f"the code of {line(graph, 120)}" if graph else "the code of the graph"
    told = f"waiting for {what}: it is given {LOAD_SECONDS:g} seconds to answer, ctrl+c stops it"
    timer = threading.Timer(SILENT_SECONDS, out.note, [told])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
