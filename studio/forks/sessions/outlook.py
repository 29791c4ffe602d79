"""What a fork of a session leaves as it is: files, calls with effects outside, and what is at hand to go back by."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

from studio.forks.sessions import versions
from studio.forks.sessions.versions import Known
from studio.render.shell import word
from studio.stores.transcripts.transcript import Transcript
from studio.stores.transcripts.turns import Turn, Woven

MOST = 2000
_INSIDE = frozenset(
    [
        "Read", "Glob", "Grep", "LS", "NotebookRead", "TodoWrite", "TodoRead", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet",
        "BashOutput", "ToolSearch", "ExitPlanMode", "EnterPlanMode", "AskUserQuestion", "Skill", "update_plan", "view_image",
        "read_file", "list_dir", "grep_files",
    ]
)  # fmt: skip
"""Tools that change nothing outside of the session."""


class Effect(Struct, frozen=True):
    """A call after the fork's point that may have changed something outside."""

    call: str
    tool: str
    status: Literal["answered", "failed", "unknown"]
    turn: str
    what: str
    """The command, path or address that it was given."""


class Touched(Struct, frozen=True):
    """A file that was changed after the fork's point."""

    path: str
    edits: int
    known: Known
    """What is known of it as it was at the point."""
    source: str


class Outlook(Struct, frozen=True):
    cwd: str | None
    git_branch: str | None
    worktree: str | None
    """A command that lays out the recorded branch as it was then, beside the working folder."""
    files: tuple[Touched, ...]
    effects: tuple[Effect, ...]
    more: int
    """Calls beyond those that are listed."""


def after(one: Transcript, turn: Turn) -> Outlook:
    """What was done behind a turn, on all ways that go on from it."""
    woven = one.woven
    moment = versions.at(one, turn)
    held = {version.path: version for version in moment.files}
    effects: list[Effect] = []
    touched: dict[str, int] = {}
    later = _below(woven, turn)
    for step in later:
        said = one.folded().said(step) if step.calls else None
        args = (
            {call["id"]: call.get("args") for message in said.messages for call in message.get("tool_calls") or ()}
            if said
            else {}
        )
        for call, tool in step.calls:
            if tool in _INSIDE:
                continue
            failed = step.results.get(call)
            status: Literal["answered", "failed", "unknown"] = "unknown" if failed is None else "failed" if failed else "answered"
            effects.append(Effect(call, tool, status, step.id, _what(args.get(call))))
        for what, _, detail in said.effects if said is not None else ():
            if what == "file" and detail[1]["state"] != "read":
                touched[detail[0]] = touched.get(detail[0], 0) + 1
    files = []
    for path, edits in touched.items():
        known = held.get(versions.absolute(path, moment.cwd))
        told = (known.known, known.source) if known is not None else _before(one, later, path)
        files.append(Touched(path, edits, *told))
    return Outlook(
        moment.cwd, moment.git_branch, _worktree(moment), tuple(files), tuple(effects[:MOST]), max(0, len(effects) - MOST)
    )


def _below(woven: Woven, turn: Turn) -> list[Turn]:
    """The turns behind one, and those of the subagents that they called."""
    lanes: dict[str, list[str]] = {}
    for lane in woven.lanes.values():
        if lane.turn is not None:
            lanes.setdefault(lane.turn, []).append(lane.ns)
    by_ns: dict[str, list[Turn]] = {}
    for one in woven.turns.values():
        by_ns.setdefault(one.ns, []).append(one)
    found: list[Turn] = []
    seen: set[str] = {turn.id}
    waiting = list(reversed(turn.children))
    while waiting:
        ident = waiting.pop()
        if ident in seen or ident in woven.ours:
            continue
        seen.add(ident)
        step = woven.turns[ident]
        found.append(step)
        waiting += [inner.id for ns in lanes.get(ident, ()) for inner in by_ns.get(ns, ())]
        waiting += reversed(step.children)
    return found


def _before(one: Transcript, later: list[Turn], path: str) -> tuple[Known, str]:
    """What the first change of a file tells of it as it was before: an edit may bring the whole file."""
    for step in later:
        for at in step.records:
            record = one.woven.records[at]
            if not record.results:
                continue
            document = one.folded().document(record)
            result = document.get("toolUseResult") if isinstance(document, dict) else None
            if isinstance(result, dict) and result.get("filePath") == path:
                if isinstance(result.get("originalFile"), str):
                    return "content", "the next edit tells the file as it was"
                if result.get("type") == "create":
                    return "absent", "it was created later"
                return "patch", "the next edit's patch"
    return "unknown", "nothing tells it"


def _what(args: Any) -> str:
    if isinstance(args, str):
        return args[:400]
    given = args if isinstance(args, dict) else {}
    for name in ("command", "cmd", "file_path", "notebook_path", "path", "url", "query", "description", "input"):
        value = given.get(name)
        if isinstance(value, str):
            return value[:400]
        if isinstance(value, list):
            return " ".join(map(str, value))[:400]
    return ""


def _worktree(moment: versions.Moment) -> str | None:
    """The branch as it was at the time, in a folder beside the working folder."""
    if moment.cwd is None or moment.git_branch is None or moment.git_branch.startswith("-") or not moment.cwd.startswith("/"):
        return None
    here, branch = word(moment.cwd), word(moment.git_branch)
    then = f'"$(git -C {here} rev-list -1 --before={word(moment.at)} {branch})"' if moment.at is not None else branch
    return f"git -C {here} worktree add --detach {word(moment.cwd.rstrip('/') + '-fork')} {then}"
