"""The trees of one session: built when a thread is first looked at, extended when the file grows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from studio.diff import diff
from studio.errors import StudioError
from studio.explain import Explainer
from studio.history.growth import Key
from studio.model import Address, Checkpoint, State, Status, WriteRow
from studio.overlay import Overlay
from studio.tree import CheckpointTree
from studio.value import decode, decode_metadata

COPIES_CHECKED = 200
"""Copies per thread whose origin is inferred from their blobs; a list never reads more."""


@dataclass(slots=True)
class _Grown:
    tree: CheckpointTree
    headers_cursor: int = 0
    writes_cursor: int = 0
    rows: dict[Key, list[WriteRow]] = field(default_factory=lambda: defaultdict(list))


class Forest:
    """Trees by thread id. Not thread-safe by itself: the session holds its lock."""

    def __init__(
        self, overlay: Overlay, explainer: Explainer, state_of: Callable[[Address], State], read_origins: Callable[[], None]
    ) -> None:
        """`read_origins` calls `set_origins` with what is recorded now."""
        self._overlay = overlay
        self._explainer = explainer
        self._state_of = state_of
        self._read_origins = read_origins
        self._grown: dict[str, _Grown] = {}
        self._origins: Mapping[Address, tuple[Address, str]] = {}

    def set_origins(self, origins: Mapping[Address, tuple[Address, str]]) -> None:
        """Fork -> (origin, hash of its blob), as recorded when the studio forked."""
        self._origins = origins

    def tree(self, thread_id: str) -> CheckpointTree:
        grown = self._grown.get(thread_id)
        if grown is None:
            grown = _Grown(CheckpointTree(thread_id, self._look, self._parents))
            self._grown[thread_id] = grown
            self._grow(thread_id, grown)
        return grown.tree

    def refresh(self) -> None:
        """Extend every tree that is in use by what was stored since."""
        for thread_id, grown in self._grown.items():
            self._grow(thread_id, grown)

    def _grow(self, thread_id: str, grown: _Grown) -> None:
        headers = self._overlay.checkpoints(thread_id, grown.headers_cursor)
        writes = self._overlay.write_headers(thread_id, grown.writes_cursor)
        if headers:
            grown.headers_cursor = max(cursor for cursor, _ in headers)
        if writes:
            grown.writes_cursor = max(cursor for cursor, _ in writes)
        fresh = [header for _, header in headers]
        if any(header.origin == "scratch" or header.source == "fork" for header in fresh):
            self._read_origins()  # after the rows: a fork that was just stored brings its origin with it
        if not len(grown.tree):
            self._explainer.note_headers(thread_id, fresh)
        tree, facts = grown.tree, grown.tree.facts
        touched: dict[Key, None] = {}
        for _, row in writes:
            key = (row.checkpoint_ns, row.checkpoint_id)
            grown.rows[key].append(row)
            touched[key] = None
        facts.note_writes(row for _, row in writes)
        for fork, (origin, _) in self._origins.items():
            if fork.thread_id == thread_id == origin.thread_id:
                facts.origins[fork.checkpoint_ns, fork.checkpoint_id] = (origin.checkpoint_ns, origin.checkpoint_id)
        self._infer_copies(thread_id, fresh, tree)
        tree.extend(fresh)
        if touched:
            rows = [row for key in touched for row in grown.rows[key]]
            known = [tree.header(address) for key in touched if (address := Address(thread_id, *key)) in tree]
            facts.ran.update(self._explainer.node_runs(thread_id, known, rows))
            facts.written.update(self._explainer.written_channels(rows))
        for header in [h for h in fresh if h.address in self._origins][:COPIES_CHECKED]:
            self._name_fork(tree, header.address)

    def _name_fork(self, tree: CheckpointTree, fork: Address) -> None:
        """A fork of ours is called by its change: `set /refund/amount`, `goto approve`; unchanged ones keep `copy of #4`."""
        origin = self._origins[fork][0]
        if origin not in tree:
            return
        try:
            before, after = self._state_of(origin), self._state_of(fork)
        except StudioError:
            return
        changes = diff(before.values, after.values)
        key = (fork.checkpoint_ns, fork.checkpoint_id)
        parts = []
        if changes:
            paths = list(dict.fromkeys(change.path for change in changes))
            verb = "remove" if all(change.op == "remove" for change in changes) else "set"
            parts.append(f"{verb} {paths[0]}" + (f" +{len(paths) - 1}" if len(paths) > 1 else ""))
            tree.facts.fork_channels[key] = tuple(dict.fromkeys(change.channel for change in changes))
        if after.next != before.next and after.next:
            parts.append("goto " + ", ".join(name or "?" for name in after.next))
        if parts:
            tree.facts.fork_labels[key] = ", ".join(parts)

    def _infer_copies(self, thread_id: str, fresh: list[Checkpoint], tree: CheckpointTree) -> None:
        """LangGraph's own `__copy__` does not record its origin: a sibling with equal channel versions is it (facts 3.1)."""
        facts = tree.facts
        forks = [h for h in fresh if h.source == "fork" and (h.checkpoint_ns, h.checkpoint_id) not in facts.origins]
        if not forks:
            return
        siblings: dict[tuple[str, str | None], list[Checkpoint]] = defaultdict(list)
        for header in fresh:
            siblings[header.checkpoint_ns, header.parent_checkpoint_id].append(header)
        for address in (tree.address_at(index) for index in range(len(tree))):
            header = tree.header(address)
            siblings[header.checkpoint_ns, header.parent_checkpoint_id].append(header)
        for fork in forks[:COPIES_CHECKED]:
            beside = [h for h in siblings[fork.checkpoint_ns, fork.parent_checkpoint_id] if h.checkpoint_id < fork.checkpoint_id]
            if not beside:
                continue
            raws = self._overlay.raw([fork.address, *(h.address for h in beside[:20])])
            versions = {address: _versions(raw.tag, raw.blob) for address, raw in raws.items()}
            mine = versions.get(fork.address)
            same = [h for h in beside if mine and versions.get(h.address) == mine]
            if same:
                facts.origins[fork.checkpoint_ns, fork.checkpoint_id] = (same[0].checkpoint_ns, same[0].checkpoint_id)

    def _look(self, address: Address) -> tuple[Status | None, tuple[str | None, ...] | None]:
        try:
            state = self._state_of(address)
        except StudioError:
            return "unknown", None
        return state.status, state.next

    def _parents(self, address: Address) -> Mapping[str, str]:
        raw = self._overlay.raw([address]).get(address)
        parents = decode_metadata(raw.metadata).get("parents") if raw is not None else None
        return parents if isinstance(parents, dict) else {}


def _versions(tag: str | None, blob: bytes) -> object:
    document = decode(tag, blob)
    return document.get("channel_versions") if isinstance(document, dict) else None
