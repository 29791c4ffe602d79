"""A Claude Code session is forked into a new session file: one chain, the chosen messages, nothing else changed."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forks.sessions.conftest import Ask, records, sha256, texts
from tests.stores.transcripts.sessions import SESSION, Book, bakery, call


@pytest.fixture
def bread(tmp_path: Path) -> Path:
    return bakery().write(tmp_path / "projects" / "-home-mara-bakery")


def test_a_fork_is_one_chain_under_a_new_id_and_the_source_is_untouched(ask: Ask, bread: Path) -> None:
    before, age = sha256(bread), bread.stat().st_mtime_ns
    made = ask("fork", bread, "3")
    assert made["verified"] is True and made["surprises"] == [] and made["recipe"] == "copy"
    assert (sha256(bread), bread.stat().st_mtime_ns) == (before, age)
    assert os.listdir(bread.parent) == [bread.name]
    path, session = Path(made["stored_in"]), made["resume"]["session_id"]
    assert path.name == f"{session}.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    *chain, title = records(path)
    assert {one["sessionId"] for one in (*chain, title)} == {session}
    assert [one["parentUuid"] for one in chain] == [None, *(one["uuid"] for one in chain[:-1])]
    assert [one["forkedFrom"]["messageUuid"] for one in chain] == [one["uuid"] for one in records(bread)[: len(chain)]]
    assert {one["forkedFrom"]["sessionId"] for one in chain} == {SESSION}
    assert title["type"] == "custom-title" and "#3" in title["customTitle"]


def test_parallel_calls_come_together_and_their_results_after_them(ask: Ask, bread: Path) -> None:
    made = ask("fork", bread, "3")
    assert texts(records(made["stored_in"]))[-4:] == ["call call_done", "call call_ls", "result call_done", "result call_ls"]


def test_what_is_not_changed_keeps_its_bytes(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Weigh it.")
    book.answer(call("call_w", "Weigh", grams=1))
    book.result("call_w", "ok")
    odd = '"input": {"grams": 12345678901234567890123, "rest": 1.10, "unit": "\\u0067", "twice": 1, "twice": 2, "big": 1E400}'
    path = tmp_path / "odd.jsonl"
    path.write_text("".join(line.replace('"input": {"grams": 1}', odd) + "\n" for line in book.lines()))
    made = ask("fork", path, "1")
    assert made["verified"]
    assert odd in Path(made["stored_in"]).read_text()


def test_a_prompt_at_the_end_is_not_stored_but_said_again(ask: Ask, bread: Path) -> None:
    last = len(ask("show", bread, "5")["values"]["messages"]) - 1
    made = ask("fork", bread, "5", "--set", f"""/messages/{last}/content="And 'the' salt, please?\"""")
    resume = made["resume"]
    assert resume["prompt"] == "And 'the' salt, please?" and made["next"] == ["assistant"]
    assert texts(records(made["stored_in"]))[-1] == "Scaled to forty loaves."
    words = shlex.split(resume["commands"]["print"])
    assert words[:3] == ["cd", "/home/mara/bakery", "&&"]
    assert words[3:] == ["claude", "-p", "--resume", resume["session_id"], "And 'the' salt, please?"]


