from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from studio.cli import main


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def doc(self) -> Any:
        assert self.out.isascii()
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        assert self.out.isascii()
        return [json.loads(text) for text in self.out.splitlines()]


Studio = Callable[..., Answer]


@pytest.fixture
def studio(capsys: pytest.CaptureFixture[str]) -> Studio:
    """Calls the command line in this process."""

    def call(*arguments: object) -> Answer:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        found = capsys.readouterr()
        return Answer(code, found.out, found.err)

    return call
