"""Forks of sessions that were made, for whoever shows the session that they were made from."""

from __future__ import annotations

import os

from studio.forks.scratch import our_folders
from studio.forks.sessions import place
from studio.forks.sessions.place import FOLDER, Sheet
from studio.model import Address
from studio.stores.transcripts.adopted import Fork
from studio.stores.transcripts.store import TranscriptStore

_Stamp = tuple[tuple[str, int], ...]


class Kept:
    """The forks that lie in our folder for one store; read again when something was added or removed."""

    def __init__(self, store: TranscriptStore) -> None:
        self.store = store
        self._stamp: _Stamp | None = None
        self._sheets: list[Sheet] = []

    def look(self) -> list[Sheet]:
        """Tell the store of its forks; returns what is noted of them."""
        stamp = _stamp()
        if stamp != self._stamp:
            here = os.path.realpath(self.store.location)
            inside = here.rstrip(os.sep) + os.sep
            found = place.sheets() if stamp else []
            self._sheets = [one for one in found if one.source == here or one.source.startswith(inside)]
            self._stamp = stamp
            self.store.set_forks([_told(one) for one in self._sheets])
        return self._sheets

    def fork_at(self, address: Address) -> Sheet | None:
        """What is noted of the fork that ends at a turn."""
        mine = (one for one in self.look() if one.thread_id == address.thread_id)
        return next((one for one in mine if one.last == address.checkpoint_id), None)

    def origins(self) -> dict[Address, tuple[Address, str]]:
        """The first own turn of each fork -> (the turn in whose place it stands, a hash of that one)."""
        return {
            Address(one.thread_id, "", one.first): (Address(one.thread_id, "", one.replaces), one.sha256_of_replaced)
            for one in self.look()
            if one.first is not None and one.replaces is not None
        }


def _told(sheet: Sheet) -> Fork:
    return Fork(
        sheet.path, sheet.source, sheet.session, tuple(sheet.records), tuple(sheet.copies), sheet.created_at, sheet.own_at
    )


def _stamp() -> _Stamp:
    """What the folders of forks hold, by the times at which they changed."""
    found = []
    for folder in our_folders():
        if folder.is_dir():
            for inner in folder.glob("*" + FOLDER):
                try:
                    found.append((str(inner), inner.stat().st_mtime_ns))
                except OSError:
                    continue
    return tuple(sorted(found))
