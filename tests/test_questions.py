"""How an interrupt is titled: a sentence, whatever a program handed over."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, TypedDict

import pytest
from bs4 import BeautifulSoup
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt

from studio import tagged
from studio.render import questions, secrets
from tests.factories import config, saver_at
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

SECRET = "sk-ant|why not"
CALL = {"name": "send_email", "args": {"to": "mara"}, "id": "call_1"}
MAY_IT = 'May it call send_email(to="mara")?'
ASKED: list[tuple[Any, str, bool]] = [
    ("Send it?", "Send it?", True),
    (AIMessage("Shall I refund 49.90 EUR?"), "Shall I refund 49.90 EUR?", True),
    ({"question": AIMessage("Shall I?")}, "Shall I?", True),
    ([{"text": "One question"}], "One question", True),
    (AIMessage("", tool_calls=[CALL]), MAY_IT, False),
    ({"action_requests": [{**CALL, "description": "Tool execution requires approval"}]}, MAY_IT, False),
    ([{"action_request": {"action": "send_email", "args": {"to": "mara"}}, "description": "…"}], MAY_IT, False),
    ({"n": 3, "wording": "Is this fact right? "}, "Is this fact right? ", True),
    ({"password": "why not 1234?"}, "What do you say to password ", False),
    ({"ask": "Name the day", "choices": ["yes", "no"]}, "Name the day", True),
    ({"amount": 49.9, "order": "4711"}, 'What do you say to amount 49.9, order "4711"?', False),
    ({"amount": 1, "api_key": "sk-ant-abcdefghijklmnop1234567890"}, "What do you say to amount 1, api_key ", False),
    (None, "It waits for an answer and says no more.", False),
    (42, "What do you say to 42?", False),
]


def paused(path: Path, value: Any) -> Path:
    """A file whose one thread waits at `interrupt(value)`."""

    class Empty(TypedDict, total=False):
        answer: Any

    builder: StateGraph[Any] = StateGraph(Empty)
    builder.add_node("ask", lambda state: {"answer": interrupt(value)})
    builder.add_edge(START, "ask")
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({}, config("asks"))
    return path


@pytest.mark.parametrize(("value", "words", "said"), ASKED)
async def test_an_interrupt_is_titled_by_a_sentence_in_both_uis(tmp_path: Path, value: Any, words: str, said: bool) -> None:
    path = paused(tmp_path / "asks.sqlite", value)
    with client_of(path) as client:
        html = BeautifulSoup(client.get("/f/asks.sqlite").text, "html.parser")
        title = html.select_one("#answer .question").text  # type: ignore[union-attr]
        assert words in title and title.startswith("“") == said and not re.search(SECRET, html.text)
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.loaded()
            shown = "\n".join(drive.lines("#changes"))
            assert words in shown and not re.search(SECRET, shown)


@pytest.mark.parametrize(("value", "words", "said"), ASKED)
def test_the_end_of_a_run_titles_a_question_as_its_checkpoint_does(tmp_path: Path, value: Any, words: str, said: bool) -> None:
    with opened(paused(tmp_path / "asks.sqlite", value), tmp_path / "s.sqlite") as session:
        state = session.state(session.resolve("head"))
    stored = state.tasks[0].interrupts[0].value
    event = json.loads(tagged.dumps(tagged.to_tagged(stored, mask=secrets.reason)))
    again = questions.asked(questions.handed_over(event))
    assert words in again.words
    assert (again.said, "sk-ant" in again.words) == (said, False)
