"""Many values in one form: a further one joins, all are taken back at once, the whole state is edited as one text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup

from studio.session import Session
from tests.editing import edit_file
from tests.web.conftest import OURS, client_of
from tests.web.test_browser import CHROMIUM, REQUIRED, browser, served, visit  # noqa: F401 - a fixture

AT = "thread=t&at=2&tab=state"


def test_the_whole_state_sets_only_the_channels_that_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "data"))
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:
        soup = BeautifulSoup(client.get(f"/f/edit.sqlite/edit?{AT}&whole=1").text, "html.parser")
        text = soup.select_one("#fork-form [name=value]").text.removeprefix("\n")
        assert '"count": 3' in text and "sk-live" not in text and "$masked" in text

        def send(edited: str, act: str) -> Any:
            sent = {"path": "", "kind": "json", "value": edited, "act": act}
            return client.post(f"/f/edit.sqlite/fork?{AT}&large=1", data=sent, headers=OURS)

        same = send(text, "plan").text
        assert "Nothing would change yet." in same or "effects" not in same
        edited = text.replace('"count": 3', '"count": 4').replace('"paid": true,', "")
        shown = BeautifulSoup(send(edited, "plan").text, "html.parser")
        assert [one.text for one in shown.select(".effects dt")] == ["/paid", "/count"]
        assert "must stay an object" in send("[1]", "fork").text
        session: Session = next(iter(client.app.book))[1]  # type: ignore[attr-defined]
        before = session.state(session.resolve("2", "t")).values
        assert send(edited, "fork").status_code == 200
        after = session.state(session.resolve("s1", "t")).values
        assert after["count"] == 4 and "paid" not in after and after["api_key"] == before["api_key"]
        assert [one.raw for one in after["messages"]] == [one.raw for one in before["messages"]]


def test_all_edits_of_a_form_are_taken_back_at_once(tmp_path: Path) -> None:
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:
        sent = {"path": ["/count", "/amount"], "kind": ["json", "json"], "value": ["9", "1.5"], "act": "plan"}
        shown = client.post(f"/f/edit.sqlite/fork?{AT}", data=sent, headers=OURS).text
        assert "leave all as they are" in shown
        again = client.post(f"/f/edit.sqlite/fork?{AT}", data={**sent, "act": "drop:all"}, headers=OURS)
        assert not BeautifulSoup(again.text, "html.parser").select("#fork-form [name=value]")


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")
def test_a_value_that_is_chosen_while_another_is_edited_joins_it(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    edit_file(tmp_path / "edit.sqlite")
    at = f"/f/edit.sqlite?{AT}&path=/count"
    with served(tmp_path / "edit.sqlite", tmp_path, at) as url, visit(browser, url) as seen:
        page = seen.page
        page.fill("#edit-0 textarea", "7")
        page.click("#centre .tree a[href*='path=/note']")
        page.wait_for_selector("#edit-1")
        assert page.input_value("#edit-0 textarea") == "7"
        page.fill("#edit-1 textarea", "a pot")
        page.wait_for_selector(".effects dt:text-is('/note')")
        assert page.locator(".effects dt").all_inner_texts() == ["/count", "/note"]
        page.click("text=leave all as they are")
        page.wait_for_selector("#edit-0", state="detached")
