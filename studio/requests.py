"""What a person asks for and what comes of it: patches, forks, runs and their plans; frozen values like those of the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, field

from studio.model import Address, Change, Tagged_JSON, Value

LOAD_SECONDS = 120.0
"""So long the user's code has to be loaded and to answer, when it is asked something and not run."""


class Patch(Struct, frozen=True):
    """Final values by path: `set` maps a path to tagged JSON, `unset` lists paths to remove."""

    set: Mapping[str, Tagged_JSON] = field(default_factory=dict)
    unset: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.set or self.unset)


class GraphSpec(Struct, frozen=True):
    """Where the user's graph is: `graph` is a name in `langgraph.json`, `module:attr` or `path.py:attr`; None = look it up."""

    graph: str | None = None
    python: str | None = None
    """Interpreter to run it with; None = `VIRTUAL_ENV`, `.venv` beside `langgraph.json`, else the studio's own."""
    cwd: str | None = None


class NodeUpdate(Struct, frozen=True):
    """What one node would return, for `update_state`."""

    as_node: str | None = None
    """None = LangGraph decides."""
    values: Tagged_JSON = None
    overwrite: tuple[str, ...] = ()
    """Channels whose value replaces the stored one instead of going through the reducer."""

    @property
    def channels(self) -> tuple[str, ...]:
        """What is written to, as far as the values name it."""
        return tuple(self.values) if isinstance(self.values, dict) and not any(key.startswith("$") for key in self.values) else ()


class ForkRequest(Struct, frozen=True):
    """What a person asks for: a copy (nothing else given), `patch` and/or `goto`, or `is_update` with `as_node` and `update`."""

    address: Address
    patch: Patch = field(default_factory=Patch)
    goto: str | None = None
    as_node: str | None = None
    update: Tagged_JSON = None
    is_update: bool = False
    """True = `update_state` with the user's graph, `as_node` may be None (LangGraph decides)."""
    new_thread: str | None = None
    in_place: bool = False
    graph: GraphSpec = field(default_factory=GraphSpec)
    trust_types: bool = False
    config: Mapping[str, Any] = field(default_factory=dict)
    """Entries of `configurable` for `update_state`."""
    recursion_limit: int | None = None
    keep: frozenset[str] = frozenset()
    """Ids of finished tasks of this step: the copy takes their results along, and they do not run again."""
    overwrite: tuple[str, ...] = ()
    """Channels of `update` that replace what is stored instead of going through the reducer."""
    beside: tuple[NodeUpdate, ...] = ()
    """Further nodes to write as, in the same superstep."""
    install: bool = False
    """Of a session: put the fork where its program looks for sessions."""
    record: str | None = None
    """Of a session: what the person named, where that was a record inside the turn."""

    @property
    def updates(self) -> tuple[NodeUpdate, ...]:
        """All that `update_state` is asked to write; () for the other acts."""
        return (NodeUpdate(self.as_node, self.update, self.overwrite), *self.beside) if self.is_update else ()


class Resume(Struct, frozen=True):
    """How a program goes on from the fork of a session."""

    session: str
    """Id of the new session."""
    program: str
    """`Claude Code` or `Codex`; empty where no program keeps such files."""
    version: str | None
    """The one that wrote the session."""
    cwd: str | None
    prompt: str | None
    """What to say next: the prompt that was forked, edited perhaps; it is not stored."""
    commands: Mapping[str, str]
    """`interactive` and `print`, to be copied into a shell."""
    target: str | None
    """Where the program looks for the file."""
    installed: str | None
    """The same, once it lies there."""
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class ForkResult(Struct, frozen=True):
    address: Address
    parent_checkpoint_id: str | None
    stored_in: str
    forked_from: Address
    recipe: str
    """`copy`, `set`, `goto`, `set+goto`, `update_state`, `subgraph`."""
    next: tuple[str | None, ...] | None
    verified: bool
    """The stored result was read back and equals what was asked for."""
    surprises: tuple[str, ...]
    """Each difference from what was asked for; of a verified fork, what else could not be done when it was stored."""
    root: Address
    created: tuple[Address, ...]
    updates: tuple[NodeUpdate, ...] = ()
    """What was written as which node, where that was the act."""
    session: Resume | None = None
    """Of a forked session."""


