"""A secret that a name announces inside a text is masked wherever the text is shown; what only sounds like one stays readable."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph

from studio.render.secrets import has_secret, mask_text
from studio.session import Session
from studio.web.links import Place
from tests.cli.conftest import Studio
from tests.cli.conftest import studio as studio
from tests.factories import config, saver_at
from tests.web.conftest import client_of

SECRET = "hunter2"
ARGUMENTS = json.dumps({"password": SECRET, "api_key": SECRET, "city": "Graz"})


class Held(TypedDict, total=False):
    messages: list[Any]
    said: Any


TEXTS = [
    ARGUMENTS,
    json.dumps({"outer": ARGUMENTS}),
    str({"token": SECRET, "n": 1}),
    f'{{"credentials": {{"main": ["{SECRET}"]}}, "city": "Graz"}}',
    f"OPENAI_API_KEY={SECRET}",
    f'export DB_PASSWORD="{SECRET} and more"; ls',
    f"password: {SECRET}",
    f"API key: {SECRET}",
    f"Authorization: Bearer {SECRET}",
    f"Cookie: a=1; sid={SECRET}",
    f"Traceback\n  login(user='bob', password='{SECRET}')\nValueError: token={SECRET}, code=3",
    f"https://x.example/a?api_key={SECRET}&q=1&token={SECRET}&x=2#access_token={SECRET}",
    f"https://store.example/blob?sv=1&sig={SECRET}%2Fa%3D&se=1",
    f'["X-Api-Key", "{SECRET}"]',
    f"[('authorization', '{SECRET}'), ('accept', 'json')]",
    f'{{"name": "X-Api-Key", "value": "{SECRET}"}}',
]


@pytest.mark.parametrize("text", TEXTS)
def test_a_value_under_a_secret_name_inside_a_text_is_masked_in_it(text: str) -> None:
    assert has_secret(text)
    assert SECRET not in mask_text(text)
    assert mask_text(mask_text(text)) == mask_text(text)


def test_the_rest_of_a_text_stays_readable() -> None:
    assert mask_text(ARGUMENTS) == '{"password": "[masked]", "api_key": "[masked]", "city": "Graz"}'
    assert mask_text(f"login(user=bob, password={SECRET}, n=1)") == "login(user=bob, password=[masked], n=1)"
    assert mask_text(f"https://x.example/a?token={SECRET}&q=1") == "https://x.example/a?token=[masked]&q=1"
    assert mask_text(f'A=1 DB_PASSWORD="{SECRET}" B=2') == 'A=1 DB_PASSWORD="[masked]" B=2'


@pytest.mark.parametrize(
    "text",
    [
        "max_tokens: 5", "max_tokens=512",
        '{"token_usage": {"total_tokens": 12, "prompt_tokens": 3}}', '{"tokens": {"input": 5}}',
        "Your password reset: click here", "password: it must be long", "key: value",
        "token: Optional[str] = None",
        "def login(password: str, token=None): ...", 'api_key=os.environ["X"]', "api_key=get_key()", "password=${DB_PASSWORD}",
        '{"Authorization": f"Bearer {token}"}', "authorization: required", "tokenizer: cl100k", 'tokenizer="gpt2"',
        '{"required": ["password", "email", "x"]}', 'password = ""', "token == other", "std::token::foo", '{"password": null}',
        "Tokens: 1,234 in / 500 out", "primary_key=7", "The secret: be kind to others", "monkey: banana", "author: bob",
        "https://x.example/?page=2&sort=asc", "api_key=api_key, base=1", "Forgot your password? Reset it: https://x.example/reset",
    ],
)  # fmt: skip
def test_a_text_that_only_speaks_of_secrets_is_readable(text: str) -> None:
    assert mask_text(text) == text
    assert not has_secret(text)


@pytest.mark.parametrize(
    "filler",
    [
        "password", "password=", 'password":"', "password\\\\\\\"", '"tokens":[', '"password":{', "token: ", "token ",
        "key=${", "secret='\\", "a_key_", "Cookie: ", "?sig=", "[\"token\",", "token=,", "\\" * 9, "x=y&", "Bearer: ",
    ],
)  # fmt: skip
def test_a_hostile_text_takes_linear_time(filler: str) -> None:
    text = filler * (1_000_000 // len(filler))
    start = time.process_time()
    mask_text(text)
    has_secret(text)
    assert time.process_time() - start < 15


@pytest.fixture
def held(tmp_path: Path) -> Path:
    """Every text in a message, in a tool call as a provider hands it over, in a channel, and in an error."""
    call = {"id": "c", "type": "function", "function": {"name": "login", "arguments": ARGUMENTS}}
    messages = [
        *(HumanMessage(text, id=f"h{at}") for at, text in enumerate(TEXTS)),
        AIMessage("", id="m", additional_kwargs={"tool_calls": [call]}),
    ]

    def fails(state: Held) -> Held:
        raise ValueError(TEXTS[5] + TEXTS[11])

    builder: StateGraph[Any] = StateGraph(Held)
    builder.add_node("put", lambda state: {"said": TEXTS})
    builder.add_node("fails", fails)
    builder.add_edge(START, "put")
    builder.add_edge("put", "fails")
    path = tmp_path / "held.sqlite"
    with saver_at(path) as saver, pytest.raises(ValueError):
        builder.compile(checkpointer=saver).invoke({"messages": messages}, config("t"))
    return path


def test_the_command_line_shows_none_of_them(held: Path, studio: Studio) -> None:
    calls = [["ls"], ["tree"], ["show", "head"], ["show", "head", "--raw"], ["diff", "head"], ["export"], ["search", "Graz"]]
    calls += [["show", "head", "--path", path] for path in ("/said/0", "/messages", "/messages/id:h0/content")]
    for command, *rest in calls:
        for form in ([], ["--json"]):
            answer = studio(command, held, *rest, *form)
            assert answer.code == 0, answer.err
            assert SECRET not in answer.out + answer.err, (command, rest, form)
    assert SECRET in studio("show", held, "head", "--path", "/said/0", "--show-secrets").out


def test_the_page_shows_none_of_them(held: Path) -> None:
    session = Session.open(str(held))
    address = session.tree("t").rows()[-1].checkpoint.address
    session.close()
    with client_of(held) as client:
        place = Place(str(client.app.book.first())).at_address(address)  # type: ignore[attr-defined]
        urls = [place.to(tab=tab).url() for tab in ("changes", "conversation", "state", "tasks", "raw")]
        for path in ("/said", "/said/0", "/messages/id:m"):
            inner = place.to(path=path)
            urls += [inner.url(part) for part in ("edit", "copy/copy_value", "node")]
        for url in urls:
            assert SECRET not in client.get(url).text, url


def test_a_value_that_is_no_json_is_not_repeated(held: Path, studio: Studio) -> None:
    for given in (f"/said={SECRET}", SECRET):
        answer = studio("fork", held, "head", "--set", given)
        assert answer.code == 2
        assert SECRET not in answer.out + answer.err
