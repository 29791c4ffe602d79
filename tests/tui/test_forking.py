"""From the terminal alone: set a value at the step before, fork, run the real graph, answer its question, compare."""

from __future__ import annotations

import re
import shutil
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from textual.widgets import Button, Checkbox, Input, Select, TextArea

from studio import tagged
from studio.requests import ForkRequest, ForkResult, Patch
from studio.session import Session
from studio.tui import point
from studio.tui.messages import StoreChanged
from studio.tui.panes.state import StatePane
from studio.tui.screens.compare import CompareScreen
from studio.tui.screens.edit import EditScreen
from studio.tui.screens.fork import ForkScreen
from studio.tui.screens.pick import PickScreen
from studio.tui.screens.run import RunScreen
from tests.factories import folder_snapshot, saver_at
from tests.tui.driving import SAMPLES, Drive, driven, opened

GRAPH = f"{SAMPLES / 'graphs.py'}:support_agent"


@pytest.fixture
def support(tmp_path: Path) -> Path:
    folder = tmp_path / "support"
    folder.mkdir()
    return Path(shutil.copy(SAMPLES / "support_agent.sqlite", folder / "support_agent.sqlite"))


@pytest.fixture
def production(support: Path) -> Path:
    """The same in a file that no graph is called like."""
    return support.rename(support.with_name("production.sqlite"))


async def open_fork_form(drive: Drive) -> None:
    """Wait for the checkpoint, then press f."""
    await drive.until(lambda: drive.main.point)
    await drive.loaded()
    await drive.press("f")
    await drive.until(lambda: isinstance(drive.app.screen, ForkScreen))


async def editor(drive: Drive) -> TextArea:
    await drive.until(lambda: isinstance(drive.app.screen, EditScreen) and drive.app.screen.query("#editor"), "the editor")
    await drive.pilot.pause()
    return drive.app.screen.query_one("#editor", TextArea)


async def edit(drive: Drive, path: str, text: str) -> None:
    """Choose a value in the State pane, give it another text, keep it."""
    await drive.press("3", "right")
    await drive.loaded()
    drive.main.query_one("#state", StatePane).select_path(path)
    await drive.until(lambda: drive.main.selected_path == path, path)
    await drive.press("enter")
    (await editor(drive)).load_text(text)
    await drive.pilot.pause()
    await drive.press("ctrl+s")
    await drive.until(lambda: isinstance(drive.app.screen, ForkScreen), "the fork")
    await previewed(drive)


async def previewed(drive: Drive) -> None:
    await drive.rest()
    await drive.until(lambda: "Then runs" in drive.text() or "cannot be made" in drive.text(), "the preview")
    await drive.pilot.pause(0.2)  # the preview is asked for once the form rests
    await drive.rest()
    await drive.pilot.pause()


async def run_status(drive: Drive, *wanted: str) -> RunScreen:
    def there() -> bool:
        return isinstance(drive.app.screen, RunScreen) and drive.app.screen.status in wanted

    await drive.until(there, f"a run that is {wanted}")
    screen = drive.app.screen
    assert isinstance(screen, RunScreen)
    await drive.pilot.pause()
    return screen


