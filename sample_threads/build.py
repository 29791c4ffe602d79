"""Makes the sample databases by running the real graphs with a clock and a chance of their own.

    python sample_threads/build.py            rebuild the committed files
    python sample_threads/build.py FOLDER     build them elsewhere

Rebuilding gives the same rows: ids, times and version numbers come from `Story`, parallel tasks run one after another.
The releases that made the committed files are those of `constraints.txt`; another LangGraph may store other details.
"""

from __future__ import annotations

import os
import random
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import langgraph.checkpoint.base.id
import langgraph.pregel._checkpoint
import research_team
import scripted_model
import support_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command, StateSnapshot

HERE = Path(__file__).resolve().parent
Graph = CompiledStateGraph[Any, Any, Any, Any]


class Story:
    """Time and chance of one database: both start at the same point in every build."""

    def __init__(self, start: str) -> None:
        self.time = datetime.fromisoformat(start)
        self.chance = random.Random(start)

    def sleep(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def go_to(self, moment: str) -> None:
        self.time = datetime.fromisoformat(moment)

    def now(self, zone: tzinfo | None = None) -> datetime:
        """Each look at the clock takes a few milliseconds of the story, as the work between two looks would."""
        self.sleep(0.002 + self.chance.random() * 0.004)
        return self.time

    def time_ns(self) -> int:
        return round(self.now().timestamp() * 1e6) * 1000


class StorySaver(SqliteSaver):
    """The real saver; only the random part of its version numbers comes from the story."""

    story: Story

    def get_next_version(self, current: str | int | float | None, channel: None = None) -> str:
        number = 0 if current is None else int(str(current).split(".")[0])
        return f"{number + 1:032}.{self.story.chance.random():016}"


@contextmanager
def told_by(story: Story) -> Iterator[None]:
    """Replace the clock and the dice of LangGraph's checkpoints, and the pace of the scripted model."""
    ids, times = langgraph.checkpoint.base.id, langgraph.pregel._checkpoint
    replaced = [
        (ids, "time", SimpleNamespace(time_ns=story.time_ns)),
        (ids, "random", story.chance),
        (ids, "_last_v6_timestamp", None),
        (times, "datetime", story),
        (scripted_model, "sleep", story.sleep),
        (scripted_model, "pace", 1.0),
    ]
    before = [getattr(module, name) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    try:
        yield
    finally:
        for (module, name, _), value in zip(replaced, before, strict=True):
            setattr(module, name, value)


class Thread:
    """One conversation, spoken in the words of the stories below."""

    def __init__(self, graph: Graph, story: Story, thread_id: str, **metadata: str) -> None:
        self.graph, self.story = graph, story
        self.config: RunnableConfig = {"configurable": {"thread_id": thread_id}, "metadata": metadata, "max_concurrency": 1}
        self.said = 0

    def run(self, given: Any, at: RunnableConfig | None = None) -> None:
        config = self.config if at is None else {**self.config, "configurable": at["configurable"]}
        self.graph.invoke(given, config, durability="sync")

    def say(self, text: str, moment: str) -> None:
        self.story.go_to(moment)
        self.said += 1
        self.run({"messages": [HumanMessage(text, id=f"human-{self.said}")]})

    def answer(self, value: Any, after: float) -> None:
        self.story.sleep(after)
        self.run(Command(resume=value))

    def before(self, *nodes: str) -> StateSnapshot:
        """Return the oldest state in which exactly these nodes were next."""
        return [state for state in self.graph.get_state_history(self.config) if state.next == nodes][-1]


def tell_support(graph: Graph, story: Story) -> None:
    """Six customers; what to find in each is in README.md."""
    hours = Thread(graph, story, "hours-6031", customer="Noor Haddad", channel="web chat")
    hours.say("Hi! Are you open on Saturdays?", "2026-03-14T09:12:40+00:00")
    hours.say("And on Easter Monday?", "2026-03-14T09:13:31+00:00")

    late = Thread(graph, story, "refund-6024", customer="Tomasz Zielinski", channel="web chat")
    late.say("Can I still get my money back for the headphones, order 6024? I never used them.", "2026-03-14T10:40:02+00:00")
    late.answer("no", after=412)
    story.go_to("2026-03-14T11:05:17+00:00")
    planned = late.before("review")
    half = {**planned.values["refund"], "amount": 90.0}
    said = AIMessage("I can refund 90.00 EUR, half of the price, as goodwill. A colleague has to approve it.", id="ai-4")
    late.run(None, graph.update_state(planned.config, {"refund": half, "messages": [said]}, as_node="plan_refund"))
    late.answer("yes", after=95)
    story.go_to("2026-03-14T11:31:48+00:00")
    late.run(None, graph.update_state(late.before("ask_approval").config, None, as_node="__copy__"))
    late.answer("yes", after=38)

    refund = Thread(graph, story, "refund-4711", customer="Mara Lindqvist", channel="e-mail")
    refund.say("Hello, the espresso maker from order 4711 leaks. I sent it back. Please refund it.", "2026-03-14T14:02:03+00:00")
    refund.answer("yes", after=181)

    gift = Thread(graph, story, "refund-5150", customer="Jonas Weber", channel="web chat")
    try:
        gift.say("I would like my money back for the gift card, order 5150.", "2026-03-14T15:20:26+00:00")
    except LookupError as error:
        print(f"refund-5150 fails as it should: {error}")

    chair = Thread(graph, story, "refund-6012", customer="Aiko Tanaka", channel="e-mail")
    chair.say("The office chair of order 6012 wobbles. I want a refund, it is on its way to you.", "2026-03-14T16:48:55+00:00")

    complaint = Thread(graph, story, "complaint-4711", customer="Mara Lindqvist", channel="e-mail")
    complaint.say("You sent me 499 euros for order 4711, but I paid 49.90. Is that right?", "2026-03-16T08:31:09+00:00")


def tell_research(graph: Graph, story: Story) -> None:
    """Three questions; what to find in each is in README.md."""
    pump = Thread(graph, story, "heat-pumps", asked_by="Ms Okafor", group="9b")
    question = "Should our school replace the gas boiler by a heat pump? Please use only sources from 2024 or later."
    pump.say(question, "2026-03-14T09:30:11+00:00")

    train = Thread(graph, story, "night-trains", asked_by="Mr Lund", group="10a")
    try:
        train.say("Should the council support a night train?", "2026-03-14T10:05:44+00:00")
    except ConnectionError as error:
        print(f"night-trains fails as it should: {error}")

    trees = Thread(graph, story, "street-trees", asked_by="Ms Okafor", group="9b")
    trees.say("Should the city plant more street trees?", "2026-03-14T11:02:37+00:00")


DATABASES: dict[str, tuple[Callable[[], StateGraph[Any]], Callable[[Graph, Story], None], str]] = {
    "support_agent": (support_agent.build_support_agent, tell_support, "2026-03-14T09:00:00+00:00"),
    "research_team": (research_team.build_research_team, tell_research, "2026-03-14T09:00:01+00:00"),
}


def build(folder: Path) -> list[Path]:
    """Make every sample database in `folder` anew and return their paths."""
    made = []
    for name, (make_graph, tell, start) in DATABASES.items():
        path = folder / f"{name}.sqlite"
        for file in (path, *(Path(f"{path}{end}") for end in ("-wal", "-shm", "-journal"))):
            file.unlink(missing_ok=True)
        story = Story(start)
        with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
            saver = StorySaver(connection)
            saver.story = story
            with told_by(story):
                tell(make_graph().compile(checkpointer=saver, name=name), story)
            connection.commit()
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        made.append(path)
    return made


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of a set of names is part of what LangGraph stores
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    for path in build(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE):
        print(f"{path.name}: {path.stat().st_size:,} bytes")
