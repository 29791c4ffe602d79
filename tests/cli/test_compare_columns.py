"""The columns of `studio compare` use the room that there is."""

from __future__ import annotations

from pathlib import Path

from studio.assets import sample_folder
from tests.cli.conftest import Studio


def test_a_name_at_the_right_is_not_cut_while_there_is_room(studio: Studio, tmp_path: Path) -> None:
    path = sample_folder() / "support_agent.sqlite"
    found = studio("compare", path, "2", "9", "--thread", "refund-4711")
    assert "#4 read_history ∥ read_policy" in found.out
    assert "…" not in "".join(line for line in found.out.splitlines() if line.startswith("> –"))
