"""Write as a node: `update_state` with the user's graph, on the scratch file or, when asked, in place.

Reducers apply and the node's edges choose what is next, so only the graph can do it: in the child, behind the same gate as a
run. A preview does the whole thing in the child's memory and shows what came out.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from studio import runner
from studio import value as codec
from studio.codec.inert import MISSING
from studio.codec.untagged import from_tagged
from studio.diff import diff
from studio.errors import PatchError, RunError, StudioError
from studio.forks.scratch import record_update
from studio.forks.writing import check_writable, foresee_triggers
from studio.model import Address, State, Tagged_JSON
from studio.render import masking
from studio.requests import ForkPreview, ForkRequest, ForkResult
from studio.running.audited import begin_audit
from studio.running.encrypted import key_environment
from studio.running.graphs import GraphFound, find_graph
from studio.running.plans import Inspector, check_trust, update_types
from studio.running.ways import stored_config

if TYPE_CHECKING:
    from studio.session import Session


_MOST_LEVELS = 500
"""Below what LangGraph's serializer and the JSON of the request can nest."""


def write(session: Session, inspector: Inspector, request: ForkRequest) -> ForkResult:
    """Update as a node and read back what was stored.

    Raises UsageError or RunError: no graph, an ambiguous node (with candidates), types that need trust, a refused update.
    """
    state = session.state(request.address)
    check_update(session, request, state)
    graph = find_graph(request.graph, session.location)
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
    new = Address(at.thread_id, str(made["checkpoint_ns"]), str(made["checkpoint_id"]))
    unaudited = _recorded(session, request, new, made) or unaudited
    session.refresh()
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
        updates=tuple(replace(one, as_node=one.as_node or made.get("as_node")) for one in request.updates),
    )


def preview(session: Session, inspector: Inspector, request: ForkRequest) -> ForkPreview:
    """What `write` would store: the child does the same in memory, and no file is written.

    A refusal is a value; a graph that cannot be found or loaded raises.
    """
    graph = find_graph(request.graph, session.location)
    state = session.state(request.address)
    parts: dict[str, tuple[str, list[str]]] = {}

    def take(event: Mapping[str, Any]) -> None:
        if event["event"] == "part":
            parts.setdefault(event["name"], (event["tag"], []))[1].append(event["data"])

    try:
        check_update(session, request, state)
        if request.new_thread is not None or request.address.checkpoint_ns:
            copied = session.forker.preview(ForkRequest(request.address, new_thread=request.new_thread))
            if copied.refused:
                return copied
        if request.in_place and not session.scratch.is_store:
            foresee_triggers(session.location)
        trusted = _trusted(session, inspector, graph, request)
        at = request.address
        rows = session.forker.in_memory(at, writes=_takes_rows(session, request))
        made = _called(session, graph, request, state, at, ":memory:", trusted, {"op": "preview_update", "rows": rows}, take)
    except (RunError, PatchError) as error:
        if error.slug in _GRAPH:
            raise
        reason = error.message if error.message.endswith((".", "?", "!")) else f"{error.message}."
        return ForkPreview((), None, (), f"{reason} {error.hint}".strip())
    held = {name: codec.decode(tag, base64.b64decode("".join(data))) for name, (tag, data) in parts.items()}
    gone = set(made["gone"])
    after = {**{name: value for name, value in state.values.items() if name not in gone}, **held}
    return ForkPreview(
        changes=tuple(diff(state.values, after)),
        next=tuple(made["next"]),
        warnings=tuple(_dropped(made)),
        expect=after,
        merged=tuple(made["merged"]),
        can_replace=bool(made["can_replace"]),
        as_node=made["as_node"],
    )


_GRAPH = ("run-load", "run-saver", "no-graph", "several-graphs", "no-interpreter")
"""What has nothing to do with the update: there is no graph to ask."""


