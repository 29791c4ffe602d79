from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from studio.session import Session
from studio.web import create_app

SAMPLES = Path(__file__).resolve().parents[2] / "sample_threads"
OURS = {"Sec-Fetch-Site": "same-origin", "Origin": "http://127.0.0.1"}
"""What a browser sends with a form of our own page."""


@contextmanager
def client_of(*locations: Path, token: str = "", show_secrets: bool = False) -> Iterator[TestClient]:
    """An in-process browser over opened files; the token is switched off unless one is given."""
    sessions = [Session.open(str(location), show_secrets=show_secrets) for location in locations]
    try:
        app = create_app(sessions, token=token)
        with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
            yield client
        app.book.close()
    finally:
        for session in sessions:
            session.close()


@pytest.fixture
def support(tmp_path: Path) -> Path:
    """A private copy of the support agent's threads beside its graphs."""
    folder = tmp_path / "project"
    folder.mkdir()
    for name in (
        "support_agent.sqlite",
        "graphs.py",
        "support_agent.py",
        "research_team.py",
        "scripted_model.py",
        "langgraph.json",
        "facts.json",
    ):
        (folder / name).write_bytes((SAMPLES / name).read_bytes())
    return folder / "support_agent.sqlite"


@pytest.fixture
def page(support: Path) -> Iterator[TestClient]:
    with client_of(support) as client:
        yield client
