"""Text with Markdown and code becomes pieces of plain text: nothing in it is obeyed, lost or fetched."""

from __future__ import annotations

import time

import pytest

from studio.render import patches, prose, toolwords
from studio.render.secrets import MASKED
from tests.reading.oven import ANSWER, KEY


def texts(blocks: tuple[prose.Block, ...]) -> str:
    found = []
    for block in blocks:
        found += [span.text for span in block.spans]
        found += [span.text for line in block.lines for span in line]
        found += [span.text for row in block.rows for cell in row for span in cell]
    return "".join(found)


def test_markdown_is_told_apart() -> None:
    blocks = prose.prose(ANSWER).blocks
    assert [block.kind for block in blocks] == ["text", "item", "item", "table", "code"]
    assert prose.Span("exact", ("strong",)) in blocks[0].spans
    assert [block.marker for block in blocks[1:3]] == ["1.", "2."]
    assert [span.text for span in blocks[2].spans][-2:] == ["the docs", " (https://docs.example.org/approx)"]
    assert blocks[3].rows[1][1] == (prose.Span("low"),)
    looks = {look for line in blocks[4].lines for span in line for look in span.looks}
    assert {"keyword", "name", "number", "comment"} <= looks
    assert "".join(span.text for span in blocks[4].lines[0]) == "def test_heat():"


def test_lists_keep_their_depth_and_quotes_theirs() -> None:
    blocks = prose.prose("- a\n  - b\n\n    more\n\n> said\n> > again").blocks
    assert [(one.kind, one.level, one.marker, one.quote) for one in blocks] == [
        ("item", 1, "•", 0), ("item", 2, "•", 0), ("item", 2, "", 0), ("text", 0, "", 1), ("text", 0, "", 2),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        '<img src=x onerror="alert(1)">',
        "[go](javascript:alert(1))",
        "![](https://elsewhere.example/p.png)",
        "<https://elsewhere.example>",
        "&#x202e;&lt;&#27;[31m",
        "\x1b[31mred\x1b[0m \u202ebidi \x9b5m \u200bzero",
        "```\x1b]8;;http://x\x07\n\u2066\n```",
        "| a\x1b |\n|---|\n| \u202e |",
    ],
)
def test_hostile_text_stays_text(hostile: str) -> None:
    shown = texts(prose.prose(hostile).blocks)
    assert not set(shown) & {"\x1b", "\u202e", "\x9b", "\u200b", "\x07", "\u2066"}
    assert shown.strip()


def test_a_secret_is_masked_in_prose_code_and_patches() -> None:
    shown = texts(prose.prose(f"key {KEY}\n\n```\n{KEY}\n```").blocks)
    assert KEY not in shown and shown.count(MASKED) == 2
    assert KEY in texts(prose.prose(KEY, show_secrets=True).blocks)
    assert all(KEY not in line.text for line in patches.read(f"+{KEY}").lines)
    assert KEY not in toolwords.about("Bash", {"command": f"curl -H {KEY}"})


@pytest.mark.parametrize("sign", ["[", "*", "> ", "`", "![", "_a", "<", "- ", "|", "\\", "[a](", "~~"])
def test_text_made_to_be_slow_is_not(sign: str) -> None:
    began = time.monotonic()
    found = prose.prose(sign * (5_000_000 // len(sign)))
    assert time.monotonic() - began < 5
    assert found.more > 4_000_000


def test_an_unknown_language_and_a_huge_piece_of_code_stay_plain() -> None:
    assert prose.code("x = 1", "no-such-language") == ((prose.Span("x = 1"),),)
    assert prose.code("x = 1\n" * 10_000, "python")[0] == (prose.Span("x = 1"),)


def test_two_texts_make_a_patch_and_too_large_ones_a_plain_one() -> None:
    assert patches.of_texts("a\nb", "a\nc") == " a\n-b\n+c"
    huge = patches.of_texts("x\n" * 4_000, "y\n" * 4_000)
    assert patches.counts(huge) == (4_000, 4_000)


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("Bash", {"command": "ls -l", "description": "List"}, "ls -l"),
        ("Edit", {"file_path": "/home/a/b/c.py", "old_string": "x"}, "b/c.py"),
        ("Grep", {"path": "/home/a", "pattern": "round"}, "round"),
        ("Task", {"prompt": "Find it all", "description": "Find"}, "Find"),
        ("TodoWrite", {"todos": [{"status": "completed"}, {"status": "pending"}]}, "2 todos, 1 done"),
        ("shell", {"command": ["bash", "-lc", "pytest -q"]}, "pytest -q"),
        ("apply_patch", "*** Begin Patch\n*** Add File: d/e.md\n+x\n*** End Patch", "e.md"),
        ("odd", {"n": 3}, "3"),
        ("none", {}, ""),
    ],
)
def test_a_call_is_told_by_the_argument_that_matters(name: str, args: object, said: str) -> None:
    assert toolwords.about(name, args, cwd="/home/a") == said


def test_a_word_in_a_file_imports_no_plugin_of_the_highlighter(monkeypatch: pytest.MonkeyPatch) -> None:
    def plugins() -> None:
        raise AssertionError("plugins are looked for")

    monkeypatch.setattr("pygments.lexers.find_plugin_lexers", plugins)
    prose._lexer.cache_clear()
    assert prose.code("x = 1", "a-language-of-a-plugin") == ((prose.Span("x = 1"),),)
    assert prose.code("x = 1", filename="x.zzz") == ((prose.Span("x = 1"),),)
    assert any(span.looks for span in prose.code("def f(): return 1", "python")[0])
    assert any(span.looks for span in prose.code("def f(): return 1", filename="f.py")[0])
