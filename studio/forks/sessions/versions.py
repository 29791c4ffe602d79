"""The files of an agent's session as they were at a turn: what the file history, edits and reads tell of each.

What a shell command changed is not seen. A version is `content` (all its bytes are known), `patch` (only what was changed is
known), `absent` (it was not there, or was deleted) or `unknown`.
"""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct, field

from studio.model import Problem
from studio.stores.transcripts import content
from studio.stores.transcripts.fold import Folded
from studio.stores.transcripts.transcript import Transcript
from studio.stores.transcripts.turns import Turn

LARGEST = 256 << 20
_BACKUP = re.compile(r"[0-9A-Za-z]{4,80}@v\d{1,9}")
_SNAPSHOTS = ("file-history-snapshot", "file-history-delta")

Known = Literal["content", "patch", "absent", "unknown"]


class Version(Struct):
    path: str
    """Absolute where the working folder is known."""
    known: Known
    source: str
    """Where it is known from, in words."""
    turn: str
    """The turn that told it last."""
    data: bytes | None = None
    patch: str | None = None
    edits: int = 0

    @property
    def sha256(self) -> str | None:
        return hashlib.sha256(self.data).hexdigest() if self.data is not None else None


class Moment(Struct):
    """The files at one turn."""

    cwd: str | None
    git_branch: str | None
    at: str | None
    files: list[Version] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def at(one: Transcript, turn: Turn) -> Moment:
    """The files as they were behind a turn."""
    folded = one.folded()
    small = folded.small(turn.id)
    first = folded.document(one.woven.records[turn.records[0]])
    cwd = _text(small.get("cwd")) or _text(first.get("cwd") if isinstance(first, dict) else None)
    moment = Moment(cwd, _text(small.get("git_branch")), turn.last_at or turn.at)
    teller = _Teller(one, folded, moment)
    for step in folded.branch(turn.id):
        teller.take(step)
    moment.files = [teller.files[path] for path in sorted(teller.files)]
    return moment


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


