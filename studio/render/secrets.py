"""Which stored values are secrets: masked by default in every view, output and export.

A value is a secret by its type (`SecretStr`), by the name of the field it stands in, or by the shape of a well-known key. A name
covers all that stands under it, so that a list or map of credentials is one secret. The rules look at one value at a time, so a
front end reveals one value at a time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from studio.lazy import lazy
from studio.render import named
from studio.render.quoted import Span
from studio.value import MapValue, Tagged

BY_NAME = "named like a secret"
SECRET_TYPES = ("SecretStr", "SecretBytes", "Secret")
MASKED = "[masked]"
"""Stands in a text for a part that is a secret."""

_WORD = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
"""The words of a name in any style: `api_key`, `apiKeyV2`, `X-API-Key`."""
_KEY_OF = (
    "api|access|secret|private|encryption|signing|master|ssh|auth|app|account|service|service_role|subscription|license|"
    "open_?ai|anthropic|claude|azure|aws|google|gemini|vertex|mistral|cohere|groq|deepseek|xai|openrouter|perplexity|together|"
    "fireworks|replicate|hugging_?face|hf|tavily|serper|serp_?api|exa|pinecone|qdrant|weaviate|supabase|lang_?smith|lang_?chain|"
    "git_?hub|git_?lab|stripe|twilio|send_?grid|slack|datadog|sentry"
)
_FORM = (
    "hash|hashed|digest|pem|der|base|base_?64|b_?64|hex|raw|plain|value|encrypted|encoded|json|confirm|confirmation|"
    "old|new|v|\\d+"
)
"""What may follow the name of a secret and still leaves it one: how it is written down, which of several it is."""
_NAME = lazy(
    rf"_(?:(?:{_KEY_OF})_?keys?|(?:auth|access|refresh|id|session)_?tokens?|tokens?|bearer|authorization|"
    rf"[a-z]{{0,20}}pass_?words?|[a-z]{{0,20}}passwd|pass_?phrases?|pwd|(?:db|database|smtp|mail|user|root|admin)_pass|"
    rf"(?:client|app|api|shared|consumer)?secrets?|credentials?|cookies?)"
    rf"(?:_(?:{_FORM}))*$"
)
_VARIABLE = lazy(r"[A-Z0-9]+(?:_[A-Z0-9]+)*_KEYS?(?:_V?\d+)?")
"""An environment variable that holds a key: `ACME_KEY`."""
_PLAIN_VARIABLE = lazy(
    r"(?:.*_)?(?:PRIMARY|FOREIGN|PUBLIC|UNIQUE|SORT|PARTITION|GROUP|HASH|RANGE|ROW|INDEX|CACHE|IDEMPOTENCY|LOOKUP|DEDUP|OBJECT|MAP|"
    r"DICT|JSON|STATE|CHANNEL|CONFIG|CONTEXT|MESSAGES?|INPUT|OUTPUT|MEMORY|STORE|THREAD|NODE|TASK|RESULT)_KEYS?(?:_V?\d+)?"
)
_STEMS = ("key", "token", "bearer", "authorization", "pass", "pwd", "secret", "credential", "cookie")
"""One of them stands in every name of a secret."""
_COUNT_NAMES = lazy(
    r"(?:max|min|total|input|output|prompt|completion|num|count|cached|reasoning|audio|context|used)_?tokens?$|"
    r"_(?:page|next|previous|prev|continuation|pagination|cursor|sync|delta|scroll|eos|bos|pad|padding|unk|sep|cls|mask|special|stop)"
    r"_?tokens?$"
)
"""Tokens that are counted, that say where a list goes on, or that a model reads."""
_PEM = r"(?:[A-Z]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----"
_PEM_BODY = r"[^-]{0,20000}+(?:-(?!----)[^-]{0,20000}+){0,200}+"
"""Up to the next five dashes: what follows one beginning is never looked at for another."""
_SHAPES = (
    (("sk-",), lazy(r"\bsk-(?:[A-Za-z]+-)*[A-Za-z0-9_\-]{16,}")),
    (("AKIA", "ASIA"), lazy(r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b")),
    (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-"),
        lazy(r"\b(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_\-]{16,})"),
    ),
    (("xox",), lazy(r"\bxox[abeoprs]-[A-Za-z0-9\-]{10,}")),
    (("AIza",), lazy(r"\bAIza[A-Za-z0-9_\-]{30,}")),
    (
        ("hf_", "npm_", "lsv2_", "pypi_", "dop_v1_", "shpat_", "sbp_", "r8_"),
        lazy(r"\b(?:hf|npm|lsv2_(?:pt|sk)|pypi|dop_v1|shpat|sbp|r8)_[A-Za-z0-9_]{20,}"),
    ),
    (("k_live_", "k_test_"), lazy(r"\b[rs]k_(?:live|test)_[A-Za-z0-9]{16,}")),
    ((".eyJ",), lazy(r"\beyJ[A-Za-z0-9_\-]{8,1000}\.eyJ[A-Za-z0-9_\-]{8,}\.[A-Za-z0-9_\-]*")),
    (
        ("-----BEGIN",),
        lazy(
            rf"-----BEGIN {_PEM}(?:{_PEM_BODY}-----END {_PEM}|(?=[\s\\A-Za-z0-9+/]|$){_PEM_BODY})",
        ),
    ),
    (("Bearer",), lazy(r"\bBearer\s+[A-Za-z0-9_\-.=+/]{8,}")),
    (("Basic", "basic"), lazy(r"\b[Bb]asic\s+(?=[A-Za-z+/]*[0-9=])[A-Za-z0-9+/]{8,}={0,2}")),
    (
        ("uthorization", "UTHORIZATION"),
        lazy(
            r"""authorization["'\\]*\s*[:=]\s*["'\\]*(?:token|digest|negotiate|apikey)\s+[^\s"'\\]{4,}""",
            re.IGNORECASE,
        ),
    ),
    # user:password@ of a URL: up to the last @ before a slash, or the first one behind it unless a port precedes the slash
    (
        ("://",),
        lazy(
            r"""(?:\b[A-Za-z][A-Za-z0-9+.\-]{0,30})?://[^\s:/@\[]*:(?!\*+@|\d*[/?#])"""
            r"""(?:[^\s/"<>]+@|[^\s/@"<>]{0,200}/[^\s@"<>]{0,200}@)"""
        ),
    ),
)
"""Texts of which one stands in whatever the shape fits, and the shape. Each takes linear time: what may be repeated is bounded
or cannot hold the beginning of another match."""
_CUT_KEY = lazy(
    r"\b(?:sk-|AKIA|ASIA|gh[pousr]_|github_pat_|glpat-|xox[abeoprs]-|AIza|[rs]k_(?:live|test)_|"
    r"(?:hf|npm|lsv2_(?:pt|sk)|pypi|dop_v1|shpat|sbp|r8)_)[A-Za-z0-9_\-]{6,200}(?=…)"
)
"""The first part of a key before an ellipsis."""
_TRIGGERS = tuple((trigger, shape) for triggers, shape in _SHAPES for trigger in triggers)
_TRIGGERS_BY_SIGNS = {
    (dash, underscore): tuple(
        (trigger, shape) for trigger, shape in _TRIGGERS if (dash or "-" not in trigger) and (underscore or "_" not in trigger)
    )
    for dash in (False, True)
    for underscore in (False, True)
}
"""Whether a text has a dash and an underscore, neither of which masking adds: the triggers that may stand in it."""
_CHARACTERS = frozenset("".join(trigger for trigger, _ in _TRIGGERS))
_NAME_LIMIT = 200
"""Characters at the end of a name that are looked at."""
_COUNTED = lazy(rf"_tokens?(?:_(?:{_FORM}))*$")
_MANY = lazy(r"_(?:cookies|secrets|credentials|passwords|keys)$")
_FEW = 10_000
_LARGEST_COUNT = 10**11
"""A session of a coding agent that runs for months reads billions of tokens from its cache."""
_LONG = 100_000
"""Characters from which on an answer about a text is kept."""
_AHEAD = 20_000
"""Characters behind a cut that tell whether a secret begins before it."""
_MOST_COUNTS = 1_000
"""Numbers in one value under a name such as `tokens`; more of them are masked unseen."""


