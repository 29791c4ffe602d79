"""The list of threads: what a person needs to find the right one, read from keys, headers and one state per thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from studio.errors import RefError
from studio.model import Address, State, Status, Thread, Value
from studio.overlay import OverlaidKeys
from studio.render.secrets import is_secret_name
from studio.stores.base import Store, ThreadKeys
from studio.stores.outline import outline
from studio.value import Tagged

if TYPE_CHECKING:
    from studio.explain import Explainer

T = TypeVar("T")

BATCH = 40
"""Threads that are read on one snapshot: some milliseconds."""
TEXT_LIMIT = 500
"""Characters of a first or last text; the rest is a click away."""

HUMAN = frozenset(("human", "user", "HumanMessage", "HumanMessageChunk"))
_OF_LANGGRAPH = frozenset(
    (
        "source",
        "step",
        "parents",
        "writes",
        "thread_id",
        "thread_ts",
        "checkpoint_id",
        "checkpoint_ns",
        "checkpoint_map",
        "run_id",
        "run_attempt",
        "counters_since_delta_snapshot",
    )
)
_OF_LANGGRAPH_TOO = ("__", "langgraph_", "ls_")


def threads(store: Store, explainer: Explainer) -> Iterator[Thread]:
    """Each thread of the store in the order of its ids; the first is there at once, the rest streams."""
    keys = store.threads()
    size = 1
    while batch := list(islice(keys, size)):
        yield from _together(store, partial(_describe_all, store, explainer, batch))
        size = BATCH


def _describe_all(store: Store, explainer: Explainer, batch: list[ThreadKeys]) -> list[Thread]:
    heads = [Address(one.thread_id, "", one.latest) for one in batch if one.latest and "" in one.namespaces]
    explainer.prefetch(heads, causes=False)
    return [describe(store, explainer, one) for one in batch]


def describe(store: Store, explainer: Explainer, keys: ThreadKeys) -> Thread:
    """One line of the list. Roots, heads and head are of the root namespace; times, sizes and counts are of all."""
    whole = outline(store, keys.thread_id)
    links = [(identity, parent) for ns, identity, parent in whole.links if not ns]
    roots, heads = ends(links)
    head = _head(keys, [identity for identity, _ in links])
    state = _state(explainer, Address(keys.thread_id, "", head)) if head is not None else None
    first_text, last_text = texts(state.values) if state is not None else (None, None)
    return Thread(
        thread_id=keys.thread_id,
        location=store.location,
        namespaces=keys.namespaces,
        checkpoints=keys.checkpoints,
        roots=roots,
        heads=heads,
        head=head,
        status=_status(store, state),
        first_at=whole.first_at,
        last_at=whole.last_at,
        size_bytes=whole.size_bytes,
        first_text=first_text,
        last_text=last_text,
        metadata=own_metadata(state.metadata) if state is not None else {},
        scratch_checkpoints=keys.scratch_checkpoints if isinstance(keys, OverlaidKeys) else 0,
    )


def _head(keys: ThreadKeys, readable: Sequence[str]) -> str | None:
    """The latest checkpoint of the root namespace that can be read; one that only an index tells of, where there is no other."""
    if "" not in keys.namespaces:
        return None
    return keys.latest if keys.latest in readable else max(readable, default=keys.latest)


def _status(store: Store, state: State | None) -> Status:
    """Where a thread stands; not known where a later checkpoint than its head is lost."""
    if state is None or state.status is None:
        return "unknown"
    lost: Callable[[Address], bool] | None = getattr(store, "later_lost", None)
    return "unknown" if lost is not None and lost(state.checkpoint.address) else state.status


def ends(links: Iterable[tuple[str, str | None]]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """(roots, heads) of one namespace's (id, parent): without a parent that is there, without a child. A loop has neither."""
    parents = dict(links)
    with_child = set(parents.values())
    return (
        tuple(sorted(identity for identity, parent in parents.items() if not parent or parent not in parents)),
        tuple(sorted(identity for identity in parents if identity not in with_child)),
    )


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the program itself put there (user ids, tags of a customer): scalars under keys that are not LangGraph's."""
    return {
        key: value
        for key, value in metadata.items()
        if isinstance(value, (str, int, float, bool)) and key not in _OF_LANGGRAPH and not key.startswith(_OF_LANGGRAPH_TOO)
    }


def texts(values: Mapping[str, Value]) -> tuple[str | None, str | None]:
    """The first and the last text of a person in the channel that holds the conversation."""
    for channel in sorted(values, key=lambda name: name != "messages"):
        items = values[channel]
        if is_secret_name(channel) or not isinstance(items, list) or not any(_role(item) for item in items[:3]):
            continue
        first = next((text for item in items if _role(item) in HUMAN and (text := _text(item))), None)
        if first is not None:
            return first, next((text for item in reversed(items) if _role(item) in HUMAN and (text := _text(item))), None)
    return None, None


def _role(item: Value) -> str | None:
    """A message's class or role; None for anything else."""
    if isinstance(item, Tagged):
        return item.name if item.name.endswith(("Message", "MessageChunk")) else None
    if isinstance(item, dict) and "content" in item:
        role = item.get("role") or item.get("type")
        return role if isinstance(role, str) else None
    return None


def _text(item: Value) -> str | None:
    content = item.fields.get("content") if isinstance(item, Tagged) else item.get("content")
    if isinstance(content, list):
        blocks = (block.get("text") if isinstance(block, dict) else block for block in content)
        content = " ".join(block for block in blocks if isinstance(block, str))
    if not isinstance(content, str) or not content.strip():
        return None
    return content if len(content) <= TEXT_LIMIT else content[: TEXT_LIMIT - 1] + "…"


def _state(explainer: Explainer, address: Address) -> State | None:
    try:
        return explainer.state(address, causes=False)
    except RefError:  # deleted since the keys were read
        return None


def _together(store: Store, work: Callable[[], T]) -> T:
    hold: Callable[[Callable[[], T]], T] | None = getattr(store, "together", None)
    return hold(work) if hold is not None else work()