class PromotedRow(Struct, frozen=True):
    """A checkpoint of the scratch file that promoting adds to the opened file, as it is stored."""

    address: Address
    parent_checkpoint_id: str | None
    size_bytes: int
    """Of the stored checkpoint, without its writes."""
    kind: str
    """`input`, `loop`, `update` or `fork`, as LangGraph writes it."""
    writes: int
    """Rows of `writes` that are stored under it."""
    sha256: str
    """Of the stored row and of its writes: what was shown is what is added."""


class Promotion(Struct, frozen=True):
    """Exactly what promoting a branch would add to the opened file, and what that does to the thread."""

    address: Address
    """What was asked for."""
    location: str
    rows: tuple[PromotedRow, ...]
    """In the order of their ids, subgraph checkpoints included."""
    head_before: str | None
    """The checkpoint of the root namespace that LangGraph resumes now; None where the file does not hold the thread."""
    head_after: str
    """The one that it resumes afterwards: the largest id of the root namespace."""
    hangs_below: str | None
    """Stored parent of the branch's first checkpoint; None where the branch has a root of its own."""
    forked_from: Address | None
    """The checkpoint that the branch's first one was made from, where that is recorded."""
    warnings: tuple[str, ...]
    """What a person should know before, each as one sentence."""

    @property
    def writes(self) -> int:
        return sum(row.writes for row in self.rows)

    @property
    def seal(self) -> str:
        """Another one as soon as anything differs that a person was shown."""
        import hashlib  # loads a large library, and few calls promote

        shown = (self.address, self.location, self.rows, self.head_before, self.head_after, self.hangs_below)
        return hashlib.sha256(repr(shown).encode("utf-8", "backslashreplace")).hexdigest()[:32]

    @property
    def size_bytes(self) -> int:
        """Of the checkpoints alone."""
        return sum(row.size_bytes for row in self.rows)


class ForkPreview(Struct, frozen=True):
    """What a fork would do, before anything is written."""

    changes: tuple[Change, ...]
    next: tuple[str | None, ...] | None
    warnings: tuple[str, ...]
    refused: str | None = None
    """The reason, when the fork would be refused."""
    expect: Mapping[str, Value] | None = None
    """The values the fork will hold."""
    merged: tuple[str, ...] = ()
    """Of a write as a node: channels whose reducer put the new value together with the stored one."""
    can_replace: bool = True
    """The graph's LangGraph has `Overwrite`, which sets such a channel instead."""
    as_node: str | None = None
    """The node that is written as, also where LangGraph chose it."""
    session: Resume | None = None
    """Of a session."""


class RunRequest(Struct, frozen=True):
    address: Address
    graph: GraphSpec = field(default_factory=GraphSpec)
    input: Any = None
    has_input: bool = False
    resume: Any = None
    has_resume: bool = False
    answers: Mapping[str, Any] = field(default_factory=dict)
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    in_place: bool = False
    trust_types: bool = False
    recursion_limit: int | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    """LangGraph's run-time context; fields that `config` or the checkpoint name as well are taken from here."""
    steps: int | None = None
    """Stop after so many supersteps."""
    timeout: float | None = None
    """End the run after so many seconds."""
    new_thread: str | None = None
    """Run a copy of the checkpoint in a thread of its own."""


class TypeUse(Struct, frozen=True):
    """A stored type that running would import."""

    name: str
    count: int
    safe: bool
    """On LangGraph's own safe list, or in the graph's schema."""
    channels: tuple[str, ...] = ()
    becomes: str | None = None
    """Under which name the run stores it: what a script stored as `__main__.Order` is `shop.Order` where `shop.py` is loaded."""


class PastCall(Struct, frozen=True):
    """A tool call that the branch made after the point of a run: it may happen a second time."""

    tool: str
    call_id: str
    arguments: str
    """What it was called with, in one line, masked; "" where that is not stored."""
    outcome: str
    """`answered`, `failed`, or `unknown`: no result is stored, and it may have happened."""


