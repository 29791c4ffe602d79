"""Reading changes no byte and no time, and leaves no file, whatever lies beside the database."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from studio.model import Address
from studio.stores import open_store, private_copy, sqlite_file
from studio.stores.sqlite import SqliteStore
from tests.factories import folder_snapshot, make_shop
from tests.stores.writers import left_behind, writer


def read_all(path: Path) -> int:
    """Use every reading method once; the number of checkpoints."""
    store = open_store(str(path))
    count = 0
    for keys in list(store.threads()):
        headers = store.checkpoints(keys.thread_id)
        count += len(headers)
        store.write_headers(keys.thread_id)
        addresses = [header.address for _, header in headers]
        assert len(store.raw(addresses)) == len(addresses)
        store.writes(addresses)
        assert len(list(store.scan(keys.thread_id))) == len(addresses)
        list(store.scan_writes(keys.thread_id, ["notes"]))
    assert len(list(store.scan())) == count
    store.token()
    store.problems()
    store.close()
    return count


def alone(path: Path) -> int:
    """What a plain reader sees in a copy of the file and its side files."""
    copy = path.parent.parent / "copy"
    shutil.copytree(path.parent, copy)
    connection = sqlite3.connect(copy / path.name)
    found: int = connection.execute("SELECT count(*) FROM checkpoints").fetchone()[0]
    connection.close()
    shutil.rmtree(copy)
    return found


@pytest.mark.parametrize("mode", ["wal", "delete", "truncate", "persist"])
def test_a_file_at_rest_stays_as_it_is_in_every_journal_mode(shop: Path, mode: str) -> None:
    connection = sqlite3.connect(shop)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("PRAGMA user_version=7")
    connection.close()
    before = folder_snapshot(shop.parent)
    assert read_all(shop) == alone(shop)
    assert folder_snapshot(shop.parent) == before


def test_a_log_that_was_left_behind_is_read_and_stays(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "add new 1", "add new 2")
    assert Path(f"{shop}-wal").stat().st_size > 0
    before = folder_snapshot(shop.parent)
    store = open_store(str(shop))
    assert [header.checkpoint_id for _, header in store.checkpoints("new")] == ["1", "2"]
    assert read_all(shop) == alone(shop)
    assert folder_snapshot(shop.parent) == before


def test_a_log_without_its_shared_memory_is_read_and_stays(shop: Path) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    os.unlink(f"{shop}-shm")
    before = folder_snapshot(shop.parent)
    assert read_all(shop) == alone(shop)
    assert open_store(str(shop)).checkpoints("new")
    assert folder_snapshot(shop.parent) == before


@pytest.mark.parametrize("size", [0, 32, 200])
@pytest.mark.parametrize("with_shm", [True, False])
def test_a_log_without_a_commit_is_not_deleted(shop: Path, size: int, with_shm: bool) -> None:
    left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    log = Path(f"{shop}-wal")
    log.write_bytes(log.read_bytes()[:size])
    if not with_shm:
        os.unlink(f"{shop}-shm")
    before = folder_snapshot(shop.parent)
    assert read_all(shop) == alone(shop)
    assert folder_snapshot(shop.parent) == before


def test_a_log_that_is_no_log_is_not_deleted(shop: Path) -> None:
    Path(f"{shop}-wal").write_bytes(b"not a log at all" * 100)
    before = folder_snapshot(shop.parent)
    assert read_all(shop) == alone(shop)
    assert folder_snapshot(shop.parent) == before


def test_rows_that_are_only_in_the_log_are_read(tmp_path: Path, shop: Path) -> None:
    """How 12 % of the files in the wild are: the main file holds a header and nothing else."""
    folder = tmp_path / "log"
    folder.mkdir()
    path = folder / "a.sqlite"
    (schema,) = sqlite3.connect(shop).execute("SELECT sql FROM sqlite_master WHERE name = 'checkpoints'").fetchone()
    left_behind(path, "PRAGMA journal_mode=wal", " ".join(schema.split()), "add a 1", "add a 2")
    assert path.stat().st_size <= 4096
    before = folder_snapshot(folder)
    for remove_shm in (False, True):
        if remove_shm:
            os.unlink(f"{path}-shm")
            del before["a.sqlite-shm"]
        assert len(open_store(str(path)).checkpoints("a")) == 2
        assert folder_snapshot(folder) == before


def test_an_idle_writer_keeps_its_files_and_removes_them_at_its_end(shop: Path) -> None:
    rows = alone(shop)
    with writer(shop) as other:
        other("PRAGMA journal_mode=wal")
        other("add live 1")
        before = folder_snapshot(shop.parent)
        assert set(before) == {"shop.sqlite", "shop.sqlite-wal", "shop.sqlite-shm"}
        store = open_store(str(shop))
        assert len(store.checkpoints("live")) == 1
        assert read_all(shop) == rows + 1
        assert folder_snapshot(shop.parent) == before
        other("add live 2")
        assert [header.checkpoint_id for _, header in store.checkpoints("live", store.checkpoints("live")[0][0])] == ["2"]
        other("close")
        assert set(folder_snapshot(shop.parent)) == {"shop.sqlite"}
        assert len(store.checkpoints("live")) == 2


def test_a_writer_that_ends_during_a_look_still_removes_its_files(shop: Path) -> None:
    with writer(shop) as other:
        other("PRAGMA journal_mode=wal")
        other("add live 1")
        store = SqliteStore(str(shop))

        def work() -> int:
            other("close")
            return len(store.checkpoints("live"))

        assert store.together(work) == 1
        assert set(folder_snapshot(shop.parent)) == {"shop.sqlite"}


def test_a_large_file_is_read_under_the_locks_of_its_writer(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "LIVE_COPY_BYTES", 0)
    monkeypatch.setattr(private_copy, "PrivateCopy", None)
    with writer(shop) as other:
        other("PRAGMA journal_mode=wal")
        other("add live 1")
        before = folder_snapshot(shop.parent)
        store = open_store(str(shop))
        assert len(store.checkpoints("live")) == 1
        assert folder_snapshot(shop.parent) == before
        other("add live 2")
        assert len(store.checkpoints("live")) == 2
        other("close")
        assert set(folder_snapshot(shop.parent)) == {"shop.sqlite"}


def test_between_looks_a_writer_can_empty_its_log(shop: Path) -> None:
    with writer(shop) as other:
        other("PRAGMA journal_mode=wal")
        other("add live 1")
        store = open_store(str(shop))
        rows = store.scan()
        next(rows)
        other("PRAGMA wal_checkpoint(TRUNCATE)")
        assert Path(f"{shop}-wal").stat().st_size == 0
        assert store.checkpoints("live")
        assert Path(f"{shop}-wal").stat().st_size == 0
        other("add live 2")
        assert len(store.checkpoints("live")) == 2


def test_a_writer_in_the_middle_of_a_transaction_is_read_past(shop: Path) -> None:
    before, rows = folder_snapshot(shop.parent), alone(shop)
    with writer(shop) as other:
        other("PRAGMA journal_mode=delete")
        other("BEGIN IMMEDIATE")
        other("add live 1")
        assert Path(f"{shop}-journal").exists()
        store = open_store(str(shop))
        assert store.checkpoints("live") == []
        assert read_all(shop) == rows
        other("COMMIT")
        assert len(store.checkpoints("live")) == 1
    assert set(folder_snapshot(shop.parent)) == set(before)


def test_a_cut_off_transaction_is_rolled_back_in_a_private_copy_only(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = alone(shop)
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    change = "UPDATE checkpoints SET metadata = zeroblob(20000)"
    left_behind(shop, "PRAGMA journal_mode=delete", "PRAGMA cache_size=1", "BEGIN IMMEDIATE", change)
    assert Path(f"{shop}-journal").stat().st_size > 0
    before = folder_snapshot(shop.parent)
    store = open_store(str(shop))
    assert all(header.step is not None for _, header in store.checkpoints("done"))
    assert [problem.kind for problem in store.problems()] == ["journal-left"]
    assert folder_snapshot(shop.parent) == before
    (folder,) = copies.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    store.close()
    assert list(copies.iterdir()) == []
    assert read_all(shop) == rows


def test_copies_of_a_killed_process_are_swept(tmp_path: Path, shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    kept = private_copy.PrivateCopy(str(shop))
    stale = tmp_path / f"{private_copy.PREFIX}stale"
    stale.mkdir()
    (stale / "owner").touch()
    (stale / "copy.sqlite").write_bytes(b"x")
    for folder in (stale, Path(kept.folder)):
        os.utime(folder, (1, 1))
    monkeypatch.setattr(private_copy, "_tidied", False)
    open_store(str(shop)).close()
    assert not stale.exists()
    assert Path(kept.path).exists()
    kept.remove()


def _open_to_all(shop: Path) -> None:
    """Another user must get here, however deep the test's folder lies."""
    for parent in shop.resolve().parents:
        if any(part.startswith("pytest-of-") for part in parent.parts):
            parent.chmod(0o755)


