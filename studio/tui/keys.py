"""Keys from the table of actions: bindings for the main screen, and the line at its bottom."""

from __future__ import annotations

from collections.abc import Sequence

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from studio.actions import ACTIONS, BY_ID, key_label

_PAIRS = {"down": ("up", "move"), "branch_previous": ("branch_next", "branch")}
_SKIP = {"up", "branch_next"}
_WORDS = {"threads": "threads", "search": "search", "why": "why", "fork": "fork", "run": "run", "help": "keys"}


def bindings() -> list[BindingType]:
    """One binding per action, named by its id so that a keymap can move it."""
    return [
        Binding(",".join(action.keys), f"do('{action.id}')", action.title, show=action.footer, id=f"studio.{action.id}")
        for action in ACTIONS
    ]


def printed(action_id: str) -> str:
    """The key to show for an action: the arrow where there is one, else its first key."""
    keys = BY_ID[action_id].keys
    return key_label(next((key for key in keys if key in ("down", "up")), keys[0]))


def footer_items() -> list[tuple[str, str]]:
    """(key, word) of the actions that the key line shows, pairs joined."""
    items = []
    for action in ACTIONS:
        if not action.footer or action.id in _SKIP:
            continue
        if action.id in _PAIRS:
            other, word = _PAIRS[action.id]
            first, second = printed(action.id), printed(other)
            items.append((f"{second}{first}" if action.id == "down" else f"{first} {second}", word))
        else:
            items.append((printed(action.id), _WORDS.get(action.id, action.title.lower())))
    return items


def line(items: Sequence[tuple[str, str]], width: int) -> Content:
    """`key word` pairs, as many as fit; the way to all keys stays."""
    pieces = [Content.styled(key, "bold $primary") + Content.styled(f" {word}", "$quiet") for key, word in items]
    kept = next((index for index, (key, _) in enumerate(items) if key == "?"), None)
    room = width - 1 - (pieces[kept].cell_length + 2 if kept is not None else 0)
    shown: list[Content] = []
    for index, piece in enumerate(pieces):
        if index == kept:
            shown.append(piece)
        elif piece.cell_length + 2 <= room:
            shown.append(piece)
            room -= piece.cell_length + 2
        elif kept is None or index > kept:
            break
        else:
            room = 0
    return Content(" ") + Content("  ").join(shown)


class KeyLine(Static):
    """The keys that matter here at the left, where one stands at the right."""

    DEFAULT_CSS = "KeyLine { height: 1; background: $panel; color: $quiet; }"

    def __init__(self, items: Sequence[tuple[str, str]] = (), *, id: str | None = None) -> None:
        super().__init__("", markup=False, id=id)
        self._items = list(items)
        self._right = ""

    def say(self, right: str = "", items: Sequence[tuple[str, str]] | None = None) -> None:
        wanted = (self._items if items is None else list(items), right)
        if wanted != (self._items, self._right):
            self._items, self._right = wanted
            self._draw()

    def on_resize(self) -> None:
        self._draw()

    def _draw(self) -> None:
        width = self.size.width
        if width <= 0:
            return
        right = Content.styled(self._right + " ", "$faint") if self._right else Content("")
        left = line(self._items, width - right.cell_length - 1)
        fill = max(1, width - left.cell_length - right.cell_length)
        self.update(left + Content(" " * fill) + right)
