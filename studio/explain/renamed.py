"""Values that are the same but for the module of a type: a script stores `__main__.Order`, its run as a module `shop.Order`."""

from __future__ import annotations

from studio.model import Value
from studio.value import Tagged, equal


def only_renamed(before: Value, after: Value) -> bool:
    """Whether two values differ, and only in the modules of types that kept their own name."""
    found = False
    pairs: list[tuple[Value, Value]] = [(before, after)]
    while pairs:
        a, b = pairs.pop()
        if isinstance(a, Tagged) and isinstance(b, Tagged):
            if (a.kind, a.name, a.code, a.method) != (b.kind, b.name, b.code, b.method):
                return False
            found = found or a.type_name != b.type_name
            if a.kind == "fields":
                pairs.append((dict(a.fields), dict(b.fields)))
            elif a.kind == "args":
                pairs.append((list(a.args), list(b.args)))
            elif a.kind == "items":
                pairs.append((list(a.items), list(b.items)))
            elif not equal(a, b):
                return False
        elif isinstance(a, dict) and isinstance(b, dict):
            if list(a) != list(b):
                return False
            pairs.extend((a[key], b[key]) for key in a)
        elif isinstance(a, list) and isinstance(b, list):
            if len(a) != len(b):
                return False
            pairs.extend(zip(a, b, strict=True))
        elif not equal(a, b):
            return False
    return found
