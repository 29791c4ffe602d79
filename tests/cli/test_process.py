"""The command line as a process: lean, streaming, and quiet when its reader leaves."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from studio.assets import sample_folder

HEAVY = (
    "textual",
    "fastapi",
    "starlette",
    "uvicorn",
    "jinja2",
    "langgraph",
    "langchain_core",
    "pydantic",
    "sqlite_utils",
    "numpy",
    "click",
)


@pytest.mark.parametrize(
    "call",
    [["ls"], ["tree", "--thread", "done"], ["show", "head", "--thread", "done"], ["diff", "2", "--thread", "done"], ["export"]],
)
def test_reading_commands_start_without_what_they_do_not_need(shop: Path, call: list[str]) -> None:
    code = f"""
import sys
from studio.cli import main
assert main({[call[0], str(shop), *call[1:]]!r}) == 0
heavy = sorted({{name.split(".")[0] for name in sys.modules}} & set({HEAVY!r}))
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python_m_studio_is_the_same_program(shop: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "studio", "ls", str(shop)], capture_output=True, text=True, check=True)
    assert "what is the price" in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("what", ["file", "folder", "demo"])
def test_a_server_prints_one_json_object_with_its_link(shop: Path, what: str) -> None:
    words = {"file": ["web", str(shop)], "folder": ["web", str(shop.parent)], "demo": ["demo"]}[what]
    command = [sys.executable, "-m", "studio", *words, "--json", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        doc = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == ""
    assert doc["location"] == str({"file": shop, "folder": shop.parent, "demo": sample_folder()}[what])
    assert doc["url"].startswith("http://127.0.0.1:") and "token=" in doc["url"]


@pytest.mark.parametrize(
    ("call", "rows"), [(["ls"], "threads"), (["tree", "--thread", "long"], "rows")], ids=["ls", "tree"]
)  # fmt: skip
def test_a_file_that_is_lost_while_it_is_listed_leaves_a_whole_document(shop: Path, call: list[str], rows: str) -> None:
    with closing(sqlite3.connect(shop)) as connection, connection:
        for table in ("checkpoints", "writes"):
            names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            same = ", ".join(name for name in names if name != "thread_id")
            connection.execute(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 900) "
                f"INSERT INTO {table} (thread_id, {same}) SELECT 'more-' || i, {same} FROM {table}, n WHERE thread_id = 'paused'"
            )
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000) "
            "INSERT INTO checkpoints SELECT 'long', '', printf('%08d', i), printf('%08d', i - 1), type, checkpoint, metadata "
            "FROM checkpoints, n WHERE thread_id = 'paused' AND checkpoint_id = "
            "(SELECT max(checkpoint_id) FROM checkpoints WHERE thread_id = 'paused')"
        )
    command = [sys.executable, "-m", "studio", call[0], str(shop), *call[1:], "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        begun = process.stdout.read(3_000)  # it waits with the rest until somebody reads on
        other = shop.with_name("other")
        other.write_bytes(b"no database" * 1000)
        os.replace(other, shop)
        doc = json.loads(begun + process.stdout.read())
        assert process.stderr.read() == ""
    assert process.returncode == 3
    assert 0 < len(doc[rows]) < 9000, doc["problems"]
    assert "not-a-database" in {problem["kind"] for problem in doc["problems"]}


def test_a_reader_that_leaves_early_is_no_error(shop: Path) -> None:
    command = f"{sys.executable} -m studio export {shop} | head -c 10"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.parametrize("call", ["tree {} --thread done", "tree {} --thread done --json", "export {}", "ls {}"])
def test_a_closed_output_is_no_error(shop: Path, call: str) -> None:
    command = f"{sys.executable} -m studio {call.format(shop)}"
    done = subprocess.run(f"{command} >&-", shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    done = subprocess.run(f"{command} | true", shell=True, capture_output=True, text=True, check=False)
    assert done.stderr == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
def test_a_full_disk_is_one_line(shop: Path) -> None:
    command = f"{sys.executable} -m studio tree {shop} --thread done > /dev/full"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("studio: the output cannot be written: No space left on device")
    assert "Traceback" not in done.stderr


def test_a_terminal_without_unicode_gets_escapes(shop: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "studio", "tree", str(shop), "--thread", "forked"], capture_output=True, env=env, check=True
    )
    assert done.stdout.isascii()


def test_web_prints_its_link_at_once_and_ends_with_ctrl_c(shop: Path) -> None:
    command = [sys.executable, "-m", "studio", "web", str(shop), "--port", "0", "--no-browser"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    first = process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert "http://127.0.0.1:" in first
    assert "token=" in first
    assert "Traceback" not in errors
    assert process.returncode in (0, 130)
