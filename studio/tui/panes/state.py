"""State: every value at a checkpoint as a tree whose branches are filled when they are opened, a chunk at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, ClassVar

from rich.style import Style
from rich.text import Text
from textual import work
from textual.binding import Binding, BindingType
from textual.widget import Widget
from textual.widgets import Tree
from textual.widgets.tree import TreeNode

from studio import tagged
from studio.errors import StudioError
from studio.model import Value
from studio.render import gate, labels, masking, pairs, preview, secrets, sizes
from studio.tui import draw, names
from studio.tui.messages import PathChosen, PathSelected
from studio.tui.point import Point

MOST_LOST = 60
"""Delta channels without a value that are named."""

if TYPE_CHECKING:
    from studio.session import Session

MARGIN = 6
"""Columns of a line of the tree that its words cannot use."""
CHUNK = 200
"""Children added at once; the rest waits behind a line that tells how many."""
MOST_SIZES = 40
MOST_GROWN = 12
DEEPEST = 60
"""Tree nodes below this depth are not opened: the widget measures recursively."""


@dataclass(frozen=True, slots=True)
class Item:
    """What a line of the tree stands for."""

    path: str
    """Empty for headings and for the line that adds more."""
    value: Value
    step: str
    editable: bool = True
    more: tuple[tuple[str, Value], ...] = ()
    """The children that a line stands for which are not in the tree yet."""
    earlier: bool = False
    """They come before the first one that is."""
    grows: bool = False
    """The heading of the sizes: what grew is looked up when it is opened."""
    depth: int = 0


class StatePane(Tree[Item]):
    """The values of one checkpoint; enter edits a value, space or the arrows open and fold."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "cursor_down", "Next", show=False),
        Binding("k", "cursor_up", "Previous", show=False),
        Binding("g,home", "scroll_home", "First", show=False),
        Binding("G,end", "scroll_end", "Last", show=False),
        Binding("right,l", "open", "Open", show=False),
        Binding("left,h", "close", "Fold", show=False),
        Binding("space", "toggle_node", "Open or fold", show=False),
        Binding("enter", "edit", "Edit", show=False),
    ]
    DEFAULT_CSS = """
    StatePane {
        background: $surface;
        scrollbar-size-vertical: 1;
        padding: 0 1;
        &:focus { background-tint: transparent; }
        & > .tree--guides, & > .tree--guides-hover, & > .tree--guides-selected { color: $line; text-style: none; }
        & > .tree--highlight-line { background: transparent; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__("state", id=id)
        self.show_root = False
        self.guide_depth = 3
        self.auto_expand = False
        self._point: Point | None = None
        self._revealed: str | None = None
        """The path of the one masked value that a person asked to see here, with all in it."""
        self._open: set[str] = set()

    def show_point(self, point: Point, at: str | None = None) -> None:
        """Show another checkpoint, standing on the value at path `at`; without one, on what was under the cursor."""
        before = self.cursor_node.data.path if self.cursor_node is not None and self.cursor_node.data else None
        if self._point is None or self._point.address != point.address:
            self._revealed = None
        self._point = point
        self.clear()
        root = self.root
        root.data = Item("", None, "")
        values = tuple(point.state.values.items())
        first = _first_listed(values, at) if at else 0
        self._add(root, values, "", editable=True, depth=0, first=first)
        for name, why in list(point.state.unrebuilt.items())[:MOST_LOST]:
            self._tell(root, f"{gate.line(name, 40)}  {labels.REBUILT_WORDS['unavailable'][0]}: {gate.line(why, 300)}", hang=2)
        if not values and not point.state.unrebuilt:
            self._tell(root, labels.empty_state(point.state, "the state is empty"))
            self._list_names(root, labels.imports(point.state))
        if point.state.internal:
            inner = root.add(
                "internal",
                Item("", dict(point.state.internal), f"scheduling channels ({len(point.state.internal)})", editable=False),
            )
            inner.allow_expand = True
        self._add_sizes(point)
        self.root.expand()
        self.call_after_refresh(self._restore, before, at)

    def _tell(self, node: TreeNode[Item], words: str, *, hang: int = 0) -> None:
        """Words in as many lines as they need: a tree does not wrap."""
        around = self.parent if isinstance(self.parent, Widget) else self  # it is laid out before this pane was ever shown
        room = max(24, around.content_size.width - MARGIN - (self.guide_depth if node is not self.root else 0))
        for line in wrap(words, room, subsequent_indent=" " * hang, break_on_hyphens=False) or [words]:
            node.add_leaf("", Item("", None, line, editable=False))

    def _list_names(self, node: TreeNode[Item], names: Sequence[str]) -> None:
        """Each name that loading a pickle would import, below a line that counts them."""
        if names:
            heading = node.add("", Item("", None, labels.would_import(names), editable=False), expand=True)
            for name in names:
                self._tell(heading, name, hang=2)

    def _add_sizes(self, point: Point) -> None:
        """All sizes in words, below the values."""
        found = point.sizes
        heading = f"sizes: {labels.size(found.here.total)} in this checkpoint"
        group = self.root.add("sizes", Item("", None, heading, editable=False))
        for one in sizes.lines(found, bar=12, names=MOST_SIZES):
            words = f"{gate.line(one.name, 28):<28} {one.size:>8} {one.share:>5} {one.bar:<12} {one.grew}"
            group.add_leaf("", Item("", None, words.rstrip(), editable=False))
        grew = self.root.add("grew", Item("", None, "what grew on this branch", editable=False, grows=True))
        grew.allow_expand = True

    @work(thread=True, exclusive=True, group="growth", exit_on_error=False)
    def _look_at_growth(self, point: Point, node: TreeNode[Item], session: Session) -> None:
        try:
            told = growth_lines(session, point)
        except StudioError as error:
            told = [error.message]
        self.app.call_from_thread(self._show_growth, point, node, told)

    def _show_growth(self, point: Point, node: TreeNode[Item], told: Sequence[str]) -> None:
        if point is self._point and not node.children:
            for words in told:
                node.add_leaf("", Item("", None, words, editable=False))

    def select_path(self, path: str) -> None:
        """Open the way to a value and stand on it, or on the last one on the way that can be opened."""
        node: TreeNode[Item] = self.root
        for step in tagged.split_path(path):
            if node is not self.root:
                if node.allow_expand and not node.children:
                    self._fill(node, path)
                node.expand()
            found = next((child for child in node.children if child.data and child.data.step == step), None)
            if found is None:
                break
            node = found
        if node is not self.root:
            self.call_after_refresh(self.move_cursor, node)  # its line is known once the tree was laid out anew

    def _restore(self, path: str | None, at: str | None) -> None:
        for opened in sorted(self._open, key=len)[:40]:
            node = self._node(opened)
            if node is not None and node.allow_expand:
                self._fill(node)
                node.expand()
        if at:
            self.select_path(at)
            return
        node = self._node(path) if path else None
        self.call_after_refresh(self.move_cursor, node or (self.root.children[0] if self.root.children else None))

    def _node(self, path: str) -> TreeNode[Item] | None:
        node: TreeNode[Item] | None = self.root
        for step in tagged.split_path(path):
            node = next((child for child in node.children if child.data and child.data.step == step), None) if node else None
        return node

    def _add(
        self,
        node: TreeNode[Item],
        children: Sequence[tuple[str, Value]],
        path: str,
        *,
        editable: bool,
        depth: int,
        first: int = 0,
    ) -> None:
        """Add a chunk of a value's children from index `first` on, and lines that stand for those before and after it."""
        if first:
            node.add_leaf("", _rest(path, children[:first], depth, earlier=True))
        for step, value in children[first : first + CHUNK]:
            self._insert(node, step, value, path, editable=editable, depth=depth)
        if len(children) > first + CHUNK:
            node.add_leaf("", _rest(path, children[first + CHUNK :], depth))

    def _insert(
        self,
        node: TreeNode[Item],
        step: str,
        value: Value,
        path: str,
        *,
        editable: bool,
        depth: int,
        before: TreeNode[Item] | None = None,
    ) -> None:
        inner = f"{path}/{step.replace('~', '~0').replace('/', '~1')}"
        item = Item(inner, value, step, editable, depth=depth)
        shown = self._shows_secrets(inner)
        closed = draw.masked(inner, value, shown) or (not shown and pairs.announced(value) is not None)
        opens = depth < DEEPEST and not closed and bool(_has_children(value))
        node.add("", item, before=before, allow_expand=opens)

    def is_revealed(self, path: str) -> bool:
        """Whether a person asked to see this value, or the one that it lies in."""
        revealed = self._revealed
        return revealed is not None and (path == revealed or path.startswith(f"{revealed}/"))

    def _shows_secrets(self, path: str) -> bool:
        return self._point is not None and (self._point.show_secrets or self.is_revealed(path))

    def reveal(self) -> bool:
        """Show the masked value under the cursor, or mask it again; False where none is masked."""
        node = self.cursor_node
        item = node.data if node is not None else None
        if node is None or item is None or not item.path or item.more or not draw.masked(item.path, item.value, False):
            return False
        before = self._node(self._revealed) if self._revealed is not None else None
        self._revealed = None if self._shows_secrets(item.path) else item.path
        if before is not None:
            self._draw_again(before)
        if self._revealed is not None:
            self._draw_again(node)
        return True

    def _draw_again(self, node: TreeNode[Item]) -> None:
        item = node.data
        if item is not None:
            shown = self._shows_secrets(item.path)
            if not shown:
                node.collapse()
                node.remove_children()
            node.allow_expand = shown and item.depth < DEEPEST and _has_children(item.value)
            node.set_label("")  # its line is drawn anew, from its value

    @property
    def session(self) -> Session:
        return self.screen.session  # type: ignore[attr-defined,no-any-return]

    def _fill(self, node: TreeNode[Item], to: str | None = None) -> None:
        """Add the children of a node; where `to` leads to one of them, the chunk that it is in."""
        item = node.data
        if item is None or node.children or draw.masked(item.path, item.value, self._shows_secrets(item.path)):
            return
        children = tagged.children(item.value)
        first = _first_listed(children, to, len(tagged.split_path(item.path))) if to else 0
        self._add(node, children, item.path, editable=item.editable, depth=item.depth + 1, first=first)

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Item]) -> None:
        event.stop()
        item = event.node.data
        if item is not None and item.grows and self._point is not None and not event.node.children:
            self._look_at_growth(self._point, event.node, self.session)
        elif event.node is not self.root:
            self._fill(event.node)
            if event.node.data and event.node.data.path:
                self._open.add(event.node.data.path)

    def on_tree_node_collapsed(self, event: Tree.NodeCollapsed[Item]) -> None:
        event.stop()
        if event.node.data:
            self._open.discard(event.node.data.path)

    def on_tree_node_highlighted(self, event: Tree.NodeHighlighted[Item]) -> None:
        event.stop()
        item = event.node.data
        self.post_message(PathSelected(item.path if item and item.path and item.editable else None))

    def on_tree_node_selected(self, event: Tree.NodeSelected[Item]) -> None:
        """A click on a line: open or fold it; only enter edits."""
        event.stop()
        if event.node.allow_expand:
            event.node.toggle()

    @property
    def selected_path(self) -> str | None:
        item = self.cursor_node.data if self.cursor_node else None
        return item.path if item and item.path and item.editable and not item.more else None

    def action_edit(self) -> None:
        node = self.cursor_node
        if node is None or node.data is None:
            return
        if node.data.more:
            self._add_more(node)
        elif node.data.path and node.data.editable:
            self.post_message(PathChosen(node.data.path))
        elif node.allow_expand:
            node.toggle()

    def _add_more(self, node: TreeNode[Item]) -> None:
        """Put the next chunk in the place of the line that tells how many more, or the one before of how many earlier."""
        item, parent = node.data, node.parent
        if item is None or parent is None:
            return
        line = node.line
        editable = parent.data.editable if parent.data is not None else True
        cut = max(0, len(item.more) - CHUNK)
        if item.earlier:
            after = parent.children[parent.children.index(node) + 1]
            for step, value in item.more[cut:]:
                self._insert(parent, step, value, item.path, editable=editable, depth=item.depth, before=after)
            if cut:
                node.data = _rest(item.path, item.more[:cut], item.depth, earlier=True)
            else:
                node.remove()
        else:
            node.remove()
            self._add(parent, item.more, item.path, editable=editable, depth=item.depth)
        self.cursor_line = line

    def action_open(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.allow_expand and not node.is_expanded:
            node.expand()
        elif node.children:
            self.move_cursor(node.children[0])

    def action_close(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.is_expanded and node.allow_expand:
            node.collapse()
        elif node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)

    def render_label(self, node: TreeNode[Item], base_style: Style, style: Style) -> Text:
        item = node.data
        if item is None:
            return Text("", style)
        colours = self.app.theme_variables
        quiet, faint = Style(color=_hex(colours.get("quiet"))), Style(color=_hex(colours.get("faint")))
        mark = ("▾ " if node.is_expanded else "▸ ") if node.allow_expand else "  "
        out = Text(mark, style=style, no_wrap=True, end="")
        out.stylize(faint)
        if not item.path or item.more:
            out.append(gate.line(item.step, 80 if item.more else 340), faint)
            return out
        step = item.step if self._point is None or self._point.show_secrets else secrets.mask_keys(item.step)
        out.append(gate.line(step, 40).ljust(10), Style(bold=item.depth == 0))
        size = self._size_of(item)
        room = max(16, self.size.width - 3 * item.depth - len(out) - 8 - (len(size) + 2 if size else 0))
        out.append("  ")
        asked = self._shows_secrets(item.path)
        shown = preview.summary(item.value, room, key=masking.name_in(item.path), show_secrets=asked)
        look = quiet if node.allow_expand else Style()
        out.append(shown, look + names.clear() if asked else look)
        if item.depth == 0 and self._point is not None:
            rebuilt = self._point.state.rebuilt.get(item.step)
            if rebuilt:
                out.append(f"  {labels.REBUILT_WORDS[rebuilt][0]}", faint)
        if size:
            out.append(" " * max(2, self.size.width - len(out) - len(size) - 6) + size, faint)
        return out

    def _size_of(self, item: Item) -> str:
        """`+229 B  791 B` of a channel that this checkpoint holds."""
        if item.depth or self._point is None:
            return ""
        found = self._point.sizes
        bytes_here = found.here.channels.get(item.step)
        if bytes_here is None:
            return ""
        grew = sizes.grown(found.grew(item.step))
        return f"{grew}  {labels.size(bytes_here)}" if grew else labels.size(bytes_here)


def growth_lines(session: Session, point: Point) -> list[str]:
    """How the checkpoints of a branch grew, and which channels did."""
    found = session.growth(point.address)
    written = "" if found.write_bytes is None else f" and {labels.size(found.write_bytes)} in writes"
    told = [f"the thread: {labels.size(found.checkpoint_bytes)} in {labels.plural(found.checkpoints, 'checkpoint')}{written}"]
    bytes_on_the_way = [size for _, size in found.points]
    ends = f"{labels.size(bytes_on_the_way[0])} → {labels.size(bytes_on_the_way[-1])}"
    told.append(f"this branch: {sizes.spark(bytes_on_the_way, 40)} {ends}")
    for name, steps in found.channels[:MOST_GROWN]:
        grew = sizes.grown(steps[-1] - steps[0])
        told.append(f"{gate.line(name, 28):<28} {sizes.spark(steps)} {labels.size(steps[-1])} {grew}".rstrip())
    return told


def _first_listed(children: Sequence[tuple[str, Value]], to: str, depth: int = 0) -> int:
    """The index that the chunk begins at which holds the child on the way to a path."""
    wanted = tagged.split_path(to)[depth]
    found = next((index for index, (step, _) in enumerate(children) if step == wanted), 0)
    return found - found % CHUNK


def _rest(path: str, children: Sequence[tuple[str, Value]], depth: int, *, earlier: bool = False) -> Item:
    words = f"… {len(children):,} {'earlier' if earlier else 'more'}"
    return Item(path, None, words, False, more=tuple(children), earlier=earlier, depth=depth)


def _has_children(value: Value) -> bool:
    if value is None or isinstance(value, (str, bytes, int, float)):
        return False
    return bool(value) if isinstance(value, (dict, list)) else bool(tagged.children(value))


def _hex(colour: str | None) -> str | None:
    return colour if colour and colour.startswith("#") and len(colour) == 7 else None
