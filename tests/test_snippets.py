"""The code that a copy action puts on the clipboard, run as a person would run it."""

from __future__ import annotations

import ast
import contextlib
import io
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from studio.errors import PatchError
from studio.render import snippets
from studio.session import Session
from studio.stores.view import PLAIN, View
from tests.factories import folder_snapshot, shop_builder
from tests.stores.test_lone import lone


def renamed(path: Path) -> View:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute('ALTER TABLE checkpoints RENAME TO "acme ""old"" checkpoints"')
        connection.execute('ALTER TABLE writes RENAME TO "acme ""old"" writes"')
        connection.execute('ALTER TABLE "acme ""old"" checkpoints" ADD COLUMN tenant TEXT')
    return View(tables='acme "old" checkpoints')


def plain(path: Path) -> View:
    return PLAIN


@pytest.mark.parametrize("made", [plain, renamed])
def test_the_copied_code_finds_the_checkpoint_and_leaves_the_file_alone(shop: Path, made: Any) -> None:
    view = made(shop)
    with closing(Session.open(str(shop), view=view)) as session:
        at = session.resolve("head", "done")
        source, expected = session.source(), session.state(at)
    before = folder_snapshot(shop.parent)
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(snippets.as_python(at, source), {"builder": shop_builder()})  # noqa: S102
    assert at.checkpoint_id in said.getvalue() and "StateSnapshot(values={'" in said.getvalue()
    assert str(expected.values["item"]) in said.getvalue()
    assert folder_snapshot(shop.parent) == before
    assert ("under_langgraph_names" in snippets.as_python(at, source)) == (made is renamed)


@pytest.mark.parametrize("made", [plain, renamed])
def test_the_copied_test_replays_the_checkpoint(shop: Path, made: Any, tmp_path: Path) -> None:
    view = made(shop)
    with closing(Session.open(str(shop), view=view)) as session:
        at = session.resolve("root", "done")
        code = snippets.as_test(at, session.source(), session.state(at).next)
    names: dict[str, Any] = {}
    exec(code.replace("from your_module import graph", ""), names)  # noqa: S102
    names["graph"] = shop_builder().compile()
    place = tmp_path / "private"
    place.mkdir()
    before = folder_snapshot(shop.parent)
    names["test_replay_from_checkpoint"](place)
    assert os.listdir(place)
    assert folder_snapshot(shop.parent) == before


def test_no_code_is_copied_for_what_no_saver_reads(tmp_path: Path) -> None:
    with closing(Session.open(str(lone(tmp_path)))) as session, pytest.raises(PatchError, match="exported by hand"):
        session.source()


def test_a_node_name_never_becomes_code_of_the_copied_test(shop: Path) -> None:
    with closing(Session.open(str(shop))) as session:
        at = session.resolve("head", "done")
        names = ('n"""\nimport os\nos.system("x")\n"""', "\\", "\x00\r\ud800", None)
        code = snippets.as_test(at, session.source(), names)
    module = ast.parse(code)
    assert [type(part).__name__ for part in module.body] == [
        type(part).__name__ for part in ast.parse(snippets.as_test(at, session.source(), ("plain",))).body
    ]
    assert "\x00" not in code and "\r" not in code
