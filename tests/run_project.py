"""A user's project in a folder: real LangGraph graphs in `graphs.py`, a `langgraph.json`, a `.env`."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import ormsgpack
from langgraph.graph import StateGraph
from langgraph.types import Command

from studio.requests import GraphSpec
from tests.factories import config, saver_at

GRAPHS = '''
import asyncio, contextlib, dataclasses, enum, logging, operator, os, subprocess, sys, time
from pathlib import Path
from typing import Annotated, Any, TypedDict
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt


class Mood(enum.Enum):
    GOOD = "good"

@dataclasses.dataclass
class Ticket:
    number: int
    mood: Mood

@dataclasses.dataclass
class Loose:
    """In the state only behind `Any`: not part of the schema."""
    text: str


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[str], operator.add]
    n: int
    ticket: Ticket
    anything: Any


def note(text):
    """One line per node body that really ran, in a file beside the graphs."""
    with open("ran.txt", "a") as file:
        file.write(text + "\\n")

def first(state):
    print("first runs with", state.get("n"))
    logging.getLogger("shop").warning("careful")
    note("first")
    return {"log": ["first"], "n": state.get("n", 0) + 1, "ticket": Ticket(7, Mood.GOOD)}

def second(state):
    note("second")
    assert state["ticket"].mood is Mood.GOOD, repr(state["ticket"])
    return {"log": [f"second saw {state['n']}"]}

def line(*nodes):
    builder = StateGraph(State)
    for before, node in zip((None, *nodes), nodes):
        builder.add_node(node.__name__, node)
        builder.add_edge(before.__name__ if before else START, node.__name__)
    return builder

builder = line(first, second)
graph = builder.compile()

def make():
    return builder

def make_with(config):
    note("thread " + config["configurable"]["thread_id"])
    return builder.compile()

async def make_later(config):
    await asyncio.sleep(0)
    return builder.compile()

@contextlib.asynccontextmanager
async def make_around():
    note("opened")
    yield builder.compile()
    note("closed")

async def slow_first(state):
    await asyncio.sleep(0)
    note("slow_first")
    return {"log": ["slow"]}

only_async = line(slow_first).compile()

def starts_a_loop(state):
    return {"log": [asyncio.run(asyncio.sleep(0, "looped"))]}

own_loop = line(starts_a_loop).compile()

def ask(state):
    note("ask")
    return {"log": ["ask:" + str(interrupt({"question": f"go on with {state.get('n')}?"}))]}

asking = line(first, ask, second).compile()

def left(state):
    note("left")
    return {"log": ["left:" + str(interrupt("left?"))]}

def right(state):
    note("right")
    return {"log": ["right:" + str(interrupt("right?"))]}

def calm(state):
    note("calm")
    return {"log": ["calm"]}

def last(state):
    note("last")
    return {"log": ["last"]}

def spread(*nodes):
    wide = StateGraph(State)
    wide.add_node("first", first)
    wide.add_node("last", last)
    wide.add_edge(START, "first")
    for node in nodes:
        wide.add_node(node.__name__, node)
        wide.add_edge("first", node.__name__)
        wide.add_edge(node.__name__, "last")
    return wide

two_questions = spread(left, right, calm).compile()

def shaky(state, config: RunnableConfig):
    note("shaky")
    if not os.path.exists("repaired"):
        # LangGraph drops what a sibling writes after a failure: it is the last to end
        values = config["configurable"]
        here = {"configurable": {"thread_id": values["thread_id"], "checkpoint_ns": ""}}
        until = time.monotonic() + 20
        while not values["__pregel_checkpointer"].get_tuple(here).pending_writes and time.monotonic() < until:
            time.sleep(0.005)
        raise ValueError("the shelf fell down")
    return {"log": ["shaky"]}

failing = spread(shaky, calm).compile()

def ask_twice(state):
    one = interrupt("one?")
    two = interrupt("two?")
    return {"log": [f"{one}+{two}"]}

twice = line(ask_twice).compile()

inner = line(calm, ask).compile()
outer_builder = StateGraph(State)
outer_builder.add_node("first", first)
outer_builder.add_node("inside", inner)
outer_builder.add_node("last", last)
outer_builder.add_edge(START, "first")
outer_builder.add_edge("first", "inside")
outer_builder.add_edge("inside", "last")
outer = outer_builder.compile()

def endless(state):
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    child = subprocess.Popen(["sleep", "600"])
    Path("grandchild.pid").write_text(str(child.pid))
    while True:
        pass

looping = line(endless).compile()

def shout(state):
    for number in range(200_000):
        print("line", number)
    sys.stdout.write("x" * 3_000_000)
    return {"log": ["shouted"]}

flood = line(shout).compile()

def around(state):
    return {"log": ["round"]}

circle_builder = line(around)
circle_builder.add_edge("around", "around")
circle = circle_builder.compile()

def env(state):
    return {"log": [os.environ.get("SHOP_KEY", "none"), os.environ.get("QUOTED", "none")]}

environment = line(env).compile()

def who(state, config):
    return {"log": [str(config["configurable"].get("user_id")), str(config["configurable"].get("tier"))]}

configured = line(who).compile()

def vanish(state):
    print("last words", flush=True)
    os._exit(3)

vanishing = line(vanish).compile()

def bury(state):
    raise ValueError("long " * 2_000_000)

burying = line(bury).compile()

def cut_off(state):
    os.closerange(3, 64)
    time.sleep(600)

cutting = line(cut_off).compile()

def run_away(state):
    child = subprocess.Popen(["sleep", "600"], start_new_session=True)
    Path("runaway.pid").write_text(str(child.pid))
    time.sleep(600)

running_away = line(run_away).compile()

print("printed while it is imported")
sys.stdout.flush()
os.write(1, b'{"event": "end", "status": "done"}\\n')

def leave(state):
    sys.exit("enough")

leaving = line(leave).compile()

def keep_loose(state):
    return {"anything": Loose("kept")}

def read_loose(state):
    return {"log": [repr(state["anything"])]}

loose = line(keep_loose, read_loose).compile()

def call_tool(state):
    call = {"name": "refund", "args": {"order": "4711", "amount": 499.0}, "id": "call_1"}
    return {"messages": [AIMessage("", id="ai-1", tool_calls=[call])]}

def tools(state):
    note("refund")
    return {"messages": [ToolMessage("done", tool_call_id="call_1", name="refund", id="tool-1")]}

refunding = line(call_tool, tools).compile()
refund_beside = spread(shaky, tools).compile()

def fan(state):
    return [Send("grade", {"n": number}) for number in range(2)]

def grade(state):
    note(f"grade {state['n']}")
    return {"log": [f"grade {state['n']}:" + str(interrupt(state["n"]) if state["n"] else "free")]}

fanned_builder = StateGraph(State)
fanned_builder.add_node("first", first)
fanned_builder.add_node("grade", grade)
fanned_builder.add_node("last", last)
fanned_builder.add_edge(START, "first")
fanned_builder.add_conditional_edges("first", fan, ["grade"])
fanned_builder.add_edge("grade", "last")
fanned = fanned_builder.compile()

def prepare(state):
    note(f"prepare {state['n']}")
    return {"log": [f"prepare {state['n']}"]}

pair = spread(calm, prepare).compile()

class Told(TypedDict):
    log: Annotated[list[str], operator.add]

def send_to_subgraphs(asks_from):
    """Three Sends to a subgraph, the last of which ask."""
    def decide(state):
        note(f"decide {state['n']}")
        answer = interrupt(f"{state['n']}?") if state["n"] >= asks_from else "free"
        return {"log": [f"decide {state['n']}:{answer}"]}
    sending = StateGraph(State)
    sending.add_node("first", first)
    clerk = StateGraph(State, output_schema=Told)
    clerk.add_sequence([prepare, decide])
    clerk.add_edge(START, "prepare")
    sending.add_node("clerk", clerk.compile())
    sending.add_node("last", last)
    sending.add_edge(START, "first")
    sending.add_conditional_edges("first", lambda state: [Send("clerk", {"n": number}) for number in range(3)], ["clerk"])
    sending.add_edge("clerk", "last")
    return sending

clerks = send_to_subgraphs(2).compile()
clerks_ask = send_to_subgraphs(1).compile()

not_a_graph = {"a": 1}
'''


def make_project(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "graphs.py").write_text(GRAPHS)
    names = re.findall(r"^(\w+) = .*(?:line|compile)\(", GRAPHS, re.MULTILINE) + re.findall(r"def (make\w*)\(", GRAPHS)
    graphs = {name: f"./graphs.py:{name}" for name in names}
    (folder / "langgraph.json").write_text(json.dumps({"graphs": graphs, "env": ".env", "dependencies": ["."]}))
    (folder / ".env").write_text('# keys\nexport SHOP_KEY=from-the-file # not a secret\nQUOTED="two words"\n')
    return folder


def spec(project: Path, name: str) -> GraphSpec:
    return GraphSpec(graph=name, cwd=str(project))


def ran(project: Path) -> list[str]:
    """Node bodies that ran since the last look."""
    path = project / "ran.txt"
    lines = path.read_text().split("\n")[:-1] if path.exists() else []
    path.unlink(missing_ok=True)
    return lines


def record(
    project: Path,
    database: Path,
    name: str,
    thread: str,
    given: Any,
    *,
    resume: Any = None,
    serde: Any = None,
    **configurable: Any,
) -> None:
    """Run a graph of the project here, with its real saver, as the user's own program would."""
    spec_ = importlib.util.spec_from_file_location("graphs", project / "graphs.py")
    assert spec_ is not None and spec_.loader is not None
    module = importlib.util.module_from_spec(spec_)
    before, sys.modules["graphs"] = sys.modules.get("graphs"), module
    here = os.getcwd()
    os.chdir(project)
    try:
        spec_.loader.exec_module(module)
        with saver_at(database) as saver:
            saver.serde = serde or saver.serde
            found = getattr(module, name)
            graph = found.compile(checkpointer=saver) if isinstance(found, StateGraph) else found
            graph.checkpointer = saver
            settings = config(thread)
            settings["configurable"] |= configurable
            try:
                graph.invoke(given, settings)
                if resume is not None:
                    graph.invoke(Command(resume=resume), settings)
            except ValueError:
                pass
    finally:
        os.chdir(here)
        if before is not None:
            sys.modules["graphs"] = before
        else:
            sys.modules.pop("graphs", None)
    ran(project)


