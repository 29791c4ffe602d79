"""Text with Markdown and code as plain pieces that any front end can draw: no markup of another program is ever made or kept.

A library reads the Markdown, another one the code. What comes out is text in blocks and spans, gated and masked, so that a page
escapes it and a terminal draws it like all other stored text. Tags in the text stay text, targets of links stand beside their
words, pictures are named and never fetched.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from studio.render import gate, secrets

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

LIMIT = 20_000
"""Characters of one text that are read as Markdown at once."""
CODE_LIMIT = 20_000
"""Characters of code that are told apart; what is longer is shown plain."""
DEEPEST = 6
LOOKS = {"strong": "strong", "em": "em", "s": "strike"}
_WORDS_OF_IMAGE = "picture"


class Span(Struct, frozen=True):
    """A run of text in one look: any of strong, em, strike, code, link, target; or the kind of a piece of code."""

    text: str
    looks: tuple[str, ...] = ()


class Block(Struct, frozen=True):
    """A paragraph, heading, list item, piece of code, table or rule, in the order of the text."""

    kind: Literal["text", "heading", "item", "code", "table", "rule"]
    spans: tuple[Span, ...] = ()
    level: int = 0
    """Of a heading 1 to 6; of everything else how deep it stands in lists."""
    quote: int = 0
    marker: str = ""
    """Of a list item: what stands before it, empty for its further paragraphs."""
    lang: str = ""
    lines: tuple[tuple[Span, ...], ...] = ()
    rows: tuple[tuple[tuple[Span, ...], ...], ...] = ()
    """Cells of a table, its head first."""


class Prose(Struct, frozen=True):
    blocks: tuple[Block, ...] = ()
    more: int = 0
    """Characters that were left out."""


def prose(text: str, *, show_secrets: bool = False, limit: int = LIMIT) -> Prose:
    """A stored text read as Markdown."""
    shown = text[:limit] if show_secrets else secrets.head(text, limit)
    return Prose(_Reader(_markdown().parse(_unbroken(shown))).blocks(), max(0, len(text) - limit))


def plain(text: str, *, show_secrets: bool = False, limit: int = LIMIT) -> tuple[str, int]:
    """(a stored text as it is, gated and masked, characters that were left out)."""
    shown = text[:limit] if show_secrets else secrets.head(text, limit)
    return gate.clean(shown), max(0, len(text) - limit)


def first_words(text: str, width: int = 160, *, show_secrets: bool = False) -> str:
    """The first line of a text that says something, without the signs of Markdown at its beginning."""
    head = text[: 8 * width + 400]
    shown = head if show_secrets else secrets.mask_text(head)
    for line in shown.splitlines():
        words = line.strip().lstrip("#>*-` ").strip()
        if words:
            return gate.line(words.replace("**", "").replace("`", ""), width)
    return ""


def code(text: str, lang: str = "", filename: str = "") -> tuple[tuple[Span, ...], ...]:
    """Lines of code, told apart by a library where it knows the language. `text` is masked already."""
    shown = text.expandtabs(4) if len(text) <= CODE_LIMIT else text
    lexer = _lexer(lang.strip().lower()[:40], _ending(filename)) if (lang or filename) and len(text) <= CODE_LIMIT else None
    if lexer is None:
        return tuple((Span(gate.clean(line)),) for line in shown.split("\n"))
    lines: list[list[Span]] = [[]]
    for kind, piece in lexer.get_tokens(shown):
        look = _look_of(kind)
        for at, part in enumerate(piece.split("\n")):
            if at:
                lines.append([])
            if part:
                lines[-1].append(Span(gate.clean(part), (look,) if look else ()))
    while lines and not lines[-1]:
        lines.pop()
    return tuple(tuple(line) for line in lines)


def _unbroken(text: str) -> str:
    """Other signs for the end of a line would be obeyed by the reader, not shown."""
    return text.replace("\r\n", "\n").replace("\r", "\\r")


@lru_cache(maxsize=1)
def _markdown() -> MarkdownIt:
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark", {"html": False, "maxNesting": 40}).enable(["table", "strikethrough"])
    return reader.disable(["entity", "html_inline", "html_block", "autolink"])


@lru_cache(maxsize=64)
def _lexer(lang: str, ending: str) -> Any:
    """One of the library's own: a plugin that is installed beside it is never imported for a word in a file."""
    from pygments.lexers import find_lexer_class, get_all_lexers

    alias, pattern = next(iter(lang.split()), ""), f"*.{ending}"
    known = get_all_lexers(plugins=False)
    names = [name for name, aliases, patterns, _ in known if (alias in aliases if alias else pattern in patterns)]
    classes = [found for name in names if (found := find_lexer_class(name)) is not None]
    return max(classes, key=lambda one: (one.priority, one.__name__))() if classes else None


def _ending(filename: str) -> str:
    ending = filename.rpartition(".")[2].lower()
    return ending if ending.isalnum() and len(ending) <= 8 else ""


