"""Stored things that have no plain Python form: maps with other keys than text, and bytes that nobody may open."""

from __future__ import annotations

from typing import Any, Final

UNREAD = "… (not read to its end)"
"""Stands behind the names of a pickle whose opcodes were not all read."""
KEY_HINT = "encrypted (AES): it needs its key, --aes-key-env NAME"
"""What stands in the place of a value that nobody can read without its key: none was given, or another one."""


class Missing:
    """The type of `MISSING`: no value at all, which is not the stored value `None`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()


class MapValue:
    """A map whose keys are not all text (or not all different): `pairs` in stored order."""

    __slots__ = ("pairs",)
    pairs: tuple[tuple[Any, Any], ...]

    def __init__(self, pairs: Any) -> None:
        object.__setattr__(self, "pairs", tuple((key, value) for key, value in pairs))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("a stored value is not changed in place")

    def __len__(self) -> int:
        return len(self.pairs)

    def __repr__(self) -> str:
        return f"MapValue({len(self.pairs)} pairs)"


class Opaque:
    """Bytes that stay closed: `reason` is `pickle`, `encrypted`, `damaged` or `unsupported`."""

    __slots__ = ("_names", "raw", "reason")
    reason: str
    raw: bytes

    def __init__(self, reason: str, raw: bytes) -> None:
        self.reason = reason
        self.raw = raw
        self._names: tuple[str, ...] | None = None

    @property
    def size(self) -> int:
        return len(self.raw)

    @property
    def sha256(self) -> str:
        import hashlib  # loads a large library: most looks meet nothing opaque

        return hashlib.sha256(self.raw).hexdigest()

    @property
    def names(self) -> tuple[str, ...]:
        """What loading a pickle would import, `module.name`, read from its opcodes without loading it.

        The last one is `UNREAD` where they were not read to their end.
        """
        if self._names is None:
            found: tuple[str, ...] = ()
            whole = True
            if self.reason == "pickle":
                from studio.codec.pickled import imported_names  # few files hold one

                found, whole = imported_names(self.raw)
            self._names = found if whole else (*found, UNREAD)
        return self._names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Opaque) and self.reason == other.reason and self.raw == other.raw

    def __hash__(self) -> int:
        return hash((self.reason, self.raw))

    def __repr__(self) -> str:
        return f"Opaque({self.reason!r}, {self.size} bytes)"


class Stored:
    """Mixin for a root value whose stored form is not the encoder's own: `stored` is given back while it is unchanged."""

    stored: bytes


class StoredDict(dict[str, Any], Stored):
    pass


class StoredList(list[Any], Stored):
    pass


class StoredStr(str, Stored):
    pass


class StoredInt(int, Stored):
    pass


class StoredFloat(float, Stored):
    pass


class StoredBytes(bytes, Stored):
    pass


class StoredMap(MapValue, Stored):
    pass


STORED: dict[type, Any] = {
    dict: StoredDict,
    list: StoredList,
    str: StoredStr,
    int: StoredInt,
    float: StoredFloat,
    bytes: StoredBytes,
    MapValue: lambda value: StoredMap(value.pairs),
}
"""How to make the remembering kind of a value; `studio.codec.objects` adds `Tagged`."""


def with_stored_form(value: Any, blob: bytes) -> Any:
    """The same value, remembering the bytes it was read from; `Opaque` for the few that have no form but one."""
    make = STORED.get(type(value))
    if make is None:
        return Opaque("damaged", blob)
    kept = make(value)
    object.__setattr__(kept, "stored", blob)
    return kept
