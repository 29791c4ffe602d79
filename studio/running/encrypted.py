"""Runs on encrypted rows: the child stores what it makes as its origin is stored, with the key in its environment alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from studio.model import Address

if TYPE_CHECKING:
    from studio.session import Session


def key_environment(session: Session, address: Address) -> Mapping[str, str]:
    """What a child that goes on from this checkpoint needs in its environment; {} where the row is in clear."""
    sealed = session.raw(address).sealed
    return session.aes_key.environment() if session.aes_key is not None and sealed is not None else {}
