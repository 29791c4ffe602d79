"""The acts that make a fork, in words for people who meet them the first time; command line, terminal and page say the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from studio import tagged
from studio.errors import PatchError
from studio.model import Tagged_JSON, Value
from studio.render.gate import line
from studio.requests import ForkPreview, ForkRequest
from studio.value import MISSING


class Act(NamedTuple):
    id: str
    title: str
    words: str


SET = Act("set", "Set the state", "These values stand there, and none of your code runs. What was to run next still does.")
UPDATE = Act(
    "update",
    "Write as a node",
    "As if that node had just returned these values: your reducers take them in, your edges decide what runs next.",
)
COPY = Act("copy", "The same point again", "Nothing changes: to see what chance, a new prompt or new code makes of it.")
ACTS = (SET, UPDATE, COPY)


def returned(values: Mapping[str, Value], edits: Mapping[str, Tagged_JSON], unset: Collection[str]) -> dict[str, Tagged_JSON]:
    """What a node would return for some edits of the state: whole channels, with the edits inside. PatchError: it cannot."""
    if unset:
        raise PatchError("A node cannot remove a value.", "Set the state instead of writing as a node.")
    found: dict[str, Tagged_JSON] = {}
    state = dict(values)
    for path, doc in edits.items():
        channel = tagged.split_path(path)[0]
        if path == tagged.join_path([channel]):  # it may name parts of the stored value by their place
            state = {**state, channel: tagged.from_tagged(doc, state.get(channel, MISSING))}
        else:
            state = tagged.set_in(state, path, tagged.from_tagged(doc, tagged.get(state, path)))
        found[channel] = tagged.to_tagged(state[channel])
    return found


def act(request: ForkRequest) -> str:
    """`set`, `goto`, `set+goto`, `update` or `copy`."""
    if request.is_update:
        return UPDATE.id
    done = [name for name, asked in (("set", bool(request.patch)), ("goto", request.goto is not None)) if asked]
    return "+".join(done) or COPY.id


def title(request: ForkRequest, preview: ForkPreview | None = None) -> str:
    """`write as web`, `set the state and go to publish`: what is asked for, in a few words. Gated."""
    if request.is_update:
        chosen = preview.as_node if preview is not None else None
        taken = chosen or ("the node that LangGraph takes" if len(request.updates) == 1 else "a node to be named")
        names = [line(one.as_node or taken, 60) for one in request.updates]
        how = "" if request.updates[0].as_node or chosen is None else " (LangGraph's own choice)"
        return f"write as {listed(names)}{how}{', in one superstep' if len(names) > 1 else ''}"
    parts = {
        "set": "set the state", "goto": f"go to {line(request.goto or '', 60)}", "copy": "the same point again",
    }  # fmt: skip
    return " and ".join(parts[name] for name in act(request).split("+"))


def merged(preview: ForkPreview, how: str) -> str:
    """What a reducer made of a value, and how to have it set instead; "" where none did. `how`: the way in this front end."""
    if not preview.merged:
        return ""
    names = listed([line(name, 60) for name in preview.merged])
    said = f"{names}: the reducer puts your value together with what is stored."
    if preview.can_replace:
        return f"{said} To replace it: {how}."
    return f"{said} This LangGraph has no Overwrite to replace it: set the state instead."


def listed(names: Sequence[str]) -> str:
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
