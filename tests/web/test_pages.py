from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from starlette.testclient import TestClient

from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.web.links import Place
from studio.web.server import read_ahead
from studio.web.views.timeline import badges
from tests.factories import folder_snapshot
from tests.web.conftest import client_of

PART = {"HX-Request": "true", "HX-Request-Type": "partial"}
TABS = ("changes", "conversation", "state", "tasks", "raw", "branches")
REFUND = "/f/support_agent.sqlite?thread=refund-4711"


def soup(client: TestClient, url: str, **headers: str) -> BeautifulSoup:
    answer = client.get(url, headers=headers)
    assert answer.status_code == 200, answer.text
    return BeautifulSoup(answer.text, "html.parser")


def words(found: object) -> str:
    return " ".join(found.get_text(" ", strip=True).split())  # type: ignore[attr-defined]


def test_every_page_of_a_file_obeys_the_policy_and_changes_nothing(shop: Path) -> None:
    before = folder_snapshot(shop.parent)
    session = Session.open(str(shop))
    with client_of(shop) as client:
        urls = ["/", "/f/shop.sqlite/threads", "/f/shop.sqlite/search?q=kettle", "/f/shop.sqlite/threads?q=nothing+like+it"]
        for thread in session.thread_ids():
            for row in session.tree(thread).rows():
                urls += [Place("shop.sqlite").at_address(row.checkpoint.address, tab=tab).url() for tab in TABS]
        for url in urls:
            text = client.get(url).text
            html = BeautifulSoup(text, "html.parser")
            assert not html.find_all(style=True) and not html.find_all("style"), url
            assert all(
                script.get("src", "").startswith("/static/") and not script.string for script in html.find_all("script")
            ), url
            assert not [name for tag in html.find_all(True) for name in tag.attrs if name.startswith(("on", "hx-on"))], url
            for tag in html.find_all(["a", "link", "script", "form", "img"]):
                target = tag.get("href") or tag.get("src") or tag.get("action") or "/"
                assert target.startswith(("/", "#")) and not target.startswith("//"), (url, target)
            ids = [tag["id"] for tag in html.find_all(id=True)]
            assert len(ids) == len(set(ids)), url
            assert "js:" not in text and "hx-vals='js" not in text
    session.close()
    assert folder_snapshot(shop.parent) == before


def test_the_same_address_gives_the_page_or_the_stage(page: TestClient) -> None:
    whole = client_text(page, REFUND)
    part = client_text(page, REFUND, **PART, **{"HX-Target": "div#stage"})
    restored = client_text(page, REFUND, **PART, **{"HX-Target": "body", "HX-History-Restore-Request": "true"})
    assert whole.startswith("<!doctype html>") and restored.startswith("<!doctype html>")
    assert "<html" not in part and 'id="centre"' in part and 'id="rows"' not in part


def client_text(client: TestClient, url: str, **headers: str) -> str:
    answer = client.get(url, headers=headers)
    assert "HX-Request" in answer.headers["vary"]
    return answer.text.strip()


def test_the_wrong_amount_is_explained_back_to_the_tool_that_wrote_it(page: TestClient) -> None:
    html = soup(page, REFUND + "&at=5&path=/refund/amount")
    why = words(html.select_one(".why"))
    assert "Why is this 499.0?" in why and "plan_refund wrote it" in why and "from its stored writes" in why
    assert "look_up_order" in why and "/order/total" in why and "looks related" in why
    assert html.select_one("#fork-form textarea").text.strip() == "499.0"


def test_changes_are_grouped_by_the_task_that_wrote_them(page: TestClient) -> None:
    html = soup(page, REFUND + "&at=4")
    titles = [words(title) for title in html.select(".group h2")]
    assert sorted(titles) == ["read_history", "read_policy"]
    bubble = soup(page, REFUND + "&at=5").select_one(".bubble.added")
    assert words(bubble).startswith("+ added assistant I will refund 499.00 EUR")


def test_the_timeline_is_a_tree_with_positions_and_one_row_selected(page: TestClient) -> None:
    html = soup(page, REFUND + "&at=5")
    rows = html.select("#rows[role=tree] a.row[role=treeitem]")
    assert len(rows) == 14 and [row["aria-posinset"] for row in rows] == [str(n) for n in range(1, 15)]
    assert {row["aria-setsize"] for row in rows} == {"14"}
    selected = [row for row in rows if row["aria-selected"] == "true"]
    assert len(selected) == 1 and selected[0]["tabindex"] == "0" and "plan_refund" in words(selected[0])
    assert {row["aria-level"] for row in rows} == {"1", "2"}


