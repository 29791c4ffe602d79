"""A typed value is edited as just its value, and stays of its type: what the real saver loads from the fork says so."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from studio import tagged
from studio.errors import PatchError
from studio.render import masking
from studio.render.bare import bare, filled
from studio.requests import ForkRequest, Patch
from studio.session import Session
from tests.editing import VALUES, Customer, Money, Size, edit_file
from tests.factories import config, saver_at


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("bare")
    edit_file(folder / "edit.sqlite")
    opened = Session.open(str(folder / "edit.sqlite"), scratch=str(folder / "s.sqlite"))
    yield opened
    opened.close()


def document(session: Session, channel: str) -> Any:
    return masking.document(session.state(session.resolve("2", "t")).values[channel], channel, readable=False)


EDITS: list[tuple[str, str, str, Any]] = [
    ("placed", "2026-05-04T03:02:01+00:00", "2027-01-02T03:04:05+00:00", datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)),
    ("day", "2026-05-04", "2027-12-31", date(2027, 12, 31)),
    ("at", "09:30:00", "10:45", time(10, 45)),
    ("wait", "1 day, 0:00:30", "2 days, 3:04:05.5", timedelta(days=2, hours=3, minutes=4, seconds=5, milliseconds=500)),
    ("size", "l", "s", Size.SMALL),
    ("price", "49.90", "1.5", Decimal("1.5")),
    ("ident", "12345678-1234-5678-1234-567812345678", "0" * 32, uuid.UUID(int=0)),
    ("folder", "/var/orders", "/srv/x", Path("/srv/x")),
    ("plain_bytes", "plain text", "other", b"other"),
    ("blob", "AAH/", "AAAA", b"\x00\x00\x00"),
    ("labels", '[\n  "x",\n  "y"\n]', '["z"]', {"z"}),
    ("queue", "[\n  1,\n  2\n]", "[3]", deque([3])),
]


@pytest.mark.parametrize(("channel", "shown", "typed", "wanted"), EDITS, ids=[edit[0] for edit in EDITS])
def test_a_typed_value_keeps_its_type(session: Session, channel: str, shown: str, typed: str, wanted: Any) -> None:
    doc = document(session, channel)
    alone = bare(doc)
    assert alone is not None
    if channel == "labels":
        assert sorted(tagged.loads(alone.text)) == ["x", "y"]
    else:
        assert alone.text == shown
    result = session.fork(ForkRequest(session.resolve("2", "t"), Patch({f"/{channel}": filled(doc, typed)})))
    assert result.verified
    with saver_at(session.scratch_path) as saver:
        held = saver.get_tuple(config("t", result.address.checkpoint_id))
    assert held is not None
    loaded = held.checkpoint["channel_values"][channel]
    assert loaded == wanted and type(loaded) is type(wanted)


def test_objects_are_edited_by_their_fields(session: Session) -> None:
    money = document(session, "cost")
    alone = bare(money)
    assert alone is not None and alone.is_json and alone.what == "tests.editing.Money, its fields as JSON"
    cost = filled(money, alone.text.replace("10.0", "12.5"))
    customer = filled(document(session, "customer"), '{"name": "Bo", "age": 31, "tags": []}')
    result = session.fork(ForkRequest(session.resolve("2", "t"), Patch({"/cost": cost, "/customer": customer})))
    with saver_at(session.scratch_path) as saver:
        held = saver.get_tuple(config("t", result.address.checkpoint_id))
    assert held is not None
    values = held.checkpoint["channel_values"]
    assert values["cost"] == Money(12.5, tags=["net"]) and values["customer"] == Customer(name="Bo", age=31)


@pytest.mark.parametrize("channel", sorted(VALUES))
def test_what_is_left_as_shown_says_the_stored_value(session: Session, channel: str) -> None:
    doc = document(session, channel)
    alone = bare(doc)
    if alone is not None:
        stored = session.state(session.resolve("2", "t")).values[channel]
        assert tagged.dumps(tagged.to_tagged(tagged.from_tagged(filled(doc, alone.text), stored))) == tagged.dumps(
            tagged.to_tagged(stored)
        )


@pytest.mark.parametrize(
    ("channel", "typed"),
    [
        ("placed", "tomorrow"),
        ("day", "2026-13-01"),
        ("at", "25:00"),
        ("wait", "soon"),
        ("price", "a lot"),
        ("ident", "12"),
        ("blob", "%"),
        ("labels", '{"a": 1}'),
        ("cost", "[1]"),
        ("cost", "{"),
    ],
)
def test_what_the_type_could_not_read_is_refused_where_it_is_typed(session: Session, channel: str, typed: str) -> None:
    with pytest.raises(PatchError):
        filled(document(session, channel), typed)


def test_plain_and_masked_values_have_no_form_of_their_own(session: Session) -> None:
    assert [bare(document(session, name)) for name in ("amount", "note", "lines", "by_number", "api_key")] == [None] * 5
    assert bare({"$type": "pydantic.SecretStr", "$ext": 0, "args": [{"$masked": "a SecretStr"}]}) is None
