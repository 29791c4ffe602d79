"""Server-sent events: names only ("tree", "run", "lost", "followed").

The page then fetches the ordinary fragment, so a lost event does no harm."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

from studio.session import Session

PING_SECONDS = 15.0
MERGE_SECONDS = 0.05
"""Events that come this close together are sent as one."""


async def stream(session: Session, stopping: Callable[[], bool]) -> AsyncIterator[bytes]:
    """Bytes of an event stream until the client goes or the server stops."""
    loop = asyncio.get_running_loop()
    names: asyncio.Queue[str] = asyncio.Queue(maxsize=10_000)

    def put(name: str) -> None:
        try:
            names.put_nowait(name)
        except asyncio.QueueFull:
            pass  # a client that reads nothing needs no more names

    def tell(name: str) -> None:
        try:
            loop.call_soon_threadsafe(put, name)
        except RuntimeError:
            pass  # the loop is closed: the server is going down

    unsubscribe = await asyncio.to_thread(session.subscribe, tell)
    quiet = 0.0
    try:
        yield b"retry: 1000\n\n" + _event("hello", "")
        if not session.is_followed:
            yield _event("lost", "")
        while not stopping():
            try:
                first = await asyncio.wait_for(names.get(), 0.5)
            except TimeoutError:
                quiet += 0.5
                if quiet >= PING_SECONDS:
                    quiet = 0.0
                    yield b": ping\n\n"
                continue
            quiet = 0.0
            await asyncio.sleep(MERGE_SECONDS)
            found = {first}
            while not names.empty():
                found.add(names.get_nowait())
            for name in sorted(found):
                event, _, detail = name.partition(":")
                if event == "follow":  # as it is now: two that came together were merged
                    event = "followed" if session.is_followed else "lost"
                yield _event(event, detail)
    finally:
        unsubscribe()


def _event(name: str, detail: str) -> bytes:
    return f"event: {name}\ndata: {detail or name}\n\n".encode()
