"""Writing into tables that another program made its own: their conflict clauses, their text that is not UTF-8."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from studio.errors import PatchError
from studio.model import Address
from studio.requests import ForkRequest, Patch
from studio.session import Session
from tests.factories import make_states
from tests.forks.helpers import change, rows

ROWS = "SELECT * FROM checkpoints ORDER BY rowid"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "app" / "app.sqlite"
    path.parent.mkdir()
    make_states(path, {"topic": "tea"}, {"topic": "milk"}, {"topic": "rice"}, thread_id="t")
    return path


def fork(path: Path, in_place: bool) -> None:
    """A fork of the second checkpoint, stored in the file itself by either way."""
    with closing(Session.open(str(path))) as session:
        at = session.resolve("1", "t")
        done = session.fork(ForkRequest(Address("t", "", at.checkpoint_id), Patch({"/topic": "salt"}), in_place=in_place))
        assert done.verified
        if not in_place:
            session.promote(session.promotion(done.address))


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "promoted"])
def test_a_table_that_would_replace_a_row_refuses_the_new_one_instead(made: Path, in_place: bool) -> None:
    columns = "thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT, type TEXT, checkpoint, metadata"
    one = "UNIQUE (thread_id, checkpoint_ns, parent_checkpoint_id) ON CONFLICT REPLACE"
    change(made, f"CREATE TABLE own ({columns}, {one})")
    change(made, "INSERT INTO own SELECT * FROM checkpoints")
    change(made, "DROP TABLE checkpoints")
    change(made, "ALTER TABLE own RENAME TO checkpoints")
    before = rows(made, ROWS)
    assert len(before) == 3
    with pytest.raises(PatchError, match="Nothing was stored"):
        fork(made, in_place)
    assert rows(made, ROWS) == before


@pytest.mark.parametrize("in_place", [True, False], ids=["in place", "promoted"])
def test_a_state_stored_as_text_that_is_not_utf_8_is_forked_from(made: Path, in_place: bool) -> None:
    head = '{"v":1,"ts":"2024-01-01T00:00:00+00:00","channel_versions":{"topic":"1"},"versions_seen":{},"id":"'
    state = f"""'{head}' || checkpoint_id || '","channel_values":{{"topic":"' || CAST(x'ff' AS TEXT) || '"}}}}'"""
    change(made, f"UPDATE checkpoints SET type = 'json', checkpoint = {state}")
    before = rows(made, "SELECT CAST(checkpoint AS BLOB) FROM checkpoints ORDER BY rowid")
    assert b"\xff" in before[1][0]
    fork(made, in_place)
    after = rows(made, "SELECT CAST(checkpoint AS BLOB) FROM checkpoints ORDER BY rowid")
    assert after[:3] == before and len(after) == 4 and b'"salt"' in after[3][0]
