"""Templates to HTML: one page each, one `{% block %}` per piece that can be swapped."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from studio import assets
from studio.render import labels
from studio.web.links import sealed
from studio.web.names import without_keys
from studio.web.views.forks import ANSWER_FIELDS

STYLES = (
    "css/tokens.css",
    "css/base.css",
    "css/layout.css",
    "css/sizes.css",
    "css/timeline.css",
    "css/value.css",
    "css/cards.css",
    "css/chat.css",
    "css/reading.css",
    "css/branches.css",
    "css/graph.css",
    "css/side.css",
    "css/fork.css",
    "css/rewrite.css",
    "css/run.css",
    "css/threads.css",
    "css/tables.css",
    "css/promote.css",
    "css/dialog.css",
)
MODULES = (
    "js/cursor.js",
    "js/keys.js",
    "js/palette.js",
    "js/hits.js",
    "js/live.js",
    "js/panels.js",
    "js/copy.js",
    "js/editor.js",
    "js/keep.js",
    "js/messages.js",
    "js/chat.js",
    "js/graph.js",
)


class Pages:
    """The templates of the page; safe to share between threads."""

    def __init__(self, *, show_secrets: bool = False) -> None:
        self._show_secrets = show_secrets
        self.static = assets.static_folder().resolve()
        self._env = Environment(
            loader=FileSystemLoader(assets.templates_folder()),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._env.globals.update(asset=self.asset, styles=STYLES, modules=MODULES)
        self._env.globals.update(may_happen_again=labels.MAY_HAPPEN_AGAIN, answer_fields=ANSWER_FIELDS)
        self._env.filters.update(sealed=sealed, plural=labels.plural, would_import=labels.would_import)

    def asset(self, name: str) -> str:
        """The address of a static file; its content's hash in it lets the browser keep it.

        Modules import each other by plain names, so theirs carry no hash (it would load them twice).
        """
        if name.startswith("js/"):
            return f"/static/{name}"
        return f"/static/{name}?v={_digest(self.static / name)}"

    def page(self, name: str, theme: str = "", **context: Any) -> str:
        return self._shown(self._env.get_template(name).render(theme=theme, **context))

    def block(self, name: str, block: str, **context: Any) -> str:
        """One block of a page by itself, for a swap."""
        template = self._env.get_template(name)
        return self._shown("".join(template.blocks[block](template.new_context({"theme": "", **context}))))

    def macro(self, name: str, macro: str, *arguments: Any, reveal: bool = False) -> str:
        """One macro of a file of macros by itself; `reveal`: a person asked to see what is masked in it."""
        drawn = str(getattr(self._env.get_template(name).module, macro)(*arguments))
        return drawn if reveal else self._shown(drawn)

    def _shown(self, drawn: str) -> str:
        return drawn if self._show_secrets else without_keys(drawn)


@lru_cache(maxsize=256)
def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    except OSError:
        return "missing"
