"""What a plan says of the graph of today and of the past: schema drift, tool calls by their outcome, nodes, subgraphs."""

from __future__ import annotations

import json
import operator
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Command, interrupt

from studio.assets import sample_folder
from studio.cli import main
from studio.model import Address
from studio.requests import ForkRequest, GraphSpec, PastNode, Patch, RunPlan, RunRequest, SubgraphStart
from studio.session import Session
from tests.factories import config, saver_at


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    total: int
    note: str
    schema_version: int


GRAPHS = """
import operator
from typing import Annotated, Any, Optional, TypedDict
from langgraph.graph import START, StateGraph

SCHEMA_VERSION = 2

class Today(TypedDict, total=False):
    messages: list
    log: Annotated[list[str], operator.add]
    total: str
    owner: Optional[str]
    schema_version: int

class Same(TypedDict, total=False):
    messages: Annotated[list, operator.add]
    log: Annotated[list[str], operator.add]
    total: float
    note: Any
    schema_version: int

def graph(state, *names):
    builder = StateGraph(state)
    for before, name in zip((None, *names), names):
        builder.add_node(name, lambda state: {})
        builder.add_edge(before or START, name)
    return builder.compile()

today = graph(Today, "think", "tools", "check")
same = graph(Same, "think", "tools", "mail")
broken = None
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "graphs.py").write_text(GRAPHS)
    listed = {name: f"./graphs.py:{name}" for name in ("today", "same", "broken")}
    (folder / "langgraph.json").write_text(json.dumps({"graphs": listed}))
    return folder


def calls(*names: str) -> AIMessage:
    listed = [{"name": name, "args": {"order": "4711", "api_key": "sk-x"}, "id": f"call_{name}"} for name in names]
    return AIMessage("", id="ai", tool_calls=listed)


def answered(name: str, **more: Any) -> ToolMessage:
    return ToolMessage("done", tool_call_id=f"call_{name}", name=name, id=f"result_{name}", **more)


def recorded(path: Path, *nodes: tuple[str, Any], resume: Any = None, stop: str | None = None) -> Path:
    """A thread `t` of these nodes, one after the other."""
    builder = StateGraph(State)
    for before, (name, node) in zip((None, *(name for name, _ in nodes)), nodes, strict=False):
        builder.add_node(name, node)
        builder.add_edge(before or START, name)
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver, interrupt_before=[stop] if stop else None)
        try:
            graph.invoke({"log": ["begun"], "total": 7, "note": "old", "schema_version": 1}, config("t"))
            if resume is not None:
                graph.invoke(Command(resume=resume), config("t"))
        except ValueError:
            pass
    return path


def think(*names: str) -> tuple[str, Any]:
    return "think", lambda state: {"messages": [calls(*names)]}


@pytest.fixture
def plans(project: Path, tmp_path: Path) -> Iterator[Any]:
    opened: list[Session] = []

    def plan(path: Path, ref: str = "root", graph: str = "same", look: bool = False) -> RunPlan:
        session = Session.open(str(path))
        opened.append(session)
        request = RunRequest(session.resolve(ref, "t"), graph=GraphSpec(graph, cwd=str(project)))
        return session.plan(request, look=look)

    yield plan
    for session in opened:
        session.close()


class TestToolCalls:
    def test_each_is_told_with_arguments_id_and_outcome(self, plans: Any, tmp_path: Path) -> None:
        def tools(state: State) -> dict[str, Any]:
            return {"messages": [answered("refund"), answered("mail", status="error")]}

        path = recorded(tmp_path / "a.sqlite", think("refund", "mail"), ("tools", tools))
        found = {call.tool: call for call in plans(path).past_calls}
        assert {name: call.outcome for name, call in found.items()} == {"refund": "answered", "mail": "failed"}
        assert found["refund"].call_id == "call_refund"
        assert 'order="4711"' in found["refund"].arguments
        assert "sk-x" not in found["refund"].arguments
        assert plans(path).side_effects[1].endswith("(call call_mail): it failed")

    def test_a_call_of_a_task_that_failed_may_have_happened(self, plans: Any, tmp_path: Path) -> None:
        def charge(state: State) -> dict[str, Any]:
            raise ValueError("no answer from the bank")

        path = recorded(tmp_path / "a.sqlite", think("refund"), ("charge", charge))
        for ref in ("root", "head"):
            plan = plans(path, ref)
            assert [(call.tool, call.outcome) for call in plan.past_calls] == [("refund", "unknown")]
            assert plan.side_effects[0].endswith("no result is stored, it may have happened")
            assert not plan.one_click

    def test_a_call_before_which_a_person_is_asked_did_not_happen(self, plans: Any, tmp_path: Path) -> None:
        path = recorded(
            tmp_path / "a.sqlite",
            think("refund"),
            ("approve", lambda state: {"log": [interrupt("pay?")]}),
            ("tools", lambda state: {"messages": [answered("refund")]}),
        )
        assert plans(path, "head").past_calls == ()

    def test_a_tools_node_that_was_never_seen_to_end_may_have_run(self, plans: Any, tmp_path: Path) -> None:
        path = recorded(tmp_path / "a.sqlite", think("refund"), ("tools", lambda state: {}), stop="tools")
        assert [call.outcome for call in plans(path, "head").past_calls] == ["unknown"]

    def test_a_call_that_nobody_will_answer_is_named(self, plans: Any, tmp_path: Path) -> None:
        path = recorded(tmp_path / "a.sqlite", think("refund"), ("mail", lambda state: {"messages": [AIMessage("sent")]}))
        assert "call_refund" in plans(path, "head").open_calls[0]

    def test_nodes_that_ran_afterwards_are_counted(self, plans: Any, tmp_path: Path) -> None:
        path = recorded(tmp_path / "a.sqlite", think("refund"), ("mail", lambda state: {"log": ["sent"]}))
        assert plans(path).past_nodes == (PastNode("think", 1), PastNode("mail", 1))
        assert plans(path, "head").past_nodes == ()


class TestDrift:
    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return recorded(tmp_path / "a.sqlite", ("think", lambda state: {"log": ["thought"]}), ("mail", lambda state: {}))

    def test_what_the_graph_of_today_has_otherwise_is_named(self, plans: Any, path: Path) -> None:
        plan = plans(path, "head", "today", look=True)
        drift = plan.drift
        assert (drift.channels_gone, drift.channels_new) == (("note",), ("messages", "owner"))
        assert [(one.channel, one.stored, one.declared) for one in drift.types] == [("total", "int", "str")]
        assert (drift.nodes_gone, drift.nodes_new) == (("mail",), ("check", "tools"))
        assert drift.schema_version == ("1", "2")
        told = " ".join(plan.warnings)
        assert "schema_version 1, the graph has 2" in told
        assert "no channel note" in told
        assert "total is stored as int, and the graph says str" in told

    def test_a_graph_that_can_hold_it_is_no_drift(self, plans: Any, path: Path) -> None:
        drift = plans(path, "head", "same", look=True).drift
        assert (drift.channels_gone, drift.types, drift.nodes_gone) == ((), (), ())

    def test_without_being_asked_for_no_code_is_loaded(self, plans: Any, path: Path, project: Path) -> None:
        (project / "graphs.py").write_text("open('loaded', 'w')\n" + GRAPHS)
        assert plans(path, "head", "same").drift is None
        assert not (project / "loaded").exists()

    def test_a_graph_that_cannot_be_loaded_is_a_line_of_the_plan(self, plans: Any, path: Path) -> None:
        plan = plans(path, "head", "broken", look=True)
        assert plan.drift is None
        assert any("cannot be compared" in text for text in plan.warnings)

    def test_the_command_shows_it_and_json_has_every_field(
        self, path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(project)
        call = ["run", str(path), "root", "--graph", "today", "--dry-run"]
        assert main(call) == 0
        text = capsys.readouterr().out
        assert "ran after this" in text
        assert "think, mail" in text
        assert "channels messages, owner" in text
        assert main([*call, "--json"]) == 0
        doc = json.loads(capsys.readouterr().out)
        assert doc["drift"]["nodes_gone"] == ["mail"]
        assert doc["past_nodes"] == [{"name": "think", "runs": 1}, {"name": "mail", "runs": 1}]
        assert (doc["past_calls"], doc["open_calls"], doc["reused"], doc["subgraphs"]) == ([], [], [], [])


class TestAHeadWhoseTasksHadAllEnded:
    """The program was killed after the results of a step were stored and before its checkpoint was."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        found = recorded(
            tmp_path / "a.sqlite", ("think", lambda state: {"log": ["thought"]}), ("mail", lambda state: {"total": 8})
        )
        with sqlite3.connect(found) as connection:
            connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = (SELECT max(checkpoint_id) FROM checkpoints)")
        return found

    def test_it_goes_on_with_the_stored_results(self, path: Path, project: Path) -> None:
        with closing(Session.open(str(path))) as session:
            request = RunRequest(session.resolve("head", "t"), graph=GraphSpec("same", cwd=str(project)))
            plan = session.plan(request)
            assert (plan.runs, plan.kept, plan.starts) == ((), ("mail",), True)
            run = session.run(request)
            end = run.wait(60)
            assert end is not None and end["status"] == "done", end
            assert [event.data["name"] for event in run.events if event.event == "task"] == []
            assert session.state(Address(**end["head"])).values["total"] == 8

    def test_the_plan_says_so_in_words(
        self, path: Path, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(project)
        assert main(["run", str(path), "head", "--graph", "same", "--dry-run"]) == 0
        assert "what follows mail" in capsys.readouterr().out


class TestQuestionsAndSubgraphs:
    def test_an_answer_that_was_given_counts_again(self, plans: Any, tmp_path: Path) -> None:
        def ask(state: State) -> dict[str, Any]:
            return {"log": [interrupt("name?"), interrupt("town?")]}

        path = recorded(tmp_path / "a.sqlite", ("think", ask), resume="Mara")
        session = Session.open(str(path))
        at = session.resolve("head", "t")
        graph = GraphSpec("same", cwd=str(tmp_path / "project"))
        with_answer = session.plan(RunRequest(at, graph=graph, resume="Bonn", has_resume=True))
        session.close()
        assert with_answer.reused == ('think was answered "Mara"',)
        assert plans(path, "head").asks == ('think asks: "town?"',)

    def test_what_becomes_of_a_subgraph_is_said(self, plans: Any, tmp_path: Path) -> None:
        inner = StateGraph(State)
        inner.add_node("first", lambda state: {"log": ["first"]})
        inner.add_node("ask", lambda state: {"log": [interrupt("go on?")]})
        inner.add_edge(START, "first")
        inner.add_edge("first", "ask")
        path = recorded(tmp_path / "a.sqlite", ("think", inner.compile()))
        assert plans(path, "head").subgraphs == (SubgraphStart("think", "restarts"),)


def test_a_run_from_inside_a_subgraph_names_what_the_outer_graph_did_after_it(tmp_path: Path) -> None:
    with closing(Session.open(str(sample_folder() / "support_agent.sqlite"), scratch=str(tmp_path / "s.sqlite"))) as session:
        inner = session.resolve("5.3", "refund-4711")
        fork = session.fork(ForkRequest(inner, Patch({"/case_note": "the espresso maker"}))).address
        for at in (inner, fork):
            plan = session.plan(RunRequest(at, graph=GraphSpec("support_agent")))
            assert plan.runs == ("critique",)
            assert [call.tool for call in plan.past_calls] == ["issue_refund"] and "499.0" in plan.past_calls[0].arguments
            assert [node.name for node in plan.past_nodes] == ["critique", "review", "ask_approval", "issue_refund", "reply"]


def test_what_a_fork_has_behind_it_is_not_said_to_have_run_after_it(tmp_path: Path) -> None:
    with closing(Session.open(str(sample_folder() / "support_agent.sqlite"), scratch=str(tmp_path / "s.sqlite"))) as session:
        graph = GraphSpec("support_agent")
        fork = session.fork(ForkRequest(session.resolve("4", "refund-4711"), Patch({"/order/total": 49.9}))).address
        stopped = session.run(RunRequest(fork, graph=graph))
        assert (stopped.wait(60) or {})["status"] == "paused" and stopped.head is not None
        asked = session.plan(RunRequest(stopped.head, graph=graph, resume="yes", has_resume=True))
        assert [node.name for node in asked.past_nodes] == ["ask_approval", "issue_refund", "reply"], (
            "as on the line it came from"
        )
        ended = session.run(RunRequest(stopped.head, graph=graph, resume="yes", has_resume=True))
        assert (ended.wait(60) or {})["status"] == "done" and ended.head is not None
        assert session.plan(RunRequest(ended.head, graph=graph)).past_nodes == ()
        at_fork = {node.name: node.runs for node in session.plan(RunRequest(fork, graph=graph)).past_nodes}
        assert at_fork["plan_refund"] == 2 and at_fork["issue_refund"] == 2, "done on both lines after the fork"