def test_references_that_people_type_are_understood(page: TestClient) -> None:
    for ref in ("5", "%235", "head~4", "1f11fae6-3ee5"):
        assert words(soup(page, f"{REFUND}&at={ref}").select_one("h1")) == "plan_refund", ref
    link = page.get("/?thread=refund-4711&at=5", follow_redirects=False)
    assert link.status_code == 303 and link.headers["location"].startswith("/f/support_agent.sqlite?thread=refund-4711&at=5")


def test_what_is_not_there_is_said_as_page_or_as_fragment(page: TestClient) -> None:
    for url in ("/f/support_agent.sqlite?thread=none", REFUND + "&at=nowhere", "/f/other.sqlite", "/nowhere"):
        answer = page.get(url)
        assert answer.status_code == 404 and "<h1>" in answer.text
        part = page.get(url, headers=PART)
        assert part.status_code == 404 and part.headers["hx-retarget"] == "#notices" and "<html" not in part.text
        assert part.headers["hx-push-url"] == "false"


def test_from_a_checkpoint_that_is_gone_the_first_way_on_is_its_thread(page: TestClient) -> None:
    ways = lambda url: [words(link) for link in BeautifulSoup(page.get(url).text, "html.parser").select(".ways-on a")]  # noqa: E731
    gone = REFUND + "&at=1f0bbd60-4d5b-6bff-8000-0a5d2ac8bf6d"
    assert ways(gone) == ["Thread refund-4711", "All threads of this file", "Start page"]
    first = BeautifulSoup(page.get(gone).text, "html.parser").select_one(".ways-on a")
    assert "reply" in page.get(str(first["href"])).text  # type: ignore[index]
    assert ways("/f/support_agent.sqlite?thread=none") == ["All threads of this file", "Start page"]
    assert ways("/f/none.sqlite") == ways("/nowhere") == ["Start page"]


def test_threads_are_filtered_by_any_word(page: TestClient) -> None:
    names = lambda query: [words(b) for b in soup(page, f"/f/support_agent.sqlite/threads?q={query}").select(".thread-head b")]  # noqa: E731
    assert "refund-4711" in names("") and names("espresso refund") == ["refund-4711"]
    assert names("mara+lindqvist") and names("no-such-word") == []


def test_search_marks_the_text_and_leads_to_it(page: TestClient) -> None:
    html = soup(page, "/f/support_agent.sqlite/search?in=refund-4711&q=PAY-4711")
    first = html.select_one(".hits a")
    assert words(first.select_one(".hit-row")) == "issue_refund", "a hit names what its row is called"
    assert words(first.select_one("mark")) == "PAY-4711" and "thread=refund-4711" in first["href"] and "path=" in first["href"]
    assert page.get(first["href"]).status_code == 200
    assert "No match for “nowhere-at-all”" in soup(page, "/f/support_agent.sqlite/search?q=nowhere-at-all").text


def test_head_and_foot_say_what_they_count(page: TestClient) -> None:
    html = soup(page, REFUND + "&at=5")
    assert words(html.select_one(".pane-head .dim")) == "14 checkpoints, 4 in 1 subgraph"
    assert words(html.select_one(".scrub-text")) == "6 of 10 on this branch"
    inner = soup(page, html.select('a.row[aria-level="2"]')[1]["href"])
    assert words(inner.select_one(".scrub-text")) == "2 of 4 in this subgraph"


def test_the_start_page_lists_every_file(shop: Path, support: Path) -> None:
    with client_of(shop, support) as client:
        html = soup(client, "/")
        assert [words(title) for title in html.select(".file-card h2")] == ["shop.sqlite", "support_agent.sqlite"]
        for link in html.select(".thread-list a"):
            assert client.get(link["href"]).status_code == 200


