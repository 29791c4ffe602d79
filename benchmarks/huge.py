"""Makes states that are far too large for a screen with the real saver, and times every view of them.

Seconds of processor time of one warm process, by a session opened for that view alone, so that each figure holds reading,
decoding, comparing and drawing. `python benchmarks/huge.py [FOLDER] [--only FILE] [--views WORDS] [--best-of N]` keeps the files
in FOLDER.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import io
import operator
import os
import random
import sqlite3
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from starlette.testclient import TestClient

from studio.cli import main as command
from studio.session import Session
from studio.tui.app import StudioApp
from studio.tui.main import MainScreen
from studio.web import create_app

WORDS = ["order", "kettle", "refund", "customer", "ticket", "shipped", "total", "please", "between", "warehouse", "agent"]
TABS = ("changes", "conversation", "state", "tasks", "raw", "graph")
PANES = ("changes", "conversation", "state", "tasks", "raw", "graph")


class Value(TypedDict, total=False):
    value: Any
    note: str


class Appended(TypedDict, total=False):
    value: Annotated[list[Any], operator.add]
    note: str


class Chat(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]


def text(characters: int, seed: int) -> str:
    """Words in lines, about so many characters."""
    rng = random.Random(seed)
    line = [" ".join(rng.choices(WORDS, k=12)) for _ in range(997)]
    return "\n".join(f"{n} {line[n * 7 % 997]}" for n in range(characters // 88))


def edited(before: str, places: int) -> str:
    """The same text with one word changed in so many places."""
    lines = before.split("\n")
    for at in range(places):
        lines[(2 * at + 1) * len(lines) // (2 * places)] += f" edited{at}"
    return "\n".join(lines)


def items(count: int) -> list[dict[str, Any]]:
    """Small maps, about 300 bytes each."""
    note = "the customer was told that the parcel is late; " * 4
    return [{"id": f"row-{n}", "kind": "event", "at": n * 0.25, "ok": n % 3 == 0, "note": f"{n} {note}"} for n in range(count)]


def chat(turns: int) -> list[AnyMessage]:
    """A long conversation, some 700 characters a message."""
    said = "I looked at the order again and it is still in the warehouse. " * 10
    return [(AIMessage if n % 2 else HumanMessage)(f"{n}: {said}", id=f"m{n}") for n in range(turns)]


def two_steps(schema: Any, first: dict[str, Any], second: dict[str, Any]) -> Callable[[Path], None]:
    """A graph of two nodes; each writes what is given."""

    def make(path: Path) -> None:
        builder: StateGraph[Any] = StateGraph(schema)
        builder.add_node("first", lambda state: first)
        builder.add_node("second", lambda state: second)
        builder.add_edge(START, "first")
        builder.add_edge("first", "second")
        builder.add_edge("second", END)
        connection = sqlite3.connect(path, check_same_thread=False)
        try:
            graph = builder.compile(checkpointer=SqliteSaver(connection))
            graph.invoke({"messages": []} if schema is Chat else {"note": "begin"}, {"configurable": {"thread_id": "huge"}})
        finally:
            connection.close()

    return make


def of_values(before: Any, after: Any) -> Callable[[Path], None]:
    """One channel that holds `before`, then `after`."""
    return two_steps(Value, {"value": before}, {"value": after})


def files() -> dict[str, Callable[[], Callable[[Path], None]]]:
    """Name -> how to make the file; each is a thread `huge` whose last superstep made the change."""
    wide: Any = TypedDict("wide", {**{f"channel_{n:04}": Any for n in range(2_000)}, "note": str}, total=False)  # type: ignore[operator]
    channels = {f"channel_{n:04}": {"count": n, "words": WORDS} for n in range(2_000)}
    keys = {f"key-{n:06}": {"n": n, "word": WORDS[n % 11]} for n in range(200_000)}
    long = text(30_000_000, 1)
    return {
        "small": lambda: of_values("a", "b"),
        "text": lambda: of_values(long, edited(long, 1)),
        "list": lambda: two_steps(Appended, {"value": items(150_000)}, {"value": items(150_001)[-1:]}),
        "both": lambda: of_values({"text": long, "items": items(60_000)}, {"text": edited(long, 1), "items": items(60_001)}),
        "wide": lambda: two_steps(wide, channels, {f"channel_{n:04}": {"count": -n} for n in (7, 900, 1999)}),
        "edits": lambda: of_values(text(5_000_000, 2), edited(text(5_000_000, 2), 1_000)),
        "other": lambda: of_values(text(5_000_000, 3), text(5_000_000, 4)[::-1]),
        "keys": lambda: of_values(keys, {**keys, "key-100000": {"n": -1, "word": "changed"}}),
        "chat": lambda: two_steps(Chat, {"messages": chat(900)}, {"messages": [AIMessage("done", id="last")]}),
    }


def timed(work: Callable[[], Any]) -> float:
    """Seconds of processor time, over all threads of this process."""
    gc.collect()
    began = time.process_time()
    work()
    return time.process_time() - began


def web(path: Path, tab: str) -> float:
    """One page of the browser view."""
    session = Session.open(str(path))
    try:
        app = create_app([session], token="")
        with TestClient(app, base_url="http://127.0.0.1") as client:

            def get() -> None:
                answer = client.get(f"/f/{path.name}?tab={tab}")
                assert answer.status_code == 200, answer.text[:500]

            return timed(get)
    finally:
        session.close()


def terminal(path: Path, pane: str) -> float:
    """The terminal UI from its start to a drawn pane of the last checkpoint."""

    async def look() -> float:
        session = Session.open(str(path))
        try:
            gc.collect()
            began = time.process_time()
            app = StudioApp(session)
            async with app.run_test(size=(120, 40)) as pilot:

                def drawn() -> bool:
                    main = next((screen for screen in app.screen_stack if isinstance(screen, MainScreen)), None)
                    at_rest = all(worker.is_finished for worker in app.workers)
                    return at_rest and main is not None and main.point is not None and main._drawn.get(main.tab) == main._asked

                while not drawn():
                    await pilot.pause(0.02)
                if pane != "changes":
                    next(one for one in app.screen_stack if isinstance(one, MainScreen)).action_do(pane)
                    await pilot.pause()
                while not drawn():
                    await pilot.pause(0.02)
                return time.process_time() - began
        finally:
            session.close()

    return asyncio.run(look())


def line(path: Path, *words: str) -> float:
    """One command, its output thrown away."""

    def call() -> None:
        with contextlib.redirect_stdout(io.StringIO()):
            assert command([words[0], str(path), *words[1:]]) == 0

    return timed(call)


def views() -> dict[str, Callable[[Path], float]]:
    """Name of a view -> how to time it on a file."""
    found: dict[str, Callable[[Path], float]] = {f"web {tab}": lambda path, tab=tab: web(path, tab) for tab in TABS}  # type: ignore[misc]
    found |= {f"tui {pane}": lambda path, pane=pane: terminal(path, pane) for pane in PANES}  # type: ignore[misc]
    found |= {
        "show": lambda path: line(path, "show", "head"),
        "diff": lambda path: line(path, "diff", "head"),
        "diff --json": lambda path: line(path, "diff", "head", "--json"),
    }
    return found


def chosen(names: Iterator[str] | list[str], words: str | None) -> list[str]:
    """The names that hold one of some words, separated by commas."""
    return [name for name in names if words is None or any(word in name for word in words.split(","))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", help="where the files are kept")
    parser.add_argument("--only", help="files, separated by commas")
    parser.add_argument("--views", help="parts of the names of views, separated by commas")
    parser.add_argument("--best-of", type=int, default=1, help="how often each view is timed; the least is printed")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["STUDIO_DATA_DIR"] = temporary
        os.environ["NO_COLOR"] = "1"
        folder = Path(options.folder or temporary)
        folder.mkdir(exist_ok=True)
        names = chosen(list(files()), options.only)
        looks = {name: view for name, view in views().items() if name in chosen(list(views()), options.views)}
        for name in ["small", *names]:
            if not (folder / f"{name}.sqlite").exists():
                files()[name]()(folder / f"{name}.sqlite")
        for view in looks.values():
            view(folder / "small.sqlite")
        print("| view | " + " | ".join(names) + " |\n| --- |" + " --- |" * len(names), flush=True)
        for title, view in looks.items():
            figures = [min(view(folder / f"{name}.sqlite") for _ in range(options.best_of)) for name in names]
            print(f"| {title} | " + " | ".join(f"{figure:.2f}" for figure in figures) + " |", flush=True)


if __name__ == "__main__":
    main()