def check_update(session: Session, request: ForkRequest, state: State) -> None:
    """Raises PatchError where writing as a node would be wrong, or is another act by its name."""
    check_writable(request.address)
    session.forker.check(request.address)
    for update in request.updates:
        if update.as_node == "__copy__":
            message = "__copy__ is no node: it is the same point again."
            raise PatchError(message, "Fork without writing as a node.", "no-node")
        missing = [name for name in update.overwrite if name not in update.channels]
        if missing:
            message = f"The update holds no value for {', '.join(missing)} to replace what is stored."
            raise PatchError(message, "Give one, or let this channel be merged.", "no-value")
    if len(request.updates) > 1 and any(update.as_node is None for update in request.updates):
        raise PatchError("Of several writes each must say as which node.", "Name a node for each of them.", "no-node")
    replaced = {name for update in request.updates for name in update.overwrite}
    lost = sorted(set(state.unrebuilt) - replaced)
    if lost:
        why = state.unrebuilt[lost[0]]
        message = f"{', '.join(lost)} cannot be rebuilt at this checkpoint: {why}. LangGraph would go on from an empty value."
        raise PatchError(message, "Set the state, with a value for it; or write at a later checkpoint.", "not-rebuilt")


def _trusted(session: Session, inspector: Inspector, graph: GraphFound, request: ForkRequest) -> list[str]:
    needed = update_types(session, inspector, graph, request)
    check_trust(needed, request.trust_types)
    return list(needed)


def _is_leaf(session: Session, address: Address) -> bool:
    return not session.tree(address.thread_id).children(address)


def _takes_rows(session: Session, request: ForkRequest) -> bool:
    """Whether the rows of the checkpoint's own tasks are there when LangGraph updates it; see `_place`."""
    if request.new_thread is not None or request.address.checkpoint_ns:
        return False
    return request.in_place or session.scratch.is_store or _is_leaf(session, request.address)


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
    session: Session,
    graph: GraphFound,
    request: ForkRequest,
    state: State,
    at: Address,
    database: str,
    trusted: list[str],
    more: Mapping[str, Any] | None = None,
    handle: runner.Handler = lambda event: None,
) -> dict[str, Any]:
    environment = key_environment(session, request.address)
    document = {**_child_request(request, state, at, database, trusted), "encrypted": bool(environment), **(more or {})}
    return runner.call(graph, document, environment=environment, handle=handle)


def _recorded(session: Session, request: ForkRequest, new: Address, made: Mapping[str, Any]) -> str | None:
    """Keep as which nodes a checkpoint was written; the reason where that fails: the fork is stored all the same."""
    written = tuple((one.as_node or str(made.get("as_node") or "?"), one.channels) for one in request.updates)
    try:
        if request.in_place and not session.scratch.is_store:
            from studio.notes import Notes  # brings sqlite-utils, which only writing to a user's own file needs here

            Notes(session.scratch.notes_path).record_update(new, written)
        else:
            record_update(session.scratch.path, new, written)
    except StudioError as error:
        return f"As which node it was written could not be recorded. {error.message}"
    return None


def _child_request(request: ForkRequest, state: State, at: Address, database: str, trusted: list[str]) -> dict[str, Any]:
    return {
        "op": "update_state", "database": database, "thread_id": at.thread_id, "checkpoint_ns": at.checkpoint_ns,
        "checkpoint_id": at.checkpoint_id, "trusted": trusted,
        "updates": [
            {"as_node": one.as_node, "overwrite": list(one.overwrite),
             "values": encoded(one.values, state.values) if one.values is not None else None}
            for one in request.updates
        ],
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
        value: Any = {
            key: from_tagged(item, stored.get(key, MISSING), masking.hidden_in(key, stored.get(key)))
            for key, item in document.items()
        }
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
    for channel, asked in _final(request, made.get("channels") or {}).items():
        if not _has_forms(asked) and not codec.equal(after.values.get(channel), from_tagged(asked)):
            found.append(f"{channel!r} is not what was written: the graph changed it.")
    return found


def _final(request: ForkRequest, kinds: Mapping[str, str]) -> dict[str, Tagged_JSON]:
    """Channel -> the value that must stand there afterwards, where no reducer has a say."""
    found: dict[str, Tagged_JSON] = {}
    for update in request.updates:
        for channel in update.channels:
            if kinds.get(channel) == "LastValue":
                found[channel] = update.values[channel] if isinstance(update.values, dict) else None
    return found


def _dropped(made: Mapping[str, Any]) -> list[str]:
    return [f"The graph has no channel {name!r}: what was written to it is gone." for name in made.get("dropped") or ()]
