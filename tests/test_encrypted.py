"""Threads that LangGraph's EncryptedSerializer wrote: closed without the key, open with it, closed again in forks and runs."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver

from studio.errors import PatchError
from studio.model import Address
from studio.requests import ForkRequest, Patch, RunRequest
from studio.session import Session
from studio.stores.sealed import AesKey
from tests.cli.conftest import Studio, studio  # noqa: F401 - a fixture
from tests.factories import config, folder_snapshot, saver_at, shop_builder
from tests.run_project import make_project, record, spec
from tests.web.conftest import client_of

KEY = "a key of 16 byte"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a variable that holds the key."""
    monkeypatch.setenv("SHOP_AES", KEY)
    return "SHOP_AES"


def encrypted(serde: Any = None) -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(serde or JsonPlusSerializer(), key=KEY.encode())


def turn(path: Path, thread: str, item: str, *, hidden: bool) -> None:
    """One turn of the shop up to its question."""
    with saver_at(path) as saver:
        if hidden:
            saver.serde = encrypted()
        graph = shop_builder().compile(checkpointer=saver)
        graph.invoke({"messages": [("user", f"what is the price of the {item}?")], "item": item}, config(thread))


@pytest.fixture
def hidden(tmp_path: Path) -> Path:
    """`closed`: encrypted from the start; `mixed`: begun in clear."""
    folder = tmp_path / "hidden"
    folder.mkdir()
    path = folder / "hidden.sqlite"
    turn(path, "closed", "samovar", hidden=True)
    turn(path, "mixed", "kettle", hidden=False)
    turn(path, "mixed", "teapot", hidden=True)
    turn(path, "clear", "spoon", hidden=False)
    return path


def test_without_the_key_the_place_is_shown_and_no_value(studio: Studio, hidden: Path) -> None:  # noqa: F811
    rows = studio("tree", hidden, "--thread", "closed", "--json").doc["rows"]
    assert all(row["encrypted"] for row in rows)
    assert any("messages" in row["channels"] for row in rows)
    shown = studio("show", hidden, "head", "--thread", "closed")
    assert "encrypted (AES): it needs its key, --aes-key-env NAME" in shown.out
    assert "samovar" not in studio("export", hidden, "--thread", "closed").out
    assert studio("search", hidden, "samovar", "--json").doc["hits"] == []


def test_with_the_key_every_value_is_read_and_nothing_is_changed(studio: Studio, hidden: Path, key: str) -> None:  # noqa: F811
    before = folder_snapshot(hidden.parent)
    doc = studio("show", hidden, "head", "--thread", "closed", "--json", "--aes-key-env", key).doc
    assert doc["values"]["item"] == "samovar"
    assert doc["next"] == ["approve"]
    assert "sell samovar" in str(doc["tasks"][0]["interrupts"][0]["value"])
    assert studio("search", hidden, "samovar", "--json", "--aes-key-env", key).doc["hits"]
    assert "samovar" in studio("ls", hidden, "--aes-key-env", key).out
    assert folder_snapshot(hidden.parent) == before


def test_a_thread_that_mixes_clear_and_encrypted_rows_is_flagged_everywhere(studio: Studio, hidden: Path) -> None:  # noqa: F811
    for call in (["ls", hidden], ["tree", hidden, "--thread", "mixed"]):
        problems = [one for one in studio(*call, "--json").doc["problems"] if one["kind"] == "mixed-encryption"]
        assert [one["where"] for one in problems] == ["thread mixed"]
        assert "mixed-encryption" in studio(*call).out
    with client_of(hidden) as client:
        assert "are encrypted, the others are in clear" in client.get("/f/hidden.sqlite?thread=mixed").text


@pytest.mark.parametrize(
    ("value", "word"), [(None, "not set"), ("", "empty"), ("short", "16, 24 or 32"), (KEY + "x", "16, 24 or 32")]
)
def test_a_key_that_is_none_is_one_clear_line_without_the_key(
    studio: Studio,  # noqa: F811
    hidden: Path,
    monkeypatch: pytest.MonkeyPatch,
    value: str | None,
    word: str,
) -> None:
    monkeypatch.delenv("K", raising=False)
    if value is not None:
        monkeypatch.setenv("K", value)
    found = studio("ls", hidden, "--aes-key-env", "K", "--debug")
    assert found.code == 2
    assert word in found.err
    assert not value or value not in found.err


def test_a_key_given_in_the_place_of_its_name_is_not_printed(studio: Studio, hidden: Path) -> None:  # noqa: F811
    found = studio("ls", hidden, "--aes-key-env", KEY)
    assert found.code == 2
    assert KEY not in found.err + found.out


