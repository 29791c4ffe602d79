"""The page in a real browser. Every test fails on any console message, page error, failed request or policy violation.

Skipped without Chromium, unless STUDIO_REQUIRE_BROWSER=1 says that it must be there. CHROMIUM may hold its path.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = os.environ.get("CHROMIUM") or next((found for name in NAMES if (found := shutil.which(name))), None)
REQUIRED = os.environ.get("STUDIO_REQUIRE_BROWSER") == "1"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]

pytestmark = pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")
REFUND = "/f/support_agent.sqlite?thread=refund-4711&at=5"
SELECTED = '.row[aria-selected="true"]'


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    assert CHROMIUM, "STUDIO_REQUIRE_BROWSER=1, but there is no Chromium on PATH"
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield running
        running.close()


@contextmanager
def served(location: Path, tmp_path: Path, at: str = "") -> Iterator[str]:
    """The address that `studio web` prints, of a server in a process of its own."""
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "studio", "web", str(location), "--no-browser", "--port", "0"]
    with subprocess.Popen(
        [*command, *(["--at", at] if at else [])], stdout=subprocess.PIPE, text=True, env=env, cwd=tmp_path
    ) as server:
        try:
            assert server.stdout is not None
            found = next((match.group() for line in server.stdout if (match := re.search(r"http://\S+", line))), None)
            assert found, "the server printed no address"
            yield found
        finally:
            server.terminate()
            server.wait(10)


@dataclass
class Visit:
    page: Any
    base: str
    said: list[str] = field(default_factory=list)

    def goto(self, path: str) -> None:
        self.page.goto(self.base + path)
        self.page.wait_for_load_state("load")


@contextmanager
def visit(browser: Any, url: str, **options: Any) -> Iterator[Visit]:
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
    page = context.new_page()
    page.set_default_timeout(45_000)  # a busy machine is slow, not wrong
    base = re.match(r"http://[^/]+", url)
    assert base is not None
    seen = Visit(page, base.group())
    page.on("console", lambda message: seen.said.append(f"console {message.type}: {message.text}"))
    page.on("pageerror", lambda error: seen.said.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (seen.said.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("response", lambda answer: answer.status >= 400 and seen.said.append(f"{answer.status} {answer.url}"))
    page.on("request", lambda asked: asked.url.startswith((seen.base, "data:")) or seen.said.append(f"elsewhere: {asked.url}"))
    page.add_init_script(
        "addEventListener('securitypolicyviolation', (e) => console.error('policy', e.violatedDirective, e.blockedURI));"
    )
    page.goto(url)
    if page.locator("#live").count() and options.get("java_script_enabled", True):
        page.wait_for_selector(".live.on", state="attached")  # the scripts are up: from here on keys and clicks are theirs
    yield seen
    context.close()
    assert seen.said == []


@pytest.fixture
def at_refund(browser: Any, support: Path, tmp_path: Path) -> Iterator[Visit]:
    with served(support, tmp_path, REFUND) as url, visit(browser, url) as seen:
        yield seen


def headline(page: Any, text: str) -> None:
    """Wait until the centre shows this checkpoint. (Waiting for a function would need eval, which the policy forbids.)"""
    page.wait_for_selector(f"h1:text-is('{text}')")


def title(page: Any) -> str:
    return str(page.locator("h1").inner_text())


def test_the_link_opens_the_place_and_the_token_leaves_the_address(at_refund: Visit) -> None:
    page = at_refund.page
    assert "token" not in page.url and title(page) == "plan_refund"
    page.wait_for_selector(".live.on")
    fresh = page.context.browser.new_context()
    refused = fresh.new_page()
    assert refused.goto(page.url).status == 401
    fresh.close()


def test_keys_move_the_cursor_and_the_address_follows(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("j")
    headline(page, "input")
    assert "5.1" in page.locator(SELECTED).inner_text()
    page.keyboard.press("k")
    headline(page, "plan_refund")
    page.keyboard.press("3")
    page.wait_for_selector("ul.tree")
    assert "tab=state" in page.url
    page.keyboard.press("G")
    headline(page, "reply")
    assert "tab=state" in page.url, "the tab stays while the cursor moves"
    page.reload()
    assert title(page) == "reply" and page.locator("ul.tree").count() >= 1
    page.go_back()
    headline(page, "plan_refund")
    page.wait_for_selector(f"{SELECTED}:has-text('plan_refund')")
    page.keyboard.press("p")
    page.wait_for_selector("h1:has-text('read_')")
    assert page.evaluate("document.querySelectorAll('.row[aria-selected=\"true\"]').length") == 1


def test_the_key_of_a_tab_without_content_tells_why_there_is_none(browser: Any, shop: Path, tmp_path: Path) -> None:
    with served(shop, tmp_path, "/?thread=paused") as url, visit(browser, url) as seen:
        assert not seen.page.locator(".tabs a:text-is('Branches')").is_visible()
        seen.page.keyboard.press("7")
        seen.page.wait_for_selector(".tabs a[aria-current]:text-is('Branches')")
        assert "one branch" in seen.page.locator("#pane, main").first.inner_text()


def test_a_click_on_a_path_says_why_and_offers_its_edit(at_refund: Visit) -> None:
    page = at_refund.page
    page.click(".lines dt a:has-text('amount')")
    page.wait_for_selector(".why h2:text-is('Why is this 499.0?')")
    assert "path=/refund/amount" in page.url
    assert "looks related" in page.locator(".why").inner_text()
    assert page.locator("#fork-form textarea").first.input_value() == "499.0"
    page.click(".chain a:has-text('look_up_order')")
    headline(page, "look_up_order")


def test_the_wrong_refund_is_repaired_in_the_browser_alone(at_refund: Visit, support: Path) -> None:
    before = support.read_bytes()
    page = at_refund.page
    page.click(".lines dt a:has-text('amount')")
    page.wait_for_selector(".why h2:text-is('Why is this 499.0?')")
    page.keyboard.press("f")
    page.keyboard.type("49.90")
    page.wait_for_selector("#promise ins:has-text('49.9')")
    assert "issue_refund" in page.locator("#promise").inner_text()
    page.check("#promise input[name=agree]")
    page.click("#fork-form button:has-text('Fork and run')")
    page.wait_for_selector("#run .answer-form", timeout=40_000)
    assert "Approve the refund of 49.90 EUR" in page.locator("#run").inner_text()
    assert "yes" in page.locator("#run .asked dt:text-is('choices') + dd").inner_text()
    page.wait_for_selector(".ends")
    page.fill("#run .answer-form textarea", "yes")
    page.wait_for_selector("#run .answer-form [name=planned]", state="attached")
    page.check("#run .answer-form input[name=agree]")  # the old branch paid after this question: paying again needs a tick
    page.click("#run .answer-form button:has-text('Answer and run')")
    page.wait_for_selector("#run .status.ok", timeout=40_000)
    page.wait_for_selector(".pair .cell:has-text('PAY-4711-4990') >> nth=0")
    assert "payment service: 49.90 EUR" in page.locator("#run .log").inner_text()
    sides = page.locator(".pair").first.inner_text()
    assert "499.0" in sides and "49.9" in sides and "#s1" in sides
    assert support.read_bytes() == before


def test_the_button_of_a_run_is_called_by_what_it_does(at_refund: Visit) -> None:
    page = at_refund.page
    run = page.locator("#fork-form button[value=run]")
    page.wait_for_selector("#fork-form [name=planned]", state="attached")
    assert run.inner_text() in ("Run again", "Fork and run")
    page.evaluate("document.querySelector('#fork-form [name=planned]').remove()")
    assert run.inner_text() == "Show the plan"


def test_the_large_editor_sends_what_was_typed_and_names_the_wrong_line(at_refund: Visit) -> None:
    page = at_refund.page
    at_refund.goto(REFUND.replace("?", "/edit?") + "&path=/refund")
    editor = page.locator("json-editor .cm-content").first
    editor.wait_for()
    assert '"amount": 499.0' in editor.inner_text()
    editor.click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"order": "4711",\n"amount": oops')
    with page.expect_response(lambda answer: "/fork" in answer.url and answer.status == 422):
        page.click("button:has-text('Fork only')")
    page.wait_for_selector(".edit-error:has-text('Line 2')")
    assert "oops" in page.locator("json-editor .cm-content").first.inner_text()
    at_refund.said.clear()  # the refused form is a 422, which the browser logs
    page.locator("json-editor .cm-content").first.click()
    page.keyboard.press("Control+a")
    page.keyboard.type('{"amount": 12345678901234567890.0}')
    page.click("button:has-text('Fork only')")
    page.wait_for_selector("h1:has-text('set /refund')")
    page.wait_for_selector(f"{SELECTED}:has-text('s1')")


def test_what_another_process_writes_appears_and_disturbs_nothing(browser: Any, shop: Path, tmp_path: Path) -> None:
    with served(shop, tmp_path, "?thread=paused&at=3") as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(".live.on")
        rows, chosen = page.locator(".row").count(), page.locator(SELECTED).inner_text()
        page.click("#centre a.path >> nth=0")
        page.wait_for_selector(".change.selected")
        page.fill("#fork-form textarea", "typed and not sent")
        code = (
            "import sys; from tests.factories import *\n"
            "with saver_at(sys.argv[1]) as saver:\n"
            "    shop_builder().compile(checkpointer=saver).invoke(Command(resume='yes'), config('paused'))"
        )
        subprocess.run([sys.executable, "-c", code, str(shop)], check=True, cwd=ROOT)
        page.wait_for_selector(f".row >> nth={rows + 1}", timeout=4_000)
        assert page.locator(SELECTED).inner_text() == chosen
        assert page.locator("#fork-form textarea").first.input_value() == "typed and not sent"
        assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"


def test_a_thread_that_another_process_begins_appears_in_the_list(browser: Any, shop: Path, tmp_path: Path) -> None:
    with served(shop, tmp_path, "/f/shop.sqlite/threads") as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(".live.on")
        page.fill("#thread-filter input[type=search]", "new")
        page.wait_for_selector(".chat-note:has-text('0 of 4')")
        code = (
            "import sys; from tests.factories import *\n"
            "with saver_at(sys.argv[1]) as saver:\n"
            "    shop_builder().compile(checkpointer=saver).invoke({'item': 'lamp'}, config('a new one'))"
        )
        subprocess.run([sys.executable, "-c", code, str(shop)], check=True, cwd=ROOT)
        page.wait_for_selector(".thread-list b:text-is('a new one')", timeout=4_000)
        assert page.locator("#thread-filter input[type=search]").input_value() == "new"


def test_forms_and_links_work_without_scripts(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND) as url, visit(browser, url, java_script_enabled=False) as seen:
        page = seen.page
        page.click(".row:has-text('look_up_order')")
        assert title(page) == "look_up_order"
        page.click("a:has-text('State')")
        page.click("ul.tree a.node-key:has-text('total')")
        page.fill("#fork-form textarea", "49.90")
        page.click("button:has-text('Fork only')")
        assert title(page) == "set /order/total" and "at=" in page.url
        page.click(".theme-form button")
        assert page.locator("html").get_attribute("data-theme") == "dark"
        assert title(page) == "set /order/total"


def test_narrow_windows_have_drawers(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND) as url, visit(browser, url, viewport={"width": 600, "height": 800}) as seen:
        page = seen.page
        assert not page.locator("#timeline").is_visible() and not page.locator("#side").is_visible()
        page.click("[data-drawer=timeline]")
        page.click(".row:has-text('classify')")
        headline(page, "classify")
        page.wait_for_selector("#timeline", state="hidden")
        page.keyboard.press("f")
        page.wait_for_selector("#side", state="visible")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_threads_and_search_are_dialogs_over_the_page(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("t")
    page.wait_for_selector("dialog#drawer[open] .thread-list")
    page.keyboard.type("chair")
    page.wait_for_selector("#drawer .chat-note:has-text('1 of 6')")
    assert page.locator("#drawer .thread-list li").count() == 1
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("PAY-4711")
    page.keyboard.press("Enter")
    page.wait_for_selector("#drawer .hits mark:has-text('PAY-4711') >> nth=0")
    page.click("#drawer .hits a >> nth=0")
    page.wait_for_url(re.compile("path="))
    page.keyboard.press("?")
    assert "Next row" in page.locator("dialog#help[open]").inner_text()
    page.keyboard.press("Escape")
    page.keyboard.press("Control+p")
    page.keyboard.type("first row")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{SELECTED}:has-text('#0 ·')")


def test_a_long_thread_is_loaded_where_one_looks(browser: Any, tmp_path: Path) -> None:
    from tests.web.test_huge import make_long

    with served(make_long(tmp_path / "long.sqlite", 2_500), tmp_path, "?at=1200") as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector(f"{SELECTED}:has-text('#1200')")
        assert page.locator(SELECTED).is_visible()
        assert page.locator(".row").count() <= 1_000
        gap = page.locator(".chain li.between")
        assert "supersteps before" in gap.inner_text() and gap.locator("a").count() == 0, "words that open nothing are no link"
        page.keyboard.press("End")
        page.wait_for_selector(f"{SELECTED}:has-text('#2499')")
        page.keyboard.press("Home")
        page.wait_for_selector(f"{SELECTED}:has-text('#0 ·')")
        for _ in range(3):
            page.keyboard.press("ArrowDown")
        page.wait_for_selector(f"{SELECTED}:has-text('#3 ·')")
        page.locator("[data-scrub]").fill("1000")
        page.wait_for_selector(f"{SELECTED}:has-text('#999 ·')")
        assert page.locator(SELECTED).is_visible()
        set_back = "range => { range.value = 2000; range.dispatchEvent(new Event('input', { bubbles: true })); range.value = 5 }"
        page.locator("[data-scrub]").evaluate(set_back)  # as a page does that arrives right after the hand let go
        page.wait_for_selector(f"{SELECTED}:has-text('#1999 ·')")
        page.keyboard.press("Home")
        page.wait_for_selector(f"{SELECTED}:has-text('#0 ·')")
        page.wait_for_selector("[data-scrub][value='1']")
        page.route(lambda address: "at=" in address and "/step" not in address, lambda route: None)  # its page never arrives
        page.keyboard.press("ArrowDown")
        page.wait_for_selector(f"{SELECTED}:has-text('#1 ·')")
        page.locator("[data-scrub]").fill("1000")
        page.wait_for_selector(f"{SELECTED}:has-text('#999 ·')")
        page.unroute_all()


def test_the_plan_of_an_edited_fork_keeps_no_finished_task(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, "/f/support_agent.sqlite?thread=refund-5150&at=3") as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector("#promise:has-text('Kept read_history and everything before')")
        seen.goto("/f/support_agent.sqlite?thread=refund-5150&at=3&tab=state&path=/order/total")
        page.wait_for_selector(".live.on", state="attached")
        page.fill("#fork-form textarea", "12")
        page.wait_for_selector("#promise:has-text('Runs read_policy, read_history')")
        words = page.locator("#promise").inner_text()
        assert "runs the whole step again" in words and "Kept everything before" in words


def test_a_notice_about_a_missing_tick_stays_until_the_next_action(at_refund: Visit) -> None:
    page = at_refund.page
    page.wait_for_selector("#promise input[name=agree]")
    page.click("#fork-form button[value=run]")
    page.wait_for_selector("#promise .notice:has-text('tick the box')")
    page.wait_for_timeout(1_200)  # longer than any delay after which the panel asks again
    assert page.locator("#promise .notice:has-text('tick the box')").is_visible()
    page.check("#promise input[name=agree]")
    page.wait_for_selector("#promise .notice", state="detached")
    assert page.locator("#promise input[name=agree]").is_checked()


def test_a_finished_head_cannot_be_run_again_and_says_why(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, "/f/support_agent.sqlite?thread=refund-4711") as url, visit(browser, url) as seen:
        page = seen.page
        page.wait_for_selector("#fork-form button[value=run]:disabled")
        assert "Nothing is left to run here" in page.locator("#promise").inner_text()
        assert "Nothing is left to run here" in page.locator("#fork-form button[value=run]").get_attribute("title")
        page.click(".more-options summary")
        page.select_option("select[name=goto]", label="reply")
        page.wait_for_selector("#promise:has-text('Runs reply')")
        page.wait_for_selector("#fork-form button[value=run]:enabled")


def test_a_click_anywhere_on_a_line_of_the_state_opens_it(at_refund: Visit) -> None:
    page = at_refund.page
    at_refund.goto(REFUND + "&tab=state")
    page.wait_for_selector(".live.on", state="attached")
    line = page.locator(".node-line:has(> .node-key:text-is('total'))")
    line.click(position={"x": line.bounding_box()["width"] - 8, "y": 8})
    page.wait_for_selector(".node.selected > .node-line > .node-key:text-is('total')")
    assert "path=/order/total" in page.url


def test_the_list_of_keys_fits_into_small_windows(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND) as url:
        for width, height in ((1024, 700), (600, 800)):
            with visit(browser, url, viewport={"width": width, "height": height}) as seen:
                seen.page.keyboard.press("?")
                box = "document.getElementById('help')"
                fits = f"{box}.open && {box}.scrollWidth <= {box}.clientWidth && {box}.scrollHeight <= {box}.clientHeight"
                assert seen.page.evaluate(fits), (width, height)


def test_a_filter_without_a_match_says_so(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("?")
    page.keyboard.type("zzz")
    page.wait_for_selector("#help :text('No match for “zzz”')")
    page.keyboard.press("Escape")
    page.keyboard.press("?")
    page.wait_for_selector("#help :text('No match')", state="hidden")
    page.keyboard.press("Escape")
    page.keyboard.press("t")
    page.wait_for_selector("dialog#drawer[open] .thread-list")
    page.keyboard.type("zzz")
    page.wait_for_selector("#drawer :text('No match for “zzz”')")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("zzz")
    page.keyboard.press("Enter")
    page.wait_for_selector("#drawer :text('No match for “zzz”')")


def test_channels_without_room_are_counted(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND) as url:
        for width, height in ((1440, 900), (1024, 700)):
            with visit(browser, url, viewport={"width": width, "height": height}) as seen:
                row = seen.page.locator(".row:has-text('read_history')").first
                chips = row.locator(".chip:not(.more)").count()
                assert row.locator(".chips").get_attribute("title") == "history, policy"
                assert chips == 2 or row.locator(".chip.more").inner_text() == f"+{2 - chips}"
                hidden = "[...document.querySelectorAll('.chips')].filter((box) => [...box.children].some((chip) => "
                hidden += "chip.offsetLeft + chip.offsetWidth > box.offsetLeft + box.offsetWidth + 1)).length"
                assert seen.page.evaluate(hidden) == 0, width


def test_what_the_side_column_explains_stays_in_sight_in_every_window(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND + "&path=/messages/3") as url:
        for width in (400, 600, 800, 1000, 1180):
            with visit(browser, url, viewport={"width": width, "height": 800}) as seen:
                page = seen.page
                page.keyboard.press("b")
                page.wait_for_selector(".why h2", state="visible")
                side, value = page.locator("#side").bounding_box(), page.locator("#centre .selected").bounding_box()
                apart = value["x"] + value["width"] <= side["x"] + 1 or value["y"] + 24 < side["y"]
                assert apart and value["y"] > 48, (width, side, value)
                page.click("#centre a.path >> nth=0")
                page.wait_for_selector(".why-path:text-is('/refund')", state="visible")
                page.keyboard.press("Escape")
                page.wait_for_selector("#side", state="hidden")
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_names_of_channels_are_counted_rather_than_cut_to_a_letter(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND) as url:
        for width in (800, 1000, 1180, 1440):
            with visit(browser, url, viewport={"width": width, "height": 800}) as seen:
                narrow = "[...document.querySelectorAll('.chip:not(.more)')].map((chip) => chip.getBoundingClientRect().width)"
                assert [room for room in seen.page.evaluate(narrow) if 0 < room < 36] == [], width
                over = "[...document.querySelectorAll('.row')].filter((row) => row.querySelector('.row-title')"
                over += ".getBoundingClientRect().right > row.querySelector('.chips').getBoundingClientRect().left + 1).length"
                assert seen.page.evaluate(over) == 0, width


def test_the_switch_of_colours_is_at_the_right_in_every_window(browser: Any, support: Path, tmp_path: Path) -> None:
    (support.parent / "second.sqlite").write_bytes(support.read_bytes())
    with served(support.parent, tmp_path) as url:
        for width in (400, 600, 1000):
            with visit(browser, url, viewport={"width": width, "height": 800}) as seen:
                for path in ("/", "/f/second.sqlite/threads", "/f/second.sqlite/search?q=chair"):
                    seen.goto(path)
                    box = seen.page.locator(".theme-form button").bounding_box()
                    assert box["x"] + box["width"] > width - 30, (path, width)
                    assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_search_begins_while_one_types_and_names_the_other_threads(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("/")
    page.keyboard.type("refu")
    page.wait_for_selector("#drawer[open] .hits")
    page.keyboard.type("nd of 129")
    page.wait_for_selector("#drawer :text('No match for “refund of 129”'), #drawer .hits mark:text-is('refund of 129')")
    assert page.locator("#search-again").input_value() == "refund of 129"
    page.fill("#search-again", "gift")
    page.wait_for_selector("#drawer h2:text-is('In other threads') + .hits .hit-where b:text-is('refund-5150') >> nth=0")
    page.fill("#search-again", "4711")
    page.wait_for_selector("#drawer h2:text-is('In refund-4711')")


def test_the_arrows_move_among_the_hits_and_enter_opens_the_value(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("/")
    page.keyboard.type("4711")
    field, active = page.locator("#search-again"), page.locator("#drawer .hits [aria-selected=true]")
    # the answer to "4711": that to "47" has the same heading, and its rows go when this one comes
    page.wait_for_selector("#drawer h2:text-is('In refund-4711') + .hits[data-answers='4711'] [aria-selected=true]")
    assert active.get_attribute("id") == "hit-here-1" == field.get_attribute("aria-activedescendant")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    assert active.get_attribute("id") == "hit-here-2" and field.evaluate("(field) => field === document.activeElement")
    words = active.locator(".hit-where").inner_text().split()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile("path="))
    page.wait_for_selector("#drawer", state="hidden")
    assert page.locator(f"{SELECTED} .row-sub").inner_text().startswith(words[0] + " ") and title(page) == words[1]
    assert page.locator(".tree .node.selected > .node-line").is_visible()


def test_enter_before_the_answer_opens_what_the_answer_begins_with(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("/")
    page.keyboard.type("47")
    page.wait_for_selector("#drawer .hits[data-answers='47'] [aria-selected=true]")
    page.keyboard.type("11")
    page.keyboard.press("Enter")  # the list still answers "47"
    page.wait_for_url(re.compile("path="))
    page.wait_for_selector("#drawer", state="hidden")


def test_escape_empties_the_field_of_search_then_closes_it(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("/")
    page.keyboard.type("4711")
    page.wait_for_selector("#drawer .hits")
    page.keyboard.press("Escape")
    page.wait_for_selector("#drawer .empty-card:has-text('Type what a value contains')")
    assert page.locator("#search-again").input_value() == "" and page.locator("#drawer[open]").count() == 1
    page.keyboard.press("Escape")
    page.wait_for_selector("#drawer", state="hidden")


def test_a_value_that_the_address_names_is_brought_into_view(browser: Any, tmp_path: Path) -> None:
    from tests.factories import make_states

    wide = make_states(tmp_path / "wide.sqlite", {"rows": [f"row {index}" for index in range(900)]})
    with served(wide, tmp_path) as url, visit(browser, url) as seen:
        page = seen.page
        page.keyboard.press("/")
        page.keyboard.type("row 777")
        page.wait_for_selector("#drawer .hits mark:text-is('row 777')")
        page.keyboard.press("Enter")
        page.wait_for_selector(".tree .node.selected:has-text('row 777')")
        line = page.locator(".tree .node.selected .node-line")
        for _ in range(50):  # it is scrolled there once the page has settled
            if 48 < line.bounding_box()["y"] < 860:
                break
            page.wait_for_timeout(100)
        assert 48 < line.bounding_box()["y"] < 860


def test_every_page_has_the_switch_of_colours(browser: Any, support: Path, tmp_path: Path) -> None:
    (support.parent / "second.sqlite").write_bytes(support.read_bytes())
    with served(support.parent, tmp_path) as url, visit(browser, url) as seen:
        for path in ("/", "/f/second.sqlite/threads", "/f/second.sqlite/search?q=chair"):
            seen.goto(path)
            before = seen.page.locator("html").get_attribute("data-theme")
            seen.page.click(".theme-form button")
            seen.page.wait_for_load_state("load")
            assert seen.page.locator("html").get_attribute("data-theme") in {"dark", "light"} - {before}


def test_two_branches_show_in_each_step_what_it_wrote_and_where_they_first_differ(
    browser: Any, support: Path, tmp_path: Path
) -> None:
    with served(support, tmp_path, REFUND + "&path=/refund/amount") as url, visit(browser, url) as seen:
        page = seen.page
        page.fill("#fork-form textarea", "49.90")
        page.check("#promise input[name=agree]")
        page.click("#fork-form button:has-text('Fork and run')")
        page.wait_for_selector(".ends", timeout=40_000)
        assert "/refund/amount 499.0 49.9" in page.locator(".first-line").inner_text().replace("\n", " ")
        pairs = page.locator(".pair")
        assert pairs.nth(0).locator(".wrote").all_inner_texts() == ["/refund/amount 499.0", "/refund/amount 49.9"]
        for index in range(1, pairs.count()):
            assert "/refund/amount" not in " ".join(pairs.nth(index).locator(".wrote").all_inner_texts())
        fork = page.locator(".row:has-text('fork of #5')")
        assert fork.locator(".gap").inner_text() == "" and fork.locator("b").get_attribute("title")


def test_one_of_a_kind_is_counted_as_one(at_refund: Visit) -> None:
    at_refund.goto("/f/support_agent.sqlite?thread=complaint-4711&at=1f121127-b7ce-6d58-bfff-5a954477d838&tab=state")
    at_refund.page.wait_for_selector("summary:text-is('1 scheduling channel')")


@pytest.mark.parametrize("width", [1181, 1250, 1400])
def test_every_tab_is_whole_beside_what_the_checkpoint_is_compared_with(
    browser: Any, support: Path, tmp_path: Path, width: int
) -> None:
    fork = ["fork", str(support), "4", "--thread", "refund-4711", "--set", "/order/total=49.9"]
    env = {**os.environ, "XDG_DATA_HOME": str(tmp_path / "data"), "PYTHONPATH": str(ROOT)}
    subprocess.run([sys.executable, "-m", "studio", *fork], env=env, check=True, capture_output=True)
    size = {"width": width, "height": 900}
    at = "/f/support_agent.sqlite?thread=refund-4711&at=s1"
    with served(support, tmp_path, at) as url, visit(browser, url, viewport=size) as seen:
        tabs, note = seen.page.locator(".tabs"), seen.page.locator(".compared")
        assert "Branches" in tabs.inner_text() and "vs parent" in note.inner_text() or "vs origin" in note.inner_text()
        assert tabs.evaluate("tabs => tabs.scrollWidth <= tabs.clientWidth")
        assert note.evaluate("note => note.getBoundingClientRect().height") < 60
        assert note.evaluate("note => note.scrollWidth <= note.clientWidth")


def test_no_value_of_the_centre_is_hidden_in_a_narrow_window(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, "?thread=refund-4711&at=7") as url:
        for width in (600, 1000, 1440):
            with visit(browser, url, viewport={"width": width, "height": 800}) as seen:
                values = seen.page.locator("#centre .change .value").all()
                assert values
                for value in values:
                    box = value.bounding_box()
                    assert value.is_visible() and box is not None and box["x"] + box["width"] <= width, (width, box)


def test_the_picture_of_the_graph_follows_the_cursor_and_its_nodes_are_links(at_refund: Visit) -> None:
    page = at_refund.page
    page.keyboard.press("6")
    page.wait_for_selector(".g-node.ran:has-text('plan_refund')")
    page.keyboard.press("k")
    page.wait_for_selector(".g-node.ran:has-text('read_policy')")
    assert page.locator(".g-node.next").count() == 1
    page.locator("a.g-node:has-text('issue_refund')").click()
    page.wait_for_selector(".g-chosen:has-text('issue_refund')")
    assert "node=issue_refund" in page.url
    page.locator("a.g-node:has-text('classify')").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector(".g-chosen:has-text('classify')")
    page.locator(".g-chosen .run-link").click()
    headline(page, "classify")
    page.wait_for_selector(".g-node.ran:has-text('classify')")


def test_names_fit_into_their_boxes_and_the_picture_into_a_narrow_window(browser: Any, support: Path, tmp_path: Path) -> None:
    with (
        served(support, tmp_path, REFUND + "&tab=graph") as url,
        visit(browser, url, viewport={"width": 600, "height": 900}) as seen,
    ):
        sizes = "nodes => nodes.map(n => n.querySelector('.g-box').getBBox().width - n.querySelector('text').getBBox().width)"
        assert min(seen.page.locator("a.g-node").evaluate_all(sizes)) >= 4
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= 600


def test_in_a_narrow_window_the_way_to_why_and_fork_is_written_out(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, REFUND) as url, visit(browser, url, viewport={"width": 600, "height": 800}) as seen:
        button = seen.page.locator("button[data-drawer=side]")
        assert button.inner_text() == "Why and fork"
        button.click()
        seen.page.wait_for_selector("#side #fork-form", state="visible")