def reason(key: str | None, value: Any) -> str | None:
    """Why this value must be masked, in a few words, or None. `key` is the name it stands under, if any."""
    if isinstance(value, Tagged) and value.name in SECRET_TYPES:
        return f"a {value.name}"
    if key and is_secret_by_name(key, value):
        return BY_NAME
    return "looks like a key" if isinstance(value, str) and has_secret(value) else None


def hides_all(key: str | None, value: Any) -> bool:
    """Whether nothing of the value may be shown: of a text that only holds a secret all else stays readable."""
    if isinstance(value, str):
        return bool(key) and is_secret_by_name(key or "", value)
    return reason(key, value) is not None


def is_secret_by_name(key: str, value: Any) -> bool:
    """Whether the name that a value stands under makes it a secret, whatever it looks like."""
    if not is_secret_name(key) or not _can_hide(value):
        return False
    name = _words(key)
    return not (_COUNTED.search(name) and _only_counts(value)) and not (
        isinstance(value, int) and 0 <= value < _FEW and _MANY.search(name)
    )


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
    """Whether a text holds something of the shape of a well-known key, or a value under a secret name, wherever in it."""
    return _long_has_secret(text) if len(text) > _LONG else _has_secret(text)


def _has_secret(text: str, triggers: Sequence[tuple[str, re.Pattern[str]]] | None = None) -> bool:
    for trigger, shape in _TRIGGERS_BY_SIGNS["-" in text, "_" in text] if triggers is None else triggers:
        if trigger in text and shape.search(text):
            return True
    return next(named.spans(text, is_secret_name), None) is not None


