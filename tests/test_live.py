"""The watcher notices changes, only while somebody listens, and outlives failures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from studio.live import Watcher
from studio.stores import open_store
from tests.stores.writers import writer

FAST = 0.01


def until(condition: Callable[[], bool], seconds: float = 5) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.005)
    return condition()


def test_a_row_of_another_process_is_noticed(shop: Path) -> None:
    store = open_store(str(shop))
    watcher = Watcher(store.token)
    seen = threading.Event()
    watcher.subscribe(seen.set)
    time.sleep(0.3)
    assert not seen.is_set()
    with writer(shop) as other:
        started = time.monotonic()
        other("add live 1")
        assert seen.wait(2)
        assert time.monotonic() - started < 1
    watcher.close()


def test_nothing_is_polled_without_a_subscriber() -> None:
    polls: list[int] = []
    watcher = Watcher(lambda: polls.append(1), FAST)
    assert polls == []
    stop = watcher.subscribe(lambda: None)
    assert until(lambda: len(polls) > 3)
    stop()
    stop()
    time.sleep(5 * FAST)
    count = len(polls)
    time.sleep(10 * FAST)
    assert len(polls) == count
    watcher.subscribe(lambda: None)
    assert until(lambda: len(polls) > count)
    watcher.close()


def test_everyone_is_told_once_per_change_and_no_longer_after_leaving() -> None:
    value = [0]
    first: list[int] = []
    second: list[int] = []
    watcher = Watcher(lambda: value[0], FAST)
    stop = watcher.subscribe(lambda: first.append(value[0]))
    watcher.subscribe(lambda: second.append(value[0]))
    time.sleep(5 * FAST)
    value[0] = 1
    assert until(lambda: first == [1] == second)
    stop()
    value[0] = 2
    assert until(lambda: second == [1, 2])
    assert first == [1]
    watcher.close()


def test_a_failing_poll_or_subscriber_ends_nothing() -> None:
    value = [0]
    fail = [False]
    seen: list[int] = []

    def poll() -> int:
        if fail[0]:
            raise OSError("gone for a moment")
        return value[0]

    def broken() -> None:
        raise RuntimeError("a subscriber's own trouble")

    watcher = Watcher(poll, FAST)
    watcher.subscribe(broken)
    watcher.subscribe(lambda: seen.append(value[0]))
    time.sleep(5 * FAST)
    fail[0] = True
    time.sleep(5 * FAST)
    assert seen == []
    value[0], fail[0] = 1, False
    assert until(lambda: seen == [1])
    watcher.close()


def test_closing_ends_the_thread_even_from_a_callback() -> None:
    value = [0]
    watcher = Watcher(lambda: value[0], FAST)
    closed = threading.Event()

    def close() -> None:
        watcher.close()
        closed.set()

    watcher.subscribe(close)
    time.sleep(5 * FAST)
    value[0] = 1
    assert closed.wait(5)
    assert until(lambda: all(thread.name != "studio-watcher" for thread in threading.enumerate()))
    watcher.subscribe(close)
    assert all(thread.name != "studio-watcher" for thread in threading.enumerate())


def test_leaving_and_coming_back_at_once_still_tells_of_changes() -> None:
    value = [0]
    watcher = Watcher(lambda: value[0], FAST)
    for _ in range(50):
        watcher.subscribe(lambda: None)()
    seen: list[int] = []
    watcher.subscribe(lambda: seen.append(value[0]))
    time.sleep(5 * FAST)
    value[0] = 1
    assert until(lambda: seen == [1])
    watcher.close()
