"""What a session tells of a branch: the conversation, the files, the list, the tokens. Nothing is drawn here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from studio import reading, wording
from studio.model import Address
from studio.render.secrets import MASKED
from studio.session import Session
from tests.reading.oven import KEY, digest, image, oven, png
from tests.stores.transcripts.sessions import Book, call


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    found = Session.open(str(oven().write(tmp_path / "home")))
    yield found
    found.close()


def at(session: Session, ref: str) -> Address:
    return session.resolve(ref)


def branch(session: Session, ref: str = "head") -> reading.Branch:
    found = session.branch(at(session, ref))
    assert found is not None
    return found


def opened(book: Book, folder: Path) -> Session:
    return Session.open(str(book.write(folder / "home")))


def test_a_branch_reads_as_prompts_answers_and_calls_with_their_results(session: Session) -> None:
    told = branch(session)
    kinds = [[item.kind for item in beat.items] for beat in told.beats(0, len(told))]
    expected = [
        ["prompt"], ["answer"], ["answer"], ["answer", "retry"], ["answer"], ["compacted", "summary"], ["prompt"], ["prompt"],
        ["answer"], ["answer"], ["answer"],
    ]  # fmt: skip
    assert kinds == expected
    calls = [[(one.name, one.state) for item in beat.items for one in item.calls] for beat in told.beats(1, 4)]
    assert calls == [
        [("Read", "answered")],
        [("Edit", "answered"), ("Edit", "failed")],
        [("TodoWrite", "answered"), ("Bash", "failed")],
    ]
    last = told.beat(len(told) - 1).items[0].calls[0]
    assert (last.state, last.result) == ("open", ())
    assert told.beat(4).items[0].failed


def test_an_edit_has_the_stored_patch_and_a_refused_one_what_it_asked_for(session: Session) -> None:
    made, refused = branch(session).beat(2).items[0].calls
    assert [(one.state, one.plus, one.minus) for one in made.touches] == [("edited", 2, 1)]
    words = wording.call_words(made, cwd="/home/mara/bakery")
    assert [(line.kind, line.old, line.new) for line in words.patches[0].patch.lines if line.kind != "hunk"] == [
        ("remove", 4, None), ("add", None, 4), ("add", None, 5),
    ]  # fmt: skip
    assert (words.about, words.count, words.patches[0].words) == ("test_oven.py", "+2 −1", "edited +2 −1")
    asked = wording.call_words(refused, cwd="/home/mara/bakery")
    assert (asked.state, asked.patches[0].words) == ("failed", "not applied")
    assert [(line.kind, line.text) for line in asked.patches[0].patch.lines] == [
        ("remove", "return t"),
        ("add", "return round(t)"),
    ]


def test_an_edit_without_a_stored_patch_is_compared_line_by_line(session: Session) -> None:
    again = branch(session).beat(9).items[0].calls[0]
    lines = wording.call_words(again).patches[0].patch.lines
    assert [(line.kind, line.text) for line in lines] == [("same", "a"), ("remove", "b"), ("add", "B"), ("same", "c")]


def test_files_say_what_happened_to_each_over_time(session: Session) -> None:
    found = branch(session).files()
    told = {Path(path).name: [(session.number(one.address), one.touch.state) for one in events] for path, events in found.items()}
    assert told == {"test_oven.py": [("1", "read"), ("2", "edited"), ("11", "edited")], "oven.py": [("2", "failed")]}
    assert next(iter(branch(session, "7").files())).endswith("oven.png")
    assert branch(session, "0").files() == {}


def test_the_list_says_what_changed_at_which_turn(session: Session) -> None:
    first, second = branch(session).todos()
    assert [(one.what, one.text) for one in first.changes] == [
        ("done", "Fix the test"),
        ("started", "Run the suite"),
        ("added", "Tell"),
    ]
    assert session.number(second.address) == "10"
    assert [(one.what, one.text) for one in second.changes] == [("done", "Run the suite"), ("added", "Rest"), ("removed", "Tell")]
    assert [(one.text, one.status) for one in second.todos] == [
        ("Fix the test", "completed"), ("Run the suite", "completed"), ("Rest", "pending"),
    ]  # fmt: skip


def test_tasks_are_told_from_their_deltas(tmp_path: Path) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer(call("c1", "TaskCreate", subject="Knead"))
    book.result("c1", toolUseResult={"task": {"id": "1", "subject": "Knead"}})
    book.answer(call("c2", "TaskUpdate", taskId="1", status="in_progress"))
    book.result("c2", toolUseResult={"success": True})
    book.answer(call("c3", "TaskUpdate", taskId="1", status="deleted"))
    book.result("c3", toolUseResult={"success": True})
    session = opened(book, tmp_path)
    assert [[(one.what, one.text) for one in step.changes] for step in branch(session).todos()] == [
        [("added", "Knead")], [("started", "Knead")], [("removed", "Knead")],
    ]  # fmt: skip
    session.close()


def test_the_strip_has_a_bar_for_each_turn_that_took_tokens_and_the_totals_of_the_branch(session: Session) -> None:
    found = reading.strip(branch(session, "3"))
    assert found is not None
    assert (len(found.bars), found.here, found.context) == (8, 2, 112)
    state = session.state(at(session, "3")).values["tokens"]
    total = found.total
    assert {
        "input": total.input,
        "output": total.output,
        "cache_read": total.cache_read,
        "cache_creation": total.cache_creation,
    } == state
    few = reading.strip(branch(session), 3)
    assert few is not None and len(few.bars) <= 3 and sum(bar.turns for bar in few.bars) == 8 and few.here == len(few.bars) - 1


def test_a_recorded_cost_is_the_one_of_the_state(tmp_path: Path) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer("Gone.", costUSD=0.25)
    book.answer("Again.", costUSD=0.5)
    session = opened(book, tmp_path)
    found = reading.strip(branch(session))
    assert found is not None and found.cost == session.state(at(session, "head")).values["cost_usd"] == 0.75
    session.close()


def test_a_window_holds_the_last_turns_and_decodes_no_other(tmp_path: Path) -> None:
    book = Book()
    for number in range(10_000):
        book.prompt(f"say {number}")
    session = opened(book, tmp_path)
    tree = session.tree(session.thread_ids()[0])
    decoded: list[str] = []
    folded = branch(session).folded
    decode, folded._decode = folded._decode, lambda turn: (decoded.append(turn.id), decode(turn))[1]  # type: ignore[method-assign,func-returns-value]
    found = reading.chat(session, tree, at(session, "head"))
    assert found is not None
    assert (found.start, found.stop, found.total, len(decoded)) == (10_000 - reading.TURNS, 10_000, 10_000, reading.TURNS)
    earlier = reading.chat(session, tree, at(session, "head"), before=found.start)
    assert earlier is not None
    assert [piece.text for piece in earlier.beats[-1].items[0].pieces] == [f"say {found.start - 1}"]
    session.close()


def test_a_subagent_is_reached_from_its_call(tmp_path: Path) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer(call("sent", "Task", description="Find", prompt="Find it."))
    book.prompt("Find it.", None, isSidechain=True)
    book.answer("Found.", isSidechain=True)
    book.result("sent", "Found.", parent=book.records[1]["uuid"])
    session = opened(book, tmp_path)
    sent = branch(session).beat(1).items[0].calls[0]
    inner = session.branch(sent.tracks[0])
    assert inner is not None and [beat.items[0].kind for beat in inner.beats(0, 9)] == ["prompt"]
    session.close()


def test_a_report_of_an_agent_and_a_command_are_unwrapped(tmp_path: Path) -> None:
    book = Book()
    book.prompt("<command-name>/model</command-name><command-args>large</command-args>")
    book.prompt("<local-command-stdout>Set to large</local-command-stdout>")
    book.prompt("<local-command-caveat>Not for you.</local-command-caveat>", isMeta=True)
    book.prompt("<command-name>/x</command-name> and more")
    book.prompt("Go.")
    report = "<task-notification><task-id>t</task-id><summary>Agent done</summary><result>42</result></task-notification>"
    book.prompt(report)
    session = opened(book, tmp_path)
    items = [item for beat in branch(session).beats(0, 9) for item in beat.items]
    told = [(item.kind, item.name, wording.text_of(item.pieces)) for item in items]
    assert told == [
        ("command", "/model large", ""),
        ("command", "", "Set to large"),
        ("context", "context", "<local-command-caveat>Not for you.</local-command-caveat>"),
        ("context", "context", "<command-name>/x</command-name> and more"),
        ("prompt", "", "Go."),
        ("result", "Agent done", "42"),
    ]
    session.close()


def test_rows_say_the_first_words_and_what_went_wrong(session: Session) -> None:
    def said(ref: str) -> wording.RowWords:
        found = session.brief(at(session, ref))
        assert found is not None
        return wording.row_words(found)

    assert said("0").words == "Fix the flaky test in test_oven.py."
    assert (said("2").words, said("2").badge, said("2").count) == ("test_oven.py", "1 failed", "+2 −1")
    assert (said("4").badge, said("4").who) == ("service error", "assistant")
    assert (said("8").words.count(MASKED), KEY in said("8").words) == (1, False)


def test_a_picture_is_found_by_its_hash_and_nothing_else_is_one(session: Session, tmp_path: Path) -> None:
    assert branch(session, "7").picture(digest(png())) == ("image/png", png())
    assert branch(session, "6").picture(digest(png())) is None
    page = b"<html><script>alert(1)</script>" + b"x" * 800
    book = Book()
    book.prompt("Look.")
    book._add("user", message={"role": "user", "content": [image(page), {"type": "text", "text": "this"}]})
    other = opened(book, tmp_path / "other")
    assert branch(other).picture(digest(page)) is None
    other.close()


def test_a_database_with_messages_is_read_by_the_same_window(tmp_path: Path) -> None:
    from studio.assets import sample_folder

    with_messages = Session.open(str(sample_folder() / "support_agent.sqlite"))
    tree = with_messages.tree("refund-4711")
    assert tree.head is not None
    found = reading.chat(with_messages, tree, tree.head)
    assert found is not None and found.unit == "message"
    calls = [one for beat in found.beats for item in beat.items for one in item.calls]
    assert calls and all(one.state == "answered" and one.result for one in calls)
    numbers = [tree.number(beat.address) for beat in found.beats]
    assert len(set(numbers)) == len(numbers) > 3
    with_messages.close()


def test_a_codex_patch_touches_each_file_that_it_names(tmp_path: Path) -> None:
    from tests.stores.transcripts.test_formats import baker, write

    session = Session.open(str(write(tmp_path / "rollout-1.jsonl", *baker().lines)))
    patched = branch(session).beat(2).items[0].calls[0]
    assert [(one.path, one.state, one.plus, one.minus) for one in patched.touches] == [
        ("bread.md", "edited", 1, 1), ("note.md", "created", 1, 0),
    ]  # fmt: skip
    assert wording.call_words(patched).about == "bread.md, note.md"
    assert json.dumps([one.what for one in branch(session).todos()[0].changes]) == '["started"]'
    session.close()
