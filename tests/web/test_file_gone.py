"""A file that goes away under an open page is not called live; when it is back, it is followed again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.factories import make_states
from tests.web.test_browser import CHROMIUM, REQUIRED, browser, served, visit  # noqa: F401 - fixtures

pytestmark = pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")


def test_the_page_tells_that_the_file_is_gone_and_that_it_is_back(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    path = make_states(tmp_path / "app.sqlite", {"topic": "tea"}, {"topic": "milk"}, thread_id="t")
    with served(path, tmp_path, "/f/app.sqlite?thread=t&at=1") as url, visit(browser, url) as seen:
        page = seen.page
        assert page.locator("#rows .row").count() == 2
        page.wait_for_selector("#promise:has-text('Kept')")  # a preview that comes later is refused, and the browser notes that
        away = path.rename(tmp_path / "away.sqlite")
        page.wait_for_selector("#live.off:has-text('not live: no file')")
        assert "may be old" in str(page.get_attribute("#live", "title"))
        page.wait_for_timeout(300)
        assert page.locator("#rows .row").count() == 2, "what was read is still there"
        with closing(sqlite3.connect(away)) as connection, connection:
            connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = (SELECT min(checkpoint_id) FROM checkpoints)")
        away.rename(path)
        page.wait_for_selector("#live.on:has-text('live')")
        page.wait_for_selector("#rows .row >> nth=1", state="detached")
        assert page.get_attribute("#live", "title") == ""
