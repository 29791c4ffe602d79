"""What stands under the name of a secret is masked as a whole, wherever it stands and whoever shows it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, StateGraph
from langgraph.types import Send, interrupt

from studio.model import Address
from studio.render import masking, secrets
from studio.requests import ForkRequest, Patch
from studio.session import Session
from studio.tagged import children, get, join_path, split_path
from studio.tui.lines import Line
from studio.tui.panes import changes, conversation, raw, tasks
from studio.tui.panes.state import StatePane
from studio.tui.point import load
from studio.tui.why import explain
from studio.value import equal
from studio.web.links import Place
from studio.web.views import forks
from tests.cli.conftest import Studio
from tests.cli.conftest import studio as studio
from tests.factories import config, saver_at
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

SECRET = "hunter2-correct-horse"


@dataclass
class Login:
    user: str
    password: Any


class Vault(TypedDict, total=False):
    messages: list[Any]
    api_key: Any
    credentials: Any
    settings: Any
    seen: str


STORED: dict[str, dict[str, Any]] = {
    "a text": {"api_key": SECRET},
    "a list": {"credentials": ["first", SECRET]},
    "a map": {"credentials": {"main": {"of": SECRET}}},
    "a map with numbers for keys": {"credentials": {1: SECRET, 2: "x"}},
    "an entry of a map with other keys": {"settings": {7: "seven", "api_key": SECRET, "token": [SECRET]}},
    "a field of an object": {"settings": Login("ada", [SECRET])},
    "a message's own arguments": {"messages": [AIMessage("done", id="m1", additional_kwargs={"api_key": {"now": SECRET}})]},
    "what came with a message": {"messages": [AIMessage("done", id="m1", response_metadata={"token": [SECRET]})]},
    "a tool call": {"messages": [AIMessage("", id="m1", tool_calls=[{"name": "go", "id": "c", "args": {"password": [SECRET]}}])]},
    "lists in lists": {"settings": [[{"name": "x", "accessToken": {"deep": [{"er": SECRET}]}}]]},
    "messages": {"credentials": [HumanMessage(SECRET, id="m1"), {"role": "user", "content": SECRET}]},
}  # fmt: skip


def make(path: Path, stored: dict[str, Any], later: dict[str, Any] | None = None) -> Path:
    """put -> Send ask, which interrupts: the secret is in values, writes, an argument, a question and the metadata."""
    builder: StateGraph[Any] = StateGraph(Vault)
    builder.add_node("put", lambda state: {**stored, "seen": "put"})
    builder.add_node("more", lambda state: later or {"seen": "more"})
    builder.add_node("ask", lambda arg: {"seen": interrupt({"question": "go on?", "password": [SECRET, arg]})})
    builder.add_edge(START, "put")
    builder.add_edge("put", "more")
    builder.add_conditional_edges("more", lambda state: [Send("ask", {"token": {"was": SECRET}})], ["ask"])
    with saver_at(path) as saver:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"seen": "begin"}, {**config("t"), "metadata": {"client_secret": {"a": [SECRET]}, "auth_token": SECRET}})
    return path


@pytest.fixture(params=list(STORED))
def vault(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    stored = STORED[request.param]
    name, value = next(iter(stored.items()))
    changed = [*value, "more"] if isinstance(value, list) else {"was": value} if name == "settings" else "another " + SECRET
    return make(tmp_path / "vault.sqlite", stored, {name: changed})


def places(path: Path) -> Iterator[tuple[Address, list[str]]]:
    """Every checkpoint, the two that hold the secret with every path in them."""
    session = Session.open(str(path))
    for row in session.tree("t").rows():
        values = dict(session.state(row.checkpoint.address).values)
        found: list[str] = []
        stack = [join_path([name]) for name in values if name != "seen"]
        while stack:
            here = stack.pop()
            found.append(here)
            stack += [join_path([*split_path(here), step]) for step, _ in children(get(values, here))]
        yield row.checkpoint.address, found
    session.close()


def test_the_command_line_shows_none(vault: Path, studio: Studio) -> None:
    calls: list[list[str]] = [["ls"], ["tree"], ["export"], ["search", "hunter2"], ["search", "horse"]]
    for address, paths in places(vault):
        here = address.checkpoint_id
        calls += [["show", here], ["show", here, "--raw"], ["diff", here]]
        calls += [["show", here, "--path", path] for path in paths]
    for command, *rest in calls:
        for form in ([], ["--json"]):
            answer = studio(command, vault, *rest, *form)
            assert answer.code == 0, answer.err
            assert "hunter2" not in answer.out.replace('"text": "hunter2"', ""), (command, rest, form)
    assert "hunter2" in studio("export", vault, "--show-secrets").out


def test_the_page_shows_none(vault: Path) -> None:
    with client_of(vault) as client:
        slug = str(client.app.book.first())  # type: ignore[attr-defined]
        urls = [f"/f/{slug}/threads", f"/f/{slug}/search?q=horse"]
        for address, paths in places(vault):
            place = Place(slug).at_address(address)
            urls += [place.to(tab=tab).url() for tab in ("changes", "conversation", "state", "tasks", "raw")]
            for path in paths:
                inner = place.to(path=path)
                urls += [inner.url(part) for part in ("edit", "copy/copy_value", "node")]
                urls += [inner.to(tab="state").url()]
        for url in urls:
            assert SECRET not in client.get(url).text, url


def texts(lines: tuple[Line, ...]) -> Iterator[str]:
    for line in lines:
        yield line.content.plain
        yield from texts(line.folded)


def test_the_terminal_shows_and_copies_none(vault: Path, tmp_path: Path) -> None:
    with opened(vault, tmp_path / "s.sqlite") as session:
        tree = session.tree("t")
        for address, paths in places(vault):
            point = load(session, tree, address)
            panes = [
                changes.build(point, tree),
                conversation.build(point, tree, session),
                tasks.build(point, tree),
                raw.build(point),
                *(explain(session, tree, point, path).lines for path in paths),
            ]
            for pane in panes:
                assert "hunter2" not in "\n".join(texts(pane))
            for path in paths:
                assert "hunter2" not in explain(session, tree, point, path).title
                assert "hunter2" not in masking.copied(path, get(dict(point.state.values), path))


async def test_the_state_pane_its_editor_and_its_clipboard_show_none(tmp_path: Path) -> None:
    path = make(tmp_path / "vault.sqlite", STORED["a map"])
    with opened(path, tmp_path / "s.sqlite") as session:
        async with driven(session) as drive:
            await drive.until(lambda: drive.main.point)
            await drive.press("3", "right")
            await drive.loaded()
            for wanted in ("/credentials", "/credentials/main/of"):
                drive.main.query_one("#state", StatePane).select_path(wanted)
                await drive.until(lambda: drive.main.selected_path == "/credentials")
                assert "hunter2" not in drive.text()
                await drive.press("y")
                assert "$masked" in drive.app.clipboard
                assert "hunter2" not in drive.app.clipboard
            await drive.press("enter")
            await drive.until(lambda: drive.app.screen.query("#editor"), "the editor")
            assert drive.app.screen.query_one("#editor").text.startswith('{\n  "$masked"')  # type: ignore[attr-defined]


def test_a_fork_of_what_was_masked_keeps_the_stored_bytes(vault: Path, tmp_path: Path) -> None:
    """The document of a channel, as every editor gives it, is what is stored; a change beside a mask leaves the masked part."""
    with opened(vault, tmp_path / "s.sqlite") as session:
        address = next(row.checkpoint.address for row in session.tree("t").rows() if row.checkpoint.step == 1)
        stored = session.state(address).values
        docs = {join_path([name]): masking.document(value, name) for name, value in stored.items()}
        assert "$masked" in str(docs)
        result = session.fork(ForkRequest(address, patch=Patch({**docs, "/seen": "by hand"})))
        forked = session.state(result.address).values
        assert forked["seen"] == "by hand"
        assert all(equal(forked[name], value) for name, value in stored.items() if name != "seen")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/credentials/main/of", "credentials"),
        ("/settings/0/api_key/2", "api_key"),
        ("/messages/id:m1/content", "content"),
        ("/notes/3", "notes"),
        ("", None),
    ],
)
def test_a_place_is_named_by_the_first_secret_name_on_the_way(path: str, name: str | None) -> None:
    assert masking.name_in(path) == name


@pytest.mark.parametrize("value", [None, True, "", [], {}, 31, "31", [101, 2023], {"input": 12, "output": 40}])
def test_counts_of_tokens_and_empty_values_stay_readable(value: Any) -> None:
    assert secrets.reason("tokens", value) is None


def test_a_private_key_is_masked_with_its_body() -> None:
    assert secrets.mask_text('if "-----BEGIN PRIVATE KEY-----" in text: ...') == 'if "-----BEGIN PRIVATE KEY-----" in text: ...'
    text = "before -----BEGIN RSA PRIVATE KEY-----\nMIIabc\nxyz=\n-----END RSA PRIVATE KEY----- after"
    assert secrets.mask_text(text) == "before [masked] after"
    assert "MIIabc" not in secrets.mask_text(text[:50])


def test_a_secret_in_a_question_is_masked_with_all_that_lies_below_its_name() -> None:
    asked = {"question": "Send it?", "api_key": {"value": "hunter2"}, "login": {"password": ["hunter2"]}, "to": {"city": "Graz"}}
    row = forks.answer_row("id", "ask", asked)
    assert "hunter2" not in str(row) and ("to.city", '"Graz"') in row.details


@pytest.mark.parametrize(
    "name",
    [
        "api_key", "apiKey", "apiKeyV2", "APIKey", "X-API-Key", "apikey", "api_keys", "OPENAI_KEY", "openaiKey", "OpenAIKey",
        "ACME_KEY", "private_key_pem", "secret_key_base", "SECRET_KEY_BASE", "password_hash", "hashedPassword", "password2",
        "dbPassword", "passWord", "DB_PASS", "client-secret", "client_secret_v2", "Proxy-Authorization", "Set-Cookie",
        "credentials.json", "accessToken", "token_hash", "aws secret access key",
    ],
)  # fmt: skip
def test_a_name_is_a_secrets_by_its_words(name: str) -> None:
    assert secrets.reason(name, SECRET) == secrets.BY_NAME


@pytest.mark.parametrize(
    "name",
    [
        "key", "keys", "monkey", "keyboard", "primary_key", "PRIMARY_KEY", "key_points", "author", "authorized_by", "public_key",
        "max_tokens", "maxTokens", "token_count", "tokenizer", "passenger", "first_pass", "secretary", "cookie_policy",
        "password_reset", "api_keyboard", "happy_monkey", "cache_key", "KEY", "new", "base", "value",
    ],
)  # fmt: skip
def test_a_name_that_only_sounds_like_a_secret_is_readable(name: str) -> None:
    assert secrets.reason(name, SECRET) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("redis://:hunter2secret@host:6379/0", "[masked]host:6379/0"),
        ("amqp://user:pa:ss@h", "[masked]h"),
        ("postgres://u:p@ss@h/db?mail=a@b", "[masked]h/db?mail=a@b"),
        ("postgres://u:p/ss@h/db", "[masked]h/db"),
        ("DB_postgres://u:p@h", "DB_postgres[masked]h"),
        ("Authorization: Basic YWRhOmh1bnRlcg==", "Authorization: [masked]"),
        ('{"authorization": "Basic YWRhOmh1bnRlcg"}', '{"authorization": "[masked]"}'),
        ("AUTHORIZATION=token abcdefgh", "[masked]"),
    ],
)
def test_credentials_in_a_text_are_masked_and_no_part_is_left(text: str, shown: str) -> None:
    assert secrets.has_secret(text) and secrets.has_secret("word " * 30_000 + text)
    assert secrets.mask_text(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:8000/users/@me", "http://[::1]:8000/a@b", "https://example.com/a:b@c", "redis://user:***@host",
        "Basic information about Python", '{"u":"http://localhost:80","mail":"a@b"}', "authorization: required",
    ],
)  # fmt: skip
def test_a_text_without_credentials_is_readable(text: str) -> None:
    assert secrets.mask_text(text) == text
    assert not secrets.has_secret(text)


@pytest.mark.parametrize("filler", ["x ", "-eyJaaaaaaaa", "://:x", "a.b.", "sk-a- ", "Basic ", "-----BEGIN A A "])
def test_a_secret_in_the_middle_of_a_huge_text_is_found_in_linear_time(filler: str) -> None:
    half = filler * (1_500_000 // len(filler))
    start = time.perf_counter()
    assert secrets.has_secret(f"{half} sk-ant-api03-abcdefghijklmnop {half}")
    assert not secrets.has_secret(half + " .eyJ :// " + half)
    assert time.perf_counter() - start < 20


@pytest.mark.parametrize("filler", ["-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\na-b ", "-----BEGIN A "])
def test_beginnings_of_private_keys_without_end_take_linear_time(filler: str) -> None:
    text = filler * (4_000_000 // len(filler))
    start = time.process_time()
    secrets.mask_text(text)
    assert time.process_time() - start < 10


@given(st.text("abcKEYkeytokenTOKENpass_- 1.é", max_size=24))
def test_a_name_without_any_stem_of_a_secret_name_is_none(name: str) -> None:
    end = name[-secrets._NAME_LIMIT :]
    assert secrets.is_secret_name(name) == secrets._named(end)
