"""Forking and running through forms, as a browser without scripts and as htmx send them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup, Tag
from starlette.testclient import TestClient

from tests.factories import folder_snapshot
from tests.web.conftest import OURS

HTMX = {**OURS, "HX-Request": "true", "HX-Request-Type": "partial", "HX-Target": "div#stage"}
FILE = "/f/support_agent.sqlite"
REFUND = FILE + "?thread=refund-4711&at=5&path=/refund/amount"


def read(text: str) -> BeautifulSoup:
    return BeautifulSoup(text, "html.parser")


def form_of(page: BeautifulSoup, selector: str = "#fork-form") -> dict[str, Any]:
    """What a browser would send of this form, submit buttons left out."""
    form = page.select_one(selector)
    assert isinstance(form, Tag)
    data: dict[str, Any] = {"": form["action"]}
    for field in form.select("input[name], textarea[name], select[name]"):
        if field.name == "textarea":
            data.setdefault(str(field["name"]), []).append(field.get_text().removeprefix("\n"))
        elif field.get("type") not in ("checkbox", "radio") or field.has_attr("checked"):
            data.setdefault(str(field["name"]), []).append(field.get("value", ""))
    return data


def send(client: TestClient, form: dict[str, Any], act: str, headers: dict[str, str] = HTMX, **changes: str) -> Any:
    data = {name: value for name, value in form.items() if name} | changes | {"act": act}
    return client.post(form[""], data=data, headers=headers, follow_redirects=False)


def allow(client: TestClient, text: str) -> dict[str, str]:
    """The boxes of a plan, ticked."""
    ticked = {str(box["name"]): str(box["value"]) for box in read(text).select(".agree input")}
    return ticked | {"planned": "1"}


def finished(client: TestClient, text: str) -> BeautifulSoup:
    """The run panel once its run has ended."""
    panel = read(text).select_one("#run")
    assert panel is not None
    for _ in range(400):
        shown = read(client.get(str(panel["hx-get"]), headers=HTMX).text)
        if shown.select_one(".run > header .status.run") is None:
            return shown
        time.sleep(0.1)
    raise AssertionError("the run did not end")


def test_a_fork_without_scripts_leads_to_the_new_checkpoint(page: TestClient, support: Path) -> None:
    before = folder_snapshot(support.parent)
    form = form_of(read(page.get(REFUND).text))
    answer = send(page, form, "fork", OURS, value="49.90")
    assert answer.status_code == 303
    html = read(page.get(answer.headers["location"]).text)
    assert "set /refund/amount" in html.select_one("h1").text  # type: ignore[union-attr]
    assert "499.0" in html.select_one("del").text and "49.9" in html.select_one("ins").text  # type: ignore[union-attr]
    assert folder_snapshot(support.parent) == before


def test_a_fork_by_htmx_brings_stage_and_timeline_and_the_new_address(page: TestClient) -> None:
    answer = send(page, form_of(read(page.get(REFUND).text)), "fork", value="49.90")
    assert answer.status_code == 200 and "<html" not in answer.text
    assert answer.headers["hx-push-url"].startswith(FILE) and answer.headers["hx-retarget"] == "#stage"
    html = read(answer.text)
    selected = html.select_one('#rows a[aria-selected="true"], hx-partial a[aria-selected="true"]')
    assert selected is not None and "#s1 · fork of #5" in selected.text


def test_the_preview_says_what_would_change_and_run_and_loads_no_graph(page: TestClient, support: Path) -> None:
    form = form_of(read(page.get(REFUND).text))
    form[""] = str(form[""]).replace("/fork?", "/preview?")
    text = send(page, form, "", value="49.90").text
    assert "/refund/amount" in text and "499.0" in text and "49.9" in text and "review" in text
    assert not list(support.parent.rglob("__pycache__"))


@pytest.mark.parametrize(("typed", "reason"), [("49,9", "write 49.9, with a point"), ("{", "no valid JSON")])
def test_the_preview_names_the_value_that_cannot_be_read_and_why(page: TestClient, typed: str, reason: str) -> None:
    form = form_of(read(page.get(REFUND).text))
    form[""] = str(form[""]).replace("/fork?", "/preview?")
    notice = read(send(page, form, "", value=typed).text).select_one('[role="alert"]')
    assert notice is not None and "/refund/amount: " in notice.text and reason in notice.text
    assert reason not in read(send(page, form, "", value=typed, unset="0").text).text, "a value to remove need not be read"


def test_bad_json_is_named_at_its_line_and_nothing_is_lost(page: TestClient) -> None:
    page_html = read(page.get(REFUND.replace("/refund/amount", "/refund")).text)
    form = form_of(page_html)
    if not form.get("value"):
        form = form_of(read(send(page, form, "add").text))
    typed = '{"order": "4711",\n "amount": 49.9,\n oops}'
    answer = send(page, form, "fork", value=typed)
    assert answer.status_code == 422
    html = read(answer.text)
    assert "Line 3" in html.select_one(".edit-error").text  # type: ignore[union-attr]
    assert html.select_one("textarea").get_text().removeprefix("\n") == typed  # type: ignore[union-attr]
    assert html.select_one("json-editor")["data-line"] == "3"  # type: ignore[index]


def test_numbers_keep_their_form_through_the_editor(page: TestClient) -> None:
    answer = send(page, form_of(read(page.get(REFUND).text)), "fork", OURS, value="500.0")
    assert "500.0" in page.get(answer.headers["location"]).text
    whole = send(page, form_of(read(page.get(REFUND).text)), "fork", OURS, value="500")
    assert "500.0" not in read(page.get(whole.headers["location"]).text).select_one(".group").text  # type: ignore[union-attr]


def test_values_are_added_to_and_dropped_from_the_form(page: TestClient) -> None:
    html = read(page.get(FILE + "?thread=refund-4711&at=5&path=/order/total").text)
    form = form_of(html)
    more = form_of(read(send(page, form, "add", add_path="/refund/currency").text))
    assert more["path"] == ["/order/total", "/refund/currency"] and more["kind"] == ["json", "text"]
    flipped = form_of(read(send(page, more, "flip:1").text))
    assert flipped["kind"] == ["json", "json"] and flipped["value"][1] == '"EUR"'
    assert form_of(read(send(page, flipped, "drop:0").text))["path"] == ["/refund/currency"]


def test_a_run_waits_until_its_plan_was_read_and_its_effects_agreed_to(page: TestClient) -> None:
    form = form_of(read(page.get(REFUND).text))
    first = send(page, form, "run", value="49.90")
    assert "issue_refund" in first.text and "tick the box" in first.text and not read(first.text).select("#run")
    seen = send(page, form, "run", value="49.90", planned="1")
    assert not read(seen.text).select("#run")
    other = send(page, form, "run", value="49.90", planned="1", agree="another-plan")
    assert not read(other.text).select("#run")


def test_the_refund_is_repaired_run_answered_and_compared(page: TestClient, support: Path) -> None:
    before = support.read_bytes()
    form = form_of(read(page.get(REFUND).text))
    plan = send(page, form, "run", value="49.90")
    started = send(page, form, "run", value="49.90", **allow(page, plan.text))
    assert started.status_code == 200, started.text
    paused = finished(page, started.text)
    assert "Approve the refund of 49.90 EUR" in paused.text
    answer_form = form_of(paused, ".answer-form")
    plan = send(page, answer_form, "answer", answer="yes")
    done = finished(page, send(page, answer_form, "answer", answer="yes", **allow(page, plan.text)).text)
    assert "Done" in done.text and "payment service: 49.90 EUR" in done.text
    sides = read(page.get(str(done.select_one(".run-links a:last-child")["href"])).text)  # type: ignore[index]
    pairs = sides.select(".pair")
    assert "499.0" in pairs[0].select(".cell")[0].text and "49.9" in pairs[0].select(".cell")[1].text
    assert "PAY-4711-49900" in sides.text and "PAY-4711-4990" in sides.text
    assert support.read_bytes() == before


def test_a_run_without_scripts_shows_its_panel_on_the_page(page: TestClient) -> None:
    form = form_of(read(page.get(FILE + "?thread=hours-6031&at=2").text))
    plan = send(page, form, "run", OURS)
    started = send(page, form, "run", OURS, **allow(page, plan.text))
    assert started.status_code == 303
    for _ in range(300):
        html = read(page.get(started.headers["location"]).text)
        if "Done" in html.select_one("#run").text:  # type: ignore[union-attr]
            return
        time.sleep(0.1)
    raise AssertionError("the run did not end")


def test_goto_and_new_thread_come_with_their_choices(page: TestClient) -> None:
    ways = read(page.get(FILE + "/ways?thread=refund-4711&at=5").text)
    options = [option["value"] for option in ways.select("select[name=goto] option")]
    assert "classify" in options
    form = form_of(read(page.get(FILE + "?thread=refund-4711&at=9").text))
    answer = send(page, form, "fork", OURS, goto="classify", new_thread="second try")
    html = read(page.get(answer.headers["location"]).text)
    assert "thread=second%20try" in answer.headers["location"] and "next: classify" in html.text


def test_cancel_ends_a_run(page: TestClient, support: Path) -> None:
    graphs = support.parent / "slow.py"
    graphs.write_text(
        "import time\nfrom typing import TypedDict\nfrom langgraph.graph import START, StateGraph\n"
        "class S(TypedDict, total=False):\n    intent: dict\n"
        "def classify(state):\n    print('sleeping', flush=True)\n    time.sleep(60)\n"
        "builder = StateGraph(S)\nbuilder.add_node('classify', classify)\nbuilder.add_edge(START, 'classify')\n"
    )
    form = form_of(read(page.get(FILE + "?thread=refund-4711&at=1").text))
    named = {"graph_typed": f"{graphs}:builder"}
    plan = send(page, form, "run", **named)
    started = send(page, form, "run", **named, **allow(page, plan.text))
    panel = read(started.text).select_one("#run form")
    assert panel is not None, started.text
    cancelled = page.post(str(panel["action"]), headers=HTMX)
    assert cancelled.status_code == 200
    assert "Cancelled" in finished(page, started.text).text


def test_a_graph_that_is_not_there_is_asked_for(shop: Path) -> None:
    from tests.web.conftest import client_of

    with client_of(shop) as client:
        form = form_of(read(client.get("/f/shop.sqlite?thread=done&at=1").text))
        asked = read(send(client, form, "run").text)
        assert (
            asked.select_one("input[name=graph_typed]") is not None or asked.select_one("select[name=graph_choice]") is not None
        )
        wrong = send(client, form, "run", graph_typed="nowhere.py:graph")
        assert "nowhere.py" in wrong.text


@pytest.mark.parametrize("text", ["[1,", "{", '{"$type": 5}', '{"$masked": "no"}x', "\x00"])
def test_text_that_is_no_value_never_breaks_the_page(page: TestClient, text: str) -> None:
    form = form_of(read(page.get(REFUND).text))
    assert send(page, form, "fork", value=text).status_code == 422
    form[""] = str(form[""]).replace("/fork?", "/preview?")
    assert send(page, form, "", value=text).status_code == 200
