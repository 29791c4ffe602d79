"""Task ids and task paths: how a task's identity follows from the checkpoint it ran from.

A task id is a hash over the checkpoint's id, the node's namespace, the step, the node and what started it. Reproducing a
stored id therefore proves a derived name. `task_path` (checkpoint-sqlite 3.1 and later) spells the same in clear text.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

import xxhash
from msgspec import Struct

from studio.explain.channels import INTERRUPT

PULL = "__pregel_pull"
PUSH = "__pregel_push"

Kind = Literal["pull", "push"]


def task_id(
    fmt: int,
    checkpoint_id: str,
    ns: str,
    node: str,
    step: int,
    kind: Kind,
    triggers_or_index: Iterable[str] | int,
) -> str:
    """The id that LangGraph gives to a task of `node` that runs from a checkpoint.

    `fmt` is `checkpoint.v`: 1 and 2 hash with SHA-1 over the triggers that fired, later ones with XXH3 over all triggers of
    the node. `ns` is the checkpoint's namespace, `step` the one the task runs in (the checkpoint's + 1), `triggers_or_index`
    the channel names for `pull` and the position of the Send for `push`. ValueError when the checkpoint id is not hexadecimal.
    """
    if kind == "pull":
        assert not isinstance(triggers_or_index, int)
        tail = [PULL, *sorted(triggers_or_index)]
    else:
        tail = [PUSH, str(triggers_or_index)]
    return hashed(fmt, checkpoint_id, ns, node, step, tail)


def handler_id(fmt: int, checkpoint_id: str, ns: str, node: str, step: int, failed: str) -> str:
    """The id of the task of an error handler `node` that took over from the failed task, whose own namespace is `ns`."""
    return hashed(fmt, checkpoint_id, ns, node, step, [PUSH, "node_error_handler", failed])


def hashed(fmt: int, checkpoint_id: str, ns: str, node: str, step: int, tail: Iterable[str]) -> str:
    """The hash both kinds share; `tail` is what follows the node's name."""
    full = f"{ns}|{node}" if ns else node
    text = "".join((full, str(step), node, *tail))
    data = bytes.fromhex(checkpoint_id.replace("-", "")) + text.encode("utf-8", "surrogatepass")
    digest = xxhash.xxh3_128_hexdigest(data) if fmt > 2 else hashlib.sha1(data, usedforsecurity=False).hexdigest()
    return f"{digest[:8]}-{digest[8:12]}-{digest[12:16]}-{digest[16:20]}-{digest[20:32]}"


@lru_cache(maxsize=64)
def update_ids(checkpoint_id: str, count: int = 4) -> tuple[str, ...]:
    """The ids that `update_state` gives to its first updates when the node was not scheduled anyway."""
    try:
        base = uuid.UUID(checkpoint_id)
    except ValueError:
        return ()
    return tuple(str(uuid.uuid5(base, INTERRUPT if i == 0 else f"{INTERRUPT}:{i}")) for i in range(count))


def interrupt_id(ns: str, asked_before: int = 0) -> str:
    """The id of a question of the task whose own namespace is `ns` (`node:task_id`, with its parents)."""
    return xxhash.xxh3_128_hexdigest((ns if asked_before == 0 else f"{ns}|{asked_before}").encode("utf-8", "surrogatepass"))


class TaskPath(Struct, frozen=True):
    """A parsed `task_path`.

    `kind`: `pull` (an edge started the node), `push` (a Send, `index` is its position), `call` (a @task call inside the task
    at `caller`), `handler` (an error handler that took over from `node`), `update` (an `update_state`), `none` (empty).
    """

    kind: Literal["pull", "push", "call", "handler", "update", "none"]
    node: str | None = None
    index: int | None = None
    caller: str | None = None


@lru_cache(maxsize=4096)
def parse_path(path: str | None) -> TaskPath:
    """Read a stored `task_path`; what is not understood is kind `none`."""
    if not path or not path.startswith("~"):
        return TaskPath("none")
    head, comma, rest = path[1:].partition(", ")
    if not comma:
        return TaskPath("none")
    if head == PULL:
        if rest.endswith(", node_error_handler, 0000000000"):
            return TaskPath("handler", rest[: -len(", node_error_handler, 0000000000")])
        return TaskPath("pull", rest)
    if head == PUSH:
        if rest.startswith("~"):
            parts = rest.rsplit(", ", 2)
            return TaskPath("call", caller=parts[0], index=number(parts[1]) if len(parts) == 3 else None)
        if "node_error_handler" in rest:
            return TaskPath("handler", index=number(rest.partition(", ")[0]))
        return TaskPath("push", index=number(rest.partition(", ")[0]))
    if head == INTERRUPT:
        return TaskPath("update", index=number(rest))
    return TaskPath("none")


def number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else None


def pull_path(node: str) -> str:
    return f"~{PULL}, {node}"


def push_path(index: int) -> str:
    return f"~{PUSH}, {index:010d}, 0000000000"


def is_synthetic(task: str) -> bool:
    """Ids of rows that durability `exit` stores for delta channels: `00000003-…`, `ffffffff-…`; no task bears them."""
    return task.startswith(("ffffffff-", "00000"))
