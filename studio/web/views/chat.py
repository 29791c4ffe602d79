"""A branch read as one chat: prompts, answers as prose, each call folded with its result, each beat linked to its superstep."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec.structs import replace

from studio import reading, tagged, toolcalls, wording
from studio.model import Address
from studio.reading import Beat, Call, Chip, Said
from studio.render import gate, labels, prose
from studio.session import Session
from studio.tree import CheckpointTree
from studio.web.links import Place

THINKING = 6_000
FOLDED = 4_000
"""Characters of thinking, of context, of a summary that are put into a page at once."""
WHOLE = 2_000_000
"""Of a text that somebody asked to see whole."""
WHOLE_LINES = 20_000
SHORT = 300
"""A system message up to so long needs no folding."""
PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", None)


@dataclass(frozen=True, slots=True)
class Picture:
    words: str
    href: str
    """Where its bytes are, when it is of a type that is shown."""
    show_href: str


@dataclass(frozen=True, slots=True)
class CallView:
    words: wording.CallWords
    glyph: str
    open: bool
    pictures: tuple[Picture, ...]
    tracks: tuple[tuple[str, str], ...]
    more_href: str
    id: str


@dataclass(frozen=True, slots=True)
class ItemView:
    kind: str
    who: str
    prose: tuple[prose.Block, ...]
    more: int
    more_href: str
    thinking: tuple[str, ...]
    """Thought in words; empty texts are thoughts that were not stored in the clear."""
    folded: str
    """The headline of what is folded; empty for what is shown."""
    text: str
    open: bool
    pictures: tuple[Picture, ...]
    others: tuple[str, ...]
    calls: tuple[CallView, ...]
    failed: bool
    queued: bool
    why: str
    edit: str
    selected: bool


@dataclass(frozen=True, slots=True)
class BeatView:
    id: str
    number: str
    href: str
    changes_href: str
    current: bool
    facts: tuple[str, ...]
    items: tuple[ItemView, ...]


@dataclass(frozen=True, slots=True)
class Conversation:
    channel: str
    beats: tuple[BeatView, ...]
    earlier: int
    unit: str
    earlier_href: str
    """The fragment before this one."""
    page_href: str
    """The same as a page, for who has no scripts."""
    others: tuple[tuple[str, str], ...]
    """Other channels that hold messages, with links."""
    empty: str = ""
    edit_href: str = ""
    ends: bool = True
    """It ends at the turn that is looked at."""


def conversation(
    session: Session, tree: CheckpointTree, place: Place, address: Address, *, before: int | None = None
) -> Conversation:
    """The last turns or messages before place `before`, of the channel of the selected path or the longest one."""
    wanted = (tagged.split_path(place.path) or [""])[0] if place.path and place.path.startswith("/") else None
    found = reading.chat(session, tree, address, channel=wanted, before=before)
    if found is None:
        return Conversation("", (), 0, "", "", "", (), empty="No channel of this state holds messages.")
    pen = _Pen(session, tree, place, address, found.channel)
    beats = tuple(pen.beat(beat) for beat in found.beats)
    others = tuple(
        (gate.line(name, 60), place.to(tab="conversation", path=tagged.join_path([name])).url()) for name in found.others
    )
    before_here = [("before", str(found.start))]
    editable = not session.is_transcript or session.fork_refusal(address) is None
    return Conversation(
        gate.line(found.channel, 60),
        beats,
        found.start,
        found.unit,
        place.url("chat", before_here),
        place.url(extra=before_here),
        others,
        edit_href=place.to(tab="conversation", path=tagged.join_path([found.channel])).url("messages") if editable else "",
        ends=found.stop == found.total,
    )


class _Pen:
    def __init__(self, session: Session, tree: CheckpointTree, place: Place, address: Address, channel: str) -> None:
        self.session, self.tree, self.place, self.address, self.channel = session, tree, place, address, channel
        self.secret = session.show_secrets
        branch = session.branch(address)
        self.is_transcript = branch is not None
        self.cwd = branch.cwd if branch is not None else ""
        self.model: str | None = None
        unanswered = {} if branch is not None else toolcalls.open_calls(session.state(address))
        self.open_calls = {ident for (name, _), idents in unanswered.items() if name == channel for ident in idents}

    def beat(self, beat: Beat) -> BeatView:
        current = beat.address == self.address and self.is_transcript
        facts = []
        if beat.tokens is not None:
            facts.append(f"{wording.token_words(beat.tokens.context)} in · {wording.token_words(beat.tokens.output)} out")
        if beat.seconds is not None and beat.seconds >= 0.05:
            facts.append(labels.duration(beat.seconds))
        if beat.model and beat.model != self.model:
            facts.insert(0, gate.line(beat.model, 60))
            self.model = beat.model
        at = self.place.at_address(beat.address, path=None)
        number = self.tree.number(beat.address)
        return BeatView(
            f"beat-{number.replace('.', '-')}",
            number,
            at.to(tab="conversation").url(),
            at.to(tab="changes").url(),
            current,
            tuple(facts),
            tuple(self.item(beat, item, at, current) for item in beat.items),
        )

    def item(self, beat: Beat, item: Said, at: Place, current: bool) -> ItemView:
        text = wording.text_of(item.pieces)
        shown = item.kind in ("prompt", "answer", "removed") or item.kind == "result" and not self.is_transcript
        body = prose.prose(text, show_secrets=self.secret) if shown else prose.Prose()
        folded, more = ("", body.more) if shown else prose.plain(text, show_secrets=self.secret, limit=FOLDED)
        path = self._path(item)
        extra = [("said", item.id)] if item.id else []
        return ItemView(
            kind=item.kind,
            who=self._who(item),
            prose=body.blocks,
            more=more,
            more_href=at.url("said", [*extra, ("kind", item.kind)]) if item.id and self.is_transcript else self._value_href(path),
            thinking=tuple(
                prose.plain(piece.text, show_secrets=self.secret, limit=THINKING)[0]
                for piece in item.pieces
                if piece.kind == "thinking"
            ),
            folded="" if shown else wording.item_words(item),
            text="" if item.kind == "compacted" and wording.compaction_words(text) else folded.strip("\n"),
            open=not shown
            and (not self.is_transcript and len(text) <= SHORT or item.kind in ("retry", "note") and len(text) <= SHORT),
            pictures=tuple(self.picture(piece.chip, at) for piece in item.pieces if piece.chip is not None),
            others=tuple(gate.line(piece.text, 200) for piece in item.pieces if piece.kind == "other"),
            calls=tuple(self.call(call, at, current) for call in item.calls),
            failed=item.failed,
            queued=item.queued,
            why=self.place.to(path=path, tab="conversation").url() if path and not self.is_transcript else "",
            edit=self.place.to(path=path, tab="conversation").url("messages", [("open", str(item.at))])
            if path and item.at is not None
            else "",
            selected=bool(path) and self.place.path == path,
        )

    def _who(self, item: Said) -> str:
        if item.kind == "prompt":
            return "typed meanwhile" if item.queued else "user"
        if item.kind == "answer":
            return "assistant" + (f" · {gate.line(item.name, 60)}" if item.name else "")
        if item.kind == "result":
            return (
                f"tool result · {gate.line(item.name, 60)}" if item.name and not self.is_transcript else wording.item_words(item)
            )
        return wording.item_words(item)

    def _path(self, item: Said) -> str:
        return tagged.join_path([self.channel, str(item.at)]) if item.at is not None else ""

    def _value_href(self, path: str) -> str:
        return self.place.to(path=path, tab="state").url() if path else ""

    def call(self, call: Call, at: Place, current: bool) -> CallView:
        words = wording.call_words(call, cwd=self.cwd, show_secrets=self.secret)
        if call.state == "open" and not self.is_transcript and call.id not in self.open_calls:
            words = replace(words, state="waiting", state_word="not answered yet")
        tracks = tuple(
            (f"agent's track #{self.tree.number(one)}", self.place.at_address(one, path=None, tab="conversation").url())
            for one in call.tracks
            if one in self.tree
        )
        return CallView(
            words,
            GLYPHS.get(call.state, "·"),
            current and (call.state == "failed" or bool(words.patches)),
            tuple(self.picture(chip, at) for chip in words.pictures),
            tracks,
            at.url("said", [("call", call.id)]) if call.id and self.is_transcript else "",
            gate.line(call.id or "", 80),
        )

    def picture(self, chip: Chip, at: Place) -> Picture:
        extra = [("sha256", chip.digest)]
        known = chip.media_type in PICTURES and self.is_transcript
        href = at.url("picture", extra) if known else ""
        return Picture(wording.chip_words(chip), href, at.url("picture", [*extra, ("frame", "1")]) if known else "")


GLYPHS = {"answered": "✓", "failed": "✕", "open": "…"}
"""Signs of the state of a call; the words stand beside them."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A text, or a call with its result, in full."""

    text: str
    more: int
    call: CallView | None = None
    blocks: tuple[prose.Block, ...] = ()


def whole(
    session: Session, tree: CheckpointTree, place: Place, address: Address, *, call: str = "", said: str = "", kind: str = ""
) -> Whole | None:
    """One thing that was said in a turn, in full; None where the turn has no such thing."""
    branch = session.branch(address)
    if branch is None:
        return None
    items = branch.said(branch.turn)
    if call:
        for item in items:
            for one in item.calls:
                if one.id == call:
                    words = wording.call_words(
                        one, cwd=branch.cwd, show_secrets=session.show_secrets, result=WHOLE, lines=WHOLE_LINES
                    )
                    return Whole(words.result, words.result_more, CallView(words, GLYPHS[one.state], True, (), (), "", ""))
        return None
    found = next((item for item in items if item.id == said and item.kind == kind), None)
    if found is None:
        return None
    text, more = prose.plain(wording.text_of(found.pieces), show_secrets=session.show_secrets, limit=WHOLE)
    return Whole(text, more)
