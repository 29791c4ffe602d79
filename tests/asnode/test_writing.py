"""`studio fork --as-node`: which node, what the reducers make of the values, and what is stored then."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from studio.forks.scratch import Scratch
from tests.asnode.project import load
from tests.cli.conftest import Studio
from tests.factories import config, folder_snapshot, saver_at


def at(studio: Studio, shop: Path, following: str | None, thread: str = "graph", ns: bool = False) -> str:
    """The id of the first checkpoint that this node runs from; the head for None."""
    if following is None:
        return "head"
    rows = studio("tree", shop, "--thread", thread, "--json", *(["--all-ns"] if ns else [])).doc["rows"]
    for row in rows:
        found = studio("show", shop, row["checkpoint_id"], "--thread", thread, "--json").doc
        if following in (found["next"] or ()):
            return str(row["checkpoint_id"])
    raise LookupError(following)


def nodes(studio: Studio, shop: Path, ref: str, *more: object, thread: str = "graph") -> dict[str, Any]:
    doc = studio("fork", shop, ref, "--thread", thread, "--nodes", "--json", *more).doc
    return {"doc": doc, **{one["node"]: one for one in doc["nodes"]}}


def preview(studio: Studio, shop: Path, ref: str, *more: object, thread: str = "graph", graph: str = "graph") -> dict[str, Any]:
    found = studio("fork", shop, ref, "--thread", thread, "--graph", graph, "--dry-run", "--json", *more)
    doc: dict[str, Any] = found.doc
    assert found.code == int(doc["refused"] is not None), found.err
    return doc


def langgraph_says(
    shop: Path, ref: str, updates: list[tuple[Any, str | None]], thread: str = "graph"
) -> tuple[Any, tuple[str, ...]]:
    """Values and next of the real `update_state`, done on a copy of the file."""
    from langgraph.types import StateUpdate

    copy = shop.with_name("copy.sqlite")
    copy.write_bytes(shop.read_bytes())
    graph = load(shop.parent).graph
    with saver_at(copy) as saver:
        graph.checkpointer = saver
        made = graph.bulk_update_state(config(thread, ref), [[StateUpdate(values, node) for values, node in updates]])
        state = graph.get_state(made)
    copy.unlink()
    return state.values, state.next


class TestWhichNode:
    def test_the_node_that_wrote_last_comes_first_and_is_langgraphs_choice(self, studio: Studio, shop: Path) -> None:
        found = nodes(studio, shop, at(studio, shop, "cheap"), "--graph", "graph")
        assert found["doc"]["nodes"][0]["node"] == found["doc"]["default"] == "join"
        assert found["join"]["words"] == (
            "Wrote this checkpoint: LangGraph's own choice. Then its branch decides what runs: cheap or dear."
        )

    def test_the_node_that_is_due_comes_next_the_end_last(self, studio: Studio, shop: Path) -> None:
        listed = nodes(studio, shop, at(studio, shop, "cheap"), "--graph", "graph")["doc"]["nodes"]
        assert [one["kind"] for one in listed[:2]] == ["last", "due"]
        assert [one["node"] for one in listed[-2:]] == ["__start__", "__end__"]

    def test_of_nodes_that_ran_together_langgraph_chooses_none_and_it_is_said_why(self, studio: Studio, shop: Path) -> None:
        ref = at(studio, shop, "join")
        found = nodes(studio, shop, ref, "--graph", "graph")
        assert found["doc"]["default"] is None
        assert found["doc"]["note"].startswith("docs and web wrote this checkpoint together")
        refused = studio("fork", shop, ref, "--thread", "graph", "--graph", "graph", "--update", '{"price": 1.0}')
        assert refused.code == 1
        assert "docs, web" in refused.err

    def test_a_join_is_said_to_wait_for_its_other_nodes(self, studio: Studio, shop: Path) -> None:
        found = nodes(studio, shop, at(studio, shop, "web"), "--graph", "graph")
        assert (
            found["web"]["then"]
            if "then" in found["web"]
            else found["web"]["words"].endswith("Then join waits until docs has run too.")
        )
        assert found["web"]["next"] == []

    @pytest.mark.parametrize("following", ["plan", "web", "join", "cheap", "fan", "grade", None])
    def test_what_is_said_to_run_next_is_what_langgraph_lets_run(self, studio: Studio, shop: Path, following: str | None) -> None:
        told = nodes(studio, shop, at(studio, shop, following), "--graph", "graph")
        for node in ("plan", "web", "cheap", "dear", "grade", "team", "__start__"):
            _, runs = langgraph_says(shop, told["doc"]["checkpoint_id"], [({"price": 20.0}, node)])
            if told[node]["decides"]:
                assert set(runs) <= {*told[node]["next"]}
            else:
                assert set(runs) == set(told[node]["next"])

    def test_without_a_graph_the_edges_seen_in_the_file_count_and_no_code_is_loaded(self, studio: Studio, shop: Path) -> None:
        (shop.parent / "shop_graphs.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
        found = nodes(studio, shop, at(studio, shop, "cheap"))
        assert found["doc"]["basis"] == "file"
        assert found["join"]["next"] == ["cheap"]
        assert "dear" not in found

    def test_a_graph_that_cannot_be_loaded_leaves_the_file_to_ask_and_says_so(self, studio: Studio, shop: Path) -> None:
        (shop.parent / "shop_graphs.py").write_text("raise SystemExit('closed')", encoding="utf-8")
        doc = nodes(studio, shop, at(studio, shop, "cheap"), "--graph", "graph")["doc"]
        assert doc["basis"] == "file"
        assert "closed" in doc["note"]

    def test_inside_a_subgraph_its_own_nodes_are_offered(self, studio: Studio, shop: Path) -> None:
        found = nodes(studio, shop, at(studio, shop, "two", ns=True), "--graph", "graph")
        assert [one["node"] for one in found["doc"]["nodes"]] == ["one", "two", "__start__", "__end__"]
        assert found["one"]["next"] == ["two"]

    def test_listing_them_leaves_no_trace(self, studio: Studio, shop: Path) -> None:
        ref = at(studio, shop, "cheap")
        before = folder_snapshot(shop.parent)
        studio("fork", shop, ref, "--thread", "graph", "--graph", "graph", "--nodes")
        assert {name for name in folder_snapshot(shop.parent) if "__pycache__" not in name} == set(before)
        assert folder_snapshot(shop.parent)["shop.sqlite"] == before["shop.sqlite"]


VALUES = {"notes": ["by hand"], "total": 7, "best": 4, "price": 99.0, "messages": [{"role": "user", "content": "no", "id": "m9"}]}


class TestPreview:
    @pytest.mark.parametrize("node", ["join", "cheap", "web", "fan", "__start__"])
    def test_it_shows_what_update_state_makes_of_each_channel(self, studio: Studio, shop: Path, node: str) -> None:
        ref = at(studio, shop, "cheap")
        doc = preview(studio, shop, ref, "--as-node", node, "--update", json.dumps(VALUES))
        values, runs = langgraph_says(shop, ref, [(VALUES, node)])
        assert doc["next"] == list(runs)
        after = {change["path"]: change["after"] for change in doc["changes"]}
        assert after["/price"] == values["price"] == 99.0
        assert after["/total"] == values["total"] == 118
        assert after[f"/notes/{len(values['notes']) - 1}"] == "by hand"
        assert "/best" not in after
        assert values["best"] == 5

    def test_nothing_is_written_anywhere(self, studio: Studio, shop: Path, tmp_path: Path) -> None:
        ref = at(studio, shop, "cheap")
        studio("fork", shop, ref, "--thread", "graph", "--set", "/price=1.0")
        scratch = Scratch(str(shop)).path
        before = folder_snapshot(shop.parent), folder_snapshot(Path(scratch).parent)
        preview(studio, shop, ref, "--as-node", "web", "--update", json.dumps(VALUES))
        after = folder_snapshot(shop.parent), folder_snapshot(Path(scratch).parent)
        assert after[1] == before[1]
        assert {name: kept for name, kept in after[0].items() if "__pycache__" not in name} == before[0]

    def test_the_fork_is_then_what_was_shown(self, studio: Studio, shop: Path) -> None:
        call = ("fork", shop, at(studio, shop, "cheap"), "--thread", "graph", "--graph", "graph", "--json")
        update = ("--as-node", "cheap", "--update", json.dumps(VALUES), "--overwrite", "notes")
        shown = studio(*call, *update, "--dry-run").doc
        made = studio(*call, *update)
        assert made.code == 0, made.err
        assert made.doc["next"] == shown["next"] == ["fan"]
        stored = studio("diff", shop, made.doc["checkpoint_id"], "--thread", "graph", "--json").doc["changes"]
        assert [(one["path"], one["op"], one["after"]) for one in stored] == [
            (one["path"], one["op"], one["after"]) for one in shown["changes"]
        ]

    def test_an_answered_default_is_named(self, studio: Studio, shop: Path) -> None:
        doc = preview(studio, shop, at(studio, shop, "cheap"), "--update", '{"price": 1.0}')
        assert doc["updates"][0]["as_node"] == "join"
        call = ("fork", shop, at(studio, shop, "cheap"), "--thread", "graph", "--graph", "graph", "--update", '{"price": 1.0}')
        text = studio(*call, "--dry-run").out
        assert "write as join (LangGraph's own choice)" in text
        assert "nothing was stored" in text

    @pytest.mark.parametrize("thread", ["asking", "failing"])
    def test_a_paused_and_a_failed_head_can_be_tried_too(self, studio: Studio, shop: Path, thread: str) -> None:
        node = {"asking": "approve", "failing": "check"}[thread]
        doc = preview(studio, shop, "head", "--as-node", node, "--update", '{"notes": ["by hand"]}', thread=thread, graph=thread)
        assert [change["after"] for change in doc["changes"]] == ["by hand"]
        assert doc["next"] == []

    def test_inside_a_subgraph_its_reducers_and_edges_count(self, studio: Studio, shop: Path) -> None:
        ref = at(studio, shop, "two", ns=True)
        doc = preview(studio, shop, ref, "--as-node", "one", "--update", '{"inner": 40, "notes": ["in"]}')
        assert {change["path"].split("/")[1]: change["after"] for change in doc["changes"]} == {"inner": 40, "notes": "in"}
        assert doc["next"] == ["two"]
        made = studio(
            "fork", shop, ref, "--thread", "graph", "--graph", "graph", "--as-node", "one", "--update", '{"inner": 40}', "--json"
        )
        assert made.doc["next"] == ["two"], made.err

    def test_a_large_value_comes_back_whole(self, studio: Studio, shop: Path) -> None:
        text = "x" * 3_000_000
        call = ("--as-node", "cheap", "--update", json.dumps({"route": text}))
        doc = preview(studio, shop, at(studio, shop, "cheap"), *call)
        assert [change["after"] for change in doc["changes"]] == [text]

    def test_the_other_acts_are_shown_the_same_way(self, studio: Studio, shop: Path) -> None:
        before = folder_snapshot(shop.parent)
        set_ = studio("fork", shop, "head", "--thread", "graph", "--set", "/price=1.0", "--dry-run", "--json").doc
        assert (set_["act"], [change["path"] for change in set_["changes"]]) == ("set", ["/price"])
        copy = studio("fork", shop, at(studio, shop, "cheap"), "--thread", "graph", "--dry-run")
        assert "the same point again" in copy.out
        assert "cheap" in copy.out
        refused = studio("fork", shop, "head", "--thread", "graph", "--goto", "nowhere", "--dry-run")
        assert refused.code == 1
        assert "nowhere" in refused.out
        assert folder_snapshot(shop.parent) == before
        assert not Path(Scratch(str(shop)).path).exists()


class TestOverwrite:
    def test_a_merged_channel_is_pointed_out_with_the_way_to_replace_it(self, studio: Studio, shop: Path) -> None:
        ref = at(studio, shop, "cheap")
        doc = preview(studio, shop, ref, "--as-node", "join", "--update", json.dumps(VALUES))
        assert doc["merged"] == ["notes", "total", "best", "messages"]
        assert doc["can_overwrite"] is True
        text = studio("fork", shop, ref, "--thread", "graph", "--graph", "graph", "--as-node", "join", "--update",
                      '{"notes": ["x"]}', "--dry-run").out  # fmt: skip
        assert "--overwrite notes" in text

    def test_it_replaces_past_the_reducer(self, studio: Studio, shop: Path) -> None:
        call = ("--as-node", "join", "--update", json.dumps(VALUES), "--overwrite", "notes", "--overwrite", "best")
        ref = at(studio, shop, "cheap")
        doc = preview(studio, shop, ref, *call)
        assert doc["merged"] == ["total", "messages"]
        made = studio("fork", shop, ref, "--thread", "graph", "--graph", "graph", *call, "--json").doc
        values = studio("show", shop, made["checkpoint_id"], "--thread", "graph", "--json").doc["values"]
        assert (values["notes"], values["best"], values["total"]) == (["by hand"], 4, 118)

    def test_a_channel_without_a_value_is_refused(self, studio: Studio, shop: Path) -> None:
        found = studio("fork", shop, "head", "--thread", "graph", "--graph", "graph", "--as-node", "join", "--update",
                       '{"price": 1.0}', "--overwrite", "notes")  # fmt: skip
        assert found.code == 1
        assert "no value for notes" in found.err

    def test_where_langgraph_has_none_it_is_refused_and_the_other_act_named(self, studio: Studio, shop: Path) -> None:
        code = (shop.parent / "shop_graphs.py").read_text(encoding="utf-8")
        gone = "import langgraph.types\ndel langgraph.types.Overwrite\n"  # as in a release before 1.0.2
        (shop.parent / "shop_graphs.py").write_text(code + gone, encoding="utf-8")
        ref = at(studio, shop, "cheap")
        doc = preview(studio, shop, ref, "--as-node", "join", "--update", '{"notes": ["x"]}')
        assert (doc["merged"], doc["can_overwrite"]) == (["notes"], False)
        call = ("fork", shop, ref, "--thread", "graph", "--graph", "graph", "--as-node", "join", "--update", '{"notes": ["x"]}')
        assert "set the state instead" in studio(*call, "--dry-run").out
        refused = studio(*call, "--overwrite", "notes")
        assert refused.code == 1
        assert "has no Overwrite" in refused.err
        assert "set the state instead" in refused.err


class TestTogether:
    PAIRS = ("--as-node", "web", "--update", '{"notes": ["W"], "total": 2}', "--as-node", "docs", "--update", '{"notes": ["D"]}')

    def test_several_nodes_write_in_one_superstep(self, studio: Studio, shop: Path) -> None:
        ref = at(studio, shop, "web")
        shown = preview(studio, shop, ref, *self.PAIRS)
        assert shown["next"] == ["join"]
        found = studio("fork", shop, ref, "--thread", "graph", "--graph", "graph", *self.PAIRS, "--json")
        assert found.code == 0, found.err
        made = found.doc
        assert made["next"] == ["join"]
        assert [(one["as_node"], one["channels"]) for one in made["updates"]] == [
            ("web", ["notes", "total"]),
            ("docs", ["notes"]),
        ]
        values = studio("show", shop, made["checkpoint_id"], "--thread", "graph", "--json").doc["values"]
        assert (values["notes"], values["total"]) == (["plan", "W", "D"], 3)

    def test_an_update_without_its_node_is_refused(self, studio: Studio, shop: Path) -> None:
        call = ("fork", shop, "head", "--thread", "graph", "--graph", "graph")
        found = studio(*call, "--update", "{}", "--as-node", "web", "--as-node", "docs", "--update", "{}")
        assert found.code == 2
        assert "--as-node A --update JSON --as-node B --update JSON" in found.err

    def test_two_values_for_a_channel_without_a_reducer_are_langgraphs_refusal(self, studio: Studio, shop: Path) -> None:
        pairs = ("--as-node", "web", "--update", '{"price": 1.0}', "--as-node", "docs", "--update", '{"price": 2.0}')
        doc = preview(studio, shop, at(studio, shop, "web"), *pairs)
        assert "price" in doc["refused"]


class TestRefusals:
    def test_a_copy_is_another_act(self, studio: Studio, shop: Path) -> None:
        found = studio("fork", shop, "head", "--thread", "graph", "--graph", "graph", "--as-node", "__copy__")
        assert found.code == 1
        assert "the same point again" in found.err

    def test_nothing_is_written_as_the_end(self, studio: Studio, shop: Path) -> None:
        call = ("fork", shop, at(studio, shop, "cheap"), "--thread", "graph", "--graph", "graph", "--as-node", "__end__")
        assert studio(*call, "--json").doc["next"] == []
        refused = studio(*call, "--update", '{"price": 1.0}')
        assert refused.code == 1
        assert "leave the values out" in refused.err

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ("UPDATE checkpoints SET type = 'pickle'", "pickle"),
            ("UPDATE checkpoints SET type = 'msgpack+aes'", "--aes-key-env"),
        ],
    )
    @pytest.mark.parametrize("act", [["--dry-run"], [], ["--in-place", "--yes"], ["--new-thread", "other"]])
    def test_what_cannot_be_read_is_not_written_to(
        self, studio: Studio, shop: Path, change: str, words: str, act: list[str]
    ) -> None:
        ref = studio("tree", shop, "--thread", "graph", "--json").doc["rows"][-1]["checkpoint_id"]
        connection = sqlite3.connect(shop)
        with connection:
            connection.execute(change)
        connection.close()
        before = shop.read_bytes()
        call = ("fork", shop, ref, "--thread", "graph", "--graph", "graph", "--as-node", "web", "--update", '{"price": 1.0}')
        found = studio(*call, *act)
        assert found.code == 1
        assert words in found.out + found.err
        assert shop.read_bytes() == before
        assert not Path(Scratch(str(shop)).path).exists()

    def test_a_newer_format_is_refused_with_the_reason(self, studio: Studio, shop: Path) -> None:
        import ormsgpack

        connection = sqlite3.connect(shop)
        with connection:
            ref, blob = connection.execute("SELECT checkpoint_id, checkpoint FROM checkpoints WHERE thread_id = 'graph' AND "
                                           "checkpoint_ns = '' ORDER BY checkpoint_id DESC").fetchone()  # fmt: skip
            assert blob.count(b"\xa1v\x04") == 1
            connection.execute(
                "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (blob.replace(b"\xa1v\x04", b"\xa1v\x09"), ref)
            )
        connection.close()
        assert ormsgpack.packb({"v": 4})[1:] == b"\xa1v\x04"
        for act in ([], ["--in-place", "--yes"], ["--dry-run"]):
            found = studio(
                "fork", shop, ref, "--thread", "graph", "--graph", "graph", "--as-node", "web", "--update", '{"price": 1.0}', *act
            )
            assert found.code == 1
            assert "has format 9" in found.out + found.err

    def test_a_value_that_cannot_be_rebuilt_is_not_written_on(self, studio: Studio, tmp_path: Path) -> None:
        from tests.forks.graphs import delta_graph

        path = tmp_path / "delta.sqlite"
        with saver_at(path) as saver:
            delta_graph(saver).invoke({"lines": ["first"]}, config("t"))
        connection = sqlite3.connect(path)
        with connection:
            newest = "SELECT max(checkpoint_id) FROM checkpoints"
            connection.execute(f"DELETE FROM checkpoints WHERE checkpoint_id < ({newest})")
            connection.execute("DELETE FROM writes")
        connection.close()
        before = path.read_bytes()
        for act in ([], ["--new-thread", "other"], ["--in-place", "--yes"]):
            found = studio("fork", path, "head", "--as-node", "three", "--update", '{"lines": ["x"]}', *act)
            assert found.code == 1, found.out
            assert "lines cannot be rebuilt at this checkpoint" in found.err
            assert "Set the state" in found.err
        assert path.read_bytes() == before
