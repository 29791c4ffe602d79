"""Long threads: only the rows in sight are drawn, and a move of the cursor costs the same anywhere."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import ormsgpack
import pytest
from bs4 import BeautifulSoup

from studio.session import Session
from studio.web.book import Book
from studio.web.desk import Desk
from studio.web.links import Place
from tests.factories import make_states, saver_at
from tests.web.conftest import client_of


def make_long(path: Path, count: int) -> Path:
    """One thread of `count` supersteps in tables that the real saver made."""
    with saver_at(path) as saver:
        saver.setup()
    with closing(sqlite3.connect(path)) as database:
        parent = None
        for step in range(count):
            ident = f"1f{step:06x}-0000-6000-8000-{step:012x}"
            moment = f"2026-03-14T{step // 3600 % 24:02}:{step // 60 % 60:02}:{step % 60:02}+00:00"
            blob = {
                "v": 4,
                "ts": moment,
                "id": ident,
                "channel_values": {"count": step},
                "channel_versions": {"count": f"{step + 1:032}.0"},
                "versions_seen": {},
                "updated_channels": ["count"],
            }
            metadata = json.dumps({"source": "loop", "step": step, "parents": {}}).encode()
            database.execute(
                "INSERT INTO checkpoints "
                "(thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata) "
                + "VALUES ('long', '', ?, ?, 'msgpack', ?, ?)",
                (ident, parent, ormsgpack.packb(blob), metadata),
            )
            parent = ident
        database.commit()
    return path


@pytest.fixture(scope="module")
def long_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_long(tmp_path_factory.mktemp("long") / "long.sqlite", 6_000)


def test_a_page_holds_the_chunk_of_the_cursor_and_places_for_the_others(long_file: Path) -> None:
    with client_of(long_file) as client:
        html = BeautifulSoup(client.get("/f/long.sqlite?at=4321").text, "html.parser")
        assert len(html.select(".row")) == 200 and len(html.select(".chunk.waiting")) == 29
        assert "#4321" in html.select_one('.row[aria-selected="true"]').text  # type: ignore[union-attr]
        heights = [int(str(space["height"])) for space in html.select(".chunk.waiting > svg")]
        assert sum(heights) + 200 * 40 == 6_000 * 40
        chunk = BeautifulSoup(client.get(str(html.select(".chunk.waiting")[0]["hx-get"])).text, "html.parser")
        assert [row["aria-posinset"] for row in chunk.select(".row")][::199] == ["1", "200"]


def test_a_cursor_move_reads_a_bounded_number_of_states(long_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = Session.open(str(long_file))
    book, read = Book([session]), []
    Desk(book, Place("long.sqlite", at="1")).stage()
    state = Session.state
    monkeypatch.setattr(Session, "state", lambda self, address: (read.append(address), state(self, address))[1])
    for tab in ("changes", "conversation", "state", "tasks", "raw"):
        for at in ("3000", "5999"):
            read.clear()
            Desk(book, Place("long.sqlite", at=at, tab=tab)).stage()
            assert len(set(read)) <= 140, (tab, at)
    session.close()


def test_the_timeline_is_drawn_again_where_a_person_looks(long_file: Path) -> None:
    with client_of(long_file) as client:
        html = BeautifulSoup(client.get("/f/long.sqlite/timeline?at=10&visible=2010,2035").text, "html.parser")
        drawn = {chunk["data-start"] for chunk in html.select(".chunk[data-start]")}
        assert drawn == {"0", "2000"}
        assert client.get("/f/long.sqlite/timeline?at=10&visible=99999999,x,-4").status_code == 400


def test_a_wide_state_is_listed_in_pages(tmp_path: Path) -> None:
    path = make_long(tmp_path / "wide.sqlite", 1)
    with closing(sqlite3.connect(path)) as database:
        blob = ormsgpack.unpackb(database.execute("SELECT checkpoint FROM checkpoints").fetchone()[0])
        blob["channel_values"] = {f"channel {n:04}": list(range(n)) for n in range(250)}
        database.execute("UPDATE checkpoints SET checkpoint = ?", (ormsgpack.packb(blob),))
        database.commit()
    with client_of(path) as client:
        html = BeautifulSoup(client.get("/f/wide.sqlite?tab=state").text, "html.parser")
        seen = [key.text for key in html.select("ul.tree > li > .node-line > .node-key")]
        while more := html.select_one("li.more a"):
            html = BeautifulSoup(client.get(str(more["hx-get"])).text, "html.parser")
            seen += [key.text for key in html.select("li.node > .node-line > .node-key")]
        assert seen == [f"channel {n:04}" for n in range(250)]
        deep = BeautifulSoup(client.get("/f/wide.sqlite?tab=state&path=/channel 0249/233").text, "html.parser")
        assert "233" in deep.select_one(".node.selected").text  # type: ignore[union-attr]


def test_raw_shows_the_head_of_a_huge_value_and_what_stands_beside_it(tmp_path: Path) -> None:
    key = "sk-ant-abcdefghijklmnop1234567890"
    path = make_states(
        tmp_path / "huge.sqlite", {"a": "word " * 600_000, "b": list(range(60_000)), "c": "x" * 300_000 + " " + key}
    )
    with client_of(path) as client:
        html = BeautifulSoup(client.get("/f/huge.sqlite?tab=raw").text, "html.parser")
        values = html.select("details.raw pre")[0].text
        assert '"size": 3000000' in values and '"size": 60000' in values and '"$masked"' in values
        assert key not in html.text
        for tab in ("changes", "state"):
            assert key not in client.get(f"/f/huge.sqlite?tab={tab}").text
