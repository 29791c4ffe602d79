"""A table of prices that the user gives: estimates where no cost was recorded, each marked with its table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from studio import prices
from studio.session import Session
from studio.web import create_app
from tests.cli.conftest import Studio
from tests.stores.transcripts.sessions import Book, call
from tests.tui.driving import driven

TABLE = """
["model-*"]
input = 1000.0
output = 10_000.0
cache_read = 100.0
cache_creation = 2000.0
"""
EACH = (5 * 1000 + 10 * 10_000 + 100 * 100 + 7 * 2000) / 1e6
"""What an answer of a `Book` costs by that table."""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    found = tmp_path / "march.toml"
    found.write_text(TABLE)
    return found


def talk(tmp_path: Path, *answers: dict[str, Any], session: str = "") -> Path:
    book = Book(*([session] if session else []))
    for number, fields in enumerate(answers):
        book.prompt(f"Go {number}.")
        book.answer("Gone.", **fields)
    return book.write(tmp_path / "home")


def cost(studio: Studio, path: Path, *more: object, ref: str = "head") -> Any:
    return studio("show", path, ref, "--path", "/cost_usd", "--json", *more).doc["value"]


def test_an_estimate_names_its_table_wherever_it_is_told(tmp_path: Path, table: Path, studio: Studio) -> None:
    path = talk(tmp_path, {}, {})
    told = {"estimate": round(2 * EACH, 10), "prices": "march.toml"}
    assert cost(studio, path, "--prices", table) == told
    assert studio("ls", path, "--json", "--prices", table).doc["threads"][0]["cost_usd"] == told
    assert "≈$0.258 by march.toml" in studio("ls", path, "--prices", table).out
    assert "cost_usd" not in studio("show", path, "head", "--json").doc["values"]
    assert "cost_usd" not in studio("ls", path, "--json").doc["threads"][0]


def test_the_environment_names_a_table_and_the_call_another(
    tmp_path: Path, table: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = talk(tmp_path, {})
    monkeypatch.setenv("STUDIO_PRICES", str(table))
    assert cost(studio, path)["prices"] == "march.toml"
    other = tmp_path / "other.json"
    other.write_text(json.dumps({"model-one": {"input": 0, "output": 1_000_000}}))
    assert cost(studio, path, "--prices", other) == {"estimate": 10.0, "prices": "other.json"}


def test_a_recorded_cost_wins(tmp_path: Path, table: Path, studio: Studio) -> None:
    path = talk(tmp_path, {"costUSD": 0.25}, {"costUSD": 0.5})
    assert cost(studio, path, "--prices", table) == 0.75
    assert studio("ls", path, "--json", "--prices", table).doc["threads"][0]["cost_usd"] == 0.75
    mixed = talk(tmp_path / "mixed", {"costUSD": 0.25}, {})
    told = {"estimate": round(0.25 + EACH, 10), "prices": "march.toml", "recorded": 0.25}
    assert cost(studio, mixed, "--prices", table) == told
    assert studio("ls", mixed, "--json", "--prices", table).doc["threads"][0]["cost_usd"] == told


def test_a_running_total_of_the_program_replaces_the_estimates_before_it(tmp_path: Path, table: Path, studio: Studio) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer("Gone.")
    book.prompt("On.")
    book.answer("Done.")
    book.note(type="cost-state", totalCostUSD=0.5)
    book.prompt("More.")
    book.answer("Not counted yet.")
    path = book.write(tmp_path / "home")
    assert cost(studio, path, "--prices", table, ref="1")["estimate"] == round(EACH, 10)
    assert cost(studio, path, "--prices", table, ref="3") == 0.5
    told = {"estimate": round(0.5 + EACH, 10), "prices": "march.toml", "recorded": 0.5}
    assert cost(studio, path, "--prices", table) == told
    assert studio("ls", path, "--json", "--prices", table).doc["threads"][0]["cost_usd"] == told


def test_an_answer_in_several_lines_and_in_a_fork_of_the_file_counts_once(tmp_path: Path, table: Path, studio: Studio) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer("One.", key="msg_one", output=1)
    book.answer(call("call_1", "Bash", command="ls"), key="msg_one")
    book.result("call_1")
    book.write(tmp_path / "home")
    copy = Book("5e55101d-0000-4000-8000-000000000002")
    copy.records = [{**record, "sessionId": copy.session} for record in book.records]
    copy.last = book.last
    copy.answer("Another end.")
    copy.write(tmp_path / "home")
    (thread,) = studio("ls", tmp_path / "home", "--json", "--prices", table).doc["threads"]
    assert thread["cost_usd"]["estimate"] == round(2 * EACH, 10)


def test_a_fork_that_goes_on_with_the_total_of_its_source_adds_only_what_it_grew(tmp_path: Path, studio: Studio) -> None:
    book = Book()
    book.prompt("Go.")
    book.answer("One.")
    book.note(type="cost-state", totalCostUSD=0.5)
    book.write(tmp_path / "home")
    fork = Book("5e55101d-0000-4000-8000-000000000002")
    fork.records = [{**record, "sessionId": fork.session} for record in book.records[:2]]
    fork.last = book.last
    fork.answer("Two.")
    fork.note(type="cost-state", totalCostUSD=0.75)
    fork.write(tmp_path / "home")
    (thread,) = studio("ls", tmp_path / "home", "--json").doc["threads"]
    assert thread["cost_usd"] == 0.75


def test_a_model_that_the_table_lacks_is_said_with_its_tokens(tmp_path: Path, studio: Studio) -> None:
    path = talk(tmp_path, {})
    other = tmp_path / "p.toml"
    other.write_text("[elsewhere]\ninput = 1\noutput = 1\n")
    lacking = {"input": 5, "output": 10, "cache_read": 100, "cache_creation": 7}
    assert cost(studio, path, "--prices", other) == {
        "estimate": None,
        "prices": "p.toml",
        "not_priced": {"model-one": lacking},
    }
    assert "no price for model-one in p.toml" in studio("ls", path, "--prices", other).out


def test_a_name_comes_before_a_pattern_and_a_long_pattern_before_a_short_one() -> None:
    def price(amount: float) -> prices.Price:
        return prices.Price(amount, 0, 0, 0)

    found = prices.Prices("t", {"model-*": price(1), "Model-One*": price(2), "model-one-x": price(3)})
    assert [found.of(name) for name in ("model-one-x", "model-one-2026", "MODEL-TWO", "other")] == [
        price(3), price(2), price(1), None,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[a", "is no valid TOML"),
        ("{", "is no valid JSON"),
        ("{}", "names no model"),
        ("", "names no model"),
        ("{" + '"a":' * 3000, "is no valid JSON"),
        ("a = 3", "gives no prices for 'a'"),
        ("[a]\ninput = 1", "has no price for output at 'a'"),
        ("[a]\ninput = 1\noutput = -1", "has -1 as the price for output at 'a'"),
        ("[a]\ninput = nan\noutput = 1", "has nan as the price for input"),
        ("[a]\ninput = true\noutput = 1", "has True as the price for input"),
        ('{"a": {"input": 1e999, "output": 1}}', "has inf as the price for input"),
        ("[a]\ninput = 1\noutput = 1\ncached = 1", "has 'cached' at 'a'; it knows input, output"),
    ],
)
def test_a_bad_table_is_one_clear_line(tmp_path: Path, studio: Studio, text: str, said: str) -> None:
    path = talk(tmp_path, {})
    bad = tmp_path / "bad.toml"
    bad.write_text(text)
    answer = studio("ls", path, "--prices", bad)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err and len(answer.err.splitlines()) == 2


def test_a_table_that_is_not_there_is_said_with_who_named_it(
    tmp_path: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = talk(tmp_path, {})
    monkeypatch.setenv("STUDIO_PRICES", str(tmp_path / "gone.toml"))
    answer = studio("show", path, "head")
    assert answer.code == 2 and "STUDIO_PRICES: the price table" in answer.err and "No such file" in answer.err


async def test_both_uis_mark_the_estimate(tmp_path: Path, table: Path) -> None:
    session = Session.open(str(talk(tmp_path, {})), prices=prices.load(str(table)))
    try:
        with TestClient(create_app([session], token=""), base_url="http://127.0.0.1") as client:
            page = client.get("/", params={"tab": "conversation"}).text
            assert "≈$0.129 by march.toml" in page
        async with driven(session, size=(120, 32)) as drive:
            await drive.loaded()
            await drive.press("2")
            await drive.shows("cost ≈$0.129 by march.toml")
    finally:
        session.close()
