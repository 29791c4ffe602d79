"""What a search passed over because it could not be read: that nothing was found there says nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import msgspec

from studio.model import Problem, RawCheckpoint
from studio.render import labels
from studio.value import decode

KIND = "not-searched"
MASKED = "masked values are not searched; --show-secrets searches them too"

_skip = msgspec.msgpack.Decoder(msgspec.Raw)


class Unsearched:
    """Counts, thread by thread, the checkpoints and values that a search could not look into."""

    def __init__(self) -> None:
        self._closed: dict[str, Counter[str]] = {}
        self._values: Counter[str] = Counter()

    def checkpoint(self, raw: RawCheckpoint) -> bool:
        """Note a row whose state is closed; whether it is."""
        why = closed(raw)
        if why:
            self._closed.setdefault(raw.header.thread_id, Counter())[why] += 1
        return bool(why)

    def value(self, thread_id: str) -> None:
        """Note a single value that nobody may open, inside a state that can be read."""
        self._values[thread_id] += 1

    def problems(self) -> list[Problem]:
        found = []
        for thread in sorted({*self._closed, *self._values}):
            parts = [
                f"{labels.plural(number, 'checkpoint')} ({why})" for why, number in sorted(self._closed.get(thread, {}).items())
            ]
            if number := self._values[thread]:
                parts.append(labels.plural(number, "value that cannot be opened", "values that cannot be opened"))
            found.append(Problem(KIND, f"thread {thread}", f"not searched, for it cannot be read: {', '.join(parts)}"))
        return found

    def sentence(self) -> str:
        """All of it in one line for a list of hits; empty where everything was searched."""
        checkpoints = sum(sum(one.values()) for one in self._closed.values())
        reasons = sorted({why for one in self._closed.values() for why in one})
        parts = [f"{labels.plural(checkpoints, 'checkpoint')} ({', '.join(reasons)})"] if checkpoints else []
        if values := self._values.total():
            parts.append(labels.plural(values, "value that cannot be opened", "values that cannot be opened"))
        return f"Not searched, for it cannot be read: {' and '.join(parts)}." if parts else ""


def closed(raw: RawCheckpoint) -> str:
    """In a word why nothing of a row's state can be read; empty where it can. The state is not decoded, only passed over."""
    tag = raw.tag or ""
    if "+" in tag:
        return "encrypted"
    if tag == "pickle":
        return "pickled"
    if tag == "msgpack":
        try:
            _skip.decode(raw.blob)
        except msgspec.DecodeError:
            return "" if isinstance(decode(tag, raw.blob), Mapping) else "damaged"
        except RecursionError:  # deeper than this pass goes, which says nothing of the decoder
            pass
    return ""
