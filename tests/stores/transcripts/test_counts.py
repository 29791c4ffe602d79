"""Whose answer the counts of a rollout belong to: versions write them before the answer or after it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.stores.transcripts.test_formats import Rollout, write
from tests.stores.transcripts.test_sessions import run

__all__ = ["run"]


def outputs(run: Any, path: Path) -> list[int]:
    """Output tokens up to each turn."""
    rows = run("tree", path)["rows"]
    found = [run("show", path, row["number"])["values"].get("tokens") for row in rows]
    return [one["output"] if one else 0 for one in found]


def call(roll: Rollout, ident: str) -> None:
    roll.line("response_item", type="function_call", name="shell", arguments="{}", call_id=ident)


def output(roll: Rollout, ident: str) -> None:
    roll.line("response_item", type="function_call_output", call_id=ident, output="ok")


def test_counts_that_come_before_their_answers(run: Any, tmp_path: Path) -> None:
    roll = Rollout("01a00000-0000-7000-8000-000000000001")
    roll.say("user", "one")
    roll.total(10, 0, 5)
    call(roll, "c1")
    output(roll, "c1")
    roll.total(30, 0, 7)
    roll.say("assistant", "done")
    assert outputs(run, write(tmp_path / "rollout-1.jsonl", *roll.lines)) == [0, 5, 7]


def test_counts_that_come_after_the_results_of_their_answers(run: Any, tmp_path: Path) -> None:
    roll = Rollout("01a00000-0000-7000-8000-000000000001")
    roll.say("user", "one")
    call(roll, "c1")
    output(roll, "c1")
    roll.total(10, 0, 5)
    roll.say("assistant", "done")
    roll.total(30, 0, 7)
    assert outputs(run, write(tmp_path / "rollout-1.jsonl", *roll.lines)) == [0, 5, 7]


def test_what_a_compaction_took_stands_at_it(run: Any, tmp_path: Path) -> None:
    roll = Rollout("01a00000-0000-7000-8000-000000000001")
    roll.say("user", "one")
    roll.say("assistant", "re one")
    roll.total(10, 0, 5)
    roll.say("user", "<environment_context>\n</environment_context>")
    roll.total(30, 0, 12)
    roll.line("compacted", message="They counted.", replacement_history=[])
    roll.say("user", "two")
    roll.say("assistant", "re two")
    roll.total(45, 0, 14)
    assert outputs(run, write(tmp_path / "rollout-1.jsonl", *roll.lines)) == [0, 5, 12, 12, 14]


def test_the_summary_that_a_new_task_writes_is_an_answer_of_its_own(run: Any, tmp_path: Path) -> None:
    roll = Rollout("01a00000-0000-7000-8000-000000000001")
    roll.say("user", "one")
    roll.say("assistant", "re one")
    roll.total(10, 0, 5)
    roll.line("event_msg", type="task_started")
    roll.say("assistant", "The summary.")
    roll.total(30, 0, 12)
    roll.line("compacted", message="They counted.", replacement_history=[])
    assert outputs(run, write(tmp_path / "rollout-1.jsonl", *roll.lines)) == [0, 5, 12, 12]


def test_another_process_counts_anew(run: Any, tmp_path: Path) -> None:
    roll = Rollout("01a00000-0000-7000-8000-000000000001")
    roll.say("user", "one")
    roll.total(10, 0, 5)
    roll.say("assistant", "re one")
    roll.say("user", "two")
    usage = {"input_tokens": 30, "cached_input_tokens": 0, "output_tokens": 9}
    roll.line("event_msg", type="token_count", info={"total_token_usage": usage, "last_token_usage": usage})
    roll.say("assistant", "re two")
    assert outputs(run, write(tmp_path / "rollout-1.jsonl", *roll.lines)) == [0, 5, 5, 14]
