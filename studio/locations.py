"""A folder as a location: which of its files can be opened, and which one is meant."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from studio.errors import OpenError, StudioError, UsageError
from studio.model import Problem
from studio.stores import open_store
from studio.stores.folder import SESSION_NAMES, is_loss, listing, problem_of
from studio.stores.transcripts import holds_transcripts
from studio.stores.view import PLAIN, View


class Inside(Struct, frozen=True):
    """What a location holds."""

    files: list[str]
    problems: tuple[Problem, ...] = ()
    """Of a folder: what looks like a database and cannot be opened, each with its path and the reason."""

    def only(self, path: str) -> Inside:
        """One of the files, with the same word of what is lost beside it."""
        return Inside([path], self.problems)


def files_of(location: str) -> Inside:
    """The location itself, or the checkpoint databases directly in a folder, with the transcripts beside them, by name.

    Raises OpenError for a folder that cannot be read or holds none; what else is wrong with a file, opening it says.
    """
    if not os.path.isdir(location):
        return Inside([location])
    inside = listing(os.path.abspath(location))
    found, problems = [], []
    for path in inside.to_try:
        try:
            open_store(path).close()
            found.append(path)
        except OpenError as error:
            if is_loss(path, error):
                problems.append(problem_of(path, error))
    if not found:
        if inside.to_try or not holds_transcripts(location):
            open_store(location).close()  # says in words why there is none
        found = [location]  # a folder of transcripts is one location
    return Inside(found, (*problems, *inside.problems))


def one_file(location: str, name: str | None = None, thread_id: str | None = None, view: View = PLAIN) -> Inside:
    """The one file that is meant: named by `name` (`--file`), the only one, or the only one that holds the thread.

    Raises UsageError with the choices when several remain.
    """
    inside = files_of(location)
    files = inside.files
    if name is not None:
        files = [path for path in files if name in (path, os.path.basename(path))]
        if not files:
            raise _no_such_file(location, name, inside.problems)
        inside = Inside(files)  # who names a file did not ask for the others
    if len(files) > 1 and thread_id is not None:
        files = [path for path in files if _holds(path, thread_id, view)] or files
    if len(files) > 1:
        names = tuple(os.path.basename(path) for path in files)
        raise UsageError(f"{location} holds {len(files)} files: choose one with --file", "", "choose-file", candidates=names)
    return inside.only(files[0])


def _no_such_file(location: str, name: str, problems: tuple[Problem, ...]) -> StudioError:
    for problem in problems:
        if name in (problem.where, os.path.basename(problem.where)):
            return OpenError(problem.message, "`studio ls` lists the files that can be opened", problem.kind)
    return UsageError(f"no file {name!r} in {location}", "`studio ls` lists the files", "no-such-file")


def _holds(path: str, thread_id: str, view: View) -> bool:
    try:
        store = open_store(path, view)
    except OpenError:  # it has no tables of the name that was asked for
        return False
    try:
        return bool(store.checkpoints(thread_id))
    finally:
        store.close()


MOST_PLACES = 200


class Place(Struct, frozen=True):
    """Something on this machine that can be opened, as a look at names and sizes shows it."""

    kind: str
    path: str
    modified: float
    size_bytes: int
    note: str = ""


def on_this_machine(folder: str) -> list[Place]:
    """Databases and transcripts in a folder, projects of Claude Code, sessions of Codex: newest first, no file read whole."""
    found = _databases(folder)
    from studio.stores.transcripts.homes import claude_home, codex_home

    claude = Path(claude_home()) / "projects"
    for project in _listed(claude):
        sessions = [one for one in _listed(str(project)) if one.suffix == ".jsonl" and not one.name.startswith("agent-")]
        found += _place("Claude Code project", project, sessions, f"{len(sessions)} sessions")
    codex = Path(codex_home())
    rollouts = [path for name in ("sessions", "archived_sessions") for path in (codex / name).rglob("rollout-*.jsonl*")]
    for path in rollouts[: 10 * MOST_PLACES]:
        found += _place("Codex session", path, [path], "")
    found.sort(key=lambda one: (-one.modified, one.path))
    return found[:MOST_PLACES]


def _databases(folder: str) -> list[Place]:
    from studio.stores.transcripts import is_transcript

    try:
        names = listing(folder).databases
    except OpenError:
        return []
    names = [name for name in names if not name.endswith(SESSION_NAMES)]
    found = [place for path in names for place in _place("database", Path(path), [Path(path)], "")]
    for path in _listed(folder):
        if path.name.endswith(SESSION_NAMES) and is_transcript(str(path)):
            found += _place("transcript", path, [path], "")
    return found


def _listed(folder: str | Path) -> list[Path]:
    try:
        return sorted(Path(folder).iterdir())
    except OSError:
        return []


def _place(kind: str, path: Path, files: list[Path], note: str) -> list[Place]:
    stats = []
    for file in files:
        try:
            stats.append(file.stat())
        except OSError:
            continue
    if not stats:
        return []
    return [Place(kind, str(path), max(one.st_mtime for one in stats), sum(one.st_size for one in stats), note)]
