"""One checkpoint in the picture of its graph: what ran to make it, by which edges that was reached, and what runs next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from studio.errors import StudioError
from studio.history.namespaces import static_ns
from studio.model import END, START, Address, SeenGraph, SeenNode, Task, TaskStatus

if TYPE_CHECKING:
    from studio.session import Session
    from studio.tree import CheckpointTree

Pair = tuple[str, str]


class Moment(Struct, frozen=True):
    """What a picture of one graph lights. Empty where the checkpoint belongs to another graph."""

    ran: Mapping[str, TaskStatus] = field(default_factory=dict)
    """Nodes of the superstep that made the checkpoint."""
    taken: frozenset[Pair] = frozenset()
    """Edges by which those were reached."""
    next: Mapping[str, TaskStatus] = field(default_factory=dict)
    """Nodes scheduled from the checkpoint; `END` where the run was done."""
    coming: frozenset[Pair] = frozenset()
    """Edges that lead to those."""
    inside: str | None = None
    """The node whose subgraph the checkpoint lies in."""


def moment(session: Session, tree: CheckpointTree, address: Address, graph: SeenGraph) -> Moment:
    """What to light in the picture of `graph` when `address` is chosen."""
    here = static_ns(address.checkpoint_ns)
    if here != graph.ns:
        outer = f"{graph.ns}|" if graph.ns else ""
        return Moment(inside=here[len(outer) :].partition("|")[0] if here.startswith(outer) else None)
    seen = {(edge.source, edge.target) for edge in graph.edges}
    ran: dict[str, TaskStatus] = {run.name: run.status for run in tree.row(address).nodes if run.name is not None}
    parent = tree.parent(address)
    before = _tasks(session, parent) if parent is not None and ran else ()
    state = session.state(address)
    after: dict[str, TaskStatus] = {task.name: task.status for task in state.tasks if task.name is not None}
    coming = _reached(state.tasks, after)
    if not state.tasks and state.next == () and ran:
        coming = {(name, END) for name in ran}
        after = {END: "done"} if coming & seen else {}
    return Moment(ran, frozenset(_reached(before, ran) & seen), after, frozenset(coming & seen))


def _tasks(session: Session, address: Address) -> tuple[Task, ...]:
    try:
        return session.state(address).tasks
    except StudioError:
        return ()


def _reached(tasks: Iterable[Task], names: Mapping[str, TaskStatus]) -> set[Pair]:
    """What started each of the named tasks, as far as it is known."""
    found: set[Pair] = set()
    for task in tasks:
        if task.name in names and task.name is not None:
            sources = {author.node for trigger in task.triggers for author in trigger.authors}
            found.update((source, task.name) for source in sources if source is not None)
    return found


def in_order(graphs: Sequence[SeenGraph], address: Address) -> tuple[SeenGraph, ...]:
    """The graph of the chosen checkpoint first, the others as they were."""
    here = static_ns(address.checkpoint_ns)
    return tuple(sorted(graphs, key=lambda graph: graph.ns != here))


def last_runs(tree: CheckpointTree, thread_id: str, node: SeenNode, most: int) -> tuple[Address, ...]:
    """The checkpoints that the latest runs of a node made, oldest first; a run that made none yet stands for where it began."""
    found: dict[Address, None] = {}
    for ns, checkpoint_id in node.ran_from[-most:]:
        began = Address(thread_id, ns, checkpoint_id)
        if began in tree:
            made = next((one for one in tree.children(began) if tree.header(one).source == "loop"), began)
            found[made] = None
    return tuple(found)


def is_end(name: str) -> bool:
    """Whether a node stands for the outside."""
    return name in (START, END)
