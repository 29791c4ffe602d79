"""Items, responses and chats as one file of messages that can be posted again; no program keeps such sessions.

Items become the list that a request takes as `input`, messages of a chat an object with `messages`, messages of a graph a list.
"""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from studio.errors import PatchError
from studio.forks.sessions import splice
from studio.forks.sessions.pieces import Layout, Piece
from studio.forks.sessions.recipe import NO_RESULT, Cut, Made
from studio.forks.sessions.splice import Path
from studio.render.shell import word

_SERVER_FIELDS = ("status", "created_at", "object")
"""What the service says of an item and takes in no request."""
_NO_INPUT = frozenset(("item_reference", "mcp_list_tools", "additional_tools"))


class ItemsLayout(Layout):
    text_type: ClassVar[dict[str, str]] = {
        "human": "input_text",
        "ai": "output_text",
        "tool": "input_text",
        "system": "input_text",
    }

    def path(self, piece: Piece, nth: int) -> Path | None:
        held = piece.document if isinstance(piece.document, dict) else {}
        kind = held.get("type") or "message"
        if kind == "message" or "role" in held:
            return ("content",)
        return ("output",) if str(kind).endswith("_output") else None


class ChatLayout(Layout):
    def path(self, piece: Piece, nth: int) -> Path | None:
        held = _message(piece)
        if "lc" in held and isinstance(held.get("kwargs"), dict):
            return ("kwargs", "content")
        if isinstance(held.get("data"), dict) and "content" not in held:
            return ("data", "content")
        if isinstance(held.get("message"), dict) and "role" in held["message"]:
            return ("message", "content")
        return ("content",) if "content" in held else None

    def is_block(self, block: object) -> bool:
        return not (isinstance(block, dict) and block.get("type") == "tool_use")

    def remove_call(self, piece: Piece, ident: str) -> None:
        held = _message(piece)
        inner: Path = ("data",) if isinstance(held.get("data"), dict) else ("kwargs",) if "lc" in held else ()
        try:
            path = (*inner, "tool_calls")
            calls = splice.items(piece.data, splice.find(piece.data, path)[0])
        except splice.NotThere as error:
            raise PatchError("This call cannot be dropped alone as it is stored.", "Drop the answer.", "together") from error
        from studio.stores.transcripts.source import loads

        gone = [at for at, (one, end) in enumerate(calls) if (loads(piece.data[one:end]) or {}).get("id") == ident]
        if len(gone) == len(calls):
            piece.data = splice.without_fields(piece.data, ["tool_calls"], inner)
        else:
            piece.data = splice.without_items(piece.data, path, gone)


def _message(piece: Piece) -> dict[str, Any]:
    from studio.stores.transcripts.source import loads

    found = loads(piece.data)
    return found if isinstance(found, dict) else {}


def is_items(kind: str) -> bool:
    return kind in ("openai-items", "openai-responses")


def check(cut: Cut, kind: str) -> None:
    cut.notes.append("No program keeps such a session: the fork is a file of messages that can be posted again.")


def make(cut: Cut, kind: str) -> Made:
    session = str(uuid.uuid4())
    pieces = [piece for piece in cut.pieces if piece.said or is_items(kind)]
    source = cut.one.woven.files[pieces[-1].record.file].source.name if pieces else "fork"
    stem = source.removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")
    own = cut.first_own(pieces)
    parts: list[bytes] = []
    records: list[str | None] = []
    copies: list[str | None] = []
    replaces = pieces[own].turn if own < len(pieces) else None
    for at, piece in enumerate(pieces):
        part = _item(piece, cut) if is_items(kind) else splice.on_one_line(piece.data)
        if part is not None:
            parts.append(part)
            copies.append(piece.said[0].get("id") if piece.said else None)
            records.append(piece.record.id if at < own and not (piece.record.more or {}).get("response") else None)
        below = pieces[at + 1] if at + 1 < len(pieces) else None
        if below is None or below.turn != piece.turn:
            found = [_output(cut, call, kind) for call, _ in cut.open_calls.get(piece.turn, ())]
            parts += found
            records += [None] * len(found)
            copies += [None] * len(found)
    body = b",".join(parts)
    data = b'{"messages":[' + body + b"]}\n" if kind == "chat" else b"[" + body + b"]\n"
    name = f"{stem}-fork-{session[:8]}.json"
    made = Made(session, name, data, kind, None, None, records=records, copies=copies, replaces=replaces)
    if is_items(kind):
        cut.notes.append(f"Post it as the `input` of a request: jq '{{model: $m, input: .}}' --arg m MODEL {word(name)}")
    elif kind == "chat":
        cut.notes.append(f"Post its `messages`: jq '. + {{model: $m}}' --arg m MODEL {word(name)}")
    return made


def _item(piece: Piece, cut: Cut) -> bytes | None:
    """An item as a request takes it: without the ids that the service gave, which it refuses where it does not keep the item."""
    held = piece.document if isinstance(piece.document, dict) else {}
    named = held.get("type")
    kind = named if isinstance(named, str) and named else "message"
    if kind in _NO_INPUT:
        cut.warnings.append(f"An item of type {kind} is left out: it means something to the service alone.")
        return None
    gone = [name for name in _SERVER_FIELDS if name in held]
    if "id" in held and kind != "local_shell_call_output":
        gone.append("id")
    if kind == "reasoning" and not held.get("encrypted_content"):
        cut.warnings.append("Reasoning without its encrypted content cannot be sent again: it is left out.")
        return None
    data = splice.on_one_line(piece.data)
    told = "The ids of the items are left out: the service refuses those that it does not keep."
    if "id" in gone and told not in cut.notes:
        cut.notes.append(told)
    return splice.without_fields(data, gone) if gone else data


def _output(cut: Cut, call: str, kind: str) -> bytes:
    if kind == "langchain":
        return splice.encoded({"type": "tool", "content": NO_RESULT, "status": "error", "tool_call_id": call})
    if kind == "chat":
        return splice.encoded({"role": "tool", "content": NO_RESULT, "tool_call_id": call})
    made = next(
        (one.document for one in cut.pieces if isinstance(one.document, dict) and one.document.get("call_id") == call), {}
    )
    name = made.get("type")
    out = f"{name}_output" if name in ("custom_tool_call", "shell_call", "apply_patch_call") else "function_call_output"
    return splice.encoded({"type": out, "call_id": call, "output": NO_RESULT})
