"""A place in a file that was checked: its thread, its checkpoint, and what stands there, read once for each request."""

from __future__ import annotations

from functools import cached_property

from msgspec.structs import replace

from studio import tagged
from studio.calling import SubgraphRun
from studio.errors import RefError, StudioError
from studio.growing import Compared
from studio.model import Address, Comparison, Row, State, Tagged_JSON, Value
from studio.render import masking, preview
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.book import Book
from studio.web.links import Place
from studio.web.views import chrome as chrome_view
from studio.web.views import sizes as sizes_view


class Spot:
    """A place that was checked against its file. Raises RefError when thread or checkpoint are not there."""

    def __init__(self, book: Book, place: Place) -> None:
        self.book = book
        self.session: Session = book.session(place.file)
        session = self.session
        session.refresh()
        thread = place.thread if place.thread is not None else session.default_thread()
        if thread is None:
            raise RefError(
                "this file holds no threads yet", "one that is written while you look appears in the list", "no-threads"
            )
        self.tree: CheckpointTree = session.tree(thread)
        self.place = self._checked(place.to(thread=thread))

    def _checked(self, place: Place) -> Place:
        if place.at and place.address in self.tree:
            return place
        if place.at:
            return place.at_address(self.tree.resolve(place.at, place.ns or None))
        head = self.tree.head or self.tree.address_at(len(self.tree) - 1)
        return place.at_address(head)

    # ------------------------------------------------------------------ what the place names

    @cached_property
    def address(self) -> Address:
        return self.place.address

    @cached_property
    def row(self) -> Row:
        return self.tree.row(self.address)

    @cached_property
    def state(self) -> State:
        return self.session.state(self.address)

    @cached_property
    def sizes(self) -> Compared:
        return self.session.sizes(self.address)

    @cached_property
    def listed(self) -> State:
        """The state with its channels in the order that was asked for."""
        if self.place.sort != "size":
            return self.state
        return replace(self.state, values=sizes_view.ordered(self.state.values, self.sizes))

    @cached_property
    def subgraph_runs(self) -> dict[str, tuple[SubgraphRun, ...]]:
        return self.session.subgraph_runs(self.state)

    @cached_property
    def steps_across(self) -> chrome_view.Across:
        """The ways from here into a subgraph, and out of one to the task that called it."""
        caller = self.session.caller(self.state)
        first = next((run.first for runs in self.subgraph_runs.values() for run in runs), None)
        return chrome_view.across(self.place, self.tree, caller, first)

    @cached_property
    def pinned(self) -> Address | None:
        """The pinned base of diffs, when it is there."""
        if not self.place.base:
            return None
        ns = self.place.base_ns if self.place.base_ns is not None else self.place.ns
        found = Address(self.address.thread_id, ns, self.place.base)
        return found if found in self.tree else None

    @property
    def base(self) -> Address | None:
        """What diffs compare with in place of the parent: the pinned base, unless that is this checkpoint itself."""
        return self.pinned if self.pinned != self.address else None

    @cached_property
    def comparison(self) -> Comparison:
        return self.session.compare(self.address, self.base or self.session.base_of(self.address))

    def value_at(self, path: str) -> tuple[Value, bool]:
        try:
            return tagged.get(self.state.editable, path), True
        except StudioError:
            return None, False

    def document_at(self, path: str) -> Tagged_JSON:
        """The value at a path as a form has it, secrets masked; null where there is none."""
        value, _ = self.value_at(path)
        name = masking.name_in(path, dict(self.state.values))
        return masking.document(value, name, show_secrets=self.session.show_secrets, readable=False)

    @cached_property
    def selected_path(self) -> str | None:
        """The path of the URL, else the change that a person most likely asks about: the first that is no message."""
        if self.place.path:
            return self.place.path
        if self.place.tab not in ("changes",):
            return None
        found = self.comparison.changes
        values = [change for change in found if preview.message(change.after) is None]
        scalars = [change for change in values if not isinstance(change.after, (dict, list))]
        picked = next(iter(scalars or values or found), None)
        return picked.path if picked is not None else None
