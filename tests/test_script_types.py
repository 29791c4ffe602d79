"""What a program stored that was started as a script: its types are `__main__`'s, and a run brings them back under its module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from studio.requests import GraphSpec, RunRequest
from studio.session import Session
from studio.tui.runlog import plan_lines
from tests.cli.conftest import Studio, studio
from tests.web.conftest import OURS, client_of
from tests.web.test_acts import form_of, read, send

__all__ = ["studio"]

SCRIPT = '''
import dataclasses, sqlite3
from typing import TypedDict
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph


@dataclasses.dataclass
class Order:
    """The goods, and what they cost."""
    item: str
    price: int


class State(TypedDict, total=False):
    order: Order


def add(state):
    return {"order": Order("tea", 5)}


def raise_price(state):
    return {"order": Order(state["order"].item, state["order"].price + 1)}


graph = StateGraph(State)
graph.add_node("add", add)
graph.add_node("raise_price", raise_price)
graph.add_edge(START, "add")
graph.add_edge("add", "raise_price")
graph.add_edge("raise_price", END)

if __name__ == "__main__":
    saver = SqliteSaver(sqlite3.connect("orders.sqlite", check_same_thread=False))
    graph.compile(checkpointer=saver).invoke({}, {"configurable": {"thread_id": "t"}})
'''
SAID = "Types of a script come back under the module that now runs: __main__.Order as shop.Order."


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What `python shop.py` stored; the folder of both is the working folder."""
    (tmp_path / "shop.py").write_text(SCRIPT)
    subprocess.run([sys.executable, "shop.py"], cwd=tmp_path, check=True, timeout=120)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "orders.sqlite"


def test_the_command_line_says_which_name_the_types_of_a_script_will_have(orders: Path, studio: Studio) -> None:
    call = ("run", orders, "head~1", "--graph", "shop.py:graph")
    assert SAID in studio(*call, "--dry-run").err + studio(*call, "--dry-run").out
    plan, *_, end = studio(*call, "--json").lines
    assert plan["event"] == "plan" and SAID in plan["warnings"]
    (use,) = [one for one in plan["types"] if one["name"] == "__main__.Order"]
    assert (use["becomes"], use["safe"]) == ("shop.Order", True)
    assert end["status"] == "done"
    stored = studio("show", orders, end["head"]["checkpoint_id"], "--path", "/order", "--json").doc["value"]
    assert stored == {"$type": use["becomes"], "$ext": 2, "fields": {"item": "tea", "price": 6}}


def test_the_plan_of_both_uis_says_it_too(orders: Path) -> None:
    session = Session.open(str(orders))
    try:
        address = session.resolve("head~1")
        plan = session.plan(RunRequest(address, GraphSpec("shop.py:graph")))
        assert f"! {SAID}" in [str(line.content) for line in plan_lines(plan)]
    finally:
        session.close()
    with client_of(orders) as client:
        form = form_of(read(client.get("/?thread=t&at=head~1&path=/order").text))
        seen = send(client, form, "run", OURS, graph="shop.py:graph")
        assert SAID in read(seen.text).get_text()
