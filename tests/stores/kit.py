"""The contract of `studio.stores.base`, as tests that run over any store.

A test module makes a fixture `sample` (a `Sample`) and a class that inherits `StoreContract`. What only some stores can do is
tested where their `capabilities` declare it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from studio.errors import OpenError
from studio.model import Address, WriteRow
from studio.stores.base import Capability, Store
from tests.factories import folder_snapshot
from tests.stores.layouts import Rows, StoredCheckpoint

NOWHERE = (
    Address("done", "", "no-such-checkpoint"), Address("no-such-thread", "", ""), Address("done", "no-such-namespace", "x"),
    Address("\ud800", "\udcff", "\0"),
)  # fmt: skip
FILL_ROWS, FILL_BYTES, FILL_PEAK = 1000, 40_000, 24 << 20
OPENING = "from studio.stores import open_store; from studio.overlay import Overlay; from pathlib import Path; "


@dataclass
class Sample:
    """A location with known rows, and the ways in which another process changes it; a call returns when the change is there."""

    folder: Path
    """Holds the location and nothing else: looking must leave it as it is."""
    recipe: str
    """The store as a Python expression; `open_store`, `Overlay` and `Path` are known in it."""
    rows: Rows
    """All that the store must tell, each list oldest first."""
    layout: str
    capabilities: frozenset[Capability]
    add: Callable[..., None]
    """Takes checkpoints."""
    add_write: Callable[[str, WriteRow], None]
    remove: Callable[[Address], None]
    remove_writes: Callable[[Address], None]
    origins: dict[Address, str] = field(default_factory=dict)
    """Where not `base`."""
    stored: Callable[[StoredCheckpoint], tuple[bytes, int]] = lambda row: (row.blob, len(row.blob) + len(row.metadata))
    """The bytes that the location holds for a row that was added, and what it tells as their size."""
    tells_metadata: bool = True
    """Whether metadata are stored, or made of what is."""
    by_id: bool = True
    """Whether threads come in the order of their ids, or the newest first."""

    def open(self) -> Store:
        names: dict[str, Any] = {}
        exec(OPENING, names)  # noqa: S102 - the test's own words
        found: Store = eval(self.recipe, names)  # noqa: S307
        return found


def checkpoint(thread: str, ident: str, parent: str | None = None, ns: str = "", size: int = 0) -> StoredCheckpoint:
    blob = b"\x81\xa1v\xc6" + size.to_bytes(4, "big") + bytes(size) if size else b"\x81\xa1v\x04"
    return StoredCheckpoint(Address(thread, ns, ident), parent, "msgpack", blob, b'{"source": "loop", "step": 9, "parents": {}}')


def write(ident: str, channel: str, ns: str = "") -> WriteRow:
    return WriteRow(ns, ident, "task", "", 0, channel, "msgpack", b"\x01")


class StoreContract:
    @pytest.fixture
    def store(self, sample: Sample) -> Iterator[Store]:
        store = sample.open()
        yield store
        store.close()

    # ---- lists

    def test_it_says_what_it_is(self, sample: Sample, store: Store) -> None:
        assert (store.layout, store.capabilities) == (sample.layout, sample.capabilities)
        assert os.path.isabs(store.location)
        assert store.problems() == []

    def test_threads_come_once_each_in_the_order_of_their_ids(self, sample: Sample, store: Store) -> None:
        expected: dict[str, list[StoredCheckpoint]] = {}
        for row in sample.rows.checkpoints:
            expected.setdefault(row.address.thread_id, []).append(row)
        found = list(store.threads())
        assert sorted(keys.thread_id for keys in found) == sorted(expected)
        if sample.by_id:
            assert [keys.thread_id for keys in found] == sorted(expected)
        for keys in found:
            addresses = [row.address for row in expected[keys.thread_id]]
            assert keys.checkpoints == len(addresses)
            assert keys.namespaces == tuple(sorted({address.checkpoint_ns for address in addresses}))
            roots = [address for address in addresses if not address.checkpoint_ns] or addresses
            assert keys.latest == max(address.checkpoint_id for address in roots)
        if Capability.NAMESPACES in store.capabilities:
            assert any(len(keys.namespaces) > 1 for keys in found)

    def test_threads_are_a_stream_that_may_be_left(self, sample: Sample, store: Store) -> None:
        before = folder_snapshot(sample.folder)
        threads = store.threads()
        assert iter(threads) is threads
        first = next(threads)
        del threads
        assert next(store.threads()) == first
        assert folder_snapshot(sample.folder) == before

    def test_checkpoints_come_oldest_first_and_after_a_cursor_only_the_rest(self, sample: Sample, store: Store) -> None:
        for thread, rows in by_thread(sample):
            found = store.checkpoints(thread)
            assert [header.address for _, header in found] == [row.address for row in rows]
            cursors = [cursor for cursor, _ in found]
            assert cursors == sorted(set(cursors))
            assert cursors[0] > 0
            for at, cursor in enumerate(cursors):
                assert list(store.checkpoints(thread, cursor)) == list(found[at + 1 :])
        assert list(store.checkpoints("no-such-thread")) == []

    def test_headers_of_writes_come_oldest_first_and_after_a_cursor_only_the_rest(self, sample: Sample, store: Store) -> None:
        for thread, _ in by_thread(sample):
            found = store.write_headers(thread)
            expected = [row for name, row in sample.rows.writes if name == thread]
            assert [bare(row) for _, row in found] == [bare(row) for row in expected]
            assert all(row.value is None for _, row in found)
            cursors = [cursor for cursor, _ in found]
            assert cursors == sorted(set(cursors))
            for at in range(0, len(found), 5):
                assert list(store.write_headers(thread, cursors[at])) == list(found[at + 1 :])
        assert bool(sample.rows.writes) == (Capability.WRITES in store.capabilities)

    # ---- rows by key

    def test_raw_rows_are_the_stored_bytes_and_agree_with_their_headers(self, sample: Sample, store: Store) -> None:
        headers = {header.address: header for thread, _ in by_thread(sample) for _, header in store.checkpoints(thread)}
        found = store.raw(row.address for row in sample.rows.checkpoints)
        assert set(found) == set(headers) == {row.address for row in sample.rows.checkpoints}
        for row in sample.rows.checkpoints:
            raw = found[row.address]
            assert raw.header == headers[row.address]
            blob, size = sample.stored(row)
            assert (raw.header.parent_checkpoint_id, raw.tag, raw.blob) == (row.parent, row.tag, blob)
            if sample.tells_metadata:
                assert raw.metadata == row.metadata
            assert raw.header.origin == sample.origins.get(row.address, "base")
            assert raw.header.size_bytes == size

    def test_what_is_not_there_is_left_out(self, sample: Sample, store: Store) -> None:
        there = sample.rows.checkpoints[0].address
        assert set(store.raw([*NOWHERE, there])) == {there}
        assert store.writes(NOWHERE) == {}
        assert store.raw([]) == {}
        assert list(store.scan("no-such-thread")) == []
        assert list(store.scan_writes("no-such-thread", ["notes"])) == []
        assert store.problems() == []

    def test_writes_come_in_the_order_of_application(self, sample: Sample, store: Store) -> None:
        expected: dict[Address, list[WriteRow]] = {}
        for thread, row in sample.rows.writes:
            expected.setdefault(Address(thread, row.checkpoint_ns, row.checkpoint_id), []).append(row)
        found = store.writes(row.address for row in sample.rows.checkpoints)
        assert {address: [bare(row, row.value) for row in rows] for address, rows in found.items()} == {
            address: sorted((bare(row, row.value) for row in rows), key=applied) for address, rows in expected.items()
        }

    # ---- streams

    def test_a_scan_gives_every_row_once_oldest_first_in_its_thread(self, sample: Sample, store: Store) -> None:
        found = list(store.scan())
        raws = store.raw(row.address for row in sample.rows.checkpoints)
        assert {raw.header.address: raw for raw in found} == raws
        assert len(found) == len(raws)
        threads = [thread for thread, _ in groupby(found, key=lambda raw: raw.header.thread_id)]
        assert len(threads) == len(set(threads))
        for thread, rows in by_thread(sample):
            addresses = [row.address for row in rows]
            assert [raw.header.address for raw in found if raw.header.thread_id == thread] == addresses
            assert [raw.header.address for raw in store.scan(thread)] == addresses

    def test_scanned_writes_are_those_of_the_channels_that_were_named(self, sample: Sample, store: Store) -> None:
        for thread, _ in by_thread(sample):
            mine = [row for name, row in sample.rows.writes if name == thread]
            channels = sorted({row.channel for row in mine})
            for wanted in ([], ["no-such-channel"], channels[:1], channels):
                found = [bare(row, row.value) for row in store.scan_writes(thread, wanted)]
                assert sorted(found, key=repr) == sorted(
                    (bare(row, row.value) for row in mine if row.channel in wanted), key=repr
                )
                for _, group in groupby(found, key=lambda row: (row.checkpoint_ns, row.checkpoint_id)):
                    rows = list(group)
                    assert rows == sorted(rows, key=applied)

    def test_a_scan_holds_a_part_of_the_rows(self, sample: Sample) -> None:
        if len(sample.rows.checkpoints) == 1:
            pytest.skip("this store holds one row")
        rows = [checkpoint("full", f"{number:05}", size=FILL_BYTES) for number in range(FILL_ROWS)]
        sample.add(*rows)
        store = sample.open()
        tracemalloc.start()
        try:
            seen = sum(1 for raw in store.scan("full") if len(raw.blob) > FILL_BYTES)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
            store.close()
        assert seen == FILL_ROWS
        assert peak < FILL_PEAK

    # ---- change

    def test_growth_is_seen_behind_the_cursor(self, sample: Sample, store: Store) -> None:
        needs(store, Capability.LIVE)
        before = list(store.checkpoints("done"))
        writes = list(store.write_headers("done"))
        latest = before[-1][1].checkpoint_id
        new = checkpoint("done", "1ff00000-0000-6000-8000-000000000001", latest)
        sample.add(new)
        ((cursor, header),) = store.checkpoints("done", before[-1][0])
        assert (header.address, header.parent_checkpoint_id) == (new.address, latest)
        assert list(store.checkpoints("done"))[: len(before)] == before
        assert store.raw([new.address])[new.address].blob == sample.stored(new)[0]
        assert store.checkpoints("done", cursor) == []
        if Capability.WRITES in store.capabilities:
            sample.add_write("done", write(new.address.checkpoint_id, "notes"))
            ((_, row),) = store.write_headers("done", writes[-1][0])
            assert (row.checkpoint_id, row.channel) == (new.address.checkpoint_id, "notes")
            assert [row.value for row in store.writes([new.address])[new.address]] == [b"\x01"]

    def test_a_new_thread_takes_its_place_in_the_list(self, sample: Sample, store: Store) -> None:
        needs(store, Capability.LIVE)
        before = [keys.thread_id for keys in store.threads()]
        sample.add(checkpoint("e new", "1"))
        expected = sorted([*before, "e new"]) if sample.by_id else ["e new", *before]
        assert [keys.thread_id for keys in store.threads()] == expected

    def test_the_token_is_the_same_until_something_changes(self, sample: Sample, store: Store) -> None:
        needs(store, Capability.LIVE)
        token = store.token()
        use(store, sample)
        assert store.token() == token
        other = sample.open()
        assert other.token() == token
        other.close()
        for change in (
            lambda: sample.add(checkpoint("done", "1")), lambda: sample.remove(Address("done", "", "1")),
            *([lambda: sample.add_write("done", write("1", "notes"))] if Capability.WRITES in store.capabilities else []),
        ):  # fmt: skip
            change()
            after = store.token()
            assert after != token
            token = after
            assert store.token() == token

    def test_a_census_tells_removal_from_growth(self, sample: Sample, store: Store) -> None:
        needs(store, Capability.LIVE)
        upto, writes_upto = last(store.checkpoints("done")), last(store.write_headers("done"))
        counted = store.census("done", upto, writes_upto)
        assert counted is not None
        assert counted[0] == sum(header.origin == "base" for _, header in store.checkpoints("done"))
        sample.add(checkpoint("done", "1ff00000-0000-6000-8000-000000000001"))
        sample.add_write("done", write("1ff00000-0000-6000-8000-000000000001", "notes"))
        sample.add(checkpoint("another", "1"))
        assert store.census("done", upto, writes_upto) == counted
        gone = store.checkpoints("done")[1][1].address
        if Capability.WRITES in store.capabilities:
            sample.remove_writes(next(iter(store.writes([header.address for _, header in store.checkpoints("done")[:-1]]))))
            fewer = store.census("done", upto, writes_upto)
            assert fewer != counted
            counted = fewer
        sample.remove(gone)
        assert store.census("done", upto, writes_upto) != counted

    def test_the_metadata_of_a_namespace_is_that_of_its_rows(self, sample: Sample, store: Store) -> None:
        for keys in list(store.threads()):
            headers = [header for _, header in store.checkpoints(keys.thread_id)]
            stored = {address: raw.metadata for address, raw in store.raw(header.address for header in headers).items()}
            for ns in {*keys.namespaces, "none such"}:
                mine = {address.checkpoint_id: found for address, found in stored.items() if address.checkpoint_ns == ns}
                assert store.metadata(keys.thread_id, ns, bytes) == mine

    def test_a_census_notices_a_row_that_was_written_again(self, sample: Sample, store: Store) -> None:
        needs(store, Capability.LIVE)
        upto, writes_upto = last(store.checkpoints("done")), last(store.write_headers("done"))
        counted = store.census("done", upto, writes_upto)
        row = next(row for row in sample.rows.checkpoints if row.address.thread_id == "done")
        sample.remove(row.address)
        sample.add(row)
        assert store.census("done", upto, writes_upto) != counted

    # ---- manners

    def test_it_is_closed_twice_and_then_only_an_open_error(self, sample: Sample) -> None:
        store = sample.open()
        next(store.threads())
        store.close()
        store.close()
        assert isinstance(store.problems(), list)
        with pytest.raises(OpenError):
            store.checkpoints("done")

    def test_every_method_works_from_several_threads_at_once(self, sample: Sample, store: Store) -> None:
        alone = use(sample.open(), sample)
        with ThreadPoolExecutor(6) as pool:
            results = list(pool.map(lambda _: use(store, sample), range(12)))
        assert all(result == alone for result in results)
        assert store.problems() == []

    def test_looking_leaves_the_folder_as_it_was(self, sample: Sample) -> None:
        before, mtime, temporary = folder_snapshot(sample.folder), sample.folder.stat().st_mtime_ns, _copies()
        store = sample.open()
        use(store, sample)
        store.close()
        assert folder_snapshot(sample.folder) == before
        assert sample.folder.stat().st_mtime_ns == mtime
        assert _copies() == temporary

    def test_a_fresh_process_reads_a_read_only_folder_without_importing_or_loading(self, sample: Sample) -> None:
        for place in sample.folder.resolve().parents:
            if any(part.startswith("pytest-of-") for part in place.parts):
                place.chmod(0o755)
        for place in sorted(sample.folder.rglob("*"), reverse=True):
            place.chmod(0o555 if place.is_dir() else 0o444)
        sample.folder.chmod(0o555)
        before = folder_snapshot(sample.folder)
        done = subprocess.run(
            [sys.executable, "-c", _PROBE, OPENING, sample.recipe], capture_output=True, text=True, check=False, timeout=60,
            cwd="/", env={**os.environ, "TMPDIR": "/tmp", "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
        sample.folder.chmod(0o755)
        for place in sample.folder.rglob("*"):
            place.chmod(0o755 if place.is_dir() else 0o644)
        assert done.stdout.strip() == f"{len(sample.rows.checkpoints)} {len(sample.rows.writes)} [] []", done.stderr
        assert folder_snapshot(sample.folder) == before


_PROBE = """
import os, sys, studio.session, studio.stores.sqlite
exec(sys.argv[1])
if hasattr(os, "getuid") and os.getuid() == 0:  # who may write anywhere
    os.setgid(65534); os.setuid(65534)
