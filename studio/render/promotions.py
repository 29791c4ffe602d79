"""What putting a branch into the opened file does to its thread, in words that all front ends share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio.model import Address
from studio.render.gate import line
from studio.requests import Promotion

if TYPE_CHECKING:
    from studio.tree import CheckpointTree

TITLE = "Put this branch into the file itself"
ASSURANCE = "Rows are only added: none that is there is changed or deleted. The studio never takes them out again."


def numbered(tree: CheckpointTree, address: Address) -> str:
    """What a checkpoint is called, `#4`; "" where it has no number."""
    return f"#{tree.number(address)}" if address in tree else ""


def place_words(found: Promotion, tree: CheckpointTree) -> str:
    """Where the branch will hang in the thread."""
    if found.forked_from is not None and found.forked_from.thread_id != found.address.thread_id:
        return "a thread of its own in the file"
    origin = _named(found.forked_from.checkpoint_id, tree) if found.forked_from is not None else ""
    if found.hangs_below is None:
        return f"a second root of the thread, beside {origin}" if origin else "a root of the thread"
    below = f"below {_named(found.hangs_below, tree)}"
    return f"{below}, beside {origin}, which it was forked from" if origin else below


def head_words(found: Promotion, tree: CheckpointTree) -> str:
    """The thread's head, which LangGraph resumes when it is given no checkpoint, before and after."""
    after = _named(found.head_after, tree)
    if found.head_before is None:
        return f"{after}, since the thread is new; a program that goes on with it starts there"
    if found.head_before == found.head_after:
        return f"stays {after}"
    return f"{_named(found.head_before, tree)} now, {after} afterwards; a program that goes on with the thread starts there"


def _named(identity: str, tree: CheckpointTree) -> str:
    """A checkpoint of the root graph by number and id."""
    return line(f"{numbered(tree, Address(tree.thread_id, '', identity))} {identity}".lstrip())
