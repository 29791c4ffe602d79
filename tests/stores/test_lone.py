"""One checkpoint in a file of its own, as somebody exported it from a viewer by hand."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ormsgpack
import pytest

from studio.cli import main
from studio.errors import OpenError, PatchError
from studio.locations import Inside, files_of
from studio.model import Address
from studio.requests import ForkRequest, RunRequest
from studio.session import Session
from studio.stores import open_store
from studio.stores.lone import LIMIT, WORDS
from studio.stores.view import View
from tests.stores.kit import Sample, StoreContract
from tests.stores.layouts import Rows, StoredCheckpoint
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of

IDENT = "1f0edd81-624d-6939-8003-a648109257f7"
CHECKPOINT: dict[str, Any] = {
    "v": 4,
    "ts": "2026-11-02T02:11:09.123456+00:00",
    "id": IDENT,
    "channel_values": {"amount": 120, "branch:to:pay": None},
    "channel_versions": {"__start__": "1.0", "amount": "2.0", "branch:to:pay": "2.0"},
    "versions_seen": {"__input__": {}, "check": {"branch:to:check": "1.0"}},
    "updated_channels": ["amount", "branch:to:pay"],
}
AS_JSON = json.dumps(CHECKPOINT).encode()
AS_MSGPACK = ormsgpack.packb(CHECKPOINT)


def lone(folder: Path, blob: bytes = AS_MSGPACK, name: str = "refund-checkpoint.bin") -> Path:
    path = folder / name
    path.write_bytes(blob)
    return path


def test_that_step_and_source_are_missing_does_not_sound_like_damage(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = lone(tmp_path)
    assert main(["tree", str(path)]) == 0
    said = capsys.readouterr().out
    assert "holds neither, they stand in the metadata column" in said and "cannot be read" not in said
    with client_of(path) as client:
        page = client.get(f"/f/{path.name}").text
    assert "cannot be read" not in page


def unchangeable(*_: object) -> None:
    raise AssertionError("a file of one checkpoint does not grow")


class TestLone(StoreContract):
    @pytest.fixture(params=[("msgpack", AS_MSGPACK), ("json", AS_JSON)], ids=lambda made: made[0])
    def sample(self, request: pytest.FixtureRequest, tmp_path: Path) -> Sample:
        folder = tmp_path / "opened"
        folder.mkdir()
        tag, blob = request.param
        path = lone(folder, blob)
        row = StoredCheckpoint(Address(path.name, "", IDENT), None, tag, blob, b"")
        changes: list[Callable[..., None]] = [unchangeable] * 4
        return Sample(folder, f"open_store({str(path)!r})", Rows([row], []), "lone", frozenset(), *changes)


@pytest.mark.parametrize(
    "blob",
    [
        AS_MSGPACK,
        AS_JSON,
        json.dumps(CHECKPOINT, indent=2, sort_keys=True).encode(),
        b"\xef\xbb\xbf" + AS_JSON + b"\r\n",
        ormsgpack.packb({key: CHECKPOINT[key] for key in ("v", "id", "ts", *list(CHECKPOINT)[3:])}),
        ormsgpack.packb({**CHECKPOINT, "v": 1}),
    ],
    ids=["msgpack", "json", "pretty and sorted", "byte order mark", "id before ts", "format 1"],
)
def test_a_file_with_the_bytes_of_one_checkpoint_opens_as_one_thread(tmp_path: Path, blob: bytes) -> None:
    path = lone(tmp_path, blob)
    session = Session.open(str(path))
    (thread,) = session.threads()
    assert (thread.thread_id, thread.checkpoints, thread.head) == ("refund-checkpoint.bin", 1, IDENT)
    assert thread.last_at == CHECKPOINT["ts"]
    state = session.state(session.resolve("head"))
    assert state.values["amount"] == 120
    assert (session.kind, session.view_words) == ("checkpoint", WORDS)
    assert session.problems() == []
    assert files_of(str(tmp_path)) == Inside([str(path)])
    session.close()
    assert [one.name for one in tmp_path.iterdir()] == [path.name]


def test_what_runs_next_is_told_but_not_whether_it_has_run(tmp_path: Path) -> None:
    session = Session.open(str(lone(tmp_path)))
    state = session.state(session.resolve("head"))
    assert state.next == ("pay",)
    assert [(task.name, task.status) for task in state.tasks] == [("pay", "unknown")]
    assert state.status == "unknown"
    session.close()


def test_nothing_is_forked_or_run_from_it(tmp_path: Path) -> None:
    session = Session.open(str(lone(tmp_path)))
    at = session.resolve("head")
    assert "exported by hand" in (session.preview(ForkRequest(at)).refused or "")
    for refused in (
        lambda: session.fork(ForkRequest(at)),
        lambda: session.plan(RunRequest(at)),
        lambda: session.run(RunRequest(at)),
    ):
        with pytest.raises(PatchError, match="without its thread, parent and writes nothing can be forked or run"):
            refused()
    session.close()


def test_another_checkpoint_under_the_same_name_is_read_and_followed(tmp_path: Path) -> None:
    path = lone(tmp_path)
    store = open_store(str(path))
    before = store.token()
    other = {**CHECKPOINT, "id": IDENT.replace("1f0", "1f1"), "channel_values": {"amount": 4711}}
    path.write_bytes(ormsgpack.packb(other))
    assert store.token() != before
    ((_, header),) = store.checkpoints(path.name)
    assert header.checkpoint_id == other["id"]
    path.write_bytes(b"\x93\x01\x02\x03")
    with pytest.raises(OpenError):
        store.checkpoints(path.name)


@pytest.mark.parametrize(
    ("blob", "words"),
    [
        (b'{"source": "loop", "step": 3, "parents": {}}', "holds the metadata of a checkpoint in JSON"),
        (ormsgpack.packb({"source": "loop", "step": 3}), "holds the metadata of a checkpoint in msgpack"),
        (ormsgpack.packb(["a", "b"]), "holds a list in msgpack, as the value of a write"),
        (ormsgpack.packb({"amount": 3}), "holds a map in msgpack, as the value of a write"),
        (ormsgpack.packb("a text that one node wrote, long enough for a byte of length"), "holds one value in msgpack"),
        (pickle.dumps({"a": Path("/")}), "pickle, which is never loaded here; loading it would import pathlib"),
        (AS_MSGPACK[:-20], "begins like a checkpoint in msgpack, but it is not whole"),
        (AS_JSON[:-20], "begins like a checkpoint in JSON, but it is not whole"),
        (
            json.dumps({"v": 1, "channel_values": {}}).encode(),
            "is like a checkpoint in JSON, but it lacks ts, id, channel_versions",
        ),
        (ormsgpack.packb({**CHECKPOINT, "id": 7}), "its id is no text"),
        (b'{"name": "x", "version": "1.0"}', "it looks like JSON"),
        (b'{"type": "user"}\n{"type": "assistant"}\n', "it looks like JSON"),
        (b"\x9c\x01\xf3" * 200, "or an encrypted database"),
        (AS_MSGPACK + b"\0" * LIMIT, "and 64 MB of one are read"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_checkpoint_is_refused_with_what_it_is(tmp_path: Path, blob: bytes, words: str) -> None:
    path = lone(tmp_path, blob)
    with pytest.raises(OpenError) as refused:
        open_store(str(path))
    assert words in refused.value.message
    assert refused.value.hint


def test_bytes_that_may_be_encrypted_say_where_such_a_row_opens(tmp_path: Path) -> None:
    with pytest.raises(OpenError) as refused:
        open_store(str(lone(tmp_path, b"\x9c\x01\xf3" * 200)))
    assert "--aes-key-env" in refused.value.hint


def test_other_tables_are_not_asked_of_it(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match="has no tables"):
        open_store(str(lone(tmp_path)), View(tables="old_checkpoints"))


def test_a_folder_lists_such_files_beside_its_databases_and_no_other_files(tmp_path: Path) -> None:
    kept = lone(tmp_path)
    lone(tmp_path, b'{"id": 3, "v": "1.0"}', "package.json")
    lone(tmp_path, b'{"source": "loop", "step": 3}', "metadata.json")
    lone(tmp_path, ormsgpack.packb({"id": "x", "text": "channel_values"}), "other.bin")
    lone(tmp_path, ormsgpack.packb(["a"]), "write.bin")
    assert files_of(str(tmp_path)) == Inside([str(kept)])
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute(
            "CREATE TABLE checkpoints (thread_id TEXT, checkpoint_ns TEXT, checkpoint_id TEXT, parent_checkpoint_id TEXT,"
            " type TEXT, checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, checkpoint_ns, checkpoint_id))"
        )
    connection.close()
    assert files_of(str(tmp_path)) == Inside([str(tmp_path / "a.sqlite"), str(kept)])


def test_the_command_line_says_what_is_missing_and_that_there_are_no_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(lone(tmp_path))
    for command in (["ls", path], ["tree", path], ["show", path, "head"], ["tables", path]):
        assert main(command) == 0
        assert WORDS in capsys.readouterr().out
    assert main(["show", path, "0"]) == 0
    assert "None" not in capsys.readouterr().out
    assert main(["export", path]) == 0
    assert json.loads(capsys.readouterr().out)["values"]["amount"] == 120
    for command in (["fork", path, "0", "--set", "/amount=1"], ["run", path, "0", "--graph", "nowhere:graph"]):
        assert main(command) == 1
        assert "nothing can be forked or run" in capsys.readouterr().err


def test_the_page_says_what_is_missing_and_offers_no_fork(tmp_path: Path) -> None:
    with client_of(lone(tmp_path)) as client:
        text = client.get("/f/refund-checkpoint.bin").text
    assert "one checkpoint, exported by hand" in text and "nothing can be forked or run" in text
    assert "read-only · nothing can be forked" in text
    assert 'id="promise"' not in text and "forks go to scratch" not in text


async def test_the_terminal_says_what_is_missing_and_why_it_does_not_fork(tmp_path: Path) -> None:
    with opened(lone(tmp_path), tmp_path / "s.sqlite") as session:
        async with driven(session, None, (160, 45)) as drive:
            await drive.loaded()
            assert "one checkpoint, exported by hand" in drive.text("#header")
            assert "nothing can be forked" in drive.text("#header")
            for key in ("f", "r"):
                await drive.press(key)
                assert drive.app.screen is drive.main
            assert any("nothing can be forked or run" in one.message for one in drive.app._notifications)
