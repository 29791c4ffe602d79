"""The pages of what lies beside the checkpoints, and the switch to another part of the file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from langgraph.store.sqlite import SqliteStore
from starlette.testclient import TestClient

from tests.factories import config, folder_snapshot, saver_at, shop_builder
from tests.stores.test_opening import left_behind
from tests.stores.test_table_sets import change, move
from tests.web.conftest import OURS, client_of

HOSTILE = "<script>alert(1)</script>\x1b[2J"


@pytest.fixture
def app(shop: Path) -> Path:
    """Two sets of checkpoints (`checkpoints` with the thread `lamp`, `lg_cp` with the shop's), a store and a table of users."""
    move(shop, "lg_cp", "lg_wr")
    with saver_at(shop) as saver:
        shop_builder().compile(checkpointer=saver).invoke({"item": "lamp"}, config("lamp"))
    with SqliteStore.from_conn_string(str(shop)) as store:
        store.setup()
        for number in range(120):
            store.put(("users", f"u{number % 2}"), f"fact-{number:03}", {"text": f"likes tea {number}"})
        store.put(("settings",), "api_key", {"value": "open sesame"})
        store.put(("settings",), HOSTILE, {"text": HOSTILE})
        store.put(("settings",), "long", {"text": "x" * 500_000})
    change(shop, "CREATE TABLE users (email, password)", "INSERT INTO users VALUES ('ann@b.org', 'hunter2')")
    return shop


@pytest.fixture
def page(app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "kept"))
    with client_of(app) as client:
        yield client


def soup_of(page: TestClient, url: str) -> BeautifulSoup:
    answer = page.get(url)
    assert answer.status_code == 200, answer.text
    return BeautifulSoup(answer.text, "html.parser")


def test_the_list_of_threads_leads_to_tables_and_tables_to_their_entries(page: TestClient, app: Path) -> None:
    before = folder_snapshot(app.parent)
    start = soup_of(page, "/f/shop.sqlite/threads")
    link = start.select_one("[data-do=tables]")
    assert link is not None and "store (123 items)" in link.text
    tables = soup_of(page, str(link["href"]))
    rows = {row.select_one("b").text: row for row in tables.select(".table-list a")}  # type: ignore[union-attr]
    assert "not versioned: time travel does not rewind it" in rows["store"].text
    assert "writes of their tasks" in rows["writes"].text and "versioned with the thread · shown" in rows["writes"].text
    assert rows["lg_wr"].text.strip().endswith("versioned with the thread")
    assert "123 rows" in rows["store"].text and "1 row" in rows["users"].text and "1 rows" not in tables.text
    store = soup_of(page, str(rows["store"]["href"]))
    assert "Not versioned" in store.select_one(".not-versioned").text  # type: ignore[union-attr]
    assert [chip.text.split()[0] for chip in store.select(".namespaces .chip")] == ["settings", "users.u0", "users.u1"]
    inside = soup_of(page, str(store.select(".namespaces .chip")[2]["href"]))
    assert "likes tea 1" in inside.text and "likes tea 0" not in inside.text
    following = soup_of(page, str(inside.select_one("[rel=next]")["href"]))  # type: ignore[index]
    assert "fact-119" in following.text
    assert folder_snapshot(app.parent) == before


def test_the_workspace_leads_to_the_tables_too(page: TestClient) -> None:
    assert soup_of(page, "/f/shop.sqlite?thread=lamp").select_one("a[data-do=tables]")["href"] == "/f/shop.sqlite/tables"  # type: ignore[index]
    assert page.get("/tables").url.path == "/f/shop.sqlite/tables"


def test_stored_names_and_values_are_inert_and_secrets_masked(page: TestClient) -> None:
    answer = page.get("/f/shop.sqlite/tables?table=store&in=%3Dsettings")
    assert "open sesame" not in answer.text
    assert "<script>alert" not in answer.text and "\x1b" not in answer.text
    assert "&lt;script&gt;alert(1)" in answer.text
    assert "hunter2" not in page.get("/f/shop.sqlite/tables?table=users").text


