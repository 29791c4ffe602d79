"""Sessions of a coding agent, through the command line, as a person reads them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from studio.cli import main
from tests.factories import folder_snapshot
from tests.stores.transcripts.sessions import SESSION, Book, bakery, call

Doc = dict[str, Any]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def command(*words: object) -> Any:
        code = main([*map(str, words), "--json"])
        shown = capsys.readouterr()
        assert code == 0, shown.err
        docs = [json.loads(line) for line in shown.out.splitlines()] if words[0] == "export" else [json.loads(shown.out)]
        return docs if words[0] == "export" else docs[0]

    return command


def only(run: Any, path: Path) -> Doc:
    (thread,) = run("ls", path)["threads"]
    found: Doc = thread
    return found


def labels(run: Any, path: Path, *more: str) -> list[str]:
    return [row["label"] for row in run("tree", path, *more)["rows"]]


def kinds(run: Any, path: Path) -> list[str]:
    return sorted(problem["kind"] for problem in run("ls", path)["problems"])


def test_turns_are_the_rows_of_the_tree_and_parallel_calls_are_no_branch(run: Any, tmp_path: Path) -> None:
    path = bakery().write(tmp_path)
    assert labels(run, path) == ["prompt", "TodoWrite", "Edit", "TodoWrite ∥ Bash", "answer", "prompt", "answer"]
    thread = only(run, path)
    assert (thread["thread_id"], thread["status"], len(thread["heads"])) == (SESSION, "done", 1)
    assert (thread["model"], thread["active"]) == ("model-one", "the only branch")


def test_an_answer_on_several_lines_counts_its_tokens_once(run: Any, tmp_path: Path) -> None:
    thread = only(run, bakery().write(tmp_path))
    assert thread["tokens"] == {"input": 25, "output": 70, "cache_read": 500, "cache_creation": 35}


def test_a_turn_changes_todos_and_files_by_the_calls_that_did_it(run: Any, tmp_path: Path) -> None:
    path = bakery().write(tmp_path)
    changes = {one["path"]: one for one in run("diff", path, "3")["changes"]}
    assert changes["/todos/0/status"]["after"] == "completed"
    assert changes["/todos/0/status"]["authors"][0] == {
        **changes["/todos/0/status"]["authors"][0],
        "node": "TodoWrite",
        "task_id": "call_done",
    }
    edited = run("diff", path, "2")["changes"]
    file = next(one for one in edited if one["path"] == "/files")
    held = file["after"]["/home/mara/bakery/bread.md"]
    assert (held["state"], held["patch"]) == ("edited", "@@ -3,1 +3,1 @@\n-500 g\n+20 kg")
    assert file["authors"][0]["node"] == "Edit"


def test_any_record_answer_or_call_names_its_turn(run: Any, tmp_path: Path) -> None:
    book = bakery()
    path = book.write(tmp_path)
    turn = run("show", path, "3")["checkpoint"]["checkpoint_id"]
    assert turn == book.records[6]["uuid"]
    for ref in ("msg_both", "call_ls", book.records[9]["uuid"]):
        assert run("show", path, ref)["checkpoint"]["checkpoint_id"] == turn


def test_a_rewind_is_a_branch_and_the_newest_leaf_is_the_head(run: Any, tmp_path: Path) -> None:
    book = bakery()
    above = book.records[-2]["parentUuid"]
    book.prompt("And the yeast?", parent=above)
    leaf = book.answer("Eighty grams.")
    path = book.write(tmp_path)
    thread = only(run, path)
    assert (len(thread["heads"]), thread["head"]) == (2, leaf)
    assert thread["active"].startswith("the newest time")
    book.note(type="last-prompt", leafUuid=book.records[-3]["uuid"])
    thread = only(run, book.write(tmp_path))
    assert (thread["head"], thread["active"]) == (book.records[-4]["uuid"], "the program's own pointer (last-prompt)")


def test_a_call_without_its_result_waits_and_a_refused_one_changes_nothing(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Plan.")
    book.answer(call("c1", "TodoWrite", todos=[{"content": "x", "status": "pending"}]))
    book.result("c1", "no such tool", error=True)
    book.answer(call("c2", "Bash", command="make"))
    head = run("show", book.write(tmp_path), "head")
    assert (head["next"], head["tasks"][0]["status"], "todos" in head["values"]) == (["Bash"], "pending", False)
    failed = run("show", book.write(tmp_path), "0")["tasks"][1]
    assert (failed["name"], failed["status"], failed["error"]) == ("TodoWrite", "failed", "no such tool")


def test_tasks_are_rebuilt_from_deltas_with_the_ids_of_the_results(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Plan.")
    book.answer(call("c1", "TaskCreate", subject="Knead"), call("c2", "TaskCreate", subject="Bake"))
    book.result("c2", toolUseResult={"task": {"id": "1", "subject": "Bake"}})
    book.result("c1", toolUseResult={"task": {"id": "2", "subject": "Knead"}})
    book.answer(call("c3", "TaskUpdate", taskId="1", status="completed"), call("c4", "TaskUpdate", taskId="2", status="deleted"))
    book.result("c3", toolUseResult={"success": True})
    book.result("c4", toolUseResult={"success": True})
    assert run("show", book.write(tmp_path), "head")["values"]["tasks"] == {"1": {"subject": "Bake", "status": "completed"}}


def test_a_lost_link_starts_an_island_and_is_told(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.prompt("One.")
    book.answer("First.")
    book.prompt("Two.", parent="00000000-dead-4000-8000-000000000000")
    book.answer("Second.")
    path = book.write(tmp_path)
    assert len(only(run, path)["heads"]) == 2
    assert "orphan-parent" in kinds(run, path)
    assert any("link lost" in label for label in labels(run, path))


def test_a_ring_of_parents_is_cut_at_its_first_record(run: Any, tmp_path: Path) -> None:
    book = Book()
    first = book.prompt("One.")
    book.answer("First.")
    third = book.prompt("Two.")
    book.answer("Second.")
    next(one for one in book.records if one["uuid"] == first)["parentUuid"] = third
    path = book.write(tmp_path)
    assert labels(run, path) == ["prompt", "answer", "prompt", "answer"]
    assert "parent-loop" in kinds(run, path)


def test_a_compaction_is_a_row_of_its_own_and_its_summary_is_nobodys_words(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.prompt("One.")
    leaf = book.answer("First.")
    book._add(
        "system",
        None,
        subtype="compact_boundary",
        logicalParentUuid=leaf,
        compactMetadata={"trigger": "manual", "preTokens": 900},
    )
    book.prompt("They spoke about one.", isCompactSummary=True)
    book.prompt("Two.")
    book.answer("Second.")
    path = book.write(tmp_path)
    assert labels(run, path) == ["prompt", "answer", "compacted", "prompt", "answer"]
    messages = run("show", path, "head")["values"]["messages"]
    assert [one["type"] for one in messages] == ["human", "ai", "system", "system", "human", "ai"]
    assert messages[2]["content"] == "manual compaction, preTokens 900"


def test_what_is_written_again_is_counted_and_shown_once(run: Any, tmp_path: Path) -> None:
    book = bakery()
    before = only(run, book.write(tmp_path))
    book.records += book.records[:4]
    path = book.write(tmp_path)
    thread = only(run, path)
    assert (thread["checkpoints"], thread["tokens"]) == (before["checkpoints"], before["tokens"])
    assert kinds(run, path).count("duplicate-uuid") == 4


def test_a_prompt_that_only_the_queue_has_stands_in_the_running_turn(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer(call("c1", "Bash", command="make"))
    book.note(type="queue-operation", operation="enqueue", content="And test it.")
    book.result("c1")
    book.answer("Built.")
    messages = run("show", book.write(tmp_path), "1")["values"]["messages"]
    assert messages[-1]["content"] == "And test it."
    assert messages[-1]["additional_kwargs"] == {"queued": True}


COMPACTED = (
    "<command-name>/compact</command-name>\n<command-message>compact</command-message>\n<command-args>keep it</command-args>"
)


@pytest.mark.parametrize("as_user", [True, False])
def test_a_command_that_went_through_the_queue_is_the_row_that_it_left_and_no_prompt(
    run: Any, tmp_path: Path, as_user: bool
) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer("Gone.")
    book.note(type="queue-operation", operation="enqueue", content="/compact keep it")
    book.note(type="queue-operation", operation="dequeue")
    if as_user:
        book.prompt(COMPACTED)
    else:
        book._add("system", subtype="local_command", content=COMPACTED)
    path = book.write(tmp_path)
    messages = run("show", path, "head")["values"]["messages"]
    assert [one["type"] for one in messages] == ["human", "ai", "system"]
    assert "<command-name>/compact" in messages[-1]["content"]
    assert not any("queue" in note for note in run("fork", path, "head")["notes"])


def test_a_queued_command_that_left_no_row_is_a_row_of_its_own_and_a_path_stays_a_prompt(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer(call("c1", "Bash", command="make"))
    book.note(type="queue-operation", operation="enqueue", content="/clear")
    book.note(type="queue-operation", operation="enqueue", content="/home/mara/bakery is full")
    book.note(type="queue-operation", operation="enqueue", content="/tmp is full too")
    book.note(type="queue-operation", operation="dequeue")
    book.note(type="queue-operation", operation="dequeue")
    book.note(type="queue-operation", operation="remove")
    book.result("c1")
    path = book.write(tmp_path)
    messages = run("show", path, "head")["values"]["messages"][-3:]
    assert [(one["type"], one["content"]) for one in messages] == [
        ("system", "/clear"),
        ("human", "/home/mara/bakery is full"),
        ("human", "/tmp is full too"),
    ]
    assert any(note.startswith("2 prompts stand only in the program's queue") for note in run("fork", path, "head")["notes"])


@pytest.mark.parametrize("sides", [True, False])
def test_a_subagents_lane_hangs_below_its_call(run: Any, tmp_path: Path, sides: bool) -> None:
    book = Book()
    book.prompt("Use a helper.")
    book.answer(call("call_task", "Task", prompt="Count the loaves.", description="count"))
    helper = Book(prefix="b")
    helper.prompt("Count the loaves.", isSidechain=True)
    helper.answer("Forty.", isSidechain=True)
    if not sides:
        book.records += helper.records
    book.result("call_task", "Forty.")
    book.answer("There are forty.")
    path = book.write(tmp_path)
    if sides:
        helper.write(tmp_path / SESSION / "subagents", "agent-h1")
        (tmp_path / SESSION / "subagents" / "agent-h1.meta.json").write_text('{"toolUseId": "call_task"}')
    thread = only(run, path)
    assert thread["namespaces"] == ["", "Task:call_task"]
    assert thread["tokens"]["output"] == 30
    assert labels(run, path) == ["prompt", "Task", "answer"]
    rows = run("tree", path, "--all-ns")["rows"]
    assert [row["number"] for row in rows] == ["0", "0.1", "0.2", "1", "2"]
    assert "Forty." not in json.dumps(run("show", path, "1")["values"]["messages"][:2])


def test_a_fork_in_another_file_is_one_tree_with_the_shared_part_once(run: Any, tmp_path: Path) -> None:
    book = bakery()
    book.write(tmp_path)
    fork = Book("f0cc0000-0000-4000-8000-000000000002", "c")
    fork.records = [{**one, "sessionId": fork.session} for one in book.records[:-2]]
    fork.last = fork.records[-1]["uuid"]
    fork.records += [{}] * 9
    leaf = fork.prompt("And the flour?")
    fork.answer("Twenty kilograms.")
    fork.records = [one for one in fork.records if one]
    fork.write(tmp_path)
    thread = only(run, tmp_path)
    assert len(thread["heads"]) == 2
    assert thread["tokens"]["output"] == 80
    assert sorted(thread["sessions"]) == sorted([SESSION, fork.session])
    assert run("show", tmp_path, leaf)["checkpoint"]["parent_checkpoint_id"] == book.records[-3]["uuid"]


def test_damage_is_located_and_hides_nothing_else(run: Any, tmp_path: Path) -> None:
    lines = bakery().lines()
    lines.insert(3, "make: *** error 2")
    lines[6] = "\0" * 40 + lines[6]
    lines[8] = lines[8][:30] + lines[8]
    path = tmp_path / "damaged.jsonl"
    path.write_text("\n".join(lines) + "\n" + '{"type":"user","mess')
    assert len(labels(run, path)) == 7
    assert {"bad-line", "nul-bytes", "spliced-line", "torn-line"} <= set(kinds(run, path))
    where = {one["kind"]: one["where"] for one in run("ls", path)["problems"]}
    assert where["bad-line"] == "damaged.jsonl:4"


def test_a_mark_crlf_gzip_utf16_and_an_array_read_the_same(run: Any, tmp_path: Path) -> None:
    lines = bakery().lines()
    plain = "".join(line + "\n" for line in lines).encode()
    forms = {
        "bom": ("m.jsonl", b"\xef\xbb\xbf" + plain),
        "crlf": ("c.jsonl", plain.replace(b"\n", b"\r\n")),
        "gzip": ("z.jsonl.gz", gzip.compress(plain)),
        "utf16": ("u.jsonl", plain.decode().encode("utf-16")),
        "json-array": ("a.json", ("[\n" + ",\n".join(lines) + "\n]").encode()),
    }
    expected = None
    for kind, (name, data) in forms.items():
        path = tmp_path / name
        path.write_bytes(data)
        states = [doc["values"] for doc in run("export", path)]
        expected = expected or states
        assert states == expected, name
        assert kinds(run, path) == [kind]


def test_bookkeeping_alone_is_listed_with_its_title(run: Any, tmp_path: Path) -> None:
    book = Book()
    book.note(type="mode", mode="normal")
    book.note(type="custom-title", customTitle="Bread")
    path = book.write(tmp_path)
    thread = only(run, path)
    assert (thread["thread_id"], thread["checkpoints"], thread["title"]) == (SESSION, 0, "Bread")
    assert kinds(run, path) == ["no-messages"]


def test_images_are_chips_by_hash_and_secrets_are_masked(run: Any, tmp_path: Path) -> None:
    book = Book()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 300}}
    book._add("user", message={"role": "user", "content": [image, {"type": "text", "text": "What is this?"}]})
    book.answer("password=hunter2horse9battery")
    text = json.dumps(run("show", book.write(tmp_path), "head"))
    assert "QUJDQUJD" not in text
    assert "sha256_of_base64" in text
    assert "hunter2horse9battery" not in text


def test_looking_changes_nothing_and_a_run_is_refused_in_words(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = bakery().write(tmp_path / "home")
    before = folder_snapshot(tmp_path / "home")
    for command in (["ls"], ["tree"], ["export"], ["show", "head"], ["diff", "head"], ["search", "salt"], ["fork", "head"]):
        run(command[0], path, *command[1:])
    assert main(["run", str(path), "head"]) == 1
    assert "transcript" in capsys.readouterr().err
    assert folder_snapshot(tmp_path / "home") == before


def test_search_finds_the_words_in_the_turn_that_brought_them(run: Any, tmp_path: Path) -> None:
    hits = run("search", bakery().write(tmp_path), "grams")["hits"]
    assert [hit["number"] for hit in hits] == ["6"]
