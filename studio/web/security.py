"""The gate in front of every request: who may ask, from which page, how much, and what a browser may do with the answer.

A local server is reachable by every page that the user's browser shows, so each request proves three things before routing:
its `Host` is ours (DNS rebinding), an unsafe one comes from our own page (cross-site requests), and the browser holds the
cookie that only the start-up link gives.
"""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from studio.web.links import encode, pairs_of

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Refusal = Callable[[Scope, str, int], App]
"""The answer to a refused request, for a slug and a status: a page, or what htmx can show on the page that asked."""

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "[::1]"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_BODY = 32_000_000
"""Bytes of a form: a 5 MB text, percent-encoded, and its preview fit."""
MAX_QUERY = 16_000
OPEN_PATHS = ("/static/", "/favicon.ico")
"""What the page that says "no token" itself needs; the same for every user, so it tells nothing."""

HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CSP.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """ASGI middleware around the whole application; `token` empty means that no token is asked for (tests only)."""

    def __init__(self, app: App, *, token: str, cookie: str, refusal: Refusal, allow_hosts: Iterable[str] = ()) -> None:
        self.app = app
        self.token = token
        self.cookie = cookie
        self.refusal = refusal
        self.hosts = LOCAL_NAMES | {name.lower() for name in allow_hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})  # before it was accepted: a 403
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = _headers_of(scope)
        slug, status = self._refuse(scope, headers)
        if slug:
            await self.refusal(scope, slug, status)(scope, receive, _with_headers(send))
            return
        entry = self._entry(scope)
        if entry is not None:
            await self._enter(send, entry)
            return
        if not self._known(headers) and not str(scope["path"]).startswith(OPEN_PATHS):
            await self.refusal(scope, "token", 401)(scope, receive, _with_headers(send))
            return
        await self.app(scope, _limited(receive), _with_headers(send, static=str(scope["path"]).startswith("/static/")))

    def _refuse(self, scope: Scope, headers: dict[str, str]) -> tuple[str, int]:
        """The slug and status of a refusal that needs no token to be decided, or ("", 0)."""
        host = headers.get("host", "")
        if _host_name(host) not in self.hosts:
            return "host", 403
        if headers.get("upgrade", "").lower() == "websocket":
            return "websocket", 403
        if len(scope.get("query_string", b"")) > MAX_QUERY:
            return "too-long", 414
        if scope["method"] not in SAFE_METHODS and not _same_origin(headers, host):
            return "cross-site", 403
        length = headers.get("content-length", "0")
        if not _digits(length, most=12) or int(length) > MAX_BODY:
            return "too-large", 413
        return "", 0

    def _entry(self, scope: Scope) -> str | None:
        """Where to go on after a request that carries the right token; None for every other request."""
        if not self.token or b"token=" not in scope.get("query_string", b"") or scope["method"] != "GET":
            return None
        pairs = pairs_of(scope["query_string"])
        given = next((value for name, value in pairs if name == "token"), "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogatepass"), self.token.encode()):
            return None
        rest = encode(pair for pair in pairs if pair[0] != "token")
        path = (scope.get("raw_path") or str(scope["path"]).encode()).decode("latin-1").split("?", 1)[0]
        path = "/" + path.lstrip("/\\")  # `//host` would leave this server
        return f"{path}?{rest}" if rest else path

    async def _enter(self, send: Send, location: str) -> None:
        cookie = f"{self.cookie}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        goes = (b"location", location.encode("latin-1", "replace"))
        headers = [goes, (b"set-cookie", cookie.encode()), (b"content-length", b"0")]
        sending = _with_headers(send)
        await sending({"type": "http.response.start", "status": 303, "headers": headers})
        await sending({"type": "http.response.body", "body": b""})

    def _known(self, headers: dict[str, str]) -> bool:
        if not self.token:
            return True
        token = self.token.encode()
        held = (value for name, value in _cookies_of(headers.get("cookie", "")) if name == self.cookie)
        return any(hmac.compare_digest(value.encode("latin-1"), token) for value in held)


class TooLarge(Exception):
    """A body that grew past the limit while it was read (chunked requests name no length)."""


def _limited(receive: Receive) -> Receive:
    read = 0

    async def limited() -> Message:
        nonlocal read
        message = await receive()
        read += len(message.get("body", b""))
        if read > MAX_BODY:
            raise TooLarge
        return message

    return limited


def _with_headers(send: Send, *, static: bool = False) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = list(message.get("headers", ()))
            headers.extend(HEADERS)
            if not static:
                headers = [pair for pair in headers if pair[0].lower() != b"cache-control"]
                headers += [(b"cache-control", b"no-store"), (b"vary", b"HX-Request, HX-Request-Type, Cookie")]
            message["headers"] = headers
        await send(message)

    return sending


def _headers_of(scope: Scope) -> dict[str, str]:
    """Lower-case name to value; cookies may come in several headers."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        found[name] = f"{found[name]}; {value}" if name == "cookie" and name in found else value
    return found


def _cookies_of(header: str) -> Iterable[tuple[str, str]]:
    """(name, value) of each cookie in a `Cookie` header.

    Every server on this machine shares one jar whatever its port, and the standard library's reader gives up on the whole
    header at the first odd cookie of another program. Nothing of ours needs quotes or escapes.
    """
    for part in header.split(";"):
        name, _, value = part.partition("=")
        yield name.strip(), value.strip()


def _host_name(host: str) -> str:
    """The name in a `Host` header without its port, lower case; brackets of IPv6 stay; "" when it is malformed."""
    if host.startswith("["):
        name, bracket, rest = host.partition("]")
        good = bracket and (not rest or (rest[0] == ":" and _digits(rest[1:])))
        return (name + bracket).lower() if good else ""
    name, colon, port = host.partition(":")
    return "" if colon and not _digits(port) else name.lower()


def _digits(text: str, most: int = 5) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= most


def _same_origin(headers: dict[str, str], host: str) -> bool:
    """Whether an unsafe request was sent by a page of this server.

    `Sec-Fetch-Site` cannot be set by a page. With `no-referrer` a browser sends `Origin: null` for a plain form, which is
    accepted only together with `same-origin`.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site not in ("same-origin", "none") or origin is None:
        return False
    if origin == "null":
        return site == "same-origin"
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
