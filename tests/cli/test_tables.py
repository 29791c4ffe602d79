"""`studio tables`, and what `studio ls` says of other tables: LangGraph's store and cache, an application's own."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest
from langgraph.cache.sqlite import SqliteCache
from langgraph.store.sqlite import SqliteStore

from tests.cli.conftest import Studio
from tests.factories import folder_snapshot
from tests.stores.test_table_sets import change

SECRET = "sk-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def app(shop: Path) -> Path:
    """The shop's checkpoints beside a real store, a real cache and a table of users."""
    with SqliteStore.from_conn_string(str(shop)) as store:
        store.setup()
        for number in range(6):
            store.put(("users", f"u{number % 2}", "facts"), f"fact-{number}", {"text": f"likes tea {number}"})
        store.put(("settings",), "limits", {"max": 3, "token": SECRET})
        store.put(("settings",), "long", {"text": "x" * 100_000})
    cache = SqliteCache(path=str(shop))
    cache.set({(("shop", "web"), "k1"): ({"price": 49.9}, None), (("shop", "docs"), "k2"): ({"ok": True}, 600)})
    cache._conn.close()
    with closing(sqlite3.connect(shop, isolation_level=None)) as connection:
        connection.execute('CREATE TABLE "app users" (id INTEGER PRIMARY KEY, email TEXT, password TEXT, avatar BLOB)')
        connection.execute('INSERT INTO "app users" VALUES (1, ?, ?, ?)', ["a\x1b[31m@b.org", "hunter2", bytes(5_000)])
    return shop


def test_ls_names_what_else_the_file_holds(app: Path, studio: Studio) -> None:
    before = folder_snapshot(app.parent)
    said = studio("ls", app).out
    assert (
        "also in this file: store (8 items), cache (2 entries), store_migrations, app users — studio tables shop.sqlite" in said
    )
    doc = studio("ls", app, "--json").doc
    kinds = {table["name"]: (table["kind"], table["rows"]) for table in doc["tables"]}
    assert kinds["store"] == ("store", 8)
    assert kinds["cache"] == ("cache", 2)
    assert kinds["app users"] == ("other", 1)
    assert kinds["checkpoints"] == ("checkpoints", 29)
    assert [(one["checkpoints"], one["writes"], one["rows"], one["shown"]) for one in doc["table_sets"]] == [
        ("checkpoints", "writes", 29, True)
    ]
    assert folder_snapshot(app.parent) == before


def test_one_of_a_kind_is_counted_as_one(app: Path, studio: Studio) -> None:
    change(app, "DELETE FROM store WHERE key != 'limits'", "DELETE FROM cache WHERE key != 'k1'")
    assert "also in this file: store (1 item), cache (1 entry)," in studio("ls", app).out


def test_a_file_of_checkpoints_alone_says_nothing_of_others(shop: Path, studio: Studio) -> None:
    assert "in this file" not in studio("ls", shop).out


def test_tables_are_listed_and_said_not_to_be_rewound(app: Path, studio: Studio) -> None:
    said = studio("tables", app).out.splitlines()
    by_name = {line.split("  ")[0]: line for line in said}
    for name in ("store", "cache", "app users"):
        assert "not versioned: time travel does not rewind it" in by_name[name]
    assert by_name["checkpoints"].endswith("shown")


def test_the_entries_of_a_store_are_listed_by_namespace(app: Path, studio: Studio) -> None:
    before = folder_snapshot(app.parent)
    doc = studio("tables", app, "store", "--json").doc
    assert doc["versioned"] is False
    assert [(one["namespace"], one["rows"]) for one in doc["namespaces"]] == [
        ("settings", 2), ("users.u0.facts", 3), ("users.u1.facts", 3),
    ]  # fmt: skip
    items = {(item["namespace"], item["key"]): item for item in doc["items"]}
    assert items["users.u1.facts", "fact-3"]["value"] == {"text": "likes tea 3"}
    assert items["settings", "limits"]["value"]["token"] == {"$masked": "named like a secret"}
    assert (items["settings", "long"]["value"], items["settings", "long"]["whole"]) == (None, False)
    inside = studio("tables", app, "store", "--namespace", "users.u1", "--limit", 2, "--json").doc
    assert [item["key"] for item in inside["items"]] == ["fact-1", "fact-3"]
    assert inside["more"] is True
    assert folder_snapshot(app.parent) == before


