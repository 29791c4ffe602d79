"""Open, find the thread, move, read the panes: at any size, and without a trace."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest
from textual.command import CommandPalette
from textual.widgets import Input, OptionList

from studio.actions import ACTIONS
from studio.model import Address
from studio.requests import ForkRequest
from studio.tui.lines import LineView
from studio.tui.main import MainScreen
from studio.tui.messages import StoreChanged
from studio.tui.panes.state import StatePane
from studio.tui.screens.fork import ForkScreen
from studio.tui.screens.help import HelpScreen
from studio.tui.screens.search import SearchScreen
from studio.tui.screens.threads import ThreadsScreen
from studio.tui.tabs import TABS
from tests.factories import folder_snapshot, make_shop, make_states, saver_at, shop_builder
from tests.tui.driving import SAMPLES, driven, opened


async def test_several_threads_open_as_a_list_that_any_text_filters(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
            await drive.until(lambda: drive.rows("#threads").row_count == 4)
            await drive.type("waiting")
            await drive.until(lambda: drive.rows("#threads").row_count == 1)
            assert "what is the price of the kettle?" in drive.text()
            await drive.press("enter")
            await drive.until(lambda: drive.main.thread_id == "paused")
            await drive.loaded()
            await drive.shows("waits")


async def test_a_file_with_one_thread_opens_at_its_head(tmp_path: Path) -> None:
    path = tmp_path / "one.sqlite"
    with saver_at(path) as saver:
        shop_builder().compile(checkpointer=saver).invoke(
            {"messages": []}, {"configurable": {"thread_id": "only", "checkpoint_ns": ""}}
        )
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.thread_id == "only")
            await drive.loaded()
            assert drive.main.here is not None and drive.main.here.is_head


async def test_a_place_is_opened_by_its_ref(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        wanted = session.resolve("#3", "done")
        async with driven(session, wanted) as drive:
            await drive.until(lambda: drive.main.thread_id == "done")
            await drive.loaded()
            assert drive.main.here is not None and drive.main.here.number == "3"


async def test_moving_shows_what_each_superstep_changed_and_who_wrote_it(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#2", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            assert "look_up" in drive.text("#changes") and "price_of(item=" in drive.text("#changes")
            await drive.press("j")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "3")
            await drive.loaded()
            await drive.shows("/price")
            assert "49.9" in drive.text("#changes")
            await drive.press("k", "k")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "1")
            await drive.press("G")
            await drive.until(lambda: drive.main.here and drive.main.here.is_head)
            await drive.press("g")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "0")


async def test_the_tabs_show_the_same_checkpoint_six_ways(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#6", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("2")
            await drive.loaded()
            await drive.shows("what is the price of the kettle?")
            await drive.press("3")
            await drive.loaded()
            await drive.shows("notes")
            await drive.press("4")
            await drive.loaded()
            await drive.shows("publish")
            assert "ran because" in drive.text("#tasks")
            await drive.press("5")
            await drive.loaded()
            await drive.shows(session.resolve("#6", "done").checkpoint_id)
            await drive.press("6")
            await drive.loaded()
            await drive.shows("root graph · 7 nodes")
            assert re.search(r"grade ×2 +→ approve", drive.text("#graph"))
            await drive.press("1")
            await drive.shows("Scheduled from here")


async def test_the_why_pane_tells_who_wrote_the_selected_value(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#7", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("3", "right")
            await drive.loaded()
            drive.main.query_one("#state", StatePane).select_path("/price")
            await drive.until(lambda: "wrote it" in drive.text("#why") and "/price" in drive.text("#why"), "why /price")
            assert "#3 web wrote it" in drive.text("#why")
            await drive.press("b", "enter")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "3", "the jump")


async def test_a_state_with_many_entries_is_filled_in_chunks(tmp_path: Path) -> None:
    path = tmp_path / "big.sqlite"
    with saver_at(path) as saver:
        graph = shop_builder().compile(checkpointer=saver)
        graph.update_state(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, {"notes": [str(n) for n in range(1000)]}, as_node="web"
        )
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("3", "right")
            await drive.loaded()
            tree = drive.main.query_one("#state", StatePane)
            tree.select_path("/notes")
            await drive.pilot.pause()
            await drive.press("right")
            await drive.until(lambda: len(tree.root.children[0].children) == 201)
            tree.move_cursor(tree.root.children[0].children[200])
            await drive.pilot.pause()
            await drive.press("enter")
            await drive.until(lambda: len(tree.root.children[0].children) == 401)
            tree.select_path("/notes/399")
            await drive.until(lambda: drive.main.selected_path == "/notes/399")


async def test_brackets_go_to_the_same_point_on_another_branch(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        tree = session.tree("forked")
        async with driven(session, tree.head) as drive:
            await drive.until(lambda: drive.main.point)
            seen = set()
            for _ in range(len(tree.leaves())):
                await drive.press("right_square_bracket")
                await drive.loaded()
                assert drive.main.here is not None
                seen.add(drive.main.here.lane)
            assert len(seen) == len(tree.leaves())


async def test_d_pins_the_base_of_every_diff(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#1", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("d")
            await drive.go("7")
            await drive.shows("vs #1 (pinned)")
            assert any("/approved" in line for line in drive.lines("#changes"))
            await drive.press("d")
            await drive.shows("vs parent #6")


async def test_lines_of_why_wrap_and_take_no_more_room_than_they_need(tmp_path: Path) -> None:
    long = " ".join(f"word{index}" for index in range(14))
    path = make_states(tmp_path / "w.sqlite", {"first": long}, {"first": long, "second": "x"}, {"first": long, "second": long})
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("2"), (80, 24)) as drive:
            await drive.loaded()
            await drive.press("b")
            await drive.until(lambda: "word13" in drive.text("#why"), "the end of a long value")
            rows = drive.main.query_one("#why").region.height
            assert rows == drive.main.query_one("#why", LineView).virtual_size.height + 2 or rows == 8
        async with driven(session, session.resolve("0"), (80, 24)) as drive:
            await drive.loaded()
            await drive.press("b")
            await drive.until(lambda: 3 <= drive.main.query_one("#why").region.height <= 5, "a small why")


async def test_search_finds_a_value_and_goes_there(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("slash")
            await drive.until(lambda: isinstance(drive.app.screen, SearchScreen))
            await drive.type("graded")
            await drive.until(lambda: drive.rows("#hits").row_count > 0)
            await drive.press("enter")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.until(lambda: drive.main.here and drive.main.here.number == "5")
            await drive.until(lambda: drive.main.selected_path == "/notes/2")
            assert drive.main.tab == "state" and drive.main.focused is drive.main.pane


async def test_a_hit_in_a_long_list_is_selected_where_it_stands(tmp_path: Path) -> None:
    path = make_states(tmp_path / "rows.sqlite", {"rows": [f"row {index}" for index in range(900)], "other": "x"})
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            await drive.press("slash")
            await drive.until(lambda: isinstance(drive.app.screen, SearchScreen))
            await drive.type("row 777")
            await drive.until(lambda: drive.rows("#hits").row_count > 0)
            assert "superstep" in drive.text("#hits"), "a hit names its row"
            await drive.press("enter")
            await drive.until(lambda: drive.main.selected_path == "/rows/777")
            await drive.shows('"row 777"')
            state = drive.main.pane
            assert isinstance(state, StatePane)
            listed = [node.data.step for node in state.root.children[0].children if node.data]
            assert listed == ["… 600 earlier", *map(str, range(600, 800)), "… 100 more"]
            state.move_cursor(state.root.children[0].children[0])
            await drive.press("enter")
            await drive.pilot.pause()
            listed = [node.data.step for node in state.root.children[0].children if node.data]
            assert listed == ["… 400 earlier", *map(str, range(400, 800)), "… 100 more"]


async def test_the_timeline_says_how_many_of_its_rows_are_of_subgraphs(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("5", "refund-4711")) as drive:
            await drive.shows("Timeline 14 · 4 in subgraphs")
            await drive.shows("row 6 of 14")


async def test_help_lists_every_action_of_the_table(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("question_mark")
            await drive.until(lambda: isinstance(drive.app.screen, HelpScreen))
            shown = "\n".join(drive.lines("#help"))
            assert all(action.title in shown and action.help in shown for action in ACTIONS)
            await drive.press("escape")
            await drive.until(lambda: isinstance(drive.app.screen, MainScreen))


async def test_the_key_of_the_help_works_in_a_dialog_until_something_is_typed(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
            for screen, opens in ((ThreadsScreen, "t"), (SearchScreen, "slash")):
                if drive.app.screen is drive.main:
                    await drive.press(opens)
                await drive.until(lambda screen=screen: isinstance(drive.app.screen, screen))
                await drive.press("question_mark")
                await drive.until(lambda: isinstance(drive.app.screen, HelpScreen))
                await drive.press("escape")
                await drive.until(lambda screen=screen: isinstance(drive.app.screen, screen))
                await drive.press("a", "question_mark")
                assert drive.app.screen.query_one(Input).value == "a?"
                await drive.press("tab", "question_mark")
                await drive.until(lambda: isinstance(drive.app.screen, HelpScreen))
                await drive.press("escape")
                await drive.until(lambda screen=screen: isinstance(drive.app.screen, screen))
                await drive.press("escape")
                assert isinstance(drive.app.screen, screen) and not drive.app.screen.query_one(Input).value
                await drive.press("escape")
                await drive.until(lambda: drive.app.screen is drive.main)
            await drive.shows("No thread is open.")


async def test_a_choice_of_the_palette_is_seen_not_done_behind_a_dialog(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "done")) as drive:
            await drive.loaded()
            await drive.press("t")
            await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
            await drive.press("ctrl+p")
            await drive.until(lambda: isinstance(drive.app.screen, CommandPalette))
            await drive.type("every value at")
            await drive.shows("Every value at this checkpoint")
            await drive.press("enter")
            await drive.until(lambda: drive.app.screen is drive.main and drive.main.tab == "state")
            await drive.press("f")
            await drive.until(lambda: isinstance(drive.app.screen, ForkScreen))
            await drive.press("ctrl+p")
            await drive.until(lambda: isinstance(drive.app.screen, CommandPalette))
            await drive.shows("Show all keys")
            assert "Move to the next" not in drive.text() and "Run your graph" not in drive.text()


async def test_every_action_of_the_table_is_bound_and_answered(shop: Path, tmp_path: Path) -> None:
    assert MainScreen._merged_bindings is not None
    bound = {binding.action for bindings in MainScreen._merged_bindings.key_to_bindings.values() for binding in bindings}
    for action in ACTIONS:
        assert f"do('{action.id}')" in bound
        assert action.id in TABS or hasattr(MainScreen, f"do_{action.id}")


async def test_the_palette_offers_what_the_studio_does_before_what_any_application_does(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "done"), (120, 60)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("ctrl+p")
            await drive.shows("Same point again")
            await drive.until(lambda: drive.app.screen.query_one(OptionList).option_count > 20)
            titles = [str(option.prompt) for option in drive.app.screen.query_one(OptionList).options]
            assert titles[0].startswith("Fork") and any(title.startswith("Quit") for title in titles[20:])


async def test_the_palette_finds_actions_and_checkpoints(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("ctrl+p")
            await drive.type("grade")
            await drive.shows("Go to this checkpoint")
            await drive.press("enter")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.until(lambda: drive.main.here and drive.main.here.label == "grade ×2")


@pytest.mark.parametrize("size", [(80, 24), (120, 32), (200, 60), (40, 12)])
async def test_any_size_of_terminal_shows_timeline_and_changes(shop: Path, tmp_path: Path, size: tuple[int, int]) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#3", "done"), size) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            assert "#3" in drive.text("#timeline")
            assert drive.main.query_one("#why").display == (size[0] >= 100 and size[1] >= 28)
            assert all(len(line) <= size[0] for line in drive.text().splitlines())
            await drive.press("b")
            await drive.until(lambda: drive.main.query_one("#why").display)
            for tab in "23451":
                await drive.press(tab)
            for opens in ("f", "r", "t", "slash", "question_mark"):
                await drive.press(opens)
                await drive.pilot.pause(0.05)
                while drive.app.screen is not drive.main:
                    await drive.press("escape")
                    await drive.pilot.pause(0.02)


async def test_the_cursor_stays_when_another_process_writes(tmp_path: Path) -> None:
    path = make_shop(tmp_path / "live.sqlite")
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#3", "paused")) as drive:
            await drive.until(lambda: drive.main.point)
            before = drive.rows("#timeline").row_count
            with saver_at(path) as saver:
                from langgraph.types import Command

                shop_builder().compile(checkpointer=saver).invoke(
                    Command(resume="yes"), {"configurable": {"thread_id": "paused", "checkpoint_ns": ""}}
                )
            await drive.until(lambda: drive.rows("#timeline").row_count > before, "growth")
            assert drive.main.here is not None and drive.main.here.number == "3"
            await drive.shows("publish")


async def test_looking_with_the_terminal_ui_changes_nothing(shop: Path, tmp_path: Path) -> None:
    before = folder_snapshot(shop.parent)
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#3", "done")) as drive:
            await drive.until(lambda: drive.main.point)
            for key in ("2", "3", "4", "5", "1", "G", "g", "j", "b", "d", "d", "y", "i", "P", "T", "L"):
                await drive.press(key)
                await drive.loaded()
    assert folder_snapshot(shop.parent) == before


async def test_copying_goes_through_the_terminal(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        at = session.resolve("#3", "done")
        async with driven(session, at) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("i")
            assert drive.app.clipboard == at.checkpoint_id
            await drive.press("L")
            assert drive.app.clipboard.startswith("studio web ") and at.checkpoint_id in drive.app.clipboard
            await drive.press("P")
            assert "graph.get_state(config)" in drive.app.clipboard
            await drive.press("T")
            assert "def test_" in drive.app.clipboard
            await drive.press("3", "right")
            await drive.loaded()
            drive.main.query_one("#state", StatePane).select_path("/price")
            await drive.until(lambda: drive.main.selected_path == "/price")
            await drive.press("y")
            assert drive.app.clipboard == "49.9"


async def test_a_wrong_place_is_one_line_and_the_threads(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, "no-such-checkpoint") as drive:
            await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen))
            await drive.until(lambda: len(drive.app._notifications) == 1)
            assert drive.app.screen.query_one("#filter", Input).has_focus


def test_the_command_line_hands_over_a_session_and_a_place() -> None:
    from studio import tui

    assert list(inspect.signature(tui.run).parameters) == ["session", "at"]


async def test_growth_of_a_thread_with_many_forks_costs_what_is_on_the_screen(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        at = session.resolve("#3", "done")
        for _ in range(100):
            session.fork(ForkRequest(at))
        tree = session.tree("done")
        looked: list[Address] = []
        look = tree._look
        assert look is not None

        def counted(address: Address) -> tuple[Any, Any]:
            looked.append(address)
            return look(address)

        tree._look = counted
        async with driven(session, tree.address_at(60), (80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            looked.clear()
            drive.main.on_store_changed(StoreChanged("tree"))
            await drive.loaded()
            assert looked and len(set(looked)) <= 24 + 2 * 16, "leaves that nobody sees were looked at"
            assert "‹" in drive.text("#timeline")
            hidden = [int(found) for found in re.findall(r" \+(\d+) +s?\d", drive.text("#timeline"))]
            assert hidden and max(hidden) > 5, "the lanes that are not drawn are counted"


async def test_a_hit_of_another_thread_names_its_thread_and_no_hit_is_said(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("head", "failed"), (80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("slash")
            await drive.until(lambda: isinstance(drive.app.screen, SearchScreen))
            await drive.type("graded")
            await drive.until(lambda: drive.rows("#hits").row_count > 0)
            await drive.until(lambda: any(name in drive.text("#hits") for name in ("done", "paused", "forked")), "the thread")
            await drive.type("zzz")
            await drive.shows("no match for “gradedzzz”")
            await drive.press("escape", "escape", "t")  # the field first, then the dialog
            await drive.until(lambda: isinstance(drive.app.screen, ThreadsScreen) and drive.rows("#threads").row_count)
            await drive.type("zzz")
            await drive.shows("no thread matches “zzz”")


async def test_a_title_leaves_out_whole_facts_where_it_has_no_room_for_all(tmp_path: Path) -> None:
    with opened(SAMPLES / "support_agent.sqlite", tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#8", "refund-4711"), (80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.shows("─ #8 issue_refund · step 7 · 14:05:12 ─")
            await drive.go("4")
            await drive.shows("─ #4 read_history ∥ read_policy · step 3 ─")
            await drive.pilot.resize_terminal(140, 24)
            await drive.shows("─ #4 read_history ∥ read_policy · step 3 · 14:02:06 · +1.1 s ─")
            await drive.press("f")
            await drive.shows("─ Fork from #4 read_history ∥ read_policy · step 3 · 14:02:06 · +1.1 s ─")
            await drive.pilot.resize_terminal(60, 24)
            await drive.shows("─ Fork from #4 read_history ∥ read_policy · step 3 ─")


async def test_a_fork_tells_no_time_since_the_row_before(shop: Path, tmp_path: Path) -> None:
    with opened(shop, tmp_path / "s.sqlite") as session:
        made = session.fork(ForkRequest(session.resolve("#3", "done"))).address
        row = session.tree("done").row(made)
        assert row.seconds is not None
        async with driven(session, made, (160, 45)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            line = next(line for line in drive.text("#timeline").splitlines() if row.number in line)
            assert "+" not in line and "+" not in str(drive.main.query_one("#centre").border_title)