@lru_cache(maxsize=4)
def _long_has_secret(text: str) -> bool:
    """One page asks several times about the same long text. One character is looked for ten times as fast as several."""
    there = {character for character in _CHARACTERS if character in text}
    return _has_secret(text, [(trigger, shape) for trigger, shape in _TRIGGERS if there.issuperset(trigger)])


def spans(text: str) -> list[Span]:
    """Beginning and end of every secret part of a text, in order, none touching another."""
    found = list(named.spans(text, is_secret_name))
    for trigger, shape in _TRIGGERS_BY_SIGNS["-" in text, "_" in text]:
        if trigger in text:
            found += [match.span() for match in shape.finditer(text)]
    apart: list[Span] = []
    for start, end in sorted(found):
        if apart and start <= apart[-1][1]:
            apart[-1] = apart[-1][0], max(end, apart[-1][1])
        else:
            apart.append((start, end))
    return apart


def shown(stored: str, name: str | None = None, *, show_secrets: bool = False) -> str:
    """A stored text that is shown as itself: its secret parts are replaced, all of it under a secret name."""
    if show_secrets:
        return stored
    if name and is_secret_by_name(name, stored):
        return MASKED
    return mask_text(stored)


def mask_text(text: str) -> str:
    """A text with its secrets replaced, for logs and error texts where the rest should stay readable."""
    found = spans(text)
    return replaced(text, found) if found else text


def mask_keys(text: str) -> str:
    """A text with what has the shape of a well-known key replaced: for names, which are no values and announce none."""
    found = key_spans(text)
    return replaced(text, found) if found else text


def key_spans(text: str) -> list[Span]:
    """Beginning and end of what has the shape of a well-known key, in order."""
    signs = _TRIGGERS_BY_SIGNS["-" in text, "_" in text]
    found = [match.span() for trigger, shape in signs if trigger in text for match in shape.finditer(text)]
    if "…" in text:  # a name that was shortened, and with it the key
        found += [match.span() for match in _CUT_KEY.finditer(text)]
    apart: list[Span] = []
    for start, end in sorted(found):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return apart


def head(text: str, size: int) -> str:
    """What the first `size` characters of a text are once secrets are replaced, those that the cut divides among them."""
    if len(text) <= size:
        return mask_text(text)
    found = spans(text[: size + _AHEAD])
    return replaced(text[:size], [(start, min(end, size)) for start, end in found if start < size])


def replaced(text: str, parts: Sequence[Span]) -> str:
    """The text with a mask in the place of each of the parts, which `spans` gave."""
    pieces, at = [], 0
    for start, end in parts:
        pieces += [text[at:start], MASKED]
        at = end
    return "".join([*pieces, text[at:]])


def is_secret_name(key: str) -> bool:
    """Whether a field of this name holds secrets: `api_key`, `dbPassword`, `Authorization`, `password_hash`."""
    end = key[-_NAME_LIMIT:]
    small = end.lower()
    for stem in _STEMS:  # few names hold one: the patterns are not even made for the others
        if stem in small:
            return _named(end)
    return False


@lru_cache(maxsize=4096)
def _named(key: str) -> bool:
    if _VARIABLE.fullmatch(key):
        return not _PLAIN_VARIABLE.fullmatch(key)
    name = _words(key)
    return bool(_NAME.search(name)) and not _COUNT_NAMES.search(name)


def _words(key: str) -> str:
    """A name's words in small letters, `_` before each."""
    return "".join(f"_{word.lower()}" for word in _WORD.findall(key[-_NAME_LIMIT:]))
