"""Where the files beside the code are: pages, styles, sample threads.

In a checkout (also an editable install) `static/`, `templates/` and `sample_threads/` lie beside the package; a wheel
carries them inside it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from studio.errors import StudioError

Folder = Literal["static", "templates", "sample_threads"]

PACKAGE = Path(__file__).resolve().parent


def folder(name: Folder) -> Path:
    """Return the folder of that name; StudioError when this installation lacks it."""
    for place in (PACKAGE / name, PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise StudioError(
        f"the folder {name} is missing from this installation",
        hint="install it again: pip install --force-reinstall checkpoint-studio",
    )


def static_folder() -> Path:
    """Return the folder of the page's styles and scripts; `vendor/` in it is filled when the studio is built."""
    return folder("static")


def templates_folder() -> Path:
    """Return the folder of the page templates."""
    return folder("templates")


def sample_folder() -> Path:
    """Return the folder of the sample threads: databases, their graphs and `langgraph.json`."""
    return folder("sample_threads")
