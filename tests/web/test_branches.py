"""The branches tab: two branches side by side, the same as `studio compare` says, a page at a time, masked and gated."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from bs4 import BeautifulSoup, Tag
from starlette.testclient import TestClient

from studio.model import Address
from studio.requests import ForkRequest, Patch
from studio.session import Session
from tests.branching import SECRET, make_talk
from tests.web.conftest import client_of

REFUND = "/f/support_agent.sqlite?thread=refund-4711"
PART = {"HX-Request": "true"}


def read(page: TestClient, url: str, **headers: str) -> BeautifulSoup:
    answer = page.get(url, headers=headers)
    assert answer.status_code == 200, answer.text
    return BeautifulSoup(answer.text, "html.parser")


def words(found: Tag | None) -> str:
    assert found is not None
    return " ".join(found.get_text(" ").split())


def session_of(page: TestClient) -> Session:
    session: Session = next(iter(page.app.book))[1]  # type: ignore[attr-defined]
    return session


def at(address: Address) -> str:
    return f"&at={address.checkpoint_id}"


def test_any_two_checkpoints_are_chosen_by_what_a_person_calls_them(page: TestClient) -> None:
    html = read(page, f"{REFUND}&at=%239&left=%236&tab=branches")
    assert [words(one) for one in html.select(".end h2")] == ["#6 review asked → answered", "#9 reply head"]
    assert words(html.select_one(".ends-line")) == "#9 reply comes 3 supersteps after #6 review"
    assert [words(one.select_one(".beside-sign")) for one in html.select(".pair")] == ["▸ only right"] * 3
    form = html.select_one(".choose-form")
    assert form is not None
    asked = "&".join(f"{field['name']}={quote(str(field['value']))}" for field in form.select("input"))
    assert words(read(page, f"/f/support_agent.sqlite?{asked}").select_one(".ends-line")) == words(html.select_one(".ends-line"))
    swapped = read(page, str(html.select_one(".swap")["href"]))  # type: ignore[index]
    assert [words(one) for one in swapped.select(".end h2")] == ["#9 reply head", "#6 review asked → answered"]
    assert page.get(f"{REFUND}&at=%239&left=nowhere&tab=branches").status_code == 404


def test_the_pinned_checkpoint_is_the_left_one(page: TestClient) -> None:
    pin = read(page, f"{REFUND}&at=6").select_one("a.compared")
    assert pin is not None
    base = str(pin["href"]).partition("base=")[2].partition("&")[0]
    html = read(page, f"{REFUND}&at=9&tab=branches&base={base}")
    assert words(html.select_one(".end.left")).startswith("Left · pinned #6 review")
    assert "base=" in str(html.select_one(".tabs a")["href"]), "leaving the tab keeps the pin"  # type: ignore[index]
    assert "left=" not in str(html.select_one(".tabs a")["href"])  # type: ignore[index]


def test_a_thread_with_one_branch_says_how_to_get_another(page: TestClient) -> None:
    html = read(page, f"{REFUND}&at=9&tab=branches")
    assert "This thread has one branch" in words(html.select_one("#body"))
    assert all("Branches" not in words(tab) for tab in read(page, f"{REFUND}&at=9").select(".tabs a:not([hidden])"))


def test_a_fork_into_a_new_thread_stands_beside_its_origin(page: TestClient) -> None:
    session = session_of(page)
    origin = session.resolve("#4", "refund-4711")
    fork = session.fork(ForkRequest(origin, patch=Patch({"/order/total": 49.9}), new_thread="trial")).address
    html = read(page, f"/f/support_agent.sqlite?thread=trial{at(fork)}&tab=branches")
    assert words(html.select_one(".end.left .dim")).startswith("in thread refund-4711")
    assert words(html.select_one(".ends-line")) == "They part after #3 look_up_order"
    first = html.select(".pair")[0]
    assert [words(line) for line in first.select(".wrote")] == ["/order/total 499.0", "/order/total 49.9"]
    assert words(html.select_one(".first-line")).endswith("/order/total 499.0 49.9")
    back = str(html.select_one(".end.left h2 a")["href"])  # type: ignore[index]
    assert "thread=refund-4711" in back and page.get(back).status_code == 200


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_talk(tmp_path_factory.mktemp("talk") / "talk.sqlite", turns=130, rude_from=10)


def test_long_branches_come_a_page_at_a_time_with_what_is_the_same_folded(talk: Path) -> None:
    with client_of(talk) as page:
        html = read(page, "/f/talk.sqlite?thread=talk&tab=branches")
        assert len(html.select(".pair")) <= 40 and len(html.select(".talk")) <= 40
        steps, chats = (html.select_one(f"{where} .fold-line:last-child a") for where in ("#b-steps", "#b-talk"))
        assert "more superstep" in words(steps) and "more message" in words(chats)
        seen = len(html.select(".pair"))
        while steps is not None:
            more = read(page, str(steps["hx-get"]), **PART)
            seen += len(more.select(".pair"))
            steps = more.select_one(".fold-line:last-child a")
        assert seen >= 120
        folded = next(one for one in html.select("#b-talk .fold-line a") if "both have" in words(one))
        opened = read(page, str(folded["hx-get"]), **PART)
        assert words(folded).startswith("▸ 11 messages") and len(opened.select(".talk.same")) == 11
        assert page.get(str(folded["hx-get"])).status_code == 200, "a link that is opened by itself shows the page"


def test_words_that_differ_are_marked_on_both_sides_and_what_only_one_side_said_stands_alone(talk: Path) -> None:
    with client_of(talk) as page:
        html = read(page, "/f/talk.sqlite?thread=talk&tab=branches")
        changed = html.select_one(".talk.changed")
        assert changed is not None
        left, right = changed.select(".said")
        assert [one.name for one in left.select("del, ins")] and {one.name for one in left.select(".bubble-text *")} == {"del"}
        assert {one.name for one in right.select(".bubble-text *")} == {"ins"}
        assert "This is answer 10, given" in words(left) and "This is answer 10, given" in words(right)


def test_no_secret_stands_in_clear_and_no_stored_text_acts(tmp_path: Path) -> None:
    path = make_talk(tmp_path / "short.sqlite", turns=3, rude_from=1)
    with client_of(path) as page:
        answer = page.get("/f/short.sqlite?thread=talk&tab=branches")
        html = BeautifulSoup(answer.text, "html.parser")
        assert "Sorry." in words(html.select_one(".talk.right, .talk.left")) and "[masked]" in answer.text
        assert SECRET not in answer.text and "\u202e" not in answer.text and "\x1b" not in answer.text
        assert not html.select("#centre script")
        assert "<script>alert(1)" not in answer.text
