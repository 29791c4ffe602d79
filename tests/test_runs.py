"""Runs from end to end: a real file, a real graph in a real child process, the studio's own reader afterwards."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from studio import notes
from studio.errors import PatchError, RunError, StudioError, UsageError
from studio.model import Address
from studio.notes import Notes
from studio.requests import ForkRequest, GraphSpec, Patch, RunEvent, RunRequest
from studio.running.updates import encoded
from studio.session import Session
from tests.factories import saver_at
from tests.run_project import canary, make_project, poison, ran, record, spec


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "state.sqlite"


class Desk:
    """A session on a recorded thread `t`, with the few calls that the tests make."""

    def __init__(self, project: Path, database: Path, name: str, **more: Any) -> None:
        record(project, database, name, "t", {"n": 1}, **more)
        self.before = hashlib.sha256(database.read_bytes()).hexdigest()
        self.database = database
        self.project = project
        self.session = Session.open(str(database), graph=spec(project, name))

    def at(self, next_: str, ns: str = "") -> Address:
        """The recorded checkpoint that schedules this node."""
        tree = self.session.tree("t")
        rows = [tree.address_at(index) for index in range(len(tree))]
        inside = [row for row in rows if row.checkpoint_ns.startswith(ns) and bool(row.checkpoint_ns) == bool(ns)]
        return next(row for row in inside if next_ in (self.session.state(row).next or ()))

    def run(self, address: Address, **more: Any) -> dict[str, Any]:
        end = self.session.run(RunRequest(address, **more)).wait(60)
        assert end is not None
        return end

    def questions(self, address: Address) -> dict[Any, str]:
        """Question -> its recorded id."""
        asked = [question for task in self.session.state(address).tasks for question in task.interrupts]
        return {question.value: str(question.id) for question in asked}

    def head(self, end: dict[str, Any]) -> Address:
        return Address(**end["head"])

    def log(self, end: dict[str, Any]) -> list[str]:
        return list(self.session.state(self.head(end)).values["log"])

    def untouched(self) -> bool:
        return hashlib.sha256(self.database.read_bytes()).hexdigest() == self.before


Desks = Callable[..., Desk]


@pytest.fixture
def desks(project: Path, database: Path) -> Iterator[Desks]:
    """Record thread `t` with a graph of the project and open the file: `desks(name, resume=…, user_id=…)`."""
    made: list[Desk] = []

    def make(name: str, **more: Any) -> Desk:
        made.append(Desk(project, database, name, **more))
        return made[-1]

    yield make
    for desk in made:
        desk.session.close()


class TestThePlan:
    def test_it_says_what_runs_with_which_code_and_where(self, project: Path, desks: Desks) -> None:
        desk = desks("graph")
        plan = desk.session.plan(RunRequest(desk.at("second")))
        assert (plan.runs, plan.kept, plan.asks, plan.side_effects) == (("second",), (), (), ())
        assert plan.graph == f"graph = {project}/graphs.py:graph"
        assert plan.stored_in == desk.session.scratch_path
        assert plan.makes_copy
        assert plan.one_click
        assert desk.untouched()
        assert not Path(desk.session.scratch_path).exists()

    def test_types_of_the_schema_are_safe_and_others_need_trust(self, desks: Desks) -> None:
        desk = desks("loose")
        uses = {use.name: use for use in desk.session.plan(RunRequest(desk.at("read_loose"))).types}
        assert not uses["graphs.Loose"].safe
        assert uses["graphs.Loose"].channels == ("anything",)
        plan = desk.session.plan(RunRequest(desk.at("read_loose")))
        assert plan.needs_trust
        assert not plan.one_click

    def test_tool_calls_that_already_ran_are_side_effects(self, desks: Desks) -> None:
        desk = desks("refunding")
        plan = desk.session.plan(RunRequest(desk.at("tools")))
        assert plan.side_effects == ('refund, recorded with order="4711", amount=499.0 (call call_1)',)
        assert not plan.one_click
        result = desk.session.fork(ForkRequest(desk.at("tools")))
        assert desk.session.plan(RunRequest(result.address)).side_effects == plan.side_effects

    def test_tool_calls_of_kept_tasks_are_none(self, project: Path, desks: Desks) -> None:
        desk = desks("refund_beside")
        address = desk.at("shaky")
        plan = desk.session.plan(RunRequest(address))
        assert (plan.kept, plan.side_effects) == (("tools",), ())
        (project / "repaired").touch()
        run = desk.session.run(RunRequest(address))
        run.wait(60)
        assert [event.data["name"] for event in run.events if event.event == "task"] == ["shaky", "last"]
        assert [event.data["name"] for event in run.events if event.event == "task_result"] == ["shaky", "last"]
        assert desk.session.plan(RunRequest(address)).side_effects == ()

    def test_open_questions_are_named_unless_answered(self, desks: Desks) -> None:
        desk = desks("asking")
        address = desk.at("ask")
        assert desk.session.plan(RunRequest(address)).asks == ('ask asks: {question: "go on with 2?"}',)
        assert desk.session.plan(RunRequest(address, resume="yes", has_resume=True)).asks == ()

    def test_a_choice_of_graph_is_asked_for_with_names(self, project: Path, desks: Desks) -> None:
        desk = desks("graph")
        desk.session.graph = GraphSpec(cwd=str(project))
        with pytest.raises(UsageError) as caught:
            desk.session.plan(RunRequest(desk.at("second")))
        assert "asking" in caught.value.candidates

    def test_a_node_to_stop_at_that_the_graph_lacks_is_refused_with_the_nodes(self, desks: Desks) -> None:
        desk = desks("graph")
        for stops in ({"before": ("secnd",)}, {"after": ("secnd",)}):
            with pytest.raises(UsageError, match="no node 'secnd'") as caught:
                desk.session.plan(RunRequest(desk.at("second"), **stops))
            assert caught.value.candidates == ("first", "second")

    def test_an_edited_graph_is_looked_at_again_whatever_way_it_was_named(self, project: Path, desks: Desks) -> None:
        (project / "helper.py").write_text("NAME = 'one'\n")
        code = "from graphs import *\nimport helper\n"
        (project / "more.py").write_text(code + "graph = line(first, second)\ngraph.add_node(helper.NAME, calm)\n")
        desk = desks("graph")
        request = RunRequest(desk.at("second"), graph=GraphSpec("more:graph", cwd=str(project)))
        assert desk.session.run_room.inspect(request)["nodes"][-1] == "one"
        (project / "helper.py").write_text("NAME = 'another'\n")
        assert desk.session.run_room.inspect(request)["nodes"][-1] == "another"


class TestRunningAgain:
    def test_a_graph_that_cannot_be_loaded_leaves_the_scratch_as_it_was(self, project: Path, desks: Desks) -> None:
        desk = desks("graph")
        graphs = (project / "graphs.py").read_text()
        (project / "graphs.py").write_text("raise ValueError('half written')\n")
        with pytest.raises(RunError, match="half written"):
            desk.run(desk.at("second"))
        assert not Path(desk.session.scratch_path).exists()
        (project / "graphs.py").write_text(graphs)
        desk.session.fork(ForkRequest(desk.at("second")))
        before = len(desk.session.tree("t"))
        (project / "graphs.py").write_text("import module_that_is_not_there\n")
        with pytest.raises(RunError, match="module_that_is_not_there"):
            desk.run(desk.at("second"))
        desk.session.refresh()
        assert len(desk.session.tree("t")) == before

    def test_a_recorded_checkpoint_runs_as_a_copy_and_the_file_stays(self, project: Path, desks: Desks) -> None:
        desk = desks("graph")
        end = desk.run(desk.at("second"))
        assert (end["status"], end["error"]) == ("done", None)
        assert ran(project) == ["second"]
        assert desk.log(end) == ["first", "second saw 2"]
        assert desk.untouched()
        tree = desk.session.tree("t")
        copy = tree.parent(desk.head(end))
        assert copy is not None
        assert tree.origin(copy) == desk.at("second")
        assert list(tree.children(copy)) == [desk.head(end)]

    def test_an_edited_fork_runs_with_the_edit(self, desks: Desks) -> None:
        desk = desks("graph")
        fork = desk.session.fork(ForkRequest(desk.at("second"), Patch(set={"/n": 99})))
        end = desk.run(fork.address)
        assert desk.log(end) == ["first", "second saw 99"]
        assert desk.session.tree("t").parent(desk.head(end)) == fork.address

    def test_a_fork_that_ran_already_is_copied_before_it_runs_again(self, desks: Desks) -> None:
        desk = desks("graph")
        fork = desk.session.fork(ForkRequest(desk.at("second"), Patch(set={"/n": 99})))
        desk.run(fork.address)
        end = desk.run(fork.address)
        assert desk.log(end) == ["first", "second saw 99"]
        assert desk.session.tree("t").parent(desk.head(end)) != fork.address

    def test_an_older_fork_runs_with_its_own_values(self, desks: Desks) -> None:
        desk = desks("graph")
        older = desk.session.fork(ForkRequest(desk.at("second"), Patch(set={"/n": 5})))
        desk.session.fork(ForkRequest(desk.at("second"), Patch(set={"/n": 6})))
        assert desk.log(desk.run(older.address)) == ["first", "second saw 5"]

    def test_a_new_input_begins_below_the_checkpoint(self, desks: Desks) -> None:
        desk = desks("graph")
        head = desk.session.tree("t").leaves()[0]
        end = desk.run(head, input={"n": 10}, has_input=True)
        assert desk.log(end) == ["first", "second saw 2", "first", "second saw 11"]
        branch = desk.session.tree("t").branch(desk.head(end))
        assert head in branch
        assert desk.untouched()

    def test_a_finished_thread_has_nothing_to_run(self, desks: Desks) -> None:
        desk = desks("graph")
        head = desk.session.tree("t").leaves()[0]
        assert desk.session.plan(RunRequest(head)).warnings
        with pytest.raises(UsageError, match="nothing is left to run"):
            desk.run(head)

    def test_an_exception_ends_as_failed_with_the_place_as_hint(self, project: Path, desks: Desks) -> None:
        desk = desks("failing")
        end = desk.run(desk.at("shaky"))
        assert end["status"] == "failed"
        assert end["error"]["type"] == "ValueError"
        assert end["error"]["hint"].startswith(f'File "{project}/graphs.py"')
        assert desk.session.state(desk.head(end)).status == "failed"

    def test_a_failed_step_is_repaired_without_running_its_finished_sibling_again(self, project: Path, desks: Desks) -> None:
        desk = desks("failing")
        (project / "repaired").touch()
        plan = desk.session.plan(RunRequest(desk.at("shaky")))
        assert (plan.runs, plan.kept) == (("shaky",), ("calm",))
        end = desk.run(desk.at("shaky"))
        assert end["status"] == "done"
        assert sorted(ran(project)) == ["last", "shaky"]
        assert set(desk.log(end)) == {"first", "shaky", "calm", "last"}

    def test_it_stops_before_a_node_and_goes_on_from_there(self, desks: Desks) -> None:
        desk = desks("graph")
        end = desk.run(desk.at("first"), before=("second",))
        assert (end["status"], end["interrupts"], end["next"]) == ("paused", [], ["second"])
        end = desk.run(desk.head(end))
        assert desk.log(end) == ["first", "second saw 2"]

    def test_stored_config_reaches_the_graph_and_a_given_one_wins(self, desks: Desks) -> None:
        desk = desks("configured", user_id="mara", tier="gold")
        plan = desk.session.plan(RunRequest(desk.at("who"), config={"api_key": "sk-live-0123456789abcdef0123"}))
        assert {**plan.config, "api_key": ""} == {"user_id": '"mara"', "tier": '"gold"', "api_key": ""}
        assert "0123" not in str(plan)
        assert desk.log(desk.run(desk.at("who"))) == ["mara", "gold"]
        fork = desk.session.fork(ForkRequest(desk.at("who")))
        assert desk.log(desk.run(fork.address, config={"tier": "lead"})) == ["mara", "lead"]

    def test_a_scratch_file_that_is_opened_itself_is_run_where_it_is(self, project: Path, desks: Desks) -> None:
        desk = desks("graph")
        fork = desk.session.fork(ForkRequest(desk.at("second"), Patch(set={"/n": 99})))
        with contextlib.closing(Session.open(desk.session.scratch_path, graph=spec(project, "graph"))) as session:
            plan = session.plan(RunRequest(fork.address))
            assert (plan.stored_in, plan.makes_copy) == (desk.session.scratch_path, False)
            end = session.run(RunRequest(fork.address)).wait(60)
            assert end is not None
            assert session.state(Address(**end["head"])).values["log"] == ["first", "second saw 99"]

    def test_in_place_goes_on_in_the_users_own_file(self, project: Path, database: Path, desks: Desks) -> None:
        desk = desks("asking")
        end = desk.run(desk.at("ask"), resume="yes", has_resume=True, in_place=True)
        assert end["status"] == "done"
        assert ran(project) == ["ask", "second"]
        assert desk.session.state(desk.head(end)).checkpoint.origin == "base"
        with saver_at(database) as saver:
            head = saver.get_tuple({"configurable": {"thread_id": "t", "checkpoint_ns": ""}})
        assert head is not None
        assert head.config["configurable"]["checkpoint_id"] == end["head"]["checkpoint_id"]
        (entry,) = Notes(desk.session.scratch.notes_path).audit()
        assert (entry.act, entry.status, entry.origin) == ("run", "done", desk.at("ask"))
        assert entry.added == tuple(desk.session.tree("t").branch(desk.head(end))[-len(entry.added) :])
        assert desk.head(end) in entry.added and desk.at("ask") not in entry.added

    def test_a_file_with_triggers_is_not_written_in_place(self, project: Path, database: Path, desks: Desks) -> None:
        desk = desks("graph")
        at = desk.at("second")
        with contextlib.closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("CREATE TRIGGER tidy AFTER INSERT ON writes BEGIN DELETE FROM checkpoints; END")
        before = database.read_bytes()
        update = ForkRequest(at, as_node="first", update={"n": 4}, is_update=True, in_place=True)
        with pytest.raises(PatchError, match=r"triggers .*tidy"):
            desk.session.run(RunRequest(at, in_place=True))
        with pytest.raises(PatchError, match=r"triggers .*tidy"):
            desk.session.fork(update)
        assert database.read_bytes() == before
        assert ran(project) == []

    def test_what_cannot_be_audited_is_not_written_in_place(self, project: Path, database: Path, desks: Desks) -> None:
        desk = desks("graph")
        at = desk.at("second")
        Path(desk.session.scratch.notes_path).mkdir(parents=True)
        update = ForkRequest(at, as_node="first", update={"n": 4}, is_update=True, in_place=True)
        with pytest.raises(StudioError, match="audit"):
            desk.session.run(RunRequest(at, in_place=True))
        with pytest.raises(StudioError, match="audit"):
            desk.session.fork(update)
        assert desk.untouched()
        assert ran(project) == []

    def test_an_update_in_place_is_audited_with_what_it_added(self, desks: Desks) -> None:
        desk = desks("graph")
        at = desk.at("second")
        made = desk.session.fork(ForkRequest(at, as_node="first", update={"n": 4}, is_update=True, in_place=True))
        (entry,) = Notes(desk.session.scratch.notes_path).audit()
        assert (entry.act, entry.status, entry.origin, entry.added) == ("update_state", "done", at, (made.address,))


class TestAnswering:
    def test_a_recorded_question_is_answered_on_a_copy(self, desks: Desks) -> None:
        desk = desks("asking")
        end = desk.run(desk.at("ask"), resume={"ok": True}, has_resume=True)
        assert end["status"] == "done"
        assert desk.log(end)[1] == "ask:{'ok': True}"
        assert desk.untouched()

    def test_a_question_that_was_answered_can_be_answered_differently(self, project: Path, desks: Desks) -> None:
        desk = desks("asking", resume="yes")
        end = desk.run(desk.at("ask"), resume="no", has_resume=True)
        assert desk.log(end)[1] == "ask:no"
        assert ran(project) == ["ask", "second"]

    def test_without_an_answer_it_is_asked_again_and_then_answered(self, desks: Desks) -> None:
        desk = desks("asking")
        fork = desk.session.fork(ForkRequest(desk.at("ask"), Patch(set={"/n": 7})))
        end = desk.run(fork.address)
        assert end["status"] == "paused"
        assert end["interrupts"][0]["value"] == {"question": "go on with 7?"}
        end = desk.run(desk.head(end), answers={end["interrupts"][0]["id"]: "yes"})
        assert desk.log(end) == ["first", "ask:yes", "second saw 7"]

    def test_recorded_ids_answer_a_copy_and_finished_siblings_are_kept(self, project: Path, desks: Desks) -> None:
        desk = desks("two_questions")
        address = desk.at("left")
        ids = desk.questions(address)
        plan = desk.session.plan(RunRequest(address, answers={ids["left?"]: 1}))
        assert (sorted(plan.runs), plan.kept, plan.asks) == (["left", "right"], ("calm",), ('right asks: "right?"',))
        end = desk.run(address, answers={ids["left?"]: 1, ids["right?"]: 2})
        assert end["status"] == "done"
        assert {"left:1", "right:2", "calm"} <= set(desk.log(end))
        assert sorted(ran(project)) == ["last", "left", "right"]

    def test_one_of_two_answers_leaves_the_other_question_open(self, project: Path, desks: Desks) -> None:
        desk = desks("two_questions")
        address = desk.at("left")
        ids = desk.questions(address)
        end = desk.run(address, answers={ids["left?"]: 1})
        assert (end["status"], [one["value"] for one in end["interrupts"]]) == ("paused", ["right?"])
        ran(project)
        end = desk.run(desk.head(end), resume=2, has_resume=True)
        assert {"left:1", "right:2"} <= set(desk.log(end))
        assert sorted(ran(project)) == ["last", "right"]

    def test_a_plain_answer_to_several_questions_is_refused_with_their_ids(self, desks: Desks) -> None:
        desk = desks("two_questions")
        with pytest.raises(UsageError) as caught:
            desk.run(desk.at("left"), resume=1, has_resume=True)
        assert len(caught.value.candidates) == 2
        with pytest.raises(UsageError, match="no question"):
            desk.run(desk.at("left"), answers={"ffff": 1})

    def test_a_second_question_of_one_node_keeps_the_first_answer(self, desks: Desks) -> None:
        desk = desks("twice", resume=1)
        end = desk.run(desk.at("ask_twice"), resume=2, has_resume=True)
        assert desk.log(end) == ["1+2"]

    def test_tasks_of_sends_are_told_apart(self, project: Path, desks: Desks) -> None:
        desk = desks("fanned")
        end = desk.run(desk.at("grade"), resume="B", has_resume=True)
        assert {"grade 0:free", "grade 1:B"} <= set(desk.log(end))
        assert sorted(ran(project)) == ["grade 1", "last"]

    def test_a_question_inside_a_subgraph_is_answered(self, project: Path, desks: Desks) -> None:
        desk = desks("outer")
        end = desk.run(desk.at("inside"), resume="deep", has_resume=True)
        assert end["status"] == "done"
        assert "ask:deep" in desk.log(end)
        assert ran(project) == ["ask", "last"]

    @pytest.mark.parametrize("answered", [None, "early"])
    def test_finished_subgraphs_beside_the_asking_one_are_kept(self, project: Path, desks: Desks, answered: str | None) -> None:
        desk = desks("clerks", resume=answered)
        plan = desk.session.plan(RunRequest(desk.at("clerk"), resume="late", has_resume=True))
        assert (plan.runs, plan.kept, plan.warnings) == (("clerk",), ("clerk", "clerk"), ())
        end = desk.run(desk.at("clerk"), resume="late", has_resume=True)
        assert end["status"] == "done"
        assert ran(project) == ["decide 2", "last"]
        assert {"decide 0:free", "decide 1:free", "decide 2:late"} <= set(desk.log(end))
        assert desk.untouched()

    def test_a_run_from_inside_one_of_several_subgraphs_leaves_the_finished_ones_alone(self, project: Path, desks: Desks) -> None:
        desk = desks("clerks", resume="early")
        address = desk.at("decide", "clerk:")
        plan = desk.session.plan(RunRequest(address))
        assert (plan.runs, plan.kept) == (("decide",), ("clerk", "clerk"))
        number = desk.session.state(address).values["n"]
        end = desk.run(address)
        assert ran(project)[0] == f"decide {number}"
        assert end["status"] == ("paused" if number == 2 else "done")
        fork = desk.session.fork(ForkRequest(address))
        assert desk.session.plan(RunRequest(fork.address)).kept == ("clerk", "clerk")

    def test_one_of_two_questions_in_subgraphs_is_answered_and_what_starts_again_is_named(
        self, project: Path, desks: Desks
    ) -> None:
        desk = desks("clerks_ask")
        ids = desk.questions(desk.at("clerk"))
        answers = {ids["2?"]: "two"}
        plan = desk.session.plan(RunRequest(desk.at("clerk"), answers=answers))
        assert (plan.runs, plan.kept) == (("clerk", "clerk"), ("clerk",))
        assert plan.warnings == ("clerk had begun and will start again from the first node.",)
        end = desk.run(desk.at("clerk"), answers=answers)
        assert [one["value"] for one in end["interrupts"]] == ["1?"]
        assert "decide 0" not in ran(project)
        end = desk.run(desk.head(end), resume="one", has_resume=True)
        assert {"decide 0:free", "decide 1:one", "decide 2:two"} <= set(desk.log(end))

    def test_both_questions_in_subgraphs_are_answered_and_the_finished_one_is_kept(self, project: Path, desks: Desks) -> None:
        desk = desks("clerks_ask")
        ids = desk.questions(desk.at("clerk"))
        answers = {ids["1?"]: "one", ids["2?"]: "two"}
        warnings = desk.session.plan(RunRequest(desk.at("clerk"), answers=answers)).warnings
        assert warnings == ("clerk, clerk had begun and will start again from the first node.",)
        end = desk.run(desk.at("clerk"), answers=answers)
        assert end["status"] == "done"
        assert {"decide 0:free", "decide 1:one", "decide 2:two"} <= set(desk.log(end))
        assert not {"prepare 0", "decide 0"} & set(ran(project))

    def test_a_run_inside_a_subgraph_runs_the_whole_thread_from_there(self, project: Path, desks: Desks) -> None:
        desk = desks("outer")
        end = desk.run(desk.at("ask", "inside:"))
        assert (end["status"], end["head"]["checkpoint_ns"]) == ("paused", "")
        assert ran(project) == ["ask"]


class TestTrust:
    def test_without_trust_nothing_starts_and_nothing_is_written(self, desks: Desks) -> None:
        desk = desks("loose")
        with pytest.raises(RunError, match=r"graphs\.Loose") as caught:
            desk.run(desk.at("read_loose"))
        assert (caught.value.slug, caught.value.candidates) == ("needs-trust", ("graphs.Loose",))
        assert not Path(desk.session.scratch_path).exists()

    def test_with_trust_the_types_keep_their_class(self, desks: Desks) -> None:
        desk = desks("loose")
        assert desk.log(desk.run(desk.at("read_loose"), trust_types=True)) == ["Loose(text='kept')"]

    def test_a_crafted_blob_is_in_the_plan_and_does_nothing(self, project: Path, database: Path, desks: Desks) -> None:
        desk = desks("graph")
        target, evil = canary(project)
        address = desk.at("second")
        poison(database, address.checkpoint_id, evil)
        desk.session.refresh()
        plan = desk.session.plan(RunRequest(address))
        assert [use.name for use in plan.types if not use.safe] == ["os.mkdir"]
        with pytest.raises(RunError, match=r"os\.mkdir"):
            desk.run(address)
        assert not target.exists()


class TestFollowing:
    def test_the_plan_is_the_first_event_and_the_end_the_last(self, desks: Desks) -> None:
        desk = desks("graph")
        heard: list[RunEvent] = []
        run = desk.session.run(RunRequest(desk.at("second")), heard.append)
        end = run.wait(60)
        names = [event.event for event in run.events]
        assert (names[0], names[-1], run.status) == ("plan", "end", "done")
        assert run.seen == len(names)
        assert run.end == end

    def test_cancel_ends_it_and_says_where_it_stands(self, project: Path, desks: Desks) -> None:
        desk = desks("graph")
        fork = desk.session.fork(ForkRequest(desk.at("first")))
        started = threading.Event()
        request = RunRequest(fork.address, graph=spec(project, "looping"), input={"n": 1}, has_input=True)
        run = desk.session.run(request, lambda event: started.set() if event.event == "task" else None)
        assert started.wait(30)
        run.cancel()
        end = run.wait(20)
        assert end is not None
        assert (end["status"], run.status) == ("cancelled", "cancelled")
        assert end["head"]["thread_id"] == "t"

    def test_subscribers_hear_of_the_run_and_of_the_new_rows(self, desks: Desks) -> None:
        desk = desks("graph")
        heard: list[str] = []
        stop = desk.session.subscribe(heard.append)
        run = desk.session.run(RunRequest(desk.at("second")))
        run.wait(60)
        stop()
        assert {"tree", f"run:{run.id}"} <= set(heard)

    def test_the_notes_keep_the_run_with_its_plan_and_outcome(self, desks: Desks) -> None:
        desk = desks("graph")
        run = desk.session.run(RunRequest(desk.at("second")))
        run.wait(60)
        kept = Notes(desk.session.scratch.notes_path).runs("t")
        assert [(one.id, one.status) for one in kept] == [(run.id, "done")]
        assert kept[0].plan["runs"] == ["second"]

    @pytest.mark.parametrize("trouble", ["the row is gone", "the table is another", "locked at the start"])
    def test_a_run_that_cannot_be_noted_ends_as_it_ended_and_says_so(
        self, desks: Desks, trouble: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(notes, "BUSY_SECONDS", 0.05)
        desk = desks("graph")
        kept = Notes(desk.session.scratch.notes_path)
        kept.begin_run("another", desk.at("first"), {})
        spoil = {"the row is gone": "DELETE FROM runs", "the table is another": "ALTER TABLE runs DROP COLUMN outcome"}.get(
            trouble
        )

        def meanwhile(event: RunEvent) -> None:
            if event.event == "task" and spoil is not None:
                with contextlib.closing(sqlite3.connect(kept.path)) as connection, connection:
                    connection.execute(spoil)

        with contextlib.closing(sqlite3.connect(kept.path, isolation_level=None)) as other:
            if spoil is None:
                other.execute("BEGIN IMMEDIATE")
            run = desk.session.run(RunRequest(desk.at("second")), meanwhile)
            if spoil is None:
                other.execute("ROLLBACK")
        end = run.wait(20)
        assert end is not None and (end["status"], run.status) == ("done", "done")
        assert [event.event for event in run.events][-1] == "end"
        assert any("notes" in str(event.data.get("text")) for event in run.events if event.event == "log")


class TestWritingAsANode:
    def test_reducers_and_edges_apply_on_the_scratch_file(self, desks: Desks) -> None:
        desk = desks("graph")
        request = ForkRequest(desk.at("second"), as_node="first", update={"log": ["by hand"], "n": 40}, is_update=True)
        preview = desk.session.preview(request)
        assert (preview.refused, preview.next) == (None, ("second",))
        assert {change.path for change in preview.changes} == {"/log/1", "/n"}
        assert not Path(desk.session.scratch_path).exists()
        result = desk.session.fork(request)
        assert (result.recipe, result.verified, result.next) == ("update_state", True, ("second",))
        assert result.parent_checkpoint_id == desk.at("second").checkpoint_id
        assert desk.log(desk.run(result.address)) == ["first", "by hand", "second saw 40"]
        assert desk.untouched()

    def test_what_the_graph_does_not_know_is_a_surprise(self, desks: Desks) -> None:
        desk = desks("graph")
        result = desk.session.fork(ForkRequest(desk.at("second"), as_node="first", update={"typo": 1, "n": 3}, is_update=True))
        assert not result.verified
        assert "typo" in result.surprises[0]

    def test_typed_values_are_built_by_the_graphs_own_types(self, desks: Desks) -> None:
        desk = desks("graph")
        mood = {"$type": "graphs.Mood", "$ext": 0, "args": ["good"]}
        ticket = {"$type": "graphs.Ticket", "$ext": 2, "fields": {"number": 8, "mood": mood}}
        result = desk.session.fork(ForkRequest(desk.at("second"), as_node="first", update={"ticket": ticket}, is_update=True))
        stored = desk.session.state(result.address).values["ticket"]
        assert (stored.type_name, stored.fields["number"]) == ("graphs.Ticket", 8)
        assert desk.run(result.address)["status"] == "done"

    def test_an_unknown_node_and_an_ambiguous_one_are_refused_with_candidates(self, desks: Desks) -> None:
        desk = desks("graph")
        request = ForkRequest(desk.at("second"), as_node="nobody", update={"n": 3}, is_update=True)
        with pytest.raises(RunError, match="does not exist") as caught:
            desk.session.fork(request)
        assert caught.value.candidates == ("first", "second")
        assert "first" in (desk.session.preview(request).refused or "")

    def test_when_several_nodes_made_a_checkpoint_only_these_are_offered(self, desks: Desks) -> None:
        desk = desks("pair")
        with pytest.raises(RunError, match="Ambiguous") as caught:
            desk.session.fork(ForkRequest(desk.at("last"), update={"n": 3}, is_update=True))
        assert caught.value.candidates == ("calm", "prepare")

    def test_into_a_new_thread(self, desks: Desks) -> None:
        desk = desks("graph")
        request = ForkRequest(desk.at("second"), as_node="first", update={"n": 3}, is_update=True, new_thread="mine")
        result = desk.session.fork(request)
        assert result.address.thread_id == "mine"
        assert desk.log(desk.run(result.address)) == ["first", "second saw 3"]

    def test_inside_a_subgraph(self, desks: Desks) -> None:
        desk = desks("outer")
        request = ForkRequest(desk.at("ask", "inside:"), as_node="calm", update={"n": 77}, is_update=True)
        result = desk.session.fork(request)
        assert result.address.checkpoint_ns.startswith("inside:")
        end = desk.run(result.address)
        assert end["interrupts"][0]["value"] == {"question": "go on with 77?"}


def test_plain_json_goes_as_it_is_and_typed_values_in_their_stored_form() -> None:
    assert encoded({"a": [1, 2.0]}) == {"json": {"a": [1, 2.0]}}
    assert base64.b64decode(encoded({"a": {"$bytes": "aGk=", "size": 2}})["msgpack"]).endswith(b"hi")
