"""The table of actions: one source for key bindings, palettes, the help screens and the documentation.

Front ends look actions up by `id`; a key is written as Textual and `data-key` spell it. `needs` says what must hold before an
action is offered: `checkpoint` (a row under the cursor), `value` (a path is selected), `run` (a run is going), `branches` (the
thread has more than one leaf), `scratch` (the row under the cursor lies in the scratch file), `turns` (an agent's transcript),
`tables` (a database).
"""

from __future__ import annotations

from msgspec import Struct


class Action(Struct, frozen=True):
    id: str
    title: str
    help: str
    keys: tuple[str, ...]
    needs: tuple[str, ...] = ()
    group: str = "Move"
    footer: bool = False
    """Shown in the key line at the bottom of both UIs."""


ACTIONS: tuple[Action, ...] = (
    Action("down", "Next row", "Move to the next checkpoint in the timeline.", ("j", "down"), footer=True),
    Action("up", "Previous row", "Move to the previous checkpoint in the timeline.", ("k", "up"), footer=True),
    Action("first", "First row", "Jump to the first checkpoint.", ("g", "home")),
    Action("last", "Last row", "Jump to the last checkpoint.", ("G", "end")),
    Action("parent", "Parent", "Go to the checkpoint this one grew from.", ("p",), ("checkpoint",)),
    Action(
        "inner", "Into the subgraph", "Go to the first checkpoint of the subgraph that ran from here.", ("s",), ("checkpoint",)
    ),
    Action("caller", "Calling task", "Go from a subgraph to the checkpoint whose task called it.", ("u",), ("checkpoint",)),
    Action(
        "branch_previous",
        "Previous branch",
        "Go to the same point on the branch before.",
        ("left_square_bracket",),
        ("branches",),
        footer=True,
    ),
    Action(
        "branch_next",
        "Next branch",
        "Go to the same point on the next branch.",
        ("right_square_bracket",),
        ("branches",),
        footer=True,
    ),
    Action("threads", "Threads", "Choose another thread of this file.", ("t",), footer=True),
    Action("tables", "Tables", "What else this file holds: other checkpoints, stores, caches, any table.", ("o",), ("tables",)),
    Action("search", "Search", "Find a text in the values of this thread, then of the file.", ("slash",), footer=True),
    Action("changes", "Changes", "What this superstep changed, and which task wrote it.", ("1",), ("checkpoint",), "View"),
    Action("conversation", "Conversation", "This branch read as one chat.", ("2",), ("checkpoint",), "View"),
    Action("state", "State", "Every value at this checkpoint.", ("3",), ("checkpoint",), "View"),
    Action(
        "tasks",
        "Tasks",
        "What was scheduled from here: why it ran, what it wrote, errors and questions.",
        ("4",),
        ("checkpoint",),
        "View",
    ),
    Action("raw", "Raw", "The stored record, scheduling channels included.", ("5",), ("checkpoint",), "View"),
    Action("graph", "Graph", "Which node led to which, how often; this superstep lit.", ("6",), ("checkpoint",), "View"),
    Action(
        "code_graph",
        "Join with the code",
        "Load your graph (this runs its code) and draw the edges that were never taken beside the seen ones.",
        ("m",),
        ("checkpoint",),
        "View",
    ),
    Action(
        "zoom_in",
        "Larger",
        "Make the picture of the graph larger; in a terminal, with its edges.",
        ("plus", "equals_sign"),
        ("checkpoint",),
        "Graph",
    ),
    Action(
        "zoom_out",
        "Smaller",
        "Make the picture of the graph smaller; in a terminal, the names of its nodes alone.",
        ("minus",),
        ("checkpoint",),
        "Graph",
    ),
    Action(
        "zoom_whole",
        "The whole graph",
        "All of the graph at once; again to go back to this superstep.",
        ("0",),
        ("checkpoint",),
        "Graph",
    ),
    Action(
        "branches",
        "Branches",
        "Two branches side by side: the pinned checkpoint and this one, or this branch and what it was forked from.",
        ("7",),
        ("checkpoint",),
        "View",
    ),
    Action(
        "files",
        "Files",
        "What happened to each file of an agent's session, edit by edit.",
        ("8",),
        ("checkpoint", "turns"),
        "View",
    ),
    Action("todos", "Todos", "The agent's list of todos, and how it got there.", ("9",), ("checkpoint", "turns"), "View"),
    Action(
        "reveal",
        "Reveal",
        "Show the selected value of State though it is masked; again to mask it.",
        ("v",),
        ("checkpoint",),
        "View",
    ),
    Action("why", "Why", "Who wrote the selected value, and what led to it.", ("b",), ("checkpoint",), "View", footer=True),
    Action(
        "base",
        "Pin as base",
        "Every diff is then against this checkpoint, Branches and compare too; again to unpin it.",
        ("d",),
        ("checkpoint",),
        "View",
    ),
    Action("fork", "Fork", "Change values and fork from this checkpoint.", ("f",), ("checkpoint",), "Change", footer=True),
    Action(
        "messages",
        "Edit messages",
        "Edit, delete, insert and reorder the messages of this state, then fork.",
        ("e",),
        ("checkpoint",),
        "Change",
    ),
    Action(
        "copy_fork",
        "Same point again",
        "Fork without a change, to run the same point again.",
        ("c",),
        ("checkpoint",),
        "Change",
    ),
    Action("run", "Run", "Run your graph again from this checkpoint.", ("r",), ("checkpoint",), "Change", footer=True),
    Action("answer", "Answer", "Answer the question this checkpoint waits for.", ("a",), ("checkpoint",), "Change"),
    Action(
        "promote",
        "Put into the file",
        "Put this branch into the file itself: shows each row first, and only adds.",
        ("w",),
        ("checkpoint", "scratch"),
        "Change",
    ),
    Action("cancel", "Cancel run", "Stop the run that is going.", ("x",), ("run",), "Change"),
    Action("copy_value", "Copy value", "Copy the selected value.", ("y",), ("checkpoint",), "Copy"),
    Action("copy_id", "Copy id", "Copy this checkpoint's id.", ("i",), ("checkpoint",), "Copy"),
    Action(
        "copy_python",
        "Copy as Python",
        "Copy code that opens this checkpoint in your own program.",
        ("P",),
        ("checkpoint",),
        "Copy",
    ),
    Action("copy_test", "Copy as a test", "Copy a pytest skeleton for this checkpoint.", ("T",), ("checkpoint",), "Copy"),
    Action("copy_link", "Copy link", "Copy the command that opens this view in a browser.", ("L",), ("checkpoint",), "Copy"),
    Action("help", "Keys", "Show all keys.", ("question_mark",), (), "Help", footer=True),
)

BY_ID = {action.id: action for action in ACTIONS}

KEY_LABELS = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "question_mark": "?",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "down": "↓",
    "up": "↑",
    "home": "Home",
    "end": "End",
}


def key_label(key: str) -> str:
    """What to print for a key: `slash` -> `/`."""
    return KEY_LABELS.get(key, key)