_LOOKS_OF_CODE = (
    ("Token.Comment", "comment"), ("Token.Keyword", "keyword"), ("Token.Literal.String", "string"),
    ("Token.Literal.Number", "number"), ("Token.Name.Function", "name"), ("Token.Name.Class", "name"),
    ("Token.Name.Builtin", "builtin"), ("Token.Name.Decorator", "builtin"), ("Token.Name.Tag", "keyword"),
    ("Token.Name.Attribute", "name"), ("Token.Operator.Word", "keyword"), ("Token.Generic.Inserted", "added"),
    ("Token.Generic.Deleted", "removed"), ("Token.Generic.Heading", "name"), ("Token.Generic.Subheading", "comment"),
)  # fmt: skip


def _look_of(kind: Any) -> str:
    name = str(kind)
    return next((look for prefix, look in _LOOKS_OF_CODE if name.startswith(prefix)), "")


class _Reader:
    """Tokens of the library as blocks; lists and quotes are kept as depths, so nothing here recurses."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens = tokens
        self.found: list[Block] = []
        self.lists: list[int | None] = []
        """Number of the next item of each open list; None for one with dots."""
        self.quote = 0
        self.marker = ""
        self.in_item: list[bool] = []
        self.heading = 0
        self.rows: list[list[tuple[Span, ...]]] | None = None

    def blocks(self) -> tuple[Block, ...]:
        for token in self.tokens:
            self._take(token)
        return tuple(self.found)

    def _take(self, token: Token) -> None:
        kind = token.type
        if kind in ("bullet_list_open", "ordered_list_open"):
            start = token.attrGet("start")
            self.lists.append(None if kind.startswith("bullet") else int(start) if isinstance(start, int) else 1)
        elif kind in ("bullet_list_close", "ordered_list_close"):
            self.lists.pop()
        elif kind == "list_item_open":
            number = self.lists[-1]
            self.marker = "•" if number is None else f"{number}."
            if number is not None:
                self.lists[-1] = number + 1
        elif kind == "blockquote_open":
            self.quote += 1
        elif kind == "blockquote_close":
            self.quote -= 1
        elif kind == "heading_open":
            self.heading = int(token.tag[1:])
        elif kind == "heading_close":
            self.heading = 0
        elif kind == "table_open":
            self.rows = []
        elif kind == "table_close":
            rows, self.rows = self.rows or [], None
            self._add(Block("table", rows=tuple(tuple(row) for row in rows), **self._where()))
        elif kind == "tr_open" and self.rows is not None:
            self.rows.append([])
        elif kind == "inline":
            self._inline(token)
        elif kind in ("fence", "code_block"):
            lang = token.info.split()[0] if token.info.split() else ""
            lines = code(token.content.removesuffix("\n"), lang)
            self._add(Block("code", lang=gate.line(lang, 30), lines=lines, **self._where()))
        elif kind == "hr":
            self._add(Block("rule", **self._where()))

    def _where(self) -> dict[str, Any]:
        return {"level": min(DEEPEST, len(self.lists)), "quote": min(DEEPEST, self.quote)}

    def _inline(self, token: Token) -> None:
        found = _spans(token.children or ())
        if self.rows is not None:
            if self.rows:
                self.rows[-1].append(found)
        elif self.heading:
            self._add(Block("heading", found, self.heading, min(DEEPEST, self.quote)))
        elif self.lists:
            self._add(Block("item", found, marker=self.marker, **self._where()))
        else:
            self._add(Block("text", found, **self._where()))

    def _add(self, block: Block) -> None:
        self.marker = ""
        self.found.append(block)


def _spans(tokens: Iterable[Token]) -> tuple[Span, ...]:
    found: list[Span] = []
    looks: list[str] = []
    targets: list[tuple[str, int]] = []
    for token in tokens:
        kind = token.type
        name, _, end = kind.rpartition("_")
        if kind == "text":
            _say(found, token.content, tuple(looks))
        elif kind in ("softbreak", "hardbreak"):
            _say(found, "\n", tuple(looks))
        elif kind == "code_inline":
            _say(found, token.content, (*looks, "code"))
        elif kind == "image":
            source = str(token.attrGet("src") or "")
            _say(found, f"[{_WORDS_OF_IMAGE}: {token.content or source}]", (*looks, "em"))
            _say(found, f" {source}", ("target",))
        elif kind == "link_open":
            targets.append((str(token.attrGet("href") or ""), len(found)))
            looks.append("link")
        elif kind == "link_close" and targets:
            target, start = targets.pop()
            _drop(looks, "link")
            if target and target != "".join(span.text for span in found[start:]):
                _say(found, f" ({target})", ("target",))
        elif end == "open" and name in LOOKS:
            looks.append(LOOKS[name])
        elif end == "close" and name in LOOKS:
            _drop(looks, LOOKS[name])
        elif token.content:
            _say(found, token.content, tuple(looks))
    return tuple(found)


def _say(found: list[Span], text: str, looks: tuple[str, ...]) -> None:
    if text:
        found.append(Span(gate.clean(text), tuple(dict.fromkeys(looks))))


def _drop(looks: list[str], look: str) -> None:
    if look in looks:
        del looks[len(looks) - 1 - looks[::-1].index(look)]
