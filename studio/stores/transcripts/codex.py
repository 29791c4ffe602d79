"""Codex rollouts, bare items of old and lines with a payload of new. Items are the truth; events repeat them and are not shown.

A rollout is one chain, in file order. It branches where turns were rolled back, where another file says that it goes on from this
one, and where a fork repeats its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from studio.stores.transcripts import content
from studio.stores.transcripts.claude import said
from studio.stores.transcripts.items import ANSWERED, CALLS, OUTPUTS, item_messages
from studio.stores.transcripts.names import Names
from studio.stores.transcripts.record import NOT_COUNTED, Indexed, Note, Record, Tokens, moment, whole
from studio.stores.transcripts.source import loads

CONTEXT = (
    "<environment_context",
    "# AGENTS.md",
    "<user_instructions",
    "<skills",
    "<permissions",
    "<turn_aborted",
    "<user_shell_command",
)
FAILED = ("unsupported call", "failed", "error", "execution error", "apply_patch verification failed", "aborted by user")
SHELLS = Names(("shell", "exec_command", "local_shell", "container.exec", "exec", "shell_command"))


class _Payload(Struct):
    type: str | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    num_turns: float | None = None


class _Line(Struct):
    type: str | None = None
    timestamp: str | float | None = None
    ordinal: float | None = None
    record_type: str | None = None
    payload: _Payload | None = None
    role: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None


_decoder = msgspec.json.Decoder(_Line)


class Codex:
    def __init__(self, name: str) -> None:
        self.format = name

    def take(self, to: Indexed, line: int, offset: int, length: int, data: bytes) -> None:
        if not data.startswith(b"{"):
            raise ValueError("no object")
        try:
            found = _decoder.decode(data)
        except (msgspec.ValidationError, UnicodeDecodeError):
            document = loads(data)
            if not isinstance(document, dict):
                raise ValueError("no object") from None
            found = _Line(type=str(document.get("type")), payload=_Payload(type="unknown"))
        to.total += 1
        if to.state is None:
            to.state = {
                "last": None,
                "step": "",
                "said": [],
                "total": None,
                "context": {},
                "prompts": [],
                "lines": {},
                "first": None,
                "told": {},
            }
        state = to.state
        at, usual = moment(found.timestamp)
        if not usual and found.timestamp is not None and self.format == "codex":
            to.problems.append(("odd-timestamp", line, f"its time is stored as {found.timestamp!r}"))
        record = Record(0, line, offset, length, "note", "", at=at)
        if self.format == "codex-old" and (found.payload is None):
            self._bare(to, record, found, data)
            return
        kind, payload = found.type, found.payload
        if kind == "session_meta":
            self._meta(to, record, data)
        elif kind == "response_item" and payload is not None:
            self._item(to, record, payload, data, found.ordinal)
        elif kind == "compacted":
            record.kind = "boundary"
            self._chain(to, record, data, found.ordinal)
            self._attribute(to, record)
            state["step"] = ""
        elif kind == "turn_context":
            self._context(to, data)
        elif kind == "event_msg" and payload is not None:
            self._event(to, record, payload, data)
        elif kind not in ("world_state", "token_usage_record"):
            to.unknown[str(kind)] = to.unknown.get(str(kind), 0) + 1

    # ---- records

    def _bare(self, to: Indexed, record: Record, found: _Line, data: bytes) -> None:
        if found.record_type is not None:
            return
        if found.type is None:
            document = loads(data)
            if isinstance(document, dict) and "instructions" in document:
                to.session = str(document.get("id") or "")
                git = document.get("git")
                branch = git.get("branch") if isinstance(git, dict) else None
                if branch:
                    to.state["context"]["git_branch"] = branch
                return
        self._item(to, record, _Payload(found.type, found.role, found.id, found.call_id, found.name), data, None)

    def _meta(self, to: Indexed, record: Record, data: bytes) -> None:
        meta = (loads(data) or {}).get("payload")
        if not isinstance(meta, dict) or to.facts.get("meta"):
            return
        to.facts["meta"] = True
        to.session = str(meta.get("id") or "")
        to.facts["version"] = meta.get("cli_version")
        base = meta.get("history_base")
        if isinstance(base, dict):
            to.facts["base"] = (base.get("thread_id"), base.get("end_ordinal_exclusive"))
        to.facts["forked_from"] = meta.get("forked_from_id")
        git = meta.get("git")
        for name, value in (("cwd", meta.get("cwd")), ("git_branch", git.get("branch") if isinstance(git, dict) else None)):
            if isinstance(value, str):
                to.state["context"][name] = value

    def _context(self, to: Indexed, data: bytes) -> None:
        held = (loads(data) or {}).get("payload")
        if isinstance(held, dict):
            for name, value in (
                ("cwd", held.get("cwd")),
                ("permission_mode", held.get("approval_policy")),
                ("model", held.get("model")),
            ):
                if isinstance(value, str):
                    to.state["context"][name] = value

    def _chain(self, to: Indexed, record: Record, data: bytes, ordinal: float | None) -> None:
        """Append a record to the chain of the file."""
        state = to.state
        # copies of lines in a fork's file are told by their text
        record.id = f"{to.session or to.source.name}:{record.line}"
        record.parent = state["last"]
        more: dict[str, Any] = {}
        if record.kind != "context" and state["context"]:
            more.update({name: value for name, value in state["context"].items() if state["told"].get(name) != value})
            state["told"].update(state["context"])
            state["context"] = {}
        if ordinal is not None:
            more["ordinal"] = int(ordinal)
        more["text"] = said(data[max(0, data.find(b'"payload"')) :].decode("utf-8", "replace"))
        record.more = more
        state["last"] = record.id
        to.records.append(record)

    def _item(self, to: Indexed, record: Record, payload: _Payload, data: bytes, ordinal: float | None) -> None:
        state, kind = to.state, payload.type
        if kind == "message" and payload.role in ("user", "developer", "system"):
            document = loads(data) or {}
            held = document.get("payload") if "payload" in document else document
            text = content.text_of(held.get("content") if isinstance(held, dict) else None)
            record.shown = 1
            if payload.role != "user" or text.lstrip().startswith(CONTEXT):
                record.kind = "context"
                self._chain(to, record, data, ordinal)
                return
            record.kind, record.said = "prompt", said(text)
            self._chain(to, record, data, ordinal)
            state["step"] = ""
            state["prompts"].append(record.id)
        elif kind in OUTPUTS:
            ident = payload.call_id or payload.id or ""
            record.kind, record.results, record.shown = "result", ((ident, self._failed(data)),), 1
            self._chain(to, record, data, ordinal)
            state["answered"] = True
        else:
            record.kind = "answer"
            if not state["step"] or state.get("answered"):
                state["step"], state["answered"] = f"{to.session or to.source.name}:{record.line}", False
            record.key = state["step"]
            record.model = state.get("model") or state["context"].get("model")
            if record.model:
                state["model"] = record.model
            if kind in CALLS:
                name = payload.name or CALLS[kind]
                record.calls = ((payload.call_id or payload.id or f"call:{record.line}", name),)
                record.shown = 1 if name not in ANSWERED else NOT_COUNTED
            elif kind == "reasoning" or (kind == "message" and payload.role == "assistant"):
                record.shown = 1
            self._chain(to, record, data, ordinal)
            self._attribute(to, record)

    @staticmethod
    def _failed(data: bytes) -> bool:
        document = loads(data) or {}
        held = document.get("payload") if "payload" in document else document
        output = held.get("output") if isinstance(held, dict) else None
        if isinstance(output, dict):
            return output.get("success") is False
        text = content.text_of(output)
        if text.startswith('{"output"'):
            inner = loads(text.encode("utf-8", "surrogatepass"))
            meta = inner.get("metadata") if isinstance(inner, dict) else None
            return isinstance(meta, dict) and meta.get("exit_code") not in (0, None)
        return text.lower().startswith(FAILED) or (
            "Process exited with code" in text[:400] and "Process exited with code 0" not in text[:400]
        )

    def _event(self, to: Indexed, record: Record, payload: _Payload, data: bytes) -> None:
        state = to.state
        if payload.type == "token_count":
            info = ((loads(data) or {}).get("payload") or {}).get("info")
            total = info.get("total_token_usage") if isinstance(info, dict) else None
            last = info.get("last_token_usage") if isinstance(info, dict) else None
            if isinstance(total, dict):
                self._total(to, normal(total), normal(last) if isinstance(last, dict) else None)
        elif payload.type == "thread_rolled_back":
            undone = int(payload.num_turns or 0)
            prompts = state["prompts"]
            if undone > 0 and prompts:
                undone = min(undone, len(prompts))
                first = prompts[-undone]
                place = {one.id: one for one in to.records}
                state["last"] = place[first].parent if first in place else state["last"]
                above = place.get(state["last"] or "")
                while above is not None and above.kind == "context":  # contexts are written anew before the next prompt
                    state["last"] = above.parent
                    above = place.get(above.parent or "")
                del prompts[-undone:]
                state["step"] = ""
        elif payload.type == "task_started":
            state["step"] = ""  # what a model says from here on is another answer: the summary of a compaction, for instance
        elif payload.type == "turn_aborted" and state["last"]:
            to.notes.append(Note(record, "turn-aborted"))

    def _total(self, to: Indexed, total: Tokens, latest: Tokens | None) -> None:
        """A running total of the thread: the difference belongs to the answer that is written around it."""
        state = to.state
        before: Tokens = state["total"] or (0, 0, 0, 0)
        if total == before:
            return
        grown = tuple(now - then for now, then in zip(total, before, strict=True))
        if any(one < 0 for one in grown) or (state.get("early") and total == latest):
            grown = total  # counted anew by another process
        state["total"] = total
        state["first"] = state["first"] or (before, total)
        last = next((one for one in reversed(to.records) if one.kind == "answer"), None)
        between = not to.records or to.records[-1].kind in ("prompt", "context", "boundary")
        if "early" not in state:
            state["early"] = between  # 0.36 writes each count before the items of its answer, later versions after them
        if state["early"] or between or last is None or last.tokens is not None:
            held = state.get("pending") or (0, 0, 0, 0)
            state["pending"] = tuple(one + more for one, more in zip(held, grown, strict=True))
        else:
            last.tokens = grown  # type: ignore[assignment]

    def _attribute(self, to: Indexed, record: Record) -> None:
        """What was counted before an answer, or before the boundary of a compaction, which a model wrote, too."""
        pending = to.state.pop("pending", None)
        if pending is not None:
            record.tokens = pending

    def finish(self, to: Indexed) -> None:
        if not to.session:
            to.session = to.source.name.removesuffix(".gz").removesuffix(".jsonl")
        state = to.state or {}
        to.facts["tokens"] = state.get("total")

    def link(self, files: Sequence[Indexed]) -> None:
        """Join files of one group: those that repeat another's lines, and those that say from where they go on."""
        by_session: dict[str, list[Indexed]] = {}
        for file in files:
            by_session.setdefault(file.session, []).append(file)
        known: list[Indexed] = []
        for file in files:
            base = file.facts.get("base")
            if base is not None and file.records:
                self._go_on(file, base, [one for one in by_session.get(str(base[0]), ()) if one is not file], known)
            else:
                self._copied(file, known)
            known.append(file)

    @staticmethod
    def _go_on(file: Indexed, base: tuple[Any, Any], sources: Sequence[Indexed], known: Sequence[Indexed]) -> None:
        first, end = file.records[0], base[1]
        before: Record | None = None
        for source in sources:
            for record in source.records:
                ordinal = (record.more or {}).get("ordinal")
                if (
                    ordinal is not None
                    and isinstance(end, int)
                    and ordinal < end
                    and (before is None or ordinal > (before.more or {})["ordinal"])
                ):
                    before = record
        if before is None:
            first.parent = f"thread {base[0]}"
            file.problems.append(("base-missing", first.line, f"goes on from thread {base[0]}, whose file is not here"))
        elif first.parent is None:
            first.parent = before.id
        state = file.state or {}
        begun = next((one.facts.get("tokens") for one in sources if one.facts.get("tokens")), None)
        if state.get("first") is not None and begun is not None and state.get("total"):
            start = _total_at(sources, before)
            file.facts["own_tokens"] = tuple(max(0, now - then) for now, then in zip(state["total"], start, strict=True))
            answered = next((one for one in file.records if one.tokens is not None), None)
            if answered is not None and answered.tokens is not None:
                answered.tokens = tuple(max(0, now - then) for now, then in zip(answered.tokens, start, strict=True))  # type: ignore[assignment]

    @staticmethod
    def _copied(file: Indexed, known: Sequence[Indexed]) -> None:
        """A fork that repeats its source's lines: they are the same records."""
        for source in known:
            if file.facts.get("forked_from") != source.session and source.facts.get("forked_from") != file.session:
                continue
            names: dict[str, str] = {}
            count = 0
            for mine, its in zip(file.records, source.records, strict=False):
                if (mine.more or {}).get("text") != (its.more or {}).get("text"):
                    break
                names[mine.id] = its.id
                count += 1
            if not count:
                continue
            start = source.records[count - 1]
            for record in file.records:
                record.id = names.get(record.id, record.id)
                if record.parent is not None:
                    record.parent = names.get(record.parent, record.parent)
            del file.records[:count]
            total = (file.state or {}).get("total")
            if total:
                begun = _total_at([source], start)
                file.facts["own_tokens"] = tuple(max(0, now - then) for now, then in zip(total, begun, strict=True))
            return

    # ---- what a record says

    def messages(self, record: Record, document: Any) -> list[dict[str, Any]]:
        held = document.get("payload") if isinstance(document, dict) and "payload" in document else document
        if not isinstance(held, dict):
            return []
        if record.kind == "boundary":
            text = content.cut(content.text_of(held.get("message")))
            return [{"type": "system", "id": record.id, "name": "compacted", "content": text or "the context was compacted"}]
        found = item_messages(held, record.id)
        if record.kind == "context":
            return [{**one, "type": "system", "name": "context"} for one in found]
        for message in found:
            if message["type"] == "tool" and record.results and record.results[0][1]:
                message["status"] = "error"
        return found

    def effects(self, record: Record, document: Any, calls: dict[str, dict[str, Any]]) -> list[tuple[str, str | None, Any]]:
        found: list[tuple[str, str | None, Any]] = []
        for ident, failed in record.results:
            call = calls.get(ident)
            if call is None or failed:
                continue
            found += content.effects_of_tool(ident, call, {}, failed)
            text = patch_in(call)
            found += [("file", ident, change) for change in content.patched(text)] if text else []
        return found


