"""Whatever a request holds, the answer is an ordinary page, and nothing of the request acts in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from bs4 import BeautifulSoup
from starlette.testclient import TestClient

from tests.web.conftest import OURS, client_of

CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
HTMX = {"HX-Request": "true", "HX-Request-Type": "partial"}
FILE = "/f/support_agent.sqlite"
GOOD = {"thread": "refund-4711", "at": "5", "path": "/refund/amount"}
ODD = {
    "empty": b"",
    "superscript": "\u00b2".encode(),
    "long number": b"9" * 5000,
    "minus": b"-1",
    "2**63": b"9223372036854775808",
    "commas": b"1,,\xc2\xb2,99999999999999999999",
    "escape": b"\x1b[2J",
    "nul": b"a\0b",
    "c1": "\u009b31m".encode(),
    "bidi": "\u202eabc".encode(),
    "surrogate": b"\xed\xa0\x80",
    "bad utf-8": b"\xff\xfe",
    "bracket": b"http://[",
    "long": b"x" * 3000,
    "deep": b"/a" * 1500,
    "markup": b"<script>alert(1)</script>",
    "newline": b"a\r\nSet-Cookie: x=1",
    "head": b"head~99999999999999999999",
    "id": b"/messages/id:\xed\xa0\x80",
    "index": "/messages/\u00b2".encode(),
}
PLACE = ("thread", "at", "ns", "tab", "path", "base", "base_ns")
ROUTES = {
    "": (*PLACE, "before"),
    "/timeline": (*PLACE, "visible"),
    "/rows": ("thread", "at", "start"),
    "/step": ("thread", "at", "ns", "step"),
    "/threads": ("thread", "q", "in"),
    "/search": ("thread", "q", "in"),
    "/node": (*PLACE, "open", "reveal", "whole"),
    "/children": ("thread", "at", "path", "start"),
    "/edit": PLACE,
    "/ways": ("thread", "at"),
    "/run/none": ("thread", "follow"),
    "/copy/copy_id": ("thread", "at"),
    "/copy/copy_value": ("thread", "at", "path"),
    "/copy/copy_python": ("thread", "at"),
    "/copy/copy_test": ("thread", "at"),
    "/copy/copy_link": PLACE,
}
SHARED = ("act", "graph", "graph_choice", "graph_typed", "python", "trust", "agree", "planned")
EDITS = ("path", "kind", "value", "unset", "add_path", "goto", "mode", "as_node", "update", "also_node", "also_update",
         "overwrite", "new_thread", *SHARED)  # fmt: skip
UPDATES = ("as_node", "update", "also_node", "also_update", "overwrite")
ACTS = {"/preview": EDITS, "/fork": EDITS, "/answer": ("question", "answer", "new_thread", *SHARED), "/run/none/cancel": ("act",)}
PATHS = ("/", "/f/", "/f/{}/threads", "/f/{}/events", FILE + "/", FILE + "/copy/", FILE + "/run/", "/static/", "/static/css/")
HEADERS = ("Host", "Origin", "Content-Length", "Cookie", "Sec-Fetch-Site", "HX-Target", "Content-Type")
FORM = {**OURS, "Content-Type": "application/x-www-form-urlencoded"}
each_odd = pytest.mark.parametrize("odd", list(ODD.values()), ids=list(ODD))


@pytest.fixture(scope="module")
def odd_page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    samples = Path(__file__).resolve().parents[2] / "sample_threads"
    copy = tmp_path_factory.mktemp("odd") / "support_agent.sqlite"
    copy.write_bytes((samples / copy.name).read_bytes())
    with client_of(copy) as client:
        client.follow_redirects = False
        yield client


def fair(answer: object, asked: object) -> None:
    status, text = answer.status_code, answer.text  # type: ignore[attr-defined]
    assert status < 500, (asked, status, text[:1500])
    found = CONTROL.search(text)
    assert found is None, (asked, text[max(0, found.start() - 80) : found.end() + 20])
    assert "<script>alert" not in text, asked
    assert "set-cookie" not in answer.headers or "theme" in str(asked), asked  # type: ignore[attr-defined]


@each_odd
def test_no_parameter_breaks_a_page_or_acts_in_it(odd_page: TestClient, odd: bytes) -> None:
    value = quote(odd, safe="")
    for route, names in ROUTES.items():
        for name in names:
            query = "&".join(f"{key}={quote(text)}" for key, text in GOOD.items() if key != name)
            url = f"{FILE}{route}?{query}&{name}={value}"
            fair(odd_page.get(url), url)
    for url in (f"/?thread={value}", f"/?token={value}", f"/?{value}={value}", f"{FILE}/events/{value}"):
        fair(odd_page.get(url), url)


@each_odd
def test_no_part_of_a_path_breaks_a_page_or_acts_in_it(odd_page: TestClient, odd: bytes) -> None:
    value = quote(odd, safe="")
    for path in PATHS:
        url = path.format(value) if "{}" in path else path + value
        for headers in ({}, HTMX):
            fair(odd_page.get(url, headers=headers), url)


@each_odd
def test_no_field_breaks_a_form_or_acts_in_it(odd_page: TestClient, odd: bytes) -> None:
    query = "&".join(f"{key}={quote(text)}" for key, text in GOOD.items())
    value = quote(odd, safe="")
    usual = {"path": "/refund/amount", "kind": "json", "value": "4", "act": "add"}
    for route, names in ACTS.items():
        for name in names:
            for kind in ("json", "text") if name == "value" else ("json",):
                fields = usual | {"kind": kind} | ({"mode": "update"} if name in UPDATES else {})
                body = "&".join(f"{key}={quote(text)}" for key, text in fields.items() if key != name)
                answer = odd_page.post(f"{FILE}{route}?{query}", content=f"{body}&{name}={value}", headers={**FORM, **HTMX})
                fair(answer, (route, name, kind))
    for name in ("theme", "here"):
        fair(odd_page.post("/theme", content=f"{name}={value}", headers=FORM), ("theme", name))


@each_odd
@pytest.mark.parametrize("name", HEADERS)
def test_no_header_breaks_a_page_or_acts_in_it(odd_page: TestClient, odd: bytes, name: str) -> None:
    value = odd.replace(b"\r\n", b" ").replace(b"\0", b"")
    for asked in (OURS, HTMX | OURS):
        headers = [(key.encode(), text.encode()) for key, text in asked.items() if key != name] + [(name.encode(), value)]
        fair(odd_page.get(FILE, headers=headers), (name, odd))
        fair(odd_page.post("/theme", headers=headers), (name, odd, "theme"))


def test_an_odd_name_that_no_folder_takes_is_not_there(odd_page: TestClient) -> None:
    assert odd_page.get("/static/" + "x" * 300).status_code == 404
    assert odd_page.get(f"{FILE}?thread=%ED%A0%80").status_code == 404


def test_a_page_of_no_origin_is_refused(odd_page: TestClient) -> None:
    for origin in ("http://[", "http://]:1", "http://127.0.0.1]", "[", "null]"):
        assert odd_page.post("/theme", headers={**OURS, "Origin": origin}, data={"theme": "dark"}).status_code == 403


@pytest.mark.parametrize("number", ["%C2%B2", "9" * 5000, "-1", "x", "%D9%A3"])
def test_what_is_no_number_is_refused_by_its_name(odd_page: TestClient, number: str) -> None:
    for part, name in (("", "before"), ("/timeline", "visible"), ("/rows", "start"), ("/step", "step"), ("/children", "start")):
        answer = odd_page.get(f"{FILE}{part}?thread=refund-4711&path=/refund&{name}={number}")
        assert answer.status_code == 400 and f"{name} must be a whole number" in answer.text, (part, answer.text)


def test_an_error_page_speaks_in_sentences(page: TestClient) -> None:
    found = BeautifulSoup(page.get("/f/support_agent.sqlite?thread=refund-4711&at=nowhere").text, "html.parser")
    heading = found.select_one("h1")
    assert heading is not None and heading.text.startswith("No checkpoint 'nowhere' in thread")
