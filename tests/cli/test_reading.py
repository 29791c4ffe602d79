"""ls, tree, show, diff, search and export: the contract's shapes, and texts for people."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langchain_core.messages import HumanMessage

from studio.assets import sample_folder
from studio.codec import jsontext
from studio.unsearched import MASKED
from tests.cli.conftest import Studio
from tests.explain import nested
from tests.factories import config, folder_snapshot, saver_at, shop_builder

HEADER = {
    "thread_id",
    "checkpoint_ns",
    "checkpoint_id",
    "parent_checkpoint_id",
    "step",
    "source",
    "created_at",
    "size_bytes",
    "origin",
}


def test_ls_tells_every_thread_with_its_live_status(studio: Studio, shop: Path) -> None:
    found = studio("ls", shop, "--json")
    assert found.code == 0
    doc = found.doc
    assert (doc["location"], doc["kind"], doc["problems"]) == (str(shop), "sqlite", [])
    threads = {thread["thread_id"]: thread for thread in doc["threads"]}
    assert {name: thread["status"] for name, thread in threads.items()} == {
        "done": "done", "paused": "paused", "failed": "failed", "forked": "done",
    }  # fmt: skip
    assert threads["done"]["first_text"] == "what is the price of the kettle?"
    assert len(threads["forked"]["heads"]) == 3
    text = studio("ls", shop).out
    assert "what is the price" in text
    assert "3 branches" in text


def test_looking_changes_nothing(studio: Studio, shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    for call in (["ls"], ["tree", "--thread", "done"], ["show", "head", "--thread", "done"], ["export"], ["search", "kettle"]):
        command, *rest = call
        assert studio(command, shop, *rest).code == 0
    assert folder_snapshot(shop.parent) == before


def test_tree_rows_agree_with_the_history_of_langgraph(studio: Studio, shop: Path, tmp_path: Path) -> None:
    rows = studio("tree", shop, "--thread", "forked", "--json").doc["rows"]
    assert set(rows[0]) >= HEADER | {"number", "lane", "origin_checkpoint_id", "nodes", "next", "status", "is_head", "channels"}
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(shop.read_bytes())
    with saver_at(copy) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        history = {one.config["configurable"]["checkpoint_id"]: one for one in graph.get_state_history(config("forked"))}
    assert {row["checkpoint_id"] for row in rows} == set(history)
    for row in rows:
        stored = history[row["checkpoint_id"]]
        assert (
            row["parent_checkpoint_id"]
            == (stored.parent_config or {"configurable": {"checkpoint_id": None}})["configurable"]["checkpoint_id"]
        )
        assert (row["source"], row["step"]) == (stored.metadata["source"], stored.metadata["step"])
        document = studio("show", shop, row["checkpoint_id"], "--thread", "forked", "--json").doc
        assert sorted(document["next"]) == sorted(stored.next)
        assert sorted(task["name"] for task in document["tasks"]) == sorted(task.name for task in stored.tasks)
        assert len(document["values"].get("messages", [])) == len(stored.values.get("messages", []))


def test_tree_draws_branches_and_names_what_ran(studio: Studio, shop: Path) -> None:
    text = studio("tree", shop, "--thread", "forked").out
    assert "─╮" in text
    assert "look_up" in text
    assert "HEAD" in text
    some = studio("tree", shop, "--thread", "forked", "--limit", 3).out
    assert "earlier" in some
    around = studio("tree", shop, "--thread", "forked", "--limit", 3, "--around", "2", "--json").doc
    assert [row["number"] for row in around["rows"]] == ["1", "2", "3"]


def test_a_row_of_a_subgraph_is_shown_in_its_surroundings_or_says_where_it_is(studio: Studio) -> None:
    place = ("tree", sample_folder() / "research_team.sqlite", "--thread", "street-trees")
    rows = studio(*place, "--all-ns", "--json").doc["rows"]
    inner = next(row for row in rows if row["checkpoint_ns"])
    assert inner["number"] in {
        row["number"] for row in studio(*place, "--all-ns", "--around", inner["number"], "--json").doc["rows"]
    }
    refused = studio(*place, "--around", inner["number"])
    assert refused.code == 3 and "--all-ns" in refused.err and "Traceback" not in refused.err


def test_show_tells_state_tasks_and_the_open_question(studio: Studio, shop: Path) -> None:
    doc = studio("show", shop, "head", "--thread", "paused", "--json").doc
    assert doc["next"] == ["approve"]
    assert doc["tasks"][0]["status"] == "paused"
    assert doc["tasks"][0]["interrupts"][0]["value"] == {"question": "sell kettle for 49.9?"}
    assert doc["values"]["price"] == 49.9
    assert doc["values"]["messages"][0]["$type"] == "langchain_core.messages.human.HumanMessage"
    text = studio("show", shop, "head", "--thread", "paused").out
    assert "sell kettle for 49.9?" in text
    failed = studio("show", shop, "head", "--thread", "failed", "--json").doc
    assert "the docs are down" in str([task["error"] for task in failed["tasks"]])


def test_show_prints_one_value(studio: Studio, shop: Path) -> None:
    assert (
        studio("show", shop, "head", "--thread", "done", "--path", "/messages/0/content").out
        == "what is the price of the kettle?\n"
    )
    doc = studio("show", shop, "head", "--thread", "done", "--path", "/price", "--json").doc
    assert (doc["path"], doc["value"]) == ("/price", 49.9)
    raw = studio("show", shop, "head", "--thread", "done", "--raw", "--json").doc
    assert raw["type"] == "msgpack"
    assert raw["record"]["v"] == 4
    missing = studio("show", shop, "head", "--thread", "done", "--path", "/nope")
    assert missing.code == 3
    assert missing.err.splitlines()[0] == "studio: there is no /nope"


def test_diff_names_the_authors(studio: Studio, shop: Path) -> None:
    rows = studio("tree", shop, "--thread", "done", "--json").doc["rows"]
    row = next(row for row in rows if {node["name"] for node in row["nodes"]} == {"web", "docs"})
    doc = studio("diff", shop, row["number"], "--thread", "done", "--json").doc
    authors = {change["path"]: {author["node"] for author in change["authors"]} for change in doc["changes"]}
    assert authors["/price"] == {"web"}
    assert doc["after"]["checkpoint_id"] == row["checkpoint_id"]
    text = studio("diff", shop, "#" + row["number"], "--thread", "done").out
    assert "/price" in text
    assert "by web" in text
    assert studio("diff", shop, row["number"], "--thread", "done", "--exit-code").code == 1
    assert studio("diff", shop, row["number"], row["number"], "--thread", "done", "--exit-code").code == 0


def test_search_finds_the_first_occurrence(studio: Studio, shop: Path) -> None:
    hits = studio("search", shop, "price of the kettle", "--thread", "done", "--json").doc["hits"]
    assert hits[0]["path"] == "/messages/0/content"
    assert studio("search", shop, "no such text").out == "nothing found\n"


def test_a_line_of_the_export_says_of_a_checkpoint_what_show_says(studio: Studio, shop: Path, tmp_path: Path) -> None:
    samples = Path(__file__).parents[2] / "sample_threads"
    nests = (nested.make_per_invocation(tmp_path / "two.sqlite"), nested.make_persistent(tmp_path / "memory.sqlite"))
    for path in (shop, *nests, samples / "research_team.sqlite"):
        for line in studio("export", path).lines:
            at = line["checkpoint"]
            place = ("--thread", at["thread_id"], "--ns", at["checkpoint_ns"])
            shown = studio("show", path, at["checkpoint_id"], *place, "--json").doc
            del shown["problems"]
            assert {key: line.get(key) for key in shown} == shown


def test_export_is_one_line_per_checkpoint_each_after_its_parent(studio: Studio, shop: Path) -> None:
    lines = studio("export", shop).lines
    with sqlite3.connect(shop) as connection:
        assert len(lines) == connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
    seen = set()
    for line in lines:
        header = line["checkpoint"]
        parent = header["parent_checkpoint_id"]
        assert parent is None or (header["thread_id"], parent) in seen
        seen.add((header["thread_id"], header["checkpoint_id"]))
        assert "changes" in line
    assert all("values" not in line for line in studio("export", shop, "--values", "none").lines)
    assert sum("values" in line for line in studio("export", shop, "--values", "heads", "--thread", "forked").lines) == 3
    changed = studio("export", shop, "--values", "changed", "--thread", "done").lines
    assert all(
        set(line["values"]) == {change["path"].split("/")[1] for change in line["changes"] if change["op"] != "remove"}
        for line in changed
    )


def test_secrets_are_masked_unless_asked_for(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "secrets.sqlite"
    with saver_at(path) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        graph.invoke(
            {"messages": [HumanMessage("my key is sk-live-abcdefghijklmnop1234", id="1")]},
            {"configurable": {"thread_id": "s", "api_key": "hunter2hunter2"}},
        )
    for call in (["ls"], ["ls", "--json"], ["export"], ["show", "head"], ["diff", "1"], ["search", "my key"], ["tree"]):
        command, *rest = call
        shown = studio(command, path, *rest).out
        assert "sk-live" not in shown, call
        assert "hunter2" not in shown, call
    assert "sk-live" in studio("export", path, "--show-secrets").out


def test_hostile_text_reaches_no_terminal(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "hostile.sqlite"
    with saver_at(path) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        graph.invoke(
            {"messages": [HumanMessage("\x1b[2J\u202eevil\x9b\x07", id="\x1b]0;x")], "item": "a\x00b"}, config("t\x1b[31m")
        )
    for call in (
        ["ls"],
        ["tree"],
        ["show", "head"],
        ["show", "head", "--path", "/item"],
        ["diff", "3"],
        ["export"],
        ["search", "evil"],
    ):
        command, *rest = call
        found = studio(command, path, *rest)
        assert found.code == 0
        assert not any(bad in found.out + found.err for bad in "\x1b\u202e\x9b\x07\x00")
    missing = studio("show", path, "\x1b[31m")
    assert missing.code == 3
    assert "\x1b" not in missing.err


def rewritten(path: Path, change: Callable[[dict[str, Any]], None], tag: str = "msgpack") -> None:
    """Change the values of the last checkpoint of a fresh thread, as another writer could have stored them."""
    with saver_at(path) as saver:
        shop_builder().compile(checkpointer=saver).invoke({"messages": [HumanMessage("x", id="1")]}, config("t"))
    with sqlite3.connect(path) as connection:
        key, blob = connection.execute("SELECT checkpoint_id, checkpoint FROM checkpoints ORDER BY checkpoint_id DESC").fetchone()
        record = ormsgpack.unpackb(blob, ext_hook=ormsgpack.Ext)
        change(record["channel_values"])
        if tag == "json":
            record["channel_values"] = {k: v for k, v in record["channel_values"].items() if isinstance(v, (int, str, dict))}
        stored = jsontext.dumps(record).encode() if tag == "json" else ormsgpack.packb(record)
        connection.execute("UPDATE checkpoints SET type = ?, checkpoint = ? WHERE checkpoint_id = ?", (tag, stored, key))
        connection.execute("UPDATE checkpoints SET metadata = json_insert(metadata, '$.big', 0) WHERE checkpoint_id = ?", (key,))
        huge = jsontext.int_text(HUGE).encode()
        connection.execute(
            "UPDATE checkpoints SET metadata = CAST(replace(metadata, '\"big\":0', ?) AS BLOB) WHERE checkpoint_id = ?",
            (f'"big":{huge.decode()}', key),
        )


HUGE = 10**5000
LOOKS = (["ls"], ["tree"], ["show", "head"], ["show", "head", "--raw"], ["diff", "head"], ["export"], ["search", "kettle"])


def test_an_integer_of_five_thousand_digits_is_shown_by_its_size(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "big.sqlite"
    rewritten(path, lambda values: values.update(price=HUGE, notes={"list": [HUGE, HUGE + 1, "kettle"]}), "json")
    for command, *rest in LOOKS:
        for form in ([], ["--json"]):
            found = studio(command, path, *rest, *form)
            assert found.code == 0, (command, found.err)
    assert f"⟨integer of {HUGE.bit_length():,} bits⟩" in studio("show", path, "head").out
    shown = studio("show", path, "head", "--path", "/price", "--json").doc["value"]
    assert shown == {"$int": "1" + 5000 * "0"}
    assert studio("fork", path, "head", "--set", "/price=1" + 5001 * "0", "--json").code == 0
    given = studio(
        "run",
        path,
        "head",
        "--input",
        "1" + 5001 * "0",
        "--graph",
        f"{Path(__file__).parent.parent / 'factories.py'}:shop_builder",
        "--yes",
    )
    assert given.code != 0
    assert "more than 4,300 digits" in given.err


def test_an_extension_value_in_two_thousand_others_is_shown(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "nested.sqlite"
    inner = ormsgpack.packb("kettle")
    for _ in range(2_000):
        inner = ormsgpack.packb(ormsgpack.Ext(7, inner))
    rewritten(path, lambda values: values.update(price=ormsgpack.unpackb(inner, ext_hook=ormsgpack.Ext)))
    for command, *rest in LOOKS:
        found = studio(command, path, *rest)
        assert found.code == 0, (command, found.err)


@pytest.mark.parametrize("arguments", [["fork", "1", "--set", '/price={"a": 1e400}'], ["fork", "1", "--set", "/price=-1e400"],
    ["run", "head", "--resume", "1e400"], ["fork", "1", "--as-node", "web", "--update", "[1e400]"]])  # fmt: skip
def test_a_number_beyond_the_largest_float_is_refused(studio: Studio, shop: Path, arguments: list[str]) -> None:
    command, *rest = arguments
    found = studio(command, shop, *rest, "--thread", "paused")
    assert found.code == 2
    assert "is beyond the largest float" in found.err


def test_a_value_of_a_thousand_levels_is_shown_and_exported(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "deep.sqlite"
    with saver_at(path) as saver:
        shop_builder().compile(checkpointer=saver).invoke({"messages": [HumanMessage("x", id="1")]}, config("t"))
    with sqlite3.connect(path) as connection:
        key, blob = connection.execute("SELECT checkpoint_id, checkpoint FROM checkpoints ORDER BY checkpoint_id DESC").fetchone()
        record = ormsgpack.unpackb(blob, ext_hook=ormsgpack.Ext)
        record["channel_values"]["item"] = "@"
        deep = ormsgpack.packb(record).replace(b"\xa1@", b"\x91" * 5000 + b"\x01")
        connection.execute("UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?", (deep, key))
    assert studio("show", path, "head").code == 0
    found = studio("export", path)
    assert found.code == 0
    assert "[" * 5000 in found.out


@pytest.mark.parametrize(
    ("call", "code", "words"),
    [
        (["ls", "missing.sqlite"], 3, "missing.sqlite"),
        (["ls"], 2, "LOCATION"),
        (["tree", "SHOP"], 2, "--thread"),
        (["tree", "SHOP", "--thread", "nobody"], 3, "nobody"),
        (["show", "SHOP", "zzzz", "--thread", "done"], 3, "zzzz"),
        (["tree", "SHOP", "--thread", "done", "--limit", "0"], 2, "--limit"),
        (["show", "SHOP", "head", "--frobnicate"], 2, "--frobnicate"),
        (["diff", "SHOP", "1", "2", "--origin", "--thread", "done"], 2, "--origin"),
        (["SHOP"], 2, "terminal"),
    ],
)
def test_errors_are_one_line_with_a_hint_and_an_exit_code(
    studio: Studio, shop: Path, call: list[str], code: int, words: str
) -> None:
    found = studio(*(str(shop) if word == "SHOP" else word for word in call))
    assert found.code == code
    first, *rest = found.err.splitlines()
    assert first.startswith("studio: ")
    assert words in first
    assert rest[-1].startswith("hint: ") or rest
    assert "Traceback" not in found.err
    assert found.out == ""


@pytest.mark.parametrize("threads", [["one", "h"], ["thread", "two"]])
def test_every_thread_to_choose_from_is_listed_whatever_it_is_called(studio: Studio, tmp_path: Path, threads: list[str]) -> None:
    with saver_at(tmp_path / "two.sqlite") as saver:
        for name in threads:
            shop_builder().compile(checkpointer=saver).invoke({"messages": []}, config(name))
    found = studio("tree", tmp_path / "two.sqlite")
    assert sorted(line.strip() for line in found.err.splitlines()[1:]) == sorted(threads)


def test_a_part_of_an_id_that_fits_several_lists_each_once(studio: Studio, shop: Path) -> None:
    rows = studio("tree", shop, "--thread", "done", "--json").doc["rows"]
    ref = rows[0]["checkpoint_id"][:4]
    found = studio("show", shop, ref, "--thread", "done").err
    assert "fits" in found
    assert found.count(rows[1]["checkpoint_id"]) == 1
    shorter = studio("show", shop, ref[:3], "--thread", "done").err
    assert "no checkpoint" in shorter
    assert "at least 4 characters" in shorter
    assert "at least" not in studio("show", shop, "zzz", "--thread", "done").err


def test_debug_shows_the_traceback(studio: Studio, shop: Path) -> None:
    assert "Traceback" in studio("show", shop, "zzzz", "--thread", "done", "--debug").err


def test_a_thread_can_be_named_by_a_json_string(studio: Studio, tmp_path: Path) -> None:
    path = tmp_path / "nul.sqlite"
    with saver_at(path) as saver:
        shop_builder().compile(checkpointer=saver).invoke({"messages": []}, config("a\x01b"))
        shop_builder().compile(checkpointer=saver).invoke({"messages": []}, config("other"))
    assert studio("tree", path, "--thread", '"a\\u0001b"', "--json").doc["thread_id"] == "a\x01b"


def test_colour_only_where_it_is_wanted(studio: Studio, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "\x1b" not in studio("ls", shop).out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in studio("ls", shop).out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in studio("ls", shop).out


def test_help_and_version(studio: Studio) -> None:
    assert studio("--version").out.startswith("studio ")
    text = studio("--help").out
    assert all(
        name in text for name in ("ls", "tree", "show", "diff", "search", "export", "fork", "run", "web", "demo", "scratch")
    )
    assert "--set" in studio("fork", "--help").out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [(("tree", "--thread", "done", "--ns", "nope"), "no namespace 'nope'"), (("ls", "--thread", "nope"), "no thread 'nope'")],
)
def test_what_is_not_there_is_told_and_not_an_empty_answer(
    studio: Studio, shop: Path, arguments: tuple[str, ...], words: str
) -> None:
    for more in ((), ("--json",)):
        found = studio(arguments[0], shop, *arguments[1:], *more)
        assert (found.code, found.out) == (3, "")
        assert words in found.err


def test_a_limit_below_one_is_told_in_words(studio: Studio, shop: Path) -> None:
    found = studio("tree", shop, "--thread", "done", "--limit", "0")
    assert found.code == 2
    assert "'0' is no whole number from 1 on" in found.err


def test_a_mistyped_command_is_called_none_and_the_right_one_is_proposed(studio: Studio, shop: Path) -> None:
    for call in (("lss", shop), ("tre", shop, "--all-ns", "--thread", "done"), ("lss",)):
        found = studio(*call)
        assert found.code == 2 and f"there is no command '{call[0]}', and no file of that name" in found.err
        assert f"did you mean `studio {'tree' if call[0] == 'tre' else 'ls'}" in found.err
    assert "`studio --help` lists the commands" in studio("xyzzy", shop).err


def test_a_command_behind_its_file_is_told_to_stand_before_it(studio: Studio, shop: Path) -> None:
    mistyped, misplaced = studio(shop, "lss"), studio(shop, "ls", "--json")
    assert mistyped.code == misplaced.code == 2
    assert "there is no command 'lss'" in mistyped.err and "'ls' stands behind the file" in misplaced.err
    for found in (mistyped, misplaced):
        assert f"the command comes first: `studio ls {shop}`" in found.err


def test_a_file_with_the_name_of_a_mistyped_command_is_opened(
    studio: Studio, shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(shop.parent)
    shop.rename("lss")
    assert "the terminal UI needs a terminal" in studio("lss").err
    assert "what is the price" in studio("ls", "lss").out


@pytest.mark.parametrize(
    "command",
    [("ls",), ("tree", "--thread", "done"), ("export", "--thread", "done"), ("search", "2.0")],
    ids=lambda command: command[0],
)
def test_a_looking_command_shows_the_forks_of_the_scratch_file_it_is_given(
    studio: Studio, shop: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    scratch = tmp_path / "mine.sqlite"
    made = studio("fork", shop, "head", "--thread", "done", "--set", "/price=2.0", "--scratch", scratch, "--json").doc
    found = studio(command[0], shop, *command[1:], "--scratch", scratch, "--json")
    assert found.code == 0 and made["checkpoint_id"] in found.out
    assert made["checkpoint_id"] not in studio(command[0], shop, *command[1:], "--json").out


def test_a_fork_in_a_given_scratch_file_is_looked_at_beside_its_base(studio: Studio, shop: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "mine.sqlite"
    made = studio("fork", shop, "head", "--thread", "done", "--set", "/price=2.0", "--scratch", scratch, "--json").doc
    place = ("--thread", "done", "--scratch", scratch, "--json")
    assert studio("show", shop, "s1", *place).doc["checkpoint"]["checkpoint_id"] == made["checkpoint_id"]
    changes = studio("diff", shop, "s1", "--origin", *place).doc["changes"]
    assert [(change["path"], change["after"]) for change in changes] == [("/price", 2.0)]
    assert studio("tables", shop, "--scratch", scratch).code == studio("edges", shop, *place).code == 0


def test_looking_never_makes_the_scratch_file_and_says_that_it_is_not_there(studio: Studio, shop: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "mistyped.sqlite"
    for command in ("ls", "tables", "search"):
        found = studio(command, shop, *(("x",) if command == "search" else ()), "--scratch", scratch)
        told = f"{MASKED}\n" if command == "search" else ""
        assert (found.code, found.err) == (0, f"no forks are kept in {scratch}\n{told}")
    assert not scratch.exists()


def test_a_scratch_file_is_that_of_one_file_in_a_folder(studio: Studio, shop: Path, tmp_path: Path) -> None:
    (shop.parent / "other.sqlite").write_bytes(shop.read_bytes())
    scratch = tmp_path / "mine.sqlite"
    for command in ("ls", "web"):
        refused = studio(command, shop.parent, "--scratch", scratch)
        assert refused.code == 2 and "choose it with --file" in refused.err
    assert studio("ls", shop.parent, "--file", "other.sqlite", "--scratch", scratch).code == 0


@pytest.mark.parametrize("call", [("ls", ""), ("web", ""), ("scratch", "path", ""), ("ls", "FILE", "--scratch", "")])
def test_an_empty_name_of_a_file_is_wrong_usage_and_not_the_current_folder(
    studio: Studio, shop: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[str, ...]
) -> None:
    monkeypatch.chdir(shop.parent)
    found = studio(*[str(shop) if word == "FILE" else word for word in call])
    assert (found.code, found.out) == (2, "")
    assert "is empty" in found.err and len(found.err.splitlines()) == 2


def test_a_scratch_file_that_cannot_be_used_is_said_in_one_whole_sentence(studio: Studio, shop: Path) -> None:
    broken = shop.parent / "broken.sqlite"
    broken.write_text("no database at all " * 90)
    found = studio("ls", shop, "--scratch", broken)
    assert found.code != 0 and str(broken) in found.err
    assert ".." not in found.err


@pytest.mark.parametrize("text", ["x" * 20_000, "e" + "\u0301" * 500, "a b " * 5_000], ids=["letters", "marks", "words"])
def test_an_error_repeats_a_long_name_in_part_and_says_how_much_it_leaves_out(studio: Studio, shop: Path, text: str) -> None:
    for call in (("tree", shop, "--thread", text), ("show", shop, text, "--thread", "done")):
        found = studio(*call)
        assert found.code in (2, 3)
        assert all(len(line) < 1200 for line in found.err.splitlines()) and len(found.err.splitlines()) <= 3
        assert "characters more" in found.err and found.err.count("\u0301") < 130


def test_ls_calls_the_state_of_a_thread_as_tree_does_and_counts_checkpoints(studio: Studio, shop: Path) -> None:
    said = studio("ls", shop).out.splitlines()
    assert said[0].split() == ["thread", "status", "checkpoints", "last", "size", "text"]
    paused = next(line for line in said if line.startswith("paused "))
    assert "waiting for an answer" in paused and "waiting for an answer" in studio("tree", shop, "--thread", "paused").out
    where = said[0].index("checkpoints") + len("checkpoints")
    assert paused[:where].endswith(f" {len(studio('tree', shop, '--thread', 'paused', '--json').doc['rows'])}")