class _Teller:
    def __init__(self, one: Transcript, folded: Folded, moment: Moment) -> None:
        self.one, self.folded, self.moment = one, folded, moment
        self.files: dict[str, Version] = {}
        self.cwd = moment.cwd
        self.lanes: dict[str, list[str]] = {}
        for lane in one.woven.lanes.values():
            if lane.turn is not None:
                self.lanes.setdefault(lane.turn, []).append(lane.ns)
        self.backups = _backups(one)
        self.deep = 0

    def take(self, turn: Turn) -> None:
        """What one turn tells, and the subagents that it called."""
        cwd = self.folded.small(turn.id).get("cwd")
        self.cwd = cwd if isinstance(cwd, str) else self.cwd
        for record in turn.records:
            for note in self.backups.get(self.one.woven.records[record].id, ()):
                self._restore(turn, *note)
        said = self.folded.said(turn)
        calls = {call["id"]: call for one in said.messages for call in one.get("tool_calls") or () if call.get("id")}
        for at_ in turn.records:
            record_ = self.one.woven.records[at_]
            if not record_.results or record_.kind == "note":
                continue
            document = self.folded.document(record_)
            result = document.get("toolUseResult") if isinstance(document, dict) else None
            for ident, failed in record_.results:
                if not failed and ident in calls:
                    self._call(turn, calls[ident], result if isinstance(result, dict) and len(record_.results) == 1 else {})
        for what, call, detail in said.effects:  # of rollouts: patches
            if what == "file" and "patch" in detail[1] and calls.get(call or "", {}).get("name") not in content.EDITS:
                self._patched(turn, detail[0], detail[1])
        if self.deep < 20:
            self.deep += 1
            for ns in self.lanes.get(turn.id, ()):
                for inner in self.one.woven.turns.values():
                    if inner.ns == ns:
                        self.take(inner)
            self.deep -= 1

    # ---- what tells a version

    def _set(self, turn: Turn, path: str, known: Known, source: str, data: bytes | None = None, patch: str | None = None) -> None:
        name = self._name(path)
        held = self.files.get(name)
        edits = (held.edits if held is not None else 0) + (source in ("edit", "write", "patch"))
        words = {"edit": "the edit's own record", "write": "what was written", "patch": "its patches"}.get(source, source)
        self.files[name] = Version(name, known, words, turn.id, data, patch, edits)

    def _name(self, path: str) -> str:
        return absolute(path, self.cwd)

    def _restore(self, turn: Turn, path: str, backup: str | None, folder: str | None) -> None:
        """What the file history says a file was when a prompt came."""
        if backup is None:
            self._set(turn, path, "absent", "the file history: it was not there")
            return
        data = _read_backup(folder, backup)
        if data is not None:
            self._set(turn, path, "content", f"the file history, {backup}", data)
        elif self._name(path) not in self.files:
            self._set(turn, path, "unknown", f"the file history names {backup}, which is not here")

    def _call(self, turn: Turn, call: dict[str, Any], result: dict[str, Any]) -> None:
        name, args = call.get("name"), call.get("args")
        given: dict[str, Any] = args if isinstance(args, dict) else {}
        path = given.get("file_path") or given.get("notebook_path") or result.get("filePath")
        if not isinstance(path, str):
            return
        if name == "Read":
            held = result.get("file")
            if isinstance(held, dict) and isinstance(held.get("content"), str) and self._name(path) not in self.files:
                whole = held.get("startLine", 1) == 1 and held.get("numLines") == held.get("totalLines")
                if whole:
                    self._set(turn, path, "content", "what was read; a last line break may differ", _bytes(held["content"]))
            return
        if name == "Write":
            told = result.get("content") if isinstance(result.get("content"), str) else given.get("content")
            if isinstance(told, str):
                self._set(turn, path, "content", "write", _bytes(told))
            return
        if name in content.EDITS:
            self._edit(turn, str(name), path, given, result)

    def _edit(self, turn: Turn, name: str, path: str, given: dict[str, Any], result: dict[str, Any]) -> None:
        held = self.files.get(self._name(path))
        before: str | None = result["originalFile"] if isinstance(result.get("originalFile"), str) else None
        if before is None and held is not None and held.known == "content" and held.data is not None:
            before = held.data.decode("utf-8", "surrogateescape")
        patch = content.edit(name, given, result).get("patch")
        after = None
        if before is not None:
            after = None if result.get("userModified") else _replaced(before, given)
            if after is None:
                after = _hunks(before, result.get("structuredPatch"))
        if after is not None:
            self._set(turn, path, "content", "edit", _bytes(after), patch)
        else:
            joined = "\n".join(one for one in (held.patch if held is not None else None, patch) if one)
            self._set(turn, path, "patch", "patch", None, joined or None)

    def _patched(self, turn: Turn, path: str, change: dict[str, Any]) -> None:
        """A part of an `apply_patch` text."""
        held, patch = self.files.get(self._name(path)), str(change.get("patch") or "")
        if change["state"] == "deleted":
            self._set(turn, path, "absent", "the patch that deleted it")
        elif change["state"] == "created" and all(line.startswith("+") for line in patch.splitlines()):
            self._set(turn, path, "content", "write", _bytes("".join(line[1:] + "\n" for line in patch.splitlines())))
        else:
            before = held.data.decode("utf-8", "surrogateescape") if held is not None and held.data is not None else None
            after = _apply_patch(before, patch) if before is not None else None
            target = change["moved_to"] if isinstance(change.get("moved_to"), str) else path
            if target != path:
                self._set(turn, path, "absent", f"moved to {target}")
            if after is not None:
                self._set(turn, target, "content", "edit", _bytes(after), patch)
            else:
                joined = "\n".join(one for one in (held.patch if held is not None else None, patch) if one)
                self._set(turn, target, "patch", "patch", None, joined)


def absolute(path: str, cwd: str | None) -> str:
    return os.path.normpath(os.path.join(cwd, path)) if cwd is not None else os.path.normpath(path)


def _bytes(text: str) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:  # half of a pair that JSON wrote as an escape
        return text.encode("utf-8", "surrogatepass")