@pytest.mark.parametrize(
    "said", ["two\nlines 'of' \\n words", "-- --x", "$(rm x) `y` ${HOME}", "a\u202eb\x1b[1m", "\U0001f35e brot", ""]
)
def test_whatever_a_prompt_holds_is_one_word_of_one_line_for_a_shell(ask: Ask, bread: Path, said: str) -> None:
    last = len(ask("show", bread, "5")["values"]["messages"]) - 1
    resume = ask("fork", bread, "5", "--set", f"/messages/{last}/content={json.dumps(said)}")["resume"]
    line = resume["commands"]["print"].partition(" && ")[2]
    assert line.isprintable()
    shown = subprocess.run(
        ["bash", "-c", f"claude() {{ printf '%s\\0' \"$@\"; }}; {line}"],
        capture_output=True, check=True, env={"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    words = shown.stdout.decode().split("\0")[:-1]
    assert words[:3] == ["-p", "--resume", resume["session_id"]] and words[-1] == said


def test_an_earlier_prompt_is_edited_and_all_after_it_is_the_forks_own(ask: Ask, bread: Path) -> None:
    made = ask("fork", bread, "2", "--set", '/messages/0/content="For \\u00e9ight loaves"')
    assert made["verified"] and made["recipe"] == "set"
    own = {one["uuid"] for one in records(made["stored_in"]) if "uuid" in one}
    assert not own & {one["uuid"] for one in records(bread)}
    rows = ask("tree", bread)["rows"]
    assert [row["origin"] for row in rows].count("scratch") == 3
    first = next(row for row in rows if row["origin"] == "scratch")
    assert (first["source"], first["label"]) == ("fork", "set /messages/0/content")
    changes = ask("diff", bread, first["number"], "--origin")["changes"]
    assert [(one["path"], one["after"]) for one in changes] == [("/messages/0/content", "For éight loaves")]


def test_a_result_is_edited_and_the_screen_copy_stays(ask: Ask, bread: Path) -> None:
    made = ask("fork", bread, "2", "--set", '/messages/4/content="failed to write"')
    edited = next(one for one in records(made["stored_in"]) if "toolUseResult" in one)
    assert edited["message"]["content"][0]["content"] == "failed to write"
    assert made["verified"]


def test_a_dropped_result_takes_its_call_along_and_a_dropped_answer_its_results(ask: Ask, bread: Path) -> None:
    state = ask("show", bread, "3")["values"]["messages"]
    one = next(at for at, message in enumerate(state) if message.get("tool_call_id") == "call_ls")
    made = ask("fork", bread, "3", "--unset", f"/messages/{one}")
    assert not [text for text in texts(records(made["stored_in"])) if "call_ls" in text]
    assert "call call_done" in texts(records(made["stored_in"]))
    assert any("Bash" in note for note in made["notes"]) and made["verified"]
    answer = next(at for at, message in enumerate(state) if any(c["id"] == "call_ls" for c in message.get("tool_calls", ())))
    made = ask("fork", bread, "3", "--unset", f"/messages/{answer}")
    assert not [text for text in texts(records(made["stored_in"])) if "call_ls" in text or "call_done" in text]
    assert made["verified"]


def test_a_cut_inside_a_turn_is_made_at_its_end_and_said(ask: Ask, bread: Path) -> None:
    first = next(one for one in records(bread) if one["type"] == "assistant" and one["message"]["id"] == "msg_both")
    made = ask("fork", bread, first["uuid"])
    assert any("inside a turn" in note for note in made["notes"])
    assert texts(records(made["stored_in"]))[-1] == "result call_ls"


def test_open_calls_are_completed_as_failed(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Bake.")
    first = book.answer(call("call_a", "Bash", command="a"), key="msg_two")
    book.answer(call("call_b", "Bash", command="b"), key="msg_two")
    book.result("call_a", "done", parent=first)
    path = book.write(tmp_path)
    made = ask("fork", path, "head")
    chain = [one for one in records(made["stored_in"]) if "message" in one]
    last = chain[-1]["message"]["content"][0]
    assert (last["tool_use_id"], last["is_error"]) == ("call_b", True)
    assert made["verified"] and any("call_b" in one for one in made["warnings"])


def test_the_last_message_has_the_newest_time(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("One.")
    book.answer("Two.")
    book.records[1]["timestamp"] = book.records[0]["timestamp"]
    made = ask("fork", book.write(tmp_path), "head")
    times = [one["timestamp"] for one in records(made["stored_in"]) if "timestamp" in one]
    assert times[-1] > max(times[:-1])


def test_a_fork_after_a_compaction_begins_at_its_boundary(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Old.")
    book.answer("Older words.")
    left = book.last
    book._add("system", None, subtype="compact_boundary", content="Conversation compacted", logicalParentUuid=left,
              compactMetadata={"trigger": "manual", "preTokens": 900})  # fmt: skip
    book.prompt("In short: bread.", isCompactSummary=True)
    book.prompt("Go on.")
    book.answer("Going on.")
    path = book.write(tmp_path)
    made = ask("fork", path, "head")
    assert texts(records(made["stored_in"])) == ["In short: bread.", "Go on.", "Going on."]
    assert made["verified"] and any("compaction" in note for note in made["notes"])
    assert "before a compaction" in ask("fork", path, "head", "--set", '/messages/0/content="x"', code=1)


def test_messages_that_a_compaction_carried_over_stand_behind_its_summary(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Old.")
    kept = book.answer("Kept words.")
    summary = "a0000004-0000-4000-8000-000000000004"
    carried = {"anchorUuid": summary, "uuids": [kept], "allUuids": [kept]}
    meta = {"trigger": "manual", "preservedSegment": {"headUuid": kept, "anchorUuid": summary, "tailUuid": kept},
            "preservedMessages": carried}  # fmt: skip
    book._add("system", None, subtype="compact_boundary", logicalParentUuid=kept, compactMetadata=meta)
    assert book.prompt("In short: bread.", isCompactSummary=True) == summary
    book.prompt("Go on.", parent=kept)
    book.answer("Going on.")
    path = book.write(tmp_path)
    assert len(ask("tree", path)["rows"]) == 5 and len(ask("ls", path)["threads"][0]["heads"]) == 1
    made = ask("fork", path, "head")
    assert texts(records(made["stored_in"])) == ["In short: bread.", "Kept words.", "Go on.", "Going on."]
    assert made["verified"]
    assert "preserved" not in Path(made["stored_in"]).read_text()


def test_what_no_program_goes_on_from_is_refused_in_words(ask: Ask, bread: Path, tmp_path: Path) -> None:
    old = Book()
    old.prompt("Hello.")
    old.answer("Hello.")
    for one in old.records:
        one["version"] = "0.2.126"
    assert "0.2.126 keeps only a part" in ask("fork", old.write(tmp_path, "old"), "head", code=1)
    assert "nothing to fork" in ask("fork", bread, "0", code=1)
    assert "no graph of yours" in ask("fork", bread, "3", "--goto", "x", code=1)
    assert "Only the content" in ask("fork", bread, "3", "--set", '/messages/0/type="ai"', code=1)
    assert "messages alone" in ask("fork", bread, "3", "--set", "/todos=[]", code=1)
    assert "there is no /messages/99" in ask("fork", bread, "3", "--unset", "/messages/99", code=1)


def test_a_subagents_turn_is_refused_with_its_caller(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Ask the baker.")
    book.answer(call("call_t", "Task", prompt="How much salt?", description="salt", subagent_type="baker"))
    answer = book.last
    book.prompt("How much salt?", parent=None, isSidechain=True)
    side = book.answer("Ten grams.", isSidechain=True)
    book.result("call_t", "Ten grams.", parent=answer)
    path = book.write(tmp_path)
    assert "subagent" in ask("fork", path, side, code=1)
    assert ask("fork", path, "call_t")["verified"]


def test_a_fork_is_installed_as_one_new_file_and_never_over_another(
    ask: Ask, bread: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "claude"
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home))
    assert "is not there" in ask("fork", bread, "3", "--install", code=1)
    project = home / "projects" / "-home-mara-bakery"
    project.mkdir(parents=True)
    (project / "other.jsonl").write_text("kept\n")
    made = ask("fork", bread, "3", "--install")
    installed = Path(made["resume"]["installed"])
    assert installed.parent == project and installed.read_bytes() == Path(made["stored_in"]).read_bytes()
    assert sorted(os.listdir(project)) == sorted(["other.jsonl", installed.name])
    assert (project / "other.jsonl").read_text() == "kept\n"
    if os.getuid():
        project.chmod(0o500)
        assert "not writable" in ask("fork", bread, "3", "--install", code=1)
        project.chmod(0o700)


def test_forks_stand_in_the_tree_of_their_source_beside_what_they_were_made_from(ask: Ask, bread: Path) -> None:
    before = ask("ls", bread)["threads"][0]
    made = ask("fork", bread, "3")
    rows = {row["checkpoint_id"]: row for row in ask("tree", bread)["rows"]}
    own = rows[made["checkpoint_id"]]
    assert (own["origin"], own["number"]) == ("scratch", "s1")
    assert (
        own["parent_checkpoint_id"]
        == made["parent_checkpoint_id"]
        == rows[made["forked_from"]["checkpoint_id"]]["parent_checkpoint_id"]
    )
    after = ask("ls", bread)["threads"][0]
    for name in ("thread_id", "head", "heads", "roots", "tokens", "active", "title", "files"):
        assert after[name] == before[name], name
    assert after["forks"] == [made["stored_in"]]
    again = ask("fork", bread, "s1")
    assert again["verified"] and again["forked_from"]["checkpoint_id"] == made["checkpoint_id"]


def test_a_dry_run_stores_nothing_and_shows_the_edit(ask: Ask, bread: Path) -> None:
    plan = ask("fork", bread, "3", "--set", '/messages/0/content="x"', "--dry-run")
    assert [one["path"] for one in plan["changes"]] == ["/messages/0/content"]
    assert [row["origin"] for row in ask("tree", bread)["rows"]].count("scratch") == 0


def test_lines_that_are_broken_or_odd_do_not_stop_a_fork(ask: Ask, tmp_path: Path) -> None:
    lines = bakery().lines()
    path = tmp_path / "odd.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + "\r\n".join([lines[0], "{broken", *lines[1:]]).encode() + b'\n{"type": "user", "uui')
    made = ask("fork", path, "3")
    assert made["verified"]
    assert all(isinstance(one, dict) for one in records(made["stored_in"]))


def test_images_keep_their_bytes_when_the_text_beside_them_is_edited(ask: Ask, tmp_path: Path) -> None:
    data = "iVBORw0KGgo" * 100
    book = Book()
    image: dict[str, Any] = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    book._add("user", message={"role": "user", "content": [{"type": "text", "text": "See."}, image]})
    book.answer("I see.")
    path = book.write(tmp_path)
    made = ask("fork", path, "head", "--set", '/messages/0/content/0/text="Look."')
    first = records(made["stored_in"])[0]["message"]["content"]
    assert first[0]["text"] == "Look." and first[1] == image and made["verified"]
    assert json.dumps(image) in Path(made["stored_in"]).read_text()
