"""What happens inside the child process: loading graphs of every kind, the gate for stored types, what the end event says."""

from __future__ import annotations

import ast
import importlib.util
import json
import sqlite3
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from langgraph.checkpoint.serde._msgpack import SAFE_MSGPACK_TYPES

from studio import runner
from studio import value as codec
from studio.errors import RunError, UsageError
from studio.requests import GraphSpec
from studio.runner import Child
from studio.running import typeuse
from studio.running.graphs import find_graph
from tests.factories import saver_at
from tests.run_project import canary, make_project, poison, ran, record, spec


def child_types() -> Any:
    """The child's own module, loaded by path as the child does."""
    path = Path(runner.__file__).with_name("child_types.py")
    found = importlib.util.spec_from_file_location("child_types_of_the_test", path)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "state.sqlite"
    with saver_at(path) as saver:
        saver.setup()
    return path


def perform(project: Path, database: Path, name: str, **more: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """(end event, all events before it) of a run; `given` None runs on from the head."""
    events: list[dict[str, Any]] = []
    document = {"op": "run", "database": str(database), "thread_id": "t", **more}
    return Child(find_graph(spec(project, name)), document, timeout=60).run(events.append), events


def start(project: Path, database: Path, name: str, **more: Any) -> dict[str, Any]:
    return perform(project, database, name, input={"json": {"n": 1}}, **more)[0]


def update(database: Path, checkpoint_id: str, as_node: str | None) -> dict[str, Any]:
    document = {"op": "update_state", "database": str(database), "thread_id": "t"}
    return {**document, "checkpoint_id": checkpoint_id, "as_node": as_node}


def log(project: Path, database: Path) -> list[str]:
    """The `log` channel of the newest checkpoint of thread `t`."""
    with sqlite3.connect(database) as connection:
        query = "SELECT checkpoint FROM checkpoints WHERE thread_id = 't' ORDER BY checkpoint_id DESC LIMIT 1"
        blob = connection.execute(query).fetchone()[0]
    values: dict[str, Any] = ormsgpack.unpackb(blob, ext_hook=lambda code, raw: None)["channel_values"]
    return list(values["log"])


class TestLoading:
    @pytest.mark.parametrize(
        "name", ["graph", "builder", "make", "make_with", "make_later", "make_around", "only_async", "own_loop"]
    )
    def test_graphs_builders_factories_and_async_nodes_run(self, project: Path, database: Path, name: str) -> None:
        end = start(project, database, name)
        assert (end["status"], end.get("error")) == ("done", None)
        assert log(project, database)

    def test_a_factory_gets_the_config_and_a_context_is_closed(self, project: Path, database: Path) -> None:
        start(project, database, "make_with")
        assert "thread t" in ran(project)
        start(project, database, "make_around")
        assert ran(project)[-1] == "closed"

    def test_the_env_file_is_loaded(self, project: Path, database: Path) -> None:
        start(project, database, "environment")
        assert log(project, database) == ["from-the-file", "two words"]

    def test_configurable_values_reach_the_nodes(self, project: Path, database: Path) -> None:
        start(project, database, "configured", configurable={"user_id": "mara", "tier": 2})
        assert log(project, database) == ["mara", "2"]

    @pytest.mark.parametrize(
        ("code", "message"),
        [
            ("import not_there_at_all", "needs the module 'not_there_at_all'"),
            ("x = 1/0", "ZeroDivisionError"),
            ("graph = = 1", "SyntaxError"),
            ("import sys; sys.exit(5)", "SystemExit"),
            ("other = 1", "no attribute 'graph'"),
            ("graph = {'a': 1}", "not a LangGraph graph"),
            ("def graph(config): raise OSError('no key')", "OSError: no key"),
        ],
    )
    def test_a_graph_that_cannot_be_loaded_says_why(self, project: Path, database: Path, code: str, message: str) -> None:
        (project / "broken.py").write_text(code + "\n")
        found = find_graph(GraphSpec("broken.py:graph", cwd=str(project)))
        end = Child(found, {"op": "run", "database": str(database), "thread_id": "t"}, timeout=60).run(lambda event: None)
        assert end["status"] == "failed"
        assert message in end["error"]["message"]
        assert "broken.py" in end["error"]["message"] + end["error"]["traceback"]

    def test_an_interpreter_without_langgraph_is_one_clear_message(self, project: Path, tmp_path: Path) -> None:
        venv.create(tmp_path / "bare", with_pip=False, symlinks=True)
        found = find_graph(GraphSpec("graph", python=str(tmp_path / "bare"), cwd=str(project)))
        with pytest.raises(RunError, match="has no LangGraph") as caught:
            runner.call(found, {"op": "inspect"})
        assert "pip install langgraph" in caught.value.hint

    def test_modules_of_the_studio_do_not_shadow_the_users(self, project: Path, database: Path) -> None:
        (project / "value.py").write_text("marker = 'mine'\n")
        (project / "errors.py").write_text("marker = 'mine'\n")
        code = "import errors, value\nassert errors.marker == value.marker == 'mine'\nfrom graphs import graph\n"
        (project / "shadow.py").write_text(code)
        found = find_graph(GraphSpec("shadow.py:graph", cwd=str(project)))
        assert runner.call(found, {"op": "inspect"})["nodes"] == ["first", "second"]

    def test_a_file_in_a_package_keeps_its_dotted_name(self, project: Path) -> None:
        package = project / "src" / "agent"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text("")
        (package / "state.py").write_text("import dataclasses\n@dataclasses.dataclass\nclass Case:\n    n: int\n")
        code = (
            "from typing import TypedDict\nfrom langgraph.graph import START, StateGraph\nfrom .state import Case\n"
            "class S(TypedDict):\n    case: Case\n"
            "builder = StateGraph(S)\nbuilder.add_node('a', lambda s: {})\nbuilder.add_edge(START, 'a')\n"
        )
        (package / "graph.py").write_text(code)
        found = find_graph(GraphSpec("src/agent/graph.py:builder", cwd=str(project)))
        assert "agent.state.Case" in runner.call(found, {"op": "inspect"})["schema"]


class TestRunning:
    def test_an_exception_ends_as_failed_with_the_users_own_frames(self, project: Path, database: Path) -> None:
        end = start(project, database, "failing")
        assert end["status"] == "failed"
        error = end["error"]
        assert (error["type"], error["message"]) == ("ValueError", "the shelf fell down")
        assert error["traceback"].splitlines()[1].strip().startswith(f'File "{project}/graphs.py"')
        assert end["head"]

    def test_sys_exit_in_a_node_is_a_failure_and_not_a_silence(self, project: Path, database: Path) -> None:
        assert start(project, database, "leaving")["error"]["type"] == "SystemExit"

    def test_a_question_pauses_and_an_answer_goes_on(self, project: Path, database: Path) -> None:
        end = start(project, database, "asking")
        assert (end["status"], end["next"]) == ("paused", ["ask"])
        assert end["interrupts"][0]["value"] == {"question": "go on with 2?"}
        assert ran(project) == ["first", "ask"]
        end, _ = perform(project, database, "asking", resume={"json": "yes"})
        assert end["status"] == "done"
        assert "ask:yes" in log(project, database)

    def test_a_question_can_be_answered_with_nothing(self, project: Path, database: Path) -> None:
        start(project, database, "asking")
        end, _ = perform(project, database, "asking", resume={"json": None})
        assert end["status"] == "done"
        assert "ask:None" in log(project, database)

    def test_two_questions_are_answered_by_their_ids(self, project: Path, database: Path) -> None:
        end = start(project, database, "two_questions")
        asked = {question["value"]: question["id"] for question in end["interrupts"]}
        assert set(asked) == {"left?", "right?"}
        ran(project)
        end, _ = perform(project, database, "two_questions", answers={asked["left?"]: {"json": 1}})
        assert (end["status"], [question["value"] for question in end["interrupts"]]) == ("paused", ["right?"])
        assert "calm" not in ran(project)
        end, _ = perform(project, database, "two_questions", answers={asked["right?"]: {"json": 2}})
        assert end["status"] == "done"
        assert {"left:1", "right:2"} <= set(log(project, database))

    def test_it_stops_before_and_after_named_nodes(self, project: Path, database: Path) -> None:
        end = start(project, database, "graph", interrupt_before=["second"])
        assert (end["status"], end["next"], end["interrupts"]) == ("paused", ["second"], [])
        end, _ = perform(project, database, "graph", interrupt_after=["second"])
        assert end["status"] == "done"

    def test_the_recursion_limit_ends_a_circle(self, project: Path, database: Path) -> None:
        end = start(project, database, "circle", recursion_limit=4)
        assert end["error"]["type"] == "GraphRecursionError"
        assert len(log(project, database)) >= 3

    def test_every_checkpoint_is_stored_before_the_next_step_begins(self, project: Path, database: Path) -> None:
        start(project, database, "graph")
        with sqlite3.connect(database) as connection:
            assert connection.execute("SELECT count(*) FROM checkpoints").fetchone() == (4,)


class TestUpdatingAsANode:
    def test_reducers_apply_and_the_edges_choose_what_is_next(self, project: Path, database: Path) -> None:
        end = start(project, database, "graph", interrupt_before=["second"])
        found = find_graph(spec(project, "graph"))
        document = update(database, end["head"], "first")
        made = runner.call(found, {**document, "values": {"json": {"log": ["by hand"], "n": 40, "typo": 1}}})
        assert (made["dropped"], made["channels"]["n"]) == (["typo"], "LastValue")
        assert log(project, database) == ["first", "by hand"]
        end, _ = perform(project, database, "graph")
        assert log(project, database)[-1] == "second saw 40"

    def test_messages_as_maps_become_messages(self, project: Path, database: Path) -> None:
        end = start(project, database, "graph")
        document = update(database, end["head"], "second")
        messages = [{"role": "user", "content": "one"}, {"type": "ai", "content": "two"}]
        runner.call(find_graph(spec(project, "graph")), {**document, "values": {"json": {"messages": messages}}})
        with saver_at(database) as saver:
            stored = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
            assert stored is not None
            kept = stored.checkpoint["channel_values"]["messages"]
        assert [type(message).__name__ for message in kept] == ["HumanMessage", "AIMessage"]

    def test_an_ambiguous_node_offers_the_candidates(self, project: Path, database: Path) -> None:
        end = start(project, database, "two_questions", interrupt_before=["last"])
        answers = {one["id"]: {"json": "x"} for one in end["interrupts"]}
        end, _ = perform(project, database, "two_questions", answers=answers, interrupt_before=["last"])
        document = update(database, end["head"], None)
        with pytest.raises(RunError, match="Ambiguous") as caught:
            runner.call(find_graph(spec(project, "two_questions")), {**document, "values": {"json": {"log": ["x"]}}})
        assert {"left", "right", "calm"} <= set(caught.value.candidates)


class TestTheGate:
    def test_a_crafted_blob_builds_nothing_and_the_run_says_what_it_would_import(self, project: Path, database: Path) -> None:
        target, evil = canary(project)
        head = start(project, database, "graph", interrupt_before=["second"])["head"]
        poison(database, head, evil)
        end, _ = perform(project, database, "graph")
        assert (end["status"], end["error"]["kind"], end["error"]["types"]) == ("failed", "types", ["os.mkdir"])
        assert not target.exists()

    def test_langgraphs_own_loader_would_have_run_it(self, project: Path, database: Path) -> None:
        target, evil = canary(project)
        head = start(project, database, "graph", interrupt_before=["second"])["head"]
        poison(database, head, evil)
        record(project, database, "graph", "t", None)
        assert target.exists()

    def test_a_map_that_poses_as_an_array_is_blocked_too(self, project: Path, database: Path) -> None:
        target = project / "canary"
        evil = ormsgpack.Ext(0, ormsgpack.packb({0: "os", 1: "mkdir", 2: str(target)}, option=ormsgpack.OPT_NON_STR_KEYS))
        poison(database, start(project, database, "graph", interrupt_before=["second"])["head"], evil)
        end, _ = perform(project, database, "graph")
        assert end["error"]["kind"] == "types"
        assert not target.exists()

    def test_a_method_that_a_stored_value_asks_for_is_blocked_even_on_a_safe_type(self, project: Path, database: Path) -> None:
        victim = project / "victim.txt"
        victim.write_text("keep")
        evil = ormsgpack.Ext(3, ormsgpack.packb(["pathlib", "Path", str(victim), "unlink"]))
        poison(database, start(project, database, "graph", interrupt_before=["second"])["head"], evil)
        end, _ = perform(project, database, "graph")
        assert end["error"]["types"] == ["pathlib.Path.unlink"]
        assert victim.read_text() == "keep"

    @pytest.mark.parametrize(
        ("envelope", "name"),
        [
            ({"id": {"os": 1, "system": 2}, "args": ["true"]}, typeuse.UNREADABLE),
            ({"id": "os", "args": []}, typeuse.UNREADABLE),
            ({"id": ["pathlib", "Path"], "method": "write_text", "args": ["a", "b"]}, "pathlib.Path.write_text"),
            ({"id": ["pathlib", "Path"], "method": [None, "unlink"], "args": ["a"]}, "pathlib.Path.unlink"),
        ],
    )
    def test_a_json_envelope_in_an_odd_form_is_named_by_gate_and_plan(self, envelope: dict[str, Any], name: str) -> None:
        data = json.dumps({"x": [{"lc": 2, "type": "constructor", **envelope}]}).encode()
        assert name in child_types().names_in_json(data)
        assert name in set(typeuse.names_in(codec.decode("json", data)))

    def test_times_as_every_release_stores_them_need_no_trust(self) -> None:
        packed = ormsgpack.packb(
            ormsgpack.Ext(3, ormsgpack.packb(["datetime", "datetime", "2026-03-14T14:02:09", "fromisoformat"]))
        )
        envelope = {
            "lc": 2,
            "type": "constructor",
            "id": ["datetime", "datetime"],
            "method": "fromisoformat",
            "args": ["2026-03-14"],
        }
        names = child_types().names_in_msgpack(packed) | child_types().names_in_json(json.dumps(envelope))
        assert names == {"datetime.datetime"} <= typeuse.SAFE
        assert set(typeuse.names_in(codec.decode("msgpack", packed))) == names

    def test_types_of_the_schema_keep_their_class(self, project: Path, database: Path) -> None:
        start(project, database, "graph", interrupt_before=["second"])
        end, _ = perform(project, database, "graph")  # `second` asserts that the stored ticket is a Ticket with a Mood
        assert end["status"] == "done"

    def test_a_type_behind_any_needs_trust_and_is_built_with_it(self, project: Path, database: Path) -> None:
        start(project, database, "loose", interrupt_before=["read_loose"])
        end, _ = perform(project, database, "loose")
        assert end["error"]["types"] == ["graphs.Loose"]
        end, _ = perform(project, database, "loose", trusted=["graphs.Loose"])
        assert log(project, database) == ["Loose(text='kept')"]

    def test_trust_is_for_the_named_types_alone(self, project: Path, database: Path) -> None:
        target, evil = canary(project)
        poison(database, start(project, database, "loose", interrupt_before=["read_loose"])["head"], evil)
        end, _ = perform(project, database, "loose", trusted=["graphs.Loose"])
        assert end["error"]["types"] == ["os.mkdir"]
        assert not target.exists()

    def test_classes_of_a_program_started_as_a_script_are_found_in_the_graphs_module(self, project: Path, database: Path) -> None:
        head = start(project, database, "graph", interrupt_before=["second"])["head"]
        mood = ormsgpack.Ext(0, ormsgpack.packb(["__main__", "Mood", "good"]))
        fields = ormsgpack.packb(["__main__", "Ticket", {"number": 7, "mood": mood}])
        poison(database, head, ormsgpack.Ext(2, fields), channel="ticket")
        end, _ = perform(project, database, "graph")
        assert end["status"] == "done"

    def test_inspection_tells_what_would_become_of_stored_types(self, project: Path) -> None:
        names = ["graphs.Ticket", "graphs.Loose", "graphs.Gone", "os.mkdir", "datetime.date"]
        known = runner.call(find_graph(spec(project, "graph")), {"op": "inspect", "types": names})
        assert known["types"] == {
            "graphs.Ticket": "schema", "graphs.Loose": "other", "graphs.Gone": "missing",
            "os.mkdir": "other", "datetime.date": "safe",
        }  # fmt: skip
        assert known["nodes"] == ["first", "second"]
        assert known["strict_mode"] is True
        assert {"source": "first", "target": "second", "conditional": False} in known["edges"]

    def test_the_safe_list_is_langgraphs_own(self) -> None:
        assert {".".join(key) for key in SAFE_MSGPACK_TYPES} == typeuse.SAFE - {"langgraph.constants.Send"}


CHILD_FILES = sorted(Path(runner.__file__).parent.glob("child*.py"))


@pytest.mark.parametrize("path", CHILD_FILES, ids=lambda path: path.name)
def test_the_child_is_valid_for_python_3_9_and_imports_only_what_is_there(path: Path) -> None:
    tree = ast.parse(path.read_text(), feature_version=(3, 9))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    allowed = {*sys.stdlib_module_names, "langgraph", "ormsgpack", "msgpack", "dotenv", "aiosqlite"}
    assert {name.split(".")[0] for name in names} <= allowed


def test_the_child_can_be_run_by_hand(project: Path) -> None:
    document = {"op": "inspect", "graph": find_graph(spec(project, "graph")).request()}
    command = [sys.executable, "-u", str(runner.CHILD)]
    done = subprocess.run(command, input=json.dumps(document), capture_output=True, text=True, check=True)
    assert [json.loads(line)["event"] for line in done.stdout.splitlines()] == ["ready", "end"]


def test_a_name_that_only_the_file_s_own_langgraph_json_lists_is_taken_there(project: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "langgraph.json").write_text(json.dumps({"graphs": {"trip": "./trip.py:graph", "graph": "./trip.py:other"}}))
    (mine / "trip.py").write_text("graph = other = None")
    here = str(project / "state.sqlite")
    names = json.loads((project / "langgraph.json").read_text())["graphs"]
    only = next(name for name in names if name not in ("trip", "graph"))
    assert find_graph(GraphSpec(only, cwd=str(mine)), here).config_file == str(project / "langgraph.json")
    assert find_graph(GraphSpec("graph", cwd=str(mine)), here).config_file == str(mine / "langgraph.json"), "the nearer one first"
    with pytest.raises(UsageError, match="no graph named 'nowhere'"):
        find_graph(GraphSpec("nowhere", cwd=str(mine)), here)
