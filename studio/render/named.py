r"""Secrets that a name announces inside a text: `OPENAI_API_KEY=…`, `Authorization: Bearer …`, JSON, headers, queries.

A text is searched for the last words of secret names and what may stand between a name and its value; the rules for names say
whether the whole name is one. The value is a secret up to its end, name and sign stay readable. What only looks like a value
stays: counts of tokens, words such as `null` and `required`, types and look-ups in code, `${NAME}`, a sentence after a colon.

Everything takes linear time: a literal is looked for first, what may be repeated is bounded or passed over once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from studio.lazy import lazy

Span = tuple[int, int]
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
    "ASSW",
    "assphrase",
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
_SIGN = r"""[\w.\-]{0,24}\]?(?:\\{0,15}["'])?[ \t]{0,8}(?:=>|:=|[:=](?![:=])|%3[dD])[ \t]{0,8}"""
"""The rest of the name, its closing quote, and the sign before the value."""
_PAIR = (
    r"""[\w.\-]{0,24}\\{0,15}["']\s{0,8},\s{0,8}"""
    r"""(?P<value>\\{0,15}["'](?:value|val|v)\\{0,15}["']\s{0,8}:\s{0,8})?(?=[bu]?\\{0,15}["'])"""
)
"""The same in `["name", "value"]` and `{"name": "name", "value": "value"}`."""
_SEARCHES = tuple((end, lazy(f"{end}(?:{_SIGN}|(?P<pair>{_PAIR}))")) for end in _ENDS)
_SIGNATURE = lazy(
    r"[?&#](?:amp;)?(?:x-amz-|x-goog-)?(?:sig|signature|auth|jwt|pass|pw)(?:=|%3d)",
    re.IGNORECASE,
)
_SIGNATURE_ENDS = ("sig=", "Sig=", "SIG=", "ature=", "ATURE=", "auth=", "jwt=", "pass=", "pw=", "%3D", "%3d")

_NAME_PART = lazy(r"[\w.\-\[]")
_LONGEST_NAME = 60
_END_OF_NAME = lazy(r"""[\]\\"',\s:=%]""")
_TWO_WORDS = lazy(r"\b(?:api|access|secret|private|licen[cs]e) $", re.IGNORECASE)
"""Before `key`."""
_COUNTED_NAME = lazy(r"tokens?$", re.IGNORECASE)
_WHOLE_LINE = lazy(r"(?:cookies?|authorization)$", re.IGNORECASE)

_STOP = r"""(?=[\s"'`,;)\]}&\\]|$)"""
_FILLED_IN = lazy(
    r"(?:bearer |basic |token )?"
    r"(?:\$\{[^{}\s]{0,80}\}|\$\([^()]{0,80}\)|\$(?-i:[A-Z_]{2,60})|\{\{[^{}]{0,80}\}\}|\{[a-z_][\w.\[\]']{0,60}\}|%\([\w.]{1,60}\)s|"
    rf"%s|<[a-z][\w \-]{{0,60}}>|\[masked\]|\*{{3,40}}|•{{3,40}}|…|\.{{3}}){_STOP}",
    re.IGNORECASE,
)
"""What stands for a value that comes from elsewhere."""
_LOOKED_UP = lazy(
    r"(?:os|self|cls|config|settings|process|env|environ|args|request|req|ctx|context|state|secrets|getpass|getenv)"
    rf"(?:\.[A-Za-z_]|\[|\()|(?:await|lambda|new)\b|[A-Za-z_][\w.]{{0,60}}\([^\s()]{{0,60}}\){_STOP}"
)
"""Code that gets a value."""
_PLAIN = lazy(
    r"(?:None|null|nil|NULL|undefined|[Tt]rue|[Ff]alse|str|string|String|int|integer|bytes|bool|boolean|float|number|object|array|"
    r"[Aa]ny|Optional|SecretStr|SecretBytes|Secret|dict|list|Dict|List|required|optional|missing|invalid|expired|empty|unset|"
    r"unknown|redacted|REDACTED|hidden|not|no)(?![\w!@#$%^&*+/=\-])"
)
"""Words that say something about a secret, or its type in code."""
_PROSE = lazy(r"[A-Za-z'’]{1,30}[,.]?[ \t]+(?:[A-Za-z'’]{1,30}\b(?![ \t]*[:=])|\()")
_COUNT = lazy(r"[\d,._ \t]{1,20}(?=[\s,;)\]}\"'&|]|$)")

_QUOTE = lazy(r"""[bfru]{0,2}(\\{0,15}["'`])""")
_SCHEME = lazy(r"(?:basic|bearer|token|digest|negotiate|apikey|bot)[ \t]+(?=\S)", re.IGNORECASE)
_BARE = lazy(r"""(?:[^\s"'`&<>\\,;]|[,;](?=\S)(?![\w.\-]{1,40}[=:])|\\(?![nrtu"'\\]))+""")
_LINE = lazy(r"""(?:[^\r\n"'\\]|\\(?![nrt"'\\]))+""")
_MARK = lazy(r"""\\{0,15}["']""")
_BRACKET = lazy(r"""[\[\]{}"']""")
_OPENS_PAIR = lazy(r"""[\[(]\s{0,8}[bu]?\\{0,15}["']$""")
_CLOSES_PAIR = lazy(r"""\\{0,15}["']\s{0,8},?\s{0,8}[\])]""")
_KEY = lazy(r"""\\{0,15}["'][\w ]{1,60}\\{0,15}["']\s{0,8}:""")
_LETTERS = lazy(r"[A-Za-z]")


def spans(text: str, is_secret: IsSecret) -> Iterator[Span]:
    """Beginning and end of every value under a secret name, search by search; they may overlap."""
    equals = "=" in text or "%3" in text
    if not (equals or ":" in text or ("," in text and ('"' in text or "'" in text))):
        return
    for end, search in _SEARCHES:
        if end in text:
            yield from _under(text, search, is_secret)
    if equals and ("?" in text or "&" in text or "#" in text) and any(end in text for end in _SIGNATURE_ENDS):
        at = 0
        while (found := _SIGNATURE.search(text, at)) is not None:
            at = found.end()
            value = None if _FILLED_IN.match(text, at) else _BARE.match(text, at)
            if value is not None:
                at = value.end()
                yield value.span()


def _under(text: str, search: re.Pattern[str], is_secret: IsSecret) -> Iterator[Span]:
    at = 0
    while (found := search.search(text, at)) is not None:
        at = found.end()
        start = _name_start(text, found.start())
        name = _END_OF_NAME.split(text[start:at], maxsplit=1)[0]
        if not is_secret(name) and not (name.lower() == "key" and _TWO_WORDS.search(text[max(0, start - 10) : start])):
            continue
        if found["pair"] is None:
            span = _value(text, at, name, found[0], is_secret)
        else:
            span = _second(text, start, at, by_name=found["value"] is not None)
        if span is not None:
            at = max(at, span[1])
            if span[0] < span[1]:
                yield span


def _name_start(text: str, at: int) -> int:
    first = max(0, at - _LONGEST_NAME)
    while at > first and _NAME_PART.match(text, at - 1):
        at -= 1
    return at


def _value(text: str, at: int, name: str, sign: str, is_secret: IsSecret) -> Span | None:
    """Where the value lies that begins at `at`: None where nothing is there that could be a secret, empty to pass over it."""
    if _QUOTE.match(text, at) is not None:
        return _quoted(text, at)
    quoted_name = '"' in sign or "'" in sign
    if quoted_name and text[at : at + 1] in ("{", "["):
        return _block(text, at, name, sign)
    if any(form.match(text, at) for form in (_PLAIN, _FILLED_IN, _LOOKED_UP)):
        return None
    if _COUNTED_NAME.search(name) and _COUNT.match(text, at):
        return None
    scheme = _SCHEME.match(text, at)
    colon = ":" in sign and not quoted_name
    if colon and sign[-1] in " \t" and scheme is None and _PROSE.match(text, at):
        return None
    whole_line = colon and _WHOLE_LINE.search(name)
    found = _LINE.match(text, at) if whole_line else _BARE.match(text, scheme.end() if scheme is not None else at)
    if found is None:
        return None
    end = found.end()
    while end > at and text[end - 1] in ",;)]}. \t":
        end -= 1
    only_a_name = end - at <= _LONGEST_NAME and text[at:end].isidentifier() and is_secret(text[at:end])
    return None if only_a_name else (at, end)


def _quoted(text: str, at: int) -> Span | None:
    """The inside of a text in quotes; empty where it is blank or stands for a value that comes from elsewhere."""
    quote = _QUOTE.match(text, at)
    if quote is None:
        return None
    start, end = quote.end(), _closing(text, quote.end(), quote[1])
    filled_in = _FILLED_IN.match(text, start)
    harmless = (
        (end - start <= _LONGEST_NAME and not text[start:end].strip())
        or _PLAIN.fullmatch(text, start, end)
        or (filled_in is not None and filled_in.end() == end)
    )
    return (start, start) if harmless else (start, end)


def _second(text: str, start: int, at: int, *, by_name: bool) -> Span | None:
    """The value of a pair; in a list of more than two texts a name announces nothing."""
    span = _quoted(text, at)
    if span is None or by_name:
        return span
    of_two = _OPENS_PAIR.search(text[max(0, start - 30) : start]) and _CLOSES_PAIR.match(text, span[1])
    return span if of_two else None


def _closing(text: str, at: int, mark: str) -> int:
    """The next quote that is escaped as often as the opening one; the end of the text where there is none."""
    escapes, beginning = len(mark) - 1, at
    while (found := text.find(mark[-1], at)) >= 0:
        before = found
        while before > beginning and text[before - 1] == "\\":
            before -= 1
        if found - before <= escapes:
            return max(beginning, found - escapes)
        at = found + 1
    return len(text)


def _block(text: str, at: int, name: str, sign: str) -> Span:
    """A list or map: all that stands under the name, unless it only counts tokens."""
    mark = next(found[0] for found in _MARK.finditer(sign))
    depth, here, end = 0, at, len(text)
    while (found := _BRACKET.search(text, here)) is not None:
        here = found.end()
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
        elif found[0] == mark[-1]:
            here = _closing(text, here, mark) + len(mark)
        if not depth:
            end = here
            break
    inner = text[at:end]
    harmless = not inner.strip("[]{} \t\r\n") or (_COUNTED_NAME.search(name) and not _LETTERS.search(_KEY.sub("", inner)))
    return (end, end) if harmless else (at, end)
