"""In the browser: a page shows the rows that a branch adds to the file, and its button adds exactly those."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from starlette.testclient import TestClient

from studio.errors import StudioError
from studio.notes import Notes
from tests.web.conftest import OURS

FILE = "/f/support_agent.sqlite"
AT = FILE + "?thread=refund-4711&at="


def read(text: str) -> BeautifulSoup:
    return BeautifulSoup(text, "html.parser")


def ids(path: Path) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {row[0] for row in connection.execute("SELECT checkpoint_id FROM checkpoints")}


def forked(page: TestClient) -> str:
    """The link of the workspace of a fresh fork to the page that puts it into the file."""
    made = page.post(f"{FILE}/fork?thread=refund-4711&at=4", data={"act": "fork"}, headers=OURS, follow_redirects=False)
    assert made.status_code == 303
    link = read(page.get(made.headers["location"]).text).select_one('[data-do="promote"]')
    assert isinstance(link, Tag)
    return str(link["href"])


def form(text: str) -> tuple[str, dict[str, Any]]:
    found = read(text).select_one("main form")
    assert isinstance(found, Tag)
    return str(found["action"]), {str(field["name"]): field["value"] for field in found.select("input[name]")}


def test_the_page_shows_each_row_and_the_button_adds_them(page: TestClient, support: Path) -> None:
    href = forked(page)
    before = ids(support)
    shown = page.get(href)
    text = read(shown.text).get_text(" ")
    assert "Put this branch into the file itself" in text and "#s1" in text and "beside #4" in text and "afterwards" in text
    assert ids(support) == before
    action, data = form(shown.text)
    done = page.post(action, data=data, headers=OURS, follow_redirects=False)
    assert done.status_code == 303
    (added,) = ids(support) - before
    assert added in text
    there = read(page.get(done.headers["location"]).text)
    assert there.select_one('[data-do="promote"]') is None, "it is a row of the file now"
    assert "#s1" in there.select_one(".point-facts").get_text()  # type: ignore[union-attr]


def test_a_form_of_another_page_or_of_another_time_adds_nothing(page: TestClient, support: Path) -> None:
    action, data = form(page.get(forked(page)).text)
    before = ids(support)
    assert page.post(action, data=data, headers={"Origin": "http://evil.example"}).status_code == 403
    assert page.post(action, data=data, headers={**OURS, "Sec-Fetch-Site": "cross-site"}).status_code == 403
    for wrong in ({}, {"seal": "0" * 32}):
        refused = page.post(action, data=wrong, headers=OURS)
        assert refused.status_code == 422 and "has changed since these rows were shown" in refused.text
        assert form(refused.text)[1] == data, "the rows are shown once more"
    assert ids(support) == before


def test_a_refusal_says_why_and_offers_no_button(page: TestClient, support: Path) -> None:
    href = forked(page)
    with closing(sqlite3.connect(support)) as connection, connection:
        connection.execute("CREATE TRIGGER tidy AFTER INSERT ON checkpoints BEGIN DELETE FROM writes; END")
    before = ids(support)
    shown = page.get(href)
    assert shown.status_code == 200 and "tidy" in shown.text and "seal" not in form(shown.text)[1]
    action, _ = form(shown.text)
    assert page.post(action, data={"seal": "x"}, headers=OURS).status_code == 422
    assert ids(support) == before


def test_what_could_not_be_done_after_the_rows_were_added_is_shown(
    page: TestClient, support: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(self: Notes, entry: int, added: object = None) -> None:
        raise StudioError("Notes cannot be kept: the disk is full.")

    action, data = form(page.get(forked(page)).text)
    before = ids(support)
    monkeypatch.setattr(Notes, "audit_done", lost)
    told = page.post(action, data=data, headers=OURS)
    assert len(ids(support)) == len(before) + 1
    assert "The branch is stored, but its entry in the audit could not be completed" in told.text
    assert "disk is full" in told.text and "seal" not in form(told.text)[1]


def test_a_row_of_the_file_itself_is_not_offered_for_it(page: TestClient) -> None:
    assert read(page.get(AT + "4").text).select_one('[data-do="promote"]') is None
    assert "is in the file already" in page.get(f"{FILE}/promote?thread=refund-4711&at=4").text
