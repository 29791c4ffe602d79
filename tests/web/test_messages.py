"""The message editor of the page: a form that works without scripts, says what is wrong, and forks exactly what is asked."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bs4 import BeautifulSoup
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from starlette.testclient import TestClient

from studio.session import Session
from tests.editing import delta_file, edit_file
from tests.factories import config, saver_at
from tests.test_toolcalls import stored
from tests.web.conftest import OURS, client_of
from tests.web.test_browser import ARGUMENTS, CHROMIUM, REQUIRED, browser, served, visit  # noqa: F401 - a fixture


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "data"))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Editing]:
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:
        yield Editing(client, "/f/edit.sqlite/messages?thread=t&at=2&tab=conversation")


class Editing:
    """The form as a browser without scripts sends it: every field that stands in it, and the button that is pressed."""

    def __init__(self, client: TestClient, url: str) -> None:
        self.client = client
        self.status = 0
        self.take(client.get(url))

    def take(self, answer: Any) -> None:
        self.status, self.text, self.url = answer.status_code, answer.text, str(answer.url)
        self.soup = BeautifulSoup(answer.text, "html.parser")

    def form(self) -> Any:
        found = self.soup.select_one("#fork-form")
        assert found is not None, self.text[:2000]
        return found

    def press(self, act: str, **typed: str | list[str]) -> None:
        form = self.form()
        sent: dict[str, Any] = {}
        for field in form.select("input[name], textarea[name], select[name]"):
            if field.get("type") == "checkbox" and not field.has_attr("checked"):
                continue
            value = field.text.removeprefix("\n") if field.name == "textarea" else field.get("value", "")
            sent.setdefault(field["name"], []).append(value)
        sent.update(typed)
        self.take(self.client.post(form["action"], data={**sent, "act": act}, headers=OURS))

    def message(self, at: int) -> str:
        found = self.soup.select_one(f"#message-{at}")
        assert found is not None
        return " ".join(found.text.split())

    @property
    def summary(self) -> str:
        found = self.soup.select_one(".messages-bar b")
        return found.text if found is not None else ""

    def forked(self) -> list[Any]:
        """Press Fork only, and give the messages as the real saver loads them."""
        self.press("fork")
        found = re.search(r"at=([0-9a-f-]{36})", self.url)
        assert found, (self.status, self.url, self.text[:3000])
        scratch = next(iter(self.client.app.book))[1].scratch_path  # type: ignore[attr-defined]
        with saver_at(scratch) as saver:
            held = saver.get_tuple(config("t", found[1]))
        assert held is not None
        return list(held.checkpoint["channel_values"]["messages"])


def test_texts_calls_and_results_are_edited_deleted_inserted_and_moved_in_one_form(page: Editing) -> None:
    page.press("chat:edit:2")
    page.press("chat:keep", chat_text="Let me look.", chat_args=['{"q": "pot"}', '{"sku": "k1", "exact": 49.0}'])
    assert "Let me look." in page.message(2) and 'find(q="pot")' in page.message(2)
    page.press("chat:delete:4")
    assert "has no answer (call_2)" in page.message(2)
    page.press("chat:insert:4:tool:0")
    page.press("chat:keep", chat_text="49.00")
    page.press("chat:up:1")
    assert page.summary == "1 changed, 1 deleted, 1 new, 1 moved"
    messages = page.forked()
    assert [message.id for message in messages[:4]] == ["hum-1", "sys-1", "ai-1", "tool-1"]
    assert messages[2].tool_calls[0]["args"] == {"q": "pot"} and messages[2].tool_calls[1]["args"]["exact"] == 49.0
    assert (messages[4].content, messages[4].tool_call_id, messages[4].name) == ("49.00", "call_2", "price_of")


def test_undo_redo_undo_all_and_back_to_the_stored_message(page: Editing) -> None:
    page.press("chat:delete:0")
    page.press("chat:edit:1")
    page.press("chat:keep", chat_text="Which pot?")
    assert page.summary == "1 changed, 1 deleted"
    page.press("chat:undo")
    assert page.summary == "1 deleted" and "Which kettle?" in page.message(1)
    page.press("chat:redo")
    page.press("chat:restore:1")
    assert page.summary == "1 deleted"
    page.press("chat:undo")
    assert "Which pot?" in page.message(1)
    page.press("chat:reset")
    assert page.summary == ""


def test_what_is_typed_is_kept_when_another_message_is_opened_and_left_when_asked(page: Editing) -> None:
    page.press("chat:edit:1")
    page.press("chat:edit:7", chat_text="Which pot?")
    assert "Which pot?" in page.message(1) and page.soup.select_one("#message-7 textarea") is not None
    page.press("chat:cancel", chat_text="dropped")
    assert "Done: a kettle" in page.message(7) and page.summary == "1 changed"


def test_arguments_that_are_no_json_are_refused_at_their_place_and_stay_as_typed(page: Editing) -> None:
    page.press("chat:edit:5")
    page.press("chat:keep", chat_args='{"sku": \n "k2" "n"}')
    assert "no valid JSON" in page.message(5) and "line 2" in page.message(5)
    assert page.soup.select_one("[name=chat_args]").text.strip() == '{"sku": \n "k2" "n"}'
    page.press("chat:up:7")
    assert "Correct the open message first" in page.text and page.summary == ""
    page.press("fork")
    assert page.status == 422
    page.press("chat:keep", chat_args='["k2"]')
    assert "The arguments of order must be a map." in page.message(5)
    page.press("chat:keep", chat_args='{"sku": "k2"}')
    assert page.forked()[5].content[2]["input"] == {"sku": "k2"}


def test_a_whole_message_is_edited_as_json_and_must_stay_one(page: Editing) -> None:
    page.press("chat:json:3")
    doc = page.soup.select_one("[name=chat_doc]").text
    page.press("chat:keep", chat_doc=doc.replace('"success"', '"error"'))
    assert page.summary == "1 changed"
    page.press("chat:json:4")
    page.press("chat:keep", chat_doc='{"a": 1}')
    assert "This is no message any more." in page.message(4)
    page.press("chat:cancel")
    assert page.forked()[3].status == "error"


def test_a_tool_result_can_be_inserted_only_where_a_call_waits(page: Editing) -> None:
    assert "no call waits for a result" in page.text and "result of" not in page.text
    page.press("chat:insert:1:tool:0")
    assert "No tool call before this place is without a result." in page.text and page.summary == ""
    page.press("chat:delete:3")
    gap = page.soup.select_one("#message-3 + .gap")
    assert gap is not None and 'result of find(q="kettle")' in gap.text


def test_the_preview_shows_the_edit_before_anything_is_kept(page: Editing) -> None:
    page.press("chat:edit:7")
    form = page.form()
    fields = {field["name"]: field.get("value", "") for field in form.select("input[type=hidden]")}
    sent = {**fields, "chat_text": "It is done."}
    answer = page.client.post(form["action"].replace("/fork?", "/preview?"), data=sent, headers=OURS)
    assert "/messages/7/content" in answer.text and "It is done." in re.sub(r"<[^>]+>", "", answer.text)


def test_messages_stored_as_deltas_are_edited_and_stored_whole(tmp_path: Path) -> None:
    delta_file(tmp_path / "delta.sqlite")
    with client_of(tmp_path / "delta.sqlite") as client:
        page = Editing(client, "/f/delta.sqlite/messages?thread=t&at=2")
        page.press("chat:edit:2")
        page.press("chat:keep", chat_text="Which pot?")
        assert [message.content for message in page.forked()][:3] == ["hello", "You sell kettles.", "Which pot?"]


HOSTILE = "<script>alert(1)</script>\x1b[31m\u202egnp.exe\x00 \r\n{{ 7*7 }}"


def test_hostile_texts_are_shown_inert_and_change_only_when_they_are_changed(tmp_path: Path) -> None:
    call = {"name": "<b>\x1b[2J", "args": {"x\u202e": HOSTILE}, "id": '"><i>'}
    path = stored(tmp_path / "h.sqlite", HumanMessage(HOSTILE, id="h"), AIMessage("", tool_calls=[call], id="a"))
    with client_of(path) as client:
        page = Editing(client, "/f/h.sqlite/messages?thread=t")
        for at in (0, 1):
            page.press(f"chat:edit:{at}")
            assert "<script>" not in page.text and "\x1b" not in page.text and "\u202e" not in page.text
            page.press("chat:keep")
            assert page.summary == ""
        page.press("chat:edit:0")
        page.press("chat:keep", chat_text='"a\\u0000b"')
        assert page.summary == "1 changed"
        assert page.forked()[0].content == "a\x00b"


def test_a_masked_part_of_a_message_stands_for_the_stored_one_and_never_reaches_the_page(tmp_path: Path) -> None:
    key = "sk-live-4242424242424242424242"
    call = {"name": "pay", "args": {"api_key": key, "amount": 5}, "id": "c"}
    path = stored(tmp_path / "m.sqlite", HumanMessage(f"my key is {key}", id="h"), AIMessage("", tool_calls=[call], id="a"))
    with client_of(path) as client:
        page = Editing(client, "/f/m.sqlite/messages?thread=t")
        page.press("chat:edit:1")
        assert key not in page.text
        args = page.soup.select_one("[name=chat_args]").text.replace("5", "6")
        page.press("chat:edit:0", chat_args=args)
        assert key not in page.text and page.summary == "1 changed"
        page.press("chat:keep", chat_text="your key is [masked]")
        assert "The text around a masked part cannot be changed." in page.message(0) and key not in page.text
        page.press("chat:cancel")
        page.press("chat:up:1")
        assert key not in page.text
        messages = page.forked()
        assert messages[0].tool_calls[0]["args"] == {"api_key": key, "amount": 6} and messages[1].content.endswith(key)


def test_thousands_of_messages_and_a_text_of_five_megabytes_make_a_small_page(tmp_path: Path) -> None:
    many = [HumanMessage(f"message {at}", id=f"m{at}") for at in range(3_000)]
    path = stored(tmp_path / "many.sqlite", *many, ToolMessage("x" * 5_000_000, tool_call_id="none", id="big"))
    with client_of(path) as client:
        page = Editing(client, "/f/many.sqlite/messages?thread=t")
        assert len(page.soup.select(".turn")) == 50 and len(page.text) < 400_000
        page.press("chat:edit:3000")
        assert "5,000,000 characters, too many to edit here" in page.message(3000) and len(page.text) < 400_000
        page.press("chat:page:0")
        assert page.summary == "" and "message 0" in page.message(0)
        page.press("chat:down:0")
        page.press("chat:edit:2999")
        page.press("chat:keep", chat_text="the end")
        assert page.summary == "1 changed, 1 moved"
        messages = page.forked()
        assert [message.content for message in messages[:2]] == ["message 1", "message 0"]
        assert messages[2999].content == "the end" and len(messages[3000].content) == 5_000_000


@pytest.mark.parametrize(
    "steps", ["{", "[]", '{"steps": [1], "done": 1}', '{"steps": [{"do": "move", "at": 99, "to": 0}], "done": 1}']
)
def test_steps_that_are_none_are_refused_in_one_line(page: Editing, steps: str) -> None:
    page.press("chat:keep", chat_steps=steps)
    assert page.status in (400, 422) and "cannot be read" in page.text or "does not fit" in page.text
    assert "Traceback" not in page.text


def test_a_channel_is_edited_as_messages_or_as_a_value_but_not_both(page: Editing) -> None:
    page.press("chat:delete:0")
    page.press("fork", path=["/messages/1/content"], kind=["text"], value=["other"])
    assert page.status == 422 and "messages is edited as messages and as a value." in page.text


def test_a_state_without_messages_says_so(tmp_path: Path) -> None:
    edit_file(tmp_path / "edit.sqlite")
    with client_of(tmp_path / "edit.sqlite") as client:
        answer = client.get("/f/edit.sqlite/messages?thread=t&at=1")
        assert answer.status_code == 422 or "No channel of this state holds messages." in answer.text


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM and not REQUIRED, reason="no Chromium on this machine")
def test_messages_are_edited_by_keys_alone_in_a_real_browser(browser: Any, tmp_path: Path) -> None:  # noqa: F811
    edit_file(tmp_path / "edit.sqlite")
    at = "/f/edit.sqlite?thread=t&at=2&tab=conversation"
    with served(tmp_path / "edit.sqlite", tmp_path, at) as url, visit(browser, url) as seen:
        page = seen.page
        page.keyboard.press("e")
        page.focus("[aria-label='Edit message 0']")
        page.keyboard.press("ArrowDown")
        page.wait_for_selector("[aria-label='Edit message 1']:focus")
        page.keyboard.press("Enter")
        page.wait_for_selector("#message-1 textarea:focus")
        page.keyboard.press("Control+A")
        page.keyboard.type("Which pot?")
        page.wait_for_selector(".promise dt:has-text('/messages/1/content')")
        page.focus("[aria-label='Move message 7 up']")
        page.keyboard.press("Enter")
        page.wait_for_selector("[aria-label='Move message 6 up']:focus")
        page.wait_for_selector(".messages-bar b:text-is('1 changed, 1 moved')")
        page.focus("button[value='chat:undo']")
        page.keyboard.press("Enter")
        page.wait_for_selector(".messages-bar b:text-is('1 changed')")
        page.focus("button[value='fork']")
        page.keyboard.press("Enter")
        page.wait_for_selector("#announce:has-text('Forked.')", state="attached")
    session = Session.open(str(tmp_path / "edit.sqlite"), scratch=str(next((tmp_path / "data").rglob("*.scratch.sqlite"))))
    try:
        held = session.state(session.resolve("s1", "t")).values["messages"]
        assert held[1].fields["content"] == "Which pot?"
    finally:
        session.close()
