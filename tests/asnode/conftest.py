from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.asnode.project import make_project
from tests.cli.conftest import studio  # noqa: F401


@pytest.fixture(scope="session")
def made_shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_project(tmp_path_factory.mktemp("made") / "project")


@pytest.fixture
def shop(made_shop: Path, tmp_path: Path) -> Path:
    """A project of its own, with its database."""
    shutil.copytree(made_shop.parent, tmp_path / "project", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "project" / "shop.sqlite"
