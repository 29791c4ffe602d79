"""Finding graphs and interpreters, and the life of a child process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from studio import runner
from studio.errors import RunError, UsageError
from studio.requests import GraphSpec
from studio.runner import Child
from studio.running.graphs import GraphFound, find_graph
from tests.factories import saver_at
from tests.run_project import make_project, spec


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "state.sqlite"
    with saver_at(path) as saver:
        saver.setup()
    return path


def request(database: Path, **more: Any) -> dict[str, Any]:
    return {"op": "run", "database": str(database), "thread_id": "t", "input": {"json": {"n": 1}}, **more}


def gone(pid: int, seconds: float = 5.0) -> bool:
    """Whether a process ends within some seconds; a zombie counts as ended."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{pid}/stat").exists() and Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
            os.kill(pid, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


class TestFindingTheGraph:
    def test_a_name_of_langgraph_json_is_found_from_a_folder_below(self, project: Path) -> None:
        below = project / "deep" / "down"
        below.mkdir(parents=True)
        found = find_graph(GraphSpec("asking", cwd=str(below)))
        assert found.title == f"asking = {project / 'graphs.py'}:asking"
        assert (found.project_dir, found.env_file) == (str(project), str(project / ".env"))

    def test_the_location_is_searched_when_the_working_folder_has_none(self, project: Path, tmp_path: Path) -> None:
        elsewhere = tmp_path / "elsewhere"
        elsewhere.mkdir()
        found = find_graph(GraphSpec("graph", cwd=str(elsewhere)), str(project / "data" / "x.sqlite"))
        assert found.file == str(project / "graphs.py")

    def test_several_graphs_and_no_name_asks_with_the_names(self, project: Path) -> None:
        with pytest.raises(UsageError) as caught:
            find_graph(GraphSpec(cwd=str(project)))
        assert "asking" in caught.value.candidates
        assert caught.value.exit_code == 2

    def test_the_only_graph_needs_no_name_and_may_be_written_as_an_object(self, project: Path) -> None:
        (project / "langgraph.json").write_text(json.dumps({"graphs": {"one": {"path": "./graphs.py:graph"}}, "env": {"A": 1}}))
        found = find_graph(GraphSpec(cwd=str(project)))
        assert (found.name, found.env) == ("one", {"A": "1"})

    def test_an_unknown_name_lists_what_there_is(self, project: Path) -> None:
        with pytest.raises(UsageError, match="no graph named 'nope'") as caught:
            find_graph(spec(project, "nope"))
        assert "graph" in caught.value.candidates

    @pytest.mark.parametrize("target", ["graphs.py:graph", "./graphs.py:graph"])
    def test_a_file_and_attribute_needs_no_langgraph_json(self, project: Path, target: str) -> None:
        (project / "langgraph.json").unlink()
        found = find_graph(GraphSpec(target, cwd=str(project)))
        assert (found.file, found.attr, found.project_dir) == (str(project / "graphs.py"), "graph", str(project))

    def test_a_module_and_attribute_is_left_to_its_interpreter(self, project: Path) -> None:
        found = find_graph(GraphSpec("graphs:graph", cwd=str(project)))
        assert (found.module, found.file, found.target) == ("graphs", None, "graphs:graph")

    def test_no_graph_at_all_says_how_to_name_one(self, tmp_path: Path) -> None:
        with pytest.raises(UsageError, match=r"no langgraph\.json") as caught:
            find_graph(GraphSpec(cwd=str(tmp_path)))
        assert "--graph" in caught.value.hint

    def test_a_broken_langgraph_json_is_named_with_the_place(self, project: Path) -> None:
        (project / "langgraph.json").write_text('{"graphs": }')
        with pytest.raises(UsageError, match="line 1 column"):
            find_graph(spec(project, "graph"))

    def test_a_missing_file_is_told_before_anything_runs(self, project: Path) -> None:
        with pytest.raises(UsageError, match="there is no file"):
            find_graph(GraphSpec("./nowhere.py:graph", cwd=str(project)))


class TestFindingTheInterpreter:
    def test_the_order_is_asked_for_active_beside_ours(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        assert find_graph(spec(project, "graph")).interpreter == sys.executable
        beside = fake_environment(project / ".venv")
        assert find_graph(spec(project, "graph")).interpreter == str(beside)
        active = fake_environment(project / "active")
        monkeypatch.setenv("VIRTUAL_ENV", str(project / "active"))
        found = find_graph(spec(project, "graph"))
        assert (found.interpreter, found.chosen_by) == (str(active), "VIRTUAL_ENV")
        asked = find_graph(GraphSpec("graph", python=sys.executable, cwd=str(project)))
        assert (asked.interpreter, asked.chosen_by) == (sys.executable, "--python")

    def test_a_virtual_environment_may_be_given_as_a_folder(self, project: Path) -> None:
        python = fake_environment(project / "env")
        assert find_graph(GraphSpec("graph", python="env", cwd=str(project))).interpreter == str(python)

    def test_what_is_no_interpreter_is_refused(self, project: Path) -> None:
        with pytest.raises(RunError, match="is no Python interpreter"):
            find_graph(GraphSpec("graph", python="graphs.py", cwd=str(project)))


def fake_environment(folder: Path) -> Path:
    python = folder / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    return python


class TestTheLifeOfAChild:
    def test_events_come_in_order_and_the_end_is_returned(self, project: Path, database: Path) -> None:
        events: list[dict[str, Any]] = []
        end = Child(find_graph(spec(project, "graph")), request(database)).run(events.append)
        assert end["status"] == "done"
        ran = [event["name"] for event in events if event["event"] == "task"]
        assert ran == ["first", "second"]
        assert [event["event"] for event in events if event["event"] not in ("log", "ready")][:2] == ["checkpoint", "checkpoint"]
        assert end["head"] == [event for event in events if event["event"] == "checkpoint"][-1]["checkpoint_id"]

    def test_prints_and_warnings_of_the_users_code_are_log_lines(self, project: Path, database: Path) -> None:
        events: list[dict[str, Any]] = []
        Child(find_graph(spec(project, "graph")), request(database)).run(events.append)
        lines = [event["text"] for event in events if event["event"] == "log"]
        assert "first runs with 1" in lines
        assert "careful" in lines
        assert {"printed while it is imported", '{"event": "end", "status": "done"}'} <= set(lines)

    def test_a_flood_of_output_is_cut_and_counted_and_the_run_goes_on(self, project: Path, database: Path) -> None:
        events: list[dict[str, Any]] = []
        end = Child(find_graph(spec(project, "flood")), request(database)).run(events.append)
        assert end["status"] == "done"
        logs = [event for event in events if event["event"] == "log"]
        assert len(logs) < 3_000
        assert sum(event.get("dropped", 0) for event in logs) > 150_000
        assert max(len(event["text"]) for event in logs) < 3_000

    def test_cancel_ends_an_endless_loop_and_all_processes_it_started(self, project: Path, database: Path) -> None:
        child = Child(find_graph(spec(project, "looping")), request(database))
        ends: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: ends.append(child.run(lambda event: None)))
        thread.start()
        pid_file = project / "grandchild.pid"
        wait_for(lambda: pid_file.exists() and bool(pid_file.read_text()))
        child.cancel()
        thread.join(10)
        assert ends[0]["status"] == "cancelled"
        assert gone(child.pid)
        assert gone(int(pid_file.read_text()))

    def test_a_child_that_ignores_sigterm_is_killed(self, tmp_path: Path) -> None:
        deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
        fake = script(tmp_path, deaf)
        child = Child(fake, {})
        seen = threading.Event()
        ends: list[dict[str, Any]] = []
        thread = threading.Thread(target=lambda: ends.append(child.run(lambda event: seen.set())))
        thread.start()
        seen.wait(10)
        child.cancel()
        thread.join(10)
        assert (ends[0]["status"], gone(child.pid)) == ("cancelled", True)

    def test_when_the_studio_dies_its_children_and_grandchildren_die(self, project: Path, database: Path) -> None:
        code = (
            "import sys; from studio.running.graphs import find_graph\n"
            "from studio.requests import GraphSpec; from studio.runner import Child\n"
            "child = Child(find_graph(GraphSpec('looping', cwd=sys.argv[1])),"
            " {'op': 'run', 'database': sys.argv[2], 'thread_id': 't', 'input': {'json': {}}})\n"
            "print(child.pid, flush=True); child.run(lambda event: None)"
        )
        studio = subprocess.Popen([sys.executable, "-c", code, str(project), str(database)], stdout=subprocess.PIPE, text=True)
        assert studio.stdout is not None
        pid = int(studio.stdout.readline())
        pid_file = project / "grandchild.pid"
        wait_for(lambda: pid_file.exists() and bool(pid_file.read_text()))
        studio.send_signal(signal.SIGKILL)
        studio.wait()
        studio.stdout.close()
        assert gone(pid)
        assert gone(int(pid_file.read_text()))

    def test_a_process_that_vanishes_is_a_failure_and_its_last_words_are_told_once(self, project: Path, database: Path) -> None:
        events: list[dict[str, Any]] = []
        end = Child(find_graph(spec(project, "vanishing")), request(database)).run(events.append)
        assert end["status"] == "failed"
        assert "exit code 3" in end["error"]["message"]
        assert [event.get("text") for event in events].count("last words") == 1
        assert "last words" not in json.dumps(end)

    @pytest.mark.parametrize(
        ("code", "words", "place"),
        [
            ("import importlib\n\nimportlib.import_module('not_there')\n", "'not_there'", "line 3, in <module>"),
            ("import json\njson.loads('{')\n", "JSONDecodeError", "line 2, in <module>"),
            ("graph = (\n", "SyntaxError", "line 1"),
        ],
    )
    def test_a_graph_that_cannot_be_loaded_is_told_with_the_users_own_line(
        self, project: Path, code: str, words: str, place: str
    ) -> None:
        (project / "graphs.py").write_text(code)
        with pytest.raises(RunError, match=words) as caught:
            runner.call(find_graph(spec(project, "graph")), {"op": "inspect"})
        assert caught.value.hint == f'File "{project}/graphs.py", {place}'

    def test_a_failure_with_a_book_for_a_message_still_has_its_end(self, project: Path, database: Path) -> None:
        end = Child(find_graph(spec(project, "burying")), request(database)).run(lambda event: None)
        assert (end["status"], end["error"]["type"]) == ("failed", "ValueError")
        assert "(+9,980,000 characters)" in end["error"]["message"]
        assert len(json.dumps(end)) < 100_000

    def test_a_child_that_closes_its_event_pipe_is_ended_and_told_as_a_failure(self, project: Path, database: Path) -> None:
        child = Child(find_graph(spec(project, "cutting")), request(database))
        end = child.run(lambda event: None)
        assert "closed the pipe" in end["error"]["message"]
        assert gone(child.pid)

    def test_a_line_that_is_too_long_is_cut_and_what_follows_is_read(self, tmp_path: Path) -> None:
        code = "import sys; sys.stdin.readline()\nprint('{\"event\": ' + 'x' * 9_000_000)\n"
        fake = script(tmp_path, code + """print('{"event": "end", "status": "done"}', flush=True)""")
        events: list[dict[str, Any]] = []
        assert Child(fake, {}).run(events.append)["status"] == "done"
        assert [len(event["text"]) < 3_000 for event in events] == [True]

    @pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files in /proc")
    def test_no_pipe_stays_open_after_runs(self, project: Path, database: Path) -> None:
        def open_files() -> int:
            return len(os.listdir("/proc/self/fd"))

        found = find_graph(spec(project, "graph"))
        before = open_files()
        for number in range(3):
            Child(found, request(database, thread_id=f"t{number}")).run(lambda event: None)
        wait_for(lambda: open_files() <= before)

    @pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="descendants are found in /proc")
    def test_cancel_also_ends_a_process_in_a_session_of_its_own(self, project: Path, database: Path) -> None:
        child = Child(find_graph(spec(project, "running_away")), request(database))
        thread = threading.Thread(target=lambda: child.run(lambda event: None))
        thread.start()
        pid_file = project / "runaway.pid"
        wait_for(lambda: pid_file.exists() and bool(pid_file.read_text()))
        child.cancel()
        thread.join(10)
        assert gone(int(pid_file.read_text()))

    def test_garbage_on_the_event_pipe_is_a_log_line(self, tmp_path: Path) -> None:
        lines = ["not json", "[1, 2]", '{"event": "unheard"}', '{"event": "end", "status": "done"}']
        fake = script(tmp_path, f"import sys; sys.stdin.readline()\nprint({chr(10).join(lines)!r}, flush=True)")
        events: list[dict[str, Any]] = []
        end = Child(fake, {}).run(events.append)
        assert end["status"] == "done"
        assert [event["text"] for event in events] == lines[:3]

    def test_a_call_has_a_time_limit(self, tmp_path: Path) -> None:
        fake = script(tmp_path, "import time; time.sleep(600)")
        with pytest.raises(RunError, match="no end after"):
            runner.call(fake, {}, timeout=0.5)

    def test_an_interpreter_that_cannot_be_started_is_one_line(self, tmp_path: Path) -> None:
        found = GraphFound(None, "x:y", "y", None, "x", str(tmp_path / "python"), "--python", str(tmp_path))
        with pytest.raises(RunError, match="cannot start"):
            Child(found, {})


def wait_for(ready: Any, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


def script(folder: Path, code: str) -> GraphFound:
    """A stand-in for an interpreter that runs `code` whatever it is asked to run."""
    program = folder / "fake.py"
    program.write_text(code)
    python = folder / "fake-python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -u "{program}"\n')
    python.chmod(0o755)
    return GraphFound(None, "x:y", "y", None, "x", str(python), "--python", str(folder))
