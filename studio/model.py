"""The field's words as frozen values: what every room of the studio hands to the next.

A *checkpoint* is what LangGraph saves after a *superstep*; its *channels* hold the state. *Tasks* run from a checkpoint,
their *writes* are stored under it and are applied in its child. Nothing here reads a file or draws anything.

Stored values (`Value`) are the inert forms of `studio.value`. All times are ISO 8601 text in UTC, all sizes are bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct, field

Value = Any
"""An inert stored value: None, bool, int, float, str, bytes, list, dict (text keys), or a class of `studio.value`."""

Tagged_JSON = Any
"""A value in the exchange form of `studio.tagged`: plain JSON plus objects whose first key begins with `$`."""

Origin = Literal["base", "scratch"]
Status = Literal["ran", "answered", "done", "ready", "paused", "failed", "unknown"]
TaskStatus = Literal["done", "failed", "paused", "pending", "unknown"]
Basis = Literal["writes", "versions", "source", "none"]
Rebuilt = Literal["exact", "ambiguous", "unavailable"]
Op = Literal["add", "remove", "replace", "move"]
Explained = Literal["last", "append", "messages", "union", "sum", "cleared", "renamed", "outside", "unknown"]

START = "__start__"
"""The author of an input, and the channel that carries it."""
PENDING_SENDS = "__pregel_tasks"
"""The channel of the Sends that wait for the next superstep, in format 4; the name is used for all formats here."""
END = "__end__"
"""Where a run ends: no node, but what one leads to when it leads nowhere else."""


class Address(Struct, frozen=True, order=True, gc=False):
    """The identity of a checkpoint. Ids are opaque: neither their order nor their form carries structure."""

    thread_id: str
    checkpoint_ns: str
    """"" is the root graph; `node:task_id` a subgraph run, nested with `|`."""
    checkpoint_id: str


class Problem(Struct, frozen=True, gc=False):
    """One loss or oddity, counted and located; never fatal for anything else."""

    kind: str
    """A short slug, e.g. `orphan-parent`, `parent-loop`, `undecodable`, `write-without-checkpoint`."""
    where: str
    message: str
    names: tuple[str, ...] = ()
    """What loading a pickle would import: all names that `message` has no room for. Stored text, not gated."""


class Checkpoint(Struct, frozen=True, gc=False):
    """The header of a checkpoint: all that a list or a tree needs, without its state."""

    address: Address
    parent_checkpoint_id: str | None
    step: int | None
    source: str | None
    """`input`, `loop`, `update` or `fork` as LangGraph writes it, or whatever stands there."""
    created_at: str | None
    size_bytes: int
    origin: Origin = "base"
    encrypted: bool = False
    """The row is stored under a cipher; metadata and place are in clear all the same."""

    @property
    def thread_id(self) -> str:
        return self.address.thread_id

    @property
    def checkpoint_ns(self) -> str:
        return self.address.checkpoint_ns

    @property
    def checkpoint_id(self) -> str:
        return self.address.checkpoint_id


class Sealed(Struct, frozen=True):
    """How a row that was decrypted for reading is stored."""

    tag: str
    """`msgpack+aes`, …"""
    blob: bytes
    close: Callable[[bytes], bytes]
    """Encrypts other bytes in the same way."""


class RawCheckpoint(Struct, frozen=True):
    """One checkpoint row as stored: the input of the decoder and of the fork recipes."""

    header: Checkpoint
    tag: str | None
    """The serializer tag of `blob` (`msgpack`, `json`, `msgpack+aes`, …); None where the layout has no such column."""
    blob: bytes
    metadata_tag: str | None
    metadata: bytes
    """As stored: JSON text in every SQLite layout."""
    pending_sends: tuple[WriteRow, ...] = ()
    sealed: Sealed | None = None
    """Where the row was decrypted: then `tag` and `blob` are the plain ones."""

    @property
    def stored_blob(self) -> bytes:
        """The bytes in the file."""
        return self.sealed.blob if self.sealed is not None else self.blob


class WriteRow(Struct, frozen=True):
    """One row of `writes`: stored under the checkpoint from which its task ran."""

    checkpoint_ns: str
    checkpoint_id: str
    task_id: str
    task_path: str | None
    """None where the file has no such column."""
    idx: int
    """Position in the task's writes; negative for `__error__` -1, `__scheduled__` -2, `__interrupt__` -3, `__resume__` -4."""
    channel: str
    tag: str | None
    value: bytes | None
    """None in a header read, where the value was not fetched."""
    origin: Origin = "base"
    sealed: Sealed | None = None
    """Where the value was decrypted: then `tag` and `value` are the plain ones."""


class Write(Struct, frozen=True):
    channel: str
    value: Value


