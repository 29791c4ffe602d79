"""A folder of databases is a location too: listed together, narrowed by file or by thread."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from studio.cli import main
from studio.cli.common import open_session
from tests.factories import config, folder_snapshot, saver_at, shop_builder
from tests.stores.transcripts.sessions import Book


@pytest.fixture
def folder(shop: Path) -> Path:
    """`shop.sqlite`, `other.sqlite` with a thread of its own, and a file that is no database."""
    with saver_at(shop.parent / "other.sqlite") as saver:
        shop_builder().compile(checkpointer=saver).invoke({"item": "lamp"}, config("elsewhere"))
    (shop.parent / "notes.txt").write_text("not a database")
    return shop.parent


def test_ls_lists_the_threads_of_every_file_with_their_location(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = folder_snapshot(folder)
    assert main(["ls", str(folder), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["kind"] == "folder"
    places = {thread["thread_id"]: Path(thread["location"]).name for thread in document["threads"]}
    assert places["elsewhere"] == "other.sqlite"
    assert places["paused"] == "shop.sqlite"
    assert main(["ls", str(folder)]) == 0
    text = capsys.readouterr().out
    assert text.index("other.sqlite") < text.index("elsewhere") < text.index("shop.sqlite")
    assert folder_snapshot(folder) == before


def test_a_thread_or_a_file_name_says_which_file_is_meant(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tree", str(folder), "--thread", "elsewhere"]) == 0
    assert "look_up" in capsys.readouterr().out
    assert main(["show", str(folder), "head", "--file", "other.sqlite", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["checkpoint"]["thread_id"] == "elsewhere"


def test_an_open_choice_lists_the_files(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(folder / "shop.sqlite", folder / "twin.sqlite")
    assert main(["tree", str(folder), "--thread", "paused"]) == 2
    shown = capsys.readouterr().err
    assert "shop.sqlite" in shown
    assert "twin.sqlite" in shown
    assert main(["tree", str(folder), "--file", "nothing.sqlite"]) == 2


def test_a_session_beside_databases_is_one_more_file_of_the_folder(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = Book()
    book.prompt("Bake bread")
    book.answer("Done.")
    session = book.write(folder, "baking")
    assert main(["ls", str(folder), "--json"]) == 0
    places = {Path(thread["location"]).name for thread in json.loads(capsys.readouterr().out)["threads"]}
    assert places == {"other.sqlite", "shop.sqlite", "baking.jsonl"}
    assert main(["tree", str(folder), "--file", session.name, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["rows"]) == 2


def test_a_folder_without_a_database_is_refused_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for command in (["ls"], ["tree"], ["web"]):
        assert main([*command, str(tmp_path / "empty")]) == 3
        assert capsys.readouterr().err.startswith("studio: ")


@pytest.mark.parametrize("as_json", [[], ["--json"]])
def test_a_file_that_is_lost_while_the_folder_is_listed_is_a_problem_and_hides_no_other(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, as_json: list[str]
) -> None:
    def opened_then_lost(path: str, *rest: Any) -> Any:
        session = open_session(path, *rest)
        (folder / "other.sqlite").unlink(missing_ok=True)
        return session

    monkeypatch.setattr("studio.cli.ls.open_session", opened_then_lost)
    assert main(["ls", str(folder), *as_json]) == 3
    shown = capsys.readouterr()
    assert "paused" in shown.out and str(folder / "other.sqlite") in shown.out
    assert shown.err == ""
