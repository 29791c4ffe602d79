"""Looking at a file imports neither LangGraph nor a UI library: proved in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = {
    "langgraph",
    "langchain_core",
    "textual",
    "rich",
    "fastapi",
    "starlette",
    "jinja2",
    "uvicorn",
    "pydantic",
    "sqlite_utils",
    "numpy",
}
PROBE = """
import contextlib, io, json, sys
from studio.cli import main
with contextlib.redirect_stdout(io.StringIO()):
    code = main(sys.argv[1:])
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.mark.parametrize(
    "command",
    [
        ["ls"],
        ["tree", "--thread", "done"],
        ["show", "4", "--thread", "done", "--json"],
        ["diff", "4", "--thread", "done"],
        ["search", "kettle"],
        ["export", "--json"],
        ["fork", "4", "--thread", "done", "--set", "/price=59.0"],
    ],
    ids=lambda command: command[0],
)
def test_a_reading_command_imports_no_heavy_library(shop: Path, command: list[str]) -> None:
    arguments = [command[0], str(shop), *command[1:]]
    done = subprocess.run([sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, check=True)
    code, modules = json.loads(done.stdout.splitlines()[-1])
    assert code == 0
    assert not HEAVY & set(modules)


def test_the_core_is_imported_without_a_front_end() -> None:
    probe = (
        "import sys, studio.session; print([m for m in sys.modules if m.startswith(('studio.cli', 'studio.tui', 'studio.web'))])"
    )
    assert subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.strip() == "[]"
