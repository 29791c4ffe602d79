"""What a search tells of a masked secret: where it is stored to whoever has it whole, and nothing to whoever guesses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from tests.cli.conftest import Studio
from tests.cli.conftest import studio as studio
from tests.factories import config, saver_at
from tests.web.conftest import client_of

KEY = "sk-ant-api03-hunter2hunter2hunter2"
PASSWORD = "hunter2-correct-horse"


class Held(TypedDict, total=False):
    said: Any


@pytest.fixture
def stored(tmp_path: Path) -> Callable[[Any], Path]:
    def made(value: Any) -> Path:
        builder: StateGraph[Any] = StateGraph(Held)
        builder.add_node("put", lambda state: {"said": value})
        builder.add_edge(START, "put")
        path = tmp_path / "held.sqlite"
        with saver_at(path) as saver:
            builder.compile(checkpointer=saver).invoke({"said": ""}, config("t"))
        return path

    return made


def hits(studio: Studio, path: Path, text: str, *more: str) -> list[dict[str, Any]]:
    answer = studio("search", path, text, "--json", *more)
    assert answer.code == 0, answer.err
    found: list[dict[str, Any]] = json.loads(answer.out)["hits"]
    return found


@pytest.mark.parametrize(
    ("value", "whole"),
    [
        (f"the key {KEY} is mine", KEY),
        (f'{{"city": "Graz", "password": "{PASSWORD}"}}', PASSWORD),
        ({"city": "Graz", "password": PASSWORD}, PASSWORD),
        ({"password": {"main": [PASSWORD]}}, PASSWORD),
        ([["X-Api-Key", PASSWORD]], PASSWORD),
    ],
    ids=str,
)
def test_a_piece_of_a_secret_is_not_found_and_the_whole_is_found_masked(
    value: Any, whole: str, stored: Callable[[Any], Path], studio: Studio
) -> None:
    path = stored(value)
    for piece in (whole[:9], whole[:-1], whole[1:], "hunter2"):
        assert hits(studio, path, piece) == []
        assert hits(studio, path, piece, "--show-secrets")
    found = hits(studio, path, whole)
    assert len(found) == 1 and "[masked]" in found[0]["excerpt"] and "hunter2" not in found[0]["excerpt"]


def test_a_search_across_the_edge_of_a_secret_does_not_confirm_a_guess(stored: Callable[[Any], Path], studio: Studio) -> None:
    path = stored(f"login with password={PASSWORD} today")
    assert hits(studio, path, "password=hunter") == [] and hits(studio, path, "horse today") == []
    assert [hit["excerpt"] for hit in hits(studio, path, "password=")] == ["login with password=[masked] today"]
    assert [hit["excerpt"] for hit in hits(studio, path, "today")] == ["login with password=[masked] today"]


def test_what_also_stands_outside_of_a_secret_is_found_there(stored: Callable[[Any], Path], studio: Studio) -> None:
    path = stored(f"{KEY} and then hunter2 the book")
    assert [hit["excerpt"] for hit in hits(studio, path, "hunter2")] == ["[masked] and then hunter2 the book"]


def test_names_below_a_secret_name_are_not_told_and_the_secret_name_itself_is_found(
    stored: Callable[[Any], Path], studio: Studio
) -> None:
    path = stored({"credentials": {"ada@hunter2": {"pin": "eagle"}}, "İ": "Ankara İzmir"})
    assert hits(studio, path, "hunter2") == []
    assert [(hit["path"], hit["excerpt"]) for hit in hits(studio, path, "eagle")] == [("/said/credentials", "[masked]")]
    assert [(hit["path"], hit["excerpt"]) for hit in hits(studio, path, "credent")] == [("/said/credentials", "credentials")]
    assert [hit["excerpt"] for hit in hits(studio, path, "zmir")] == ["Ankara İzmir"]


FILLING = "".join(f'"host{at}": "aaaaaaaaaa", ' for at in range(20_000))


@pytest.mark.parametrize(
    "text",
    [
        f'{{"note": "hello", "credentials": {{{FILLING}"db": "{PASSWORD}", {FILLING}"z": "Graz"}}}} then the beach',
        f"-----BEGIN PRIVATE KEY-----\nhunter2{'A' * 15_000}\n-----END PRIVATE KEY----- then the beach",
    ],
    ids=["a name far before", "a private key"],
)
def test_a_secret_is_masked_however_far_away_it_was_announced(text: str, stored: Callable[[Any], Path], studio: Studio) -> None:
    path = stored(text)
    assert hits(studio, path, "hunter2") == [] and hits(studio, path, "aaaaaaaaa") == []
    found = hits(studio, path, "beach")
    assert len(found) == 1 and found[0]["excerpt"].endswith(" then the beach")


def test_the_page_finds_no_piece_of_a_secret(stored: Callable[[Any], Path]) -> None:
    path = stored(f"the key {KEY} is mine")
    with client_of(path) as client:
        slug = str(client.app.book.first())  # type: ignore[attr-defined]
        for piece in ("hunter2hun", "sk-ant"):
            answer = client.get(f"/f/{slug}/search", params={"q": piece})
            assert answer.status_code == 200 and "is mine" not in answer.text and "/said" not in answer.text
        assert "the key [masked] <mark>is mine" in client.get(f"/f/{slug}/search", params={"q": "is mine"}).text
