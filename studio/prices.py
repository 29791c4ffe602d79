"""A table of prices that the user gives: what a token of a model costs, for estimates where a program recorded no cost.

The studio knows no price of its own. A table is a small TOML or JSON file: the name of a model, or a pattern with `*`, and its US
dollars for a million tokens of each kind.

    ["claude-sonnet-4*"]
    input = 3.0
    output = 15.0
    cache_read = 0.3
    cache_creation = 3.75
"""

from __future__ import annotations

import json
import os
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from studio.errors import UsageError

LARGEST = 1 << 20
MILLION = 1_000_000
MOST = 1_000_000_000
"""Dollars: nobody asks for more."""
KINDS = ("input", "output", "cache_read", "cache_creation")
"""In the order in which a transcript counts them."""
NEEDED = ("input", "output")
EXAMPLE = '["claude-sonnet-4*"], then input = 3.0, output = 15.0, … in US dollars for a million tokens'


class Price(Struct, frozen=True):
    """US dollars for a million tokens of each kind."""

    input: float
    output: float
    cache_read: float
    cache_creation: float

    def of(self, counts: tuple[int, int, int, int]) -> float:
        each = (self.input, self.output, self.cache_read, self.cache_creation)
        return sum(count * price for count, price in zip(counts, each, strict=True)) / MILLION


class Prices:
    """A table under the name of its file, which each estimate is marked with."""

    def __init__(self, name: str, entries: dict[str, Price], path: str = "") -> None:
        self.name, self.path = name, path
        self._exact = {pattern.lower(): price for pattern, price in entries.items()}
        self._patterns = sorted((one for one in self._exact if "*" in one or "?" in one), key=len, reverse=True)
        self._found: dict[str, Price | None] = {}

    def of(self, model: str) -> Price | None:
        """By its whole name, else by the longest pattern that fits it."""
        if model not in self._found:
            name = model.lower()
            fitting = next((one for one in self._patterns if fnmatchcase(name, one)), None)
            self._found[model] = self._exact.get(name) or (self._exact[fitting] if fitting is not None else None)
        return self._found[model]


def load(path: str, named_by: str = "--prices") -> Prices:
    """Read a table. Raises UsageError in one line for whatever is wrong with it."""
    name = os.path.basename(path)

    def wrong(why: str) -> UsageError:
        return UsageError(f"{named_by}: the price table {name} {why}", f"an entry looks like {EXAMPLE}", "bad-prices")

    try:
        with open(path, "rb") as file:
            held = file.read(LARGEST + 1)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        message = f"{named_by}: the price table {path} cannot be read: {why}"
        raise UsageError(message, "name a TOML or JSON file", "bad-prices") from error
    if len(held) > LARGEST:
        raise wrong("is larger than 1 MB")
    document = _parsed(held, wrong)
    if not isinstance(document, dict) or not document:
        raise wrong("names no model")
    return Prices(name, {model: _price(model, entry, wrong) for model, entry in document.items()}, os.path.abspath(path))


def _parsed(held: bytes, wrong: Any) -> Any:
    try:
        text = held.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise wrong("is no UTF-8 text") from error
    import tomllib  # only who gives a table pays for it

    is_json = text.lstrip().startswith("{")
    try:
        return json.loads(text) if is_json else tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise wrong(f"is no valid {'JSON' if is_json else 'TOML'}: {str(error)[:200]}") from error


def _price(model: str, entry: Any, wrong: Any) -> Price:
    if not isinstance(entry, dict):
        raise wrong(f"gives no prices for {model!r}")
    unknown = [kind for kind in entry if kind not in KINDS]
    if unknown:
        raise wrong(f"has {unknown[0]!r} at {model!r}; it knows {', '.join(KINDS)}")
    missing = [kind for kind in NEEDED if kind not in entry]
    if missing:
        raise wrong(f"has no price for {missing[0]} at {model!r}")
    for kind, price in entry.items():
        if isinstance(price, bool) or not isinstance(price, (int, float)) or not 0 <= price < MOST:
            raise wrong(f"has {price!r} as the price for {kind} at {model!r}: a number from 0 on is needed")
    fresh = float(entry["input"])  # a service without a price for its cache takes the one of fresh input
    read, made = (float(entry.get(kind, fresh)) for kind in KINDS[2:])
    return Price(fresh, float(entry["output"]), read, made)
