"""An agent's transcript in the browser: the chat, its files, its todos, the strip of tokens, the rows of the timeline."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from starlette.testclient import TestClient

from tests.reading.oven import KEY, digest, oven, png
from tests.stores.transcripts.sessions import SESSION, Book, call
from tests.web.conftest import client_of
from tests.web.test_browser import CHROMIUM, REQUIRED, browser, served, visit

__all__ = ["browser"]
FILE = f"/f/{SESSION}.jsonl"
HTMX = {"HX-Request": "true"}


@pytest.fixture
def page(tmp_path: Path) -> Iterator[TestClient]:
    with client_of(oven().write(tmp_path / "home")) as client:
        yield client


def soup(client: TestClient, address: str, **headers: str) -> BeautifulSoup:
    answer = client.get(address, headers=headers)
    assert answer.status_code == 200, answer.text
    return BeautifulSoup(answer.text, "html.parser")


def words(found: Tag | None) -> str:
    assert found is not None
    return " ".join(found.get_text(" ").split())


def test_a_transcript_opens_as_a_chat_that_ends_at_the_turn_in_view(page: TestClient) -> None:
    answer = page.get("/", follow_redirects=True)
    assert "tab=conversation" in str(answer.url)
    chat = BeautifulSoup(answer.text, "html.parser")
    assert words(chat.select_one(".tabs [aria-current]")) == "Chat"
    assert [words(one) for one in chat.select("#chat .beat-number")] == [f"#{n}" for n in (0, 1, 2, 3, 4, 5, 6, 9, 10, 11, 12)]
    assert words(chat.select_one(".beat.current .beat-number")) == "#12"
    earlier = soup(page, f"{FILE}?at=2&tab=conversation")
    assert words(earlier.select("#chat .beat-number")[-1]) == words(earlier.select_one(".beat.current .beat-number")) == "#2"


def test_a_session_is_called_by_its_title_and_is_read_first_from_every_list(tmp_path: Path) -> None:
    book = oven()
    book.note(type="custom-title", customTitle=f"Bake it right {KEY}")
    with client_of(book.write(tmp_path / "home")) as page:
        listed = soup(page, f"{FILE}/threads")
        row = listed.select_one(".thread-list a")
        assert row is not None and "tab=conversation" in str(row["href"])
        chat = soup(page, str(row["href"]))
        crumb = chat.select_one("#crumb-thread")
        assert words(crumb) == words(row.select_one("b")) and words(crumb).startswith("Bake it right ")
        assert KEY not in str(chat) and crumb is not None and SESSION in str(crumb["title"]), "its id is a hover away"
        assert not chat.select(".crumb-tables") and "Tables of this file" not in words(listed.body)
        assert "no tables" in words(soup(page, f"{FILE}/tables").main)


def test_answers_are_prose_with_code_and_tables_and_no_link_leads_out(page: TestClient) -> None:
    beat = soup(page, f"{FILE}?at=2&tab=conversation").select_one("#beat-2")
    assert beat is not None
    assert words(beat.select_one(".prose .t-strong")) == "exact"
    assert [words(one) for one in beat.select("th, td")][:4] == ["way", "risk", "approx", "low"]
    assert words(beat.select_one(".code .t-keyword")) == "def"
    assert "(https://docs.example.org/approx)" in words(beat)
    assert not [one for one in beat.select("a, img, form, iframe") if not one.get("href", "").startswith("/f/")]


def test_a_call_unfolds_to_its_arguments_its_diff_and_its_result(page: TestClient) -> None:
    beat = soup(page, f"{FILE}?at=2&tab=conversation").select_one("#beat-2")
    assert beat is not None
    made, refused = beat.select("details.call")
    assert words(made.select_one("summary")) == "Edit test_oven.py +2 −1 ✓ answered"
    rows = [(row["class"], [words(cell) for cell in row.select("td")]) for row in made.select(".diff tr:not(.d-hunk)")]
    assert rows == [
        (["d-remove"], ["4", "", "−", "assert 230"]),
        (["d-add"], ["", "4", "+", "# near"]),
        (["d-add"], ["", "5", "+", "assert True"]),
    ]
    assert "not applied" in words(refused) and "File has not been read yet." in words(refused)
    assert refused.has_attr("open") and made.has_attr("open")
    folded = soup(page, f"{FILE}?at=3&tab=conversation").select("#beat-2 details.call")
    assert not any(one.has_attr("open") for one in folded)


def test_errors_compactions_and_open_calls_are_told_apart(page: TestClient) -> None:
    chat = soup(page, f"{FILE}?tab=conversation")
    assert words(chat.select_one("#beat-4 .uttered.failed")) == "assistant service error API Error: 529"
    assert words(chat.select_one("#beat-3 .k-retry summary")) == "service error"
    assert words(chat.select_one("#beat-5 .k-compacted.bare")) == "context compacted · manual compaction, 98,123 → 4,200 tokens"
    assert "Floats" in words(chat.select_one("#beat-5 details.k-summary"))
    assert "no answer" in words(chat.select_one("#beat-12 .call"))


def test_the_timeline_says_what_was_said_and_what_failed(page: TestClient) -> None:
    rows = {words(row.select_one(".row-sub")).split()[0]: row for row in soup(page, f"{FILE}?tab=conversation").select(".row")}
    assert words(rows["#0"].select_one(".row-title")) == "Fix the flaky test in test_oven.py."
    assert words(rows["#2"]).startswith("Edit ×2 test_oven.py 1 failed #2")
    assert "+2 −1" in words(rows["#2"])
    assert words(rows["#4"].select_one(".badge")) == "service error"
    assert words(rows["#8"].select_one(".badge")) == "abandoned"
    assert words(rows["#12"].select_one(".badge")) == "head"


def test_the_strip_lights_the_turn_in_view(page: TestClient) -> None:
    strip = soup(page, f"{FILE}?at=2&tab=conversation").select_one(".strip")
    assert strip is not None
    assert [one["href"].rpartition("at=")[2][:8] for one in strip.select(".bar.here")] == ["a0000004"]
    assert len(strip.select(".bar.later")) == 6
    totals = {words(one.dt): words(one.dd) for one in strip.select("dl > div")}
    assert totals == {"context": "112", "input": "224", "cached": "89 %", "output": "20"}


def test_files_list_what_happened_and_one_file_shows_its_edits(page: TestClient) -> None:
    view = soup(page, f"{FILE}?tab=files")
    rows = {words(row.select_one(".file-name b")): row for row in view.select(".file-row")}
    assert list(rows) == ["test_oven.py", "oven.py"]
    assert [mark["title"] for mark in rows["test_oven.py"].select(".touched")] == [
        "#1 read",
        "#2 edited +2 −1",
        "#11 edited +1 −1",
    ]
    one = soup(page, str(rows["test_oven.py"].select_one(".file-name")["href"]))  # type: ignore[index]
    events = one.select(".file-event")
    assert [words(event.select_one(".file-event-head")) for event in events] == ["#1 read", "#2 edited +2 −1", "#11 edited +1 −1"]
    assert [words(cell) for cell in events[2].select(".diff tr td:last-child")] == ["a", "b", "B", "c"]
    assert words(soup(page, f"{FILE}?tab=files&at=0").select_one(".empty-card")).startswith("No file was read or changed")


def test_todos_stand_as_at_the_turn_with_the_way_there(page: TestClient) -> None:
    at = soup(page, f"{FILE}?tab=todos&at=3")
    assert [words(line) for line in at.select(".todo-card > .todo-lines li")] == [
        "☑ Fix the test done", "◐ Run the suite in progress", "☐ Tell open",
    ]  # fmt: skip
    now = soup(page, f"{FILE}?tab=todos")
    assert [words(step.select_one(".todo-step-head")) for step in now.select(".todo-step")] == ["#10 2 of 3", "#3 1 of 3"]
    assert "✓ done Run the suite" in words(now.select_one(".todo-step"))


def test_a_database_has_no_tabs_for_files_and_todos_and_says_so(support: Path) -> None:
    with client_of(support) as client:
        tabs = soup(client, "/f/support_agent.sqlite").select(".tabs a")
        assert {words(tab) for tab in tabs if tab.has_attr("hidden")} >= {"Files", "Todos"}
        assert "no agent's transcript" in words(soup(client, "/f/support_agent.sqlite?tab=files").select_one("#body"))


def test_a_picture_comes_on_demand_with_the_type_of_its_bytes(page: TestClient) -> None:
    chat = soup(page, f"{FILE}?at=7&tab=conversation")
    shown = chat.select_one("#beat-7 .picture a")
    assert shown is not None and not chat.select("img")
    answer = page.get(str(shown["href"]))
    assert (answer.content, answer.headers["content-type"]) == (png(), "image/png")
    assert (
        answer.headers["x-content-type-options"] == "nosniff"
        and "default-src 'none'" in answer.headers["content-security-policy"]
    )
    frame = soup(page, str(shown["hx-get"]), **HTMX)
    assert frame.img is not None and frame.img["src"] == shown["href"]
    assert page.get(f"{FILE}/picture?at=6&sha256={digest(png())}").status_code == 404
    assert page.get(f"{FILE}/picture?at=7&sha256=../../x").status_code == 404


def test_what_is_hostile_stays_text_and_secrets_stay_masked(page: TestClient) -> None:
    for tab in ("conversation", "files", "todos", "changes"):
        for at in ("3", "8"):
            text = page.get(f"{FILE}?at={at}&tab={tab}").text
            assert "<script>alert" not in text and "<b>oven</b>" not in text
            assert KEY not in text and not set(text) & {"\x1b", "\u202e"}
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page.get(f"{FILE}?at=8&tab=conversation").text
    assert "\\x1b[31mFAILED" in page.get(f"{FILE}?at=3&tab=conversation").text


def test_a_huge_answer_is_shown_in_part_and_whole_on_demand(tmp_path: Path) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer("word " * 1_000_000, call("c", "Bash", command="cat all"))
    book.result("c", "line\n" * 100_000)
    with client_of(book.write(tmp_path / "home")) as client:
        answer = client.get(f"{FILE}?tab=conversation")
        assert len(answer.text) < 200_000
        chat = BeautifulSoup(answer.text, "html.parser")
        hrefs = [str(one["hx-get"]) for one in chat.select("[hx-get*='/said?']")]
        assert len(hrefs) == 2
        sizes = [len(words(soup(client, href, **HTMX))) for href in hrefs]
        assert min(sizes) > 400_000
        assert client.get(f"{FILE}/said?at=1&call=none").status_code == 404


def test_ten_thousand_turns_come_a_window_at_a_time(tmp_path: Path) -> None:
    book = Book()
    for number in range(5_000):
        book.prompt(f"ask {number}")
        book.answer(f"tell {number}")
    with client_of(book.write(tmp_path / "home")) as client:
        chat = soup(client, f"{FILE}?tab=conversation")
        assert len(chat.select(".beat")) == 30 and len(chat.select(".strip .bar")) <= 160
        link = chat.select_one(".chat-earlier a")
        assert words(link) == "9,970 earlier turns"
        more = soup(client, str(link["hx-get"]), **HTMX)  # type: ignore[index]
        assert [words(one) for one in more.select(".beat-number")][-1] == "#9969" and len(more.select(".beat")) == 30
        assert not more.select("#chat")


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")
def test_a_long_chat_opens_at_its_end_and_grows_upward_in_place(browser: Any, tmp_path: Path) -> None:
    book = Book()
    for number in range(60):
        book.prompt(f"ask {number}\n\n" + "more words " * 30)
        book.answer(f"tell {number}", call(f"c{number}", "Bash", command="ls"))
        book.result(f"c{number}", "a\nb")
    path = book.write(tmp_path / "home")
    with served(path, tmp_path) as url, visit(browser, url) as seen:
        page = seen.page
        current = page.locator(".beat.current")
        current.wait_for()
        assert current.evaluate("it => it.getBoundingClientRect().bottom <= innerHeight")
        assert page.locator(".beat").count() == 30
        page.locator("#centre").evaluate("it => { it.scrollTop = 40 }")
        page.wait_for_selector("#beat-60", state="attached")
        place = page.locator("#beat-90").evaluate("it => it.getBoundingClientRect().top")
        assert 0 < place < 900  # what was read is still in view
        page.locator("#beat-119 summary").click()
        page.wait_for_selector("#beat-119 .call-result:has-text('b')")
        page.keyboard.press("k")
        page.wait_for_selector("#beat-118.current")
        assert page.locator("#beat-118").evaluate("it => it.getBoundingClientRect().bottom <= innerHeight")


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")
def test_a_picture_and_the_views_of_a_session_in_a_real_browser(browser: Any, tmp_path: Path) -> None:
    path = oven().write(tmp_path / "home")
    with served(path, tmp_path, f"{FILE}?at=7&tab=conversation") as url, visit(browser, url) as seen:
        page = seen.page
        page.locator("#beat-7 .call > summary").click()
        page.locator("#beat-7 .picture a").click()
        page.wait_for_selector("#beat-7 img")
        assert page.locator("#beat-7 img").evaluate("it => it.decode().then(() => it.naturalWidth)") == 40
        page.keyboard.press("8")
        page.locator(".file-name:has-text('test_oven.py')").click()
        page.wait_for_selector(".file-event .diff")
        page.keyboard.press("9")
        page.wait_for_selector(".todo-step")
        page.locator(".strip .bar >> nth=0").click()
        page.wait_for_selector(".row[aria-selected=true]:has-text('#1')")