class Author(Struct, frozen=True):
    """Who made a change, and how that is known."""

    node: str | None
    task_id: str | None
    basis: Basis
    """`writes`: a stored write says so; `versions`: inferred from versions; `source`: an input or an edit; `none`: not known."""
    side: Literal["after", "before"] = "after"
    """`before`: made on the way to the state before, while the way to the state after left the value as it was."""


class Trigger(Struct, frozen=True):
    """A channel whose new version made a task run, and who wrote it."""

    channel: str
    authors: tuple[Author, ...] = ()


class Interrupt(Struct, frozen=True):
    id: str | None
    value: Value
    answered: bool
    answer: Value = None


class Task(Struct, frozen=True):
    """One task scheduled from a checkpoint, with what it has written so far."""

    id: str | None
    name: str | None
    """None where the file cannot tell (formats 1 and 2)."""
    path: str | None
    status: TaskStatus
    error: str | None = None
    triggers: tuple[Trigger, ...] = ()
    interrupts: tuple[Interrupt, ...] = ()
    writes: tuple[Write, ...] = ()
    subgraph_ns: tuple[str, ...] = ()
    """Namespaces in this store that this task's subgraphs ran in."""
    inferred: bool = False
    """True where the name was derived rather than stored."""
    arg: Value = None
    """The argument of a Send, else None."""
    earlier_answers: tuple[Value, ...] = ()
    """Answers to questions that it asked before the one in `interrupts`: of its questions only the last is stored."""
    unstored: str = ""
    """Why a subgraph of it is known to have run whose checkpoints are not in this store; "" where nothing says so."""
    calls: tuple[Task, ...] = ()
    """`@task` calls made inside this one (functional API); their names are not stored."""


class State(Struct, frozen=True):
    """Everything about one checkpoint; made on demand."""

    checkpoint: Checkpoint
    values: Mapping[str, Value]
    """State channels."""
    internal: Mapping[str, Value]
    """Scheduling channels (`branch:*`, `join:*`, `start:*`, `__*`; in formats 1 and 2 also those named after nodes)."""
    rebuilt: Mapping[str, Rebuilt]
    """Only channels whose value is not stored here but rebuilt from deltas; of those `unavailable`, `unrebuilt` says why."""
    tasks: tuple[Task, ...]
    next: tuple[str | None, ...] | None
    metadata: Mapping[str, Any]
    format: int | None
    """`checkpoint.v`; None when undecodable."""
    channel_versions: Mapping[str, Any] = field(default_factory=dict)
    versions_seen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    status: Status | None = None
    """The live status if this checkpoint has no child: done, ready, paused, failed, unknown."""
    problems: tuple[Problem, ...] = ()
    others: tuple[Task, ...] = ()
    """Rows stored under this checkpoint that no scheduled task wrote: edits, a `Command` (the null task), rows that came late."""
    unrebuilt: Mapping[str, str] = field(default_factory=dict)
    """Delta channels that have a value which cannot be rebuilt, with the reason in words; they are in no other map."""
    closed: bool = False
    """Nothing of the record could be read: that `values` is empty says nothing."""

    @property
    def editable(self) -> dict[str, Value]:
        """What a fork may change by path: the state, and the Sends that wait (formats 1 to 3 store them beside the channels)."""
        sends = self.internal.get(PENDING_SENDS)
        return {**self.values, PENDING_SENDS: sends} if isinstance(sends, list) and sends else dict(self.values)


class Change(Struct, frozen=True):
    """One difference between two states, at a JSON Pointer over logical values (`studio.codec.paths`)."""

    path: str
    op: Op
    before: Value
    """Meaningless for `add`."""
    after: Value
    """Meaningless for `remove`."""
    from_path: str | None = None
    """Where a `move` came from."""
    authors: tuple[Author, ...] = ()

    @property
    def channel(self) -> str:
        return self.path.split("/", 2)[1].replace("~1", "/").replace("~0", "~") if "/" in self.path else ""


class Verdict(Struct, frozen=True):
    """Whether a superstep's writes lead to a channel's stored value."""

    how: Explained
    """The rule by which they do (`cleared`: a value that is kept for one step; `renamed`: nobody wrote it, and only the module of
    its type differs); `outside`: no rule could; `unknown`: not told."""
    why: str = ""
    """What stands against it, as part of a sentence about the channel; empty where a rule explains it."""
    unruled: bool = False
    """All writes are there, and by no rule that is known they lead to the value: a reducer of the graph's own, or a change."""


