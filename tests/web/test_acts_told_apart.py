"""The three acts in the fork box: told apart, previewed, refused with the reason, into new threads too."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from studio.session import Session
from tests.asnode.project import make_project
from tests.factories import folder_snapshot
from tests.web.conftest import OURS, client_of
from tests.web.test_acts import HTMX, form_of, read, send

FILE = "/f/shop.sqlite"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("made") / "project")


@pytest.fixture
def shop(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made.parent, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "project" / "shop.sqlite"


@pytest.fixture
def page(shop: Path, own_data_folder: None) -> Iterator[TestClient]:
    with client_of(shop) as client:
        yield client


def at(thread: str, number: int | str) -> str:
    return f"{FILE}?thread={thread}&at={number}"


def promise_of(page: TestClient, url: str, **fields: Any) -> Any:
    """What stands under the form after the graph was asked once, as a person does by its button."""
    form = form_of(read(page.get(url).text))
    answer = send(page, form, "plan", graph_typed="graph", **fields)
    assert answer.status_code in (200, 422), answer.text
    return read(answer.text).select_one("#promise")


def nodes(html: Any) -> dict[str, str]:
    return {label.b.text: label.text for label in html.select(".writer")}


def test_each_act_says_what_it_does(page: TestClient) -> None:
    html = read(page.get(at("graph", 4)).text)
    assert [label.text.strip() for label in html.select(".act")] == ["Set the state", "Write as a node", "The same point again"]
    assert "none of your code runs" in html.select_one(".act-words.for-set").text
    assert "reducers take them in" in html.select_one(".act-words.for-update").text


def test_the_nodes_come_best_first_each_with_what_would_run(page: TestClient) -> None:
    html = read(page.get(FILE + "/writers?thread=graph&at=4").text)
    found = nodes(html)
    assert next(iter(found)) == "join"
    assert "Then fan runs." in found["cheap"]
    assert "what this file has seen" in html.text
    assert html.select_one(".writer input[checked]").find_parent("label").b.text == "join"


def test_of_nodes_that_ran_together_none_is_chosen_and_it_is_said_why(page: TestClient) -> None:
    html = read(page.get(FILE + "/writers?thread=graph&at=3").text)
    assert not html.select(".writer input[checked]")
    assert "wrote this checkpoint together" in html.text


def test_what_the_graph_makes_of_the_values_waits_until_a_person_asks(page: TestClient, shop: Path) -> None:
    (shop.parent / "shop_graphs.py").write_text("raise SystemExit('loaded')", encoding="utf-8")
    form = form_of(read(page.get(at("graph", 4)).text))
    shown = page.post(FILE + "/preview?thread=graph&at=4", data={"mode": "update", "as_node": "join", "update": '{"price": 2.0}'},
                      headers={**HTMX, **OURS})  # fmt: skip
    assert "Show what your graph makes of it" in shown.text
    assert "loaded" not in shown.text
    assert form is not None


def test_the_preview_shows_what_the_reducers_make_and_stores_nothing(page: TestClient, shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    update = '{"notes": ["by hand"], "price": 99.0}'
    shown = promise_of(page, at("graph", 4), mode="update", as_node="cheap", update=update)
    text = shown.text
    assert "Write as cheap" in text
    assert "/notes/4" in text and "by hand" in text
    assert "Runs fan" in text
    assert [label.code.text for label in shown.select(".merges label")] == ["notes"]
    assert {name: kept for name, kept in folder_snapshot(shop.parent).items() if "__pycache__" not in name} == before
    assert not list(Path(Session.open(str(shop)).scratch_path).parent.glob("shop-*"))


def test_a_tick_replaces_a_channel_past_its_reducer(page: TestClient, shop: Path) -> None:
    fields = {"mode": "update", "as_node": "cheap", "update": '{"notes": ["by hand"]}', "overwrite": "notes"}
    shown = promise_of(page, at("graph", 4), **fields)
    assert shown.select_one(".merges input").has_attr("checked")
    form = form_of(read(page.get(at("graph", 4)).text))
    answer = send(page, form, "fork", OURS, **fields)
    assert answer.status_code == 303, answer.text
    session = Session.open(str(shop))
    new = next(row for row in session.tree("graph").rows() if row.checkpoint.origin == "scratch")
    assert session.state(new.checkpoint.address).values["notes"] == ["by hand"]
    assert new.label == "update as cheap"
    session.close()


def test_values_edited_above_go_in_with_their_channel(page: TestClient, shop: Path) -> None:
    url = at("graph", 4) + "&path=/price"
    shown = promise_of(page, url, mode="update", as_node="cheap", value="3.5")
    assert "/price" in shown.text and "3.5" in shown.text
    both = promise_of(page, url, mode="update", as_node="cheap", value="3.5", update='{"price": 1.0}')
    assert "one of the two places" in both.text


def test_several_nodes_write_in_one_superstep(page: TestClient, shop: Path) -> None:
    form = form_of(read(page.get(at("graph", 2)).text))
    more = send(page, form, "more", mode="update", as_node="web", update='{"notes": ["W"]}')
    assert read(more.text).select_one("select[name=also_node], input[name=also_node]") is not None
    pair = {"mode": "update", "as_node": "web", "update": '{"notes": ["W"]}', "also_node": "docs", "also_update": '{"total": 5}'}
    shown = promise_of(page, at("graph", 2), **pair)
    assert "Write as web and docs, in one superstep" in shown.text
    assert "Runs join" in shown.text
    unnamed = promise_of(page, at("graph", 2), **{**pair, "also_node": ""})
    assert "Name a node for each of them" in unnamed.text


def test_the_same_point_again_never_drops_an_edit_in_silence(page: TestClient) -> None:
    shown = promise_of(page, at("graph", 4) + "&path=/price", mode="copy", value="3.5")
    assert "Choose “Set the state”" in shown.text


def test_an_act_in_a_new_thread_is_linked_both_ways(page: TestClient) -> None:
    form = form_of(read(page.get(at("graph", 4)).text))
    partly = send(page, form, "fork", mode="copy", new_thread="mine")
    assert "thread=mine" in partly.headers["hx-redirect"]
    new = read(page.get(partly.headers["hx-redirect"]).text)
    back = new.select_one(".point-facts .kin")
    assert back is not None and back.text == "#4 of graph"
    old = read(page.get(back["href"]).text)
    assert [link.text for link in old.select(".point-facts .kin")] == ["#s1 of mine"]


def test_a_question_is_answered_in_a_new_thread(page: TestClient) -> None:
    html = read(page.get(at("asking", "head")).text)
    form = html.select_one(".answer-form")
    assert form is not None
    fields = {"question": form.select_one("input[name=question]")["value"], "answer": "yes", "graph_typed": "asking",
              "new_thread": "answered"}  # fmt: skip
    asked = page.post(str(form["action"]), data={**fields, "act": "answer"}, headers=OURS)
    hidden = {one["name"]: one.get("value", "") for one in read(asked.text).select(".answer-form .promise input")}
    started = page.post(
        str(form["action"]), data={**fields, **hidden, "act": "answer", "planned": "1"}, headers=OURS, follow_redirects=False
    )
    assert started.status_code == 303, started.text
    assert "thread=answered" in started.headers["location"]
    for _ in range(200):
        if re.search(r"Done", read(page.get(started.headers["location"]).text).select_one("#run").text):
            return
        time.sleep(0.1)
    raise AssertionError("the run did not end")
