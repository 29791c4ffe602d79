"""The frame around every view: header, tabs, key line, scrubber, the table of keys."""

from __future__ import annotations

from dataclasses import dataclass, replace

from studio.actions import ACTIONS, BY_ID, Action, key_label
from studio.calling import Caller
from studio.history.walk import FAR, depth, downward, leaves, neighbour_branch, upward
from studio.model import Address, Row, State
from studio.render import gate, labels
from studio.tree import CheckpointTree
from studio.web.links import TABS, Place
from studio.web.views.timeline import badges

TAB_TITLES = {
    "changes": "Changes",
    "conversation": "Conversation",
    "files": "Files",
    "todos": "Todos",
    "state": "State",
    "tasks": "Tasks",
    "raw": "Raw",
    "graph": "Graph",
    "branches": "Branches",
}
BROWSER_KEYS = {
    "down": "ArrowDown",
    "up": "ArrowUp",
    "home": "Home",
    "end": "End",
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "question_mark": "?",
    "plus": "+",
    "equals_sign": "=",
    "minus": "-",
    "escape": "Escape",
    "enter": "Enter",
}


@dataclass(frozen=True, slots=True)
class Key:
    """An action as the page binds it: `event` names are what `KeyboardEvent.key` says."""

    id: str
    title: str
    help: str
    labels: tuple[str, ...]
    events: str
    group: str


@dataclass(frozen=True, slots=True)
class Tab:
    id: str
    title: str
    href: str
    current: bool
    key: str
    hidden: bool = False
    """Its key works all the same: the page says there why it has nothing to show."""


@dataclass(frozen=True, slots=True)
class Head:
    """The headline of the centre column."""

    title: str
    facts: tuple[str, ...]
    when: str
    iso: str
    because: str
    badges: tuple[tuple[str, str], ...]
    tabs: tuple[Tab, ...]
    compared: str
    base_href: str
    base_title: str
    pinned: bool
    parent_href: str
    previous_branch: str
    next_branch: str
    parent_link: str
    across: Across
    kin: tuple[tuple[str, str, str], ...] = ()
    """(words before it, what it is called, link) of what this was made from, and what was made of it, in other threads."""
    words: str = ""
    """The first words of a turn, or what its first call is about."""


@dataclass(frozen=True, slots=True)
class Across:
    """Ways between the namespaces of a thread; empty where there is none."""

    caller: str = ""
    """`#4 task writer`: who called the subgraph that this checkpoint belongs to."""
    caller_href: str = ""
    inner_href: str = ""
    """The first checkpoint of the subgraph that ran from here."""


def across(place: Place, tree: CheckpointTree, caller: Caller | None, inner: Address | None) -> Across:
    words = f"#{tree.number(caller.address)} task {gate.line(caller.name or 'not known', 60)}" if caller is not None else ""
    return Across(
        words,
        place.at_address(caller.address, path=None).url() if caller is not None else "",
        place.at_address(inner, path=None).url() if inner is not None else "",
    )


@dataclass(frozen=True, slots=True)
class Foot:
    step: int
    of: int
    text: str


@dataclass(frozen=True, slots=True)
class Chrome:
    title: str
    file: str
    location: str
    file_href: str
    tables_href: str
    thread: str
    thread_id: str
    thread_raw: str
    threads_href: str
    search_href: str
    query: str
    badge: str
    badge_title: str
    events_href: str
    theme: str
    next_theme: str
    here: str
    """Where the theme form goes back to."""
    keys: tuple[Key, ...]
    footer: tuple[Key, ...]
    others: tuple[tuple[str, str], ...]
    """Other opened files: (name, link)."""


def keys() -> tuple[Key, ...]:
    return tuple(_key(action) for action in ACTIONS)


def _key(action: Action) -> Key:
    return Key(
        action.id,
        action.title,
        action.help,
        tuple(key_label(key) for key in action.keys),
        " ".join(BROWSER_KEYS.get(key, key) for key in action.keys),
        action.group,
    )


PAIRS = {"down": ("up", "move"), "branch_previous": ("branch_next", "branch")}
"""Keys that the key line shows side by side under one word."""