async def test_the_refund_story_is_repaired_from_the_terminal_alone(support: Path, tmp_path: Path) -> None:
    before = folder_snapshot(support.parent)
    with opened(support, tmp_path / "s.sqlite", GRAPH) as session:
        async with driven(session, session.resolve("#5", "refund-4711")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            changes = "\n".join(drive.lines("#changes"))
            assert "/refund/amount" in changes and "499.0" in changes
            await drive.press("right", "down")
            await drive.until(
                lambda: "#3 look_up_order" in drive.text("#why") and "looks related" in drive.text("#why"), "the trail"
            )

            await drive.go("4")
            await edit(drive, "/order/total", "49.9")
            assert "499.0  →  49.9" in drive.text() and "plan_refund" in drive.text("#fork-preview")
            await drive.press("ctrl+r")

            screen = await run_status(drive, "planned")
            assert "May happen again" in drive.text() and "issue_refund, recorded with" in drive.text(), (
                "a run with side effects waits for a second click"
            )
            await drive.press("ctrl+r")
            screen = await run_status(drive, "paused")
            await drive.shows("Approve the refund of 49.90 EUR for order 4711?")
            await drive.until(lambda: screen.query("#ask Input"), "the answer form")
            screen.query("#ask Input").first(Input).focus()
            await drive.type("yes")
            await drive.press("enter")
            screen = await run_status(drive, "done")
            assert "payment service: 49.90 EUR sent for order 4711" in "\n".join(drive.lines("#log"))

            await drive.press("b")
            await drive.until(lambda: isinstance(drive.app.screen, CompareScreen))
            await drive.until(lambda: any("/refund/amount" in line for line in drive.lines("#ends")), "the ends")
            assert any("499.0" in line and "49.9" in line for line in drive.lines("#ends"))
            assert "They part after #3 look_up_order" in drive.text("#compare-head")
            await drive.press("escape", "escape")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.until(lambda: drive.main.here and drive.main.here.number == "s6", "the new head")
            await drive.loaded()
            assert drive.main.point is not None
            assert tagged.get(dict(drive.main.point.state.values), "/refund/amount") == 49.9
    assert folder_snapshot(support.parent) == before


async def test_a_paused_thread_is_answered_with_a(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite", GRAPH) as session:
        async with driven(session, session.resolve("head", "refund-6012"), (80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("a")
            screen = await run_status(drive, "paused")
            await drive.until(lambda: screen.plan is not None and screen.query("#ask Input"), "the plan and the form")
            screen.query("#ask Input").first(Input).focus()
            assert "Will ask" in "\n".join(drive.lines("#plan"))
            await drive.type("no")
            await drive.press("enter")
            await run_status(drive, "done")
            said = "\n".join(drive.lines("#plan"))
            assert "Will ask" not in said and "Answered" in said and "✓ ask_approval asks" in said
            assert any("ask_approval" in line for line in drive.lines("#log"))


async def test_a_failing_node_shows_its_error(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite", GRAPH) as session:
        async with driven(session, session.resolve("head", "refund-5150")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            assert any("no returns policy" in line for line in drive.lines("#changes"))
            await drive.press("r")
            await run_status(drive, "planned")
            assert "read_history" in drive.text("#plan"), "the finished sibling is named as kept"
            await drive.press("ctrl+r")
            await run_status(drive, "failed")
            assert any("no returns policy" in line for line in drive.lines("#log"))


async def test_without_a_named_graph_the_choices_are_offered(
    production: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES)
    with opened(production, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("r")
            screen = await run_status(drive, "choose")
            assert "research_team" in drive.text("#plan")
            assert screen.query_one("#graph", Input).value == "support_agent", "the first of them"
            await drive.press("enter")
            await run_status(drive, "planned")
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is drive.main)


async def test_where_no_langgraph_json_names_a_graph_it_is_typed_in_the_dialog_of_the_run(
    support: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("r")
            screen = await run_status(drive, "choose")
            assert "no langgraph.json" in drive.text("#plan") and "--graph" not in drive.text("#plan")
            field = screen.query_one("#graph", Input)
            assert field.display and field.has_focus
            field.value = GRAPH
            await drive.press("enter")
            await run_status(drive, "planned")


async def test_the_graph_of_a_planned_run_is_changed_and_the_next_run_takes_the_new_one(
    support: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES)
    with opened(support, tmp_path / "s.sqlite", "support_agent") as session:
        async with driven(session, session.resolve("#4", "refund-4711"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("r")
            screen = await run_status(drive, "planned")
            assert "another graph" in drive.text("#run-keys")
            await drive.press("ctrl+g")
            await run_status(drive, "choose")
            field = screen.query_one("#graph", Input)
            assert field.value == "support_agent" and "research_team" in drive.text("#plan")
            await drive.press("down")
            assert field.value == "research_team", "the names of langgraph.json are choices"
            await drive.press("up")
            assert field.value == "support_agent"

            field.value = GRAPH
            await drive.press("enter")
            await run_status(drive, "planned")
            assert not field.display and drive.app.graph == GRAPH
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.press("r")
            screen = await run_status(drive, "planned")
            assert screen.request().graph.graph == GRAPH


async def test_what_became_of_a_fork_is_told_in_the_dialog_of_its_run_and_covers_nothing(
    production: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(SAMPLES)
    with opened(production, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await edit(drive, "/order/total", "49.9")
            await drive.press("ctrl+r")
            await run_status(drive, "choose")
            await drive.until(lambda: "Written to the scratch file" in drive.text("#plan"), "what became of the fork")
            assert "Use this graph" in drive.text("#run-buttons") and "use this graph" in drive.text("#run-keys")
            assert not drive.app.screen.query("Toast")


async def test_an_edit_that_is_no_json_stays_in_the_editor(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711")) as drive:
            await open_fork_form(drive)
            screen = drive.app.screen
            assert isinstance(screen, ForkScreen)
            screen.edit_path("/order/total")
            (await editor(drive)).load_text('{"a": }')
            await drive.shows("✕")
            await drive.press("ctrl+s")
            await drive.pilot.pause()
            assert isinstance(drive.app.screen, EditScreen)
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is screen)
            assert not screen.edits


async def test_the_whole_state_becomes_one_edit_per_changed_channel(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711")) as drive:
            await open_fork_form(drive)
            screen = drive.app.screen
            assert isinstance(screen, ForkScreen)
            screen.edit_whole()
            area = await editor(drive)
            doc = tagged.loads(area.text)
            doc["intent"]["wants"] = "exchange"
            del doc["history"]
            area.load_text(tagged.dumps(doc, indent=2))
            await drive.pilot.pause()
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app.screen is screen)
            assert [edit.path for edit in screen.edits] == ["/intent", "/history"]
            await previewed(drive)
            shown = "\n".join(drive.lines("#fork-preview"))
            assert "/intent/wants" in shown and "/history" in shown
            await drive.press("delete")
            assert [edit.path for edit in screen.edits] == ["/intent"]


async def test_a_fork_goes_to_another_node_in_a_new_thread(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#5", "refund-4711"), (80, 24)) as drive:
            await open_fork_form(drive)
            await drive.rest()
            await drive.pilot.pause()
            drive.app.screen.query_one("#goto", Select).value = "reply"
            drive.app.screen.query_one("#new-thread", Input).value = "what-if"
            await drive.pilot.pause()
            await previewed(drive)
            assert any("reply" in line for line in drive.lines("#fork-preview"))
            assert any("a new thread" in line for line in drive.lines("#fork-preview"))
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.main.thread_id == "what-if", "the new thread")
            await drive.loaded()
            assert drive.main.point is not None and drive.main.point.state.next == ("reply",)


async def test_a_value_is_picked_from_the_state(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711")) as drive:
            await open_fork_form(drive)
            await drive.press("enter")
            await drive.until(lambda: isinstance(drive.app.screen, PickScreen) and drive.app.screen.query("#pick"))
            await drive.pilot.pause()
            drive.app.screen.query_one("#pick", StatePane).select_path("/intent")
            await drive.pilot.pause()
            await drive.press("enter")
            assert "refund" in (await editor(drive)).text


async def test_cancel_ends_an_endless_run(tmp_path: Path) -> None:
    module = tmp_path / "slow.py"
    module.write_text(
        textwrap.dedent("""
        import time
        from typing import TypedDict
        from langgraph.graph import END, START, StateGraph

        class State(TypedDict, total=False):
            fast: bool

        def work(state):
            print("\\x1b[31mworking\\x1b[0m", flush=True)
            if not state.get("fast"):
                time.sleep(600)
            return {"fast": False}

        builder = StateGraph(State)
        builder.add_node("work", work)
        builder.add_edge(START, "work")
        builder.add_edge("work", END)
    """)
    )
    path = tmp_path / "slow.sqlite"
    namespace: dict[str, object] = {}
    exec(module.read_text(), namespace)  # noqa: S102 - the test's own module
    with saver_at(path) as saver:
        graph = namespace["builder"].compile(checkpointer=saver)  # type: ignore[attr-defined]
        graph.invoke({"fast": True}, {"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
    with opened(path, tmp_path / "s.sqlite", f"{module}:builder") as session:
        start = session.resolve("#1", "t")
        async with driven(session, start) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await edit(drive, "/fast", "false")
            await drive.press("ctrl+r")
            await drive.until(
                lambda: isinstance(drive.app.screen, RunScreen) and drive.app.screen.status in ("planned", "running")
            )
            screen = drive.app.screen
            assert isinstance(screen, RunScreen)
            if screen.status == "planned":
                await drive.press("ctrl+r")
            await drive.until(lambda: any("working" in line for line in drive.lines("#log")), "its print")
            assert "\x1b" not in "".join(drive.lines("#log"))
            await drive.until(lambda: screen.running is not None)
            assert drive.main.offers("cancel")
            await drive.press("ctrl+x")
            await run_status(drive, "cancelled")
            assert not drive.main.offers("cancel")


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    """A file whose state holds an object of the graph's own module, in a channel that declares no type."""
    module = tmp_path / "typed_agent.py"
    module.write_text(
        textwrap.dedent("""
        import dataclasses
        from typing import Any, TypedDict
        from langgraph.graph import END, START, StateGraph

        @dataclasses.dataclass
        class Receipt:
            amount: float

        class State(TypedDict, total=False):
            paid: Any
            seen: str

        def pay(state):
            return {"paid": Receipt(1.5)}

        def look(state):
            return {"seen": type(state["paid"]).__name__}

        builder = StateGraph(State)
        builder.add_node("pay", pay)
        builder.add_node("look", look)
        builder.add_edge(START, "pay")
        builder.add_edge("pay", "look")
        builder.add_edge("look", END)
    """)
    )
    path = tmp_path / "typed.sqlite"
    make = textwrap.dedent(f"""
        import sqlite3
        import typed_agent
        from langgraph.checkpoint.sqlite import SqliteSaver
        connection = sqlite3.connect({str(path)!r}, check_same_thread=False)
        graph = typed_agent.builder.compile(checkpointer=SqliteSaver(connection))
        graph.invoke({{"seen": ""}}, {{"configurable": {{"thread_id": "t"}}}})
        connection.close()
    """)
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, check=True, capture_output=True)
    return path


async def test_types_that_nobody_vouches_for_are_asked_about(typed: Path, tmp_path: Path) -> None:
    with opened(typed, tmp_path / "s.sqlite", f"{tmp_path / 'typed_agent.py'}:builder") as session:
        async with driven(session, session.resolve("#2", "t")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("r")
            screen = await run_status(drive, "planned")
            assert any("typed_agent.Receipt" in line for line in drive.lines("#plan"))
            box = screen.query_one("#trust", Checkbox)
            assert box.display and not box.value and screen.plan is not None and not screen.plan.one_click
            box.value = True
            await drive.pilot.pause()
            assert screen.request().trust_types
            await drive.press("ctrl+r")
            await run_status(drive, "done")
            await drive.press("escape")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.until(lambda: drive.main.here and drive.main.here.number[0] == "s" and drive.main.here.is_leaf, "the end")
            await drive.loaded()
            assert drive.main.point is not None and drive.main.point.state.values["seen"] == "Receipt"


async def test_a_value_is_written_as_a_node_through_the_reducers(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite", GRAPH) as session:
        at = session.resolve("#5", "refund-4711")
        node = "plan_refund"
        assert node in session.as_node_candidates(at)
        async with driven(session, at) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await edit(drive, "/refund/amount", "49.9")
            drive.app.screen.query_one("#how", Select).value = node
            await drive.pilot.pause()
            await previewed(drive)
            await drive.until(lambda: not drive.app.screen.query_one("#fork-only", Button).disabled, "the preview by the graph")
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app.screen is drive.main)
            await drive.until(lambda: drive.main.here and drive.main.here.number[0] == "s", "the fork")
            await drive.loaded()
            assert drive.main.point is not None
            assert tagged.get(dict(drive.main.point.state.values), "/refund/amount") == 49.9
            assert drive.main.point.state.next == ("review",)


async def test_c_copies_the_point_and_stands_on_the_copy(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#5", "refund-4711")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await drive.press("c")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "s1", "the copy")
            await drive.loaded()
            assert any("The same point again" in line for line in drive.lines("#changes"))


async def test_fork_and_run_takes_one_click_only_without_side_effects(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite", GRAPH) as session:
        async with driven(session, session.resolve("#8", "refund-4711")) as drive:
            await open_fork_form(drive)
            await previewed(drive)
            await drive.until(lambda: not drive.app.screen.query_one("#fork-run", Button).disabled)
            await drive.press("ctrl+r")
            screen = await run_status(drive, "planned", "running", "done")
            assert screen.plan is not None
            if screen.plan.one_click:
                await run_status(drive, "done")
            else:
                assert screen.status == "planned"


async def test_the_forks_of_a_session_lie_in_a_database_that_langgraph_reads(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            await edit(drive, "/order/total", "49.9")
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.main.here and drive.main.here.number == "s1", "the fork row")
            await drive.loaded()
            assert "vs origin #4" in drive.text("#tabs")
    with sqlite3.connect(tmp_path / "s.sqlite") as connection:
        assert connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0] >= 1


async def test_beside_four_forks_the_names_of_rows_are_still_read_in_a_small_terminal(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        for number in ("4", "5", "6", "7"):
            session.fork(ForkRequest(session.resolve(number, "refund-4711"), patch=Patch(set={"/category": "other"})))
        async with driven(session, session.resolve("#7", "refund-4711"), size=(80, 24)) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            rows = drive.text("#timeline")
            assert rows.count("set /cate") >= 3, "the badge makes room for what the fork is"
            assert re.search(r"\+2 s1", rows), "five lanes, three of them drawn, the others counted"


async def test_growth_of_the_file_never_takes_the_place_of_a_jump(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#2", "refund-4711")) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.loaded()
            other = session.resolve("#1", "refund-6012")
            drive.main.open_thread("refund-6012", other)
            drive.main.on_store_changed(StoreChanged("tree"))  # the file grows before the jump's worker could start
            await drive.until(lambda: drive.main.here and drive.main.here.checkpoint.address == other, "the jump")
            await drive.loaded()
            assert drive.main.thread_id == "refund-6012"


async def test_a_file_that_grows_all_the_time_still_shows_the_checkpoint_under_the_cursor(
    support: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = point.load

    def slowly(*args: Any) -> point.Point:
        time.sleep(0.3)
        return read(*args)

    monkeypatch.setattr(point, "load", slowly)
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#2", "refund-4711")) as drive:
            await drive.until(lambda: drive.main.here)
            for _ in range(30):
                drive.main.post_message(StoreChanged("tree"))
                await drive.pilot.pause(0.05)
                if drive.main.point is not None:
                    break
            assert drive.main.point is not None, "each load was given up for the next one"


async def test_a_text_is_edited_as_text_and_as_json_on_request(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("#4", "refund-4711"), (80, 24)) as drive:
            await open_fork_form(drive)
            screen = drive.app.screen
            assert isinstance(screen, ForkScreen)
            screen.edit_path("/intent/wants")
            area = await editor(drive)
            stored = area.text
            assert stored and not stored.startswith('"')
            assert "edit as JSON" in drive.text() and "text, as it is" in drive.text()
            await drive.press("ctrl+t")
            await drive.shows("edit as text")
            assert area.text == tagged.dumps(stored)
            for wrong, told in (('"half', "The text stays as it is"), ("[1]", "Only a text without control characters")):
                area.load_text(wrong)
                await drive.pilot.pause()
                await drive.press("ctrl+t")
                await drive.shows(told)
                assert area.text == wrong
            area.load_text('"a \\"new\\" wish"')
            await drive.pilot.pause()
            await drive.press("ctrl+t")
            assert area.text == 'a "new" wish'
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app.screen is screen)
            assert [(edit.path, edit.doc) for edit in screen.edits] == [("/intent/wants", 'a "new" wish')]


async def test_what_is_wrong_with_an_edit_is_said_above_the_keys_of_its_dialog(support: Path, tmp_path: Path) -> None:
    with opened(support, tmp_path / "s.sqlite") as session:
        for size in ((80, 24), (120, 40)):
            async with driven(session, session.resolve("5", "refund-4711"), size) as drive:
                await drive.until(lambda drive=drive: drive.main.point)
                await drive.press("3", "right")
                await drive.loaded()
                drive.main.query_one("#state", StatePane).select_path("/refund")
                await drive.until(lambda drive=drive: drive.main.selected_path == "/refund")
                await drive.press("enter")
                (await editor(drive)).load_text("{")
                foot = drive.text("#edit-keys")
                await drive.press("ctrl+s")
                await drive.shows("Not valid yet: ")
                assert not drive.app._notifications and drive.text("#edit-keys") == foot


async def test_a_fork_that_is_as_asked_is_not_called_a_surprise(
    support: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unaudited(self: Session, request: ForkRequest) -> ForkResult:
        told = ("The fork is stored, but its entry in the audit could not be completed.",)
        return replace(fork(self, request), surprises=told)

    fork = Session.fork
    with opened(support, tmp_path / "s.sqlite") as session:
        async with driven(session, session.resolve("5", "refund-4711")) as drive:
            await open_fork_form(drive)
            monkeypatch.setattr(Session, "fork", unaudited)
            await drive.until(lambda: not drive.app.screen.query_one("#fork-only", Button).disabled)
            await drive.press("ctrl+s")
            await drive.until(lambda: drive.app._notifications, "a notice")
            assert [told.title for told in drive.app._notifications] == [
                "Forked as you asked and read back; this could not be done beside it"
            ]
