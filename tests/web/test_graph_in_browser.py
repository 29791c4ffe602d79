"""The picture of a graph that is larger than its frame: the superstep in sight, larger, smaller, the whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph

from tests.factories import ShopState, config, saver_at
from tests.web.test_browser import CHROMIUM, Visit, browser, served, visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
__all__ = ["browser"]

IN_SIGHT = """() => {
  const frame = document.getElementById("picture").getBoundingClientRect();
  const node = document.querySelector(".g-node.ran").getBoundingClientRect();
  return node.left >= frame.left && node.right <= frame.right && node.top >= frame.top && node.bottom <= frame.bottom;
}"""
WHOLE = """() => {
  const frame = document.getElementById("picture");
  return frame.scrollWidth <= frame.clientWidth + 1 && frame.scrollHeight <= frame.clientHeight + 1;
}"""
PAGE_SCROLL = "() => [document.getElementById('centre').scrollTop, document.scrollingElement.scrollTop]"


def _graph(path: Path, *, chain: bool) -> Path:
    names = [f"node_number_{number}" for number in range(40)]
    builder: StateGraph[Any] = StateGraph(ShopState)
    for name in names:
        builder.add_node(name, lambda state: {"notes": ["x"]})
    builder.add_edge(START, names[0])
    for at, name in enumerate(names[1:], 1):
        builder.add_edge(names[at - 1 if chain else 0], name)
        if not chain or at == len(names) - 1:
            builder.add_edge(name, END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"notes": []}, {**config("t"), "recursion_limit": 200})
    return path


@pytest.fixture
def chain(browser: Any, tmp_path: Path) -> Iterator[Visit]:
    path = _graph(tmp_path / "chain.sqlite", chain=True)
    with served(path, tmp_path, "/?thread=t&at=30&tab=graph") as url, visit(browser, url) as found:
        yield found


def _at(page: Any, number: int) -> None:
    page.wait_for_function(f"() => document.querySelector('.g-node.ran text')?.textContent === 'node_number_{number - 2}'")


def test_stepping_keeps_the_superstep_in_sight_and_leaves_the_page_where_it_is(chain: Visit) -> None:
    page = chain.page
    page.wait_for_function(IN_SIGHT)
    still = page.evaluate(PAGE_SCROLL)
    for number in (29, 28, 27, 26):
        page.keyboard.press("k")
        _at(page, number)
        assert page.evaluate(IN_SIGHT), number
    page.keyboard.press("G")
    _at(page, 41)
    assert page.evaluate(IN_SIGHT) and page.evaluate(PAGE_SCROLL) == still


def test_who_looks_elsewhere_in_the_picture_is_left_there_until_the_next_step(chain: Visit) -> None:
    page = chain.page
    page.wait_for_function(IN_SIGHT)
    page.evaluate("() => { document.getElementById('picture').scrollTop = 40; }")
    page.locator("a.g-node").first.dispatch_event("click")  # click() may scroll by itself to reach it
    page.wait_for_selector(".g-node.chosen")
    assert page.evaluate("() => document.getElementById('picture').scrollTop") == 40
    page.keyboard.press("k")
    _at(page, 29)
    assert page.evaluate(IN_SIGHT)


def test_keys_and_buttons_make_it_smaller_and_larger_and_show_the_whole(chain: Visit) -> None:
    page = chain.page
    page.wait_for_function(IN_SIGHT)
    size, said = "() => document.querySelector('.g-svg').getBoundingClientRect().height", page.locator(".g-tools output")
    natural = page.evaluate(size)
    assert said.inner_text() == "100 %" and not page.evaluate(WHOLE)
    page.keyboard.press("-")
    assert said.inner_text() == "80 %" and page.evaluate(size) == pytest.approx(natural * 0.8, rel=0.01)
    assert page.evaluate(IN_SIGHT), "what is lit stays in sight"
    page.locator('[data-do="zoom_in"]').click()
    page.keyboard.press("+")
    assert said.inner_text() == "125 %" and page.evaluate(IN_SIGHT)
    page.keyboard.press("0")
    assert page.evaluate(WHOLE) and page.get_attribute('[data-do="zoom_whole"]', "aria-pressed") == "true"
    page.keyboard.press("k")
    _at(page, 29)
    assert page.evaluate(WHOLE), "the size stays while one steps"
    page.locator('[data-do="zoom_whole"]').click()
    assert said.inner_text() == "100 %" and page.evaluate(size) == natural and page.evaluate(IN_SIGHT)


def test_a_wide_graph_is_shown_whole_and_at_its_superstep_in_a_narrow_window(browser: Any, tmp_path: Path) -> None:
    path = _graph(tmp_path / "fan.sqlite", chain=False)
    options = {"viewport": {"width": 480, "height": 800}}
    with served(path, tmp_path, "/?thread=t&at=3&tab=graph") as url, visit(browser, url, **options) as found:
        found.page.wait_for_function(IN_SIGHT)
        found.page.keyboard.press("0")
        found.page.wait_for_function(WHOLE)
        assert found.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")


def test_a_small_graph_has_no_buttons_in_its_way(browser: Any, support: Path, tmp_path: Path) -> None:
    with served(support, tmp_path, "/?thread=refund-4711&at=5.3&tab=graph") as url, visit(browser, url) as found:
        found.page.wait_for_selector(".g-node.ran")
        assert not found.page.locator(".g-tools").is_visible()
