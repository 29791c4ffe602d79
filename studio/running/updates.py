"""Write as a node: `update_state` with the user's graph, on the scratch file or, when asked, in place.

Reducers apply and the node's edges choose what is next, so only the graph can do it: in the child, behind the same gate as a
run. A preview does the whole thing on a private copy and shows what came out.
"""

from __future__ import annotations

import base64
import contextlib
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from studio import runner
from studio import value as codec
from studio.codec.inert import MISSING
from studio.codec.untagged import from_tagged
from studio.diff import diff
from studio.errors import PatchError, RunError
from studio.explain import Explainer
from studio.forks.writing import check_writable, foresee_triggers
from studio.model import Address, State, Tagged_JSON
from studio.overlay import Overlay
from studio.requests import ForkPreview, ForkRequest, ForkResult
from studio.running.audited import begin_audit
from studio.running.encrypted import key_environment
from studio.running.graphs import GraphFound, find_graph
from studio.running.plans import Inspector, check_trust, update_types
from studio.running.ways import stored_config
from studio.stores import open_store

if TYPE_CHECKING:
    from studio.session import Session


_MOST_LEVELS = 500
"""Below what LangGraph's serializer and the JSON of the request can nest."""


def write(session: Session, inspector: Inspector, request: ForkRequest) -> ForkResult:
    """Update as a node and read back what was stored.

    Raises UsageError or RunError: no graph, an ambiguous node (with candidates), types that need trust, a refused update.
    """
    check_writable(request.address)
    graph = find_graph(request.graph, session.location)
    state = session.state(request.address)
    trusted = _trusted(session, inspector, graph, request)
    database = session.location if request.in_place or session.scratch.is_store else session.scratch.path
    audit = begin_audit(session, "update_state", request)
    at, created, unaudited = request.address, None, None
    try:
        at, created = _place(session, request, state)
        made = _called(session, graph, request, state, at, database, trusted)
    finally:
        if audit is not None:
            unaudited = audit.done(at.thread_id, created.created if created is not None else ())
    session.refresh()
    new = Address(at.thread_id, str(made["checkpoint_ns"]), str(made["checkpoint_id"]))
    after = session.state(new)
    surprises = _surprises(request, after, at, made)
    return ForkResult(
        address=new,
        parent_checkpoint_id=after.checkpoint.parent_checkpoint_id,
        stored_in=database,
        forked_from=request.address,
        recipe="update_state",
        next=after.next,
        verified=not surprises,
        surprises=(*surprises, *((unaudited,) if unaudited is not None else ())),
        root=created.root if created is not None and at.checkpoint_ns else new,
        created=(*(created.created if created is not None else ()), new),
    )


def preview(session: Session, inspector: Inspector, request: ForkRequest) -> ForkPreview:
    """What `write` would store, tried on a private copy. A refusal is a value; a graph that cannot be found or loaded raises."""
    from studio.forks.forker import Forker
    from studio.forks.scratch import Scratch

    graph = find_graph(request.graph, session.location)
    state = session.state(request.address)
    if request.address.checkpoint_ns:
        return ForkPreview((), None, ("Inside a subgraph the outcome is only known after the fork.",))
    with tempfile.TemporaryDirectory(prefix="checkpoint-studio-") as folder:
        scratch = Scratch(session.location, str(Path(folder) / "preview.sqlite"))
        Forker(session.overlay, session.explainer, scratch).bring(request.address, writes=_is_leaf(session, request.address))
        try:
            if request.in_place:
                foresee_triggers(session.location)
            trusted = _trusted(session, inspector, graph, request)
            made = _called(session, graph, request, state, request.address, scratch.path, trusted)
        except (RunError, PatchError) as error:
            return ForkPreview((), None, (), " ".join(part for part in (error.message, error.hint) if part))
        store = Overlay(open_store(scratch.path), unsealer=session.overlay.unsealer)
        with contextlib.closing(store):
            after = Explainer(store).state(Address(request.address.thread_id, "", str(made["checkpoint_id"])))
    changes = tuple(diff(state.values, after.values))
    return ForkPreview(changes, after.next, tuple(_dropped(made)), None, after.values)


def _trusted(session: Session, inspector: Inspector, graph: GraphFound, request: ForkRequest) -> list[str]:
    needed = update_types(session, inspector, graph, request)
    check_trust(needed, request.trust_types)
    return list(needed)


