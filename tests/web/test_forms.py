"""What a form may hold: every edit arrives whole, or the form is refused in words; nothing is shifted or left out in silence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypedDict

import pytest
from bs4 import BeautifulSoup
from langgraph.graph import START, StateGraph
from starlette.testclient import TestClient

from studio.session import Session
from tests.factories import config, saver_at
from tests.web.conftest import OURS, client_of

HTMX = {**OURS, "HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#stage"}
FORK = "/f/many.sqlite/fork?thread=t"
PREVIEW = "/f/many.sqlite/preview?thread=t"
PART = {"Content-Type": "multipart/form-data; boundary=b"}
FIELD = b'--b\r\nContent-Disposition: form-data; name="act"\r\n\r\n\xe9\r\n--b--\r\n'


class Many(TypedDict, total=False):
    items: dict[str, Any]
    text: str


@pytest.fixture(scope="module")
def many_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("many") / "many.sqlite"
    builder: StateGraph[Any] = StateGraph(Many)
    builder.add_node("fill", lambda state: {"items": {f"k{index}": index for index in range(80)}, "text": "short"})
    builder.add_edge(START, "fill")
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"text": "first"}, config("t"))
    return path


@pytest.fixture
def many(many_file: Path, own_data_folder: None) -> Iterator[TestClient]:
    with client_of(many_file) as client:
        yield client


def edits(count: int) -> dict[str, Any]:
    return {
        "path": [f"/items/k{index}" for index in range(count)],
        "kind": ["json"] * count,
        "value": [str(1000 + index) for index in range(count)],
        "act": "fork",
    }


def forks(path: Path) -> int:
    session = Session.open(str(path))
    found = sum(row.checkpoint.origin == "scratch" for row in session.tree("t").rows())
    session.close()
    return found


def said(text: str) -> str:
    return " ".join(BeautifulSoup(text, "html.parser").get_text(" ").split())


def test_as_many_edits_as_a_form_may_hold_are_all_made(many: TestClient) -> None:
    answer = many.post(FORK, data=edits(50), headers=OURS)
    assert answer.status_code == 200 and answer.text.count("1049") >= 1
    state = many.get(str(answer.url).split("?")[0] + "/copy/copy_value?" + str(answer.url).split("?")[1] + "&path=/items")
    assert '"k0": 1000' in state.text and '"k49": 1049' in state.text and '"k50": 50' in state.text


@pytest.mark.parametrize("count", [51, 60, 400])
def test_more_edits_than_a_form_may_hold_are_refused_not_dropped(many: TestClient, many_file: Path, count: int) -> None:
    before = forks(many_file)
    for url, headers in ((FORK, OURS), (FORK, HTMX), (PREVIEW, HTMX)):
        answer = many.post(url, data=edits(count), headers=headers)
        assert answer.status_code == 400 and ("50" in answer.text or "500" in answer.text), answer.text
        assert "<html" in answer.text if headers is OURS else answer.headers["hx-retarget"] == "#notices"
    assert forks(many_file) == before


def test_a_full_form_takes_no_further_value(many: TestClient) -> None:
    answer = many.post(FORK, data=edits(50) | {"act": "add", "add_path": "/items/k70"}, headers=HTMX)
    assert answer.status_code == 400 and "takes no more" in said(answer.text)
    assert many.post(FORK, data=edits(49) | {"act": "add", "add_path": "/items/k70"}, headers=HTMX).status_code == 200


@pytest.mark.parametrize(
    "lost",
    [{"path": ["/items/k0"]}, {"value": ["1"]}, {"kind": ["json"]}, {"kind": []}, {"value": []}, {"kind": ["json", "yaml"]},
     {"unset": ["2"]}, {"unset": ["x"]}, {"path": ["/items/k1", "/items/k1"]}],
)  # fmt: skip
def test_an_edit_that_lost_a_half_is_an_error_and_never_a_shift(many: TestClient, many_file: Path, lost: dict[str, Any]) -> None:
    before = forks(many_file)
    for url in (FORK, PREVIEW):
        answer = many.post(url, data=edits(2) | lost, headers=HTMX)
        assert answer.status_code == 400 and "this form" in said(answer.text).lower(), answer.text
    assert forks(many_file) == before


def test_an_answer_without_its_question_is_refused(page: TestClient) -> None:
    url = "/f/support_agent.sqlite/answer?thread=refund-4711"
    answer = page.post(url, data={"question": ["a", "b"], "answer": ["yes"], "act": "peek"}, headers=HTMX)
    assert answer.status_code == 400 and "needs its question" in said(answer.text)


@pytest.mark.parametrize("letter", ["x", "\u0416", '"', "\U0001f600"])
def test_a_text_of_five_megabytes_is_edited_like_any_other(many: TestClient, letter: str) -> None:
    text = letter * (5_000_000 // len(letter.encode()))
    sent = {"path": "/text", "kind": "text", "value": text, "act": "fork"}
    answer = many.post(FORK, data=sent, headers=OURS, follow_redirects=False)
    assert answer.status_code == 303, said(answer.text)[:500]
    stored = many.get(answer.headers["location"].replace("?", "/copy/copy_value?") + "&path=/text")
    assert stored.text == text


@pytest.mark.parametrize("unit", ["\u202e", "\u202ea", "\x1b[2J"])
def test_the_large_editor_of_a_text_that_acts_everywhere_opens_at_once(tmp_path: Path, unit: str) -> None:
    builder: StateGraph[Any] = StateGraph(Many)
    builder.add_node("fill", lambda state: {"text": unit * (1_000_000 // len(unit))})
    builder.add_edge(START, "fill")
    with saver_at(tmp_path / "bidi.sqlite") as saver:
        builder.compile(checkpointer=saver).invoke({"text": "first"}, config("t"))
    with client_of(tmp_path / "bidi.sqlite") as client:
        client.get("/f/bidi.sqlite?thread=t")
        started = time.process_time()
        answer = client.get("/f/bidi.sqlite/edit?thread=t&path=/text")
        assert answer.status_code == 200 and unit[0] not in answer.text
        assert time.process_time() - started < 2.5


def test_a_form_above_the_limit_is_refused_in_words_that_fit_the_page(many: TestClient) -> None:
    sent = {"path": "/text", "kind": "text", "value": "x" * 33_000_000, "act": "fork"}
    whole = many.post(FORK, data=sent, headers=OURS)
    assert whole.status_code == 413 and "32 MB" in said(whole.text) and "<html" in whole.text
    part = many.post(FORK, data=sent, headers=HTMX)
    assert part.status_code == 413 and "32 MB" in said(part.text) and part.headers["hx-retarget"] == "#notices"
    assert "<html" not in part.text


@pytest.mark.parametrize(
    ("kind", "body"),
    [("multipart/form-data", b"x"), ("multipart/form-data; boundary=b", b"--x\r\n"),
     (PART["Content-Type"] + "; charset=idna", FIELD),
     (PART["Content-Type"] + '; charset="\\0"', FIELD), (PART["Content-Type"] + "; charset=hex", FIELD),
     (PART["Content-Type"], FIELD.replace(b'name="act"', b'name="f"; filename="x"')),
     ("application/x-www-form-urlencoded", b"&" * 2000),
     ("application/x-www-form-urlencoded", b"a=b&" * 600), ("text/plain", b"x")],
)  # fmt: skip
def test_a_body_that_is_no_form_is_answered_in_words(many: TestClient, kind: str, body: bytes) -> None:
    answer = many.post(FORK, content=body, headers={**HTMX, "Content-Type": kind})
    assert answer.status_code < 500, answer.text
