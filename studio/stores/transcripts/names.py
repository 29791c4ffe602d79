"""Names that a decoded value may be asked for: a record's type may be anything, and one that is no text is none of them."""

from __future__ import annotations

from typing import Any


class Names(frozenset[str]):
    """A set of which any value may be asked whether it is in it, lists and maps too."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and frozenset.__contains__(self, value)


def word(value: Any, otherwise: str = "") -> str:
    """A text as it is; anything else is `otherwise`."""
    return value if isinstance(value, str) else otherwise
