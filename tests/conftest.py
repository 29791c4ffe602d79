from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from tests.factories import make_shop


@pytest.fixture(scope="session")
def shop_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shop(tmp_path_factory.mktemp("shop") / "shop.sqlite")


@pytest.fixture
def shop(shop_template: Path, tmp_path: Path) -> Path:
    """A private copy of the shop file, alone in a folder."""
    folder = tmp_path / "shop"
    folder.mkdir()
    path = folder / "shop.sqlite"
    path.write_bytes(shop_template.read_bytes())
    return path


@pytest.fixture(autouse=True)
def own_data_folder(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scratch files and notes of a test stay in its own folders, and so does what it keeps for a moment."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("STUDIO_DATA_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path_factory.mktemp("temporary")))
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
