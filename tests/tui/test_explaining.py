"""The terminal UI says whether a superstep's writes explain its state, and which supersteps were not stored."""

from __future__ import annotations

from pathlib import Path

from tests.explain.late import make_gaps, make_parallel, make_spoiled
from tests.tui.driving import driven, opened


async def test_a_change_that_no_write_made_is_marked_in_changes_and_on_its_row(tmp_path: Path) -> None:
    with opened(make_spoiled(tmp_path / "spoiled.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, "2", size=(160, 40)) as drive:
            await drive.loaded()
            text = drive.text()
            assert "≠ changed outside its writes: it changed although no task wrote it" in text
            assert "changed log ✓" in text
            marked = [line for line in drive.text("#timeline").splitlines() if "≠" in line]
            assert [("#2" in line) for line in marked] == [True]


async def test_supersteps_that_were_not_stored_are_said(tmp_path: Path) -> None:
    with opened(make_gaps(tmp_path / "gaps.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, size=(160, 40)) as drive:
            await drive.loaded()
            text = drive.text()
            assert "Supersteps 4 to 7 were not stored: normal with durability exit" in text
            assert "steps -1 to 2 not stored" in text


async def test_parallel_writers_of_one_list_are_told_apart_item_by_item(tmp_path: Path) -> None:
    with opened(make_parallel(tmp_path / "parallel.sqlite"), tmp_path / "s.sqlite") as session:
        async with driven(session, size=(160, 60)) as drive:
            await drive.loaded()
            lines = drive.lines("#changes")
            heads = [line for line in lines if line in ("ann", "ben", "cy")]
            assert sorted(heads) == ["ann", "ben", "cy"]
            for name in heads:
                start = lines.index(name)
                group = lines[start : lines.index("", start)] if "" in lines[start:] else lines[start:]
                assert any(f"{name} says hello" in line for line in group)
                assert any(f"note of {name}" in line for line in group)
