"""Encrypted rows of LangGraph's `EncryptedSerializer`: opened for reading with a key that a person named, closed again in forks.

AES in EAX mode as `from_pycryptodome_aes` writes it: the serializer tag ends in `+aes`, the blob is nonce (16 bytes), MAC (16)
and ciphertext. A row that the key does not open stays as it is stored, and is counted.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from msgspec.structs import replace

from studio.errors import OpenError, UsageError
from studio.model import Address, Problem, RawCheckpoint, Sealed, WriteRow

SUFFIX = "+aes"
ENV = "LANGGRAPH_AES_KEY"
"""Where LangGraph itself looks for the key."""
_LENGTHS = (16, 24, 32)
_NONCE, _HEAD = 16, 32


def is_sealed(tag: str | None) -> bool:
    """Whether a serializer tag is that of an encrypted row, whatever the cipher."""
    return tag is not None and "+" in tag


class AesKey:
    """A key in memory. It has no printed form, and nothing of ours stores it."""

    __slots__ = ("_aes", "_key")

    def __init__(self, key: bytes) -> None:
        """Raises UsageError for a key of a wrong length, OpenError where pycryptodome is missing."""
        if len(key) not in _LENGTHS:
            raise UsageError(f"an AES key has 16, 24 or 32 bytes, this one has {len(key)}", "", "bad-aes-key")
        self._aes = _aes()
        self._key = key

    @classmethod
    def from_environment(cls, name: str) -> AesKey:
        """The key that an environment variable holds. Raises UsageError where it holds none, as well."""
        text = os.environ.get(name)
        if not text:
            state = "is empty" if text is not None else "is not set"
            hint = "name the environment variable that holds the key; the key itself is no argument"
            raise UsageError(f"--aes-key-env: there is no key: the variable that it names {state}", hint, "no-aes-key")
        key = os.fsencode(text)
        if len(key) not in _LENGTHS:
            message = f"--aes-key-env: the variable that it names holds {len(key)} bytes"
            raise UsageError(message, "an AES key has 16, 24 or 32 bytes", "bad-aes-key")
        return cls(key)

    def __repr__(self) -> str:
        return "AesKey(…)"

    def __reduce__(self) -> Any:
        raise TypeError("a key is not stored")

    def environment(self) -> dict[str, str]:
        """The variable through which LangGraph in a child process gets it."""
        return {ENV: os.fsdecode(self._key)}

    def open(self, blob: bytes) -> bytes | None:
        """The plain bytes; None where the MAC says that they were not closed with this key, or are damaged."""
        if len(blob) < _HEAD:
            return None
        try:
            cipher = self._aes.new(self._key, self._aes.MODE_EAX, nonce=blob[:_NONCE])
            plain: bytes = cipher.decrypt_and_verify(blob[_HEAD:], blob[_NONCE:_HEAD])
        except ValueError:
            return None
        return plain

    def close(self, plain: bytes) -> bytes:
        """A blob as LangGraph stores it, under a fresh nonce."""
        cipher = self._aes.new(self._key, self._aes.MODE_EAX)
        text, mac = cipher.encrypt_and_digest(plain)
        return bytes(cipher.nonce + mac + text)


def _aes() -> Any:
    try:
        from Crypto.Cipher import AES
    except ImportError as error:
        message = "encrypted rows cannot be opened: that needs pycryptodome, which is not installed"
        raise OpenError(message, 'pip install "checkpoint-studio[crypto]"', "no-crypto") from error
    return AES


class Unsealer:
    """Opens the rows of one location. Thread-safe."""

    def __init__(self, key: AesKey, location: str) -> None:
        self._key = key
        self._location = location
        self._lock = threading.Lock()
        self._refused: set[Address | tuple[str, str, str, int]] = set()
        self._opened = False

    def checkpoint(self, raw: RawCheckpoint) -> RawCheckpoint:
        if raw.pending_sends:
            raw = replace(raw, pending_sends=tuple(self.write(row) for row in raw.pending_sends))
        opened = self._open(raw.tag, raw.blob, raw.header.address)
        return raw if opened is None else replace(raw, tag=opened[0], blob=opened[1], sealed=opened[2])

    def write(self, row: WriteRow) -> WriteRow:
        if row.value is None:
            return row
        opened = self._open(row.tag, row.value, (row.checkpoint_ns, row.checkpoint_id, row.task_id, row.idx))
        return row if opened is None else replace(row, tag=opened[0], value=opened[1], sealed=opened[2])

    def _open(self, tag: str | None, blob: bytes, where: Address | tuple[str, str, str, int]) -> tuple[str, bytes, Sealed] | None:
        if tag is None or not tag.endswith(SUFFIX):
            return None
        plain = self._key.open(blob)
        with self._lock:
            if plain is None:
                self._refused.add(where)
                return None
            self._opened = True
            self._refused.discard(where)
        return tag[: -len(SUFFIX)], plain, Sealed(tag, blob, self._key.close)

    def refused(self, *addresses: Address) -> bool:
        """Whether the key did not open one of these checkpoints, or a write under it; given none, any row."""
        with self._lock:
            if not addresses:
                return bool(self._refused)
            keys = {(one.checkpoint_ns, one.checkpoint_id) for one in addresses}
            return any(one in addresses if isinstance(one, Address) else one[:2] in keys for one in self._refused)

    def problems(self) -> list[Problem]:
        with self._lock:
            number, some = len(self._refused), self._opened
        if not number:
            return []
        rows = f"{number} encrypted {'row does' if number == 1 else 'rows do'} not open with this key"
        why = "damaged, or of another key; the others do" if some else "it is another key"
        return [Problem("wrong-aes-key", self._location, f"{rows}: {why}")]
