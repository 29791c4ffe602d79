"""What is shown passes the gate, secrets are masked, and texts are compared by words in bounded time."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from studio.render import gate, labels, preview, secrets
from studio.render.words import word_diff
from studio.value import decode, encode


@given(st.text())
def test_nothing_that_a_terminal_obeys_passes_the_gate(text: str) -> None:
    for shown in (gate.clean(text), gate.line(text), gate.line(text, 20)):
        for c in shown:
            assert c in "\n\t" or ord(c) >= 0x20
            assert not 0x7F <= ord(c) <= 0x9F
            assert c not in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f"
            assert not 0xD800 <= ord(c) <= 0xDFFF
    assert "\n" not in gate.line(text)


def test_escapes_are_visible_and_ordinary_text_is_left_alone() -> None:
    assert gate.clean("a\x1b[31mred\u202eabc") == "a\\x1b[31mred\\u202eabc"
    assert gate.clean("naïve – 日本 – key") == "naïve – 日本 – key"
    assert gate.line("two\nlines") == "two\\nlines"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("api_key", "anything"),
        ("openaiApiKey", "anything"),
        ("Authorization", "Basic abc"),
        ("db_password", "hunter2!"),
        (None, "my key is sk-abcdefghij0123456789"),
        (None, "AKIAABCDEFGHIJKLMNOP"),
        ("dsn", "postgres://user:secret@host/db"),
        ("note", "Authorization: Bearer abc.def.ghi"),
        (None, "-----BEGIN RSA PRIVATE KEY-----"),
    ],
)
def test_secrets_are_found_by_name_and_by_shape(key: str | None, value: str) -> None:
    assert secrets.reason(key, value)
    assert value not in preview.summary(value, key=key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("total_tokens", "31"),
        ("harmless", "tokens used: 31"),
        ("monkey", "free"),
        ("max_tokens", "4096"),
        ("url", "https://example.org/a:b@c"),
        ("region", "north"),
        ("task-1", "ask-me-anything-about-it"),
    ],
)
def test_ordinary_values_stay_readable(key: str, value: str) -> None:
    assert secrets.reason(key, value) is None


@given(st.text(max_size=300), st.text(max_size=300))
def test_a_word_diff_holds_both_texts(before: str, after: str) -> None:
    parts = word_diff(before, after)
    assert parts is not None
    assert "".join(text for op, text in parts if op != "+") == before
    assert "".join(text for op, text in parts if op != "-") == after


def test_a_word_diff_marks_whole_words() -> None:
    assert word_diff("returned the kettle today", "returned the espresso machine today") == [
        ("=", "returned the "),
        ("-", "kettle"),
        ("+", "espresso machine"),
        ("=", " today"),
    ]


def test_two_big_different_texts_end_in_bounded_time() -> None:
    before = "".join(f"line {i * 7919 % 10007}\n" for i in range(60_000))
    after = "".join(f"line {i * 104729 % 10007}\n" for i in range(60_000))
    started = time.perf_counter()
    parts = word_diff(before, after)
    assert parts is None or "".join(text for op, text in parts if op != "+") == before
    assert word_diff("a" * 3_000_000, "b" * 3_000_000) is None
    assert time.perf_counter() - started < 20  # a bound against freezing, not a benchmark


def test_a_summary_fits_its_width_and_tells_types_apart() -> None:
    value = decode("msgpack", encode("msgpack", {"a": [1, 2.0, None, True], "b": "x" * 500, "c": {"d": {"e": {"f": 1}}}}))
    assert len(preview.summary(value, 60)) <= 60
    assert preview.summary(499.0) == "499.0"
    assert preview.summary(1) != preview.summary(1.0) != preview.summary(True)
    assert preview.summary([]) == "[]"


def test_a_message_is_read_from_a_plain_map() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"a": 1}'}}
    shown = preview.message({"role": "assistant", "content": None, "tool_calls": [call]})
    assert shown is not None
    assert (shown.role, shown.tool_calls[0].name) == ("assistant", "refund")
    assert preview.message({"type": "circle", "content": "x"}) is None


def test_times_and_sizes_read_well() -> None:
    assert [labels.duration(s) for s in (0.004, 0.2, 59.94, 180, 7300, -2, None)] == [
        "+4 ms",
        "+0.2 s",
        "+59.9 s",
        "+3.0 m",
        "+2.0 h",
        "−2.0 s",
        "",
    ]
    assert [labels.size(n) for n in (0, 999, 24_500, 132_000_000)] == ["0 B", "999 B", "24.5 KB", "132 MB"]
    assert labels.when("2026-03-14T15:02:09.412+01:00") == "2026-03-14 14:02:09"
    assert labels.when("not a time") == "time not known"
    assert labels.plural(2, "branch") == "2 branches"


def test_a_secret_inside_a_message_of_a_list_is_masked_in_the_summary() -> None:
    stored = decode("msgpack", encode("msgpack", {"messages": [{"role": "user", "content": "use sk-abcdefghij0123456789"}]}))
    assert "sk-abc" not in preview.summary(stored)
    assert "sk-abc" not in preview.summary([["sk-abcdefghij0123456789"]])
    assert "sk-abc" in preview.summary(stored, 200, show_secrets=True)
