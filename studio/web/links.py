"""Where a person is, as a URL: file, thread, checkpoint, tab, path and base, so that reload, back and sharing work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote_to_bytes, urlencode

from studio.errors import UsageError
from studio.model import Address

TABS = ("changes", "conversation", "files", "todos", "state", "tasks", "raw", "graph", "branches")

MOST_DIGITS = 12


@dataclass(frozen=True, slots=True)
class Place:
    """One view of the page. Every field is part of the URL; nothing else is remembered between two requests."""

    file: str
    """The slug of the opened location."""
    thread: str | None = None
    at: str | None = None
    """A full checkpoint id; what else a person types (`#4`, `head`) is resolved first."""
    ns: str = ""
    tab: str = "changes"
    path: str | None = None
    base: str | None = None
    """The checkpoint that diffs compare with, instead of the parent."""
    base_ns: str | None = None
    """Its namespace, where it differs from `ns`."""
    left: str | None = None
    """In the branches tab: the checkpoint that the left branch ends at, and `left_ns`, `left_thread` where they differ."""
    left_ns: str | None = None
    left_thread: str | None = None
    graph: str | None = None
    """In the graph tab: the graph to show, by its namespace without task ids; None = the one of the checkpoint."""
    node: str | None = None
    """In the graph tab: the node whose runs are listed."""
    sort: str | None = None
    """`size`: the channels of State, largest first."""

    @property
    def address(self) -> Address:
        return Address(self.thread or "", self.ns, self.at or "")

    def to(self, **changes: str | None) -> Place:
        return replace(self, **changes)  # type: ignore[arg-type]

    def at_address(self, address: Address, **changes: str | None) -> Place:
        """The same view at another checkpoint; a selected path and the base stay."""
        return replace(self, thread=address.thread_id, ns=address.checkpoint_ns, at=address.checkpoint_id, **changes)  # type: ignore[arg-type]

    def pairs(self) -> list[tuple[str, str]]:
        names = (
            ("thread", self.thread),
            ("ns", self.ns or None),
            ("at", self.at),
            ("tab", self.tab if self.tab != "changes" else None),
            ("path", self.path),
            ("base", self.base),
            ("base_ns", self.base_ns),
            *((name, value if self.tab == "branches" else None) for name, value in self._left()),
            ("graph", self.graph if self.tab == "graph" else None),
            ("node", self.node if self.tab == "graph" else None),
            ("sort", self.sort),
        )
        return [(name, value) for name, value in names if value is not None]

    def _left(self) -> list[tuple[str, str | None]]:
        return [("left", self.left), ("left_ns", self.left_ns), ("left_thread", self.left_thread)]

    def beside(self, left: Address, right: Address) -> Place:
        """The view of the branches that end at two checkpoints."""
        return self.at_address(
            right,
            tab="branches",
            path=None,
            left=left.checkpoint_id,
            left_ns=left.checkpoint_ns if left.checkpoint_ns != right.checkpoint_ns else None,
            left_thread=left.thread_id if left.thread_id != right.thread_id else None,
        )

    def url(self, part: str = "", extra: Iterable[tuple[str, str]] = ()) -> str:
        """The address of the page, or of one part of it (`rows`, `fork`, …) with the same query."""
        path = f"/f/{quote(self.file, safe='')}" + (f"/{part}" if part else "")
        query = encode([*self.pairs(), *extra])
        return f"{path}?{query}" if query else path


def encode(pairs: Iterable[tuple[str, str]]) -> str:
    """A query string that keeps every stored name, lone surrogates included."""
    return urlencode(list(pairs), errors="surrogatepass", quote_via=quote, safe="/:")


def sealed(name: str) -> str:
    """A stored name for a hidden field or an option: percent-encoded, so that no stored byte stands in the page."""
    return quote(name, safe="/ ", errors="surrogatepass")


def opened(text: str) -> str:
    """The name that `sealed` made this of."""
    return _text(unquote_to_bytes(text.encode("utf-8", "surrogatepass")))


def decode(query: bytes) -> dict[str, str]:
    """The last value of each name in a query string."""
    return dict(pairs_of(query))


def pairs_of(query: bytes) -> list[tuple[str, str]]:
    """(name, value) of a query string, in order. The standard library's reader mixes up odd bytes and lone surrogates."""
    found = (part.replace(b"+", b" ").partition(b"=") for part in query.split(b"&") if part)
    return [(_text(unquote_to_bytes(name)), _text(unquote_to_bytes(value))) for name, _, value in found]


def number_of(query: Mapping[str, str], name: str) -> int | None:
    """A whole number of a query; None when it is not there. Raises UsageError when it is something else."""
    return _number(name, query[name]) if query.get(name) else None


def numbers_of(query: Mapping[str, str], name: str) -> list[int]:
    """Whole numbers between commas."""
    return [_number(name, part) for part in query.get(name, "").split(",") if part]


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS):
        raise UsageError(
            f"the number {name} must be a whole number of at most {MOST_DIGITS} digits", "open the thread from the start page"
        )
    return int(text)


def _text(raw: bytes) -> str:
    """UTF-8 that may hold lone surrogates; other bytes become visible escapes, for nothing here is called like that."""
    try:
        return raw.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return raw.decode("utf-8", "backslashreplace")


def place_of(file: str, query: Mapping[str, str]) -> Place:
    """The place that a query names, before anything is checked against the file."""
    tab = query.get("tab", "changes")
    return Place(
        file=file,
        thread=query.get("thread", opened(query["in"]) if "in" in query else None),
        at=query.get("at") or None,
        ns=query.get("ns", ""),
        tab=tab if tab in TABS else "changes",
        path=query.get("path"),
        base=query.get("base") or None,
        base_ns=query.get("base_ns"),
        left=query.get("left") or None,
        left_ns=query.get("left_ns"),
        left_thread=query.get("left_thread"),
        graph=query.get("graph"),
        node=query.get("node"),
        sort="size" if query.get("sort") == "size" else None,
    )
