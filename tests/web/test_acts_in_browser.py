"""The acts in a real browser: the choice is seen, nodes come when they are asked for, a merged channel is replaced by a tick."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.asnode.project import make_project
from tests.web.test_browser import browser, pytestmark, served, visit  # noqa: F401


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("made") / "project")


@pytest.mark.parametrize(("width", "scheme"), [(1500, "light"), (600, "dark")])
def test_write_as_a_node_from_the_choice_to_the_new_row(
    browser: Any,  # noqa: F811
    shop: Path,
    tmp_path: Path,
    width: int,
    scheme: str,
) -> None:
    look = {"viewport": {"width": width, "height": 1000}, "color_scheme": scheme}
    with served(shop, tmp_path, "/f/shop.sqlite?thread=graph&at=4") as url, visit(browser, url, **look) as seen:
        page = seen.page
        if width < 1000:
            page.click("[data-drawer=side]")
        page.wait_for_selector("#fork-form .for-set:visible")
        assert not page.is_visible(".only-update")
        page.click(".act:has-text('Write as a node')")
        page.wait_for_selector(".writer:has-text('join') input:checked")
        assert page.is_visible(".act-words.for-update")
        page.fill("textarea[name=update]", '{"notes": ["by hand"], "price": 99.0}')
        page.click(".writer:has-text('cheap') b:text-is('cheap')")
        page.click("#fork-form .more-options summary")
        page.wait_for_selector("select[name=goto]", state="attached")
        page.fill("input[name=graph]", "graph")
        page.click("button:has-text('Show what your graph makes of it')")
        page.wait_for_selector("#promise:has-text('Runs fan')")
        assert "/notes/4" in page.inner_text("#promise")
        page.check(".merges input")
        page.wait_for_selector("#promise:not(:has-text('/notes/4')) .merges input:checked", timeout=60_000)
        page.click("#fork-form button[value=fork]")
        page.wait_for_selector("#centre h1:has-text('update as cheap')")


def test_a_fork_into_a_new_thread_shows_that_thread_with_the_way_back(
    browser: Any,  # noqa: F811
    shop: Path,
    tmp_path: Path,
) -> None:
    with served(shop, tmp_path, "/f/shop.sqlite?thread=graph&at=5") as url, visit(browser, url) as seen:
        page = seen.page
        page.click(".act:has-text('The same')")
        assert not page.is_visible("fieldset.edit")
        page.click("#fork-form .more-options summary")
        page.wait_for_selector("select[name=goto]", state="attached")
        page.fill("input[name=new_thread]", "mine")
        page.wait_for_selector("#promise:has-text('in the new thread mine')")
        page.click("#fork-form button[value=fork]")
        page.wait_for_selector("header :text('mine')")
        page.click(".point-facts .kin")
        page.wait_for_selector(".point-facts .kin:has-text('#s1 of mine')")
