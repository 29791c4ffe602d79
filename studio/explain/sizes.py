"""How many bytes each channel takes in a stored checkpoint."""

from __future__ import annotations

from msgspec import Struct, field

from studio.codec.shared import packed_size
from studio.errors import PatchError
from studio.explain.blob import Blob
from studio.explain.channels import is_internal
from studio.model import Value
from studio.value import Tagged, encode


class Sizes(Struct, frozen=True):
    """Bytes of one checkpoint as stored. `channels` and `scheduling` hold values without their names; a delta channel without a
    value in this row is not in them. `rest`: names, versions, ids and metadata. All of them together are `total`."""

    total: int
    channels: dict[str, int] = field(default_factory=dict)
    scheduling: dict[str, int] = field(default_factory=dict)
    is_readable: bool = True

    @property
    def rest(self) -> int:
        return max(0, self.total - sum(self.channels.values()) - sum(self.scheduling.values()))


def sizes_of(blob: Blob, node_names: frozenset[str] = frozenset()) -> Sizes:
    """The sizes of a checkpoint's channels; `node_names` only where the format names channels after nodes."""
    total = blob.raw.header.size_bytes
    if not blob.readable:
        return Sizes(total, is_readable=False)
    found = {name: stored_size(blob.raw.tag, value) for name, value in blob.values.items()}
    return Sizes(
        total,
        {name: size for name, size in found.items() if not is_internal(name, node_names)},
        {name: size for name, size in found.items() if is_internal(name, node_names)},
    )


def stored_size(tag: str | None, value: Value) -> int:
    """Bytes of a value inside a record of this tag. An object that was stored by its type is measured without being opened."""
    if tag == "msgpack" and isinstance(value, Tagged) and value.raw is not None:
        size = len(value.raw)
        head = 2 if size in (1, 2, 4, 8, 16) else 3 if size < 1 << 8 else 4 if size < 1 << 16 else 6
        return size + head
    try:
        return packed_size(value) if tag == "msgpack" and type(value) in (dict, list, str) else len(encode(tag, value))
    except PatchError:  # a value that this record cannot hold: it came from somewhere else
        return 0
