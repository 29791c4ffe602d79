"""Fork checkpoints of one file by the command line and look at the forks; list what should not have happened."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from studio.codec.paths import join_path
from studio.model import Address

REFUSED = 1
"""What `studio fork` answers where a row cannot be copied soundly."""

Call = Callable[..., str]
"""One command: its arguments, which exit codes are fine; its stdout where it went well. Notes what is wrong by itself."""


def forks(call: Call, file: str, addresses: Sequence[Address], rng: random.Random) -> Iterator[str]:
    """What is wrong with a fork of each checkpoint: lost edits; a fork that its own file does not show."""
    for address in addresses:
        where = ("--thread", json.dumps(address.thread_id))
        shown = call("show", file, address.checkpoint_id, *where, "--ns", address.checkpoint_ns, "--json")
        if not shown:
            continue
        try:
            document = json.loads(shown)
        except RecursionError:  # as deep as the stored value: more than this reader takes
            continue
        channels = sorted(document["values"])
        change = rng.choice(changes(channels, [one["name"] for one in document["tasks"]], rng))
        out = call(
            "fork", file, address.checkpoint_id, *where, "--ns", address.checkpoint_ns, *change, "--json", codes=(REFUSED,)
        )
        if not out:
            continue
        made = json.loads(out)
        if not made["verified"] and not made["surprises"]:
            yield f"fork {change}: neither verified nor a surprise"
        fork = ("--thread", json.dumps(made["thread_id"]), "--ns", made["checkpoint_ns"])
        call("ls", file, "--json")
        call("tree", file, *fork[:2], "--all-ns")
        call("diff", file, made["checkpoint_id"], "--origin", *fork)
        if not call("show", file, made["checkpoint_id"], *fork, *rng.choice(((), ("--raw",), ("--json",)))):
            yield f"fork {change}: is not shown"


def changes(channels: list[str], nodes: list[Any], rng: random.Random) -> list[tuple[str, ...]]:
    """Arguments of forks that are worth trying from a checkpoint with such channels and tasks."""
    found: list[tuple[str, ...]] = [
        (),
        ("--set", '/added={"a": [1, null]}'),
        ("--goto", "anything"),
        ("--new-thread", "another thread"),
    ]
    if channels:
        place = join_path([rng.choice(channels)])
        found += [("--set", f'{place}="new"'), ("--unset", place), ("--set", f'{place}="new"', "--new-thread", "another thread")]
    return found + [("--goto", node) for node in nodes if isinstance(node, str) and node]
