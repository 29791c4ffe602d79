"""`studio LOCATION`: the terminal UI."""

from __future__ import annotations

import sys
from argparse import Namespace

from studio.cli.common import opened
from studio.cli.out import Out
from studio.errors import UsageError
from studio.model import Address


def open(options: Namespace, out: Out) -> int:
    with opened(options, out) as session:
        at: Address | None = None
        if options.at is not None or options.thread is not None:
            at = session.resolve(options.at or "head", options.thread)
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            raise UsageError(
                "the terminal UI needs a terminal",
                "`studio ls`, `studio tree` and `studio show` print, `studio web` serves pages",
            )
        from studio.tui import run

        run(session, at)
    return 0
