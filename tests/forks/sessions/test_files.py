"""The files of a session at a turn, and what a fork leaves as it is."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.forks.sessions.conftest import Ask
from tests.forks.sessions.test_others import THREAD
from tests.stores.transcripts.sessions import SESSION, Book, call

HOME = "/home/mara/bakery"


def edited(path: str = f"{HOME}/bread.md") -> Book:
    """A file is read, edited, another is written; then a command."""
    book = Book()
    book.prompt("Scale it.")
    book.answer(call("c_read", "Read", file_path=path))
    told = {"type": "text", "file": {"filePath": path, "content": "a\nb", "startLine": 1, "numLines": 2, "totalLines": 2}}
    book.result("c_read", "a\nb", toolUseResult=told)
    book.answer(call("c_edit", "Edit", file_path=path, old_string="b", new_string="B"))
    patch = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" a", "-b", "+B"]}]
    book.result("c_edit", "ok", toolUseResult={"filePath": path, "oldString": "b", "newString": "B", "originalFile": "a\nb\n",
                                               "structuredPatch": patch})  # fmt: skip
    book.answer(call("c_write", "Write", file_path=f"{HOME}/notes/new.md", content="new\n"))
    book.result("c_write", "ok", toolUseResult={"type": "create", "filePath": f"{HOME}/notes/new.md", "content": "new\n"})
    book.answer(call("c_bash", "Bash", command="rm -rf /tmp/oven"))
    book.result("c_bash", "no", error=True)
    book.answer("Done.")
    return book


def known(doc: Any) -> dict[str, tuple[str, int | None]]:
    return {one["path"]: (one["known"], one["size_bytes"]) for one in doc["files"]}


def test_each_file_is_told_as_it_was_at_the_turn(ask: Ask, tmp_path: Path) -> None:
    path = edited().write(tmp_path)
    assert known(ask("files", path, "0")) == {}
    assert known(ask("files", path, "1")) == {f"{HOME}/bread.md": ("content", 3)}
    assert known(ask("files", path, "2")) == {f"{HOME}/bread.md": ("content", 4)}
    assert known(ask("files", path, "head")) == {f"{HOME}/bread.md": ("content", 4), f"{HOME}/notes/new.md": ("content", 4)}


def test_the_known_files_are_written_into_a_new_folder_alone(ask: Ask, tmp_path: Path) -> None:
    path = edited().write(tmp_path / "home")
    out = tmp_path / "out"
    found = ask("files", path, "head", "--out", out)
    assert (out / "bread.md").read_text() == "a\nB\n" and (out / "notes" / "new.md").read_text() == "new\n"
    assert {one["written"] for one in found["files"]} == {str(out / "bread.md"), str(out / "notes" / "new.md")}
    (out / "bread.md").write_text("mine")
    assert "not empty" in ask("files", path, "head", "--out", out, code=2)
    assert (out / "bread.md").read_text() == "mine"
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    assert "is a link" in ask("files", path, "head", "--out", tmp_path / "link", code=2)


def test_an_edit_without_the_whole_file_is_known_as_a_patch(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Edit.")
    book.answer(call("c", "Edit", file_path=f"{HOME}/x.md", old_string="b", new_string="B"))
    book.result("c", "ok", toolUseResult={"filePath": f"{HOME}/x.md", "originalFile": None})
    found = ask("files", book.write(tmp_path), "head", "--out", tmp_path / "out")["files"][0]
    assert (found["known"], found["patch"], found["written"]) == ("patch", "-b\n+B", None)
    assert os.listdir(tmp_path / "out") == []


def test_what_a_person_changed_in_an_edit_is_taken_from_its_patch(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    book.prompt("Edit.")
    book.answer(call("c", "Edit", file_path=f"{HOME}/x.md", old_string="b", new_string="B"))
    patch = [{"oldStart": 1, "oldLines": 2, "newStart": 1, "newLines": 2, "lines": [" a", "-b", "+Beta"]}]
    told = {"filePath": f"{HOME}/x.md", "originalFile": "a\nb\n", "structuredPatch": patch, "userModified": True}
    book.result("c", "ok", toolUseResult=told)
    ask("files", book.write(tmp_path / "home"), "head", "--out", tmp_path / "out")
    assert (tmp_path / "out" / "x.md").read_text() == "a\nBeta\n"


def test_the_file_history_tells_a_file_before_the_edits_of_a_prompt(ask: Ask, tmp_path: Path) -> None:
    book = Book()
    first = book.prompt("One.")
    book.answer("Yes.")
    backup = {"backupFileName": "0123456789abcdef@v1", "version": 1, "backupTime": "2026-05-04T08:00:00.000Z"}
    gone = {"backupFileName": None, "version": 1, "backupTime": "2026-05-04T08:00:00.000Z"}
    escape = {"backupFileName": "../../../secret", "version": 1}
    held = {"bread.md": backup, "none.md": gone, "odd.md": escape}
    book.note(type="file-history-snapshot", messageId=first, snapshot={"messageId": first, "trackedFileBackups": held})
    path = book.write(tmp_path / "home" / "projects" / "-home-mara-bakery")
    history = tmp_path / "home" / "file-history" / SESSION
    history.mkdir(parents=True)
    (history / "0123456789abcdef@v1").write_bytes(b"\xff\x00raw")
    (tmp_path / "secret").write_text("secret")
    found = ask("files", path, "head", "--out", tmp_path / "out")
    assert known(found) == {
        f"{HOME}/bread.md": ("content", 5), f"{HOME}/none.md": ("absent", None), f"{HOME}/odd.md": ("unknown", None),
    }  # fmt: skip
    assert (tmp_path / "out" / "bread.md").read_bytes() == b"\xff\x00raw"


@pytest.mark.parametrize("name", ["../../../etc/passwd", "/etc/passwd", "a\u202eb", "a\nb", "x" * 300, ".."])
def test_no_path_leads_out_of_the_folder(ask: Ask, tmp_path: Path, name: str) -> None:
    book = Book()
    book.prompt("Write.")
    book.answer(call("c", "Write", file_path=name, content="x"))
    book.result("c", "ok")
    path = book.write(tmp_path / "home")
    ask_out = tmp_path / "deep" / "out"
    from studio.session import Session

    session = Session.open(str(path))
    moment = session.files_at(session.resolve("head"))
    written = session.lay_files(moment, str(ask_out))
    session.close()
    for place in written.values():
        assert os.path.realpath(place).startswith(os.path.realpath(ask_out) + os.sep)
    assert len(written) + len(moment.problems) == 1
    assert sorted(os.listdir(tmp_path / "deep")) == ["out"]


def test_a_rollouts_patches_tell_its_files(ask: Ask, tmp_path: Path) -> None:
    def patch(ident: str, text: str) -> list[dict[str, Any]]:
        made = {"type": "custom_tool_call", "name": "apply_patch", "call_id": ident, "input": text}
        return [made, {"type": "custom_tool_call_output", "call_id": ident, "output": "Success."}]

    begin, end = "*** Begin Patch\n", "*** End Patch\n"
    said = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Go."}]},
        *patch("p1", f"{begin}*** Add File: new.md\n+one\n+two\n{end}"),
        *patch("p2", f"{begin}*** Update File: new.md\n@@\n one\n-two\n+2\n{end}"),
        *patch("p3", f"{begin}*** Update File: old.md\n@@\n-x\n+y\n*** Delete File: gone.md\n{end}"),
    ]
    meta = {"type": "session_meta", "payload": {"id": THREAD, "cwd": HOME, "cli_version": "0.98.0"}}
    lines = [meta, *({"type": "response_item", "payload": one} for one in said)]
    path = tmp_path / "rollout.jsonl"
    path.write_text("".join(json.dumps({"timestamp": "2026-05-04T08:00:00.000Z", **one}) + "\n" for one in lines))
    found = ask("files", path, "head", "--out", tmp_path / "out")
    assert known(found) == {
        f"{HOME}/gone.md": ("absent", None), f"{HOME}/new.md": ("content", 6), f"{HOME}/old.md": ("patch", None),
    }  # fmt: skip
    assert (tmp_path / "out" / "new.md").read_text() == "one\n2\n"


def test_the_plan_of_a_fork_tells_files_effects_and_a_worktree(ask: Ask, tmp_path: Path) -> None:
    plan = ask("fork", edited().write(tmp_path), "1", "--dry-run")["outlook"]
    assert [(one["path"], one["known"]) for one in plan["files"]] == [
        (f"{HOME}/bread.md", "content"), (f"{HOME}/notes/new.md", "absent"),
    ]  # fmt: skip
    assert [(one["tool"], one["status"]) for one in plan["effects"]] == [
        ("Edit", "answered"), ("Write", "answered"), ("Bash", "failed"),
    ]  # fmt: skip
    assert plan["git_branch"] == "main" and plan["cwd"] == HOME
    assert subprocess.run(["bash", "-n", "-c", plan["worktree"]], check=False).returncode == 0
    assert ask("fork", edited().write(tmp_path), "head", "--dry-run")["outlook"]["effects"] == []


def test_a_database_of_checkpoints_keeps_no_files(ask: Ask, shop: Path) -> None:
    assert "keep no files" in ask("files", shop, "head", "--thread", "done", code=1)
