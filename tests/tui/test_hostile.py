"""Stored text is hostile, files are huge: what is drawn stays text, and the keys stay quick."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from textual.app import App, ComposeResult

from studio.tui import theme
from studio.tui.panes.state import StatePane
from tests.factories import saver_at, shop_builder
from tests.tui.driving import driven, opened

ESCAPES = "\x1b]52;c;c3R1ZGlv\x07\x1b[2J\x1b[31mred\x9b31m\x00\x7f"
BIDI = "amount \u202e00.994\u202c \u2066EUR\u2069 \u200f"
MARKUP = "[bold red]not bold[/] [@click=app.quit]quit[/] [link=https://example.com]x[/link] \\[ [/"
NAMES = (ESCAPES, BIDI, MARKUP)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    path = tmp_path / "hostile.sqlite"
    with saver_at(path) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        thread: Any = {
            "configurable": {"thread_id": f"t {ESCAPES}{BIDI}{MARKUP}", "checkpoint_ns": ""},
            "metadata": {"user": MARKUP + ESCAPES},
        }
        graph.update_state(thread, {"messages": [HumanMessage("hello", id="m1")]}, as_node="web")
        call = {"name": f"tool{MARKUP}{ESCAPES}", "args": {f"a{ESCAPES}": BIDI}, "id": "c1"}
        text = "\n".join(NAMES)
        graph.update_state(
            thread,
            {
                "messages": [HumanMessage(text, id="m1"), AIMessage(text, id="m2", tool_calls=[call])],
                "item": text,
                "notes": list(NAMES),
            },
            as_node="web",
        )
        graph.update_state(
            thread, {"item": "x" * 5_000_000, "approved": {f"{MARKUP}{ESCAPES}": {"password": "hunter2-secret"}}}, as_node="web"
        )
        graph.update_state(thread, {"item": "y" * 5_000_000 + ESCAPES}, as_node="web")
    return path


def assert_inert(text: str) -> None:
    bad = [
        character
        for character in text
        if (ord(character) < 32 and character != "\n")
        or 0x7F <= ord(character) <= 0x9F
        or character in "\u202e\u2066\u200f\u202c\u2069"
    ]
    assert not bad, bad


async def test_hostile_text_is_drawn_as_text_everywhere(hostile: Path, tmp_path: Path) -> None:
    with opened(hostile, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            for number in "012":
                await drive.go(number)
                for tab in "12345":
                    await drive.press(tab)
                    await drive.loaded()
                    assert_inert(drive.text())
                    for view in ("#changes", "#conversation", "#tasks", "#raw", "#why"):
                        assert_inert("\n".join(drive.lines(view)))
            await drive.go("1")
            await drive.press("1")
            await drive.loaded()
            assert "[bold red]not bold[/]" in "\n".join(drive.lines("#changes")), "markup is shown, not obeyed"
            for screen in ("t", "f", "slash"):
                await drive.press(screen)
                await drive.until(lambda: drive.app.screen is not drive.main)
                if screen == "slash":
                    await drive.type("not bold")
                    await drive.until(lambda: drive.rows("#hits").row_count > 0)
                await drive.rest()
                await drive.pilot.pause()
                assert_inert(drive.text())
                await drive.press("escape", "escape")
                await drive.until(lambda: drive.app.screen is drive.main)
            svg = drive.app.export_screenshot()
            assert_inert(svg)


async def test_a_secret_is_masked_in_every_pane(hostile: Path, tmp_path: Path) -> None:
    with opened(hostile, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.go("2")
            for tab in "12345":
                await drive.press(tab)
                await drive.loaded()
                assert "hunter2" not in drive.text()
            assert "hunter2" not in "\n".join(drive.lines("#changes") + drive.lines("#why") + drive.lines("#raw"))
            await drive.press("3", "right")
            await drive.loaded()
            drive.main.query_one("#state", StatePane).select_path("/approved")
            await drive.until(lambda: drive.main.selected_path == "/approved")
            await drive.press("y")
            assert "hunter2" not in drive.app.clipboard and "$masked" in drive.app.clipboard


async def test_one_masked_value_is_revealed_and_masked_again(hostile: Path, tmp_path: Path) -> None:
    with opened(hostile, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.go("2")
            await drive.press("v")
            assert "hunter2" not in drive.text()
            await drive.press("3")
            await drive.loaded()
            pane = drive.main.query_one("#state", StatePane)
            secret = session.state(drive.main.here.checkpoint.address).values["approved"]  # type: ignore[union-attr]
            path = f"/approved/{next(iter(secret)).replace('~', '~0').replace('/', '~1')}/password"
            pane.select_path(path)
            await drive.until(lambda: drive.main.selected_path == path)
            await drive.press("v")
            await drive.shows("hunter2-secret")
            await drive.press("v")
            await drive.until(lambda: "hunter2" not in drive.text())
            await drive.press("v")
            await drive.shows("hunter2-secret")
            await drive.go("1")
            await drive.go("2")
            await drive.until(lambda: "hunter2" not in drive.text(), "the value is masked in another visit")


async def test_a_value_that_is_revealed_is_copied_as_it_is_seen(hostile: Path, tmp_path: Path) -> None:
    with opened(hostile, tmp_path / "s.sqlite") as session:
        async with driven(session, size=(120, 32), notices=True) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.go("2")
            await drive.press("3", "right")
            await drive.loaded()
            pane = drive.main.query_one("#state", StatePane)
            secret = session.state(drive.main.here.checkpoint.address).values["approved"]  # type: ignore[union-attr]
            path = f"/approved/{next(iter(secret)).replace('~', '~0').replace('/', '~1')}/password"
            pane.select_path(path)
            await drive.until(lambda: drive.main.selected_path == path)
            await drive.press("y")
            assert "$masked" in drive.app.clipboard
            await drive.shows("with its secrets masked")
            await drive.press("v", "y")
            await drive.until(lambda: drive.app.clipboard == "hunter2-secret", "the value that is seen")
            pane.select_path("/approved")
            await drive.until(lambda: drive.main.selected_path == "/approved")
            await drive.press("y")
            assert "hunter2" not in drive.app.clipboard, "what lies around it was not revealed"
            pane.select_path(path)
            await drive.until(lambda: drive.main.selected_path == path)
            await drive.press("v", "y")
            assert "hunter2" not in drive.app.clipboard, "it is masked again"


async def test_a_text_of_five_megabytes_does_not_stop_the_keys(hostile: Path, tmp_path: Path) -> None:
    with opened(hostile, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.go("3")
            shown = "\n".join(drive.lines("#changes"))
            assert "5,000,0" in shown and len(shown) < 60_000
            begin = time.perf_counter()
            for tab in "2345":
                await drive.press(tab)
                await drive.loaded()
            assert time.perf_counter() - begin < 20
            await drive.press("1", "right", "enter")
            await drive.until(lambda: drive.app.screen.query("#editor"), "the editor")
            assert "$cut" in drive.app.screen.query_one("#editor").text  # type: ignore[attr-defined]


def long_thread(path: Path, count: int, branches: dict[int, int] | None = None) -> Path:
    """A thread of very many checkpoints with nothing in them, in the saver's own tables; `branches`: row -> its parent."""
    with saver_at(path) as saver:
        saver.setup()
    add_rows(path, 0, count, branches or {})
    return path


