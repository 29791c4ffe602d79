"""Rollouts, items, chats and dumps: each as the same kind of tree."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.stores.transcripts.test_sessions import kinds, labels, only, run

__all__ = ["run"]
Doc = dict[str, Any]


def write(path: Path, *records: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


class Rollout:
    """Lines of a rollout; `ordinal` numbers them where it is given."""

    def __init__(self, ident: str, ordinal: int | None = None, **meta: Any) -> None:
        self.lines: list[Doc] = []
        self.ordinal = ordinal
        self.line("session_meta", id=ident, cwd="/home/mara/bakery", cli_version="0.98.0", source="cli", **meta)

    def line(self, kind: str, **payload: Any) -> None:
        at = len(self.lines)
        numbered = {} if self.ordinal is None else {"ordinal": self.ordinal + at}
        self.lines.append({"timestamp": f"2026-05-04T08:00:{at:02}.000Z", **numbered, "type": kind, "payload": payload})

    def say(self, role: str, text: str) -> None:
        kind = "output_text" if role == "assistant" else "input_text"
        self.line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])
        if role != "developer":
            self.line("event_msg", type="user_message" if role == "user" else "agent_message", message=text)

    def total(self, fresh: int, cached: int, output: int) -> None:
        usage = {"input_tokens": fresh + cached, "cached_input_tokens": cached, "output_tokens": output}
        self.line("event_msg", type="token_count", info={"total_token_usage": usage})


def baker() -> Rollout:
    roll = Rollout("01a00000-0000-7000-8000-000000000001")
    roll.say("developer", "rules")
    roll.say("user", "<environment_context>\n</environment_context>")
    roll.say("user", "Scale the recipe.")
    roll.line("turn_context", cwd="/home/mara/bakery", approval_policy="never", model="model-two")
    plan = {"plan": [{"step": "Scale", "status": "in_progress"}]}
    roll.line("response_item", type="function_call", name="update_plan", arguments=json.dumps(plan), call_id="c1")
    roll.line("response_item", type="function_call_output", call_id="c1", output="Plan updated")
    roll.total(100, 50, 10)
    patch = "*** Begin Patch\n*** Update File: bread.md\n@@\n-500 g\n+20 kg\n*** Add File: note.md\n+salt\n*** End Patch"
    roll.line("response_item", type="custom_tool_call", name="apply_patch", input=patch, call_id="c2")
    roll.line("response_item", type="custom_tool_call_output", call_id="c2", output="Success")
    roll.say("assistant", "Scaled.")
    roll.total(180, 90, 25)
    return roll


def test_a_rollout_shows_its_items_once_with_plan_files_and_totals(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "rollout-1.jsonl", *baker().lines)
    assert labels(run, path) == ["prompt", "update_plan", "apply_patch", "answer"]
    values = run("show", path, "head")["values"]
    said = [one["type"] for one in values["messages"]]
    assert said == ["system", "system", "human", "ai", "tool", "ai", "tool", "ai"]
    assert values["todos"] == [{"content": "Scale", "status": "in_progress"}]
    assert {name: one["state"] for name, one in values["files"].items()} == {"bread.md": "edited", "note.md": "created"}
    assert (values["model"], values["permission_mode"]) == ("model-two", "never")
    expected = {"input": 180, "output": 25, "cache_read": 90, "cache_creation": 0}
    assert values["tokens"] == only(run, path)["tokens"] == expected


def test_a_rollback_is_a_branch_and_a_compaction_a_row(run: Any, tmp_path: Path) -> None:
    roll = Rollout("01a00000-0000-7000-8000-000000000002")
    for text in ("one", "two"):
        roll.say("user", text)
        roll.say("assistant", f"re {text}")
    roll.line("event_msg", type="thread_rolled_back", num_turns=1)
    roll.say("user", "two again")
    roll.say("assistant", "re two again")
    roll.line("compacted", message="They counted.", replacement_history=[])
    roll.say("user", "three")
    path = write(tmp_path / "rollout-2.jsonl", *roll.lines)
    assert labels(run, path) == ["prompt", "answer", "prompt", "answer", "prompt", "answer", "compacted", "prompt"]
    thread = only(run, path)
    assert (len(thread["heads"]), thread["status"]) == (2, "ready")
    said = [one["content"] for one in run("show", path, "head")["values"]["messages"]]
    assert said == ["one", "re one", "two again", "re two again", "They counted.", "three"]


def test_a_fork_that_names_its_base_goes_on_from_it_and_alone_says_what_is_missing(run: Any, tmp_path: Path) -> None:
    base = Rollout("01a00000-0000-7000-8000-000000000003", 0)
    base.say("user", "one")
    base.say("assistant", "re one")
    base.say("user", "two")
    base.say("assistant", "re two")
    history = {"thread_id": "01a00000-0000-7000-8000-000000000003", "end_ordinal_exclusive": 5}
    fork = Rollout("01a00000-0000-7000-8000-000000000004", 5, forked_from_id=history["thread_id"], history_base=history)
    fork.say("user", "two, differently")
    fork.say("assistant", "re differently")
    write(tmp_path / "sessions" / "rollout-a.jsonl", *base.lines)
    alone = write(tmp_path / "sessions" / "rollout-b.jsonl", *fork.lines)
    thread = only(run, tmp_path)
    assert (thread["checkpoints"], len(thread["heads"])) == (6, 2)
    said = [one["content"] for one in run("show", tmp_path, "01a00000-0000-7000-8000-000000000004:4")["values"]["messages"]]
    assert said == ["one", "re one", "two, differently", "re differently"]
    assert "base-missing" in kinds(run, alone)


def test_bare_items_of_an_old_rollout_have_no_token_counts(run: Any, tmp_path: Path) -> None:
    path = write(
        tmp_path / "rollout-old.jsonl",
        {"id": "0ad00000-0000-4000-8000-000000000005", "timestamp": "2026-05-04T08:00:00.000Z", "instructions": None},
        {"record_type": "state"},
        {"type": "message", "id": None, "role": "user", "content": [{"type": "input_text", "text": "List."}]},
        {"type": "function_call", "id": "f", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "c1"},
        {"type": "function_call_output", "call_id": "c1", "output": '{"output":"a\\n","metadata":{"exit_code":0}}'},
        {"type": "message", "id": None, "role": "assistant", "content": [{"type": "output_text", "text": "One."}]},
    )
    thread = only(run, path)
    assert (thread["thread_id"], thread["tokens"]) == ("0ad00000-0000-4000-8000-000000000005", None)
    assert labels(run, path) == ["prompt", "shell", "answer"]


def test_stored_responses_are_a_tree_and_an_open_call_waits(run: Any, tmp_path: Path) -> None:
    def response(ident: str, at: int, before: str | None, *output: Doc) -> Doc:
        usage = {"input_tokens": 30, "input_tokens_details": {"cached_tokens": 10}, "output_tokens": 4}
        held = {"model": "m", "previous_response_id": before, "output": list(output), "usage": usage}
        return {"object": "response", "id": ident, "created_at": at, **held}

    def said(text: str) -> Doc:
        return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}

    asked = {"type": "function_call", "call_id": "c9", "name": "oven", "arguments": '{"heat": 230}'}
    path = write(
        tmp_path / "responses.jsonl",
        response("resp_1", 1_780_000_000, None, said("a")),
        response("resp_2", 1_780_000_010, "resp_1", said("b")),
        response("resp_3", 1_780_000_020, "resp_1", asked),
    )
    thread = only(run, path)
    assert (sorted(thread["heads"]), thread["head"], thread["status"]) == (["resp_2", "resp_3"], "resp_3", "ready")
    assert thread["tokens"] == {"input": 60, "output": 12, "cache_read": 30, "cache_creation": 0}
    assert run("show", path, "head")["next"] == ["oven"]


def test_an_item_list_newest_first_is_shown_oldest_first_and_said_to_be_partial(run: Any, tmp_path: Path) -> None:
    items = [
        {"id": "m1", "type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hot?"}]},
        {"id": "f1", "type": "function_call", "call_id": "c1", "name": "oven", "arguments": "{}"},
        {"id": "o1", "type": "function_call_output", "call_id": "c1", "output": "230"},
        {"id": "m2", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Yes."}]},
    ]
    path = write(tmp_path / "items.jsonl", {"object": "list", "data": items[::-1], "has_more": True})
    assert labels(run, path) == ["prompt", "oven", "answer"]
    assert kinds(run, path) == ["partial-export"]


CALL = {"id": "c1", "type": "function", "function": {"name": "oven", "arguments": '{"heat": 230}'}}
CHAT = [
    {"role": "user", "content": "Hot?"}, {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": "230"}, {"role": "assistant", "content": "Yes."},
]  # fmt: skip
USAGE = {"input_tokens": 100, "output_tokens": 12, "total_tokens": 112, "input_token_details": {"cache_read": 60}}
DUMP = [
    {"type": "human", "data": {"content": "Hot?", "id": "1"}},
    {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
     "kwargs": {"content": "", "id": "2", "tool_calls": [{"id": "c1", "name": "oven", "args": {"heat": 230}}],
                "usage_metadata": USAGE}},
    {"type": "tool", "data": {"content": "230", "tool_call_id": "c1", "id": "3"}},
    {"type": "ai", "data": {"content": "Ye", "id": "4"}},
    {"type": "ai", "data": {"content": "Yes.", "id": "4"}},
]  # fmt: skip


@pytest.mark.parametrize("records", [CHAT, DUMP, [{"messages": CHAT}]], ids=["chat", "dump", "one conversation"])
def test_a_chat_or_a_dump_is_a_chain_with_its_calls_paired(run: Any, tmp_path: Path, records: list[Doc]) -> None:
    path = write(tmp_path / "chat.jsonl", *records)
    assert labels(run, path) == ["prompt", "oven", "answer"]
    messages = run("show", path, "head")["values"]["messages"]
    assert [one["content"] for one in messages] == ["Hot?", "", "230", "Yes."]
    assert messages[1]["tool_calls"][0]["args"] == {"heat": 230}
    tokens = only(run, path)["tokens"]
    assert tokens == ({"input": 40, "output": 12, "cache_read": 60, "cache_creation": 0} if records is DUMP else None)


def test_lines_of_no_known_shape_are_still_shown(run: Any, tmp_path: Path) -> None:
    path = write(tmp_path / "odd.jsonl", {"level": "info", "n": 1}, {"level": "warn", "n": 2})
    assert only(run, path)["checkpoints"] == 1
    assert "warn" in json.dumps(run("show", path, "head")["values"])


@pytest.mark.parametrize(("sessions", "told"), [(19, "chat"), (20, "claude-code")])
def test_a_file_of_two_formats_is_of_the_one_with_more_records_unless_it_begins_with_many_of_a_session(
    run: Any, tmp_path: Path, sessions: int, told: str
) -> None:
    begin = [
        {"type": "user", "uuid": f"u{at}", "parentUuid": None, "sessionId": "s", "message": {"role": "user", "content": "Bread."}}
        for at in range(sessions)
    ]
    chat = [{"role": "user", "content": f"Loaf {at}."} for at in range(60)]
    path = write(tmp_path / "both.jsonl", *begin, *chat)
    assert only(run, path)["format"] == told


def test_a_picture_longer_than_what_is_read_to_tell_a_format_hides_no_session(run: Any, tmp_path: Path) -> None:
    base = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": "s"}
    shot = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD" * 100_000}}
    path = write(tmp_path / "shot.jsonl", {**base, "message": {"role": "user", "content": [shot]}})
    assert only(run, path)["format"] == "claude-code"
