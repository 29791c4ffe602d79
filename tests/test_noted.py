"""Both UIs say each oddity once, name other checkpoints by their number, and never call what they cannot read unchanged."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from bs4 import BeautifulSoup
from starlette.testclient import TestClient

from tests.factories import make_states
from tests.tui.driving import driven, opened
from tests.web.conftest import SAMPLES, client_of
from tests.web.conftest import page as page
from tests.web.conftest import support as support
from tests.web.test_acts import form_of, send

CLOSED = "What changed is not known: the state of this checkpoint cannot be read."
SINCE = "What changed is not known: the state that this one is compared with cannot be read."
LOST = "Not known: the state of this checkpoint cannot be read."


def sealed(path: Path, *steps: int) -> Path:
    """Three checkpoints; the ones of `steps` look encrypted."""
    make_states(path, {"n": 1}, {"n": 2}, {"n": 3}, thread_id="t")
    with closing(sqlite3.connect(path)) as connection, connection:
        for step in steps:
            connection.execute(
                "UPDATE checkpoints SET type = 'msgpack+aes' WHERE json_extract(CAST(metadata AS TEXT), '$.step') = ?", [step]
            )
    return path


def words(client: TestClient, url: str, part: str = "main") -> str:
    found = BeautifulSoup(client.get(url).text, "html.parser").select_one(part)
    assert found is not None
    return " ".join(found.get_text(" ", strip=True).split())


def promise(client: TestClient, url: str) -> str:
    """What the fork box says would happen."""
    form = form_of(BeautifulSoup(client.get(url).text, "html.parser"))
    form[""] = str(form[""]).replace("/fork?", "/preview?")
    return " ".join(BeautifulSoup(send(client, form, "").text, "html.parser").get_text(" ", strip=True).split())


def test_the_page_says_once_that_a_state_and_its_parent_are_closed(tmp_path: Path) -> None:
    with client_of(sealed(tmp_path / "t.sqlite", 1, 2)) as client:
        changes = words(client, "/?thread=t&at=2")
        assert CLOSED in changes and LOST in changes
        assert changes.count("is encrypted") == 1 and "here, #1: the state is encrypted" in changes
        assert "Nothing in the state changed" not in changes and "the graph ended" not in changes
        assert words(client, "/f/t.sqlite?thread=t&at=2&tab=state").count("is encrypted") == 1
        assert LOST in words(client, "/f/t.sqlite?thread=t&at=2&tab=tasks")


def test_the_page_says_that_nothing_is_known_where_the_parent_is_closed(tmp_path: Path) -> None:
    with client_of(sealed(tmp_path / "t.sqlite", 1)) as client:
        changes = words(client, "/?thread=t&at=2")
        assert SINCE in changes and "added" not in changes
        assert "#1: the state is encrypted" in changes
        assert "cannot be read" not in words(client, "/?thread=t&at=0")


async def test_the_terminal_says_the_same(tmp_path: Path) -> None:
    with opened(sealed(tmp_path / "t.sqlite", 1, 2), tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.shows("What changed is not known")
            assert drive.text().count("is encrypted") == 1 and "here, #1" in drive.text()
            await drive.press("4")
            await drive.shows("Not known: the state of this checkpoint")
    with opened(sealed(tmp_path / "u.sqlite", 1), tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.shows("the state that this one is compared with")
            assert "author" not in drive.text() and "unchanged" not in drive.text()


async def test_in_the_narrowest_terminal_the_tab_that_is_shown_is_in_view(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, size=(60, 20)) as drive:
            await drive.press("enter")
            await drive.loaded()
            await drive.press("6")
            await drive.shows("Tasks Raw Graph")
            await drive.shows("look_up_order")


def test_where_nothing_is_left_to_run_the_fork_box_says_it_once_and_asks_for_no_graph(tmp_path: Path) -> None:
    with client_of(make_states(tmp_path / "t.sqlite", {"n": 1}, {"n": 2}, thread_id="t")) as client:
        said = promise(client, "/?thread=t&at=1")
        assert said.count("Nothing is left to run here") == 1
        assert "Runs" not in said and "name your graph" not in said


def test_equal_tasks_are_counted_and_what_started_a_superstep_reads_as_a_sentence() -> None:
    with client_of(SAMPLES / "research_team.sqlite") as client:
        assert "Runs research ×3" in promise(client, "/?thread=night-trains&at=3")
        facts = words(client, "/?thread=night-trains&at=2", ".point-facts")
        assert "started by the input" in facts and "ran started" not in facts


def test_a_subgraph_run_is_named_once(page: TestClient) -> None:
    tasks = words(page, "/?thread=refund-4711&at=5&tab=tasks")
    assert "subgraph #5.1 … #5.4" in tasks and "subgraph subgraph" not in tasks


def test_a_row_without_room_for_a_chip_tells_one_number(page: TestClient) -> None:
    rows = BeautifulSoup(page.get("/?thread=refund-6024&at=6").text, "html.parser").select(".chips")
    assert rows and all(row.select(".chip:not(.more)") for row in rows if row.has_attr("data-rest"))


def test_items_of_a_channel_whose_name_is_no_plural_are_counted_in_it(tmp_path: Path) -> None:
    path = make_states(tmp_path / "t.sqlite", {"log": ["a", "b"]}, {"log": ["a", "b", "c"]}, thread_id="t")
    with client_of(path) as client:
        assert "2 in log unchanged" in words(client, "/?thread=t&at=1")


def test_the_page_says_what_a_search_could_not_look_into(tmp_path: Path) -> None:
    with client_of(sealed(tmp_path / "t.sqlite", 1, 2)) as client:
        found = words(client, "/f/t.sqlite/search?q=nowhere", "main")
        assert "Not searched, for it cannot be read: 2 checkpoints (encrypted)." in found


async def test_the_terminal_says_what_a_search_could_not_look_into(tmp_path: Path) -> None:
    with opened(sealed(tmp_path / "t.sqlite", 1, 2), tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.press("slash", *"nowhere")
            await drive.shows("Not searched, for it cannot be read: 2 checkpoints (encrypted).")


async def test_a_list_of_threads_says_that_a_state_is_encrypted(tmp_path: Path) -> None:
    path = sealed(tmp_path / "t.sqlite", 2)
    with client_of(path) as client:
        assert "The state is encrypted" in words(client, "/f/t.sqlite/threads")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.press("t")
            await drive.shows("The state is encrypted")