def test_a_pinned_base_and_the_tab_are_part_of_the_address(page: TestClient) -> None:
    html = soup(page, REFUND + "&at=5")
    pin = html.select_one("a.compared")
    pinned = soup(page, pin["href"])
    later = soup(page, REFUND + "&at=9&base=" + re.search(r"base=([^&]+)", pin["href"]).group(1))  # type: ignore[union-attr]
    assert words(later.select_one("a.compared")) == "vs #5 (pinned) ×" and words(pinned.select_one("a.compared")).startswith(
        "pinned · vs parent #4"
    )
    for tab in TABS[1:]:
        other = soup(page, REFUND + f"&at=9&tab={tab}&base=" + re.search(r"base=([^&]+)", pin["href"]).group(1))  # type: ignore[union-attr]
        assert words(other.select_one("a.compared")) == "#5 is pinned ×", "also where no diff is shown"
        assert "base=" not in other.select_one("a.compared")["href"], "one click unpins it"


def test_the_scrubber_goes_to_the_step_of_the_branch(page: TestClient) -> None:
    answer = page.get(REFUND.replace("?", "/step?") + "&at=9&step=3")
    assert answer.status_code == 200 and "classify" in words(BeautifulSoup(answer.text, "html.parser").select_one("h1"))


@pytest.mark.parametrize("kind", ["copy_id", "copy_python", "copy_test", "copy_link"])
def test_copies_are_plain_text(page: TestClient, kind: str) -> None:
    answer = page.get(REFUND.replace("?", f"/copy/{kind}?") + "&at=5")
    assert answer.headers["content-type"].startswith("text/plain") and "1f11fae6" in answer.text


def test_colours_follow_the_cookie_without_a_script(page: TestClient) -> None:
    from tests.web.conftest import OURS

    assert "data-theme" not in page.get("/").text
    page.post("/theme", headers=OURS, data={"theme": "dark", "here": "/f/support_agent.sqlite"})
    assert 'data-theme="dark"' in page.get(REFUND).text
    page.post("/theme", headers=OURS, data={"theme": "<script>", "here": "//evil.example"})
    assert 'data-theme="dark"' in page.get(REFUND).text


def test_the_thread_that_is_shown_first_is_read_while_the_browser_starts(support: Path, tmp_path: Path) -> None:
    with client_of(support) as client:
        session = next(iter(client.app.book))[1]
        read_ahead(client.app.book)
        asked: list[str] = []
        session.overlay.base.checkpoints = lambda thread, after=0: asked.append(thread) or []  # type: ignore[method-assign]
        assert client.get("/").status_code == 200 and not asked
    broken = tmp_path / "gone.sqlite"
    broken.write_bytes(support.read_bytes())
    with client_of(broken) as client:
        broken.unlink()
        read_ahead(client.app.book)


@pytest.mark.parametrize("harm", [Path.unlink, lambda path: path.write_bytes(b""), lambda path: path.write_bytes(b"junk" * 900)])
def test_a_file_that_is_lost_while_it_is_open_hides_no_other_and_comes_back(
    shop: Path, tmp_path: Path, harm: Callable[[Path], object]
) -> None:
    twin = tmp_path / "twin.sqlite"
    kept = shop.read_bytes()
    twin.write_bytes(kept)
    with client_of(shop, twin) as client:
        assert client.get("/").text.count("/f/twin.sqlite?thread=") == client.get("/").text.count("/f/shop.sqlite?thread=") > 1
        harm(twin)
        answer = client.get("/")
        assert answer.status_code == 200
        assert "/f/shop.sqlite?thread=paused" in answer.text and "/f/twin.sqlite?thread=" not in answer.text
        (told,) = re.findall(r'class="notice fail".*?</p>', answer.text)
        assert str(twin) in told
        assert client.get("/f/shop.sqlite?thread=paused").status_code == 200
        twin.write_bytes(kept)
        answer = client.get("/")
        assert "/f/twin.sqlite?thread=paused" in answer.text and "notice fail" not in answer.text


def test_only_the_head_of_the_thread_has_the_badge_of_a_head(support: Path, tmp_path: Path) -> None:
    session = Session.open(str(support), scratch=str(tmp_path / "s.sqlite"))
    for total in (1.0, 2.0):
        session.fork(ForkRequest(session.resolve("#4", "refund-4711"), patch=Patch({"/order/total": total})))
    found = [text for row in session.tree("refund-4711").rows() for text, _ in badges(row) if "head" in text]
    session.close()
    assert found == ["head"]
