"""The sidecar keeps what a person and the studio note about a store."""

from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from studio.errors import StudioError
from studio.model import Address
from studio.notes import Notes

HERE = Address("t", "", "1f0")
THERE = Address("t", "sub:1", "1f1")


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(str(tmp_path / "data" / "x.notes.sqlite"))


def test_reading_makes_no_file(notes: Notes) -> None:
    assert (notes.runs(), notes.audit()) == ([], [])
    assert not Path(notes.path).parent.exists()


def test_the_sidecar_is_private(notes: Notes) -> None:
    notes.begin_run("r", HERE, {})
    assert stat.S_IMODE(Path(notes.path).stat().st_mode) == 0o600
    assert stat.S_IMODE(Path(notes.path).parent.stat().st_mode) == 0o700


def test_a_run_is_kept_with_its_plan_and_outcome(notes: Notes) -> None:
    notes.begin_run("r1", HERE, {"runs": ["b"], "graph": "shop"})
    notes.begin_run("r2", Address("u", "", "1"), {})
    (run,) = notes.runs("t")
    assert (run.status, run.plan, run.outcome, run.ended_at) == ("running", {"runs": ["b"], "graph": "shop"}, None, None)
    notes.end_run("r1", "failed", {"error": "boom"})
    (run,) = notes.runs("t")
    assert (run.status, run.outcome) == ("failed", {"error": "boom"}) and run.ended_at is not None
    assert [one.id for one in notes.runs()] == ["r1", "r2"]


def test_a_write_that_was_cut_off_stays_visible_in_the_audit(notes: Notes) -> None:
    done = notes.audit_begin("/x.sqlite", "set", HERE, [THERE], 3)
    notes.audit_done(done)
    notes.audit_begin("/x.sqlite", "copy", HERE, [HERE])
    first, second = notes.audit()
    assert (first.status, first.added, first.carried_rows) == ("done", (THERE,), 3)
    assert (second.status, second.act) == ("begun", "copy")


def test_a_place_that_cannot_be_written_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudioError, match="Notes cannot be kept"):
        Notes(str(tmp_path / "file" / "x.notes.sqlite")).begin_run("r", HERE, {})


def test_forking_does_not_load_the_library_of_the_sidecar() -> None:
    code = "import sys, studio.forks.forker; sys.exit('sqlite_utils' in sys.modules or 'langgraph' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], check=False).returncode == 0
