"""Which files lie at a location, and which of them belong together as one transcript; no file is read whole."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Iterator
from copy import copy
from typing import Any

from msgspec import Struct, field

from studio.stores.sniff import first_bytes
from studio.stores.transcripts.adopted import Fork
from studio.stores.transcripts.sniff import HEAD, START, is_session, sniff_head
from studio.stores.transcripts.source import GZIP, loads

MOST_FILES = 20_000
DEEPEST = 9
SKIPPED = frozenset(
    [
        "shell-snapshots",
        "session-env",
        "backups",
        "debug",
        "plugins",
        "tool-results",
        "todos",
        "tasks",
        "file-history",
        "node_modules",
        ".git",
        ".venv",
        "__pycache__",
        "statsig",
    ]
)
_NAMES = re.compile(r"\.jsonl(?:\.gz)?$", re.IGNORECASE)
_EXPORTS = re.compile(r"\.json(?:\.gz)?$", re.IGNORECASE)
_KEY = re.compile(rb'"(?:uuid|leafUuid)"\s*:\s*"([^"\\]{8,80})"|"id"\s*:\s*"(msg_[^"\\]{4,80})"')
_SESSION = re.compile(rb'"sessionId"\s*:\s*"([^"\\]{4,80})"')
_TIME = re.compile(rb'"timestamp"\s*:\s*"(\d{4}-[^"\\]{10,40})"')
_OLD_ID = re.compile(rb'^\s*\{"id"\s*:\s*"([0-9a-fA-F-]{8,64})"')
AGENT = re.compile(r"^agent-(.+?)\.jsonl(?:\.gz)?$")


class Found(Struct):
    """One file, by its first bytes."""

    path: str
    format: str
    agent: str | None = None
    session: str | None = None
    keys: frozenset[str] = frozenset()
    at: str = ""
    modified: float = 0.0
    base: tuple[str, ...] = ()
    """Threads that a rollout says it goes on from."""
    fork: Fork | None = None
    """Told of a fork that the studio wrote."""


class Group(Struct):
    """Files of one transcript, the original first; `agents` are the files of its subagents."""

    thread_id: str
    files: list[Found] = field(default_factory=list)
    agents: list[Found] = field(default_factory=list)
    modified: float = 0.0


def transcripts_in(folder: str) -> Iterator[str]:
    """Paths of files below a folder that may be transcripts by their names, sorted within each folder."""
    count, folders = 0, [(folder, 0)]
    while folders:
        here, depth = folders.pop()
        try:
            with os.scandir(here) as entries:
                listed = sorted(entries, key=lambda one: one.name)
        except OSError:
            continue
        inner = []
        for entry in listed:
            try:
                is_folder = entry.is_dir(follow_symlinks=False)
                is_file = not is_folder and entry.is_file()
            except OSError:
                continue
            if is_folder and depth < DEEPEST and entry.name not in SKIPPED:
                inner.append((entry.path, depth + 1))
            elif is_file and (_NAMES.search(entry.name) or (depth == 0 and _EXPORTS.search(entry.name))):
                yield entry.path
                count += 1
                if count >= MOST_FILES:
                    return
        folders.extend(reversed(inner))


def holds_transcripts(folder: str) -> bool:
    """Whether any file below is one."""
    return any(look_at(path) is not None for path in transcripts_in(folder))


Was = tuple[int, int, int, int]
_heads: dict[str, tuple[Was, Found | None]] = {}
"""What this process, or one before it, found in the heads of files as they were."""


def remember_head(path: str, was: Was, found: Found | None) -> None:
    if len(_heads) >= 2 * MOST_FILES:
        _heads.clear()
    _heads[path] = was, found


def known_heads() -> dict[str, tuple[Was, Found | None]]:
    return _heads


def look_at(path: str) -> Found | None:
    """A file by its first bytes; None where it is no transcript. One that did not change is not read again."""
    try:
        held = os.stat(path)
    except OSError:
        return None
    now = held.st_size, held.st_mtime_ns, held.st_ino, held.st_ctime_ns
    known = _heads.get(path)
    if known is None or known[0] != now:
        remember_head(path, now, _look_at(path))
        known = _heads[path]
    return copy(known[1])


def _look_at(path: str) -> Found | None:
    try:
        head = first_bytes(path, START)
        is_sure = is_session(head)
        if not is_sure and len(head) == START:
            head = first_bytes(path, HEAD)
        modified = os.stat(path).st_mtime
    except OSError:
        return None
    kind = "claude-code" if is_sure else sniff_head(head)
    if os.path.basename(path) == "history.jsonl" and kind == "raw":
        return None  # typed prompts of all sessions
    if kind is None or (kind == "raw" and not _NAMES.search(path)):
        return None
    found = Found(path, kind, modified=modified)
    if head.startswith(GZIP):
        head = zlib.decompressobj(31).decompress(head, HEAD)
    if kind == "claude-code":
        start = head[:START]
        named = AGENT.match(os.path.basename(path))
        found.agent = named[1] if named else None
        session = _SESSION.search(start)
        found.session = session[1].decode("utf-8", "replace") if session else None
        found.keys = frozenset((one[0] or one[1]).decode("utf-8", "replace") for one in _KEY.findall(start))
        time = _TIME.search(start)
        found.at = time[1].decode("ascii", "replace") if time else ""
    elif kind == "codex-old":
        named_id = _OLD_ID.search(head[:4096])
        found.session = named_id[1].decode("ascii", "replace") if named_id else None
    elif kind == "codex":
        _meta(found, head)
    return found


def _meta(found: Found, head: bytes) -> None:
    """What the first `session_meta` of a rollout says of its thread."""
    for line in head.split(b"\n")[:50]:
        document = loads(line) if b'"session_meta"' in line[:400] else None
        if not isinstance(document, dict) or not isinstance(document.get("payload"), dict):
            continue
        meta: dict[str, Any] = document["payload"]
        base = meta.get("history_base")
        source = meta.get("source")
        spawn = source.get("subagent") if isinstance(source, dict) else None
        above = spawn.get("thread_spawn") if isinstance(spawn, dict) else None
        links = [
            meta.get("forked_from_id"),
            base.get("thread_id") if isinstance(base, dict) else None,
            above.get("parent_thread_id") if isinstance(above, dict) else None,
        ]
        found.session = meta["id"] if isinstance(meta.get("id"), str) else None
        found.base = tuple(one for one in links if isinstance(one, str))
        found.at = str(meta.get("timestamp") or "")
        found.keys = frozenset(one for one in (found.session, *found.base) if one)
        return


def groups(found: list[Found]) -> list[Group]:
    """Files that share records, ids or links, each group as one transcript; newest first."""
    mains = [one for one in found if one.agent is None]
    leader: dict[str, int] = {}
    boss = list(range(len(mains)))

    def top(at: int) -> int:
        while boss[at] != at:
            boss[at] = boss[boss[at]]
            at = boss[at]
        return at

    for at, one in enumerate(mains):
        for key in one.keys:
            other = leader.setdefault(key, at)
            boss[top(at)] = top(other)
    by_top: dict[int, list[Found]] = {}
    for at, one in enumerate(mains):
        by_top.setdefault(top(at), []).append(one)
    made: list[Group] = []
    of_session: dict[str, Group] = {}
    for files in by_top.values():
        files.sort(key=lambda one: (one.fork is not None, bool(one.base), one.at or "~", one.modified, one.path))
        group = Group("", files, [], max((one.modified for one in files if one.fork is None), default=0.0))
        made.append(group)
        for one in files:
            if one.session:
                of_session.setdefault(one.session, group)
            of_session.setdefault(stem(one.path), group)
    loose: dict[str, Group] = {}
    for one in found:
        if one.agent is None:
            continue
        home = (
            os.path.basename(os.path.dirname(os.path.dirname(one.path)))
            if os.path.basename(os.path.dirname(one.path)) == "subagents"
            else ""
        )
        host = of_session.get(home) or of_session.get(one.session or "")
        if host is None:
            host = loose.setdefault(home or one.session or one.path, Group("", [], [], 0.0))
        host.agents.append(one)
        host.modified = max(host.modified, one.modified)
    made += loose.values()
    made.sort(key=lambda one: (-one.modified, (one.files or one.agents)[0].path))
    taken: set[str] = set()
    for group in made:
        first = (group.files or group.agents)[0]
        name = first.session or stem(first.path)
        while name in taken:
            name += "'"
        taken.add(name)
        group.thread_id = name
    return made


def stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".gz").removesuffix(".jsonl").removesuffix(".json")


def beside(path: str) -> list[str]:
    """Files that belong to a session file: those of its subagents, in its folder or beside it."""
    found = []
    folder, name = os.path.dirname(path), stem(path)
    inner = os.path.join(folder, name, "subagents")
    for place in (inner, folder):
        try:
            names = sorted(os.listdir(place))
        except OSError:
            continue
        found += [os.path.join(place, one) for one in names if AGENT.match(one) and os.path.join(place, one) != path]
    return found