def test_a_long_value_is_read_only_when_it_is_asked_for(page: TestClient) -> None:
    listed = soup_of(page, "/f/shop.sqlite/tables?table=store&in=%3Dsettings")
    assert len(str(listed)) < 60_000
    more = next(link for link in listed.select(".entries a") if "Read all" in link.text)
    one = soup_of(page, str(more["href"]))
    assert 300_000 < len(one.text) < 450_000
    plain = next(link for link in one.select("a") if "plain text" in link.text)
    whole = page.get(str(plain["href"]))
    assert whole.headers["content-type"] == "text/plain; charset=utf-8"
    assert "x" * 500_000 in whole.text


def test_another_set_of_checkpoints_is_one_click_away_and_part_of_the_address(page: TestClient) -> None:
    start = soup_of(page, "/f/shop.sqlite/threads")
    assert [link.select_one("b").text for link in start.select(".parts a[aria-current]")] == ["checkpoints"]  # type: ignore[union-attr]
    other = next(link for link in start.select(".parts a") if "lg_cp" in link.text)
    assert other["href"] == "/f/shop.sqlite~lg_cp/threads"
    threads = soup_of(page, str(other["href"]))
    assert "shop.sqlite · table lg_cp" in threads.select_one(".crumbs").text  # type: ignore[union-attr]
    assert {row.text for row in threads.select("#thread-rows b")} == {"done", "failed", "forked", "paused"}
    assert soup_of(page, "/f/shop.sqlite~lg_cp?thread=done").select("#timeline .row")
    back = next(link for link in threads.select(".parts a") if "lg_cp" not in link.text)
    assert back["href"] == "/f/shop.sqlite/threads"
    copied = page.get("/f/shop.sqlite~lg_cp/copy/copy_link?thread=done").text
    assert "--tables 'lg_cp'" in copied


def test_a_fork_made_in_one_set_is_seen_only_there(page: TestClient) -> None:
    place = "/f/shop.sqlite~lg_cp"
    made = page.post(f"{place}/fork?thread=done", data={"act": "fork"}, headers=OURS, follow_redirects=False)
    assert made.status_code == 303 and made.headers["location"].startswith(place)
    assert "in scratch" in page.get(f"{place}/threads").text
    assert "in scratch" not in page.get("/f/shop.sqlite/threads").text


@pytest.mark.parametrize("slug", ["shop.sqlite~nope", "shop.sqlite~users", "other.sqlite~lg_cp", "shop.sqlite~~~x~", "~"])
def test_a_part_that_is_not_there_is_refused_in_words(page: TestClient, slug: str) -> None:
    answer = page.get(f"/f/{slug}/threads")
    assert answer.status_code in (404, 409, 200)
    assert "made a mistake" not in answer.text
    if answer.status_code == 200:  # empty names mean the file's own
        assert "lamp" in answer.text


def test_the_file_without_its_wal_is_one_click_away(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "DELETE FROM checkpoints WHERE thread_id = 'done'")
    with client_of(shop) as page:
        start = soup_of(page, "/f/shop.sqlite/threads")
        names = {row.text for row in start.select("#thread-rows b")}
        assert "done" not in names
        alone = next(link for link in start.select(".parts a") if "without its -wal" in link.text)
        shown = soup_of(page, str(alone["href"]))
        assert "done" in {row.text for row in shown.select("#thread-rows b")}
        assert "without its -wal" in shown.select_one(".crumbs").text  # type: ignore[union-attr]


def test_a_column_that_is_left_out_is_told_on_the_page(app: Path) -> None:
    from tests.cli.test_tables import with_odd_columns

    with_odd_columns(app)
    with client_of(app) as client:
        said = soup_of(client, "/f/shop.sqlite/tables?table=latin").text
    assert "1 column is left out (caf" in said and "no query can ask for a name that is no UTF-8" in said
