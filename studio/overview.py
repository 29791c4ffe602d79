"""The list of threads: what a person needs to find the right one, read from keys, headers and one state per thread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from studio.model import Address, Status, Thread, Value
from studio.overlay import OverlaidKeys, namespaces_of
from studio.render.secrets import is_secret_name
from studio.stores.base import Store, ThreadKeys
from studio.stores.outline import Summary, of_headers, outline, summed
from studio.value import Tagged

if TYPE_CHECKING:
    from studio.explain import Explainer
    from studio.explain.glance import Glance

T = TypeVar("T")

BATCH = 256
"""Threads that are read on one snapshot: some milliseconds."""
BATCH_BYTES = 8_000_000
"""Threads whose heads are in memory at once hold no more than this together, or are one."""
TEXT_LIMIT = 500
"""Characters of a first or last text; the rest is a click away."""

HUMAN = frozenset(("human", "user", "HumanMessage", "HumanMessageChunk"))
_HUMAN_CLASS = b"HumanMessage"
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
    share: Callable[[Callable[[], object]], None] | None = getattr(getattr(store, "base", store), "share", None)
    if share is not None:
        share(lambda: sum(1 for _ in _each(store, explainer)))
    yield from _each(store, explainer)


def _each(store: Store, explainer: Explainer) -> Iterator[Thread]:
    keys = store.threads()
    size = 1
    while batch := list(islice(keys, size)):
        yield from _together(store, partial(_describe_all, store, explainer, batch))
        size = BATCH


def _describe_all(store: Store, explainer: Explainer, batch: list[ThreadKeys]) -> list[Thread]:
    at_once: Callable[[Sequence[ThreadKeys]], Mapping[str, Summary]] | None = getattr(store, "summaries", None)
    known = at_once(batch) if at_once is not None else {}
    of_each = {one.thread_id: known.get(one.thread_id) or summed(outline(store, one.thread_id)) for one in batch}
    batch = [one for one in batch if not _is_gone(store, one, of_each[one.thread_id])]
    whole = [of_each[one.thread_id] for one in batch]
    heads = [_head(keys, summary) for keys, summary in zip(batch, whole, strict=True)]
    found: list[Thread] = []
    for part in _parts([summary.size_bytes for summary in whole]):
        glances = explainer.glances([head for head in heads[part] if head is not None])
        found += [
            _line(store, keys, summary, head, glances.get(head) if head is not None else None)
            for keys, summary, head in zip(batch[part], whole[part], heads[part], strict=True)
        ]
    return found


def _is_gone(store: Store, keys: ThreadKeys, whole: Summary) -> bool:
    """Whether a thread was deleted since its keys were read; what damage hides stays in the list."""
    return not whole.heads and not whole.size_bytes and not namespaces_of(store, keys.thread_id)


def _parts(sizes: Sequence[int]) -> Iterator[slice]:
    """Neighbours that are not too large together."""
    start = total = 0
    for place, size in enumerate(sizes):
        if total and total + size > BATCH_BYTES:
            yield slice(start, place)
            start, total = place, 0
        total += size
    yield slice(start, len(sizes))


def _head(keys: ThreadKeys, whole: Summary) -> Address | None:
    """The latest checkpoint of the root namespace that can be read; one that only an index tells of, where there is no other."""
    head = (whole.latest or keys.latest) if "" in keys.namespaces else None
    return Address(keys.thread_id, "", head) if head is not None else None


def _line(store: Store, keys: ThreadKeys, whole: Summary, head: Address | None, at: Glance | None) -> Thread:
    """Roots, heads and head are of the root namespace; times, sizes and counts are of all."""
    first_text, last_text = texts(at.values) if at is not None else (None, None)
    first_at = whole.first_at
    last_at = whole.last_at if whole.last_at is not None or at is None else at.header.created_at
    if first_at is not None and last_at is not None and last_at < first_at:  # a clock stepped back: ids do not tell the order
        exact = of_headers(header for _, header in store.checkpoints(keys.thread_id))
        first_at, last_at = exact.first_at, exact.last_at
    return Thread(
        thread_id=keys.thread_id,
        location=store.location,
        namespaces=keys.namespaces,
        checkpoints=keys.checkpoints,
        roots=whole.roots,
        heads=whole.heads,
        head=head.checkpoint_id if head is not None else None,
        status=_status(store, at),
        first_at=first_at,
        last_at=last_at,
        size_bytes=whole.size_bytes,
        first_text=first_text,
        last_text=last_text,
        metadata=own_metadata(at.metadata) if at is not None else {},
        scratch_checkpoints=keys.scratch_checkpoints if isinstance(keys, OverlaidKeys) else 0,
        facts=_facts(store, keys.thread_id),
        closed=at.closed if at is not None else "",
    )


def _facts(store: Store, thread_id: str) -> Mapping[str, Any]:
    ask: Callable[[str], Mapping[str, Any]] | None = getattr(getattr(store, "base", store), "thread_facts", None)
    return ask(thread_id) if ask is not None else {}


def _status(store: Store, at: Glance | None) -> Status:
    """Where a thread stands; not known where a later checkpoint than its head is lost."""
    if at is None or at.status is None:
        return "unknown"
    lost: Callable[[Address], bool] | None = getattr(store, "later_lost", None)
    return "unknown" if lost is not None and lost(at.header.address) else at.status


def own_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What the program itself put there (user ids, tags of a customer): scalars under keys that are not LangGraph's."""
    return {
        key: value
        for key, value in metadata.items()
        if isinstance(value, (str, int, float, bool)) and key not in _OF_LANGGRAPH and not key.startswith(_OF_LANGGRAPH_TOO)
    }


def texts(values: Mapping[str, Value]) -> tuple[str | None, str | None]:
    """The first and the last text of a person in the channel that holds the conversation."""
    for channel in sorted(values, key=_after_messages):
        items = values[channel]
        if not isinstance(items, list) or is_secret_name(channel) or not any(map(_role, items[:3])):
            continue
        first = _first_text(items)
        if first is not None:
            return first, _first_text(reversed(items))
    return None, None


def _after_messages(channel: str) -> bool:
    return channel != "messages"


def _first_text(items: Iterable[Value]) -> str | None:
    for item in items:
        if isinstance(item, Tagged) and item.raw is not None and _HUMAN_CLASS not in item.raw:
            continue  # its class is another one, without reading the message
        if _role(item) in HUMAN and (text := _text(item)):
            return text
    return None


def _role(item: Value) -> str | None:
    """A message's class or role; None for anything else."""
    if isinstance(item, Tagged):
        name = item.described()[1]
        return name if name.endswith(("Message", "MessageChunk")) else None
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


def _together(store: Store, work: Callable[[], T]) -> T:
    hold: Callable[[Callable[[], T]], T] | None = getattr(store, "together", None)
    return hold(work) if hold is not None else work()