def test_another_key_leaves_the_rows_closed_and_says_so(
    studio: Studio,  # noqa: F811
    hidden: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("K", "the wrong key 16")
    found = studio("ls", hidden, "--aes-key-env", "K", "--json").doc
    assert [one["kind"] for one in found["problems"] if "aes" in one["kind"]] == ["wrong-aes-key"]
    shown = studio("show", hidden, "head", "--thread", "closed", "--aes-key-env", "K")
    assert "encrypted (AES)" in shown.out
    assert "! wrong-aes-key" in shown.err and "do not open with this key: it is another key" in shown.err
    clear = studio("show", hidden, "head", "--thread", "clear", "--aes-key-env", "K")
    assert "spoon" in clear.out and (clear.code, clear.err) == (0, "")


@pytest.mark.parametrize(
    "call", [("show", "head"), ("show", "head", "--raw"), ("show", "head", "--path", ""), ("diff", "head"), ("export",)],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize("form", [(), ("--json",)], ids=["text", "json"])
def test_a_command_whose_row_another_key_leaves_closed_fails(
    studio: Studio,  # noqa: F811
    hidden: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: tuple[str, ...],
    form: tuple[str, ...],
) -> None:
    monkeypatch.setenv("K", "the wrong key 16")
    monkeypatch.setenv("RIGHT", KEY)

    def ask(thread: str, key: str) -> int:
        return studio(call[0], hidden, *call[1:], "--thread", thread, "--aes-key-env", key, *form).code

    assert [ask("closed", "K"), ask("closed", "RIGHT"), ask("clear", "K")] == [1, 0, 0]


def test_a_search_that_another_key_leaves_blind_fails(
    studio: Studio,  # noqa: F811
    hidden: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("K", "the wrong key 16")
    found = studio("search", hidden, "samovar", "--aes-key-env", "K")
    assert (found.code, found.out) == (1, "nothing found\n") and "! wrong-aes-key" in found.err


def test_a_damaged_row_is_told_from_a_wrong_key(studio: Studio, hidden: Path, key: str) -> None:  # noqa: F811
    with closing(sqlite3.connect(hidden)) as connection, connection:
        connection.execute(
            "UPDATE checkpoints SET checkpoint = zeroblob(40) WHERE thread_id = 'closed' AND checkpoint_id ="
            " (SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'closed')"
        )
    problems = studio("export", hidden, "--thread", "closed", "--aes-key-env", key).lines
    told = [one for doc in problems for one in doc["problems"] if one["kind"] == "wrong-aes-key"]
    assert told and "damaged" in told[0]["message"]


def test_missing_pycryptodome_names_the_extra(
    studio: Studio,  # noqa: F811
    hidden: Path,
    key: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "Crypto.Cipher", None)
    found = studio("ls", hidden, "--aes-key-env", key)
    assert found.code == studio("ls", hidden.parent, "--aes-key-env", key).code == 3
    assert "cannot be opened" in found.err
    assert 'pip install "checkpoint-studio[crypto]"' in found.err


@pytest.fixture
def opened(hidden: Path) -> Iterator[Session]:
    session = Session.open(str(hidden), aes_key=AesKey(KEY.encode()))
    yield session
    session.close()


def test_a_fork_is_stored_as_its_origin_is_and_langgraph_reads_it(opened: Session) -> None:
    origin = opened.resolve("head", "closed")
    made = opened.fork(ForkRequest(origin, Patch({"/item": "teapot"})))
    assert made.verified
    assert opened.state(made.address).values["item"] == "teapot"
    with closing(sqlite3.connect(made.stored_in)) as connection:
        found = connection.execute("SELECT type, checkpoint FROM checkpoints").fetchall()
        origins = connection.execute("SELECT origin_sha256 FROM studio_origins").fetchall()
        serde = SqliteSaver(connection, serde=encrypted()).get_tuple(config("closed", made.address.checkpoint_id))
    assert [tag for tag, _ in found] == ["msgpack+aes"]
    assert not any(b"teapot" in blob for _, blob in found)
    assert serde is not None
    assert serde.checkpoint["channel_values"]["item"] == "teapot"
    with closing(sqlite3.connect(opened.location)) as connection:
        query = "SELECT checkpoint FROM checkpoints WHERE checkpoint_id = ?"
        stored = connection.execute(query, (origin.checkpoint_id,)).fetchone()[0]
    assert origins == [(hashlib.sha256(stored).hexdigest(),)]  # of the bytes in the file: the same with and without the key


def test_without_the_key_a_fork_of_a_fork_is_refused(opened: Session, hidden: Path) -> None:
    made = opened.fork(ForkRequest(opened.resolve("head", "closed"), Patch({"/item": "teapot"})))
    with closing(Session.open(str(hidden))) as other:
        tree = other.tree("closed")
        assert made.address in tree
        assert tree.row(made.address).checkpoint.encrypted
        for at in (made.address, opened.resolve("head", "closed")):
            assert "--aes-key-env" in (other.preview(ForkRequest(at)).refused or "")
        assert other.state(made.address).values == {}


def test_a_branch_is_put_into_the_file_as_encrypted_as_it_is_and_not_without_the_key(opened: Session, hidden: Path) -> None:
    made = opened.fork(ForkRequest(opened.resolve("head", "closed"), Patch({"/item": "teapot"})))
    with closing(Session.open(str(hidden))) as other, pytest.raises(PatchError, match="encrypted") as refused:
        other.promotion(made.address)
    assert "--aes-key-env" in refused.value.hint
    opened.promote(opened.promotion(made.address))
    with closing(sqlite3.connect(opened.location)) as connection:
        query = "SELECT type, checkpoint FROM checkpoints WHERE checkpoint_id = ?"
        tag, blob = connection.execute(query, (made.address.checkpoint_id,)).fetchone()
        read = SqliteSaver(connection, serde=encrypted()).get_tuple(config("closed"))
    assert tag == "msgpack+aes" and b"teapot" not in blob
    assert read is not None and read.checkpoint["channel_values"]["item"] == "teapot"


def test_a_fork_in_place_is_encrypted_too(opened: Session) -> None:
    made = opened.fork(ForkRequest(opened.resolve("head", "closed"), Patch({"/price": 1.5}), in_place=True))
    assert made.verified
    with closing(sqlite3.connect(opened.location)) as connection:
        query = "SELECT type FROM checkpoints WHERE checkpoint_id = ?"
        assert connection.execute(query, (made.address.checkpoint_id,)).fetchone() == ("msgpack+aes",)


def test_two_sessions_with_and_without_the_key_share_nothing(opened: Session, hidden: Path) -> None:
    head = opened.resolve("head", "closed")
    with closing(Session.open(str(hidden))) as other:
        assert opened.state(head).values["item"] == "samovar"
        assert other.state(head).values == {}
        assert opened.state(head).values["item"] == "samovar"


def test_a_run_of_an_encrypted_thread_stores_only_encrypted_rows(tmp_path: Path) -> None:
    project, path = make_project(tmp_path / "project"), tmp_path / "state.sqlite"
    record(project, path, "asking", "t", {"n": 1}, serde=encrypted())
    session = Session.open(str(path), graph=spec(project, "asking"), aes_key=AesKey(KEY.encode()))
    with closing(session):
        head = session.resolve("head", "t")
        end = session.run(RunRequest(head, resume="yes", has_resume=True)).wait(60)
        assert end is not None
        assert end["status"] == "done", end
        done = session.state(Address(**end["head"]))
        assert done.values["log"][-2:] == ["ask:yes", "second saw 2"]
        with closing(sqlite3.connect(session.scratch_path)) as connection:
            for table in ("checkpoints", "writes"):
                tags = {tag for (tag,) in connection.execute(f"SELECT type FROM {table}")}
                assert tags and all(tag.endswith("+aes") for tag in tags), (table, tags)
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes(), file


def test_update_state_on_an_encrypted_thread_is_encrypted(tmp_path: Path) -> None:
    project, path = make_project(tmp_path / "project"), tmp_path / "state.sqlite"
    record(project, path, "asking", "t", {"n": 1}, serde=encrypted())
    session = Session.open(str(path), graph=spec(project, "asking"), aes_key=AesKey(KEY.encode()))
    with closing(session):
        request = ForkRequest(session.resolve("head", "t"), as_node="first", update={"n": 9}, is_update=True)
        assert session.preview(request).refused is None
        made = session.fork(request)
        assert session.state(made.address).values["n"] == 9
        assert session.state(made.address).checkpoint.encrypted


def test_the_pages_say_how_to_read_an_encrypted_state(hidden: Path) -> None:
    with client_of(hidden) as client:
        text = client.get("/f/hidden.sqlite?thread=closed&tab=state").text
    assert "encrypted (AES): it needs its key, --aes-key-env NAME" in text


def test_an_encrypted_state_is_not_called_empty(studio: Studio, hidden: Path) -> None:  # noqa: F811
    assert "  nothing" not in studio("show", hidden, "head", "--thread", "closed").out.split("state\n", 1)[1]
    with client_of(hidden) as client:
        assert "holds no state channels" not in client.get("/f/hidden.sqlite?thread=closed&tab=state").text


def test_the_fork_panel_of_an_encrypted_row_says_why_instead_of_offering_a_run(hidden: Path) -> None:
    with client_of(hidden) as client:
        closed, clear = (client.get(f"/f/hidden.sqlite?thread={name}").text for name in ("closed", "clear"))
    assert "cannot be forked without its key" in closed and "--aes-key-env NAME" in closed
    assert 'id="promise"' not in closed and "Fork only" not in closed and "Copy only" not in closed
    assert 'id="promise"' in clear and 'id="fork-refused"' not in clear


@pytest.mark.parametrize("command", ["ls", "tree", "edges"])
def test_a_key_that_opens_nothing_is_an_error_of_every_command(
    studio: Studio,  # noqa: F811
    hidden: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    monkeypatch.setenv("WRONG", "another 16 bytes")
    arguments = [command, hidden, *([] if command == "ls" else ["--thread", "closed"])]
    assert studio(*arguments).code == 0
    answer = studio(*arguments, "--aes-key-env", "WRONG")
    assert answer.code == 1 and "do not open with this key" in answer.out + answer.err