def footer_keys() -> tuple[Key, ...]:
    """The key line: actions marked for it, opposite ones joined."""
    second = {other for other, _ in PAIRS.values()}
    out = []
    for key in (_key(action) for action in ACTIONS if action.footer and action.id not in second):
        other, word = PAIRS.get(key.id, ("", key.title.lower()))
        labels_shown = (key.labels[0], _key(BY_ID[other]).labels[0]) if other else key.labels[:1]
        out.append(replace(key, title=word, labels=labels_shown))
    return tuple(out)


def head(
    place: Place,
    tree: CheckpointTree,
    row: Row,
    state: State,
    because: str,
    compared: str,
    base: Address | None,
    across: Across,
    kin: tuple[tuple[str, str, str], ...] = (),
    *,
    turns: bool = False,
    words: str = "",
) -> Head:
    """`compared`: what the changes that are shown are against; `base`: the pinned base of diffs."""
    address = row.checkpoint.address
    facts = [f"#{row.number}"]
    if row.checkpoint.step is not None:
        facts.append(f"step {row.checkpoint.step}")
    if row.seconds is not None and row.origin_checkpoint_id is None:
        facts.append(labels.duration(row.seconds))
    if row.depth:
        facts.append(gate.line("in " + address.checkpoint_ns.split(":", 1)[0], 60))
    parent = tree.grew_from(address)
    previous, following = neighbour_branch(tree, address, -1), neighbour_branch(tree, address, 1)
    keep = {"path": None}
    return Head(
        title=gate.line(row.label, 120),
        facts=tuple(facts),
        when=labels.when(row.checkpoint.created_at, date=False),
        iso=row.checkpoint.created_at or "",
        because=because,
        badges=badges(row),
        tabs=_tabs(place, tree, turns),
        words=words,
        compared=_against(tree, address, compared, base),
        base_href=place.to(base=None if base else address.checkpoint_id, base_ns=None if base else address.checkpoint_ns).url(),
        base_title=f"Unpin #{tree.number(base)}: compare with the parent again"
        if base
        else f"Pin #{row.number}: compare every checkpoint with it",
        pinned=base is not None,
        parent_href=place.at_address(parent, **keep).url() if parent else "",
        parent_link=f"#{tree.number(parent)}" if parent else "",
        previous_branch=place.at_address(previous, **keep).url() if previous else "",
        next_branch=place.at_address(following, **keep).url() if following else "",
        across=across,
        kin=kin,
    )


def _against(tree: CheckpointTree, address: Address, compared: str, base: Address | None) -> str:
    if compared:
        return f"pinned · vs {compared}" if base == address else f"vs {compared}"
    return f"#{tree.number(base)} is pinned" if base is not None else ""


OF_TURNS = ("conversation", "changes", "files", "todos", "state", "tasks", "raw", "graph", "branches")
"""The order of the tabs of an agent's transcript."""


def _tabs(place: Place, tree: CheckpointTree, turns: bool) -> tuple[Tab, ...]:
    """`turns`: it is an agent's transcript, which is read first and has files and todos."""
    two = len(leaves(tree)) > 1 or place.base is not None or place.tab == "branches"
    by_id = {action.id: action for action in ACTIONS}
    return tuple(
        Tab(
            tab,
            "Chat" if turns and tab == "conversation" else TAB_TITLES[tab],
            place.to(tab=tab).url(),
            place.tab == tab,
            key_label(by_id[tab].keys[0]) if tab in by_id else "",
            hidden=tab == "branches" and not two or tab in ("files", "todos") and not turns and place.tab != tab,
        )
        for tab in (OF_TURNS if turns else TABS)
    )


def foot(place: Place, tree: CheckpointTree) -> Foot:
    """The scrubber runs over the branch of the cursor; in a long thread over all rows."""
    address = place.address
    if len(tree) > FAR:
        step, of = tree.index(address) + 1, len(tree)
        return Foot(step, of, f"row {step:,} of {of:,}")
    step = (depth(tree, address) or 0) + 1
    of = step + sum(1 for _ in downward(tree, address))
    where = "in this subgraph" if address.checkpoint_ns else "on this branch"
    return Foot(step, of, f"{step} of {of} {where}")


def at_step(tree: CheckpointTree, address: Address, step: int) -> Address:
    """The checkpoint that the scrubber points at: of the branch through `address`, or a row of a long thread."""
    if len(tree) > FAR:
        return tree.address_at(max(0, min(step, len(tree)) - 1))
    line = [*reversed(list(upward(tree, address))), *downward(tree, address)]
    return line[max(0, min(step, len(line)) - 1)]
