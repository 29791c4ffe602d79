"""The processes that a process started, also those that left its group for a session of their own.

Read from `/proc`, so on Linux alone. A process whose parents have all ended (a daemon) is nobody's descendant any more.
"""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

Process = tuple[int, str]
"""(id, time it started): an id may be given again, the pair not."""


def descendants(pid: int) -> set[Process]:
    """All living descendants of a process; empty where there is no `/proc`."""
    children: dict[int, list[Process]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        found = _parent_and_start(int(folder.name))
        if found is not None:
            children.setdefault(found[0], []).append((int(folder.name), found[1]))
    result: set[Process] = set()
    queue = [pid]
    for at in queue:  # grows while it is read
        fresh = [one for one in children.get(at, ()) if one not in result]
        result.update(fresh)
        queue += [one[0] for one in fresh]
    return result


def kill(process: Process) -> None:
    """SIGKILL to a process that is still the one that was seen."""
    found = _parent_and_start(process[0])
    if found is not None and found[1] == process[1]:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process[0], signal.SIGKILL)


def _parent_and_start(pid: int) -> tuple[int, str] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return int(fields[1]), fields[19].decode("ascii")
    except (OSError, IndexError, ValueError):
        return None
