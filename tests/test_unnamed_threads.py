"""Threads whose name has nothing to see: told in brackets in all three front ends, and still addressed by what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from langgraph.graph import END, START, StateGraph

from tests.cli.conftest import Studio, studio
from tests.factories import ShopState, config, saver_at
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

__all__ = ["studio"]

TOLD = {"": "(no name)", "   ": "(3 spaces)", "(no name)": '"(no name)"', "plain": "plain"}
"""Thread -> how it is told."""


@pytest.fixture
def unnamed(tmp_path: Path) -> Path:
    path = tmp_path / "unnamed.sqlite"
    builder: StateGraph[Any] = StateGraph(ShopState)
    builder.add_node("only", lambda state: {"notes": ["x"]})
    builder.add_edge(START, "only")
    builder.add_edge("only", END)
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver)
        for thread in TOLD:
            graph.invoke({"notes": []}, config(thread))
    return path


def test_the_command_line_tells_each_and_takes_what_it_lists(studio: Studio, unnamed: Path) -> None:
    rows = studio("ls", unnamed).out.splitlines()[1:]
    assert sorted(row[: row.index(" done")].strip() for row in rows) == sorted(TOLD.values())
    for thread, told in TOLD.items():
        assert studio("tree", unnamed, "--thread", thread).out.startswith(f"{told} · 3 checkpoints")
        assert studio("show", unnamed, "head", "--thread", thread, "--json").doc["checkpoint"]["thread_id"] == thread
        assert f"thread   {told}" in studio("show", unnamed, "head", "--thread", thread).out
    listed = [row.removeprefix("  ") for row in studio("tree", unnamed).err.splitlines()[1:]]
    assert len(listed) == len(TOLD)
    assert {studio("tree", unnamed, "--thread", one, "--json").doc["thread_id"] for one in listed} == set(TOLD)


async def test_the_terminal_tells_them_in_its_list_and_its_header(unnamed: Path, tmp_path: Path) -> None:
    with opened(unnamed, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "")) as drive:
            await drive.loaded()
            await drive.shows("unnamed.sqlite › (no name)")
            await drive.press("t")
            await drive.until(lambda: all(told in drive.text() for told in TOLD.values()), "each thread in the list")


def test_the_page_tells_them_in_its_list_and_its_crumbs(unnamed: Path) -> None:
    with client_of(unnamed) as client:
        found = BeautifulSoup(client.get("/f/unnamed.sqlite/threads").text, "html.parser")
        assert {row.text for row in found.select(".thread-list .thread-head b")} == set(TOLD.values())
        for link in found.select(".thread-list a"):
            page = BeautifulSoup(client.get(str(link["href"])).text, "html.parser")
            told = link.select_one(".thread-head b")
            crumb = page.select_one(".crumb-thread b")
            assert told is not None and crumb is not None and crumb.text == told.text
