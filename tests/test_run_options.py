"""How far, how long and with what a run goes: steps, time, context, configuration, and what models and nodes say on the way."""

from __future__ import annotations

import json
import operator
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from studio.cli import main
from studio.requests import GraphSpec, RunRequest
from studio.session import Session
from tests.factories import config, saver_at

GRAPHS = """
import dataclasses, operator, time
from typing import Annotated, TypedDict
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime


class State(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


@dataclasses.dataclass
class Shop:
    city: str
    tier: str = "basic"


def line(*names, **kinds):
    builder = StateGraph(State, **kinds)
    for before, name in zip((None, *names), names):
        builder.add_node(name, globals()[name])
        builder.add_edge(before or START, name)
    return builder


def one(state):
    return {"log": ["one"]}

def two(state):
    return {"log": ["two"]}

async def three(state):
    return {"log": ["three"]}

def where(state, runtime: Runtime[Shop], config):
    given = config["configurable"]
    return {"log": [f"{runtime.context.city} {runtime.context.tier} {given.get('user')}"]}

def talk(state):
    model = GenericFakeChatModel(messages=iter([AIMessage("hello there\\nmy key is sk-live-0123456789abcdef0123 ok")]))
    get_stream_writer()({"progress": 50})
    return {"log": [model.invoke("hi").content]}

def chatter(state):
    writer = get_stream_writer()
    for number in range(1000):
        writer(number)
    model = GenericFakeChatModel(messages=iter([AIMessage("word\\n" * 1000)]))
    return {"log": [str(len(model.invoke("hi").content))]}

def busy(state):
    end = time.time() + 60
    while time.time() < end:
        print("working", flush=True)
        time.sleep(0.01)

steps = line("one", "two", "three").compile()
stopping = line("one", "two", "three").compile(interrupt_before=["two"])
context = line("one", "where", context_schema=Shop).compile()
talking = line("one", "talk").compile()
chattering = line("one", "chatter").compile()
busily = line("one", "busy").compile()
"""


class Given(TypedDict, total=False):
    log: Annotated[list[str], operator.add]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "graphs.py").write_text(GRAPHS)
    names = ("steps", "stopping", "context", "talking", "chattering", "busily")
    (folder / "langgraph.json").write_text(json.dumps({"graphs": {name: f"./graphs.py:{name}" for name in names}}))
    return folder


@pytest.fixture
def started(project: Path, tmp_path: Path) -> Path:
    """A thread `t` that holds nothing but its input."""
    path = tmp_path / "state.sqlite"
    builder = StateGraph(Given)
    builder.add_node("one", lambda state: {"log": ["one"]})
    builder.add_edge(START, "one")
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver, interrupt_before=["one"]).invoke({"log": ["given"]}, config("t"))
    return path


class Desk:
    def __init__(self, project: Path, database: Path) -> None:
        self.project = project
        self.session = Session.open(str(database))
        self.at = self.session.tree("t").head
        self.events: list[Any] = []

    def run(self, name: str, **more: Any) -> dict[str, Any]:
        request = RunRequest(more.pop("at", self.at), graph=GraphSpec(name, cwd=str(self.project)), **more)
        run = self.session.run(request)
        end = run.wait(60)
        assert end is not None
        self.events = run.events
        return end

    def log(self, end: dict[str, Any]) -> list[str]:
        return list(self.session.state(self.head(end)).values["log"])

    def head(self, end: dict[str, Any]) -> Any:
        return type(self.at)(**end["head"])

    def said(self, stream: str) -> list[Any]:
        return [event.data for event in self.events if event.event == "log" and event.data.get("stream") == stream]


@pytest.fixture
def desk(project: Path, started: Path) -> Iterator[Desk]:
    found = Desk(project, started)
    yield found
    found.session.close()


class TestSteps:
    def test_one_superstep_is_run_and_the_next_one_goes_on_from_there(self, desk: Desk) -> None:
        first = desk.run("steps", steps=1)
        assert (first["status"], first["reason"], first["next"]) == ("paused", "steps", ["two"])
        assert desk.log(first) == ["given", "one"]
        second = desk.run("steps", at=desk.head(first), steps=1)
        assert desk.log(second) == ["given", "one", "two"]
        last = desk.run("steps", at=desk.head(second), steps=1)
        assert (last["status"], last["reason"]) == ("done", None)
        assert desk.log(last) == ["given", "one", "two", "three"]

    def test_several_supersteps_are_counted_and_more_than_there_are_end_as_usual(self, desk: Desk) -> None:
        assert desk.log(desk.run("steps", steps=2)) == ["given", "one", "two"]
        end = desk.run("steps", steps=9)
        assert (end["status"], desk.log(end)) == ("done", ["given", "one", "two", "three"])

    def test_a_new_input_is_no_superstep_of_its_own(self, desk: Desk) -> None:
        end = desk.run("steps", input={"log": ["again"]}, has_input=True, steps=1)
        assert desk.log(end)[-2:] == ["again", "one"]

    @pytest.mark.parametrize(
        ("name", "stops"), [("steps", {"before": ("two",)}), ("steps", {"after": ("one",)}), ("stopping", {})]
    )
    def test_a_node_to_stop_at_stops_earlier(self, desk: Desk, name: str, stops: dict[str, Any]) -> None:
        end = desk.run(name, steps=3, **stops)
        assert (end["reason"], end["next"]) == ("breakpoint", ["two"])


