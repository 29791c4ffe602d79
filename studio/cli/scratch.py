"""`studio scratch`: where forks are kept."""

from __future__ import annotations

import os
from argparse import Namespace

from studio import scratch_files
from studio.cli.common import confirmed, view_in
from studio.cli.out import Out
from studio.errors import OpenError, UsageError
from studio.render import labels
from studio.render.gate import line


def run(options: Namespace, out: Out) -> int:
    if options.act == "ls":
        return _ls(out)
    if options.location is None:
        raise UsageError(f"scratch {options.act} needs a LOCATION", f"studio scratch {options.act} FILE")
    if options.act == "path":
        return _path(options, out)
    confirmed(
        options, out, f"This deletes all forks of {line(options.location)}.", f"this deletes all forks of {options.location}"
    )
    gone = scratch_files.remove(options.location, notes=options.notes, view=view_in(options))
    if out.as_json:
        out.document({"deleted": gone})
    else:
        for name in gone:
            out.say(f"deleted {line(name)}")
    return 0


def _ls(out: Out) -> int:
    files = scratch_files.list_files()
    if out.as_json:
        out.document({
            "files": [
                {
                    "path": one.path, "store": one.store, "store_exists": one.store_exists, "forks": one.forks,
                    "size_bytes": one.size_bytes, "created_at": one.created_at,
                    "part": one.part, "problem": one.problem,
                }
                for one in files
            ]
        })  # fmt: skip
    elif not files:
        out.say("no forks are kept")
    else:
        rows = [
            [
                labels.plural(one.forks, "fork") if one.forks is not None else "damaged",
                labels.size(one.size_bytes),
                line(one.path),
                line(one.problem)
                if one.problem
                else "of "
                + line(one.store)
                + (f" ({line(one.part)})" if one.part else "")
                + ("" if one.store_exists else " (gone)"),
            ]
            for one in files
        ]
        out.table(rows, [("bold",), ("dim",), (), ("dim",)])
    return 0


def _path(options: Namespace, out: Out) -> int:
    location = options.location
    if not os.path.exists(location):
        raise OpenError(f"{location} does not exist", "check the path")
    path = scratch_files.path_for(location, view_in(options))
    if out.as_json:
        out.document({"path": path, "exists": os.path.exists(path)})
    else:
        out.say(line(path))
    return 0