class PastNode(Struct, frozen=True):
    """A node that the branch ran after the point of a run, and how often."""

    name: str
    runs: int


class SubgraphStart(Struct, frozen=True):
    """What becomes of the subgraph of a task that runs."""

    node: str
    how: str
    """`continues` where it stopped, `chosen` (from the chosen checkpoint in it), `remembers` (its own thread of checkpoints),
    `restarts` at its first node."""


class TypeChange(Struct, frozen=True):
    """A channel whose stored value is not of the type that the graph declares."""

    channel: str
    stored: str
    declared: str


class Drift(Struct, frozen=True):
    """What the graph and the stored checkpoint do not have in common."""

    channels_gone: tuple[str, ...] = ()
    """Stored, and not in the graph."""
    channels_new: tuple[str, ...] = ()
    """In the graph, and not stored: new, or never written."""
    types: tuple[TypeChange, ...] = ()
    nodes_gone: tuple[str, ...] = ()
    """Ran in this thread, and not in the graph; of a subgraph as `draft in review`."""
    nodes_new: tuple[str, ...] = ()
    """In the graph, and never seen here: new, or never reached."""
    schema_version: tuple[str, str] | None = None
    """(stored, the graph's) where the two differ."""


class RunPlan(Struct, frozen=True):
    """What a run will do, on the screen before it starts (design rule 4)."""

    address: Address
    runs: tuple[str, ...]
    """Tasks that run first."""
    kept: tuple[str, ...]
    """Finished siblings that are not run again."""
    asks: tuple[str, ...]
    """Open questions that will be asked again, in words."""
    side_effects: tuple[str, ...]
    """Tool calls and nodes that already ran after this point and may happen again, in words, with what was recorded of them."""
    graph: str
    """`support_agent` = /path/graphs.py:support_agent"""
    graph_file: str | None
    interpreter: str
    types: tuple[TypeUse, ...]
    needs_trust: bool
    """A stored type outside the safe list and the graph's schema: `trust_types` or a click is needed."""
    stored_in: str
    warnings: tuple[str, ...] = ()
    makes_copy: bool = False
    """A base checkpoint is copied to the scratch file first."""
    config: Mapping[str, str] = field(default_factory=dict)
    """`config.configurable` values that the graph gets, as stored with the checkpoint or asked for; one line each, masked."""
    recursion_limit: int | None = None
    """LangGraph's limit of supersteps, where one was asked for."""
    context: Mapping[str, str] = field(default_factory=dict)
    """LangGraph's run-time context, as `config`."""
    steps: int | None = None
    timeout: float | None = None
    before: tuple[str, ...] = ()
    """Nodes that the run stops before, as asked for."""
    after: tuple[str, ...] = ()
    past_calls: tuple[PastCall, ...] = ()
    """The tool calls of `side_effects`, field by field, as far as there are at most 1,000."""
    past_nodes: tuple[PastNode, ...] = ()
    """Nodes that ran after this point: what they do outside may happen again when the run comes by."""
    open_calls: tuple[str, ...] = ()
    """Tool calls in the state that have no result and will get none, in words."""
    reused: tuple[str, ...] = ()
    """Answers that were given before and count again, in words."""
    subgraphs: tuple[SubgraphStart, ...] = ()
    new_thread: str | None = None
    """The thread that a copy runs in, where it is one of its own."""
    drift: Drift | None = None
    """None where the graph was not looked at, since that loads its code."""

    @property
    def starts(self) -> bool:
        """Whether anything runs: a task, or what follows once the results of finished ones are taken over."""
        return bool(self.runs or self.kept)

    @property
    def one_click(self) -> bool:
        return not self.side_effects and not self.needs_trust


class RunEvent(Struct, frozen=True):
    """One event of a run; `event` is plan, checkpoint, task, task_result, log, error or end."""

    event: str
    data: Mapping[str, Any]
    at: float = 0.0
