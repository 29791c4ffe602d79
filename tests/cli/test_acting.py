"""fork, run and scratch: what they print, where they write, how they end."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Studio
from tests.explain import nested
from tests.factories import folder_snapshot

GRAPH = '''
"""The shop graph as a user's project."""
import os, time
from tests.factories import shop_builder

builder = shop_builder()


def slow():
    found = shop_builder()
    def sleep(state):
        print("sleeping", flush=True)
        time.sleep(120)
    found.add_node("sleep", sleep)
    found.add_edge("publish", "sleep")
    return found
'''

DEEP = """
from tests.explain.graphs import chain

inner = chain("inner", inner=chain("deepest").compile()).compile()
graph = chain("outer", outer=chain("middle", middle=inner).compile())
"""


@pytest.fixture
def deep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, str]:
    """A file with a graph in a graph in a graph, and what `--graph` calls it."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    (tmp_path / "deep.py").write_text(DEEP)
    return nested.make_deep(tmp_path / "deep.sqlite"), f"{tmp_path / 'deep.py'}:graph"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `langgraph.json`, which is the working folder; its graph is the one that made the shop file."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shop_graph.py").write_text(GRAPH)
    (folder / "langgraph.json").write_text(
        json.dumps({"graphs": {"shop": "./shop_graph.py:builder", "slow": "./shop_graph.py:slow"}})
    )
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    return folder


def approve_row(studio: Studio, shop: Path, thread: str = "done") -> dict[str, Any]:
    rows = studio("tree", shop, "--thread", thread, "--json").doc["rows"]
    return next(row for row in rows if {node["name"] for node in row["nodes"]} == {"grade"})


def test_a_fork_is_verified_and_leaves_the_file_alone(studio: Studio, shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    row = approve_row(studio, shop)
    doc = studio("fork", shop, row["number"], "--thread", "done", "--set", "/price=39.0", "--unset", "/notes/0", "--json").doc
    assert (doc["recipe"], doc["verified"], doc["next"], doc["surprises"]) == ("set", True, ["approve"], [])
    assert doc["forked_from"]["checkpoint_id"] == row["checkpoint_id"]
    assert folder_snapshot(shop.parent) == before
    shown = studio("show", shop, doc["checkpoint_id"], "--thread", "done", "--json").doc
    assert shown["values"]["price"] == 39.0
    assert shown["checkpoint"]["origin"] == "scratch"
    changes = studio("diff", shop, "s1", "--thread", "done", "--origin", "--json").doc["changes"]
    assert sorted(change["path"] for change in changes) == ["/notes/0", "/price"]
    text = studio("tree", shop, "--thread", "done").out
    assert "#s1" in text


def test_a_fork_is_told_in_words(studio: Studio, shop: Path) -> None:
    found = studio("fork", shop, approve_row(studio, shop)["number"], "--thread", "done", "--set", '/item="a=b"')
    assert found.code == 0
    assert "→ #s1" in found.out
    assert "approve" in found.out
    assert "read back and equal" in found.out


def test_a_patch_file_sets_and_unsets(studio: Studio, shop: Path, tmp_path: Path) -> None:
    patch = tmp_path / "patch.json"
    patch.write_text(json.dumps({"set": {"/price": 1.5}, "unset": ["/item"]}))
    doc = studio("fork", shop, "head", "--thread", "done", "--patch", patch, "--json").doc
    values = studio("show", shop, doc["checkpoint_id"], "--thread", "done", "--json").doc["values"]
    assert values["price"] == 1.5
    assert "item" not in values


def test_a_patch_that_is_no_file_or_too_large_is_refused_in_one_line(studio: Studio, shop: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with open(tmp_path / "large.json", "wb") as file:
        file.truncate((64 << 20) + 1)
    told = {"/dev/zero": "not a file", tmp_path / "pipe": "not a file", tmp_path: "not a file"}
    told |= {tmp_path / "large.json": "larger than 64 MB", tmp_path / "none.json": "No such file"}
    for name, words in told.items():
        found = studio("fork", shop, "1", "--thread", "done", "--patch", name)
        assert found.code == 2
        assert words in found.err.splitlines()[0]


def test_goto_and_a_new_thread(studio: Studio, shop: Path) -> None:
    doc = studio("fork", shop, "head", "--thread", "done", "--goto", "publish", "--new-thread", "again", "--json").doc
    assert doc["thread_id"] == "again"
    assert doc["next"] == ["publish"]


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--set", "/price=cheap"], 2, "no JSON"),
        (["--set", "price=1"], 2, "begin with /"),
        (["--set", "/price"], 2, "no value"),
        (["--unset", "/nothing/here"], 1, "/nothing"),
        (["--patch", "missing.json"], 2, "missing.json"),
        (["--goto", "nowhere"], 1, "nowhere"),
        (["--as-node", "web", "--update", "{}", "--set", "/price=1"], 2, "--as-node"),
        (["--set", "/price=1", "--in-place"], 2, "--in-place"),
        (["--set", "/price=1", "--config", "user=mara"], 2, "runs none"),
        (["--goto", "publish", "--recursion-limit", "9"], 2, "runs none"),
        (["--goto", "publish", "--recursion-limit", "0"], 2, "no whole number from 1 on"),
    ],
)
def test_a_fork_that_makes_no_sense_is_refused(studio: Studio, shop: Path, arguments: list[str], code: int, words: str) -> None:
    before = folder_snapshot(shop.parent)
    found = studio("fork", shop, "head", "--thread", "done", *arguments)
    assert found.code == code
    assert words in found.err
    assert "Traceback" not in found.err
    assert folder_snapshot(shop.parent) == before


def test_in_place_adds_rows_to_the_file_itself(studio: Studio, shop: Path) -> None:
    doc = studio("fork", shop, "head", "--thread", "done", "--set", "/price=2.0", "--in-place", "--yes", "--json").doc
    assert doc["stored_in"] == str(shop)
    assert doc["checkpoint_id"] in {
        row["checkpoint_id"] for row in studio("tree", shop, "--thread", "done", "--json").doc["rows"]
    }


def test_a_run_streams_its_events_and_stops_at_the_question(studio: Studio, shop: Path, project: Path) -> None:
    number = approve_row(studio, shop)["number"]
    studio("fork", shop, number, "--thread", "done", "--set", "/price=39.0")
    found = studio("run", shop, "s1", "--thread", "done", "--graph", "shop", "--json")
    assert found.code == 4, found.err
    lines = found.lines
    assert lines[0]["event"] == "plan"
    assert lines[0]["runs"] == ["approve"]
    end = lines[-1]
    assert (end["event"], end["status"]) == ("end", "paused")
    assert end["interrupts"][0]["value"] == {"question": "sell kettle for 39.0?"}
    answered = studio("run", shop, end["head"]["checkpoint_id"], "--thread", "done", "--graph", "shop", "--resume", '"yes"')
    assert answered.code == 0, answered.err
    assert "publish" in answered.out
    rows = studio("tree", shop, "--thread", "done", "--json").doc["rows"]
    last = studio("show", shop, rows[-1]["checkpoint_id"], "--thread", "done", "--json").doc["values"]
    assert last["messages"][-1]["fields"]["content"] == "kettle costs 39.0"


def test_a_plan_says_with_what_a_tool_was_called_before_not_with_what_it_will_be(
    studio: Studio, shop: Path, project: Path
) -> None:
    plan = studio("run", shop, "root", "--thread", "done", "--graph", "shop", "--dry-run")
    assert re.search(r'^ +may happen again +price_of, recorded with item="kettle" \(call call_1\)$', plan.out, re.MULTILINE)


def test_a_dry_run_only_prints_the_plan(studio: Studio, shop: Path, project: Path) -> None:
    before = folder_snapshot(shop.parent)
    found = studio("run", shop, approve_row(studio, shop)["number"], "--thread", "done", "--graph", "shop", "--dry-run")
    assert found.code == 0
    assert "approve" in found.out
    assert "shop_graph.py" in found.out
    assert folder_snapshot(shop.parent) == before


def test_the_plan_shows_the_config_the_limit_and_every_stored_type(studio: Studio, shop: Path, project: Path) -> None:
    call = ("run", shop, "head", "--thread", "paused", "--graph", "shop", "--resume", '"yes"', "--dry-run")
    more = ("--config", "user=mara", "--config", "api_key=sk-live-0123456789abcdef0123", "--recursion-limit", "9")
    text = studio(*call, *more).out
    assert 'user="mara"' in text
    assert "9 supersteps" in text
    assert "0123456789" not in text
    doc = studio(*call, *more, "--json").doc
    assert (doc["config"]["user"], doc["recursion_limit"]) == ('"mara"', 9)
    assert doc["types"]
    assert f"{len(doc['types'])} stored type" in text
    assert all(one["name"] in text for one in doc["types"])


def test_a_run_names_every_stored_type_before_it_starts(studio: Studio, shop: Path, project: Path) -> None:
    call = ("run", shop, "head", "--thread", "paused", "--graph", "shop", "--resume", '"yes"')
    names = [one["name"] for one in studio(*call, "--dry-run", "--json").doc["types"]]
    found = studio(*call)
    imports = next(line for line in found.out.splitlines() if line.startswith("  imports"))
    assert names and found.code == 0
    assert all(f"{name} ×" in imports for name in names)


def test_a_run_that_stops_at_a_node_says_so_and_an_unknown_one_is_refused(studio: Studio, shop: Path, project: Path) -> None:
    number = approve_row(studio, shop)["number"]
    call = ("run", shop, number, "--thread", "done", "--graph", "shop")
    found = studio(*call, "--resume", '"yes"', "--before", "publish")
    assert found.code == 4
    assert "stopped before publish (as asked)" in found.out
    refused = studio(*call, "--after", "aprove")
    assert refused.code == 2
    assert refused.err.count("publish") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--thread", r'"\ud800"'], "--thread: '\\ud800' is no valid text"),
        (["--thread", "paused", "--graph", "a" * 6000 + ".py:x"], "there is no file"),
        (["--thread", "paused", "--python", "b/" * 3000], "is no Python interpreter"),
        (["--thread", "paused", "--resume", "[" * 900 + "]" * 900], "more than 500 levels"),
        (["--thread", "paused", "--resume", "[" * 90_000 + "]" * 90_000], "more than 500 levels"),
    ],
)
def test_odd_input_is_one_clear_line(studio: Studio, shop: Path, project: Path, arguments: list[str], words: str) -> None:
    before = folder_snapshot(shop.parent)
    found = studio("run", shop, "head", *(["--graph", "shop"] if "--graph" not in arguments else []), *arguments)
    assert found.code in (1, 2)
    assert words in found.err
    assert "internal error" not in found.err
    assert len(found.err) < 1_500
    assert studio("scratch", "ls").out == "no forks are kept\n"
    assert folder_snapshot(shop.parent) == before


def test_a_langgraph_json_that_nests_without_end_is_one_clear_line(studio: Studio, shop: Path, project: Path) -> None:
    (project / "langgraph.json").write_text("[" * 200_000)
    found = studio("run", shop, "head", "--thread", "paused", "--dry-run")
    assert found.code == 2
    assert "langgraph.json is not valid JSON" in found.err


def test_one_question_is_answered_once(studio: Studio, shop: Path, project: Path) -> None:
    found = studio("run", shop, "head", "--thread", "paused", "--graph", "shop", "--answer", "ab=1", "--answer", "ab=2")
    assert found.code == 2
    assert "answered twice" in found.err


def test_a_write_as_a_node_takes_the_config_along(studio: Studio, shop: Path, project: Path) -> None:
    number = approve_row(studio, shop)["number"]
    call = ("fork", shop, number, "--thread", "done", "--graph", "shop", "--as-node", "grade", "--update", '{"price": 3.0}')
    doc = studio(*call, "--config", "desk=7", "--json").doc
    shown = studio("show", shop, doc["checkpoint_id"], "--thread", "done", "--json").doc
    assert shown["metadata"]["desk"] == 7


def test_several_graphs_and_no_name_is_a_question(studio: Studio, shop: Path, project: Path) -> None:
    found = studio("run", shop, "head", "--thread", "paused", "--resume", '"yes"')
    assert found.code == 2
    assert "shop" in found.err
    assert "slow" in found.err


def test_bad_json_arguments_say_how_to_write_them(studio: Studio, shop: Path, project: Path) -> None:
    found = studio("run", shop, "head", "--thread", "paused", "--graph", "shop", "--resume", "yes")
    assert found.code == 2
    assert "double quotes" in found.err


def test_ctrl_c_cancels_the_run_and_ends_its_processes(studio: Studio, shop: Path, project: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "studio",
        "run",
        str(shop),
        "head",
        "--thread",
        "paused",
        "--graph",
        "slow",
        "--resume",
        '"yes"',
        "--json",
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ))
    assert process.stdout is not None
    seen = ""
    for text in process.stdout:
        seen += text
        if "sleeping" in text:
            process.send_signal(signal.SIGINT)
            break
    start = time.monotonic()
    rest, _ = process.communicate(timeout=30)
    assert time.monotonic() - start < 20
    assert process.returncode == 130
    end = json.loads((seen + rest).splitlines()[-1])
    assert (end["event"], end["status"]) == ("end", "cancelled")


def test_scratch_files_are_listed_and_removed(studio: Studio, shop: Path) -> None:
    assert studio("scratch", "ls").out == "no forks are kept\n"
    studio("fork", shop, "head", "--thread", "done", "--set", "/price=2.0")
    path = studio("scratch", "path", shop).out.strip()
    assert os.path.exists(path)
    assert studio("scratch", "ls", "--json").doc["files"][0]["forks"] == 1
    assert studio("scratch", "rm", shop).code == 2
    assert studio("scratch", "rm", shop, "--yes").code == 0
    assert not os.path.exists(path)


def test_a_given_scratch_file_holds_the_forks(studio: Studio, shop: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "mine.sqlite"
    doc = studio("fork", shop, "head", "--thread", "done", "--set", "/price=2.0", "--scratch", scratch, "--json").doc
    assert doc["stored_in"] == str(scratch)
    assert studio("show", scratch, doc["checkpoint_id"], "--json").doc["values"]["price"] == 2.0


def test_a_file_that_calls_itself_a_scratch_file_is_not_written(studio: Studio, shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection, connection:
        connection.execute("CREATE TABLE studio_scratch (key TEXT PRIMARY KEY, value TEXT NOT NULL)")
        marks = [("format", "1"), ("store", "x"), ("created_at", "y")]
        connection.executemany("INSERT INTO studio_scratch VALUES (?, ?)", marks)
    before = shop.read_bytes()
    made = studio("fork", shop, "3", "--thread", "done", "--json")
    assert made.code == 0 and made.doc["stored_in"] != str(shop)
    assert shop.read_bytes() == before


def test_removing_forks_removes_no_file_of_somebody_else_and_none_in_use(studio: Studio, shop: Path, tmp_path: Path) -> None:
    given, beside = tmp_path / "x.scratch.sqlite", tmp_path / "x.notes.sqlite"
    beside.write_text("precious")
    assert studio("fork", shop, "3", "--thread", "done", "--scratch", given).code == 0
    program = "import sys; held = open(sys.argv[1]); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", program, given], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "open\n"
        kept = studio("scratch", "rm", given, "--notes", "--yes")
        assert kept.code == 1 and given.exists() and "has it open" in kept.err
        other.communicate()
    assert studio("scratch", "rm", given, "--notes", "--yes").code == 0
    assert not given.exists() and beside.read_text() == "precious"


def test_kept_forks_that_cannot_be_read_hide_nothing_of_the_file(studio: Studio, shop: Path) -> None:
    made = studio("fork", shop, "3", "--thread", "done", "--json").doc
    Path(made["stored_in"]).write_bytes(b"no database" * 500)
    found = studio("ls", shop, "--json")
    assert found.code == 0 and len(found.doc["threads"]) > 2
    assert [problem["kind"] for problem in found.doc["problems"]] == ["forks-unreadable"]
    assert studio("show", shop, "3", "--thread", "done").code == 0


@pytest.fixture
def odd_ids(shop: Path) -> Path:
    """The file with one thread whose id is not UTF-8."""
    with closing(sqlite3.connect(shop)) as connection, connection:
        for table in ("checkpoints", "writes"):
            connection.execute(f"UPDATE {table} SET thread_id = CAST(? AS TEXT) WHERE thread_id = 'done'", (b"a\xffb",))
    return shop


@pytest.mark.parametrize("name", ['"a\\udcffb"', "a\udcffb"])
def test_a_thread_whose_id_is_not_utf_8_is_read_and_neither_forked_nor_run(
    studio: Studio, odd_ids: Path, project: Path, name: str
) -> None:
    assert "a\udcffb" in [row["thread_id"] for row in studio("ls", odd_ids, "--json").doc["threads"]]
    thread = ("--thread", name)
    assert studio("tree", odd_ids, *thread, "--json").doc["thread_id"] == "a\udcffb"
    assert studio("show", odd_ids, "head", *thread).code == 0
    for act in (
        ["fork", odd_ids, "1", "--set", '/item="x"'],
        ["fork", odd_ids, "1", "--set", '/item="x"', "--new-thread", "new"],
        ["fork", odd_ids, "1", "--as-node", "publish", "--update", "{}", "--graph", "shop"],
        ["run", odd_ids, "1", "--graph", "shop"],
        ["run", odd_ids, "head", "--input", "{}", "--graph", "shop"],
    ):
        for place in ([], ["--in-place"]):
            found = studio(*act, *thread, "--yes", *place)
            assert found.code != 0
            assert "is not valid UTF-8" in found.err.splitlines()[0]
    assert "no valid text" in studio("tree", odd_ids, "--thread", '"\\ud800"').err


def test_a_fork_inside_a_subgraph_names_the_root_that_runs_it_and_the_command(studio: Studio, deep: tuple[Path, str]) -> None:
    path, graph = deep
    facts = {row[:12].strip(): row[12:].strip() for row in studio("fork", path, "1.2.2").out.splitlines()[1:]}
    rows = studio("tree", path, "--all-ns", "--json").doc["rows"]
    root = next(row for row in rows if row["number"] == "s1")
    assert facts["runs from"].startswith(f"#s1 {root['checkpoint_id']}, ")
    command = shlex.split(facts["run it"])
    assert command == ["studio", "run", str(path), "--thread", "t", "s1.1.1"]
    ran = studio(*command[1:], "--graph", graph, "--json").lines
    assert ran[-1]["status"] == "done"
    after = studio("tree", path, "--json").doc["rows"]
    assert [row["number"] for row in after if row["origin_checkpoint_id"]] == ["s1"]  # no second copy
    assert next(row for row in after if row["checkpoint_id"] == ran[-1]["head"]["checkpoint_id"])["parent_number"] == "s1"


def test_the_root_of_an_older_fork_inside_a_subgraph_runs_with_what_was_set_inside(
    studio: Studio, deep: tuple[Path, str]
) -> None:
    path, graph = deep
    studio("fork", path, "1.2.2", "--set", '/topic="set inside"')
    studio("fork", path, "1.2")  # LangGraph runs the newest: the older one must be copied, and all of it
    end = studio("run", path, "s1", "--graph", graph, "--json").lines[-1]
    assert end["status"] == "done"
    rows = studio("tree", path, "--all-ns", "--json").doc["rows"]
    (inner,) = [
        row["number"] for row in rows if row["number"].startswith("s3.") and row["origin_checkpoint_id"] and row["depth"] == 2
    ]
    assert studio("show", path, inner, "--path", "/topic", "--json").doc["value"] == "set inside"
