"""Files, folders and callers whose names are not UTF-8 are forked like any other; what is refused leaves nothing behind."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from bs4 import BeautifulSoup

from studio import scratch_files
from studio.errors import PatchError
from studio.forks.scratch import Scratch, record_origin
from studio.model import Address
from studio.notes import Notes
from studio.requests import ForkRequest
from studio.session import Session
from studio.stores import open_store
from studio.tui.copying import link
from tests.cli.conftest import Answer, Studio, studio
from tests.tui.driving import driven, opened
from tests.web.conftest import client_of
from tests.web.test_acts import form_of, send

__all__ = ["Answer", "studio"]


@pytest.fixture
def odd(shop: Path, tmp_path: Path) -> Path:
    """The shop in a folder, and under a name, that are not UTF-8."""
    folder = tmp_path / os.fsdecode(b"d\xff")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 alone")
    path = folder / os.fsdecode(b"sh\xfeop.sqlite")
    path.write_bytes(shop.read_bytes())
    return path


def test_a_file_whose_name_is_not_utf_8_is_forked_listed_and_its_forks_deleted(odd: Path, studio: Studio) -> None:
    done = studio("fork", odd, "2", "--thread", "done", "--json")
    assert done.code == 0 and done.doc["verified"], done.err
    assert "s1" in studio("tree", odd, "--thread", "done").out
    (kept,) = scratch_files.list_files()
    assert (kept.store, kept.store_exists, kept.forks) == (os.path.realpath(odd), True, 1)
    assert "sh\\xfeop.sqlite" in studio("scratch", "ls").out
    assert studio("scratch", "path", odd).out.strip() == kept.path == done.doc["stored_in"]
    assert studio("ls", odd.parent).code == 0
    assert studio("scratch", "rm", odd, "--yes").code == 0
    assert scratch_files.list_files() == []


def test_a_write_into_such_a_file_is_noted_with_its_path(odd: Path) -> None:
    with closing(Session.open(str(odd))) as session:
        made = session.fork(ForkRequest(session.resolve("2", "done"), in_place=True))
        (entry,) = Notes(session.scratch.notes_path).audit()
        assert (entry.store, entry.added, entry.status) == (os.path.realpath(odd), (made.address,), "done")


def test_a_scratch_file_may_have_such_a_name(odd: Path, studio: Studio) -> None:
    place = odd.parent / os.fsdecode(b"forks\xff.sqlite")
    assert studio("fork", odd, "2", "--thread", "done", "--scratch", place).code == 0
    assert "s1" in studio("tree", odd, "--thread", "done", "--scratch", place).out


def test_the_browser_view_of_such_a_file_forks_it(odd: Path) -> None:
    with client_of(odd) as client:
        assert client.get("/").status_code == 200
        slug = str(client.get("/", follow_redirects=False).headers["location"]).split("?", 1)[0]
        page = BeautifulSoup(client.get(f"{slug}?thread=done").text, "html.parser")
        form = form_of(page)
        answer = send(client, form, "fork")
        assert answer.status_code in (200, 303), answer.text
        for kind in ("copy_link", "copy_python", "copy_test", "copy_id"):
            assert client.get(f"{slug}/copy/{kind}?thread=done").status_code == 200, kind
    assert [kept.forks for kept in scratch_files.list_files()] == [1]


def test_the_copied_command_for_such_a_file_is_one_that_a_shell_reads_back(odd: Path) -> None:
    made = link(str(odd), Address("done", "", "1"))
    assert made.isascii()
    if shutil.which("bash"):
        code = "import sys; print(ascii(sys.argv[3]))"
        run = subprocess.run(["bash", "-c", f"{sys.executable} -c '{code}' {made}"], capture_output=True, text=True, check=True)
        assert run.stdout.strip() == ascii(str(odd))
    with client_of(odd) as client:
        slug = str(client.get("/", follow_redirects=False).headers["location"]).split("?", 1)[0]
        assert f"web {made.split()[2]} " in client.get(f"{slug}/copy/copy_link?thread=done").text


async def test_the_terminal_ui_shows_and_copies_from_such_a_file(odd: Path, tmp_path: Path) -> None:
    with opened(odd, tmp_path / "forks.sqlite") as session:
        async with driven(session, session.resolve("2", "done")) as drive:
            await drive.loaded()
            assert "sh\\xfeop.sqlite" in drive.text()
            drive.main.do_copy_link()
            assert "$'" in drive.app.clipboard and r"\376" in drive.app.clipboard


def test_the_origin_of_a_fork_may_have_an_id_that_is_not_utf_8(shop: Path, tmp_path: Path) -> None:
    fork, origin = Address("t", "", "2"), Address("t", "", os.fsdecode(b"1\xff"))
    with closing(open_store(str(shop))) as store:
        scratch = Scratch(str(shop))
        scratch.ensure(store)
    with closing(sqlite3.connect(scratch.path)) as connection, connection:
        record_origin(connection, fork, origin, "0")
    assert scratch.origins() == {fork: (origin, "0")}
    Notes(scratch.notes_path).record_origin(fork, origin, "1")
    assert scratch._origins_in(scratch.notes_path) == {fork: (origin, "1")}


def test_a_fork_that_is_refused_makes_no_file(shop: Path) -> None:
    with closing(sqlite3.connect(shop)) as connection, connection:
        connection.execute("UPDATE checkpoints SET thread_id = CAST(x'74ff' AS TEXT) WHERE thread_id = 'done'")
        connection.execute("UPDATE writes SET thread_id = CAST(x'74ff' AS TEXT) WHERE thread_id = 'done'")
    with closing(Session.open(str(shop))) as session:
        at = session.resolve("2", os.fsdecode(b"t\xff"))
        with pytest.raises(PatchError):
            session.fork(ForkRequest(at))
        folder = Path(session.scratch_path).parent
        assert not folder.exists() or list(folder.iterdir()) == []