seen = []
loading = ("pickle.find_class", "os.system", "subprocess.Popen")
sys.addaudithook(lambda event, arguments: seen.append(event) if event in loading else None)
store = eval(sys.argv[2])
threads = [keys.thread_id for keys in store.threads()]
headers = [header for thread in threads for _, header in store.checkpoints(thread)]
writes = [row for thread in threads for _, row in store.write_headers(thread)]
store.raw(header.address for header in headers), store.writes(header.address for header in headers)
assert len(list(store.scan())) == len(headers)
for thread in threads:
    list(store.scan_writes(thread, ["notes", "log"])), store.census(thread, 1, 1), store.metadata(thread, "", bytes)
store.token(), store.problems(), store.close()
foreign = {"langgraph", "langchain_core", "antigravity", "numpy", "pydantic"} & {name.partition(".")[0] for name in sys.modules}
print(len(headers), len(writes), sorted(foreign), seen)
"""


def by_thread(sample: Sample) -> list[tuple[str, list[StoredCheckpoint]]]:
    found: dict[str, list[StoredCheckpoint]] = {}
    for row in sample.rows.checkpoints:
        found.setdefault(row.address.thread_id, []).append(row)
    return list(found.items())


def bare(row: WriteRow, value: bytes | None = None) -> WriteRow:
    """A write without where it lies, and with its value only where that is compared."""
    return replace(row, value=value, origin="base")


def applied(row: WriteRow) -> tuple[str, str, int]:
    return row.task_path or "", row.task_id, row.idx


def last(found: Any) -> int:
    return found[-1][0] if found else 0


def needs(store: Store, capability: Capability) -> None:
    if capability not in store.capabilities:
        pytest.skip(f"this store does not declare {capability.value}")


def use(store: Store, sample: Sample) -> list[Any]:
    """Call every method that reads, and return what it said."""
    addresses = [row.address for row in sample.rows.checkpoints[:40]]
    said: list[Any] = [list(store.threads()), store.raw(addresses), store.writes(addresses), list(store.scan("forked"))]
    for thread in ("done", "deep", "no-such-thread"):
        said += [list(store.checkpoints(thread)), list(store.write_headers(thread)), list(store.scan_writes(thread, ["notes"]))]
        said.append(store.census(thread, 1 << 62, 1 << 62))
        said.append(store.metadata(thread, "", bytes))
    return [*said, store.token(), store.problems()]


def _copies() -> set[str]:
    return set(os.listdir(tempfile.gettempdir()))
