"""Each act into a thread of its own: the copy is linked to its origin, and the origin to it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.asnode.test_writing import at
from tests.cli.conftest import Studio
from tests.factories import folder_snapshot

ACTS = {
    "same point again": [],
    "set": ["--set", "/price=3.0"],
    "goto": ["--goto", "fan"],
    "write as a node": ["--graph", "graph", "--as-node", "join", "--update", '{"price": 3.0}'],
    "several nodes": [
        "--graph", "graph", "--as-node", "web", "--update", '{"notes": ["W"]}', "--as-node", "docs", "--update", '{"total": 5}',
    ],
}  # fmt: skip


@pytest.mark.parametrize("act", ACTS)
def test_a_fork_goes_into_a_new_thread_and_both_ends_name_each_other(studio: Studio, shop: Path, act: str) -> None:
    ref = at(studio, shop, "cheap")
    before = folder_snapshot(shop.parent)["shop.sqlite"]
    found = studio("fork", shop, ref, "--thread", "graph", "--new-thread", "mine", *ACTS[act], "--json")
    assert found.code == 0, found.err
    assert found.doc["thread_id"] == "mine"
    new = studio("show", shop, "head", "--thread", "mine", "--json").doc
    assert new["checkpoint"]["checkpoint_id"] == found.doc["checkpoint_id"]
    assert (new["made_from"]["thread_id"], new["made_from"]["checkpoint_id"]) == ("graph", ref)
    old = studio("show", shop, ref, "--thread", "graph", "--json").doc
    assert [one["thread_id"] for one in old["forks"]] == ["mine"]
    assert "#s1 of thread mine" in studio("show", shop, ref, "--thread", "graph").out
    assert "of thread graph" in studio("show", shop, "head", "--thread", "mine").out
    assert folder_snapshot(shop.parent)["shop.sqlite"] == before


@pytest.mark.parametrize(
    ("act", "label"),
    [
        ("same point again", "copy of #{} of thread graph"),
        ("set", "set /price, from #{} of thread graph"),
        ("write as a node", "copy of #{} of thread graph"),
    ],
)
def test_the_tree_of_a_new_thread_begins_with_what_it_was_made_from(studio: Studio, shop: Path, act: str, label: str) -> None:
    ref = at(studio, shop, "cheap")
    rows = studio("tree", shop, "--thread", "graph", "--json").doc["rows"]
    number = next(row["number"] for row in rows if row["checkpoint_id"] == ref)
    studio("fork", shop, ref, "--thread", "graph", "--new-thread", "mine", *ACTS[act])
    studio("fork", shop, "s1", "--thread", "mine", "--new-thread", "again")
    for _ in range(2):
        assert studio("tree", shop, "--thread", "mine", "--json").doc["rows"][0]["label"] == label.format(number)
    assert label.format(number)[:30] in studio("tree", shop, "--thread", "mine").out.splitlines()[1]
    assert studio("tree", shop, "--thread", "again", "--json").doc["rows"][0]["label"] == "copy of #s1 of thread mine"


def test_a_question_is_answered_in_a_new_thread_and_stays_open_in_the_old_one(studio: Studio, shop: Path) -> None:
    call = ("run", shop, "head", "--thread", "asking", "--graph", "asking", "--resume", '"yes"', "--new-thread", "answered")
    plan = studio(*call, "--dry-run")
    assert "answered" in plan.out
    found = studio(*call, "--json")
    assert found.code == 0, found.err
    end = found.lines[-1]
    assert (end["status"], end["head"]["thread_id"]) == ("done", "answered")
    new = studio("show", shop, "head", "--thread", "answered", "--json").doc
    assert new["values"]["notes"][-1] == "approved yes"
    assert studio("show", shop, "root", "--thread", "answered", "--json").doc["made_from"]["thread_id"] == "asking"
    old = next(one for one in studio("ls", shop, "--json").doc["threads"] if one["thread_id"] == "asking")
    assert old["status"] == "paused"


def test_a_name_that_is_in_use_is_refused_before_anything_runs(studio: Studio, shop: Path) -> None:
    for call in (
        ("run", shop, "head", "--thread", "asking", "--graph", "asking", "--resume", '"yes"'),
        ("fork", shop, "head", "--thread", "graph", "--graph", "graph", "--as-node", "team", "--update", "{}"),
        ("fork", shop, "head", "--thread", "graph", "--graph", "graph", "--as-node", "team", "--update", "{}", "--dry-run"),
    ):
        found = studio(*call, "--new-thread", "graph") if call[0] == "run" else studio(*call, "--new-thread", "asking")
        assert found.code == 1
        assert "There is a thread" in found.out + found.err


def test_what_each_node_wrote_is_told_apart_afterwards(studio: Studio, shop: Path) -> None:
    ref = at(studio, shop, "web")
    pairs = ("--as-node", "web", "--update", '{"price": 2.0}', "--as-node", "docs", "--update", '{"total": 5}')
    for place in ([], ["--in-place", "--yes"]):
        made = studio("fork", shop, ref, "--thread", "graph", "--graph", "graph", *pairs, *place, "--json").doc
        rows = studio("tree", shop, "--thread", "graph", "--json").doc["rows"]
        assert next(row for row in rows if row["checkpoint_id"] == made["checkpoint_id"])["label"] == "update as web ∥ docs"
        changes = studio("diff", shop, made["checkpoint_id"], "--thread", "graph", "--json").doc["changes"]
        assert {change["path"]: [author["node"] for author in change["authors"]] for change in changes} == {
            "/price": ["web"],
            "/total": ["docs"],
        }


def test_the_real_langgraph_goes_on_from_a_write_in_a_new_thread(studio: Studio, shop: Path) -> None:
    ref = at(studio, shop, "cheap")
    update = json.dumps({"route": "dear", "notes": ["by hand"]})
    call = ("--graph", "graph", "--as-node", "join", "--update", update, "--new-thread", "dear way")
    made = studio("fork", shop, ref, "--thread", "graph", *call, "--json").doc
    assert made["next"] == ["dear"]
    end = studio("run", shop, "head", "--thread", "dear way", "--graph", "graph", "--json").lines[-1]
    assert end["status"] == "done"
    notes = studio("show", shop, "head", "--thread", "dear way", "--json").doc["values"]["notes"]
    assert notes[4:6] == ["by hand", "dear"]
