"""`studio` alone: what can be opened on this machine, newest first."""

from __future__ import annotations

import os
from argparse import Namespace
from datetime import UTC, datetime

from studio.cli.out import Out
from studio.locations import on_this_machine
from studio.render import labels
from studio.render.gate import line

SHOWN = 40


def run(options: Namespace, out: Out) -> int:
    """Lists places; where there is none, the help of the command has been printed already."""
    places = on_this_machine(os.getcwd())
    for place in places[:SHOWN]:
        when = labels.when(datetime.fromtimestamp(place.modified, UTC).isoformat())
        path = place.path
        home = os.path.expanduser("~")
        shown = "~" + path[len(home) :] if path.startswith(home + os.sep) else path
        note = f"  {place.note}" if place.note else ""
        out.say(f"{when:<19}  {labels.size(place.size_bytes):>8}  {place.kind:<19}  {out.paint(line(shown, 400), 'bold')}{note}")
    if len(places) > SHOWN:
        out.say(f"and {len(places) - SHOWN} more")
    if places:
        out.say(out.paint("studio PATH opens one of them · studio --help", "dim"))
    return 0 if places else 2
