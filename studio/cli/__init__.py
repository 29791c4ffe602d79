"""The command line: arguments in, one document or one text out, an exit code.

`main` is the console script. Each command lives in a module of its name and is imported when it is called, so that `studio ls`
starts without what it does not need.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors become one line and a hint on stderr."""
    gc.set_threshold(100_000, 50, 100)  # a list of many rows is garbage only once: looking for it each 700 objects costs a sixth
    from studio.cli import call

    return call.run(list(sys.argv[1:] if argv is None else argv))
