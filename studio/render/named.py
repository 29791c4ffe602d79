r"""Secrets that a name announces inside a text: `OPENAI_API_KEY=…`, `Authorization: Bearer …`, JSON, headers, queries, options.

A text is searched for the last words of secret names and what may stand between a name and its value; the rules for names say
whether the whole name is one. The value is a secret up to its end, name and sign stay readable. What only looks like a value
stays (`readable`); a name may also stand beside its value, as in a list of pairs (`beside`).

Everything takes linear time: a literal is looked for first, what may be repeated is bounded or passed over once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from studio.lazy import lazy
from studio.render import beside, readable
from studio.render.quoted import Span, block, quote_at, quoted

IsSecret = Callable[[str], bool]

_ENDS = (
    "key",
    "Key",
    "KEY",
    "oken",
    "OKEN",
    "ecret",
    "ECRET",
    "assw",
    "assW",
    "ASSW",
    "assphrase",
    "assPhrase",
    "ASSPHRASE",
    "ass_",
    "ASS_",
    "_pass",
    "_PASS",
    "pwd",
    "Pwd",
    "PWD",
    "redential",
    "REDENTIAL",
    "ookie",
    "OOKIE",
    "earer",
    "EARER",
    "uthorization",
    "UTHORIZATION",
)
_REST = r"""[\w.\-]{0,24}"""
_SIGN = (
    rf"""{_REST}(?:\[\d{{0,4}}\])?"""
    r"""(?:\](?=[ \t]{0,8}(?:=|%3)))?(?:\\{0,15}["'])?(?:\](?=[ \t]{0,8}=))?(?:[ \t]{1,4}[Ss]tring\b)?"""
    r"""[ \t]{0,32}(?:=>|:=|[:=](?![:=])|%3[dD]|[：＝])[ \t]{0,32}"""
)
"""The rest of the name, its closing quote, and the sign before the value."""
_PAIR = rf"""{_REST}\\{{0,15}}["']\s{{0,8}},\s{{0,8}}(?=[bu]?\\{{0,15}}["'])"""
"""The same in `["name", "value"]`."""
_TAG = rf"""{_REST}(?:\s[^<>]{{0,200}})?>(?:<!\[CDATA\[)?"""
"""The rest of a name in pointed brackets."""
_SPACE = rf"""{_REST}[ \t]{{1,32}}(?=[^\s\-=:|])"""
"""Between an option of a command and its argument."""
_ALONE = rf"""{_REST}(?:\\{{0,15}}["'])?(?=[\s,}}\])/>]|$)"""
_SEARCHES = tuple(
    (end, lazy(f"{end}(?:{_SIGN}|(?P<pair>{_PAIR})|(?P<tag>{_TAG})|(?P<space>{_SPACE})|(?P<alone>{_ALONE}))")) for end in _ENDS
)
_LONG = 10_000
_OTHER_SIGNS = (":", "：", "--", "</", "#define", "ENV ", "setx")
"""Without an equals sign one of them stands in every text that announces a secret, or else a pair."""
_SIGNATURE = lazy(
    r"[?&#](?:amp;)?(?:x-amz-|x-goog-)?(?:sig|signature|auth|jwt|pass|pw)(?:=|%3d)"
    r"(?!\d{1,3}(?:[&#\s]|$)|(?:basic|bearer|none|yes|no|on|off)\b)",
    re.IGNORECASE,
)
_SIGNATURE_ENDS = ("sig=", "Sig=", "SIG=", "ature=", "ATURE=", "auth=", "jwt=", "pass=", "pw=", "%3D", "%3d")

_NAME_PART = lazy(r"[\w.\-\[]")
_LONGEST_NAME = 60
_END_OF_NAME = lazy(r"""[\]\\"',\s:=%>：＝]""")
_SIZE = lazy(r"\[\d*$")
_TWO_WORDS = lazy(r"\b(?:api|access|secret|private|licen[cs]e) $", re.IGNORECASE)
"""Before `key`."""
_PASSPHRASE = lazy(r"phrase$", re.IGNORECASE)
_WHOLE_LINE = lazy(r"(?:cookies?|authorization)$", re.IGNORECASE)
_DEFINED = lazy(r"(?:#define|\bENV|\bsetx)[ \t]{1,4}$")
_OPTION_IN_A_SENTENCE = lazy(
    r"(?:flags?|options?|arguments?|args?|param(?:eter)?s?|switch|is|are|was|and|or|to|for|from|on|in|with|if|when|must|should|will|can|"
    r"cannot|has|have|requires?|needs?|instead|as|at|by|the|an?|via|which|that|does|together|before|after|without|because|so|then|"
    r"takes?|expects?|sets?|here|value)(?![\w@!#$%^&*+/=\-])|[A-Z_]{3,40}(?![\w\-])"
)

_SCHEME = lazy(r"(?:basic|bearer|token|digest|negotiate|apikey|bot)[ \t]+(?=\S)", re.IGNORECASE)
_BARE = lazy(r"""(?:[^\s"'`&<>\\,;]|[,;](?=\S)(?![\w.\-]{1,40}[=:])|\\(?![nrtu"'\\]))+""")
_LINE = lazy(r"""(?:[^\r\n"'\\]|\\(?![nrt"'\\]))+""")
_IN_TAG = lazy(r"[^<]{1,20000}")
_OPENS_PAIR = lazy(r"""[\[(]\s{0,8}[bu]?\\{0,15}["']$""")
_CLOSES_PAIR = lazy(r"""\\{0,15}["']\s{0,8},?\s{0,8}[\])]""")
_COUNTED_NAME = lazy(r"tokens?$", re.IGNORECASE)
_KEY = lazy(r"""\\{0,15}["'][\w ]{1,60}\\{0,15}["']\s{0,8}:""")
_LETTERS = lazy(r"[A-Za-z]")
_NEXT_LINE = lazy(r"[ \t]*(?:[|>][+\-\d]{0,2}[ \t]*)?\r?\n(?P<indent>[ \t]+)(?=\S)")
_BREAK = lazy(r"\s{0,60}")
_CLOSES = lazy(r"""\\{0,15}["'`](?:[),;\]}\r\n]|$)""")
"""The quote behind a question to a person: `input("Password: ")`."""
_ONE_WORD = lazy(r"(?=[^\s]*\d)[^\s:()\[\]{}\"'=]{6,}[ \t]*(?=\r?\n|$)")


def spans(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Beginning and end of every value under a secret name, search by search; they may overlap."""
    equals = "=" in text or "%3" in text or "＝" in text
    if not (equals or _has_other_sign(text) or ("," in text and ('"' in text or "'" in text))):
        return
    for end, search in _SEARCHES:
        if end in text:
            yield from _under(text, search, is_secret)
    if equals and ("?" in text or "&" in text or "#" in text) and any(end in text for end in _SIGNATURE_ENDS):
        at = 0
        while (found := _SIGNATURE.search(text, at)) is not None:
            at = found.end()
            value = None if readable.filled_in(text, at) else _BARE.match(text, at)
            if value is not None:
                at = value.end()
                yield value.span()


def _has_other_sign(text: str) -> bool:
    long = len(text) > _LONG
    for sign in _OTHER_SIGNS:
        if long and len(sign) > 1 and not all(character in text for character in sign):
            continue  # one character is looked for fifty times as fast as several
        if sign in text:
            return True
    return False


def _under(text: str, search: re.Pattern[str], is_secret: IsSecret) -> Iterator[Span]:
    at = 0
    while (found := search.search(text, at)) is not None:
        at = found.end()
        start = _name_start(text, found.start())
        name = _SIZE.split(_END_OF_NAME.split(text[start:at], maxsplit=1)[0], maxsplit=1)[0].rpartition("[")[2]
        if not is_secret(name) and not (name.lower() == "key" and _TWO_WORDS.search(text[max(0, start - 10) : start])):
            continue
        for span in _announced(text, start, at, name, found, is_secret):
            at = max(at, span[1])
            if span[0] < span[1]:
                yield span


def _announced(text: str, start: int, at: int, name: str, found: re.Match[str], is_secret: IsSecret) -> Iterator[Span]:
    """What the name that stands from `start` on announces; empty where it must only be passed over."""
    kind = found.lastgroup
    span: Span | None = None
    if kind is None:
        span = _value(text, start, at, name, found[0], is_secret)
    elif kind == "tag" and text[start - 1 : start] in ("<", ":"):
        span = _tagged(text, at, name)
    elif kind == "space" and (name.startswith("--") or _DEFINED.search(text[max(0, start - 12) : start])):
        span = _argument(text, at, name)
    elif kind in ("pair", "alone", "space"):
        by_name = list(beside.spans(text, start, start + len(name), is_secret))
        yield from by_name
        span = _second(text, start, at) if kind == "pair" and not by_name else None
    if span is not None:
        yield span


def _name_start(text: str, at: int) -> int:
    first = max(0, at - _LONGEST_NAME)
    while at > first and _NAME_PART.match(text, at - 1):
        at -= 1
    return at


def _value(text: str, start: int, at: int, name: str, sign: str, is_secret: IsSecret) -> Span | None:
    """Where the value lies that begins at `at`: None where nothing is there that could be a secret, empty to pass over it."""
    quoted_name = '"' in sign or "'" in sign
    at = _BREAK.match(text, at).end() if quoted_name else at  # type: ignore[union-attr]  # it fits everything
    if quote_at(text, at):
        return None if not quoted_name and _CLOSES.match(text, at) else quoted(text, at)
    if quoted_name and text[at : at + 1] in ("{", "["):
        return _block(text, at, name, sign)
    colon = (":" in sign or "：" in sign) and ":=" not in sign and not quoted_name
    if colon and (declared := readable.typed(text, at)) is not None:
        literal = declared if quote_at(text, declared) else readable.fallback(text, declared)
        return None if literal is None else quoted(text, literal)
    if (literal := readable.fallback(text, at)) is not None:
        return quoted(text, literal)
    if colon and (below := _below(text, start, at)) is not None:
        return below
    if readable.code_or_word(text, at) or readable.count(text, at, name) or ("=>" in sign and not quoted_name):
        return None
    scheme = _SCHEME.match(text, at)
    phrase = colon and _PASSPHRASE.search(name)
    if colon and sign[-1] in " \t" and scheme is None and not phrase and readable.prose(text, at):
        return None
    if colon and readable.spoken(text, start, at, name):
        return None
    whole_line = phrase or (colon and _WHOLE_LINE.search(name))
    found = _LINE.match(text, at) if whole_line else _BARE.match(text, scheme.end() if scheme is not None else at)
    if found is None:
        return None
    end = found.end()
    while end > at and text[end - 1] in ",;)]}. \t":
        end -= 1
    harmless = readable.filled_in(text, at, end) or readable.only_a_name(text[at:end], name, is_secret)
    return None if harmless else (at, end)


def _below(text: str, start: int, at: int) -> Span | None:
    """The value of a YAML entry that stands in the lines below its name: a block of text, or one word with a digit."""
    found = _NEXT_LINE.match(text, at)
    line = text.rfind("\n", max(0, start - 200), start) + 1
    if found is None or len(found["indent"]) <= len(text[line:start]) - len(text[line:start].lstrip(" \t-")):
        return None
    if found[0].lstrip(" \t")[0] not in "|>":
        word = _ONE_WORD.match(text, found.end())
        return None if word is None or readable.code_or_word(text, found.end()) else word.span()
    end = found.end()
    more = (found["indent"], "\r\n", "\n")
    while (stop := text.find("\n", end)) >= 0 and text.startswith(more, stop + 1):
        end = stop + 1
    return found.end(), stop if stop >= 0 else len(text)


def _tagged(text: str, at: int, name: str) -> Span | None:
    """The text between a tag and its closing one."""
    found = _IN_TAG.match(text, at)
    if found is None or not text.startswith("</", found.end()) or name not in text[found.end() : found.end() + 2 * _LONGEST_NAME]:
        return None
    end = found.end() - 3 if text.startswith("]]>", found.end() - 3) else found.end()
    return None if readable.plain_text(text, at, end) or readable.field_name(text[at:end].strip()) else (at, end)


def _argument(text: str, at: int, name: str) -> Span | None:
    """What follows an option of a command, unless the sentence goes on."""
    if quote_at(text, at):
        return quoted(text, at)
    sentence = readable.code_or_word(text, at) or readable.count(text, at, name) or _OPTION_IN_A_SENTENCE.match(text, at)
    found = None if sentence else _BARE.match(text, at)
    return None if found is None or readable.filled_in(text, at, found.end()) else found.span()


def _second(text: str, start: int, at: int) -> Span | None:
    """The value of a pair; in a list of more than two texts a name announces nothing, nor does one of two fields' names."""
    span = quoted(text, at)
    of_two = span is not None and _OPENS_PAIR.search(text[max(0, start - 30) : start]) and _CLOSES_PAIR.match(text, span[1])
    return span if of_two and span is not None and not readable.field_name(text[span[0] : span[1]]) else None


def _block(text: str, at: int, name: str, sign: str) -> Span | None:
    """A list or map: all that stands under the name, unless it only counts tokens or describes a field."""
    if readable.schema(text, at):
        return None
    end = block(text, at, sign)
    inner = text[at:end]
    harmless = not inner.strip("[]{} \t\r\n") or (_COUNTED_NAME.search(name) and not _LETTERS.search(_KEY.sub("", inner)))
    return (end, end) if harmless else (at, end)
