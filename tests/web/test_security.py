from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from starlette.testclient import TestClient

from studio.session import Session
from studio.web import create_app
from studio.web.security import CSP
from tests.web.conftest import OURS, client_of

PAGE = "/f/shop.sqlite?thread=done"


def test_without_the_token_every_page_is_refused_with_words_that_help(shop: Path) -> None:
    with client_of(shop, token="right") as client:
        for path in ("/", PAGE, "/f/shop.sqlite/events", "/f/shop.sqlite/copy/copy_id?thread=done", "/nowhere"):
            answer = client.get(path)
            assert answer.status_code == 401, path
            assert "link that it printed" in answer.text
            assert answer.headers["content-security-policy"] == CSP


def test_the_token_becomes_a_strict_cookie_and_leaves_the_address(shop: Path) -> None:
    with client_of(shop, token="right") as client:
        answer = client.get(PAGE + "&token=right", follow_redirects=False)
        assert answer.status_code == 303 and answer.headers["location"] == PAGE
        cookie = answer.headers["set-cookie"]
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and cookie.startswith("studio-0=")
        assert client.get(PAGE).status_code == 200


@pytest.mark.parametrize("token", ["wrong", "", "right%20", "%ff"])
def test_a_wrong_token_or_cookie_opens_nothing(shop: Path, token: str) -> None:
    with client_of(shop, token="right") as client:
        assert client.get(f"/?token={token}").status_code == 401
        assert client.get("/", headers={"Cookie": "studio-0=wrong; =;;"}).status_code == 401


@pytest.mark.parametrize(
    "others",
    [
        '{"a":1}=x',
        "a[0]=1",
        "=",
        "no-value",
        'open="quoted',
        "caf\u00e9=\u00fc",
        "studio-0=of-an-older-server",
        "a=b=c",
        "a,b=1",
        "$Version=1",
    ],
)
def test_cookies_of_other_programs_on_this_machine_never_hide_ours(shop: Path, others: str) -> None:
    with client_of(shop, token="right") as client:
        for cookie in (f"{others}; studio-0=right", f"studio-0=right; {others}", f"{others};studio-0=right;{others}"):
            assert client.get(PAGE, headers={"Cookie": cookie.encode("latin-1")}).status_code == 200, cookie
        assert client.get(PAGE, headers=[("Cookie", "studio-0=right"), ("Cookie", "a=1")]).status_code == 200


def test_the_token_never_redirects_to_another_server(shop: Path) -> None:
    with client_of(shop, token="right") as client:
        answer = client.get("//evil.example/x?token=right", follow_redirects=False)
        assert answer.headers.get("location", "/").startswith("/") and not answer.headers.get("location", "/").startswith("//")


@pytest.mark.parametrize(
    ("host", "status"),
    [("127.0.0.1:81", 200), ("localhost", 200), ("LOCALHOST:9", 200), ("[::1]:81", 200), ("work.example", 200),
     ("evil.example", 403), ("127.0.0.1.evil.example", 403), ("127.0.0.1:81:82", 403), ("[::1", 403), ("", 403)],
)  # fmt: skip
def test_only_names_of_this_machine_are_served(shop: Path, host: str, status: int) -> None:
    from studio.session import Session
    from studio.web import create_app

    session = Session.open(str(shop))
    app = create_app(session, token="", allow_hosts=["work.example"])
    answer = TestClient(app, base_url="http://127.0.0.1").get(PAGE, headers={"Host": host})
    session.close()
    assert answer.status_code == status


@pytest.mark.parametrize(
    "headers",
    [{}, {"Sec-Fetch-Site": "same-origin"}, {"Origin": "http://127.0.0.1"}, {**OURS, "Sec-Fetch-Site": "cross-site"},
     {**OURS, "Sec-Fetch-Site": "same-site"}, {**OURS, "Origin": "http://evil.example"}, {**OURS, "Origin": "http://127.0.0.1:81"},
     {"Sec-Fetch-Site": "none", "Origin": "null"}, {"Sec-Fetch-Site": "cross-site", "Origin": "null"}],
)  # fmt: skip
def test_what_another_page_sends_is_refused_before_routing(shop: Path, headers: dict[str, str]) -> None:
    with client_of(shop) as client:
        for path in ("/theme", "/f/shop.sqlite/fork?thread=done", "/nowhere"):
            assert client.post(path, headers=headers, data={"act": "fork"}).status_code == 403
        assert client.delete(PAGE, headers=headers).status_code == 403


