"""What was typed into the fork form is there again when the page comes back; what nobody chose is no part of a write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.test_browser import (  # noqa: F401 - fixtures
    CHROMIUM,
    REQUIRED,
    Visit,
    browser,
    headline,
    served,
    visit,
)

TYPED = '{"approved": false, "answer": "no"}'
APPROVAL = "/f/support_agent.sqlite?thread=refund-4711&at=7"


@pytest.fixture
def at_approval(browser: Any, support: Path, tmp_path: Path) -> Iterator[Visit]:  # noqa: F811
    """Where a text was written, which stands in the form by itself."""
    with served(support, tmp_path, APPROVAL) as url, visit(browser, url) as seen:
        yield seen


pytestmark = pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")


def test_what_was_typed_is_there_again_after_looking_at_other_checkpoints(at_approval: Visit) -> None:
    page = at_approval.page
    page.fill("#edit-0 textarea", TYPED)
    page.click("text=Run options: input")
    page.fill("[name=run_steps]", "1")
    for key, name in (("k", "review"), ("k", "critique")):
        page.locator("#rows .row[aria-selected=true]").focus()
        page.keyboard.press(key)
        headline(page, name)
    assert page.input_value("[name=run_steps]") == ""
    page.keyboard.press("j")
    page.keyboard.press("j")
    headline(page, "ask_approval")
    page.wait_for_selector(".effects dt")
    assert page.input_value("#edit-0 textarea") == TYPED
    assert page.input_value("[name=run_steps]") == "1"
    page.click("text=leave as it is")
    page.wait_for_selector("#edit-0", state="detached")


def test_a_fork_that_was_made_leaves_no_draft(at_approval: Visit) -> None:
    page = at_approval.page
    now = page.input_value("#edit-0 textarea")
    page.fill("#edit-0 textarea", TYPED)
    page.wait_for_selector(".effects dt")
    page.click("text=Fork only")
    page.wait_for_selector("h1:has-text('set')")
    page.click("#rows .row:has-text('ask_approval')")
    headline(page, "ask_approval")
    page.wait_for_timeout(400)
    assert page.input_value("#edit-0 textarea") == now


def test_a_value_that_nobody_chose_is_not_in_the_form_of_a_write_as_a_node(at_approval: Visit) -> None:
    page = at_approval.page
    page.wait_for_selector("#edit-0")
    page.click("label.act:has-text('Write as a node')")
    page.wait_for_selector("#edit-0", state="hidden")
    page.click("label.act:has-text('Set the state')")
    page.fill("#edit-0 textarea", TYPED)
    page.click("label.act:has-text('Write as a node')")
    page.wait_for_selector("#edit-0", state="visible")  # now it was chosen


def test_a_value_that_was_chosen_stands_in_the_form_of_a_write_as_a_node(at_approval: Visit) -> None:
    page = at_approval.page
    at_approval.goto(f"{APPROVAL}&path=/approval")
    page.wait_for_selector("#edit-0")
    page.click("label.act:has-text('Write as a node')")
    page.wait_for_timeout(300)
    assert page.locator("#edit-0").is_visible()
