"""What is shown passes the gate, secrets are masked, and texts are compared by words in bounded time."""

from __future__ import annotations

import time
import unicodedata

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


VISIBLE_FORMAT = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
"""Arabic, Syriac and Kaithi signs that Unicode calls format characters, but that are drawn."""
IGNORED = [
    *(0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0, 0xFFF0, 0xFFF8),
    *range(0x180B, 0x1810),
    *range(0xFE00, 0xFE10),
    *range(0xE0000, 0xE1000),
]


def test_no_character_that_is_not_seen_passes_the_gate() -> None:
    by_category = [c for c in map(chr, range(0x110000)) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    passed = [f"{ord(c):x}" for c in {*by_category, *map(chr, IGNORED)} - {*VISIBLE_FORMAT} if c in gate.line(f"pay{c}pal")]
    assert not passed
    assert gate.line("hi\U000e0069\U000e0067") == "hi\\U000e0069\\U000e0067"
    assert gate.line("\U0001f600\ufe01\U000e0101") == "\U0001f600\\ufe01\\U000e0101"
    assert gate.line("♥\ufe0f\ufe0f") == "♥\ufe0f\\ufe0f"
    assert gate.line("क\u200d\u200dष") == "क\\u200d\\u200dष"


@pytest.mark.parametrize(
    "text",
    [
        "❤\ufe0f ☎\ufe0e 1\ufe0f\u20e3 ‼\ufe0f ↔\ufe0f",
        "👩🏽\u200d💻 👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 🇫🇷",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        "می\u200cخواهم",
        "क्\u200dष",
        "naïve – 日本\u3000한국 ٣\u06dd",
    ],
)
def test_emoji_and_every_script_stay_readable(text: str) -> None:
    assert gate.clean(text) == gate.line(text) == text


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


@pytest.mark.parametrize(
    "text", ["", "plain", "a\tb\nc", "\u202eabc", "\x1b[2J", "é\x00", "👩‍💻 ❤️ 1️⃣", "a\u200db", "ب\u200cن", "\ud800", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"]
)
def test_a_text_is_clean_exactly_when_cleaning_leaves_it_alone(text: str) -> None:
    assert gate.is_clean(text) == (gate.clean(text) == text)
