"""What an interrupt asks, as one readable sentence: its own words where it has some, else what a person is asked to decide on."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from studio import tagged
from studio.codec.paths import children
from studio.errors import PatchError
from studio.model import Tagged_JSON, Value
from studio.render import gate, masking, preview
from studio.render.secrets import is_secret_name

OWN_WORDS = ("question", "message", "prompt", "text", "description", "title", "query", "instruction", "ask")
"""Keys under which programs put the words for a person."""
ACTIONS = ("action_requests", "action_request", "tool_call", "tool_calls", "action")
"""Keys under which they put calls that wait for a person's consent."""
MOST_FACTS = 4
DEEPEST = 4


class Asked(Struct, frozen=True):
    words: str
    """One line, masked and gated."""
    said: bool
    """They are the program's own words (to be put in quotation marks), not a description of what it handed over."""

    @property
    def quoted(self) -> str:
        return f"“{self.words}”" if self.said else self.words


def asked(value: Value, limit: int = 300) -> Asked:
    """The sentence for a value that was handed to `interrupt`."""
    said = _said(value, DEEPEST)
    if said is not None:
        return Asked(gate.line(masking.text(said), limit), True)
    calls = _calls(value, DEEPEST)
    if calls:
        more = f" and {len(calls) - 1:,} more" if len(calls) > 1 else ""
        return Asked(gate.line(f"May it call {preview.call_text(calls[0], max(40, limit - 40))}{more}?", limit), False)
    if value is None:
        return Asked("It waits for an answer and says no more.", False)
    if isinstance(value, Mapping) and value:
        facts = [
            f"{gate.line(str(key), 40)} {preview.summary(one, 60, key=str(key))}" for key, one in list(value.items())[:MOST_FACTS]
        ]
        more = f" and {len(value) - MOST_FACTS:,} more" if len(value) > MOST_FACTS else ""
        return Asked(gate.line(f"What do you say to {', '.join(facts)}{more}?", limit), False)
    return Asked(gate.line(f"What do you say to {preview.summary(value, max(40, limit - 30))}?", limit), False)


def handed_over(document: Tagged_JSON) -> Value:
    """A question as the event of a run hands it over (tagged JSON), as the value that it stands for; what is masked stays so."""
    try:
        return tagged.from_tagged(_unmasked(document, 4 * DEEPEST))
    except PatchError:
        return document


def _unmasked(document: Tagged_JSON, depth: int) -> Tagged_JSON:
    """With dots in the place of what is masked, which stands for nothing here."""
    if isinstance(document, dict):
        if "$masked" in document:
            return document.get("text", preview.MASK)
        return {key: _unmasked(one, depth - 1) for key, one in document.items()} if depth else document
    return [_unmasked(one, depth - 1) for one in document] if depth and isinstance(document, list) else document


def _said(value: Value, depth: int) -> str | None:
    """Text for a person in a value: itself, a message's text, or what stands under one of the usual keys."""
    if isinstance(value, str):
        return value if value.strip() else None
    message = preview.message(value)
    if message is not None:
        return message.text if message.text.strip() else None
    if depth <= 0:
        return None
    if isinstance(value, list) and len(value) == 1:
        return _said(value[0], depth - 1)
    fields = dict(children(value)) if not isinstance(value, (list, int, float, bytes, type(None))) else {}
    if any(name in fields for name in ACTIONS[:2]):
        return None  # its description repeats the call in many words
    usual = next((said for name in OWN_WORDS if name in fields and (said := _said(fields[name], depth - 1)) is not None), None)
    return usual if usual is not None else next((text for name, text in fields.items() if _is_question(str(name), text)), None)


def _is_question(name: str, value: Value) -> bool:
    return isinstance(value, str) and not is_secret_name(name) and value.rstrip().endswith(("?", "？", "؟"))


def _calls(value: Value, depth: int) -> list[preview.ToolCall]:
    """Calls that wait for consent: of a message without text, or as the usual libraries hand them over."""
    message = preview.message(value)
    if message is not None:
        return list(message.tool_calls)
    if depth <= 0:
        return []
    if isinstance(value, list):
        return [call for one in value[:20] for call in _calls(one, depth - 1)]
    if not isinstance(value, dict):
        return []
    name = value.get("name", value.get("action"))
    if isinstance(name, str) and isinstance(value.get("args"), dict):
        return [preview.ToolCall(None, name, value["args"])]
    return next((calls for key in ACTIONS if key in value and (calls := _calls(value[key], depth - 1))), [])
