"""Compare the studio with what LangGraph itself reported, over a folder of databases.

    python -m benchmarks.oracle FOLDER|FILE ... [--verbose]

Beside each `NAME.sqlite` lies `NAME.json`, the truth: `threads`, in each `namespaces`, in each `history`, a list of what
`get_state_history` of the release that wrote the file reported (`checkpoint_id`, `parent_checkpoint_id`, `step`, `source`,
`values`, `next`, `tasks`). An encrypted file's truth names its key (`aes_key_ascii`). Every checkpoint of every namespace is
compared through `studio export`; the differences that are meant are counted by kind (`benchmarks/truth.py` gives the reason of
each). Exit code 1: others.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import sys
from pathlib import Path
from typing import Any

from benchmarks.looking import called
from benchmarks.truth import DOCUMENTED, Difference, differences

KEY = "STUDIO_ORACLE_KEY"
HEADER = ("parent_checkpoint_id", "step", "source")


def documents(path: Path, key: str | None) -> dict[tuple[str, str, str], dict[str, Any]]:
    """Every checkpoint of a file as the command line shows it: (thread, namespace, id) -> document."""
    options = ["--aes-key-env", KEY] if key else []
    if key:
        os.environ[KEY] = key
    code, out, err = called("export", str(path), "--values", "all", "--show-secrets", "--json", *options)
    if code:
        raise SystemExit(f"{path}: export exits {code}: {err}")
    found = {}
    for line in out.splitlines():
        doc = json.loads(line)
        head = doc["checkpoint"]
        found[head["thread_id"], head["checkpoint_ns"], head["checkpoint_id"]] = doc
    return found


def compare(path: Path, truth: dict[str, Any]) -> tuple[int, int, list[tuple[str, Difference]]]:
    """Checkpoints compared, those without any difference, and every difference with the place where it is.

    A checkpoint that neither the truth nor the studio leaves out is compared; one that only one side knows is a difference.
    """
    docs = documents(path, truth.get("aes_key_ascii"))
    compared, equal, found = 0, 0, []
    for thread, entry in truth["threads"].items():
        for ns, namespace in entry["namespaces"].items():
            history = namespace["history"]
            foreign = read_with_another_graph(ns, history)
            for want in history:
                identity = want["checkpoint_id"]
                doc = docs.pop((thread, ns, identity), None)
                if doc is None:
                    here = [Difference(None, "is not exported")]
                else:
                    head = doc["checkpoint"]
                    pairs = [(name, head[name], want[name]) for name in HEADER]
                    here = [Difference(None, f"{name} {mine!r}, not {one!r}") for name, mine, one in pairs if mine != one]
                    here += differences(want, doc, foreign=foreign)
                compared += 1
                equal += not here
                found += [(f"{thread}|{ns}|{identity}", one) for one in here]
    found += [("|".join(key), Difference(None, "is not in the truth")) for key in docs]
    return compared, equal, found


def read_with_another_graph(ns: str, history: list[dict[str, Any]]) -> bool:
    """Whether steps follow from a checkpoint of a namespace from which nothing is said to run."""
    ran_from = {one["parent_checkpoint_id"] for one in history if one["source"] == "loop"}
    return bool(ns) and any(one["checkpoint_id"] in ran_from and not one["next"] for one in history)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, help="databases with their truth beside them, or folders of them")
    parser.add_argument("--verbose", action="store_true", help="name every difference, also those that are meant")
    options = parser.parse_args()
    sys.setrecursionlimit(20_000)
    files = [one for place in options.places for one in (sorted(place.glob("*.sqlite")) if place.is_dir() else [place])]
    totals: collections.Counter[str] = collections.Counter()
    for path in files:
        compared, equal, found = compare(path, json.loads(path.with_suffix(".json").read_text()))
        kinds = collections.Counter(one.kind or "others" for _, one in found)
        totals.update(kinds, compared=compared, equal=equal)
        words = "".join(f", {number} {kind}" for kind, number in sorted(kinds.items()))
        print(f"{path}: {compared} compared, {equal} equal{words}", flush=True)
        for where, one in found:
            if one.kind is None or options.verbose:
                print(f"    {one.kind or 'OTHER'}: {where}: {one.text}")
    print(f"{len(files)} files: {totals.pop('compared', 0)} compared, {totals.pop('equal', 0)} equal; others: {totals['others']}")
    for kind, why in DOCUMENTED.items():
        print(f"    {totals[kind]} {kind}: {why}")
    return 1 if totals["others"] or not files else 0


if __name__ == "__main__":
    sys.exit(main())
