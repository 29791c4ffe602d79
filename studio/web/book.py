"""The opened files of one server and the runs that its pages started."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator, Sequence
from urllib.parse import quote, unquote

from studio.errors import RefError
from studio.model import Address
from studio.requests import GraphSpec
from studio.runs import Run
from studio.session import Session
from studio.stores.view import View

_VIEW = "~"
"""Parts a file's slug from the name of a view of it."""
_WITHOUT_WAL = "without-wal"


class Book:
    """Slug -> session, in the order they were given. A slug is part of every URL, so it stays the same while a file is open."""

    def __init__(self, sessions: Sequence[Session]) -> None:
        self._files: dict[str, Session] = {}
        self._views: dict[str, Session] = {}
        """Other parts of these files that somebody looked at; each has a slug of its own, so that it is part of every URL."""
        self._started: dict[str, Address] = {}
        self._graphs: dict[str, GraphSpec] = {}
        self._plans: set[str] = set()
        self._lock = threading.Lock()
        for session in sessions:
            self._files[self._slug(session)] = session

    def _slug(self, session: Session) -> str:
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", os.path.basename(session.location.rstrip(os.sep))).strip(".-") or "file"
        slug, number = name, 1
        while slug in self._files:
            number += 1
            slug = f"{name}-{number}"
        return slug

    def __iter__(self) -> Iterator[tuple[str, Session]]:
        return iter(self._files.items())

    def __len__(self) -> int:
        return len(self._files)

    def session(self, slug: str) -> Session:
        found = self._files.get(slug) or self._views.get(slug)
        return found if found is not None else self._open_view(slug)

    def slug_of(self, slug: str, view: View) -> str:
        """The slug of a view of the file that `slug` is one of."""
        base = slug.partition(_VIEW)[0]
        if base in self._files and self._files[base].view == view:
            return base
        name = quote(view.tables or "", safe="").replace(_VIEW, f"%{ord(_VIEW):X}")
        return f"{base}{_VIEW}{name}" + (f"{_VIEW}{_WITHOUT_WAL}" if view.without_wal else "")

    def _open_view(self, slug: str) -> Session:
        base, mark, rest = slug.partition(_VIEW)
        file = self._files.get(base)
        if file is None or not mark:
            raise RefError(f"no file {slug!r} is open here", "the start page lists the files", "no-such-file")
        name, _, wal = rest.partition(_VIEW)
        opened = file.beside(View(unquote(name) or None, wal == _WITHOUT_WAL))
        with self._lock:
            known = (file, *self._views.values())
            same = next((one for one in known if (one.location, one.view) == (opened.location, opened.view)), None)
            found = self._views[slug] = same or opened
        if found is not opened:
            opened.close()
        return found

    def close(self) -> None:
        """Close what was opened here; the files themselves belong to the caller."""
        with self._lock:
            views, self._views = {id(one): one for one in self._views.values()}, {}
        for session in views.values():
            if session not in self._files.values():
                session.close()

    def first(self) -> str | None:
        return next(iter(self._files), None)

    def graph(self, slug: str) -> GraphSpec:
        """The graph and interpreter that a person chose for this file."""
        return self._graphs.get(slug, GraphSpec())

    def choose_graph(self, slug: str, spec: GraphSpec) -> None:
        with self._lock:
            self._graphs[slug] = spec

    def plans_allowed(self, slug: str) -> bool:
        """Whether a person asked for a plan of this file before: its graph may then be loaded for the next one, too."""
        return slug in self._plans

    def allow_plans(self, slug: str) -> None:
        with self._lock:
            self._plans.add(slug)

    def note_run(self, run: Run, start: Address) -> None:
        """Remember where a run was started, so that its panel shows there."""
        with self._lock:
            self._started[run.id] = start

    def started_at(self, run: Run) -> Address | None:
        with self._lock:
            return self._started.get(run.id)

    def run(self, slug: str, run_id: str) -> Run:
        for run in self.session(slug).runs():
            if run.id == run_id:
                return run
        raise RefError("this run is not known any more", "it was started before this server was", "no-such-run")

    def run_at(self, session: Session, address: Address) -> Run | None:
        """The run to show at a checkpoint: the last one of its thread that goes on, or that started or ended here."""
        for run in reversed(list(session.runs())):
            start = self.started_at(run)
            if start is None or start.thread_id != address.thread_id:
                continue
            end = (run.end or {}).get("head")
            ended_here = isinstance(end, dict) and end.get("checkpoint_id") == address.checkpoint_id or end == address
            if run.status == "running" or start == address or ended_here:
                return run
        return None
