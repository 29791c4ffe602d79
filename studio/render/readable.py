r"""What stands where a secret could stand and is none: counts, code, types, place-holders, words that speak about a secret.

A text that a model or a tool wrote speaks of secrets far more often than it holds one. Everything here looks at one place of a
text, at what follows a name and its sign, and takes bounded time.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from studio.lazy import lazy

_STOP = r"""(?=[\s"'`,;)\]}&\\<]|$)"""
_FILLED_IN = lazy(
    r"(?:bearer |basic |token )?"
    r"(?:\$\{\{[^{}]{0,80}\}\}|\$\{(?:[^{}\s:]|:(?![-=+?])){0,80}\}|\$\([^()]{0,80}\)|\$(?-i:[A-Z_]{2,60})|\{\{[^{}]{0,80}\}\}|"
    r"\{[a-z_][\w.\[\]']{0,60}\}|%\([\w.]{1,60}\)s|%s|<[a-z][\w \-]{0,60}>|\[redacted\]|#[0-9a-f]{3,8}|"
    rf"(?:[a-z]{{1,8}}[\-_]){{0,3}}(?:\*{{3,60}}|•{{3,60}}|…|\.{{3}}|x{{4,60}}\b)[\w\-]{{0,6}}){_STOP}|\[masked\]",
    re.IGNORECASE,
)
"""What stands for a value that comes from elsewhere, or that somebody has hidden before."""
_PLACEHOLDER = lazy(
    r"<?(?:your|insert|replace|enter|paste|example|sample|dummy|fake|put)[\-_ ][A-Za-z_\- ']{2,60}>?|"
    r"change[\-_]?(?:me|it|this)|placeholder|todo|tbd|n/a",
    re.IGNORECASE,
)
"""`YOUR_API_KEY`, in examples."""
_ROOTS = "os|self|cls|this|config|settings|process|env|environ|args|request|req|ctx|context|state|secrets|getpass|getenv|import"
_LOOKED_UP = lazy(
    rf"(?:{_ROOTS})(?:\??\.[A-Za-z_]|\[|\()|(?:await|lambda|new|return|raise|yield|assert|throw|pass|continue|break|print|if|else|in|"
    rf"and|or|is)\b(?![\-@!#$%^&*+/=])|[A-Za-z_][\w.]{{0,60}}\([^\n]{{0,200}}?\)(?=[\[.)]|{_STOP[3:-1]})|"
    rf"[A-Za-z_][\w.]{{0,60}}\[[\w\"'\-:.]{{0,40}}\](?=[\[.]|{_STOP[3:-1]})"
)
"""Code that gets a value."""
_FALLBACK = lazy(
    r"""(?:(?:os\.)?(?:getenv|environ\.get|env\.get)\(\s{0,4}(?:"[^"\n]{0,80}"|'[^'\n]{0,80}')\s{0,4},\s{0,4}|"""
    r"""[\w.\[\]"'()?]{1,100}[ \t]{1,4}(?:or|\?\?|\|\|)[ \t]{1,4})(?=["'`])"""
)
"""The same with a value for the case that there is none."""
_PLAIN = lazy(
    r"(?:None|null|nil|NULL|undefined|[Tt]rue|[Ff]alse|str|string|String|int|integer|bytes|bool|boolean|float|number|object|array|"
    r"[Aa]ny|Optional|SecretStr|SecretBytes|Secret|dict|list|tuple|set|Dict|List|Union|Annotated|Mapped|Literal|Promise|Array|Record|"
    r"Option|Result|Sequence|Callable|unicode|void|never|required|optional|missing|invalid|expired|empty|unset|unknown|redacted|"
    r"REDACTED|hidden|not|no|yes|on|off|ok|OK|enabled|disabled|valid|wrong|incorrect|accepted|rejected|revoked|rotated|encrypted|"
    r"hashed|min|max|minimum|maximum|must|should|see|any|(?:Alt|Ctrl|Shift|Cmd)\+\w)(?![\w!@#$%^&*+/=\-])"
)
"""Words that say something about a secret, or its type in code."""
_TYPE = (
    r"[&*?]{0,2}[A-Za-z_][\w.]{0,60}(?:\[[\w\[\], .|\"']{0,80}\]|<[\w<>, .|]{0,80}>)?(?:[ \t]?\|[ \t]?[A-Za-z_]\w{0,40}){0,3}\??"
)
_TYPED = lazy(_TYPE + r"(?:[ \t]{1,8}=(?!=)[ \t]{0,8}|=[ \t]{0,8}(?=[\"'`]))")
"""A declared type and the sign before the value: `str = `, `Optional[str] = `."""
_PROSE = lazy(r"[A-Za-z'’]{1,30}[,.]?[ \t]+(?:[A-Za-z'’]{1,30}\b(?![ \t]*[:=])|\()")
_ARTICLE = lazy(r"\b(?:the|a|an|this|that|its|his|her|their|our|one|only|real|big|little|best|another|no) {1,2}$", re.IGNORECASE)
_THING = lazy(r"(?:secrets?|tokens?|cookies?|credentials?|bearer)$", re.IGNORECASE)
"""Names that are words of everyday speech, too."""
_WORD = lazy(r"[a-z]{1,14}(?=[\s.,;!?]|$)")
_COUNTED_NAME = lazy(r"tokens?$", re.IGNORECASE)
_MANY = lazy(r"(?:cookies|secrets|credentials|passwords|keys)$", re.IGNORECASE)
_COUNT = lazy(r"~?[\d,._ \t]{1,20}[kKmM]?(?=[\s,;)\]}\"'&|<]|$)")
_FEW = lazy(r"\d{1,4}(?=[\s,;)\]}\"'&|.<]|$)")
_SHORTEST = 3
"""Characters of the shortest secret that stands without quotes."""
_LONGEST_NAME = 60
_WORDS = lazy(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^A-Za-z_.\- ]+")
_FIELD_WORDS = """
    user username users name names first last full nick email mail login logout password passwords passwd passphrase pwd
    token tokens secret secrets key keys api access refresh id ids url uri base host hostname port address phone model
    endpoint region type role roles account tenant client app application auth authorization authentication scope scopes
    expires expiry expiration created updated date time timestamp text string integer number boolean object array value
    values null none required optional field fields title label description message content body header headers cookie
    cookies session bearer basic provider service server domain database db schema table path file data state status code
    method version confirm confirmation new old current reset forgot hash private public openai anthropic azure aws google
    github admin root device csrf xsrf signing master encryption
"""
_FIELDS = frozenset(_FIELD_WORDS.split())
"""Words of the names of fields."""
_SCHEMA_KEYS = lazy(
    r"""\{(?:\s{0,40}\\{0,15}["'](?:type|title|description|format|(?:min|max)Length|writeOnly|readOnly|nullable)\\{0,15}["']\s{0,8}:\s{0,8}"""
    r"""(?:\\{0,15}"[^"\n]{0,2000}"|\\{0,15}'[^'\n]{0,2000}'|[\w.]{1,20})\s{0,8},?){1,12}\s{0,40}\}"""
)
_SCHEMA_TYPE = lazy(
    r"""["']type\\{0,15}["']\s{0,8}:\s{0,8}\\{0,15}["'](?:string|object|array|integer|number|boolean)\\{0,15}["']"""
)


def filled_in(text: str, start: int, end: int | None = None) -> bool:
    """Whether a place-holder stands there, up to `end` where that is known."""
    found = _FILLED_IN.match(text, start)
    if found is not None and end in (None, found.end()):
        return True
    return end is not None and (end - start) <= 80 and _PLACEHOLDER.fullmatch(text, start, end) is not None


def plain_text(text: str, start: int, end: int) -> bool:
    """Whether a text in quotes says something about a secret: blank, one of the plain words, a place-holder."""
    blank = end - start <= _LONGEST_NAME and not text[start:end].strip()
    return blank or _PLAIN.fullmatch(text, start, end) is not None or filled_in(text, start, end)


def typed(text: str, at: int) -> int | None:
    """Where the value begins behind a declared type and its sign; None where no type stands."""
    found = _TYPED.match(text, at)
    return None if found is None else found.end()


def fallback(text: str, at: int) -> int | None:
    """Where the literal begins that code uses when its look-up finds nothing."""
    found = _FALLBACK.match(text, at)
    return None if found is None else found.end()


def code_or_word(text: str, at: int) -> bool:
    """Whether code, a type, a place-holder or a word about secrets begins there."""
    return any(form.match(text, at) for form in (_PLAIN, _FILLED_IN, _LOOKED_UP))


def count(text: str, at: int, name: str) -> bool:
    """Whether a number stands there that tells how many tokens, cookies or keys there are."""
    return bool((_COUNTED_NAME.search(name) and _COUNT.match(text, at)) or (_MANY.search(name) and _FEW.match(text, at)))


def prose(text: str, at: int) -> bool:
    """Whether a sentence goes on there."""
    return _PROSE.match(text, at) is not None


def spoken(text: str, start: int, at: int, name: str) -> bool:
    """Whether a name that starts at `start` is a word of a sentence, and so is what follows: `The secret: butter.`"""
    return bool(_THING.match(name) and _ARTICLE.search(text[max(0, start - 12) : start]) and _WORD.match(text, at))


def only_a_name(value: str, name: str, is_secret: Callable[[str], bool]) -> bool:
    """Whether a value without quotes is a variable, in code that hands it over: `api_key=openai_api_key`, `token = user.token`.

    A secret may sound like a name, too: only known words make one, and the last of them is the last of the name.
    """
    if len(value) < _SHORTEST:
        return True
    if len(value) > _LONGEST_NAME or not all(part.isidentifier() for part in value.split(".")):
        return False
    last = value.rpartition(".")[2]
    if last != value and is_secret(last) and not any(map(str.isdigit, value)):
        return True
    words = _words(last)
    return bool(words) and is_secret(last) and _FIELDS.issuperset(words) and words[-1] == (_words(name) or [""])[-1]


def field_name(text: str) -> bool:
    """Whether a text is the name of a field, as beside `password` in a list of the fields of a form."""
    return len(text) <= _LONGEST_NAME and bool(text) and _FIELDS.issuperset(_words(text))


def schema(text: str, at: int) -> bool:
    """Whether a map in a text describes a field, as in the schema of a tool's arguments."""
    found = _SCHEMA_KEYS.match(text, at)
    return found is not None and _SCHEMA_TYPE.search(found[0]) is not None


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]
