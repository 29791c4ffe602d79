"""A text that holds a secret is readable around it, the same in every front end, and no cut leaves a piece of a secret."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, StateGraph

from studio.errors import PatchError
from studio.model import Address
from studio.render import masking, preview, secrets
from studio.session import Session
from studio.tagged import from_tagged
from studio.tui.panes import changes
from studio.tui.point import load
from studio.web.links import Place
from tests.cli.conftest import Studio
from tests.cli.conftest import studio as studio
from tests.factories import config, saver_at
from tests.test_masking import texts
from tests.tui.driving import opened
from tests.web.conftest import client_of

KEY = "sk-ant-api03-hunter2hunter2hunter2"
SAID = f"Graz is fine, login with {KEY} today. " + "More of it. " * 20


class Held(TypedDict, total=False):
    said: Any
    messages: Any


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[Any], Path]:
    def made(value: Any) -> Path:
        builder: StateGraph[Any] = StateGraph(Held)
        builder.add_node("put", lambda state: {"said": value, "messages": [AIMessage(SAID, id="m")]})
        builder.add_edge(START, "put")
        path = tmp_path / "held.sqlite"
        with saver_at(path) as saver:
            builder.compile(checkpointer=saver).invoke({"said": ""}, config("t"))
        return path

    return made


def head_of(path: Path) -> Address:
    session = Session.open(str(path))
    address = session.tree("t").rows()[-1].checkpoint.address
    session.close()
    return address


def test_the_command_line_shows_the_text_around_a_secret(stored: Callable[[Any], Path], studio: Studio) -> None:
    path = stored(SAID)
    shown = "Graz is fine, login with [masked] today."
    for call in (["show", "head"], ["show", "head", "--path", "/said"], ["show", "head", "--path", "/said", "--json"]):
        answer = studio(call[0], path, *call[1:])
        assert shown in answer.out and "hunter2" not in answer.out
    values = json.loads(studio("show", path, "head", "--json").out)["values"]
    assert values["said"] == {"$masked": "looks like a key", "text": SAID.replace(KEY, "[masked]")}
    assert values["messages"][0]["fields"]["content"] == values["said"]


def test_the_page_and_the_terminal_show_the_text_around_a_secret(stored: Callable[[Any], Path], tmp_path: Path) -> None:
    path = stored(SAID)
    with client_of(path) as client:
        for tab in ("changes", "conversation", "state"):
            page = client.get("/", params={"thread": "t", "at": "head", "tab": tab, "path": "/said"}).text
            assert "Graz is fine, login with [masked] today." in page and "hunter2" not in page
        place = Place(str(client.app.book.first())).at_address(head_of(path)).to(path="/said")  # type: ignore[attr-defined]
        closed = client.get(place.url("node", [("open", "1")])).text
        assert "login with [masked] today" in closed and "hunter2" not in closed and "reveal" in closed
        revealed = client.get(place.url("node", [("reveal", "1"), ("open", "1")])).text
        assert KEY in revealed
    with opened(path, tmp_path / "s.sqlite") as session:
        tree = session.tree("t")
        point = load(session, tree, tree.rows()[-1].checkpoint.address)
        drawn = "\n".join(texts(changes.build(point, tree)))
        assert "login with [masked] today" in drawn and "hunter2" not in drawn


def test_a_document_read_back_is_what_is_stored_and_an_edit_beside_the_mask_is_refused() -> None:
    document = masking.document(SAID)
    assert from_tagged(document, SAID) == SAID
    assert from_tagged({"$masked": "looks like a key"}, SAID) == SAID
    for text in ("Graz is bad, login with [masked] today.", "", SAID, SAID.replace(KEY, "[masked]") + "!"):
        with pytest.raises(PatchError, match="cannot be changed"):
            from_tagged({"$masked": "looks like a key", "text": text}, SAID)


@pytest.mark.parametrize("before", range(0, 200, 7))
def test_a_cut_through_a_secret_leaves_no_piece_of_it(before: int) -> None:
    text = "a " * (before // 2) + KEY + " and so on" * 300
    for width in (20, 60, 80):
        assert "hunter2" not in preview.summary(text, width) and "hunter2" not in preview.summary([{"x": text}], width)
        assert "hunter2" not in preview.summary(AIMessage(text).model_dump(), width)
    for size in range(0, len(KEY) + before + 2, 3):
        assert "sk-" not in secrets.head(text, size)
    long = "a " * 30_000 + "-----BEGIN PRIVATE KEY-----\nhunter2" + "A" * 9_000 + "\n-----END PRIVATE KEY-----"
    assert "BEGIN" not in secrets.head(long, 60_020 + before)
