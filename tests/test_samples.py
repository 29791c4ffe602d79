"""The sample threads: rebuilt to the last row, what their README promises, and a different future after a correction."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

ROOT = Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "sample_threads"
NAMES = ("support_agent", "research_team")
MADE_BY = ("langgraph", "langgraph-checkpoint", "langgraph-checkpoint-sqlite", "langchain-core", "pydantic", "ormsgpack")
"""The packages that have a say in the stored bytes."""


def rows(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a sample, ordered by its key."""
    with closing(sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)) as connection:
        return {
            "checkpoints": connection.execute("SELECT * FROM checkpoints ORDER BY 1, 2, 3").fetchall(),
            "writes": connection.execute("SELECT * FROM writes ORDER BY 1, 2, 3, 4, 5").fetchall(),
        }


def pinned() -> dict[str, str]:
    return dict(re.findall(r"^([\w-]+)==(\S+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE))


@contextmanager
def sample_modules() -> Iterator[dict[str, Any]]:
    """Import the sample graphs as LangGraph's own tools do: their folder on the path."""
    names = ("graphs", "support_agent", "research_team", "scripted_model")
    sys.path.insert(0, str(SAMPLES))
    try:
        import graphs  # type: ignore[import-not-found, unused-ignore]

        sys.modules["scripted_model"].pace = 0.0  # type: ignore[attr-defined]
        yield {name: getattr(graphs, name) for name in NAMES}
    finally:
        sys.path.remove(str(SAMPLES))
        for name in names:
            sys.modules.pop(name, None)


@pytest.fixture
def agents(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Both graphs over private copies of their databases."""
    with sample_modules() as graphs:
        connections = []
        opened = {}
        for name in NAMES:
            shutil.copy(SAMPLES / f"{name}.sqlite", tmp_path)
            connection = sqlite3.connect(tmp_path / f"{name}.sqlite", check_same_thread=False)
            connections.append(connection)
            opened[name] = graphs[name].builder.compile(checkpointer=SqliteSaver(connection))
        yield opened
        for connection in connections:
            connection.close()


def thread(name: str) -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def before(graph: Any, name: str, *nodes: str) -> Any:
    return [state for state in graph.get_state_history(thread(name)) if state.next == nodes][-1]


def test_rebuilding_the_samples_gives_the_same_rows(tmp_path: Path) -> None:
    versions = pinned()
    other = {name: importlib.metadata.version(name) for name in MADE_BY if importlib.metadata.version(name) != versions[name]}
    if other:
        pytest.skip(f"the committed samples were made by the versions of constraints.txt, not by {other}")
    command = [sys.executable, str(SAMPLES / "build.py"), str(tmp_path)]
    env = {**os.environ, "PYTHONHASHSEED": "123"}
    subprocess.run(command, check=True, capture_output=True, env=env, timeout=120)
    for name in NAMES:
        again, committed = rows(tmp_path / f"{name}.sqlite"), rows(SAMPLES / f"{name}.sqlite")
        for table in committed:
            assert again[table] == committed[table], f"{name}.{table}: run `make samples` and look at what changed"


def test_the_committed_samples_are_whole_files_without_leftovers() -> None:
    for name in NAMES:
        with closing(sqlite3.connect(f"{(SAMPLES / name).as_uri()}.sqlite?immutable=1", uri=True)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            assert connection.execute("PRAGMA freelist_count").fetchone() == (0,)
    assert not [path for path in SAMPLES.iterdir() if path.name.endswith(("-wal", "-shm", "-journal"))]


def test_no_sample_carries_a_path_or_an_address_of_the_machine_that_made_it() -> None:
    for name in NAMES:
        content = (SAMPLES / f"{name}.sqlite").read_bytes()
        assert not re.findall(rb"/(?:root|home|work|tmp|Users)/", content)


def test_every_story_ends_as_its_readme_says(agents: dict[str, Any]) -> None:
    support, research = agents["support_agent"], agents["research_team"]
    refund = support.get_state(thread("refund-4711"))
    assert refund.next == ()
    assert refund.values["refund"]["amount"] == 499.0
    assert '"total": "49,9"' in refund.values["messages"][2].content
    failed = support.get_state(thread("refund-5150"))
    assert [task.name for task in failed.tasks if task.error] == ["read_policy"]
    paused = support.get_state(thread("refund-6012"))
    assert paused.next == ("ask_approval",)
    assert paused.interrupts[0].value["amount"] == 1249.0
    sources = [state.metadata["source"] for state in support.get_state_history(thread("refund-6024"))]
    assert {"update", "fork"} <= set(sources)
    ends = [state.values["refund"] for state in support.get_state_history(thread("refund-6024")) if state.next == ()]
    assert [(end["amount"], end["status"]) for end in ends] == [(180.0, "paid"), (90.0, "paid"), (180.0, "planned")]
    assert research.get_state(thread("heat-pumps")).values["recommendation"] == "no"
    broken = research.get_state(thread("night-trains"))
    assert sum(bool(task.error) for task in broken.tasks) == 1
    asked = research.get_state(thread("street-trees"), subgraphs=True)
    assert len(asked.interrupts) == 1
    assert asked.next == ("research",)


@pytest.mark.parametrize(("node", "channel"), [("plan_refund", "order"), ("ask_approval", "refund")])
def test_a_corrected_amount_carries_through_to_question_payment_and_reply(
    agents: dict[str, Any], node: str, channel: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = agents["support_agent"]
    at = before(graph, "refund-4711", node)
    right = {**at.values[channel], "total" if channel == "order" else "amount": 49.9}
    as_node = "read_history" if channel == "order" else "review"
    fork = graph.update_state(at.config, {channel: right}, as_node=as_node)
    paused = graph.invoke(None, fork)
    assert paused["__interrupt__"][0].value["question"] == "Approve the refund of 49.90 EUR for order 4711?"
    done = graph.invoke(Command(resume="yes"), thread("refund-4711"))
    assert done["refund"] == {**done["refund"], "amount": 49.9, "status": "paid", "receipt": "PAY-4711-4990"}
    assert "refunded 49.90 EUR" in done["messages"][-1].content
    assert "49.90 EUR sent" in capsys.readouterr().out


def test_a_newer_brief_turns_the_recommendation_round(agents: dict[str, Any]) -> None:
    graph = agents["research_team"]
    at = before(graph, "heat-pumps", "split_topics")
    brief = at.values["brief"].model_copy(update={"since": at.values["brief"].since.replace(year=2024)})
    done = graph.invoke(None, graph.update_state(at.config, {"brief": brief}, as_node="check_budget"))
    assert done["recommendation"] == "yes"


def test_the_failed_thread_runs_on_once_its_category_is_right(agents: dict[str, Any]) -> None:
    graph = agents["support_agent"]
    at = before(graph, "refund-5150", "read_policy", "read_history")
    order = {**at.values["order"], "category": "voucher"}
    paused = graph.invoke(None, graph.update_state(at.config, {"order": order}, as_node="look_up_order"))
    assert paused["__interrupt__"][0].value["amount"] == 100.0


def test_a_question_inside_a_subgraph_can_be_answered(agents: dict[str, Any]) -> None:
    done = agents["research_team"].invoke(Command(resume="city-audit.example"), thread("street-trees"))
    assert done["recommendation"] == "undecided"
    assert done["findings"][1].source.site == "city-audit.example"


def test_the_samples_hold_the_shapes_that_their_readme_lists() -> None:
    research = rows(SAMPLES / "research_team.sqlite")
    content = b"".join(row[5] for row in research["checkpoints"])
    for name in (b"Brief", b"Budget", b"Topic", b"Finding", b"Source", b"Tally", b"Verdict", b"Audience", b"Priority"):
        assert b"research_team" in content
        assert name in content
    namespaces = {row[1] for row in research["checkpoints"]}
    assert sum(ns.startswith("research:") for ns in namespaces) >= 7
    text = (SAMPLES / "README.md").read_text("utf-8")
    for path in NAMES:
        for name in {row[0] for row in rows(SAMPLES / f"{path}.sqlite")["checkpoints"]}:
            assert f"`{name}`" in text, f"README.md says nothing about {name}"


def test_langgraph_json_names_graphs_that_exist() -> None:
    config = json.loads((SAMPLES / "langgraph.json").read_text("utf-8"))
    with sample_modules() as graphs:
        assert set(config["graphs"]) == set(graphs)
    for target in config["graphs"].values():
        assert (SAMPLES / target.partition(":")[0]).is_file()
