"""From the fork screen to the message editor and back: what is kept there becomes edits of the fork."""

from __future__ import annotations

from typing import TYPE_CHECKING

from studio import tagged
from studio.errors import PatchError
from studio.render import gate
from studio.rewriting import Rewriting
from studio.tui import draw
from studio.tui.screens.edits import GONE, Edit
from studio.tui.screens.rewrite import ChoiceScreen, RewriteScreen

if TYPE_CHECKING:
    from studio.tui.screens.fork import ForkScreen


def edit_messages(fork: ForkScreen, path: str = "") -> None:
    """Open the message editor on the channel of a path, else on the only one that holds messages, else ask which."""
    names = fork.channels
    steps = tagged.split_path(path) if path.startswith("/") else []
    if not names:
        fork.app.complain(PatchError("No channel of this state holds messages.", "Edit another value."), "No messages")
    elif steps and steps[0] in names:
        _open(fork, steps[0], int(steps[1]) if len(steps) > 1 and steps[1].isdigit() and len(steps[1]) < 9 else None)
    elif len(names) == 1:
        _open(fork, names[0])
    else:
        sizes = {name: len(fork.point.state.values[name]) for name in names}
        choices = [(f"{gate.line(name, 50)}, {sizes[name]:,} messages", name) for name in names]

        def chosen(name: str | None) -> None:
            if name is not None:
                _open(fork, name)

        fork.app.push_screen(ChoiceScreen("Which messages?", choices), chosen)


def _open(fork: ForkScreen, channel: str, at: int | None = None) -> None:
    edited = fork.chats.get(channel)
    here = [edit for edit in fork.edits if tagged.split_path(edit.path)[:1] == [channel]]
    replaces = False
    if edited is None or here != _edits(edited):
        edited = Rewriting(fork.point.state, channel)
        replaces = bool(here)
    screen = RewriteScreen(edited, draw.number(fork.point.row), at=at, show_secrets=fork.point.show_secrets)
    fork.app.push_screen(screen, lambda kept: _kept(fork, kept))
    if replaces:
        words = f"What you keep here replaces the edits of {gate.line(channel, 40)} in the list."
        screen.call_after_refresh(fork.app.tell, words)


def _edits(edited: Rewriting) -> list[Edit]:
    patch = edited.patch()
    return [*(Edit(path, doc) for path, doc in patch.set.items()), *(Edit(path, GONE) for path in patch.unset)]


def _kept(fork: ForkScreen, edited: Rewriting | None) -> None:
    """Put the edits of one channel in the place of those that it had."""
    if edited is None:
        return
    fork.chats[edited.channel] = edited
    others = [edit for edit in fork.edits if tagged.split_path(edit.path)[:1] != [edited.channel]]
    fork.put_all([*others, *_edits(edited)])