def canary(folder: Path) -> tuple[Path, ormsgpack.Ext]:
    """(path that LangGraph's own loader would create, the stored value that makes it do so)."""
    target = folder / "canary"
    return target, ormsgpack.Ext(0, ormsgpack.packb(["os", "mkdir", str(target)]))


def poison(database: Path, checkpoint_id: str, evil: ormsgpack.Ext, channel: str = "anything") -> None:
    """Put a value into a stored checkpoint, every other byte as it was."""
    with sqlite3.connect(database) as connection:
        where = "thread_id = 't' AND checkpoint_ns = '' AND checkpoint_id = ?"
        blob = connection.execute(f"SELECT checkpoint FROM checkpoints WHERE {where}", (checkpoint_id,)).fetchone()[0]
        kept: list[ormsgpack.Ext] = []

        def keep(code: int, raw: bytes) -> Any:
            kept.append(ormsgpack.Ext(code, raw))
            return kept[-1]

        record_ = ormsgpack.unpackb(blob, ext_hook=keep)
        record_["channel_values"][channel] = evil
        record_["channel_versions"].setdefault(channel, max(record_["channel_versions"].values()))
        connection.execute(f"UPDATE checkpoints SET checkpoint = ? WHERE {where}", (ormsgpack.packb(record_), checkpoint_id))
