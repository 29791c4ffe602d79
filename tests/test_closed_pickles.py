"""A checkpoint that is a pickle stays closed; every name that loading it would import can be read, neutralised and bounded."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from langgraph.graph import END, START, StateGraph

from studio.codec.pickled import MAX_PICKLE_NAMES
from studio.tui.lines import LineView
from studio.tui.panes.state import StatePane
from tests.cli.conftest import Studio, studio
from tests.factories import ShopState, config, saver_at
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

__all__ = ["studio"]

HOSTILE = ["a\x1b[31mb.c", "x\u202ey.z", "<script>alert(1)</script>.run"]
NAMES = [f"package_{number}.module.Name" for number in range(40)] + HOSTILE


def _pickle(names: list[str]) -> bytes:
    """Opcodes that import each name in turn; nothing loads them here."""
    parts = [[part.encode() for part in name.rpartition(".")[::2]] for name in names]
    steps = [b"".join(b"\x8c" + bytes([len(part)]) + part for part in pair) + b"\x930" for pair in parts]
    return b"".join([b"\x80\x04", *steps, b"N."])


def _file(path: Path, names: list[str]) -> Path:
    builder: StateGraph[Any] = StateGraph(ShopState)
    builder.add_node("only", lambda state: {"notes": ["x"]})
    builder.add_edge(START, "only")
    builder.add_edge("only", END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"notes": []}, config("t"))
    with sqlite3.connect(path) as connection:
        newest = "(SELECT max(checkpoint_id) FROM checkpoints)"
        statement = f"UPDATE checkpoints SET type = 'pickle', checkpoint = ? WHERE checkpoint_id = {newest}"
        connection.execute(statement, (_pickle(names),))
    connection.close()
    return path


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    return _file(tmp_path / "closed.sqlite", NAMES)


def _seen(name: str) -> str:
    return name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e")


def test_the_command_line_tells_each_name_whole(studio: Studio, closed: Path) -> None:
    told = studio("show", closed, "head").out
    assert all(_seen(name) in told for name in NAMES) and "would import 43 names" in told
    assert not re.search("[\x1b\u202e]", told) and "…" not in told
    (problem,) = studio("show", closed, "head", "--json").doc["problems"]
    assert len(problem["names"]) == len(NAMES) and "and 3" in problem["message"]


async def test_the_terminal_lists_each_name_in_state_and_in_raw(closed: Path, tmp_path: Path) -> None:
    with opened(closed, tmp_path / "s.sqlite") as session:
        async with driven(session, size=(80, 60)) as drive:
            await drive.press("3")
            await drive.shows("loading it would import 43 names")
            pane = drive.main.query_one("#state", StatePane)
            shown = drive.text("#state")
            assert "cannot be read: it is a pickle" in re.sub(r"\s+", " ", shown)
            assert all(name in shown for name in NAMES[:40])
            assert "\x1b" not in shown and "\u202e" not in shown and _seen(HOSTILE[0]) in shown
            assert not pane.root.children[0].allow_expand
            await drive.press("5")
            await drive.loaded()
            view = drive.main.query_one("#raw", LineView)
            folded = [line.content.plain for one in view.lines for line in one.folded]
            assert {_seen(name) for name in NAMES} <= set(folded)


def test_the_page_lists_each_name_in_state_and_in_raw(closed: Path) -> None:
    with client_of(closed) as client:
        for tab in ("state", "raw"):
            html = client.get("/f/closed.sqlite", params={"thread": "t", "tab": tab}).text
            assert not re.search("[\x1b\u202e]", html) and "<script>alert" not in html
            text = BeautifulSoup(html, "html.parser").text
            assert all(_seen(name) in text for name in NAMES), tab


def test_a_pickle_of_a_hundred_thousand_names_is_read_so_far_and_says_so(studio: Studio, tmp_path: Path) -> None:
    path = _file(tmp_path / "many.sqlite", [f"m{number}.n" for number in range(100_000)])
    problem = studio("show", path, "head", "--json").doc["problems"][0]
    assert MAX_PICKLE_NAMES <= len(problem["names"]) <= MAX_PICKLE_NAMES + 2 and len(problem["message"]) < 400
    told = studio("show", path, "head").out
    assert "would import at least 1,001 names" in told and "--json lists all" in told and len(told) < 12_000
    with client_of(path) as client:
        for tab in ("state", "raw"):
            html = client.get("/f/many.sqlite", params={"thread": "t", "tab": tab}).text
            assert "m1000.n" in html and "at least 1,001 names" in html and "not read to its end" in html
            assert len(html) < 400_000


async def test_a_write_that_is_a_pickle_tells_its_names_beside_the_task(tmp_path: Path) -> None:
    path = _file(tmp_path / "written.sqlite", NAMES)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE writes SET type = 'pickle', value = ? WHERE channel = 'notes'", (_pickle(NAMES),))
    connection.close()
    with client_of(path) as client:
        html = client.get("/f/written.sqlite", params={"thread": "t", "at": "1", "tab": "tasks"}).text
    text = BeautifulSoup(html, "html.parser").text
    assert all(_seen(name) in text for name in NAMES) and not re.search("[\x1b\u202e]", html)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#1", "t")) as drive:
            await drive.press("4")
            await drive.loaded()
            view = drive.main.query_one("#tasks", LineView)
            folded = [line.content.plain for one in view.lines for line in one.folded]
            assert {_seen(name) for name in NAMES} <= set(folded)
