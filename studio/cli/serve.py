"""`studio web` and `studio demo`: the browser view."""

from __future__ import annotations

import os
from argparse import Namespace
from contextlib import ExitStack

from studio.cli.common import files_in, open_session
from studio.cli.out import Out
from studio.errors import StudioError


def web(options: Namespace, out: Out) -> int:
    """The browser view of a file, or of each file in a folder."""
    with ExitStack() as stack:
        sessions = []
        inside = files_in(options)
        for path in inside.files:
            sessions.append(open_session(path, options, out))
            sessions[-1].lost_beside = inside.problems
            stack.callback(sessions[-1].close)
        from studio.web import serve

        location = os.path.abspath(options.location) if os.path.isdir(options.location) else sessions[0].location
        serve(sessions, options.port, not options.no_browser, options.allow_host, options.at, location if out.as_json else None)
    return 0


def demo(options: Namespace, out: Out) -> int:
    """The sample threads, each file as its own session: the first lesson's first, databases before transcripts."""
    from studio.assets import sample_folder
    from studio.requests import GraphSpec
    from studio.session import Session

    found = (path for kind in ("*.sqlite", "*.jsonl") for path in sorted(sample_folder().glob(kind)))
    files = sorted(found, key=lambda path: path.stem != "support_agent")
    if not files:
        raise StudioError(
            "this installation holds no sample threads", "install it again: pip install --force-reinstall checkpoint-studio"
        )
    with ExitStack() as stack:
        sessions = []
        for path in files[:1] if options.tui else files:
            graph = GraphSpec(cwd=str(sample_folder())) if path.suffix == ".sqlite" else None
            session = Session.open(str(path), show_secrets=out.show_secrets, graph=graph)
            stack.callback(session.close)
            sessions.append(session)
        if options.tui:
            from studio.tui import run

            run(sessions[0])
        else:
            from studio.web import serve

            serve(
                sessions,
                options.port,
                not options.no_browser,
                options.allow_host,
                None,
                str(sample_folder()) if out.as_json else None,
            )
    return 0
