"""JSON text of any depth: the standard library does the work, iterative code takes over where it would overflow its stack."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from json.decoder import scanstring  # type: ignore[attr-defined]
from math import isinf
from typing import Any, NamedTuple

from studio.codec.inert import MapValue
from studio.lazy import lazy

Pairs = Callable[[list[tuple[str, Any]]], Any]

_TOKEN = lazy(r"[ \t\n\r]*(?:([\[\]{},:])|(\")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?)|(true|false|null|NaN|-?Infinity))")
_HALVES = lazy("[\ud800-\udfff]")
_WORDS = {"true": True, "false": False, "null": None}
_CHUNK = 4000


class Style(NamedTuple):
    """How a JSON text is laid out."""

    item: str = ", "
    key: str = ": "
    ascii: bool = False


PYTHON = Style()
"""`json.dumps(…, ensure_ascii=False)`: LangGraph 0.1 and 0.2."""
STYLES = (PYTHON, Style(ascii=True), Style(",", ":"), Style(",", ":", True))


def loads(text: str, pairs: Pairs, *, constants: bool = True, strict: bool = True) -> Any:
    """Parse; `pairs` makes each object. Integers of any length, any depth. `json.JSONDecodeError` says where it breaks."""
    constant = parse_constant if constants else _no_constant(text)
    real = float if constants else _finite(text)
    try:
        if constants:
            try:
                return _decode(text, pairs, strict)
            except _TooLong:
                pass  # its digits are kept as they are
        return json.loads(
            text, object_pairs_hook=pairs, parse_int=text_int, parse_float=real, parse_constant=constant, strict=strict
        )
    except RecursionError:
        return _loads_slow(text, pairs, constant, real, strict)


class _TooLong(Exception):
    """An integer has more digits than `int` takes."""


def _decode(text: str, pairs: Pairs, strict: bool) -> Any:
    try:
        return _decoder(pairs, strict).decode(text)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise _TooLong from error


@lru_cache(maxsize=16)
def _decoder(pairs: Pairs, strict: bool) -> json.JSONDecoder:
    """Making one takes longer than reading a short document with it, and a function for each integer longer than the rest."""
    hook = None if pairs is dict else pairs
    return json.JSONDecoder(object_pairs_hook=hook, parse_constant=parse_constant, strict=strict)


def parse_constant(word: str) -> float:
    return float(word.replace("Infinity", "inf"))


def _no_constant(text: str) -> Callable[[str], float]:
    def refuse(word: str) -> float:
        at = re.search(rf"(?<![\w\"]){re.escape(word)}", text)
        raise json.JSONDecodeError(f'{word} is no JSON, write {{"$float": …}}', text, at.start() if at else 0)

    return refuse


def _finite(text: str) -> Callable[[str], float]:
    def parse(word: str) -> float:
        number = float(word)
        if isinf(number):
            hint = f'{word:.40} is beyond the largest float, infinity is written {{"$float": "inf"}}'
            raise json.JSONDecodeError(hint, text, text.find(word))
        return number

    return parse


def _loads_slow(text: str, pairs: Pairs, constant: Callable[[str], float], real: Callable[[str], float], strict: bool) -> Any:
    stack: list[tuple[bool, list[Any]]] = []  # (is an object, its items or alternating keys and values)
    position = 0
    want = "value"  # value | first (value or close) | key | firstkey | colon | after
    value: Any = None
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            raise json.JSONDecodeError("Expecting value", text, position)
        mark, quote, number, word = match.groups()
        position, start = match.end(), match.start(match.lastindex or 0)
        complete = False
        if quote and want in ("key", "firstkey"):
            key, position = scanstring(text, position, strict)
            stack[-1][1].append(key)
            want = "colon"
        elif want == "colon" and mark == ":":
            want = "value"
        elif want in ("value", "first") and mark in ("[", "{"):
            stack.append((mark == "{", []))
            want = "firstkey" if mark == "{" else "first"
        elif want in ("value", "first") and (quote or number or word):
            if quote:
                value, position = scanstring(text, position, strict)
            elif number:
                value = text_int(number) if number.lstrip("-").isdigit() else real(number)
            else:
                value = _WORDS[word] if word in _WORDS else constant(word)
            complete = True
        elif stack and (
            (mark == "]" and want in ("first", "after") and not stack[-1][0])
            or (mark == "}" and want in ("firstkey", "after") and stack[-1][0])
        ):
            is_object, items = stack.pop()
            value = pairs(list(zip(items[::2], items[1::2], strict=True))) if is_object else items
            complete = True
        elif want == "after" and stack and mark == ",":
            want = "key" if stack[-1][0] else "value"
        else:
            raise json.JSONDecodeError("Unexpected text", text, start)
        if complete:
            if not stack:
                if text[position:].strip(" \t\n\r"):
                    raise json.JSONDecodeError("Extra data", text, position)
                return value
            stack[-1][1].append(value)
            want = "after"


def dumps(value: Any, style: Style = PYTHON, *, default: Callable[[Any], Any] | None = None, indent: int | None = None) -> str:
    """JSON text of a value of dicts with text keys, lists and scalars; `default` turns anything else into one of these."""
    if indent is None:
        try:
            text = json.dumps(
                value, ensure_ascii=style.ascii, separators=(style.item, style.key), default=default, check_circular=False
            )
        except (RecursionError, ValueError, TypeError):
            text = _dumps_slow(value, style, default, None)
    else:
        text = _dumps_slow(value, style, default, indent)
    return text if style.ascii or text.isascii() else _HALVES.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _dumps_slow(root: Any, style: Style, default: Callable[[Any], Any] | None, indent: int | None) -> str:
    quote = json.encoder.encode_basestring_ascii if style.ascii else json.encoder.encode_basestring
    out: list[str] = []
    stack: list[Any] = []  # (iterator of (key or None, value), closing mark)

    def open_one(value: Any) -> None:
        if value is None or value is True or value is False:
            out.append({None: "null", True: "true", False: "false"}[value])
        elif isinstance(value, str):
            out.append(quote(value))
        elif isinstance(value, int):
            out.append(int_text(value))
        elif isinstance(value, float):
            out.append(_float_text(value))
        elif isinstance(value, (list, tuple)):
            open_many("[", "]", iter([(None, item) for item in value]), len(value))
        elif isinstance(value, dict):
            open_many("{", "}", iter(value.items()), len(value))
        elif isinstance(value, MapValue) and all(isinstance(key, str) for key, _ in value.pairs):
            open_many("{", "}", iter(value.pairs), len(value))
        elif default is not None:
            open_one(default(value))
        else:
            raise TypeError(f"{type(value).__name__} is no JSON")

    def open_many(opening: str, closing: str, items: Any, size: int) -> None:
        out.append(opening)
        if size:
            stack.append([items, closing, True])
        else:
            out.append(closing)

    open_one(root)
    separator = style.item.rstrip() if indent is not None else style.item
    while stack:
        top = stack[-1]
        pair = next(top[0], None)
        if pair is None:
            stack.pop()
            if indent is not None:
                out.append("\n" + " " * (indent * min(len(stack), 40)))
            out.append(top[1])
            continue
        if not top[2]:
            out.append(separator)
        top[2] = False
        if indent is not None:
            out.append("\n" + " " * (indent * min(len(stack), 40)))
        if top[1] == "}":
            out.append(quote(pair[0]))
            out.append(style.key)
        open_one(pair[1])
    return "".join(out)


def _float_text(value: float) -> str:
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return float.__repr__(value)


def text_int(text: str) -> int:
    """`int(text)` without Python's limit on the number of digits."""
    if len(text) <= _CHUNK or not hasattr(sys, "get_int_max_str_digits"):
        return int(text)
    negative, digits = text.startswith("-"), text.lstrip("-")
    number = 0
    for at in range(0, len(digits), _CHUNK):
        part = digits[at : at + _CHUNK]
        number = number * 10 ** len(part) + int(part)
    return -number if negative else number


def int_text(number: int) -> str:
    """`str(number)` without Python's limit on the number of digits."""
    if -(1 << 12000) < number < 1 << 12000:
        return int.__repr__(number)
    sign, number, parts = ("-" if number < 0 else ""), abs(number), []
    while number:
        number, rest = divmod(number, 10**_CHUNK)
        parts.append(f"{rest:0{_CHUNK}d}")
    return sign + "".join(reversed(parts)).lstrip("0")
