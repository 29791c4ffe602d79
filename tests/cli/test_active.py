"""Which branch of a session is the active one: a rule says it in words, and a person may choose another."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from studio.session import Session
from studio.web import create_app
from tests.cli.conftest import Studio
from tests.stores.transcripts.sessions import Book, call
from tests.tui.driving import SAMPLES, driven

GROWN = "a0000099-0000-4000-8000-000000000099"


@pytest.fixture
def rewound(tmp_path: Path) -> tuple[Path, list[str]]:
    """One prompt, answered; asked again in another way from the same place, and that went on with a subagent."""
    book = Book()
    first = book.prompt("Bake bread.")
    old = [book.answer("With rye."), book.prompt("More salt."), book.answer("Salted.")]
    new = [book.prompt("Bake cake.", parent=first), book.answer(call("call_help", "Task", prompt="Count."))]
    new += [book.result("call_help"), book.answer("Baked.")]
    path = book.write(tmp_path / "home")
    helper = Book(book.session, "c")
    helper.prompt("Count.", isSidechain=True)
    helper.answer("Three.", isSidechain=True)
    helper.write(path.with_suffix("") / "subagents", "agent-h1")
    return path, [old[0], old[2], new[3]]


def head(studio: Studio, path: Path, *more: object) -> tuple[str, str]:
    (thread,) = studio("ls", path, "--json", *more).doc["threads"]
    return thread["head"], thread["active"]


def test_the_branch_through_any_turn_is_taken_up_to_its_newest_turn(rewound: tuple[Path, list[str]], studio: Studio) -> None:
    path, (begun, ended, other) = rewound
    assert head(studio, path) == (other, "the newest time")
    for ref in (begun, ended, "2"):
        assert head(studio, path, "--active", ref) == (ended, "chosen with --active")
    assert studio("show", path, "head", "--json", "--active", begun).doc["checkpoint"]["checkpoint_id"] == ended
    assert studio("diff", path, "head", "--active", begun).out.startswith("#2 → #3")
    assert "(active: chosen with --active)" in studio("ls", path, "--active", begun).out
    assert head(studio, path) == (other, "the newest time"), "what was chosen for one call is kept nowhere"


def test_it_stays_chosen_while_the_session_grows_and_shown_commands_repeat_it(
    rewound: tuple[Path, list[str]],
) -> None:
    path, (begun, ended, _) = rewound
    with closing(Session.open(str(path))) as session:
        at = session.resolve(begun)
        session.take_branch(at)
        assert session.view_options[-2:] == ["--active", begun]
        last = json.loads(path.read_text().splitlines()[-1])
        grown = last | {
            "uuid": "a0000099-0000-4000-8000-000000000099",
            "parentUuid": ended,
            "timestamp": "2026-05-04T09:00:00.000Z",
        }
        grown["message"] = grown["message"] | {"id": "msg_grown"}
        with path.open("a") as file:
            file.write(json.dumps(grown) + "\n")
        assert session.refresh()
        assert session.tree(at.thread_id).head == session.resolve(GROWN)


def test_what_is_no_branch_of_a_session_is_refused(rewound: tuple[Path, list[str]], studio: Studio) -> None:
    path, _ = rewound
    helper = studio("ls", path, "--active", "c0000001-0000-4000-8000-000000000001")
    assert helper.code == 2 and "a turn of a subagent" in helper.err
    unknown = studio("ls", path, "--active", "nothing-like-it")
    assert unknown.code == 3 and "nothing-like-it" in unknown.err
    database = studio("ls", SAMPLES / "support_agent.sqlite", "--active", "1", "--thread", "refund-4711")
    assert database.code == 2 and "only an agent's session" in database.err


def test_the_browser_opens_on_the_branch_that_was_chosen_and_the_list_says_the_rule(rewound: tuple[Path, list[str]]) -> None:
    path, (begun, _, _) = rewound
    with closing(Session.open(str(path))) as session:
        session.take_branch(session.resolve(begun))
        with TestClient(create_app([session], token=""), base_url="http://127.0.0.1") as page:
            assert "2 branches (active: chosen with --active)" in page.get(f"/f/{path.name}/threads").text
            opened = page.get("/", follow_redirects=True).text.partition('id="chat"')[2]
            assert "Salted." in opened and "Baked." not in opened


async def test_the_terminal_opens_on_the_branch_that_was_chosen(rewound: tuple[Path, list[str]]) -> None:
    path, (begun, _, _) = rewound
    with closing(Session.open(str(path))) as session:
        session.take_branch(session.resolve(begun))
        async with driven(session) as drive:
            await drive.loaded()
            assert "Salted." in drive.text("#conversation") and "Baked." not in drive.text("#conversation")
