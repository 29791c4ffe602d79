"""Code that hangs or dies while the command line waits for it: what is said, and that nothing is said twice."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from studio import requests, runner
from studio.cli import waiting
from tests.cli.conftest import Studio

CODE = """
import os, signal, time
from tests.factories import shop_builder

print("loading the shop", flush=True)
{at_once}
shop = shop_builder()


def killed():
    found = shop_builder()

    def die(state):
        print("b says 7", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

    found.nodes.pop("approve")
    found.add_node("approve", die)
    return found
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "shop_graph.py").write_text(CODE.format(at_once=""))
    monkeypatch.chdir(folder)
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    return folder


def test_a_killed_run_repeats_none_of_its_prints_and_says_what_to_do(studio: Studio, shop: Path, project: Path) -> None:
    found = studio("run", shop, "head~2", "--thread", "done", "--graph", "shop_graph.py:killed", "--yes")
    assert found.code == 1
    assert found.out.count("b says 7") == 1
    assert f"ended by {signal.SIGKILL.name}" in found.out
    assert "hint: what had finished is stored: run again from the newest checkpoint" in found.out
    assert "says 7" not in found.err


@pytest.mark.parametrize(
    "call",
    [
        ["edges"],
        ["run", "head~2", "--dry-run"],
        ["fork", "head~2", "--nodes"],
        ["fork", "head~2", "--as-node", "approve", "--update", '{"price": 2.0}', "--dry-run"],
        ["fork", "head~2", "--as-node", "approve", "--update", '{"price": 2.0}'],
    ],
)
def test_who_waits_for_the_code_is_told_for_what_and_how_long(
    studio: Studio, shop: Path, project: Path, monkeypatch: pytest.MonkeyPatch, call: list[str]
) -> None:
    monkeypatch.setattr(waiting, "SILENT_SECONDS", 0.01)
    found = studio(call[0], shop, *call[1:], "--thread", "done", "--graph", "shop_graph.py:shop")
    assert found.code == 0, found.err
    assert f"waiting for the code of shop_graph.py:shop: it is given {requests.LOAD_SECONDS:g} seconds to answer" in found.err


def test_code_that_answers_soon_is_not_waited_for_in_words(studio: Studio, shop: Path, project: Path) -> None:
    found = studio("fork", shop, "head~2", "--thread", "done", "--set", "/price=2.0")
    assert found.code == 0
    assert "waiting" not in found.err


def test_code_that_hangs_while_it_is_loaded_is_ended_and_said_so(
    studio: Studio, shop: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "shop_graph.py").write_text(CODE.format(at_once="time.sleep(600)"))
    assert runner.call.__kwdefaults__["timeout"] == requests.LOAD_SECONDS
    monkeypatch.setitem(runner.call.__kwdefaults__, "timeout", 3.0)
    found = studio("edges", shop, "--thread", "done", "--graph", "shop_graph.py:shop")
    assert (found.code, found.out) == (1, "")
    assert "no end after 3 seconds" in found.err
    assert "hint: look at what the code does while it is loaded" in found.err


def test_code_that_dies_while_it_is_loaded_is_told_with_its_last_words(studio: Studio, shop: Path, project: Path) -> None:
    (project / "shop_graph.py").write_text(CODE.format(at_once="os._exit(5)"))
    found = studio("edges", shop, "--thread", "done", "--graph", "shop_graph.py:shop")
    assert (found.code, found.out) == (1, "")
    assert "exit code 5" in found.err
    assert "hint: It printed last: loading the shop" in found.err