def _as_nobody(program: str, shop: Path) -> subprocess.CompletedProcess[str]:
    become = "import os, studio.stores.sqlite; os.setgid(65534); os.setuid(65534);"
    return subprocess.run([sys.executable, "-c", become + program, str(shop)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("name", private_copy.ENDINGS)
@pytest.mark.parametrize("program", ["a script", "the server"])
def test_copies_go_away_when_a_signal_ends_the_process(shop: Path, tmp_path: Path, name: str, program: str) -> None:
    left_behind(
        shop,
        "PRAGMA journal_mode=delete",
        "PRAGMA cache_size=1",
        "BEGIN IMMEDIATE",
        "UPDATE checkpoints SET type = zeroblob(9000)",
    )
    (tmp_path / "copies").mkdir()
    script = "import sys, time, studio.stores as s; kept = s.open_store(sys.argv[1]); print('ready', flush=True); time.sleep(60)"
    call = (
        ["-c", script, str(shop)] if program == "a script" else ["-m", "studio", "web", str(shop), "--no-browser", "--port", "0"]
    )
    process = subprocess.Popen(
        [sys.executable, *call], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "TMPDIR": str(tmp_path / "copies")},
        preexec_fn=lambda: signal.signal(getattr(signal, name), signal.SIG_DFL),  # nohup ignores one
    )  # fmt: skip
    assert process.stdout is not None
    while (line := process.stdout.readline()) and line != "ready\n" and "http://" not in line:
        pass
    assert list((tmp_path / "copies").iterdir())
    process.send_signal(getattr(signal, name))
    assert process.wait(20) == -getattr(signal, name)
    process.stdout.close()
    assert not list((tmp_path / "copies").iterdir())


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become someone else")
@pytest.mark.parametrize("log", ["none", "with shm", "without shm"])
def test_a_read_only_folder_is_no_obstacle(shop: Path, log: str) -> None:
    rows = alone(shop) + (log != "none")
    if log != "none":
        left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    if log == "without shm":
        os.unlink(f"{shop}-shm")
    _open_to_all(shop)
    for file in shop.parent.iterdir():
        file.chmod(0o444)
    shop.parent.chmod(0o555)
    before = folder_snapshot(shop.parent)
    program = (
        "import sys, studio.stores.sqlite as m; s = m.SqliteStore(sys.argv[1]);"
        "print(sum(len(s.checkpoints(k.thread_id)) for k in s.threads()), [p.kind for p in s.problems()])"
    )
    done = _as_nobody(program, shop)
    assert done.stdout.strip() == f"{rows} []", done.stderr
    assert folder_snapshot(shop.parent) == before


@pytest.mark.parametrize("suffix", ["-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["folder", "pipe"])
@pytest.mark.parametrize("beside", ["nothing", "log", "journal"])
def test_what_is_no_file_in_the_place_of_a_side_file_is_left_alone(shop: Path, suffix: str, kind: str, beside: str) -> None:
    rows = alone(shop)
    if beside == "log":
        left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    elif beside == "journal":
        left_behind(shop, "PRAGMA journal_mode=delete", "PRAGMA cache_size=1", "BEGIN IMMEDIATE", "DELETE FROM checkpoints")
    odd = Path(f"{shop}{suffix}")
    odd.unlink(missing_ok=True)
    odd.mkdir() if kind == "folder" else os.mkfifo(odd)
    before = {one.name: one.stat().st_mtime_ns for one in shop.parent.iterdir()}
    program = (
        "import sys, studio.stores.sqlite as m; s = m.SqliteStore(sys.argv[1]);"
        "print(sum(len(s.checkpoints(k.thread_id)) for k in s.threads()), [p.kind + p.where for p in s.problems()])"
    )
    done = subprocess.run([sys.executable, "-c", program, str(shop)], capture_output=True, text=True, check=False, timeout=20)
    if not (beside == "journal" and suffix == "-journal"):  # then what it held is gone
        assert done.stdout.split()[0] == str(rows + (beside == "log" and suffix != "-wal")), done.stderr
    assert f"odd-side-file{odd}'" in done.stdout, done.stderr
    assert {one.name: one.stat().st_mtime_ns for one in shop.parent.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become someone else")
@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_side_file_that_may_not_be_read_is_an_error(shop: Path, suffix: str) -> None:
    change = "UPDATE checkpoints SET metadata = zeroblob(20000)"
    if suffix == "-wal":
        left_behind(shop, "PRAGMA journal_mode=wal", "add new 1")
    else:
        left_behind(shop, "PRAGMA journal_mode=delete", "PRAGMA cache_size=1", "BEGIN IMMEDIATE", change)
    _open_to_all(shop)
    Path(f"{shop}{suffix}").chmod(0)
    program = (
        "import sys, studio.stores as m\n"
        "try: m.open_store(sys.argv[1])\n"
        "except m.OpenError as error: print(error.message, error.hint)"
    )
    done = _as_nobody(program, shop)
    assert f"{shop}{suffix} cannot be read: permission denied" in done.stdout, done.stderr
    assert ("--without-wal" in done.stdout) == (suffix == "-wal")


def test_the_token_changes_exactly_with_the_file(shop: Path) -> None:
    store = open_store(str(shop))
    token = store.token()
    read_all(shop)
    assert store.token() == token
    with writer(shop) as other:
        other("add live 1")
        after = store.token()
        assert after != token
        assert store.token() == after
    assert store.raw([Address("live", "", "1")])


def test_rows_read_before_are_read_again_after_a_change(shop: Path) -> None:
    store = open_store(str(shop))
    address = store.checkpoints("done")[0][1].address
    assert store.raw([address])[address].metadata
    with writer(shop) as other:
        other(f"UPDATE checkpoints SET metadata = x'7b7d' WHERE checkpoint_id = '{address.checkpoint_id}'")
    assert store.raw([address])[address].metadata == b"{}"


WRITING = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA cache_size = 1")
connection.execute("BEGIN IMMEDIATE")
for number in range(200):
    row = ("unseen", "", f"1f000000-0000-6000-8000-{number:012x}")
    columns = "thread_id, checkpoint_ns, checkpoint_id, checkpoint"
    connection.execute(f"INSERT INTO checkpoints ({columns}) VALUES (?, ?, ?, zeroblob(5000))", row)
print("written", flush=True)
sys.stdin.readline()
connection.execute("COMMIT")
print("done", flush=True)
"""


def test_a_program_in_its_transaction_is_told_as_that_and_no_longer_once_it_has_ended(tmp_path: Path) -> None:
    """Its pages are in the file already: what is shown is the state before."""
    path = make_shop(tmp_path / "shop.sqlite")
    sqlite3.connect(path).execute("PRAGMA journal_mode = DELETE").connection.close()
    command = [sys.executable, "-c", WRITING, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None and writer.stdin is not None
        assert writer.stdout.readline() == "written\n"
        store = SqliteStore(str(path))
        assert [keys.thread_id for keys in store.threads()] == ["done", "failed", "forked", "paused"]
        (told,) = store.problems()
        assert told.kind == "being-written" and "A program is writing" in told.message
        writer.stdin.write("\n")
        writer.stdin.flush()
        assert writer.stdout.readline() == "done\n"
        assert [keys.thread_id for keys in store.threads()][-1] == "unseen"
        assert store.problems() == []
        store.close()
    assert writer.returncode == 0
