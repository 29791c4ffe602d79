"""The user's data folder: where forks, notes, and what is kept of large files lie."""

from __future__ import annotations

import os
from pathlib import Path

ENV = "STUDIO_DATA_DIR"
"""Names another folder."""


def data_folder() -> Path:
    """Not necessarily there yet."""
    if given := os.environ.get(ENV):
        return Path(given).expanduser().absolute()
    import platformdirs  # only needed once a place is asked for

    return Path(platformdirs.user_data_dir("checkpoint-studio", appauthor=False))