def test_one_key_is_read_whole(app: Path, studio: Studio) -> None:
    doc = studio("tables", app, "store", "--key", "long", "--json").doc
    assert [len(item["value"]["text"]) for item in doc["items"]] == [100_000]
    assert "x" * 100_000 in studio("tables", app, "store", "--key", "long").out


def test_a_cached_value_is_decoded_without_importing_anything(app: Path, studio: Studio) -> None:
    import pickle

    change(app, "INSERT INTO cache VALUES ('shop', 'evil', NULL, 'pickle', x'" + pickle.dumps(time.sleep).hex() + "')")
    doc = studio("tables", app, "cache", "--json").doc
    values = {item["key"]: item["value"] for item in doc["items"]}
    assert values["k1"] == {"price": 49.9}
    assert "time.sleep" in json.dumps(values["evil"])
    assert next(item for item in doc["items"] if item["key"] == "k2")["expiry"].startswith("20")


def test_rows_of_an_application_are_gated_and_masked_and_long_ones_only_counted(app: Path, studio: Studio) -> None:
    said = studio("tables", app, "app users").out
    assert "hunter2" not in said and "\x1b" not in said
    assert "a\\x1b[31m@b.org" in said
    (item,) = studio("tables", app, "app users", "--json").doc["items"]
    assert item["cut"] == {"avatar": 5_000}
    assert item["row"]["password"] == {"$masked": "named like a secret"}
    shown = studio("tables", app, "store", "--show-secrets", "--namespace", "settings")
    assert SECRET in shown.out and SECRET not in studio("tables", app, "store").out


def test_what_is_not_there_is_said_in_one_line(app: Path, studio: Studio) -> None:
    wrong = studio("tables", app, "nope")
    assert (wrong.code, wrong.err.splitlines()[0]) == (3, "studio: no table 'nope' in this file")
    assert "app users" in wrong.err
    assert studio("tables", app, "store", "--key", "nope").code == 3
    assert studio("tables", app, "app users", "--namespace", "x").code == 2
    assert studio("tables", app, "--key", "x").code == 2


def test_a_million_rows_and_values_of_many_megabytes_are_listed_at_once(app: Path, studio: Studio) -> None:
    with closing(sqlite3.connect(app)) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000) "
            "INSERT INTO store (prefix, key, value) SELECT 'many.' || (i % 3), 'k' || i, '{}' FROM n"
        )
        connection.executemany(
            "INSERT INTO store (prefix, key, value) VALUES ('big', ?, ?)",
            [(f"b{n}", '"' + "y" * 20_000_000 + '"') for n in range(3)],
        )
        connection.commit()
    start = time.perf_counter()
    doc = studio("tables", app, "store", "--namespace", "big", "--json").doc
    studio("ls", app)
    assert time.perf_counter() - start < 3
    assert [(item["key"], item["size_bytes"], item["whole"]) for item in doc["items"]] == [
        (f"b{number}", 20_000_002, False) for number in range(3)
    ]
    assert {"namespace": "many.2", "rows": 1000, "more": True} in doc["namespaces"]
    assert "store (more than 10,000 items)" in studio("ls", app).out


def test_damaged_and_odd_tables_are_listed_as_far_as_they_can_be_read(app: Path, studio: Studio) -> None:
    change(
        app, "CREATE TABLE pairs (k TEXT PRIMARY KEY, rowid TEXT, v) WITHOUT ROWID", "INSERT INTO pairs VALUES ('a', 'b', 1.5)",
        "CREATE TABLE odd (rowid, oid, _rowid_, \"a'\"\"b\")", "INSERT INTO odd VALUES ('x', 'y', 'z', CAST(x'ff41' AS TEXT))",
        "INSERT INTO store (prefix, key, value) VALUES (CAST(x'ff' AS TEXT), '', 'not json'), ('n', 'null', 7)",
        "CREATE TABLE hollow (a)",
    )  # fmt: skip
    assert studio("tables", app, "pairs", "--json").doc["items"][0]["row"] == {"k": "a", "rowid": "b", "v": 1.5}
    assert studio("tables", app, "odd", "--json").doc["items"][0]["row"]["a'\"b"] == "\udcffA"
    assert studio("tables", app, "hollow", "--json").doc["items"] == []
    assert studio("tables", app, "store").code == 0
    with closing(sqlite3.connect(app)) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'cache'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with open(app, "r+b") as file:
        file.seek((root - 1) * size)
        file.write(b"\xee" * size)
    assert studio("ls", app).code == 0
    broken = studio("tables", app, "cache", "--json")
    assert broken.code == 0 and "damaged" in broken.doc["lost"]