def test_a_plain_form_of_our_own_page_is_accepted_though_its_origin_is_hidden(shop: Path) -> None:
    with client_of(shop) as client:
        hidden = {"Sec-Fetch-Site": "same-origin", "Origin": "null"}
        assert client.post("/theme", headers=hidden, data={"theme": "dark"}, follow_redirects=False).status_code == 303


def test_every_answer_carries_the_headers(shop: Path) -> None:
    with client_of(shop) as client:
        for path in ("/", PAGE, "/f/shop.sqlite?thread=none", "/f/none", "/nowhere", "/static/css/tokens.css", "/favicon.ico"):
            headers = client.get(path).headers
            assert headers["content-security-policy"] == CSP, path
            assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert client.get(PAGE).headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "path",
    ["/static/../pyproject.toml", "/static/%2e%2e/pyproject.toml", "/static/..%2f..%2fetc/passwd", "/static//etc/passwd",
     "/static/css", "/static/src/editor-bundle.js/..", "/static/%00", "/static/css/../../README.md", "/static/css/tokens.css/"],
)  # fmt: skip
def test_nothing_outside_the_static_folder_is_served(shop: Path, path: str) -> None:
    with client_of(shop) as client:
        assert client.get(path).status_code == 404


def test_sizes_are_limited(shop: Path) -> None:
    with client_of(shop) as client:
        assert client.get("/?q=" + "x" * 20_000).status_code == 414
        headers = {**OURS, "Content-Length": str(10**9), "Content-Type": "application/x-www-form-urlencoded"}
        assert client.post("/theme", headers=headers, content=b"").status_code == 413
        parts = (b"theme=" + b"x" * 1_000_000 for _ in range(40))
        answer = client.post("/theme", headers={**OURS, "Content-Type": "application/x-www-form-urlencoded"}, content=parts)
        assert answer.status_code == 413


def test_there_are_no_pages_that_describe_the_api(shop: Path) -> None:
    with client_of(shop) as client:
        for path in ("/docs", "/redoc", "/openapi.json"):
            assert client.get(path).status_code == 404


def test_a_web_socket_is_refused_whatever_its_address(shop: Path) -> None:
    with client_of(shop) as client:
        for path in ("/", PAGE, "/f/shop.sqlite/events", "/nowhere"):
            answer = client.get(path, headers={"Connection": "Upgrade", "Upgrade": "WebSocket"})
            assert answer.status_code == 403 and "web sockets" in answer.text


async def test_a_server_that_opens_web_sockets_is_told_to_close_them(shop: Path) -> None:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    with closing(Session.open(str(shop))) as session:
        scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"127.0.0.1")], "query_string": b""}
        await create_app(session)(scope, receive, send)
    assert [message["type"] for message in said] == ["websocket.close"]


def test_the_server_refuses_a_web_socket_without_a_word_on_the_terminal(shop: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "studio", "web", str(shop), "--no-browser"]
    env = {**os.environ, "STUDIO_DATA_DIR": str(tmp_path / "kept")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as server:
        try:
            assert server.stdout is not None
            link = urlsplit(server.stdout.readline().split()[-1])
            assert link.port is not None
            for path in ("/", f"/?{link.query}", "/f/shop.sqlite/events"):
                with socket.create_connection(("127.0.0.1", link.port), timeout=10) as connection:
                    connection.sendall(
                        f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{link.port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
                    )
                    assert connection.recv(4096).startswith(b"HTTP/1.1 403 ")
        finally:
            server.terminate()
        assert server.communicate(timeout=20)[1] == ""
