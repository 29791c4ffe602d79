"""The patch recipe: final values for channels, the same next nodes."""

from __future__ import annotations

from collections.abc import Mapping

from studio import tagged, value
from studio.errors import PatchError, RefError
from studio.explain.blob import send_parts
from studio.forks.copy import Draft
from studio.model import PENDING_SENDS, Value
from studio.render import masking
from studio.requests import Patch

_SNAPSHOT = 7
"""Ext code of a stored delta channel's snapshot: legal bare as well, so an edited one is stored bare."""


def plain(stored: Value) -> Value:
    """A stored channel value as the graph sees it: a delta channel's snapshot is unwrapped."""
    if isinstance(stored, value.Tagged) and stored.code == _SNAPSHOT:
        return stored.payload
    return stored


def values_to_edit(draft: Draft, rebuilt: Mapping[str, Value]) -> dict[str, Value]:
    """Every channel that a path may name, scheduling channels included; `rebuilt` gives the delta channels not stored here."""
    beside = {PENDING_SENDS: draft.record["pending_sends"]} if draft.sends_beside else {}
    return {**rebuilt, **{channel: plain(stored) for channel, stored in draft.values.items()}, **beside}


def apply(draft: Draft, patch: Patch, rebuilt: Mapping[str, Value], certainty: Mapping[str, str]) -> None:
    """Set and unset values by path. PatchError when a path is missing, or would change a value that is only guessed.

    `certainty` says for each rebuilt channel whether its value is `exact`.
    """
    before = values_to_edit(draft, rebuilt)
    for path in (*patch.set, *patch.unset):
        steps = _steps(path)
        if not steps:
            raise PatchError("A patch must name a channel, not the whole state.", "Write /channel or /channel/….", "bad-path")
        channel = steps[0]
        if len(steps) > 1 and certainty.get(channel, "exact") != "exact":
            raise PatchError(
                f"The value of {channel!r} is not stored here and cannot be rebuilt for certain ({certainty[channel]}), "
                "so a part of it cannot be changed.",
                f"Set the whole channel (/{channel}) instead, or fork a checkpoint that stores it.",
                "not-exact",
            )
    for path in patch.unset:
        steps = _steps(path)
        if len(steps) == 1 and steps[0] in certainty:
            reason = f"{steps[0]!r} is rebuilt from earlier checkpoints, so it cannot be removed here."
            raise PatchError(reason, "Set it to an empty value.", "rebuilt")
    try:
        after = tagged.apply_patch(before, patch, masking.hidden_in)
    except RefError as error:
        raise PatchError(error.message, error.hint, "no-such-path") from error
    if PENDING_SENDS in before and not _are_sends(after.get(PENDING_SENDS, [])):
        reason = "What waits for the next superstep must stay a list of Sends."
        raise PatchError(reason, "Change the argument of one, or remove one with --unset.", "not-sends")
    for channel, new in after.items():
        if channel not in before or (new is not before[channel] and not value.equal(new, before[channel])):
            draft.set_channel(channel, new)
    for channel in before:
        if channel not in after:
            draft.remove_channel(channel)


def _are_sends(found: Value) -> bool:
    return isinstance(found, list) and all(send_parts(one) is not None for one in found)


def _steps(path: str) -> list[str]:
    try:
        return tagged.split_path(path)
    except RefError as error:
        raise PatchError(error.message, error.hint, "bad-path") from error
