"""The terminal UI: the timeline, what each superstep changed, and forks, runs and comparisons from there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from studio.model import Address
    from studio.session import Session


def run(session: Session, at: Address | str | None = None) -> None:
    """Open the terminal UI on an opened session, at a checkpoint (an address or a REF) or at the head of its newest thread.

    Returns when the person leaves. The caller opened the session and closes it. Raises what went wrong inside, once the
    terminal is restored, so that the command line tells it as it tells every fault.
    """
    from studio.tui.app import StudioApp

    app = StudioApp(session, at)
    app.run()
    if app.fault is not None:
        raise app.fault
