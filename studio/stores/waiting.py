"""Rows of `writes` whose checkpoint is not stored. LangGraph stores the two one after the other, so they may only be waiting."""

from __future__ import annotations

from collections.abc import Iterable

from studio.model import Address, Problem
from studio.stores.queries import Queries

KIND = "write-without-checkpoint"
LEFTOVER = "writes-without-thread"
NAMED = 20
"""Rows whose tasks and channels are named; the rest is counted."""


def in_words(queries: Queries, waiting: Iterable[tuple[Address, int]]) -> list[Problem]:
    """One problem for each checkpoint that is missing, with the number of its writes."""
    found = []
    for address, number in waiting:
        under = queries.writes(address)[:NAMED]
        tasks = ", ".join(dict.fromkeys(row.task_id for row in under))
        channels = ", ".join(dict.fromkeys(row.channel for row in under))
        place = f" in {address.checkpoint_ns}" if address.checkpoint_ns else ""
        message = f"{number} writes wait for a checkpoint that is not stored (channels {channels}; tasks {tasks})."
        found.append(Problem(KIND, f"thread {address.thread_id}, checkpoint {address.checkpoint_id}{place}", message))
    return found


def without_thread(queries: Queries) -> list[Problem]:
    """One problem for each thread that has writes and no checkpoint at all."""
    return [
        Problem(LEFTOVER, f"thread {thread}", f"{number} writes of a thread without any checkpoint.")
        for thread, number in queries.leftover()
    ]