def _is_leaf(session: Session, address: Address) -> bool:
    return not session.tree(address.thread_id).children(address)


def _place(session: Session, request: ForkRequest, state: State) -> tuple[Address, ForkResult | None]:
    """The checkpoint to update, in the file to write to, and the copy that was made for it.

    A live head comes with its pending writes, as LangGraph itself would see them; a passed checkpoint without: they belong to the
    branch that was taken.
    """
    address = request.address
    if request.new_thread is not None or address.checkpoint_ns:
        copy = session.fork(ForkRequest(address, new_thread=request.new_thread, in_place=request.in_place))
        return copy.address, copy
    if state.checkpoint.origin == "base" and not request.in_place and not session.scratch.is_store:
        session.forker.bring(address, writes=_is_leaf(session, address))
    elif request.in_place and state.checkpoint.origin == "scratch":
        message = "This checkpoint is in the scratch file, not in your own."
        raise PatchError(message, "Update it without --in-place.", "not-in-base")
    return address, None


def _called(
    session: Session, graph: GraphFound, request: ForkRequest, state: State, at: Address, database: str, trusted: list[str]
) -> dict[str, Any]:
    environment = key_environment(session, request.address)
    document = {**_child_request(request, state, at, database, trusted), "encrypted": bool(environment)}
    return runner.call(graph, document, environment=environment)


def _child_request(request: ForkRequest, state: State, at: Address, database: str, trusted: list[str]) -> dict[str, Any]:
    return {
        "op": "update_state", "database": database, "thread_id": at.thread_id, "checkpoint_ns": at.checkpoint_ns,
        "checkpoint_id": at.checkpoint_id, "as_node": request.as_node, "trusted": trusted,
        "values": encoded(request.update, state.values) if request.update is not None else None,
        "configurable": {**stored_config(state.metadata), **request.config}, "recursion_limit": request.recursion_limit,
    }  # fmt: skip


def encoded(document: Tagged_JSON, stored: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Tagged JSON for the child: plain JSON as it is, else the stored form, which LangGraph's own loader reads behind the gate.

    `stored` gives the values that `$masked` and the like stand for, by channel. Raises PatchError for what cannot be stored.
    """
    if _depth(document) > _MOST_LEVELS:
        message = f"the value has more than {_MOST_LEVELS} levels of lists and objects inside each other"
        raise PatchError(message, "LangGraph cannot store so deep a value; give a flatter one", "too-deep")
    if not _has_forms(document):
        return {"json": document}
    if isinstance(document, dict) and stored is not None and not any(key.startswith("$") for key in document):
        value: Any = {key: from_tagged(item, stored.get(key, MISSING)) for key, item in document.items()}
    else:
        value = from_tagged(document)
    return {"msgpack": base64.b64encode(codec.encode("msgpack", value)).decode("ascii")}


def _depth(document: Any) -> int:
    """How many lists and objects are inside each other at most."""
    deepest, stack = 0, [(document, 0)]
    while stack:
        item, depth = stack.pop()
        deepest = max(deepest, depth)
        if isinstance(item, (dict, list)):
            stack += [(inner, depth + 1) for inner in (item.values() if isinstance(item, dict) else item)]
    return deepest


def _has_forms(document: Any) -> bool:
    """Whether an object with a `$` key is anywhere inside."""
    stack = [document]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if any(isinstance(key, str) and key.startswith("$") for key in item):
                return True
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)
    return False


def _surprises(request: ForkRequest, after: State, at: Address, made: Mapping[str, Any]) -> list[str]:
    """Where the stored result is not what was asked for, as far as that can be told without the reducers."""
    found = _dropped(made)
    if after.checkpoint.parent_checkpoint_id != at.checkpoint_id:
        found.append("The new checkpoint is not a child of the one that was updated.")
    if isinstance(request.update, dict):
        for channel, asked in request.update.items():
            if (made.get("channels") or {}).get(channel) != "LastValue" or _has_forms(asked):
                continue
            if not codec.equal(after.values.get(channel), from_tagged(asked)):
                found.append(f"{channel!r} is not what was written: the graph changed it.")
    return found


def _dropped(made: Mapping[str, Any]) -> list[str]:
    return [f"The graph has no channel {name!r}: what was written to it is gone." for name in made.get("dropped") or ()]
