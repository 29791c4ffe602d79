"""Rollouts, items, responses and chats are forked in their own forms."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.forks.sessions.conftest import Ask, records, sha256

THREAD = "0192aaaa-0000-7000-8000-000000000001"
LISTED = '{"output":"bread.md","metadata":{}}'


def message(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}


def rollout(folder: Path, ordinals: bool = False, version: str = "0.98.0", name: str = THREAD) -> Path:
    """Two turns: a command, words; then words."""
    meta = {"id": name, "timestamp": "2026-05-04T08:00:00.000Z", "cwd": "/home/mara/bakery", "originator": "codex_exec",
            "cli_version": version, "source": "exec", "model_provider": "mock"}  # fmt: skip
    if ordinals:
        meta["session_id"] = name
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_ls"}
    said = [
        ("session_meta", meta),
        ("response_item", message("user", "<environment_context>bakery</environment_context>")),
        ("response_item", message("user", "List the recipes.")),
        ("event_msg", {"type": "user_message", "message": "List the recipes."}),
        ("turn_context", {"cwd": "/home/mara/bakery", "approval_policy": "never", "model": "m"}),
        ("response_item", call),
        (
            "response_item",
            {"type": "function_call_output", "call_id": "call_ls", "output": '{"output":"bread.md","metadata":{}}'},
        ),
        ("event_msg", {"type": "agent_message", "message": "One recipe."}),
        ("response_item", message("assistant", "One recipe.")),
        ("event_msg", {"type": "token_count", "info": None}),
        ("turn_context", {"cwd": "/home/mara/other", "approval_policy": "never", "model": "m"}),
        ("response_item", message("user", "Whose is it?")),
        ("event_msg", {"type": "user_message", "message": "Whose is it?"}),
        ("response_item", message("assistant", "Mara's.")),
    ]
    lines = []
    for at, (kind, payload) in enumerate(said):
        number = {"ordinal": at} if ordinals else {}
        lines.append({"timestamp": f"2026-05-04T08:00:{at:02}.000Z", **number, "type": kind, "payload": payload})
    day = folder / "sessions" / "2026" / "05" / "04"
    day.mkdir(parents=True, exist_ok=True)
    path = day / f"rollout-2026-05-04T08-00-00-{name}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def items(path: str | Path) -> list[str]:
    found = [one["payload"] for one in records(path) if one["type"] == "response_item"]
    return [one["content"][0]["text"] if one["type"] == "message" else one["type"] for one in found]


def test_a_rollout_is_forked_at_the_end_of_a_step_under_a_new_id(ask: Ask, tmp_path: Path) -> None:
    path = rollout(tmp_path, ordinals=True, version="0.171.0")
    before = sha256(path)
    made = ask("fork", path, "2")
    found = Path(made["stored_in"])
    assert made["verified"] and sha256(path) == before
    session = made["resume"]["session_id"]
    assert re.fullmatch(rf"rollout-\d{{4}}-\d\d-\d\dT\d\d-\d\d-\d\d-{session}\.jsonl", found.name)
    first, *rest = records(found)
    assert (first["payload"]["id"], first["payload"]["session_id"], first["payload"]["forked_from_id"]) == (
        session,
        session,
        THREAD,
    )
    assert items(found)[1:] == ["List the recipes.", "function_call", "function_call_output", "One recipe."]
    assert [one["type"] for one in rest][-1] == "event_msg"  # the count of tokens; the next turn's context stays away
    assert all("ordinal" in one for one in rest)
    assert shlex.split(made["resume"]["commands"]["interactive"])[3:] == ["codex", "resume", session]
    lines = path.read_text().splitlines()
    assert found.read_text().splitlines()[1:] == lines[1 : len(rest) + 1]


def test_a_prompt_of_a_rollout_is_said_again(ask: Ask, tmp_path: Path) -> None:
    path = rollout(tmp_path)
    made = ask("fork", path, "3", "--set", '/messages/5/content="-- Whose?"')
    assert made["resume"]["prompt"] == "-- Whose?" and made["resume"]["cwd"] == "/home/mara/bakery"
    assert shlex.split(made["resume"]["commands"]["print"])[3:7] == ["codex", "exec", "resume", made["resume"]["session_id"]]
    assert items(made["stored_in"])[-1] == "One recipe."


def test_an_edited_text_is_edited_in_its_copies_too(ask: Ask, tmp_path: Path) -> None:
    made = ask(
        "fork", rollout(tmp_path), "2", "--set", '/messages/1/content="Count them."', "--set", '/messages/3/content="none"'
    )
    text = Path(made["stored_in"]).read_text()
    assert made["verified"] and "List the recipes." not in text
    assert text.count("Count them.") == 2
    output = next(one["payload"] for one in records(made["stored_in"]) if one["payload"].get("type") == "function_call_output")
    assert json.loads(output["output"]) == {"output": "none", "metadata": {}}


def test_a_dropped_result_of_a_rollout_takes_its_call_along(ask: Ask, tmp_path: Path) -> None:
    made = ask("fork", rollout(tmp_path), "2", "--unset", "/messages/3")
    assert items(made["stored_in"])[1:] == ["List the recipes.", "One recipe."] and made["verified"]


def test_an_open_call_at_the_end_of_a_rollout_is_completed(ask: Ask, tmp_path: Path) -> None:
    path = rollout(tmp_path, ordinals=True, version="0.171.0")
    path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:6]))
    made = ask("fork", path, "head")
    last = records(made["stored_in"])[-1]
    assert (last["payload"]["call_id"], last["ordinal"]) == ("call_ls", 6)
    assert made["verified"] and any("call_ls" in one for one in made["warnings"])


def test_a_rollout_that_goes_on_from_another_brings_the_others_lines(ask: Ask, tmp_path: Path) -> None:
    base = rollout(tmp_path, ordinals=True, version="0.171.0")
    other = "0192aaaa-0000-7000-8000-000000000002"
    meta = {"id": other, "session_id": other, "cwd": "/home/mara/bakery", "cli_version": "0.171.0", "forked_from_id": THREAD,
            "forked_from_ordinal_exclusive": 10, "timestamp": "2026-05-04T09:00:00.000Z",
            "history_base": {"thread_id": THREAD, "end_ordinal_exclusive": 10, "end_byte_offset": 1}}  # fmt: skip
    said = [
        ("session_meta", meta),
        ("response_item", message("user", "And salt?")),
        ("response_item", message("assistant", "Yes.")),
    ]
    path = base.parent / f"rollout-2026-05-04T09-00-00-{other}.jsonl"
    path.write_text("".join(
        json.dumps({"timestamp": f"2026-05-04T09:00:{at:02}.000Z", "ordinal": 10 + at, "type": kind, "payload": payload}) + "\n"
        for at, (kind, payload) in enumerate(said)
    ))  # fmt: skip
    made = ask("fork", tmp_path / "sessions", f"{other}:3")
    first = records(made["stored_in"])[0]["payload"]
    assert "history_base" not in first and "forked_from_ordinal_exclusive" not in first and first["forked_from_id"] == other
    assert items(made["stored_in"])[1:] == [
        "List the recipes.", "function_call", "function_call_output", "One recipe.", "And salt?", "Yes.",
    ]  # fmt: skip
    assert made["verified"]
    assert [row["origin"] for row in ask("tree", tmp_path / "sessions")["rows"]].count("scratch") == 1


def test_a_rollout_is_installed_in_the_folder_of_its_day(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = rollout(tmp_path)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    assert "is not there" in ask("fork", path, "2", "--install", code=1)
    assert not ask("scratch", "ls")["files"]
    (tmp_path / "codex" / "sessions").mkdir(parents=True)
    made = ask("fork", path, "2", "--install")
    installed = Path(made["resume"]["installed"])
    year, month, day = re.findall(r"\d+", installed.name)[:3]
    assert installed.parent == tmp_path / "codex" / "sessions" / year / month / day
    assert installed.read_bytes() == Path(made["stored_in"]).read_bytes()


def test_the_old_layout_is_kept_with_a_warning(ask: Ask, tmp_path: Path) -> None:
    lines = [
        {"id": THREAD, "timestamp": "2026-05-04T08:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        message("user", "Hello."),
        message("assistant", "Good day."),
    ]
    path = tmp_path / f"rollout-2026-05-04T08-00-00-{THREAD}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    made = ask("fork", path, "head")
    assert any("0.20" in one for one in made["warnings"]) and made["verified"]
    assert records(made["stored_in"])[0]["id"] == made["resume"]["session_id"]


def test_items_become_a_list_that_can_be_posted(ask: Ask, tmp_path: Path) -> None:
    given = [
        {**message("user", "Stock of 1?"), "id": "msg_1"},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "lookup", "arguments": "{}", "status": "completed"},
        {"type": "function_call_output", "id": "fo_1", "call_id": "call_1", "output": "three"},
        {**message("assistant", "Three."), "id": "msg_2", "status": "completed"},
    ]
    path = tmp_path / "items.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in given))
    made = ask("fork", path, "head", "--set", '/messages/0/content="Stock of 2?"')
    found = json.loads(Path(made["stored_in"]).read_text())
    assert [one.get("type") for one in found] == ["message", "function_call", "function_call_output", "message"]
    assert not any("id" in one or "status" in one for one in found)
    assert found[0]["content"] == [{"type": "input_text", "text": "Stock of 2?"}]
    assert made["verified"] and made["resume"]["commands"] == {}
    assert any("ids" in note for note in made["notes"]) and any("Reasoning" in one for one in made["warnings"])
    assert "no place to install it" in ask("fork", path, "head", "--install", code=1)


def test_a_branch_of_responses_becomes_its_items(ask: Ask, tmp_path: Path) -> None:
    def response(ident: str, before: str | None, given: str, said: str) -> dict[str, Any]:
        output = [{**message("assistant", said), "id": f"m_{ident}"}]
        inner = {"object": "response", "id": ident, "previous_response_id": before, "created_at": 1772442060, "output": output}
        return {"input": given, "response": inner}

    path = tmp_path / "responses.jsonl"
    lines = [response("r1", None, "One?", "1."), response("r2", "r1", "Two?", "2."), response("r3", "r1", "Three?", "3.")]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    made = ask("fork", path, "r3")
    found = json.loads(Path(made["stored_in"]).read_text())
    assert [one["content"] if isinstance(one["content"], str) else one["content"][0]["text"] for one in found] == [
        "One?", "1.", "Three?", "3.",
    ]  # fmt: skip
    assert made["verified"]


def test_a_chat_becomes_messages_that_can_be_posted(ask: Ask, tmp_path: Path) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{"sku": 1.10}'}}
    given = [
        {"role": "user", "content": "Stock?"}, {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "3"}, {"role": "assistant", "content": "Three."},
    ]  # fmt: skip
    path = tmp_path / "chat.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in given))
    made = ask("fork", path, "head", "--set", '/messages/2/content="4"')
    found = json.loads(Path(made["stored_in"]).read_text())["messages"]
    assert found == [*given[:2], {**given[2], "content": "4"}, given[3]] and made["verified"]
    assert "1.10" in Path(made["stored_in"]).read_text()
    made = ask("fork", path, "head", "--unset", "/messages/2")
    assert json.loads(Path(made["stored_in"]).read_text())["messages"] == [given[0], given[3]] and made["verified"]


def test_printed_output_is_refused(ask: Ask, tmp_path: Path) -> None:
    path = tmp_path / "stream.jsonl"
    lines = [{"type": "user", "session_id": "s", "message": {"role": "user", "content": "Hello."}}] * 2
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    assert "printed output" in ask("fork", path, "0", code=1)


def test_forks_of_sessions_are_listed_and_removed(ask: Ask, tmp_path: Path) -> None:
    path = rollout(tmp_path)
    made = ask("fork", path, "2")
    folder = os.path.dirname(made["stored_in"])
    assert ask("scratch", "path", path)["path"] == folder
    (found,) = ask("scratch", "ls")["files"]
    assert (found["path"], found["store"], found["forks"]) == (folder, str(path), 1)
    gone = ask("scratch", "rm", path, "--yes")["deleted"]
    assert made["stored_in"] in gone and not os.path.exists(folder)
    assert [row["origin"] for row in ask("tree", path)["rows"]].count("scratch") == 0
