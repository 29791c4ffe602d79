"""Stored text is hostile: nothing of it is markup, control or direction mark in any answer, and secrets stay masked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from bs4 import BeautifulSoup
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START, StateGraph
from starlette.testclient import TestClient

from studio.session import Session
from studio.web.links import Place
from tests.factories import config, saver_at
from tests.web.conftest import OURS, client_of

NASTY = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> \x1b[2J\x9b31m \u202egnp.exe\u202c \u2066x\u2069 \x00\x07 "
    "' \" ` {{7*7}} {% raw %}"
)
KEY = "sk-proj-abcdefghijklmnopqrstuvwx"
FORBIDDEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
LONG = "word " * 1_000_000


class Nasty(TypedDict, total=False):
    messages: list[Any]
    text: str
    nested: dict[str, Any]
    api_key: str
    long: str


@pytest.fixture(scope="module")
def nasty_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("nasty") / "<b>nasty'\".sqlite"
    node = "do" + NASTY.replace("\x00", "").replace("|", "").replace(":", "")
    builder: StateGraph[Any] = StateGraph(Nasty)
    builder.add_node(
        node,
        lambda state: {
            "messages": [HumanMessage(NASTY, id=NASTY)],
            "text": NASTY,
            "nested": {NASTY: {NASTY: [NASTY, KEY]}},
            "api_key": KEY,
            "long": LONG,
        },
    )
    builder.add_edge(START, node)
    builder.add_edge(node, END)
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"text": "first", "long": LONG[::-1]}, config(NASTY.replace("\x00", "")))
    return path


@pytest.fixture
def nasty(nasty_file: Path) -> Iterator[TestClient]:
    with client_of(nasty_file) as client:
        yield client


def places(path: Path, slug: str) -> list[Place]:
    session = Session.open(str(path))
    found = [
        Place(slug).at_address(row.checkpoint.address) for thread in session.thread_ids() for row in session.tree(thread).rows()
    ]
    session.close()
    return found


def slug_of(client: TestClient) -> str:
    return str(client.app.book.first())  # type: ignore[attr-defined]


def test_no_stored_byte_acts_in_any_page(nasty: TestClient, nasty_file: Path) -> None:
    slug = slug_of(nasty)
    urls = [
        "/",
        f"/f/{slug}/threads?q=alert",
        f"/f/{slug}/search?q=alert",
        f"/f/{slug}?thread=%3Cscript%3E{NASTY.encode().hex()}",
    ]
    for place in places(nasty_file, slug):
        urls += [place.to(tab=tab).url() for tab in ("changes", "conversation", "state", "tasks", "raw")]
        urls += [place.url(part) for part in ("timeline", "rows", "ways", "edit")]
        urls += [place.to(path="/nested").url(part) for part in ("node", "children", "edit")]
    for url in urls:
        answer = nasty.get(url)
        assert answer.status_code in (200, 404), (url, answer.text[:400])
        assert not FORBIDDEN.search(answer.text), url
        html = BeautifulSoup(answer.text, "html.parser")
        assert html.find("img") is None, url
        assert all(script.get("src", "").startswith("/static/") for script in html.find_all("script")), url
        assert not [name for tag in html.find_all(True) for name in tag.attrs if name.startswith("on")], url
        assert len(answer.content) < 2_000_000, url


def test_the_key_that_reveals_acts_on_the_selected_value_alone(nasty: TestClient, nasty_file: Path) -> None:
    last = places(nasty_file, slug_of(nasty))[-1]
    html = BeautifulSoup(nasty.get(last.to(tab="state", path="/api_key").url()).text, "html.parser")
    (link,) = html.select("[data-do=reveal]")
    assert "api_key" in str(link["hx-get"]) and KEY in nasty.get(str(link["hx-get"])).text


def test_secrets_are_masked_until_one_is_asked_for(nasty: TestClient, nasty_file: Path) -> None:
    last = places(nasty_file, slug_of(nasty))[-1]
    for tab in ("changes", "conversation", "state", "tasks", "raw"):
        assert KEY not in nasty.get(last.to(tab=tab).url()).text, tab
    assert KEY not in nasty.get(last.to(path="/api_key").url("edit")).text
    assert KEY not in nasty.get(last.to(path="/api_key").url("copy/copy_value")).text
    shown = nasty.get(last.to(path="/api_key").url("node", [("reveal", "1"), ("open", "0")])).text
    assert KEY in shown
    nested = nasty.get(last.to(path="/nested").url("node", [("open", "1")])).text
    assert KEY not in nested


def test_secrets_are_shown_when_the_studio_was_started_so(nasty_file: Path) -> None:
    with client_of(nasty_file, show_secrets=True) as client:
        last = places(nasty_file, slug_of(client))[-1]
        assert KEY in client.get(last.to(tab="state").url()).text


def test_a_masked_value_survives_an_edit_beside_it(nasty: TestClient, nasty_file: Path, own_data_folder: None) -> None:
    """The form holds `$masked`; sent back it stands for the stored value, so that nothing changes."""
    last = places(nasty_file, slug_of(nasty))[-1]
    html = BeautifulSoup(nasty.get(last.to(path="/api_key").url()).text, "html.parser")
    form = html.select_one("#fork-form")
    data = {
        "path": form.select_one("[name=path]")["value"],
        "kind": "json",
        "value": form.select_one("textarea").text,
        "act": "preview",
    }
    assert "$masked" in data["value"]
    answer = nasty.post(form["hx-post"].replace("/fork?", "/preview?"), data=data, headers={**OURS, "HX-Request": "true"})
    assert answer.status_code == 200 and "<ins" not in answer.text


def test_names_go_through_the_form_unchanged(nasty: TestClient, nasty_file: Path) -> None:
    session = Session.open(str(nasty_file))
    last = places(nasty_file, slug_of(nasty))[-1]
    state = session.state(last.address)
    key = next(iter(state.values["nested"]))
    from studio import tagged

    path = tagged.join_path(["nested", key, key, "0"])
    html = BeautifulSoup(nasty.get(last.to(path=path).url()).text, "html.parser")
    sent = {"path": html.select_one("#fork-form [name=path]")["value"], "kind": "json", "value": '"quiet"', "act": "fork"}
    answer = nasty.post(html.select_one("#fork-form")["action"], data=sent, headers=OURS, follow_redirects=False)
    session.refresh()
    forked = [row for row in session.tree(last.thread or "").rows() if row.checkpoint.origin == "scratch"]
    assert answer.status_code == 303 and len(forked) == 1
    assert session.state(forked[0].checkpoint.address).values["nested"][key][key][0] == "quiet"
    session.close()
