"""Where a run stops, how long it may take and with what it goes on, as it is typed."""

from __future__ import annotations

import pytest

from studio.errors import UsageError
from studio.model import Address
from studio.requests import RunRequest
from studio.running.options import RunOptions, pairs, read


def test_what_is_typed_becomes_the_request_and_empty_fields_ask_for_nothing() -> None:
    assert read(dict.fromkeys(("input", "before", "steps", "config"), " ")) == RunOptions()
    found = read(
        {
            "input": '{"n": 499.0}',
            "before": "review, reply\nreview",
            "after": "draft",
            "steps": "2",
            "timeout": "1.5 s",
            "recursion_limit": "50",
            "config": 'user=mara\nconfigurable.tier="gold", level=3',
            "context": '{"city": "Rome"}',
        }
    )
    assert found == RunOptions(
        input={"n": 499.0},
        has_input=True,
        before=("review", "reply"),
        after=("draft",),
        steps=2,
        timeout=1.5,
        recursion_limit=50,
        config={"user": "mara", "tier": "gold", "level": 3},
        context={"city": "Rome"},
    )
    assert pairs("greeting=hello, dear, user=x") == {"greeting": "hello, dear", "user": "x"}
    assert pairs('{"a": {"b": 1}}') == {"a": {"b": 1}}


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("steps", "0", "Supersteps at most: '0'"),
        ("steps", "9" * 30, "Supersteps at most"),
        ("timeout", "nan", "Time limit: 'nan'"),
        ("timeout", "-1", "Time limit"),
        ("recursion_limit", "many", "Recursion limit: 'many'"),
        ("config", "user", "Config: an argument has no value"),
        ("config", '{"a": ', "Config: no valid JSON"),
        ("config", "thread_id=other", "Config: thread_id is set by the chosen checkpoint"),
        ("config", '{"__pregel_task_id": 1}', "Config: __pregel_task_id is set"),
        ("context", "[1]", "Context: this is no JSON object"),
        ("input", "hello", "New input: no valid JSON"),
    ],
)
def test_what_cannot_be_read_is_named_by_its_field(name: str, text: str, said: str) -> None:
    with pytest.raises(UsageError) as found:
        read({name: text})
    assert found.value.message.startswith(said) and found.value.hint


def test_an_answer_takes_the_place_of_an_input() -> None:
    answer = RunRequest(Address("t", "", "1"), resume="yes", has_resume=True)
    found = read({"input": "{}", "steps": "1"}).on(answer)
    assert (found.has_input, found.resume, found.steps) == (False, "yes", 1)
