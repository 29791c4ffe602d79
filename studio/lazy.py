"""Regular expressions that are compiled when a text is first compared with them: most calls need few of many."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _Lazy:
    """Stands for a pattern until a method of it is asked for."""

    def __init__(self, pattern: Any, flags: int) -> None:
        self._made = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        compiled = re.compile(*self._made)
        for method in ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "pattern"):
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy(pattern: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """What `re.compile` gives, later. `re.error` comes with the first use."""
    return cast("re.Pattern[AnyStr]", _Lazy(pattern, flags))
