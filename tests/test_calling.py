"""From a task to its subgraph runs and back, in every way that LangGraph names namespaces, from every front end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from studio.model import Address
from studio.session import Session
from tests.cli.conftest import Studio, studio
from tests.explain import nested
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

__all__ = ["studio"]


def ways(path: Path) -> tuple[dict[str, list[tuple[str, str]]], dict[str, tuple[str, str | None]]]:
    """(row -> first and last rows of the subgraphs that ran from it, row of a subgraph -> row and task that called it)."""
    session = Session.open(str(path))
    try:
        tree = session.tree("t")
        into: dict[str, list[tuple[str, str]]] = {}
        back: dict[str, tuple[str, str | None]] = {}
        for row in tree.rows():
            state = session.state(row.checkpoint.address)
            runs = [run for found in session.subgraph_runs(state).values() for run in found]
            if runs:
                into[row.number] = [(tree.number(run.first), tree.number(run.last)) for run in runs]
            caller = session.caller(state)
            if caller is not None:
                back[row.number] = (tree.number(caller.address), caller.name)
        return into, back
    finally:
        session.close()


def test_two_calls_in_one_task_are_two_runs_with_one_caller(tmp_path: Path) -> None:
    into, back = ways(nested.make_per_invocation(tmp_path / "two.sqlite"))
    assert into == {"2": [("2.1", "2.4"), ("2.5", "2.8")]}
    assert set(back.values()) == {("2", "writer")}
    assert len(back) == 8


def test_each_turn_of_a_subgraph_with_its_own_memory_leads_to_its_own_caller(tmp_path: Path) -> None:
    into, back = ways(nested.make_persistent(tmp_path / "memory.sqlite"))
    assert into == {"2": [("2.1", "2.4")], "6": [("2.5", "2.8")], "10": [("2.9", "2.12")]}
    assert [back[f"2.{turn}"] for turn in (1, 4, 5, 8, 9, 12)] == [
        (number, "memory") for number in ("2", "2", "6", "6", "10", "10")
    ]


def test_any_depth_can_be_entered_and_left(tmp_path: Path) -> None:
    into, back = ways(nested.make_deep(tmp_path / "deep.sqlite"))
    assert into == {"1": [("1.1", "1.3")], "1.2": [("1.2.1", "1.2.3")], "1.2.2": [("1.2.2.1", "1.2.2.3")]}
    assert (back["1.2.2.3"], back["1.2.3"], back["1.3"]) == (("1.2.2", "inner"), ("1.2", "middle"), ("1", "outer"))


def test_a_subgraph_that_only_a_tool_calls_is_reached(tmp_path: Path) -> None:
    into, back = ways(nested.make_in_a_tool(tmp_path / "tool.sqlite"))
    assert into == {"2": [("2.1", "2.4")]}
    assert set(back.values()) == {("2", "tools")}


def test_a_call_inside_an_entrypoint_is_named_by_the_namespace_of_its_subgraph(tmp_path: Path) -> None:
    into, back = ways(nested.make_odd_names(tmp_path / "odd.sqlite"))
    assert into == {"0": [("0.1", "0.3")]}
    assert set(back.values()) == {("0", "odd|name:here")}


def test_show_names_the_runs_and_the_caller(tmp_path: Path, studio: Studio) -> None:
    path = nested.make_persistent(tmp_path / "memory.sqlite")
    assert "    subgraph #2.5 … #2.8  memory" in studio("show", path, "6").out.splitlines()
    assert "called from  #6 task memory" in studio("show", path, "2.6").out.splitlines()
    doc = studio("show", path, "2.6", "--json").doc
    assert (doc["called_from"]["number"], doc["called_from"]["task"]) == ("6", "memory")
    (run,) = studio("show", path, "6", "--json").doc["subgraph_runs"]
    assert (run["first"]["number"], run["last"]["number"], run["checkpoints"]) == ("2.5", "2.8", 4)
    plain = studio("show", path, "1", "--json").doc
    assert (plain["called_from"], plain["subgraph_runs"]) == (None, [])


def test_no_state_of_a_subgraph_with_its_own_memory_is_opened_to_tell_its_turns_apart(tmp_path: Path) -> None:
    opened_rows: list[Address] = []
    session = Session.open(str(nested.make_persistent(tmp_path / "memory.sqlite")))
    try:
        tree = session.tree("t")
        states = [session.state(tree.resolve(number)) for number in ("2", "6", "10")]
        session.explainer.prefetch = session.explainer.state = lambda *wanted, **_: opened_rows.append(wanted)  # type: ignore[method-assign, assignment]
        assert [run.count for state in states for runs in session.subgraph_runs(state).values() for run in runs] == [4, 4, 4]
        assert not opened_rows
    finally:
        session.close()


def test_a_long_turn_is_counted_to_its_end(tmp_path: Path) -> None:
    into, back = ways(nested.make_long_turn(tmp_path / "long.sqlite", 210))
    assert into == {"2": [("2.1", "2.212")]}
    assert set(back.values()) == {("2", "memory")}


@pytest.mark.parametrize("tab", ["changes", "tasks"])
def test_the_page_links_both_ways(tmp_path: Path, tab: str) -> None:
    with client_of(nested.make_persistent(tmp_path / "memory.sqlite")) as client:
        page = client.get(f"/?thread=t&at=6&tab={tab}").text
        assert {"changes": ">subgraph #2.5 … #2.8</a>", "tasks": ">#2.5 … #2.8</a>"}[tab] in page
        assert 'data-do="inner"' in page
        inside = client.get("/?thread=t&at=2.6&ns=memory").text
        assert 'data-do="caller"' in inside
        assert ">#6 task memory</a>" in inside
        link = inside.split('data-do="caller" href="')[1].split('"')[0].replace("&amp;", "&")
        assert "<h1>greet</h1>" in client.get(link).text


@pytest.mark.parametrize(
    ("make", "start", "inner"),
    [(nested.make_persistent, "6", "2.5"), (nested.make_per_invocation, "2", "2.1"), (nested.make_in_a_tool, "2", "2.1")],
    ids=["own memory", "per call", "in a tool"],
)
async def test_keys_of_the_terminal_go_in_and_out(make: Callable[[Path], Path], start: str, inner: str, tmp_path: Path) -> None:
    with opened(make(tmp_path / "one.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, start, size=(120, 40)) as drive:
            await drive.loaded()
            assert f"→ subgraph {inner} …" in drive.text()
            await drive.press("s")
            await drive.until(lambda: drive.main.here is not None and drive.main.here.number == inner)
            await drive.loaded()
            assert f"↰ called from #{start} task" in drive.text()
            await drive.press("u")
            await drive.until(lambda: drive.main.here is not None and drive.main.here.number == start)
