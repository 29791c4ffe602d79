"""An answer that is late: nothing that was changed meanwhile is lost, and no other checkpoint's form is replaced by it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.test_browser import Visit, browser, headline, pytestmark, served, visit  # noqa: F401

TYPED = "not before Monday"
FLIPPED = '"not before Monday"'
ANSWER = "/f/support_agent.sqlite?thread=refund-4711&at=7&path=/approval/answer"


@pytest.fixture
def at_approval(browser: Any, support: Path, tmp_path: Path) -> Iterator[Visit]:  # noqa: F811
    with served(support, tmp_path, ANSWER) as url, visit(browser, url) as seen:
        yield seen


def held(page: Any, path: str) -> list[Any]:
    """Answers to this address wait in the list that is given back."""
    waiting: list[Any] = []
    page.route(re.compile(rf"/{path}\?"), lambda route: waiting.append(route))
    return waiting


def test_a_form_that_was_sent_takes_no_change_until_its_answer_is_there(at_approval: Visit) -> None:
    page = at_approval.page
    page.fill("#edit-0 textarea", TYPED)
    page.wait_for_selector(".effects dt")
    waiting = held(page, "fork")
    page.click("text=edit as JSON")
    page.wait_for_selector("#fork-form.sent")
    assert page.evaluate("document.getElementById('fork-form').inert")
    waiting[0].continue_()
    page.wait_for_selector("text=edit as text")
    assert page.input_value("#edit-0 textarea") == FLIPPED
    page.fill("#edit-0 textarea", "more")
    assert not page.evaluate("document.getElementById('fork-form').inert")


def test_a_form_that_was_refused_a_connection_can_be_changed_again(at_approval: Visit) -> None:
    page = at_approval.page
    page.fill("#edit-0 textarea", TYPED)
    waiting = held(page, "fork")
    page.click("text=edit as JSON")
    page.wait_for_selector("#fork-form.sent")
    waiting[0].abort()
    page.wait_for_selector("#fork-form:not(.sent)")
    page.fill("#edit-0 textarea", TYPED + " ")
    assert page.input_value("#edit-0 textarea") == TYPED + " "
    assert any("ERR_FAILED" in line for line in at_approval.said)
    at_approval.said.clear()


def test_the_answer_to_a_form_that_was_left_replaces_no_other_form_and_loses_no_draft(at_approval: Visit) -> None:
    page = at_approval.page
    page.fill("#edit-0 textarea", TYPED)
    page.wait_for_selector(".effects dt")
    waiting = held(page, "fork")
    page.click("text=edit as JSON")
    page.wait_for_selector("#fork-form.sent")
    page.locator("#rows .row[aria-selected=true]").focus()
    page.keyboard.press("k")
    headline(page, "review")
    action = page.get_attribute("#fork-form", "action")
    with page.expect_response(lambda answer: "/fork?" in answer.url):
        waiting[0].continue_()
    page.unroute_all()
    page.wait_for_timeout(300)
    assert page.get_attribute("#fork-form", "action") == action
    page.keyboard.press("j")
    headline(page, "ask_approval")
    page.wait_for_selector(".draft-note")
    assert page.input_value("#edit-0 textarea") == TYPED


def test_a_preview_of_what_has_been_changed_since_is_not_shown(at_approval: Visit) -> None:
    page = at_approval.page
    page.wait_for_selector("#promise b")
    waiting = held(page, "preview")
    page.fill("#edit-0 textarea", "the first")
    page.wait_for_timeout(500)
    # In one turn of the page: what was asked for first is answered, and something else is typed before the answer is drawn.
    page.evaluate(
        """() => {
          window.drawn = [];
          new MutationObserver(() => window.drawn.push(document.getElementById('promise').textContent))
            .observe(document.getElementById('promise'), { childList: true });
          document.addEventListener('htmx:before:response', () => {
            const field = document.querySelector('#edit-0 textarea');
            field.value = 'the second';
            field.dispatchEvent(new Event('input', { bubbles: true }));
          }, { once: true });
        }"""
    )
    first = waiting.pop()
    first.continue_()
    for _ in range(50):
        page.wait_for_timeout(100)
        if waiting:
            break
    waiting.pop().continue_()
    page.wait_for_selector("#promise:has-text('the second')")
    drawn = page.evaluate("window.drawn")
    assert drawn and all("the first" not in text for text in drawn)
