"""A Send that waits for the next superstep: its argument is edited where the task stands."""

from __future__ import annotations

from pathlib import Path

from bs4 import BeautifulSoup

from tests.forks import graphs
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of
from tests.web.test_acts import form_of, send


def test_the_page_opens_the_argument_and_the_fork_keeps_the_other_sends(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "send.sqlite", graphs.send_graph, {"item": "x"})
    with client_of(path) as page:
        at = "/f/send.sqlite?thread=t&at=2&tab=tasks"
        link = BeautifulSoup(page.get(at).text, "html.parser").select("section.task .what a.quiet")[1]
        form = form_of(BeautifulSoup(page.get(str(link["href"])).text, "html.parser"))
        assert form["path"] == ["/__pregel_tasks/1/1"] and '"n": 2' in form["value"][0]
        made = send(page, form, "fork", value=form["value"][0].replace("2", "22"))
        assert made.status_code == 200, made.text
        session = next(iter(page.app.book))[1]  # type: ignore[attr-defined]
        fork = session.state(session.resolve("s1", "t"))
        assert [task.arg["n"] for task in fork.tasks] == [1, 22, 3]


async def test_enter_on_the_argument_edits_it_in_the_terminal(tmp_path: Path) -> None:
    path = graphs.make(tmp_path / "send.sqlite", graphs.send_graph, {"item": "x"})
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2", "t"), (120, 40)) as drive:
            await drive.loaded()
            await drive.press("4")
            await drive.shows("sent with")
            await drive.press("right", "enter")
            await drive.until(lambda: "__pregel_tasks/0/1" in drive.text(), "the editor of the argument")
