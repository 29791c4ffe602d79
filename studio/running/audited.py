"""The audit of what LangGraph itself writes into a user's own file, where a run or an update was asked for in place."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from studio.forks.writing import check_triggers
from studio.model import Address
from studio.requests import ForkRequest, RunRequest

if TYPE_CHECKING:
    from studio.session import Session


class Audited:
    """One entry of the audit, from before the first write until the writer is done."""

    def __init__(self, session: Session, act: str, origin: Address) -> None:
        """Raises StudioError when the file must not be written: it has triggers, or no entry can be made."""
        from studio.notes import Notes  # brings sqlite-utils, which only writing to a user's own file needs here

        check_triggers(session.location)
        self._session = session
        self._notes = Notes(session.scratch.notes_path)
        self._before = self._stored(origin.thread_id)
        self._entry = self._notes.audit_begin(session.location, act, origin, [])

    def done(self, thread_id: str, copies: Collection[Address] = ()) -> str | None:
        """Complete the entry with the checkpoints that are new in this thread, without `copies`, whose fork has its own entry.

        The reason where that fails: what was written stays written, and its writer must hear how it ended.
        """
        try:
            added = [at for at in self._stored(thread_id) if at not in self._before and at not in copies]
            self._notes.audit_done(self._entry, added)
        except Exception as error:
            return f"The audit of this write could not be completed. {error}"
        return None

    def _stored(self, thread_id: str) -> dict[Address, None]:
        return dict.fromkeys(header.address for _, header in self._session.overlay.base.checkpoints(thread_id))


def begin_audit(session: Session, act: str, request: RunRequest | ForkRequest) -> Audited | None:
    """The entry of a request that writes to the user's own file; None when it writes to a scratch file."""
    if not request.in_place or session.scratch.is_store:
        return None
    return Audited(session, act, request.address)
