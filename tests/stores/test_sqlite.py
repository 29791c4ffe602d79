"""The store answers with what the real saver wrote, in every layout."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from studio.model import Address
from studio.stores import open_store
from studio.stores.base import Capability
from studio.stores.sqlite import SqliteStore
from tests.factories import saver_at
from tests.stores.writers import writer

THREADS = ["done", "failed", "forked", "paused"]


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_threads_are_listed_with_counts_and_the_checkpoint_that_would_be_resumed(shop: Path) -> None:
    store = open_store(str(shop))
    with sqlite3.connect(shop) as connection:
        for keys in store.threads():
            query = "SELECT count(*), max(checkpoint_id) FROM checkpoints WHERE thread_id = ?"
            count, latest = connection.execute(query, (keys.thread_id,)).fetchone()
            assert (keys.checkpoints, keys.latest, keys.namespaces) == (count, latest, ("",))
    connection.close()
    assert [keys.thread_id for keys in store.threads()] == THREADS


def test_headers_are_what_the_saver_lists(shop: Path) -> None:
    copy = shop.parent.parent / "copy.sqlite"
    copy.write_bytes(shop.read_bytes())
    store = open_store(str(shop))
    with saver_at(copy) as saver:
        for thread in THREADS:
            found = {header.checkpoint_id: header for _, header in store.checkpoints(thread)}
            listed = list(saver.list({"configurable": {"thread_id": thread}}))
            assert len(listed) == len(found)
            for entry in listed:
                header = found[entry.checkpoint["id"]]
                parent = entry.parent_config["configurable"]["checkpoint_id"] if entry.parent_config else None
                assert header.parent_checkpoint_id == parent
                assert (header.step, header.source) == (entry.metadata["step"], entry.metadata["source"])
                assert header.created_at == entry.checkpoint["ts"]
                assert header.origin == "base"


def test_checkpoints_come_oldest_first_and_after_a_cursor_only_newer_ones(shop: Path) -> None:
    store = open_store(str(shop))
    found = store.checkpoints("done")
    assert [cursor for cursor, _ in found] == sorted(cursor for cursor, _ in found)
    middle = found[3][0]
    assert store.checkpoints("done", middle) == found[4:]
    assert store.checkpoints("done", found[-1][0]) == []
    rows = store.write_headers("done")
    assert store.write_headers("done", rows[2][0]) == rows[3:]


def test_writes_under_some_checkpoints_are_those_that_the_whole_thread_has_there(shop: Path) -> None:
    store = open_store(str(shop))
    for thread in THREADS:
        rows = [row for _, row in store.write_headers(thread)]
        addresses = [header.address for _, header in store.checkpoints(thread)]
        for wanted in (addresses, addresses[:1], addresses * 20, [*addresses, Address(thread, "", "zz")], []):
            found = store.write_headers_under(wanted)
            for address in addresses:
                under = [row for row in rows if row.checkpoint_id == address.checkpoint_id]
                assert list(found.get(address, ())) == (under if address in wanted else [])
            assert all(found.values())
        tasks = {(row.checkpoint_ns, row.checkpoint_id, row.task_id) for row in rows}
        assert sorted(store.task_keys(thread)) == sorted(tasks)
        end = store.writes_end(thread)
        assert end == store.write_headers(thread)[-1][0] and store.write_headers(thread, end) == []
    assert store.writes_end("nobody") == 0 and store.task_keys("nobody") == []


def test_write_headers_have_no_values_and_writes_have(shop: Path) -> None:
    store = open_store(str(shop))
    headers = [row for _, row in store.write_headers("done")]
    assert all(row.value is None for row in headers)
    addresses = [header.address for _, header in store.checkpoints("done")]
    full = store.writes(addresses)
    assert sum(len(rows) for rows in full.values()) == len(headers)
    for rows in full.values():
        assert all(isinstance(row.value, bytes) for row in rows)
        assert list(rows) == sorted(rows, key=lambda row: (row.task_path or "", row.task_id, row.idx))


def test_raw_rows_are_the_stored_bytes_and_unknown_addresses_are_left_out(shop: Path) -> None:
    store = open_store(str(shop))
    address = store.checkpoints("done")[-1][1].address
    ident = address.checkpoint_id
    unknown = [Address("done", "x", ident), Address("other", "", ident), Address("done", "", "' OR 1=1 --")]
    found = store.raw([address, *unknown])
    assert list(found) == [address]
    with sqlite3.connect(shop) as connection:
        query = "SELECT type, checkpoint, metadata FROM checkpoints WHERE checkpoint_id = ?"
        row = connection.execute(query, (ident,)).fetchone()
    connection.close()
    raw = found[address]
    assert (raw.tag, raw.blob, raw.metadata) == row
    assert raw.header.size_bytes == len(row[1]) + len(row[2])
    assert store.writes(unknown) == {}


def test_a_scan_gives_every_row_once_thread_by_thread(shop: Path) -> None:
    store = open_store(str(shop))
    scanned = [raw.header.address for raw in store.scan()]
    expected = [header.address for thread in THREADS for _, header in store.checkpoints(thread)]
    assert scanned == expected
    assert [raw.header.address for raw in store.scan("paused")] == [header.address for _, header in store.checkpoints("paused")]


def test_a_scan_holds_nothing_between_its_pages(shop: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("studio.stores.queries.PAGE_BYTES", 1)
    store = open_store(str(shop))
    scan = store.scan()
    next(scan)
    with writer(shop) as other:
        other("BEGIN EXCLUSIVE")
        other("COMMIT")
    assert len(list(scan)) == sum(keys.checkpoints for keys in store.threads()) - 1


def test_scan_writes_gives_the_named_channels_in_the_order_of_application(shop: Path) -> None:
    store = open_store(str(shop))
    rows = list(store.scan_writes("done", ["notes", "price"]))
    assert {row.channel for row in rows} == {"notes", "price"}
    assert all(row.value is not None for row in rows)
    keys = [(row.checkpoint_id, row.task_path, row.task_id, row.idx) for row in rows]
    assert keys == sorted(keys)
    assert list(store.scan_writes("done", [])) == []


def test_outline_tells_the_same_as_the_headers(shop: Path) -> None:
    store = SqliteStore(str(shop))
    for thread in THREADS:
        headers = [header for _, header in store.checkpoints(thread)]
        whole = store.outline(thread)
        assert whole is not None
        assert set(whole.links) == {(h.checkpoint_ns, h.checkpoint_id, h.parent_checkpoint_id) for h in headers}
        assert whole.size_bytes == sum(h.size_bytes for h in headers)
        times = [h.created_at for h in headers if h.created_at]
        assert (whole.first_at, whole.last_at) == (min(times), max(times))


def test_many_reads_together_see_one_snapshot(shop: Path) -> None:
    change(shop, "PRAGMA journal_mode=wal")
    with writer(shop) as other:
        other("add live 1")
        store = SqliteStore(str(shop))

        def work() -> tuple[int, int]:
            before = len(store.checkpoints("live"))
            other(f"add live {len(store.checkpoints('live')) + before + 1000}")
            return before, len(store.checkpoints("live"))

        assert store.together(work) == (1, 1)
        assert len(store.checkpoints("live")) == 2


def no_task_path(path: Path) -> None:
    change(path, "ALTER TABLE writes DROP COLUMN task_path")


def no_namespace(path: Path) -> None:
    change(
        path,
        "ALTER TABLE checkpoints RENAME TO c", "ALTER TABLE writes RENAME TO w",
        "CREATE TABLE checkpoints (thread_id TEXT NOT NULL, thread_ts TEXT NOT NULL, parent_ts TEXT, "
        "checkpoint BLOB, metadata BLOB, PRIMARY KEY (thread_id, thread_ts))",
        "CREATE TABLE writes (thread_id TEXT NOT NULL, thread_ts TEXT NOT NULL, task_id TEXT NOT NULL, idx INTEGER NOT NULL, "
        "channel TEXT NOT NULL, value BLOB, PRIMARY KEY (thread_id, thread_ts, task_id, idx))",
        "INSERT INTO checkpoints SELECT thread_id, checkpoint_id, parent_checkpoint_id, checkpoint, metadata FROM c",
        "INSERT INTO writes SELECT thread_id, checkpoint_id, task_id, idx, channel, value FROM w", "DROP TABLE c", "DROP TABLE w",
    )  # fmt: skip


def renamed(path: Path) -> None:
    change(
        path, "ALTER TABLE checkpoints RENAME TO 'agent ''s \"checkpoints\"'", "ALTER TABLE writes RENAME TO agent_writes",
        "CREATE TABLE users (id, thread_id)",
    )  # fmt: skip


def more_columns(path: Path) -> None:
    change(path, "ALTER TABLE checkpoints ADD COLUMN lineage TEXT", "ALTER TABLE writes ADD COLUMN origin TEXT DEFAULT 'x'")


@pytest.mark.parametrize(
    ("alter", "name", "forkable"),
    [
        (lambda path: None, "current", True), (no_task_path, "no-task-path", True), (no_namespace, "no-namespace", False),
        (renamed, "current", True), (more_columns, "current", True),
    ],
)  # fmt: skip
def test_every_layout_reads_the_same(shop: Path, alter: Callable[[Path], None], name: str, forkable: bool) -> None:
    plain = open_store(str(shop))
    expected = {thread: [header for _, header in plain.checkpoints(thread)] for thread in THREADS}
    channels = {thread: sorted(row.channel for _, row in plain.write_headers(thread)) for thread in THREADS}
    alter(shop)
    store = open_store(str(shop))
    assert store.layout == name
    assert (Capability.RAW_FORK in store.capabilities) == forkable
    assert {Capability.WRITES, Capability.LIVE} <= store.capabilities
    for thread in THREADS:
        assert [header for _, header in store.checkpoints(thread)] == expected[thread]
        rows = [row for _, row in store.write_headers(thread)]
        assert sorted(row.channel for row in rows) == channels[thread]
        assert all((row.task_path is None) == (name != "current") for row in rows)
        addresses = [header.address for header in expected[thread]]
        raws = store.raw(addresses)
        assert list(raws) == addresses
        assert all((raw.tag is None) == (name == "no-namespace") for raw in raws.values())
        assert sum(map(len, store.writes(addresses).values())) == len(rows)
    assert store.problems() == []


@pytest.mark.parametrize(
    "what", ["TABLE aaaazzzz (x)", "INDEX aaaazzzz ON checkpoints (thread_id, checkpoint_ns, checkpoint_id)"]
)
def test_a_table_or_index_whose_name_is_no_text_hides_nothing_else(shop: Path, what: str) -> None:
    plain = open_store(str(shop))
    expected = [header for thread in THREADS for _, header in plain.checkpoints(thread)]
    change(shop, f"CREATE {what}")
    shop.write_bytes(shop.read_bytes().replace(b"aaaazzzz", b"aaaa\xffzzz"))
    store = open_store(str(shop))
    assert [header for thread in THREADS for _, header in store.checkpoints(thread)] == expected
    assert [problem.kind for problem in store.problems()] == (["unnamed-table"] if what.startswith("TABLE") else [])


def test_a_column_added_while_the_file_is_open_is_noticed(shop: Path) -> None:
    no_task_path(shop)
    store = open_store(str(shop))
    assert store.layout == "no-task-path"
    with saver_at(shop) as saver:
        saver.setup()
    assert store.write_headers("done")[0][1].task_path == ""
    assert store.layout == "current"


def test_a_file_without_a_table_of_writes_is_read(shop: Path) -> None:
    change(shop, "DROP TABLE writes")
    store = open_store(str(shop))
    addresses = [header.address for _, header in store.checkpoints("done")]
    assert addresses
    assert store.write_headers("done") == []
    assert store.writes(addresses) == {}
    assert list(store.scan_writes("done", ["notes"])) == []
    assert Capability.WRITES not in store.capabilities


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16le", "UTF-16be"])
def test_odd_ids_are_opaque_and_found_again(tmp_path: Path, encoding: str) -> None:
    path = tmp_path / "a.sqlite"
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA encoding = '{encoding}'")
    with saver_at(tmp_path / "b.sqlite") as saver:
        saver.setup()
        for (sql,) in saver.conn.execute("SELECT sql FROM sqlite_master WHERE type = 'table'").fetchall():
            connection.execute(sql)
    ids = ["", "a\0b", "'; DROP TABLE checkpoints; --", "ключ 🗝", "%_*?", "\x1b[31m", "x" * 5000]
    for ident in ids:
        values = (ident, ident, ident, None, "msgpack", b"\x80", b"{}")
        connection.execute("INSERT INTO checkpoints VALUES (?, ?, ?, ?, ?, ?, ?)", values)
        connection.execute("INSERT INTO writes VALUES (?, ?, ?, 'task', '', 0, ?, 'null', x'')", (ident, ident, ident, ident))
    if encoding == "UTF-8":
        keys = "CAST(x'63e9' AS TEXT), '', CAST(x'ff' AS TEXT)"
        connection.execute(f"INSERT INTO checkpoints VALUES ({keys}, NULL, 'null', x'', x'')")
        connection.execute(f"INSERT INTO writes VALUES ({keys}, 't', '', 0, 'c', 'null', x'')")
        ids.append("c\udce9")
    connection.commit()
    connection.close()
    store = open_store(str(path))
    assert sorted(keys.thread_id for keys in store.threads()) == sorted(ids)
    for ident in ids:
        ((_, header),) = store.checkpoints(ident)
        assert header.thread_id == ident
        assert list(store.raw([header.address])) == [header.address]
        assert len(store.writes([header.address])[header.address]) == 1
        assert [row.value for row in store.scan_writes(ident, [ident if ident != "c\udce9" else "c"])] == [b""]
        assert [raw.header.address for raw in store.scan(ident)] == [header.address]
    assert len(list(store.scan())) == len(ids)
    assert [problem.kind for problem in store.problems()] == ["empty-id"]


def test_an_id_that_occurs_twice_hides_nothing(shop: Path) -> None:
    change(
        shop,
        "CREATE TABLE c AS SELECT * FROM checkpoints",
        "DROP TABLE checkpoints",
        "ALTER TABLE c RENAME TO checkpoints",
        "INSERT INTO checkpoints SELECT * FROM checkpoints WHERE thread_id = 'paused' LIMIT 1",
    )
    store = open_store(str(shop))
    found = store.checkpoints("paused")
    assert len(found) == len({header.address for _, header in found}) + 1
    assert [problem.kind for problem in store.problems()] == ["duplicate-id"]
    assert store.raw([found[-1][1].address])


def test_text_where_blobs_are_expected_is_read_as_its_bytes(shop: Path) -> None:
    document = json.dumps({"v": 4, "ts": "2025-01-02T03:04:05+00:00", "id": "é"})
    text = f"checkpoint = '{document}', metadata = '{{\"step\": 7}}', type = 'json'"
    change(shop, f"UPDATE checkpoints SET {text} WHERE thread_id = 'done'")
    store = open_store(str(shop))
    header = store.checkpoints("done")[0][1]
    assert (header.step, header.created_at) == (7, "2025-01-02T03:04:05+00:00")
    raw = store.raw([header.address])[header.address]
    assert raw.blob == document.encode()
    assert header.size_bytes == len(raw.blob) + len(raw.metadata)


def test_metadata_that_cannot_be_read_leaves_the_step_unknown(shop: Path) -> None:
    change(
        shop,
        "UPDATE checkpoints SET metadata = x'ff00' WHERE thread_id = 'done'",
        "UPDATE checkpoints SET metadata = '[]' WHERE thread_id = 'paused'",
        "UPDATE checkpoints SET metadata = NULL WHERE thread_id = 'failed'",
    )
    store = open_store(str(shop))
    for thread in ("done", "paused", "failed"):
        headers = [header for _, header in store.checkpoints(thread)]
        assert headers
        assert all(header.step is None and header.source is None and header.created_at for header in headers)


def test_writes_whose_checkpoint_is_missing_are_kept_and_reported(shop: Path) -> None:
    store = open_store(str(shop))
    rows = [row for _, row in store.write_headers("done")]
    missing = rows[-1].checkpoint_id
    change(shop, f"DELETE FROM checkpoints WHERE checkpoint_id = '{missing}'")
    assert [row for _, row in store.write_headers("done")] == rows
    (problem,) = store.problems()
    assert problem.kind == "write-without-checkpoint"
    assert missing in problem.where
    assert store.writes([Address("done", "", missing)])


def test_writes_that_were_waiting_are_no_problem_once_their_checkpoint_came(shop: Path) -> None:
    change(
        shop,
        "INSERT INTO writes SELECT thread_id, '', 'later', task_id, '', idx, channel, type, value FROM writes "
        "WHERE thread_id = 'done' LIMIT 1",
    )
    store = open_store(str(shop))
    store.write_headers("done")
    assert [problem.kind for problem in store.problems()] == ["write-without-checkpoint"]
    with writer(shop) as other:
        other("add done later")
    store.write_headers("done")
    assert store.problems() == []


@pytest.mark.parametrize("indexed", [True, False])
def test_leftover_writes_of_deleted_threads_are_counted(shop: Path, indexed: bool) -> None:
    change(shop, "DELETE FROM checkpoints WHERE thread_id IN ('done', 'failed')")
    if not indexed:
        change(shop, "CREATE TABLE w AS SELECT * FROM writes", "DROP TABLE writes", "ALTER TABLE w RENAME TO writes")
    store = open_store(str(shop))
    assert [keys.thread_id for keys in store.threads()] == ["forked", "paused"]
    assert [(problem.kind, problem.where) for problem in store.problems()] == [
        ("writes-without-thread", "thread done"), ("writes-without-thread", "thread failed"),
    ]  # fmt: skip


def test_many_threads_are_paged_without_a_gap(shop: Path) -> None:
    connection = sqlite3.connect(shop)
    connection.executemany(
        "INSERT INTO checkpoints VALUES (?, ?, ?, NULL, 'null', x'', x'')",
        [(f"t{number:04}", ns, "1") for number in range(700) for ns in ("", "sub:1")],
    )
    connection.commit()
    connection.close()
    found = list(open_store(str(shop)).threads())
    assert [keys.thread_id for keys in found] == sorted([*THREADS, *(f"t{number:04}" for number in range(700))])
    assert all(keys.namespaces == ("", "sub:1") and keys.checkpoints == 2 for keys in found[4:])
