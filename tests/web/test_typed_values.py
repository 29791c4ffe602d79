"""Typed values in the fork form of the page: just their value, in their type."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from tests.editing import Size, edit_file
from tests.factories import config, saver_at
from tests.web.conftest import OURS, client_of

AT = "thread=t&at=2&tab=state"


@pytest.mark.parametrize(
    ("path", "shown", "how"),
    [
        ("/size", "l", "tests.editing.Size, its value"),
        ("/placed", "2026-05-04T03:02:01+00:00", "datetime.datetime, as ISO 8601"),
        ("/wait", "1 day, 0:00:30", "datetime.timedelta, as days and hours"),
        ("/note", "a kettle", "as text"),
        ("/amount", "499.0", "as JSON"),
    ],
)
def test_the_form_shows_just_the_value_and_says_how(tmp_path: Path, path: str, shown: str, how: str) -> None:
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:
        soup = BeautifulSoup(client.get(f"/f/edit.sqlite?{AT}&path={path}").text, "html.parser")
        assert soup.select_one("#fork-form [name=value]").text.strip() == shown
        assert soup.select_one(".edit-tools .dim").text == how


def test_an_enum_is_edited_by_its_value_or_as_json_and_forked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "data"))
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:

        def send(kind: str, text: str, act: str) -> BeautifulSoup:
            sent = {"path": "/size", "kind": kind, "value": text, "act": act}
            answer = client.post(f"/f/edit.sqlite/fork?{AT}&path=/size", data=sent, headers=OURS)
            soup = BeautifulSoup(answer.text, "html.parser")
            soup.attrs["url"] = str(answer.url)
            return soup

        flipped = send("value", "s", "flip:0")
        assert flipped.select_one("[name=kind]")["value"] == "json" and '"args"' in flipped.select_one("[name=value]").text
        back = send("json", flipped.select_one("[name=value]").text, "flip:0")
        assert (back.select_one("[name=kind]")["value"], back.select_one("[name=value]").text.strip()) == ("value", "s")
        assert "no Size seen in this state" in send("value", "xl", "plan").text
        found = re.search(r"at=([0-9a-f-]{36})", send("value", "s", "fork").attrs["url"])
        assert found
        with saver_at(next(iter(client.app.book))[1].scratch_path) as saver:  # type: ignore[attr-defined]
            held = saver.get_tuple(config("t", found[1]))
    assert held is not None and held.checkpoint["channel_values"]["size"] is Size.SMALL


def test_a_date_that_is_none_is_refused_at_its_field(tmp_path: Path) -> None:
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:
        sent = {"path": "/day", "kind": "value", "value": "2026-02-30", "act": "fork"}
        answer = client.post(f"/f/edit.sqlite/fork?{AT}&path=/day", data=sent, headers=OURS)
        soup = BeautifulSoup(answer.text, "html.parser")
        assert answer.status_code == 422 and soup.select_one(".edit-error").text.startswith("2026-02-30 is no date.")
        assert soup.select_one("[name=value]").text.strip() == "2026-02-30"
