"""The part of a session that keeps what the studio itself stored of an opened location: forks and what they were made from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from studio.acting import Acting
from studio.errors import OpenError
from studio.forest import Forest
from studio.model import Address, Problem
from studio.spots import Spots
from studio.stores import open_store
from studio.stores.view import part_of

if TYPE_CHECKING:
    from studio.forks.scratch import Scratch, Written
    from studio.forks.sessions.kept import Kept
    from studio.forks.sessions.place import Sheet
    from studio.requests import GraphSpec


class Recorded(Acting):
    """The scratch file and the notes of one location, laid over what was opened. One that cannot be read hides nothing else."""

    location: str
    forest: Forest
    spots: Spots

    def __init__(self, graph: GraphSpec | None, scratch: str | None) -> None:
        super().__init__(graph)
        self._given_scratch = scratch
        self._scratch: Scratch | None = None
        self._unread: dict[str, Problem] = {}
        """Path -> what is said of a file of ours that cannot be read."""
        self._kept: Kept | None = None
        """Forks of sessions, where the location holds transcripts."""

    @property
    def scratch_path(self) -> str:
        return self.scratch.path

    @property
    def scratch_is_temporary(self) -> bool:
        return self.scratch.temporary

    @property
    def scratch(self) -> Scratch:
        if self._scratch is not None:
            return self._scratch  # without the lock: who asks in the middle of a look would wait for one who waits for that look
        with self._lock:
            if self._scratch is None:
                from studio.forks.scratch import Scratch

                self._scratch = Scratch(self.location, self._given_scratch, part_of(self.store))
            return self._scratch

    def _open_scratch(self) -> None:
        """Lay the scratch file over the base once it exists."""
        if self.store.kind == "transcript":
            self._open_kept()
            return
        scratch = self.scratch
        if self.overlay.scratch is None and scratch.exists() and not scratch.is_store:
            try:
                self.overlay.set_scratch(open_store(scratch.path))
                self._unread.pop(scratch.path, None)
            except OpenError as error:  # the opened file is still there to be read
                self._note_unread(scratch.path, error)
        self._read_origins()

    def _open_kept(self) -> None:
        if self._kept is None:
            from studio.forks.sessions.kept import Kept
            from studio.stores.transcripts.store import TranscriptStore

            assert isinstance(self.store, TranscriptStore)
            self._kept = Kept(self.store)
        self._kept.look()
        self._read_origins()

    def kept_fork(self, address: Address) -> Sheet | None:
        """What is noted of a fork of an agent's session that ends at this turn: how its program goes on from it."""
        return self._kept.fork_at(address) if self._kept is not None else None

    def _note_unread(self, path: str, error: OpenError) -> None:
        self._unread[path] = Problem("forks-unreadable", path, f"forks or runs that were kept cannot be read: {error.message}")

    def _read_origins(self) -> None:
        origins, promoted = self._origins(), self._promoted()
        self.forest.set_origins(origins)
        self.forest.set_promoted(promoted)
        self.spots.set_forks({fork: origin for fork, (origin, _) in origins.items()}, promoted)
        self.forest.set_updates(self.updates())

    def _origins(self) -> dict[Address, tuple[Address, str]]:
        """Fork -> (origin, hash of its blob), as recorded now."""
        if self._kept is not None:
            return self._kept.origins()
        scratch = self.scratch
        try:
            found = scratch.origins() if scratch.exists() or os.path.exists(scratch.notes_path) else {}
        except OpenError as error:
            if scratch.path not in self._unread:  # said already
                self._note_unread(scratch.notes_path, error)
            return {}
        self._unread.pop(scratch.notes_path, None)
        return found

    def updates(self) -> dict[Address, Written]:
        """Checkpoint -> as which nodes it was written by hand, as recorded now: LangGraph does not store it."""
        scratch = self.scratch
        try:
            return scratch.updates() if scratch.exists() or os.path.exists(scratch.notes_path) else {}
        except OpenError:  # said when the origins were read
            return {}

    def _promoted(self) -> frozenset[Address]:
        try:
            return self.scratch.promoted() if self.scratch.exists() else frozenset()
        except OpenError:  # said when the origins were read
            return frozenset()
