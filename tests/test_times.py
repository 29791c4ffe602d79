"""A time that a person writes means all that it may mean, and the last checkpoint of that is found."""

from __future__ import annotations

import pytest

from studio.times import end_of
from tests.cli.conftest import Studio, studio  # noqa: F401 - the fixture


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("2026-03-14T14:02:09", "2026-03-14T14:02:09.999999+00:00"),
        ("2026-03-14 14:02:09", "2026-03-14T14:02:09.999999+00:00"),
        ("2026-03-14T14:02:09Z", "2026-03-14T14:02:09.999999+00:00"),
        ("2026-03-14T16:02:09+02:00", "2026-03-14T14:02:09.999999+00:00"),
        ("2026-03-14T14:02:09.5", "2026-03-14T14:02:09.599999+00:00"),
        ("2026-03-14T14:02:09.123456", "2026-03-14T14:02:09.123456+00:00"),
        ("2026-03-14T14:02", "2026-03-14T14:02:59.999999+00:00"),
        ("2026-03-14T14", "2026-03-14T14:59:59.999999+00:00"),
        ("2026-03-14", "2026-03-14T23:59:59.999999+00:00"),
        ("20260314T140209", "2026-03-14T14:02:09.999999+00:00"),
        ("9999-12-31", "9999-12-31T23:59:59.999999+00:00"),
    ],
)
def test_a_time_reaches_to_the_end_of_what_was_written(text: str, end: str) -> None:
    found = end_of(text)
    assert found is not None and found.isoformat() == end


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "14:02"])
def test_what_is_no_time_has_no_end(text: str) -> None:
    assert end_of(text) is None


def test_the_time_that_the_tree_shows_finds_its_own_row(studio: Studio) -> None:  # noqa: F811
    """The header of a row is printed in seconds and tenths; copied from there it must not name the row before."""
    from studio.assets import sample_folder

    path = sample_folder() / "support_agent.sqlite"
    rows = studio("tree", path, "--thread", "refund-4711", "--json").doc["rows"]
    for before, row in zip([*rows[1:], None], rows, strict=True):
        if before is not None and before["created_at"][:19] == row["created_at"][:19]:
            continue  # a later row of the same second is meant
        for digits in (19, 21, 23):
            if before is not None and before["created_at"][:digits] == row["created_at"][:digits]:
                continue
            found = studio("show", path, f"at:{row['created_at'][:digits]}", "--thread", "refund-4711", "--json")
            assert found.doc["checkpoint"]["checkpoint_id"] == row["checkpoint_id"]
