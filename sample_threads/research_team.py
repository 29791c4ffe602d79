"""The research team: splits a question into topics, sends each to a researcher of its own, joins and weighs the findings."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass, field
from datetime import date, datetime, timezone
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.types import Send, interrupt
from pydantic import BaseModel
from scripted_model import Reply, ScriptedModel, think


class Audience(Enum):
    SCHOOL = "school"
    COUNCIL = "council"
    PUBLIC = "public"


class Priority(Enum):
    HIGH = 1
    NORMAL = 2


class Verdict(Enum):
    FOR = "for"
    AGAINST = "against"
    OPEN = "open"


class Brief(BaseModel):
    """What is asked, for whom, and which sources may be used."""

    question: str
    audience: Audience
    since: date
    """Only sources published on this day or later."""
    deadline: datetime
    sources_per_topic: int = 2


@dataclass
class Budget:
    limit: Decimal
    per_source: Decimal
    currency: str = "EUR"


@dataclass
class Topic:
    name: str
    priority: Priority = Priority.NORMAL


@dataclass
class Source:
    title: str
    site: str
    published: date
    cited: int
    verdict: Verdict
    claim: str


class Finding(BaseModel):
    topic: str
    claim: str
    verdict: Verdict
    source: Source
    confidence: float
    noted_at: datetime


@dataclass
class Tally:
    """How the findings add up."""

    supporting: int
    opposing: int
    by_topic: dict[str, Verdict] = field(default_factory=dict)


def source(entry: dict[str, Any]) -> Source:
    return Source(**{**entry, "published": date.fromisoformat(entry["published"]), "verdict": Verdict(entry["verdict"])})


LIBRARY = {
    shelf: {name: [source(entry) for entry in entries] for name, entries in topics.items()}
    for shelf, topics in json.loads(Path(__file__).with_name("facts.json").read_text("utf-8"))["library"].items()
}
OFFLINE = ("rail-archive.example",)
"""Sites that answer no more."""


class ResearchState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    brief: Brief
    budget: Budget
    topics: list[Topic]
    findings: Annotated[list[Finding], operator.add]
    tally: Tally
    recommendation: str
    report: str
    warnings: Annotated[list[str], operator.add]


class TopicState(TypedDict, total=False):
    brief: Brief
    topic: Topic
    sources: list[Source]
    chosen: Source
    findings: Annotated[list[Finding], operator.add]


class TopicResult(TypedDict, total=False):
    """What a researcher hands back."""

    findings: Annotated[list[Finding], operator.add]


def subject(question: str) -> dict[str, list[Source]]:
    """Return the shelf of the library that the question is about; the first one for any other question."""
    return next((shelf for name, shelf in LIBRARY.items() if name in question.lower()), LIBRARY["heat pump"])


def say_frame(facts: dict[str, Any]) -> Reply:
    return facts["text"].split("?")[0] + "?", []


def say_report(facts: dict[str, Any]) -> Reply:
    lines = [f"- {claim}" for claim in facts["claims"]]
    return "\n".join([f"Question: {facts['question']}", "", *lines, "", f"Recommendation: {facts['recommendation']}."]), []


MODEL = ScriptedModel(script={"frame_question": say_frame, "write_report": say_report})


def frame_question(state: ResearchState) -> ResearchState:
    """Write the brief. This model overlooks what the question says about the age of the sources."""
    asked = str(state["messages"][-1].content)
    question = str(MODEL.ask("frame_question", state["messages"], 1.4, text=asked).content)
    audience = next((kind for kind in Audience if kind.value in asked.lower()), Audience.PUBLIC)
    deadline = datetime(2026, 3, 20, 12, 0, tzinfo=timezone.utc)
    return {"brief": Brief(question=question, audience=audience, since=date(2010, 1, 1), deadline=deadline)}


def check_budget(state: ResearchState) -> ResearchState:
    think(0.5)
    return {"budget": Budget(Decimal("12.00"), Decimal("0.40"))}


def split_topics(state: ResearchState) -> ResearchState:
    think(1.1)
    names = list(subject(state["brief"].question))
    return {"topics": [Topic(name, Priority.NORMAL if place else Priority.HIGH) for place, name in enumerate(names)]}


def send_topics(state: ResearchState) -> list[Send]:
    return [Send("research", {"brief": state["brief"], "topic": topic}) for topic in state["topics"]]


def search(state: TopicState) -> TopicState:
    """Find the most cited sources that the brief allows."""
    think(0.9)
    brief = state["brief"]
    found = [source for source in subject(brief.question).get(state["topic"].name, []) if source.published >= brief.since]
    return {"sources": sorted(found, key=lambda source: -source.cited)[: brief.sources_per_topic]}


def read(state: TopicState) -> TopicState:
    think(1.6)
    if not state["sources"]:
        raise LookupError(f"no source on {state['topic'].name} since {state['brief'].since}")
    best = state["sources"][0]
    if best.site in OFFLINE:
        raise ConnectionError(f"{best.site} answered 503 (service unavailable)")
    return {"chosen": best}


def weigh(state: TopicState) -> TopicState:
    """Note the finding; ask a person when two sources of equal weight disagree."""
    chosen, sources = state["chosen"], state["sources"]
    close = [source for source in sources if abs(source.cited - chosen.cited) <= 5]
    if len({source.verdict for source in close}) > 1:
        choices = {source.site: source.claim for source in close}
        question = f"Two sources on {state['topic'].name} disagree. Which one do you trust?"
        answer = interrupt({"question": question, "choices": choices})
        chosen = next((source for source in close if source.site == answer), chosen)
    think(0.5)
    finding = Finding(
        topic=state["topic"].name,
        claim=chosen.claim,
        verdict=chosen.verdict,
        source=chosen,
        confidence=0.9 if len(close) == 1 else 0.6,
        noted_at=datetime(2026, 3, 14, 9, 0, tzinfo=timezone.utc),
    )
    return {"findings": [finding]}


def compare(state: ResearchState) -> ResearchState:
    think(0.7)
    verdicts = {finding.topic: finding.verdict for finding in state["findings"]}
    votes = list(verdicts.values())
    tally = Tally(votes.count(Verdict.FOR), votes.count(Verdict.AGAINST), verdicts)
    better = "yes" if tally.supporting > tally.opposing else "no" if tally.opposing > tally.supporting else "undecided"
    return {"tally": tally, "recommendation": better}


def write_report(state: ResearchState) -> ResearchState:
    claims = [f"{finding.claim} ({finding.source.site}, {finding.source.published.year})" for finding in state["findings"]]
    facts = {"question": state["brief"].question, "claims": claims, "recommendation": state["recommendation"]}
    return {"report": str(MODEL.ask("write_report", (), 2.8, **facts).content)}


def check_sources(state: ResearchState) -> ResearchState:
    think(0.6)
    old = [finding.source for finding in state["findings"] if finding.source.published.year < 2020]
    return {"warnings": [f"{source.title} is from {source.published.year}" for source in old]}


def publish(state: ResearchState) -> ResearchState:
    think(0.3)
    remarks = "".join(f"\nNote: {warning}." for warning in state.get("warnings", []))
    return {"messages": [AIMessage(state["report"] + remarks, id=f"ai-{len(state['messages']) + 1}")]}


def build_research_team() -> StateGraph[ResearchState]:
    research = StateGraph(TopicState, output_schema=TopicResult)
    for step in (search, read, weigh):
        research.add_node(step.__name__, step)
    research.add_edge(START, "search")
    research.add_edge("search", "read")
    research.add_edge("read", "weigh")
    research.add_edge("weigh", END)

    graph = StateGraph(ResearchState)
    for node in (frame_question, check_budget, split_topics, compare, write_report, check_sources, publish):
        graph.add_node(node.__name__, node)
    graph.add_node("research", research.compile())
    graph.add_edge(START, "frame_question")
    graph.add_edge(START, "check_budget")
    graph.add_edge(["frame_question", "check_budget"], "split_topics")
    graph.add_conditional_edges("split_topics", send_topics, ["research"])
    graph.add_edge("research", "compare")
    graph.add_edge("compare", "write_report")
    graph.add_edge("compare", "check_sources")
    graph.add_edge(["write_report", "check_sources"], "publish")
    graph.add_edge("publish", END)
    return graph


graph = build_research_team().compile(name="research_team")