def _replaced(before: str, given: dict[str, Any]) -> str | None:
    """The text after an edit's replacements; None where one does not fit."""
    several = given.get("edits")
    for one in several if isinstance(several, list) else [given]:
        old, new = (one.get("old_string"), one.get("new_string")) if isinstance(one, dict) else (None, None)
        if not isinstance(old, str) or not isinstance(new, str):
            return None
        if old == "" and before == "":
            before = new
        elif not old or old not in before:
            return None
        else:
            before = before.replace(old, new) if one.get("replace_all") else before.replace(old, new, 1)
    return before


def _hunks(before: str, hunks: Any) -> str | None:
    """The text after a structured patch; None where it does not fit."""
    if not isinstance(hunks, list) or not hunks:
        return None
    lines, shift = before.split("\n"), 0
    for hunk in hunks:
        told = hunk.get("lines") if isinstance(hunk, dict) else None
        start = hunk.get("oldStart") if isinstance(hunk, dict) else None
        if not isinstance(told, list) or not isinstance(start, int) or not all(isinstance(line, str) for line in told):
            return None
        told = [line for line in told if not line.startswith("\\")]
        old = [line[1:] for line in told if not line.startswith("+")]
        new = [line[1:] for line in told if not line.startswith("-")]
        place = start - 1 + shift
        if place < 0 or lines[place : place + len(old)] != old:
            return None
        lines[place : place + len(old)] = new
        shift += len(new) - len(old)
    return "\n".join(lines)


def _apply_patch(before: str, patch: str) -> str | None:
    """The text after the hunks of an `apply_patch` text, each found by its lines; None where one is not found once."""
    lines = before.split("\n")
    hunk: list[str] = []
    at_ = 0
    for line in [*patch.split("\n"), "@@"]:
        if not line.startswith("@@") and not line.startswith("*** "):
            hunk.append(line)
            continue
        if line.startswith("*** ") or not hunk:
            continue
        old = [one[1:] for one in hunk if not one.startswith("+")]
        new = [one[1:] for one in hunk if not one.startswith("-")]
        places = [k for k in range(at_, len(lines) - len(old) + 1) if lines[k : k + len(old)] == old]
        if len(places) != 1:
            return None
        lines[places[0] : places[0] + len(old)] = new
        at_, hunk = places[0] + len(new), []
    return "\n".join(lines)


# ---- the file history of Claude Code


def _backups(one: Transcript) -> dict[str, list[tuple[str, str | None, str | None]]]:
    """Prompt's record -> (path, name of the backup or None for a file that was not there, folder of backups)."""
    found: dict[str, list[tuple[str, str | None, str | None]]] = {}
    for file in one.woven.files:
        folder = _history(file.source.path, file.session)
        for note in file.notes:
            if note.what not in _SNAPSHOTS:
                continue
            document = file.source.json_at(note.record.offset, note.record.length)
            for prompt, path, backup in _told(document):
                found.setdefault(prompt, []).append((path, backup, folder))
    return found


def _told(document: Any) -> Iterator[tuple[str, str, str | None]]:
    if not isinstance(document, dict):
        return
    snapshot = document.get("snapshot")
    if isinstance(snapshot, dict):
        prompt = _text(snapshot.get("messageId") or document.get("messageId"))
        held = snapshot.get("trackedFileBackups")
        for name, backup in held.items() if isinstance(held, dict) else ():
            if isinstance(backup, dict) and prompt is not None:
                yield prompt, name, _text(backup.get("backupFileName"))
    elif isinstance(document.get("backup"), dict):
        prompt, path = _text(document.get("snapshotMessageId") or document.get("messageId")), _text(document.get("trackingPath"))
        if prompt is not None and path is not None:
            yield prompt, path, _text(document["backup"].get("backupFileName"))


def _history(path: str, session: str) -> str | None:
    """Where backups of a session lie, beside the folder of its project."""
    projects = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    if os.path.basename(projects) != "projects" or not re.fullmatch(r"[0-9A-Za-z_-]{1,100}", session):
        return None
    return os.path.join(os.path.dirname(projects), "file-history", session)


def _read_backup(folder: str | None, name: str) -> bytes | None:
    if folder is None or not _BACKUP.fullmatch(name):
        return None
    try:
        handle = os.open(os.path.join(folder, name), os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        info = os.fstat(file.fileno())
        return file.read() if stat.S_ISREG(info.st_mode) and info.st_size <= LARGEST else None