class TestTime:
    def test_a_run_is_ended_when_its_time_is_over_however_much_it_prints(self, desk: Desk) -> None:
        begun = time.monotonic()
        end = desk.run("busily", timeout=3.0)
        assert time.monotonic() - begun < 20
        assert (end["status"], end["error"]["kind"]) == ("failed", "timeout")
        assert "no end after 3 seconds" in end["error"]["message"]
        assert desk.log(end) == ["given", "one"]


class TestContext:
    def test_it_reaches_the_nodes_and_wins_over_the_configuration(self, desk: Desk) -> None:
        end = desk.run("context", context={"city": "Bonn"}, config={"city": "Ulm", "user": "mara"})
        assert desk.log(end)[-1] == "Bonn basic mara"

    def test_what_the_graph_does_not_know_is_its_own_refusal(self, desk: Desk) -> None:
        end = desk.run("context", context={"town": "Bonn"})
        assert end["status"] == "failed"
        assert "town" in end["error"]["message"]

    def test_the_plan_shows_it_and_masks_secrets(self, desk: Desk) -> None:
        request = RunRequest(
            desk.at,
            graph=GraphSpec("context", cwd=str(desk.project)),
            context={"city": "Bonn", "api_key": "abc"},
            steps=2,
            timeout=9,
        )
        plan = desk.session.plan(request)
        assert (plan.context["city"], plan.steps, plan.timeout) == ('"Bonn"', 2, 9)
        assert "abc" not in plan.context["api_key"]


class TestTheLog:
    def test_what_a_model_says_is_told_by_line_with_its_node_and_secrets_masked(self, desk: Desk) -> None:
        desk.run("talking")
        said = desk.said("model")
        assert said[0]["text"] == "hello there"
        assert {one["node"] for one in said} == {"talk"}
        assert "0123456789abcdef" not in json.dumps(said)
        assert said[1]["text"].endswith(" ok")

    def test_custom_events_are_told(self, desk: Desk) -> None:
        desk.run("talking")
        assert [one["text"] for one in desk.said("custom")] == ['{"progress": 50}']

    def test_a_flood_is_cut_and_counted(self, desk: Desk) -> None:
        end = desk.run("chattering")
        assert desk.log(end)[-1] == "5000"
        assert (len(desk.said("custom")), len(desk.said("model"))) == (200, 200)
        told = [one["text"] for one in desk.said("studio")]
        assert "… 800 more lines of what models said not shown" in told
        assert "… 800 more custom events not shown" in told


class TestTheCommand:
    @pytest.fixture
    def studio(self, project: Path, started: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
        monkeypatch.chdir(project)

        def call(*arguments: str) -> tuple[int, str, str]:
            code = main(["run", str(started), *arguments])
            captured = capsys.readouterr()
            return code, captured.out, captured.err

        return call

    def test_one_step_ends_with_4_and_says_why(self, studio: Any) -> None:
        code, out, _ = studio("head", "--graph", "steps", "--steps", "1")
        assert code == 4
        assert "stops after 1 superstep" in out
        assert "stopped after the supersteps that were asked for, before two" in out

    def test_context_and_both_forms_of_configuration(self, studio: Any) -> None:
        given = ("--context", '{"city": "Bonn"}', "--config", "configurable.user=mara", "--config", "n=3")
        code, out, _ = studio("head", "--graph", "context", *given, "--dry-run", "--json")
        plan = json.loads(out)
        assert (code, plan["context"], plan["config"]) == (0, {"city": '"Bonn"'}, {"user": '"mara"', "n": "3"})
        code, out, _ = studio("head", "--graph", "context", *given)
        assert code == 0

    @pytest.mark.parametrize(
        ("option", "value", "words"),
        [
            ("--steps", "0", "no whole number"),
            ("--timeout", "nan", "seconds above 0"),
            ("--context", "[1]", "must be a JSON object"),
        ],
    )
    def test_what_makes_no_sense_is_one_line(self, studio: Any, option: str, value: str, words: str) -> None:
        code, _, err = studio("head", "--graph", "steps", option, value)
        assert code == 2
        assert words in err

    def test_what_a_model_says_stands_with_its_node(self, studio: Any) -> None:
        _, out, _ = studio("head", "--graph", "talking")
        assert "│ talk: hello there" in out
