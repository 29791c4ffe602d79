"""What was typed into the fork form is there again when the page comes back; what nobody chose is no part of a write."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.reading.oven import oven
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


def draft(page: Any) -> int:
    return int(page.locator(".draft-note").count())


def test_a_draft_outlives_a_reload_and_another_thread_and_says_that_it_is_one(at_approval: Visit) -> None:
    page = at_approval.page
    page.wait_for_selector("#edit-0")
    assert draft(page) == 0
    page.fill("#edit-0 textarea", TYPED)
    page.wait_for_selector(".draft-note:has-text('unsaved draft')")
    page.reload()
    page.wait_for_selector(".draft-note")
    assert page.input_value("#edit-0 textarea") == TYPED
    page.fill("#edit-0 textarea", TYPED.replace("no", "never"))
    at_approval.goto("/f/support_agent.sqlite?thread=refund-4711&at=5")
    headline(page, "plan_refund")
    assert draft(page) == 0
    at_approval.goto("/f/support_agent.sqlite/threads")
    page.locator("a[href*='thread=']:not([href*='refund-4711'])").first.click()
    page.wait_for_selector("#rows .row")
    assert "refund-4711" not in page.url and draft(page) == 0
    at_approval.goto(APPROVAL)
    page.wait_for_selector(".draft-note")
    assert page.input_value("#edit-0 textarea") == TYPED.replace("no", "never")


def test_a_draft_that_is_discarded_is_gone(at_approval: Visit) -> None:
    page = at_approval.page
    now = page.input_value("#edit-0 textarea")
    page.fill("#edit-0 textarea", TYPED)
    page.click(".draft-note >> text=discard")
    page.wait_for_selector(".draft-note", state="detached")
    page.wait_for_selector("#edit-0")
    assert page.input_value("#edit-0 textarea") == now
    page.reload()
    page.wait_for_selector("#edit-0")
    page.wait_for_timeout(400)
    assert page.input_value("#edit-0 textarea") == now and draft(page) == 0


def test_a_draft_is_of_its_tab_alone_and_of_its_fork_no_more(at_approval: Visit) -> None:
    page = at_approval.page
    page.fill("#edit-0 textarea", TYPED)
    page.wait_for_selector(".draft-note")
    page.wait_for_timeout(400)
    beside = page.context.new_page()
    beside.goto(page.url)
    beside.wait_for_selector("#edit-0")
    beside.wait_for_timeout(400)
    assert beside.input_value("#edit-0 textarea") != TYPED and draft(beside) == 0
    beside.close()
    page.wait_for_selector(".effects dt")
    page.click("text=Fork only")
    page.wait_for_selector("h1:has-text('set')")
    assert draft(page) == 0
    at_approval.goto(APPROVAL)
    page.wait_for_selector("#edit-0")
    page.wait_for_timeout(400)
    assert page.input_value("#edit-0 textarea") != TYPED and draft(page) == 0


def test_a_fork_into_a_new_thread_leaves_no_draft(at_approval: Visit) -> None:
    page = at_approval.page
    page.fill("#edit-0 textarea", TYPED)
    with page.expect_response(lambda answer: "/ways" in answer.url):
        page.click("text=More ways")
    page.wait_for_timeout(200)
    page.fill("[name=new_thread]", "second")
    page.wait_for_selector(".effects dt")
    page.click("text=Fork only")
    page.wait_for_url("**thread=second**")
    at_approval.goto(APPROVAL)
    page.wait_for_selector("#edit-0")
    page.wait_for_timeout(400)
    assert page.input_value("#edit-0 textarea") != TYPED and draft(page) == 0


def test_what_is_typed_before_the_nodes_to_go_on_with_are_there_stays(at_approval: Visit) -> None:
    page, held = at_approval.page, list[Any]()
    page.route("**/ways?*", lambda route: held.append(route))
    with page.expect_request(lambda request: "/ways" in request.url):
        page.click("text=More ways")
    page.fill("[name=new_thread]", "second")
    page.fill("[name=python]", "/usr/bin/python3")
    held.pop().continue_()
    page.wait_for_selector("select[name=goto]")
    assert page.input_value("[name=new_thread]") == "second"
    assert page.input_value("[name=python]") == "/usr/bin/python3"


def test_a_node_that_was_typed_is_one_of_the_choices(at_approval: Visit) -> None:
    page = at_approval.page
    page.evaluate("document.querySelector('input[name=goto]').value = 'a node of tomorrow'")
    page.click("text=More ways")
    page.wait_for_selector("select[name=goto]")
    assert page.eval_on_selector("select[name=goto]", "chosen => chosen.selectedOptions[0].text") == "a node of tomorrow"


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


def test_another_text_of_a_turn_of_a_session_is_there_again_after_a_reload(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    file = oven().write(tmp_path / "home")
    with served(file, tmp_path) as url, visit(browser, url) as seen:
        page = seen.page
        seen.goto(f"/f/{file.name}?at=2&tab=conversation&path=/messages/0/content")
        page.wait_for_selector("[name=said]")
        stored = page.input_value("[name=said]")
        page.fill("[name=said]", "Do it otherwise")
        page.wait_for_selector(".draft-note")
        page.reload()
        page.wait_for_selector(".draft-note")
        assert page.input_value("[name=said]") == "Do it otherwise" != stored
        page.click(".draft-note >> text=discard")
        page.wait_for_selector(".draft-note", state="detached")
        page.wait_for_function("text => document.querySelector('[name=said]')?.value === text", arg=stored)
