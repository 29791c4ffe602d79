"""Two values that look alike in a diff: every front end says what tells them apart."""

from __future__ import annotations

import importlib
import sys
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from studio.model import Change
from studio.render.likeness import told_apart
from studio.session import Session
from studio.tui.panes import changes as pane
from studio.tui.point import load
from studio.web.links import Place
from tests.cli.conftest import Studio, studio  # noqa: F401
from tests.factories import make_states
from tests.web.conftest import client_of

SAME = 'same text, another id: "run-1" → "run-2"; it stands for the removed /messages/0'


def in_all(path: Path, studio: Studio, words: str) -> None:  # noqa: F811
    """The words stand in the diff of `#1` in terminal, pane and page."""
    assert words in studio("diff", path, "1").out
    session = Session.open(str(path))
    tree, head = session.tree("made"), session.resolve("#1")
    text = " ".join(str(line.content) for line in pane.build(load(session, tree, head), tree))
    session.close()
    assert words in text
    with client_of(path) as page:
        place = Place(path.name, "made", head.checkpoint_id)
        assert words in unescape(page.get(place.url()).text)


def test_messages_that_differ_only_in_their_id_say_so(studio: Studio, tmp_path: Path) -> None:  # noqa: F811
    first, again = AIMessage("Good news.", id="run-1"), AIMessage("Good news.", id="run-2")
    path = make_states(tmp_path / "ids.sqlite", {"messages": [first]}, {"messages": [again]})
    in_all(path, studio, SAME)


def test_values_of_which_only_the_type_was_renamed_say_both_names(
    studio: Studio,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("first_home", "second_home"):
        (tmp_path / f"{name}.py").write_text("from pydantic import BaseModel\nclass Order(BaseModel):\n    total: float\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    made: list[Any] = [importlib.import_module(name).Order(total=49.9) for name in ("first_home", "second_home")]
    path = make_states(tmp_path / "types.sqlite", {"order": made[0], "all": [made[0]]}, {"order": made[1], "all": [made[1]]})
    for name in ("first_home", "second_home"):
        del sys.modules[name]
    words = "same fields, another type: first_home.Order → second_home.Order"
    in_all(path, studio, words)
    assert studio("diff", path, "1").out.count(words) == 2


def test_what_differs_is_masked_where_it_is_a_secret_and_other_pairs_are_left_alone() -> None:
    key = "sk-proj-" + "a1B2" * 12
    gone = Change("/log/0", "remove", {"id": "a", "content": "hi", "role": "user", "api_key": key}, None)
    come = Change("/log/0", "add", None, {"id": "b", "content": "hi", "role": "user", "api_key": key + "x"})
    words = told_apart([gone, come])["add", "/log/0"]
    assert "another api_key" in words and "sk-proj" not in words
    assert told_apart([gone, Change("/log/0", "add", None, {"id": "b", "content": "bye", "role": "user"})]) == {}
    assert told_apart([gone, Change("/other/0", "add", None, come.after)]) == {}
