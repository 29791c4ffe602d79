"""Before a fork, each change of a type is said in words, at its own place, and stops nothing that LangGraph would take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from studio.requests import ForkRequest, Patch
from studio.session import Session
from tests.editing import edit_file


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("retyped")
    edit_file(folder / "edit.sqlite")
    opened = Session.open(str(folder / "edit.sqlite"), scratch=str(folder / "s.sqlite"))
    yield opened
    opened.close()


def warnings(session: Session, values: dict[str, Any], *unset: str) -> list[str]:
    """What the preview of an edit warns of; no edit here is refused."""
    shown = session.preview(ForkRequest(session.resolve("2", "t"), Patch(values, unset)))
    assert shown.refused is None
    return [text for text in shown.warnings if text.startswith("/")]


def size(member: str) -> dict[str, Any]:
    return {"$type": "tests.editing.Size", "$ext": 0, "args": [member]}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"/amount": 499}, "/amount was float 499.0 and becomes integer 499. Write 499.0 to keep it a float."),
        ({"/amount": "499.0"}, "/amount was float and becomes text."),
        ({"/count": 4.5}, "/count was integer 3 and becomes float 4.5."),
        ({"/count": True}, "/count was integer and becomes true/false."),
        ({"/note": None}, "/note was text and becomes null."),
        ({"/lines": {"a": 1}}, "/lines was list and becomes map."),
        ({"/blob": "AAH/"}, "/blob was bytes and becomes text."),
        ({"/labels": ["x"]}, "/labels was builtins.set and becomes list. It is no longer a set for your graph."),
        ({"/size": "l"}, "/size was tests.editing.Size and becomes text. The enum loses its type"),
        ({"/size": size("xl")}, '/size: Size("xl") is no Size seen in this state (Size("l"))'),
        ({"/placed/0": "tomorrow"}, '/placed: "tomorrow" is no datetime that Python can read'),
        ({"/placed/0": "2026-05-04T03:02:01"}, "/placed loses a time zone"),
        ({"/price/0": "a lot"}, '/price: "a lot" is no Decimal that Python can read'),
        ({"/day/1": 13}, "/day: [2026, 13, 4] is no date that Python can read"),
        ({"/customer/nick": "A."}, "/customer/nick is new: the stored Customer has no field 'nick'."),
    ],
)  # fmt: skip
def test_a_changed_type_is_said_in_words(session: Session, values: dict[str, Any], said: str) -> None:
    found = warnings(session, values)
    assert len(found) == 1
    assert found[0].startswith(said)


def test_a_removed_field_is_told_by_what_langgraph_does_with_the_object(session: Session) -> None:
    unless = "Unless its class has a default for it"
    assert warnings(session, {}, "/customer/age", "/cost/tags") == [
        f"/cost/tags is removed from a Money. {unless}, it is loaded as a plain map.",
        f"/customer/age is removed from a Customer. {unless}, it is built unchecked, without the field.",
    ]


def test_a_value_that_is_set_as_a_whole_is_told_at_the_place_inside_it(session: Session) -> None:
    money = {"$type": "tests.editing.Money", "$ext": 2, "fields": {"amount": 10, "currency": "EUR", "tags": ["net"]}}
    lines = [{"sku": "k1", "n": "1"}, {"sku": "k2", "n": 2}]
    assert warnings(session, {"/cost": money, "/lines": lines}) == [
        "/cost/amount was float 10.0 and becomes integer 10. Write 10.0 to keep it a float.",
        "/lines/0/n was integer and becomes text.",
    ]


def test_an_edit_that_keeps_its_types_is_not_warned_of(session: Session) -> None:
    kept = {
        "/amount": 49.9,
        "/count": 4,
        "/note": "two",
        "/placed/0": "2027-01-01T00:00:00+00:00",
        "/price/0": "1.5",
        "/size": size("l"),
    }
    assert warnings(session, {**kept, "/lines/0/n": 5, "/cost/amount": 1.0, "/messages/1/content": "Two kettles?"}) == []


def test_a_masked_number_stays_masked_in_its_warning(session: Session) -> None:
    assert "sk-live" not in " ".join(warnings(session, {"/api_key": 5}))


def test_many_changed_types_are_told_up_to_a_number(session: Session) -> None:
    many = {f"/messages/{at}/{name}": 5 for at in range(8) for name in ("content", "id")}
    shown = session.preview(ForkRequest(session.resolve("2", "t"), Patch(many)))
    told = [text for text in shown.warnings if "becomes integer" in text]
    assert len(told) == 12
    assert "Further types change: look at the whole diff before you fork." in shown.warnings
