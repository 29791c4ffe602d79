"""The three front ends draw the same rows: `studio tree`, the page's timeline and that of the terminal UI."""

from __future__ import annotations

import json
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from studio.assets import sample_folder
from studio.beside import SIGNS
from studio.cli import main
from studio.session import Session
from studio.tui.screens.compare import CompareScreen
from tests.branching import make_talk
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

FILES = ("support_agent.sqlite", "research_team.sqlite")
LANE_WIDTH = 14


def threads() -> list[tuple[str, str]]:
    found = []
    for name in FILES:
        with closing(Session.open(str(sample_folder() / name))) as session:
            found += [(name, thread) for thread in session.thread_ids()]
    return found


def of_tree(path: Path, thread: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, int]]:
    assert main(["tree", str(path), "--thread", thread, "--all-ns", "--json"]) == 0
    rows: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["rows"]
    return [(row["number"], row["label"], row["lane"]) for row in rows]


def of_page(path: Path, thread: str) -> list[tuple[str, str, int]]:
    found = []
    with client_of(path) as client:
        page = BeautifulSoup(client.get("/", params={"thread": thread}).text, "html.parser")
        for row in page.select("#timeline .row"):
            number = re.match(r"#(\S+)", row.select_one(".row-sub").text)  # type: ignore[union-attr]
            middle = re.search(r'c?x="(\d+)"', str(row.select_one(".halo, .here")))
            assert number is not None and middle is not None
            found.append((number[1], row.select_one(".row-title b").text, (int(middle[1]) - 16) // LANE_WIDTH))  # type: ignore[union-attr]
    return found


@pytest.mark.parametrize(("name", "thread"), threads())
async def test_the_same_rows_stand_in_all_three(
    name: str, thread: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_bytes((sample_folder() / name).read_bytes())
    rows = of_tree(path, thread, capsys)
    assert rows
    assert of_page(path, thread) == rows
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.tree(thread).head, size=(200, 50)) as drive:
            await drive.until(lambda: drive.main.timeline.row_count == len(rows))
            timeline = drive.main.timeline
            await drive.until(lambda: all(timeline.row_at(index) for index in range(len(rows))))
            drawn = [timeline.draw_row(index, 140, False)[0].plain for index in range(len(rows))]
            for line, (number, label, lane) in zip(drawn, rows, strict=True):
                found = re.match(rf"(.*?)#?{re.escape(number)} +{re.escape(label)}( |$)", line)
                assert found is not None, line
                assert re.search(r"[●○■✕◆◇◌]", found[1]).start() == 1 + 2 * lane  # type: ignore[union-attr]


async def test_two_branches_differ_in_the_same_places_in_all_three(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = make_talk(tmp_path / "talk.sqlite", turns=6, rude_from=2)
    with opened(path, tmp_path / "s.sqlite") as session:
        left, right = session.tree("talk").leaves()
        assert main(["compare", str(path), left.checkpoint_id, right.checkpoint_id, "--json"]) == 0
        doc = json.loads(capsys.readouterr().out)
        pairs = [
            "right" if step["left"] is None else "left" if step["right"] is None else "same" if step["same"] else "changed"
            for step in doc["steps"]
        ]
        talks = [one["how"] for one in doc["messages"]]
        channels = {change["path"].split("/")[1] for change in doc["changes"]}
        with client_of(path) as client:
            query = {"thread": "talk", "at": right.checkpoint_id, "tab": "branches", "left": left.checkpoint_id}
            page = BeautifulSoup(client.get("/f/talk.sqlite", params=query).text, "html.parser")
        assert [one["class"][1] for one in page.select(".pair")] == pairs
        drawn = [one["class"][1] for one in page.select(".talk")]
        assert drawn == [how for how in talks if how != "same"] + (["same"] if talks[-1] == "same" else [])
        assert {one.select_one("b").text for one in page.select(".channel-head")} == channels  # type: ignore[union-attr]
        async with driven(session, right, size=(160, 45)) as drive:
            await drive.app.push_screen(CompareScreen(session, left, right))
            await drive.until(lambda: any("Good bye." in line for line in drive.lines("#chats")), "the chats")
            found = [re.search(rf" ([{''.join(SIGNS.values())}]) ", line) for line in drive.lines("#steps")]
            signs = {sign: how for how, sign in SIGNS.items()}
            assert [signs[one[1]] for one in found if one is not None] == pairs
            heads = {line.strip("▸ ").partition("  ")[0] for line in drive.lines("#ends") if ("difference" in line)}
            assert heads == channels
