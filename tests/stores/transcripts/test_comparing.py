"""Branches of a session side by side."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from studio.cli import main
from tests.stores.transcripts.sessions import Book, call


def compared(capsys: pytest.CaptureFixture[str], path: Path, one: str, other: str) -> Any:
    assert main(["compare", str(path), one, other, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_turns_that_did_the_same_at_another_cost_are_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Book()
    start = book.prompt("Which flour is left?")
    for output, words in ((10, "Nine bags of rye."), (77, "Nine bags of rye, and one of oats.")):
        book.last = start
        book.answer(call(f"toolu_{output}", "Bash", command="ls flour"), output=output)
        book.result(f"toolu_{output}", "rye x9")
        book.answer(words, output=output)
    document = compared(capsys, book.write(tmp_path), "2", "4")
    assert [pair["same"] for pair in document["steps"]] == [True, False]
    assert document["steps"][1]["differs"]["path"] == "/messages/3"
    assert "/tokens/output" in {change["path"] for change in document["changes"]}
