"""What the key that copies a value puts on the clipboard: what is seen, masked or revealed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from tests.factories import config, saver_at
from tests.web.test_browser import CHROMIUM, browser, served, visit

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
__all__ = ["browser"]


class Keys(TypedDict):
    api_key: str
    note: str


def test_a_revealed_value_is_copied_as_it_is_seen_and_a_masked_one_says_that_it_is(browser: Any, tmp_path: Path) -> None:
    path = tmp_path / "keys.sqlite"
    builder: StateGraph[Any] = StateGraph(Keys)
    builder.add_node("only", lambda state: {"note": "x"})
    builder.add_edge(START, "only")
    builder.add_edge("only", END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"api_key": "hunter2-secret", "note": ""}, config("t"))
    options = {"permissions": ["clipboard-read", "clipboard-write"]}
    with served(path, tmp_path, "/?thread=t&at=2&tab=state&path=/api_key") as url, visit(browser, url, **options) as found:
        page = found.page
        page.keyboard.press("y")
        page.wait_for_selector("#notices >> text=its secrets masked")
        assert "$masked" in page.evaluate("() => navigator.clipboard.readText()")
        page.keyboard.press("v")
        page.wait_for_selector("#centre >> text=hunter2-secret")
        page.keyboard.press("y")
        page.wait_for_selector("#notices >> text=as it is shown, not masked")
        assert page.evaluate("() => navigator.clipboard.readText()") == "hunter2-secret"
        page.goto(page.url)
        page.wait_for_selector(".live.on", state="attached")
        page.keyboard.press("y")
        page.wait_for_selector("#notices >> text=its secrets masked")
        assert "$masked" in page.evaluate("() => navigator.clipboard.readText()"), "another visit is masked again"
