"""Whole threads from the headers of their rows: who ran, what was written, which edges were taken. And what must never fail."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import StateGraph
from langgraph.types import Command, interrupt

from studio.errors import RefError
from studio.explain import Explainer
from studio.model import Address, NodeRun, State
from tests.explain.graphs import before, chain, explained, fan_out, head, nested, quarrel
from tests.factories import config, saver_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "t.sqlite"


def run(path: Path, graph: StateGraph[Any], *inputs: Any) -> None:
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        for given in inputs:
            try:
                compiled.invoke(given, config("t"))
            except ValueError:
                pass


def runs_of(explainer: Explainer) -> dict[tuple[str, str], tuple[NodeRun, ...]]:
    headers = [header for _, header in explainer.store.checkpoints("t")]
    return explainer.node_runs("t", headers, [row for _, row in explainer.store.write_headers("t")])


def without_paths(path: Path) -> None:
    """The same file as checkpoint-sqlite before 3.1 would have written it."""
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
    connection.close()


@pytest.mark.parametrize("paths", [True, False])
@pytest.mark.parametrize("graph", [fan_out(), nested(), quarrel()], ids=["fan-out", "nested", "quarrel"])
def test_node_runs_agree_with_the_states(path: Path, graph: StateGraph[Any], paths: bool) -> None:
    run(path, graph, {"topic": "tea"})
    if not paths:
        without_paths(path)
    with explained(path) as explainer:
        runs = runs_of(explainer)
        explainer.forget()
        for state in explainer.states(explainer.store.scan("t")):
            key = (state.checkpoint.checkpoint_ns, state.checkpoint.checkpoint_id)
            done = {NodeRun(one.name, one.id, one.status) for one in state.tasks if one.status != "pending"}
            assert set(runs.get(key, ())) == done


def test_a_file_without_paths_is_explained_by_ids_alone(path: Path) -> None:
    run(path, fan_out(), {"topic": "tea"})
    with explained(path) as explainer:
        full = list(explainer.states(explainer.store.scan("t")))
    without_paths(path)
    with explained(path) as explainer:
        bare = list(explainer.states(explainer.store.scan("t")))

    def shown(states: list[State]) -> Any:
        return [
            [
                (one.name, one.id, one.status, one.inferred, {author for trigger in one.triggers for author in trigger.authors})
                for one in state.tasks
            ]
            for state in states
        ]

    assert shown(bare) == shown(full)


def test_written_channels_are_state_channels_only(path: Path) -> None:
    run(path, fan_out(), {"topic": "tea"})
    with explained(path) as explainer:
        headers = [header for _, header in explainer.store.checkpoints("t")]
        written = explainer.written_channels("t", [row for _, row in explainer.store.write_headers("t")], headers[-1:])
        step = before(list(explainer.states(explainer.store.scan("t"))), "left", "right")
    assert written["", step.checkpoint.checkpoint_id] == ("log", "total")
    assert {name for names in written.values() for name in names} == {"topic", "log", "total"}


def test_edges_that_were_taken_are_counted(path: Path) -> None:
    run(path, fan_out(), {"topic": "tea"})
    with explained(path) as explainer:
        [graph] = explainer.graphs("t")
    edges = {(edge.source, edge.target): edge.count for edge in graph.edges}
    assert edges == {
        ("__start__", "split"): 1,
        ("split", "left"): 1,
        ("split", "right"): 1,
        ("left", "merge"): 1,
        ("right", "merge"): 1,
        ("merge", "score"): 4,
        ("score", "collect"): 4,
        ("collect", "__end__"): 1,
    }


def test_an_unknown_checkpoint_is_a_ref_error(path: Path) -> None:
    run(path, chain("a"), {"topic": "tea"})
    with explained(path) as explainer, pytest.raises(RefError):
        explainer.state(Address("t", "", "1ef00000-0000-6000-8000-000000000000"))


def test_an_unreadable_row_still_shows_its_tasks_and_its_open_question(path: Path) -> None:
    from tests.explain.graphs import asks

    run(path, chain("ask", ask=asks("ok?")), {"topic": "tea"})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE checkpoints SET type = 'msgpack+aes'")
    connection.close()
    with explained(path) as explainer:
        state = head(explainer)
    assert (state.next, state.format, dict(state.values)) == (None, None, {})
    assert [(one.name, one.status) for one in state.tasks] == [("ask", "paused")]
    assert state.status == "paused"
    assert [problem.kind for problem in state.problems] == ["undecodable"]


DAMAGE = [b"", b"\xc1", b"\x80", b"\x81\xa1v\x04", b"\x93\x01\x02\x03", b"\x82\xa1v\xa1x\xaechannel_values\x01"]


@pytest.mark.parametrize("blob", DAMAGE)
def test_no_blob_makes_it_raise(path: Path, blob: bytes) -> None:
    run(path, fan_out(), {"topic": "tea"})
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE checkpoints SET checkpoint = ?", (blob,))
        connection.execute("UPDATE writes SET value = ? WHERE idx = 0", (blob,))
    connection.close()
    with explained(path) as explainer:
        states = list(explainer.states(explainer.store.scan("t")))
        runs_of(explainer)
        explainer.graphs("t")
    assert states and all(state.next is None or state.next == () for state in states)


def test_parent_loops_end(path: Path) -> None:
    run(path, chain("a", "b"), {"topic": "tea"})
    with sqlite3.connect(path) as connection:
        ids = [row[0] for row in connection.execute("SELECT checkpoint_id FROM checkpoints ORDER BY 1")]
        connection.execute("UPDATE checkpoints SET parent_checkpoint_id = ? WHERE checkpoint_id = ?", (ids[-1], ids[0]))
        connection.execute("UPDATE checkpoints SET parent_checkpoint_id = checkpoint_id WHERE checkpoint_id = ?", (ids[1],))
    connection.close()
    with explained(path) as explainer:
        assert len(list(explainer.states(explainer.store.scan("t")))) == len(ids)


def test_several_threads_may_ask_at_once(path: Path) -> None:
    run(path, fan_out(), {"topic": "tea"}, {"topic": "coffee"})
    with explained(path) as explainer:
        addresses = [header.address for _, header in explainer.store.checkpoints("t")]
        wanted = [explainer.state(address) for address in addresses]
        explainer.forget()
        failures: list[str] = []

        def look() -> None:
            for address, state in zip(addresses, wanted, strict=True):
                if explainer.state(address) != state:
                    failures.append(address.checkpoint_id)
                explainer.forget()

        workers = [threading.Thread(target=look) for _ in range(4)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    assert failures == []


def test_a_thread_that_grew_is_seen_after_forget(path: Path) -> None:
    from tests.explain.graphs import asks

    graph = chain("ask", ask=asks("ok?"))
    run(path, graph, {"topic": "tea"})
    with explained(path) as explainer:
        waiting = head(explainer)
        assert waiting.status == "paused"
        run(path, graph, Command(resume="yes"))
        explainer.forget()
        again = explainer.state(waiting.checkpoint.address)
        assert [(q.answered, q.answer) for q in again.tasks[0].interrupts] == [(True, "yes")]
        assert head(explainer).status == "done"


def test_a_thread_is_never_done_while_a_question_is_stored_at_its_end(path: Path) -> None:
    from tests.explain.graphs import asks

    run(path, chain("ask", ask=asks("ok?")), {"topic": "tea"})
    with saver_at(path) as saver:
        chain("say").compile(checkpointer=saver).invoke({"topic": "tea"}, config("other"))
    with sqlite3.connect(path) as connection:
        end = connection.execute("SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'other'").fetchone()
        connection.execute("UPDATE writes SET thread_id = 'other', checkpoint_id = ? WHERE channel = '__interrupt__'", end)
    connection.close()
    with explained(path) as explainer:
        state = explainer.state(Address("other", "", end[0]))
    assert state.next == () and state.status == "unknown"
    assert [problem.kind for problem in state.problems] == ["question-without-task"]


def test_a_second_question_of_one_task_stands_beside_the_answer_to_the_first(path: Path) -> None:
    def twice(state: Any) -> dict[str, Any]:
        return {"topic": f"{interrupt('one?')}+{interrupt('two?')}"}

    graph = chain("twice", twice=twice)
    with saver_at(path) as saver:
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"topic": "tea"}, config("t"))
        compiled.invoke(Command(resume="first"), config("t"))
    with explained(path) as explainer:
        waiting_at = head(explainer).checkpoint.address
        (waiting,) = head(explainer).tasks
    assert [(one.value, one.answered) for one in waiting.interrupts] == [("two?", False)]
    assert waiting.earlier_answers == ("first",)
    with saver_at(path) as saver:
        graph.compile(checkpointer=saver).invoke(Command(resume="second"), config("t"))
    with explained(path) as explainer:
        (done,) = explainer.state(waiting_at).tasks
    assert [(one.value, one.answered, one.answer) for one in done.interrupts] == [("two?", True, "second")]
    assert done.earlier_answers == ("first",)
