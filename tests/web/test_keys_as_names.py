"""A well-known key that stands as a name is masked in what the page shows; its links, fields and editors lead where they did."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from bs4 import BeautifulSoup, Tag
from starlette.testclient import TestClient

from studio.web.names import without_keys
from tests.keyed import BESIDE, CHANNEL, IN_MAP, KEYS, THREAD, make
from tests.web.conftest import OURS, client_of

FILE = "/f/named.sqlite"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return make(tmp_path / "named.sqlite")


@pytest.fixture
def page(file: Path) -> Iterator[TestClient]:
    with client_of(file) as client:
        yield client


def shown(html: str) -> str:
    """What a person sees or hears of a page: texts, titles and labels; no addresses and no fields."""
    soup = BeautifulSoup(html, "html.parser")
    for field in soup.select("textarea"):
        field.decompose()
    labels = [
        str(tag[name])
        for tag in soup.find_all(True)
        for name in ("title", "aria-label", "placeholder", "alt")
        if tag.has_attr(name)
    ]
    return "\n".join([soup.get_text(), *labels])


ADDRESSES = [
    "",
    *(f"&at=2&tab={tab}" for tab in ("changes", "conversation", "state", "tasks", "raw", "graph")),
    "&at=3",
    f"&at=3&tab=state&path=/found/{quote(IN_MAP)}",
    f"&at=3&tab=state&path=/{quote(CHANNEL)}",
    "&at=3&tab=branches&left=2",
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_page_shows_one(page: TestClient, address: str) -> None:
    found = page.get(f"{FILE}?thread={THREAD}{address}")
    assert found.status_code == 200
    assert not [key for key in (*KEYS, BESIDE) if key in shown(found.text)]
    assert "[masked]" in shown(found.text)


@pytest.mark.parametrize("part", ["/", "/f/named.sqlite/threads", f"{FILE}/search?q=vase&in={THREAD}", f"{FILE}/search?q=live"])
def test_no_list_shows_one(page: TestClient, part: str) -> None:
    for headers in ({}, {"HX-Request": "true", "HX-Request-Type": "partial"}):
        found = page.get(part, headers=headers)
        if found.status_code == 404:
            pytest.skip("no such page")
        assert not [key for key in KEYS if key in shown(found.text)]


def test_links_lead_to_what_they_name(page: TestClient) -> None:
    soup = BeautifulSoup(page.get(f"{FILE}?thread={THREAD}&at=3&tab=state").text, "html.parser")
    links = [str(tag["href"]) for tag in soup.select("a[href]") if quote(CHANNEL) in str(tag["href"])]
    assert links
    there = page.get(links[0])
    assert there.status_code == 200 and "vase" in there.text and THREAD not in shown(there.text)


def test_an_editor_changes_what_it_names(page: TestClient) -> None:
    place = f"thread={THREAD}&at=3"
    typed = page.post(f"{FILE}/fork?{place}", data={"act": "add", "add_path": f"/{CHANNEL}"}, headers=OURS)
    form = BeautifulSoup(typed.text, "html.parser").select_one("#fork-form")
    assert isinstance(form, Tag) and CHANNEL not in shown(str(form)) and "a vase" in str(form.select("textarea"))
    fields = {str(tag["name"]): str(tag["value"]) for tag in form.select("input[type=hidden][name]")}
    assert fields["path"] == f"/{CHANNEL}"
    data = {**fields, "value": "a bowl", "act": "fork"}
    made = page.post(f"{FILE}/fork?{place}", data=data, headers=OURS)
    assert made.status_code == 200 and "#s1" in made.text
    assert "a bowl" in page.get(f"{FILE}?thread={THREAD}&at=s1&tab=state").text


def test_a_revealed_value_is_shown_and_so_is_all_with_show_secrets(page: TestClient, file: Path) -> None:
    node = f"{FILE}/node?thread={THREAD}&at=3&tab=state&path=/found/token"
    assert BESIDE not in page.get(node).text
    assert BESIDE in page.get(f"{node}&reveal=1").text
    with client_of(file, show_secrets=True) as open_page:
        told = shown(open_page.get(f"{FILE}?thread={THREAD}&at=3&tab=state").text)
        assert all(key in told for key in (THREAD, CHANNEL, IN_MAP))


@pytest.mark.parametrize("head", ["", "sk-l", IN_MAP])
def test_a_mark_in_the_middle_of_one_does_not_show_its_rest(head: str) -> None:
    marked = f'<p>x {head}<mark>{IN_MAP[len(head) :]}</mark>-and <a href="/{IN_MAP}" title="{IN_MAP}">{IN_MAP}</a></p>'
    told = without_keys(marked)
    assert f'href="/{IN_MAP}"' in told and told.count(IN_MAP) == 1
    assert not re.search(r"live|0123", shown(told))


def test_a_page_without_keys_is_left_as_it_is() -> None:
    text = '<!doctype html><p title="a > b">task-list <b>sk-</b></p><textarea>sk-live-0123456789abcdef0123</textarea>'
    assert without_keys(text) == text
