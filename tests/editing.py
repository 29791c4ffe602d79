"""A real saver's thread that holds a value of every kind that a person may edit, and messages of every form."""

from __future__ import annotations

import uuid
from collections import deque
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.channels import DeltaChannel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from pydantic import BaseModel

from tests.factories import config, saver_at


class Size(Enum):
    SMALL = "s"
    LARGE = "l"


@dataclass
class Money:
    amount: float
    currency: str = "EUR"
    tags: list[str] = field(default_factory=list)


class Customer(BaseModel):
    name: str
    age: int = 30
    tags: list[str] = []


MADE = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
VALUES: dict[str, Any] = {
    "amount": 499.0,
    "count": 3,
    "note": "a kettle",
    "paid": True,
    "size": Size.LARGE,
    "price": Decimal("49.90"),
    "cost": Money(10.0, tags=["net"]),
    "customer": Customer(name="Ada", tags=["new"]),
    "labels": {"x", "y"},
    "queue": deque([1, 2]),
    "placed": MADE,
    "day": date(2026, 5, 4),
    "at": time(9, 30),
    "wait": timedelta(days=1, seconds=30),
    "ident": uuid.UUID("12345678-1234-5678-1234-567812345678"),
    "folder": Path("/var/orders"),
    "blob": b"\x00\x01\xff",
    "plain_bytes": b"plain text",
    "lines": [{"sku": "k1", "n": 1}, {"sku": "k2", "n": 2}],
    "by_number": {1: "one", 2: "two"},
    "api_key": "sk-live-4242424242424242424242",
}
"""One value of each kind."""


def messages() -> list[AnyMessage]:
    """A conversation with two calls at once, content blocks, a provider's own copy of a call and a failed result."""
    copied = {"tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "find", "arguments": '{"q": "kettle"}'}}]}
    return [
        SystemMessage("You sell kettles.", id="sys-1"),
        HumanMessage("Which kettle?", id="hum-1"),
        AIMessage(
            "",
            id="ai-1",
            tool_calls=[
                {"name": "find", "args": {"q": "kettle"}, "id": "call_1"},
                {"name": "price_of", "args": {"sku": "k1", "exact": 49.0}, "id": "call_2"},
            ],
            additional_kwargs=copied,
            response_metadata={"model_name": "m-1", "token_usage": {"total": 17}},
            usage_metadata={"input_tokens": 9, "output_tokens": 8, "total_tokens": 17},
        ),
        ToolMessage("k1, k2", tool_call_id="call_1", name="find", id="tool-1", artifact={"rows": 2}),
        ToolMessage("out of reach", tool_call_id="call_2", name="price_of", id="tool-2", status="error"),
        AIMessage(
            [
                {"type": "text", "text": "I think it is k1.", "annotations": []},
                {"type": "image_url", "image_url": {"url": "https://example.invalid/k1.png"}},
                {"type": "tool_use", "id": "call_3", "name": "order", "input": {"sku": "k1"}},
            ],
            id="ai-2",
            tool_calls=[{"name": "order", "args": {"sku": "k1"}, "id": "call_3"}],
        ),
        ToolMessage("ordered", tool_call_id="call_3", name="order", id="tool-3"),
        AIMessage("Done: a kettle for 49.00.", id="ai-3"),
    ]


class EditState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    chat: list[dict[str, Any]]
    amount: float
    count: int
    note: str
    paid: bool
    size: Size
    price: Decimal
    cost: Money
    customer: Customer
    labels: set[str]
    queue: Any
    placed: datetime
    day: date
    at: time
    wait: timedelta
    ident: uuid.UUID
    folder: Path
    blob: bytes
    plain_bytes: bytes
    lines: list[dict[str, Any]]
    by_number: dict[int, str]
    api_key: str
    kinds: str


PLAIN_CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "Which kettle?"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"q": "kettle"}'}}],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "k1"},
    {"role": "assistant", "content": "k1."},
]
"""Messages as OpenAI's API has them: plain maps, arguments in a text, no ids."""


def edit_graph(saver: Any) -> Any:
    """fill -> look -> end: `look` notes the type that each value has when it is loaded again."""

    def fill(_: EditState) -> dict[str, Any]:
        return {**VALUES, "messages": messages(), "chat": PLAIN_CHAT}

    def look(state: Any) -> dict[str, Any]:
        return {"kinds": " ".join(f"{name}={type(state[name]).__name__}" for name in VALUES if name in state)}

    builder: StateGraph[Any] = StateGraph(EditState)
    builder.add_node("fill", fill)
    builder.add_node("look", look)
    builder.add_edge(START, "fill")
    builder.add_edge("fill", "look")
    builder.add_edge("look", END)
    return builder.compile(checkpointer=saver)


def edit_file(path: Path | str, thread: str = "t") -> None:
    """#3 of the thread is before `look`, #4 its end."""
    with saver_at(path) as saver:
        edit_graph(saver).invoke({"note": "start"}, config(thread))


def _extend(state: list[Any], writes: list[Any]) -> list[Any]:
    found = state
    for write in writes:
        found = add_messages(found, write)  # type: ignore[assignment]
    return found


class DeltaState(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], DeltaChannel(_extend)]
    seen: str


def delta_graph(saver: Any) -> Any:
    """ask -> look -> end; the messages are stored as deltas."""

    def ask(_: DeltaState) -> dict[str, Any]:
        return {"messages": messages()}

    def look(state: Any) -> dict[str, Any]:
        return {"seen": " | ".join(str(message.content)[:20] for message in state["messages"])}

    builder: StateGraph[Any] = StateGraph(DeltaState)
    builder.add_node("ask", ask)
    builder.add_node("look", look)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "look")
    builder.add_edge("look", END)
    return builder.compile(checkpointer=saver)


def delta_file(path: Path | str, thread: str = "t") -> None:
    with saver_at(path) as saver:
        delta_graph(saver).invoke({"messages": [HumanMessage("hello", id="hum-0")]}, config(thread))
