"""`studio edges`: the graph as it ran, as text and as JSON."""

from __future__ import annotations

import re
from pathlib import Path

from studio.assets import sample_folder
from tests.cli.conftest import Studio
from tests.factories import folder_snapshot

SUPPORT = sample_folder() / "support_agent.sqlite"


def test_the_graphs_of_a_thread_are_listed_with_their_nodes_and_edges(studio: Studio) -> None:
    found = studio("edges", SUPPORT, "--thread", "refund-4711", "--json")
    assert found.code == 0
    doc = found.doc
    assert (doc["thread_id"], doc["problems"], [graph["ns"] for graph in doc["graphs"]]) == ("refund-4711", [], ["", "review"])
    root = doc["graphs"][0]
    assert ("review", "ask_approval", 1, None) in [
        tuple(e[k] for k in ("source", "target", "count", "in_code")) for e in root["edges"]
    ]
    assert {"name": "plan_refund", "runs": 1, "in_code": None} in root["nodes"]
    named = {node["name"] for node in root["nodes"]}
    assert {name for edge in root["edges"] for name in (edge["source"], edge["target"])} <= named


def test_the_text_says_who_led_to_whom_and_how_often(studio: Studio) -> None:
    found = studio("edges", SUPPORT, "--thread", "hours-6031")
    assert found.code == 0
    assert "root graph · 2 nodes that ran · 3 edges" in found.out
    assert re.search(r"^  classify +-> +reply +2$", found.out, re.MULTILINE)


def test_one_graph_is_chosen_by_its_namespace_with_or_without_task_ids(studio: Studio) -> None:
    rows = studio("tree", SUPPORT, "--thread", "refund-4711", "--all-ns", "--json").doc["rows"]
    full = next(row["checkpoint_ns"] for row in rows if row["checkpoint_ns"])
    for ns in ("review", full):
        doc = studio("edges", SUPPORT, "--thread", "refund-4711", "--ns", ns, "--json").doc
        assert [graph["ns"] for graph in doc["graphs"]] == ["review"]
    missing = studio("edges", SUPPORT, "--thread", "refund-4711", "--ns", "nowhere")
    assert missing.code == 3
    assert "no graph 'nowhere'" in missing.err and "review" in missing.err


def test_it_asks_which_thread_and_changes_nothing(studio: Studio, shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    assert studio("edges", shop).code == 2
    assert studio("edges", shop, "--thread", "done").code == 0
    assert folder_snapshot(shop.parent) == before
