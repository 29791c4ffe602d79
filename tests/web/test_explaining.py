"""The browser view says whether a superstep's writes explain its state, and which supersteps were not stored."""

from __future__ import annotations

from pathlib import Path

from tests.explain.late import make_gaps, make_parallel, make_spoiled
from tests.web.conftest import client_of


def test_changes_mark_what_their_writes_explain_and_what_not(tmp_path: Path) -> None:
    with client_of(make_spoiled(tmp_path / "spoiled.sqlite")) as client:
        page = client.get("/?thread=t&at=2").text
        assert 'class="proof explained" title="explained: it is what was written last"' in page
        assert page.count('class="proof-note outside"') == 1
        assert "changed outside its writes: it changed although no task wrote it" in page
        rows = client.get("/?thread=t&at=1").text
        assert "≠ outside its writes" in rows, "the row that was looked at keeps its mark"


def test_a_row_that_nobody_looked_at_has_no_mark(tmp_path: Path) -> None:
    with client_of(make_spoiled(tmp_path / "spoiled.sqlite")) as client:
        assert "≠" not in client.get("/?thread=t&at=1").text


def test_supersteps_that_were_not_stored_are_said_in_the_timeline_and_in_changes(tmp_path: Path) -> None:
    with client_of(make_gaps(tmp_path / "gaps.sqlite")) as client:
        page = client.get("/?thread=t&at=1").text
        assert "#1 · superstep · steps 4 to 7 not stored" in page
        assert "Supersteps 4 to 7 were not stored: normal with durability exit" in page
        assert "Not everything could be read" not in page


def test_parallel_writers_of_one_list_are_told_apart_item_by_item(tmp_path: Path) -> None:
    with client_of(make_parallel(tmp_path / "parallel.sqlite")) as client:
        page = client.get("/?thread=t&at=2").text
        for name in ("ann", "ben", "cy"):
            group = page.split(f'aria-label="{name}"')[1].split("</section>")[0]
            assert f"{name} says hello" in group
            assert f"note of {name}" in group
            assert "changed messages, notes" in group