class Comparison(Struct, frozen=True):
    """A diff with the two headers it compares; `before` is None for a root."""

    before: Checkpoint | None
    after: Checkpoint
    changes: tuple[Change, ...]
    problems: tuple[Problem, ...] = ()
    explained: Mapping[str, Verdict] = field(default_factory=dict)
    """Channel -> how far the writes explain it; only where `before` is the parent and a superstep lies between."""
    closed: tuple[Address, ...] = ()
    """Which of the two cannot be read: then `changes` is empty, and what changed is not known."""


class NodeRun(Struct, frozen=True, gc=False):
    """A task that made a checkpoint (it ran from the parent), as far as headers tell."""

    name: str | None
    task_id: str | None
    status: TaskStatus


class Row(Struct, frozen=True):
    """One line of the checkpoint tree, the same in terminal, page and JSON."""

    checkpoint: Checkpoint
    number: str
    """`4`; inside a subgraph `4.2`; in the scratch file `s1`. Never changes while a thread grows."""
    lane: int
    depth: int
    """Nesting of the namespace: 0 root, 1 subgraph, …"""
    lanes: tuple[int, ...]
    """Lanes that pass through this row (drawn as vertical lines), this row's own included."""
    parent_lane: int | None
    """Lane of the row that this one grew from when it differs from `lane` (draw a bend), else None."""
    origin_checkpoint_id: str | None
    """For a fork: the checkpoint it was made from."""
    nodes: tuple[NodeRun, ...]
    next: tuple[str | None, ...] | None
    status: Status | None
    is_head: bool
    channels: tuple[str, ...]
    """State channels that this superstep wrote or changed."""
    seconds: float | None = None
    """Time since the parent."""
    parent_number: str | None = None
    """Number of the row this one grew from (the origin for a fork, the calling row for a subgraph's first)."""
    label: str = ""
    """What to call the row: the nodes that ran, `input`, `set /refund/amount`, `copy of #4`."""
    is_leaf: bool = False
    missing_steps: tuple[int, int] | None = None
    """First and last step between the parent and this row that no checkpoint was stored for (durability `exit`)."""


class Thread(Struct, frozen=True):
    """One line of the thread list."""

    thread_id: str
    location: str
    namespaces: tuple[str, ...]
    checkpoints: int
    roots: tuple[str, ...]
    heads: tuple[str, ...]
    head: str | None
    status: Status
    first_at: str | None
    last_at: str | None
    size_bytes: int
    first_text: str | None
    last_text: str | None
    metadata: Mapping[str, Any]
    scratch_checkpoints: int = 0
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What only some kinds of location know: title, model, tokens, the rule that chose the head."""
    closed: str = ""
    """Why nothing of its head's state can be read: then neither its status nor what was said is known."""

    @property
    def title(self) -> str:
        return str(self.facts.get("title") or "")

    @property
    def active(self) -> str:
        """By which rule the active branch of a session is the active one, in words; "" where there is no choice."""
        return str(self.facts.get("active") or "") if len(self.heads) > 1 else ""

    @property
    def is_session(self) -> bool:
        """Whether it is an agent's session: its turns are read first."""
        return "format" in self.facts

    @property
    def model(self) -> str:
        return str(self.facts.get("model") or "")


class Hit(Struct, frozen=True):
    """Where a searched text occurs."""

    address: Address
    number: str | None
    path: str
    excerpt: str
    label: str = ""
    """What its row is called; empty where the row is not in the tree."""


class Edge(Struct, frozen=True):
    """`source` led to `target`, `count` times in this thread; 0: the graph's code draws it, and it was never taken here."""

    source: str
    target: str
    count: int
    drawn: bool | None = None
    """Whether the graph's code draws it; None where the code was not asked. A `Command` may lead where no edge is drawn."""
    conditional: bool = False
    """The code decides at each passage."""


class SeenNode(Struct, frozen=True):
    """A node that ran in this thread, or that something led to; `START` and `END` stand for the outside."""

    name: str
    runs: int
    ran_from: tuple[tuple[str, str], ...] = ()
    """(namespace, checkpoint id) of the checkpoint that each run began at, as stored."""
    drawn: bool | None = None
    """Whether the graph's code has it; None where the code was not asked."""


class SeenGraph(Struct, frozen=True):
    """One graph as a thread showed it: what never happened is not in it, unless the graph's code was asked, too."""

    ns: str
    """The namespace without task ids: "" is the root graph, `writer|inner` a graph in a graph, however often it ran."""
    nodes: tuple[SeenNode, ...]
    """In the order of their first run; `START` first, `END` last."""
    edges: tuple[Edge, ...]
    """Most travelled first."""
    unnamed: int = 0
    """Runs of tasks whose node this file does not tell."""
    code: str = ""
    """The graph whose code was joined, as a plan names it; "" where none was."""

    @property
    def taken(self) -> int:
        """How many edges were seen."""
        return sum(edge.count > 0 for edge in self.edges)