def add_rows(path: Path, start: int, stop: int, branches: dict[int, int]) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executemany(
            "INSERT INTO checkpoints VALUES ('long', '', ?, ?, 'json', ?, ?)",
            [
                (
                    f"{index:08d}",
                    f"{branches.get(index, index - 1):08d}" if index else None,
                    f'{{"v": 4, "id": "{index:08d}", "channel_values": {{"n": {index}}}}}',
                    f'{{"source": "loop", "step": {index}}}',
                )
                for index in range(start, stop)
            ],
        )


async def test_a_hundred_thousand_checkpoints_open_and_move_quickly(tmp_path: Path) -> None:
    path = long_thread(tmp_path / "long.sqlite", 100_000, {50_000: 25_000})
    begin = time.perf_counter()
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            opened_in = time.perf_counter() - begin
            timeline = drive.rows("#timeline")
            assert timeline.row_count == 100_000
            await drive.press("g")
            begin = time.perf_counter()
            for key in ("G", "g", "pagedown", "pagedown", "G", "pageup", "k", "j"):
                await drive.press(key)
            moved_in = (time.perf_counter() - begin) / 8
            await drive.press("g")
            await drive.loaded()
            assert "#0" in drive.text("#timeline")
            await drive.go("50000")
            assert "#50000" in drive.text("#timeline")
            assert timeline.virtual_size.height == 100_000
            assert opened_in < 20 and moved_in < 2, (opened_in, moved_in)


async def test_growth_above_and_below_leaves_the_cursor_on_its_checkpoint(tmp_path: Path) -> None:
    path = long_thread(tmp_path / "long.sqlite", 500)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.go("250")
            for index in range(500, 520):
                add_rows(path, index, index + 1, {} if index % 2 else {index: 100})
                session.refresh()
                drive.main.open_thread("long")
                await drive.rest()
                await drive.pilot.pause()
            assert drive.main.here is not None and drive.main.here.number == "250"
            assert drive.rows("#timeline").row_count == 520
            assert "#250" in drive.text("#timeline")


async def test_nothing_that_is_drawn_uses_a_colour_that_the_other_themes_lack(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#3", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            for name in ("studio-light", "textual-light", "nord", "textual-ansi", "studio-dark"):
                if name in drive.app.available_themes:
                    drive.app.theme = name
                    await drive.pilot.pause()
                    await drive.loaded()
                    assert "/price" in drive.text()


class _Lines(App[None]):
    def get_theme_variable_defaults(self) -> dict[str, str]:
        return theme.defaults(dark=True)

    def compose(self) -> ComposeResult:
        from studio.tui.lines import LineView

        yield LineView(id="view")


async def test_lines_fold_wrap_and_keep_the_cursor_on_what_can_be_chosen() -> None:
    from studio.tui import draw
    from studio.tui.lines import Line, LineView

    app = _Lines()
    async with app.run_test(size=(30, 10)) as pilot:
        view = app.query_one("#view", LineView)
        inner = Line(draw.own("inside"), path="/in")
        view.show(
            [
                Line(draw.own("a heading")),
                Line(draw.own("word " * 20), path="/a", hanging=2),
                Line(draw.own("more"), folded=(inner,)),
            ]
        )
        view.focus()
        await pilot.pause()
        assert view.selected_path == "/a"
        height = view.virtual_size.height
        await pilot.press("j", "space", "j")
        await pilot.pause()
        assert view.selected_path == "/in" and view.virtual_size.height == height + 1
        view.show(view.lines, keep=True)
        assert view.selected_path == "/in", "seeing the same again keeps what was open"
        await pilot.press("k", "k", "k")
        assert view.selected_path == "/a"
        view.extend([Line(draw.own("log line"))])
        assert view.virtual_size.height == height + 2
