"""show, diff and tree: whether the writes of a superstep explain its state, and supersteps that were not stored."""

from __future__ import annotations

from pathlib import Path

from tests.cli.conftest import Studio
from tests.explain.late import make_gaps, make_spoiled


def test_show_and_diff_tell_by_which_rule_each_channel_came_about(studio: Studio, shop: Path) -> None:
    doc = studio("diff", shop, "3", "--thread", "done", "--json").doc
    assert doc["explained"] == {"messages": "append", "notes": "append", "price": "last"}
    assert {change["path"].split("/")[1] for change in doc["changes"]} == set(doc["explained"])
    assert studio("show", shop, "3", "--thread", "done", "--json").doc["explained"] == doc["explained"]
    assert "≠" not in studio("diff", shop, "3", "--thread", "done").out


def test_a_change_that_no_write_made_is_marked_where_it_is_shown(studio: Studio, tmp_path: Path) -> None:
    path = make_spoiled(tmp_path / "spoiled.sqlite")
    doc = studio("diff", path, "2", "--json").doc
    assert doc["explained"] == {"cart": "outside", "log": "last"}
    assert [(one["kind"], one["where"].rpartition("/")[2]) for one in doc["problems"]] == [("unexplained-value", "cart")]
    text = studio("diff", path, "2").out
    assert "≠ changed outside its writes: it changed although no task wrote it" in text
    shown = studio("show", path, "2").out
    assert "≠ changed outside its writes" in next(line for line in shown.splitlines() if line.startswith("  cart"))
    assert "unexplained-value" in {one["kind"] for one in studio("show", path, "2", "--json").doc["problems"]}


def test_supersteps_that_were_not_stored_are_said_and_are_no_problem(studio: Studio, tmp_path: Path) -> None:
    path = make_gaps(tmp_path / "gaps.sqlite")
    doc = studio("tree", path, "--json").doc
    assert [row["missing_steps"] for row in doc["rows"]] == [[-1, 2], [4, 7]]
    assert doc["problems"] == []
    assert "steps 4 to 7 not stored" in studio("tree", path).out
    words = "supersteps 4 to 7 were not stored: normal with durability exit"
    assert words in studio("show", path, "1").out
    assert words in studio("diff", path, "1").out
    found = studio("diff", path, "1", "--json").doc
    assert (found["missing_steps"], found["problems"], set(found["explained"].values())) == ([4, 7], [], {"unknown"})
    assert found["explained"]


def test_a_diff_with_another_base_claims_nothing(studio: Studio, shop: Path) -> None:
    doc = studio("diff", shop, "1", "4", "--thread", "done", "--json").doc
    assert (doc["explained"], doc["missing_steps"]) == ({}, None)
