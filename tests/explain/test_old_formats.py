"""Formats 1 and 2: channels named after nodes, Sends beside the channels, triggers that only other checkpoints tell.

The current release cannot write them, so the rows are laid down here as those releases did.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from studio.diff import diff
from studio.explain import Explainer, learn, task_id
from studio.model import Address, State
from studio.session import Session
from studio.stores import open_store

TABLES = """
CREATE TABLE checkpoints (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    parent_checkpoint_id TEXT, type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id));
CREATE TABLE writes (thread_id TEXT NOT NULL, checkpoint_ns TEXT NOT NULL DEFAULT '', checkpoint_id TEXT NOT NULL,
    task_id TEXT NOT NULL, idx INTEGER NOT NULL, channel TEXT NOT NULL, type TEXT, value BLOB,
    PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id, task_id, idx));
"""


Numbers = dict[str, int]
Seen = dict[str, Numbers]


def cid(n: int) -> str:
    return f"1ef00000-0000-60{n:02d}-8000-000000000000"


class OldFile:
    """A file of format 1 with the chain draft -> check, written checkpoint by checkpoint."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.connection = sqlite3.connect(path)
        self.connection.executescript(TABLES)

    def checkpoint(self, n: int, values: dict[str, Any], versions: Numbers, seen: Seen, thread: str = "t", **more: Any) -> None:
        def version(number: int) -> str:
            return f"{number:032d}.0.5"

        blob = {
            "v": more.get("v", 1),
            "ts": "2024-01-01T00:00:00+00:00",
            "id": cid(n),
            "channel_values": values,
            "channel_versions": {name: version(number) for name, number in versions.items()},
            "versions_seen": {node: {name: version(number) for name, number in of.items()} for node, of in seen.items()},
            "pending_sends": more.get("sends", []),
        }
        metadata = {"source": "input" if n == 0 else "loop", "step": n - 1, "writes": more.get("writes")}
        row = (thread, cid(n), cid(n - 1) if n else None, "msgpack", ormsgpack.packb(blob), json.dumps(metadata).encode())
        self.connection.execute("INSERT INTO checkpoints VALUES (?, '', ?, ?, ?, ?, ?)", row)

    def write(self, n: int, task: str, idx: int, channel: str, value: Any, thread: str = "t") -> None:
        row = (thread, cid(n), task, idx, channel, "msgpack", ormsgpack.packb(value))
        self.connection.execute("INSERT INTO writes VALUES (?, '', ?, ?, ?, ?, ?, ?)", row)

    def story(self, thread: str = "t", upto: int = 4) -> None:
        """input, __start__ ran, draft ran, check ran."""
        steps: list[tuple[dict[str, Any], Numbers, Seen, Any]] = [
            ({"__start__": {"text": "in"}}, {"__start__": 1}, {}, {"text": "in"}),
            (
                {"text": "in", "start:draft": "__start__"},
                {"__start__": 2, "text": 2, "start:draft": 2},
                {"__start__": {"__start__": 1}},
                None,
            ),
            (
                {"text": "in", "log": ["drafted"], "draft": "draft"},
                {"__start__": 2, "text": 2, "start:draft": 3, "log": 3, "draft": 3},
                {"__start__": {"__start__": 1}, "draft": {"start:draft": 2}},
                {"draft": {"log": ["drafted"]}},
            ),
            (
                {"text": "in", "log": ["drafted", "checked"], "check": "check"},
                {"__start__": 2, "text": 2, "start:draft": 3, "log": 4, "draft": 4, "check": 4},
                {"__start__": {"__start__": 1}, "draft": {"start:draft": 2}, "check": {"draft": 3}},
                {"check": {"log": ["checked"]}},
            ),
        ]
        for n, (values, versions, seen, writes) in enumerate(steps[:upto]):
            self.checkpoint(n, values, versions, seen, thread, writes=writes)

    def explain(self) -> Explainer:
        self.connection.commit()
        self.connection.close()
        return Explainer(open_store(str(self.path)))


@pytest.fixture
def old(tmp_path: Path) -> OldFile:
    return OldFile(tmp_path / "old.sqlite")


def states(explainer: Explainer, thread: str = "t") -> list[State]:
    return list(explainer.states(explainer.store.scan(thread)))


def test_who_follows_a_node_is_learned_from_those_who_did(old: OldFile) -> None:
    old.story()
    found = states(old.explain())
    assert [state.next for state in found] == [("__start__",), ("draft",), ("check",), ()]
    assert [state.status for state in found] == ["ready", "ready", "ready", "done"]
    assert found[2].tasks[0].triggers[0].authors[0].node == "draft"


