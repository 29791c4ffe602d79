"""Which stored values are secrets: masked by default in every view, output and export.

A value is a secret by its type (`SecretStr`), by the name of the field it stands in, or by the shape of a well-known key. A name
covers all that stands under it, so that a list or map of credentials is one secret. The rules look at one value at a time, so a
front end reveals one value at a time.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from studio.value import MapValue, Tagged

BY_NAME = "named like a secret"

_NAME = re.compile(
    r"(?:^|[_\-. ])(?:(?:api|access|secret|private)[_\-]?keys?|(?:auth|access|refresh|id|session)[_\-]?tokens?|tokens?|bearer|"
    r"(?:proxy[_\-])?authorization|passwords?|passwd|passphrase|pwd|secrets?|client[_\-]?secret|credentials?|(?:set[_\-])?cookies?)$",
    re.IGNORECASE,
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_COUNT_NAMES = re.compile(
    r"(?:max|min|total|input|output|prompt|completion|num|count|cached|reasoning|audio|context|used)[_\-]?tokens?$", re.IGNORECASE
)
_SHAPES = (
    re.compile(r"\bsk-(?:[A-Za-z]+-)*[A-Za-z0-9_\-]{16,}"),
    re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    re.compile(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_\-]{16,})"),
    re.compile(r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}"),
    re.compile(r"\bAIza[A-Za-z0-9_\-]{30,}"),
    re.compile(r"\b(?:hf|npm|lsv2_(?:pt|sk)|pypi|dop_v1|shpat|sbp|r8)_[A-Za-z0-9_]{20,}"),
    re.compile(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    re.compile(r"\beyJ[A-Za-z0-9_\-]{8,}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*"),
    re.compile(
        r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----(?:.{0,20000}?-----END (?:[A-Z]+ )*PRIVATE KEY-----|[^-]{0,20000})", re.DOTALL
    ),
    re.compile(r"\bBearer\s+[A-Za-z0-9_\-.=+/]{8,}"),
    re.compile(r"\b[a-z][a-z0-9+.\-]*://[^\s:/@]+:(?!\*+@)[^\s:/@]+@"),
)
_TRIGGERS = ("sk-", "AKIA", "ASIA", "gh", "glpat-", "xox", "AIza", "_", "eyJ", "-----BEGIN", "Bearer", "://")
_SCAN_LIMIT = 1_000_000
_NAME_LIMIT = 200
"""Characters at the end of a name that are looked at."""
_COUNTED = re.compile(r"tokens?$", re.IGNORECASE)
_LARGEST_COUNT = 10**8
_MOST_COUNTS = 1_000
"""Numbers in one value under a name such as `tokens`; more of them are masked unseen."""


def reason(key: str | None, value: Any) -> str | None:
    """Why this value must be masked, in a few words, or None. `key` is the name it stands under, if any."""
    if isinstance(value, Tagged) and value.name in ("SecretStr", "SecretBytes", "Secret"):
        return f"a {value.name}"
    if key and is_secret_name(key) and _can_hide(value) and not (_COUNTED.search(key) and _only_counts(value)):
        return BY_NAME
    return "looks like a key" if isinstance(value, str) and has_secret(value) else None


def _can_hide(value: Any) -> bool:
    """Whether there is something in a value: nothing is told by null, a truth value or an empty text, list or map."""
    if value is None or isinstance(value, bool):
        return False
    if isinstance(value, MapValue):
        return bool(value.pairs)
    return bool(value) or not isinstance(value, (str, bytes, bytearray, list, dict))


def _only_counts(value: Any) -> bool:
    """Whether a value under `tokens` counts them: small numbers, or lists and maps of nothing else."""
    stack, seen = [value], 0
    while stack:
        one = stack.pop()
        seen += 1
        if seen > _MOST_COUNTS:
            return False
        if isinstance(one, (list, dict)):
            stack.extend(list(one.values() if isinstance(one, dict) else one)[: _MOST_COUNTS + 1])
        elif isinstance(one, str):
            if not (one.isdigit() and len(one) < 6):
                return False
        elif one is not None and not (isinstance(one, (int, float)) and abs(one) < _LARGEST_COUNT):
            return False
    return True


def has_secret(text: str) -> bool:
    """Whether a text holds something of the shape of a well-known key. Looks at the first and last million characters."""
    if len(text) > 2 * _SCAN_LIMIT:
        return has_secret(text[:_SCAN_LIMIT]) or has_secret(text[-_SCAN_LIMIT:])
    if not any(trigger in text for trigger in _TRIGGERS):
        return False
    return any(shape.search(text) for shape in _SHAPES)


def mask_text(text: str) -> str:
    """A text with every secret-shaped part replaced, for logs and error texts where the rest should stay readable."""
    if not any(trigger in text for trigger in _TRIGGERS):
        return text
    for shape in _SHAPES:
        text = shape.sub("[masked]", text)
    return text


def is_secret_name(key: str) -> bool:
    """Whether a field of this name holds secrets: `api_key`, `dbPassword`, `Authorization`."""
    return _named(key[-_NAME_LIMIT:])


@lru_cache(maxsize=4096)
def _named(key: str) -> bool:
    name = _CAMEL.sub("_", key) if any(c.isupper() for c in key[1:]) and not key.isupper() else key
    return bool(_NAME.search(name)) and not _COUNT_NAMES.search(name)