def with_odd_columns(path: Path) -> None:
    """A table `latin` with a column whose name is no UTF-8, and `wide` with more columns than are read."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE latin (a, b)")
        connection.execute("INSERT INTO latin VALUES (1, 2)")
        connection.execute(f"CREATE TABLE wide ({', '.join(f'c{number}' for number in range(26))})")
        connection.execute("INSERT INTO wide (c0) VALUES (1)")
        connection.execute("PRAGMA writable_schema = ON")
        sql = b"CREATE TABLE latin (a, caf\xe9)"
        connection.execute("UPDATE sqlite_master SET sql = CAST(? AS TEXT) WHERE name = 'latin'", [sql])


def test_a_column_that_is_left_out_is_told(app: Path, studio: Studio) -> None:
    with_odd_columns(app)
    latin = studio("tables", app, "latin", "--json").doc
    assert [item["row"] for item in latin["items"]] == [{"a": 1}]
    (problem,) = latin["problems"]
    assert (problem["kind"], problem["where"]) == ("undecodable-name", "table latin")
    assert problem["message"].startswith("1 column is left out (caf")
    assert "! undecodable-name table latin: 1 column is left out (caf" in studio("tables", app, "latin").out
    (problem,) = studio("tables", app, "wide", "--json").doc["problems"]
    assert problem["message"] == "2 columns are left out (c24, c25): only the first 24 are read."
    assert studio("tables", app, "store", "--json").doc["problems"] == []


def test_a_table_set_is_chosen_on_every_command(
    app: Path, studio: Studio, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("STUDIO_DATA_DIR", str(tmp_path / "kept"))
    change(app, "ALTER TABLE checkpoints RENAME TO lg_cp", "ALTER TABLE writes RENAME TO lg_wr")
    change(
        app, "CREATE TABLE checkpoints AS SELECT * FROM lg_cp WHERE thread_id = 'paused'",
        "CREATE TABLE writes AS SELECT * FROM lg_wr WHERE thread_id = 'paused'",
    )  # fmt: skip
    said = studio("ls", app).out
    assert "other checkpoints in this file: lg_cp (29 rows) — studio ls shop.sqlite --tables NAME" in said
    assert said.count("lg_cp") == 1 and "second-table" in {one["kind"] for one in studio("ls", app, "--json").doc["problems"]}
    assert studio("ls", app, "--tables", "lg_cp").out.startswith("shown: table lg_cp\n")
    assert {one["tables"] for one in studio("ls", app, "--tables", "lg_cp", "--json").doc["threads"]} == {"lg_cp"}
    assert {one["tables"] for one in studio("ls", app, "--json").doc["threads"]} == {"checkpoints"}
    chosen = ("--thread", "done", "--tables", "lg_cp")
    assert studio("tree", app, *chosen).code == 0
    assert studio("tree", app, "--thread", "done").code == 3
    assert studio("show", app, "head", *chosen).code == 0
    assert studio("diff", app, "head", *chosen).code == 0
    assert studio("search", app, "kettle", "--tables", "lg_cp").out
    assert studio("export", app, "--tables", "lg_cp").code == 0
    made = studio("fork", app, "head", *chosen, "--set", "/price=1", "--json").doc
    assert made["stored_in"] == studio("scratch", "path", app, "--tables", "lg_cp", "--json").doc["path"]
    assert made["stored_in"] != studio("scratch", "path", app, "--json").doc["path"]
    assert [one["part"] for one in studio("scratch", "ls", "--json").doc["files"]] == ["tables lg_cp"]
    assert studio("scratch", "rm", app, "--tables", "lg_cp", "--yes").code == 0
    wrong = studio("ls", app, "--tables", "nope")
    assert wrong.code == 3 and "lg_cp" in wrong.err


def test_the_header_of_ls_says_that_the_wal_is_left_out(shop: Path, studio: Studio) -> None:
    from tests.stores.test_opening import left_behind

    left_behind(shop, "PRAGMA journal_mode=wal", "DELETE FROM checkpoints WHERE thread_id = 'done'")
    assert "--without-wal shows the file without it" in studio("ls", shop).out
    said = studio("ls", shop, "--without-wal")
    assert "shown: without its -wal" in said.out
    assert "done" in [thread["thread_id"] for thread in studio("ls", shop, "--without-wal", "--json").doc["threads"]]
    assert studio("show", shop, "head", "--thread", "done", "--without-wal").code == 0