def _total_at(sources: Sequence[Indexed], record: Record | None) -> Tokens:
    """The running total of a thread at a record: the sum of what its answers took up to there."""
    total = [0, 0, 0, 0]
    for source in sources:
        place = {one.id: one for one in source.records}
        at = record
        while at is not None and at.id in place:
            for index, count in enumerate(at.tokens or ()):
                total[index] += count
            at = place.get(at.parent or "")
    return tuple(total)  # type: ignore[return-value]


def normal(total: dict[str, Any]) -> Tokens:
    """Codex counts cached input as input."""
    cached = whole(total.get("cached_input_tokens"))
    return whole(total.get("input_tokens")) - cached, whole(total.get("output_tokens")), cached, 0


def patch_in(call: dict[str, Any]) -> str:
    """The text of an `apply_patch` call, also one inside a shell command."""
    args, name = call.get("args"), call.get("name")
    texts: list[str] = []
    if isinstance(args, str):
        texts.append(args)
    elif isinstance(args, dict):
        for value in args.values():
            texts += (
                [value]
                if isinstance(value, str)
                else [one for one in value if isinstance(one, str)]
                if isinstance(value, list)
                else []
            )
    if name != "apply_patch" and name not in SHELLS:
        return ""
    return next((text for text in texts if "*** Begin Patch" in text), "")