def test_channels_named_after_nodes_are_no_state(old: OldFile) -> None:
    old.story()
    found = states(old.explain())
    assert [sorted(state.values) for state in found] == [[], ["text"], ["log", "text"], ["log", "text"]]
    assert "draft" in found[2].internal


def test_a_step_without_rows_has_the_author_that_its_metadata_names(old: OldFile) -> None:
    old.story()
    explainer = old.explain()
    found = states(explainer)
    named = explainer.with_authors(found[2], found[3], diff(found[2].values, found[3].values))
    assert [(change.path, change.authors[0].node, change.authors[0].basis) for change in named] == [("/log/1", "check", "writes")]
    first = explainer.with_authors(found[0], found[1], diff(found[0].values, found[1].values))
    assert [(change.authors[0].node, change.authors[0].basis) for change in first] == [("__start__", "versions")]
    runs = explainer.node_runs("t", [state.checkpoint for state in found], [])
    assert {key[1]: [run.name for run in group] for key, group in runs.items()} == {cid(1): ["draft"], cid(2): ["check"]}


def test_rows_of_a_tree_name_what_ran_where_no_write_is_stored(old: OldFile) -> None:
    old.story()
    old.explain()
    with closing(Session.open(str(old.path))) as session:
        assert [row.label for row in session.tree("t").rows()] == ["input", "superstep", "draft", "check"]


def test_a_follower_that_another_thread_shows_makes_the_next_step_unknown_not_guessed(old: OldFile) -> None:
    old.story("done")
    old.story("t", upto=3)
    waiting = states(old.explain())[-1]
    assert waiting.next is None
    assert waiting.status == "unknown"


def test_a_list_of_many_unfinished_threads_reads_the_others_once_not_once_for_each(
    old: OldFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{number:02}" for number in range(30)]
    for name in names:
        old.story(name, upto=3)
    read: list[object] = []
    latest = learn.latest_blobs
    monkeypatch.setattr(learn, "latest_blobs", lambda store, keys, graph: read.append(keys) or latest(store, keys, graph))
    explainer = old.explain()
    assert {explainer.state(Address(name, "", cid(2))).status for name in names} == {"done"}
    assert len(read) == len(names)


def test_a_follower_is_named_when_its_id_proves_it(old: OldFile) -> None:
    old.story("done")
    old.story("t", upto=3)
    ident = task_id(1, cid(2), "", "check", 2, "pull", ["draft"])
    old.write(2, ident, 0, "__interrupt__", {"value": "publish?", "when": "during"})
    waiting = states(old.explain())[-1]
    assert (waiting.next, waiting.status) == (("check",), "paused")
    question = waiting.tasks[0].interrupts[0]
    assert (question.id, question.value, question.answered) == (None, "publish?", False)


def test_a_question_without_any_trace_of_its_node_is_still_a_question(old: OldFile) -> None:
    old.story("t", upto=3)
    old.write(2, "5f0b1d6e-1111-5222-8333-444455556666", 0, "__interrupt__", {"value": "publish?", "when": "during"})
    waiting = states(old.explain())[-1]
    assert waiting.next is None
    assert [(one.name, one.status) for one in waiting.tasks] == [(None, "paused")]
    assert waiting.status == "paused"


def test_sends_stand_beside_the_channels(old: OldFile) -> None:
    def send(n: int) -> ormsgpack.Ext:
        return ormsgpack.Ext(1, ormsgpack.packb(["langgraph.types", "Send", ["grade", {"n": n}]]))

    old.story("t", upto=2)
    old.checkpoint(
        2,
        {"text": "in", "draft": "draft"},
        {"__start__": 2, "text": 2, "start:draft": 3, "draft": 3},
        {"__start__": {"__start__": 1}, "draft": {"start:draft": 2}},
        sends=[send(0), send(1)],
    )
    waiting = states(old.explain())[-1]
    assert waiting.next == ("grade", "grade")
    assert [one.arg for one in waiting.tasks] == [{"n": 0}, {"n": 1}]


def test_edges_of_an_old_thread_come_from_what_started_its_nodes(old: OldFile) -> None:
    old.story()
    [graph] = old.explain().graphs("t")
    edges = {(edge.source, edge.target): edge.count for edge in graph.edges}
    assert edges == {("__start__", "draft"): 1, ("draft", "check"): 1, ("check", "__end__"): 1}


def test_a_format_of_the_future_is_read_as_far_as_it_is_known(old: OldFile) -> None:
    old.checkpoint(0, {"text": "x", "branch:to:n": None}, {"text": 1, "branch:to:n": 1}, {}, v=9)
    state = old.explain().state(Address("t", "", cid(0)))
    assert (state.format, state.next, dict(state.values)) == (9, ("n",), {"text": "x"})
    assert [problem.kind for problem in state.problems] == ["newer-format"]
