"""A database in which a thread, a node, a channel and keys of maps are called like API keys."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph

from tests.factories import config, saver_at

IN_MAP, NODE, THREAD, CHANNEL = (
    "sk-live-0123456789abcdef0123", "ghp_0123456789abcdefghij0123456789", "AKIAABCDEFGHIJKLMNOP", "xoxb-012345678901-abcdefghij",
)  # fmt: skip
KEYS = (IN_MAP, NODE, THREAD, CHANNEL)
BESIDE = "hf_zyxwvutsrqponmlkjihgfedcba"
"""A key that is a value."""

Named = TypedDict(  # type: ignore[misc]
    "Named", {"found": dict[str, Any], "log": Annotated[list[Any], operator.add], CHANNEL: str}, total=False
)


def make(path: Path) -> Path:
    builder = StateGraph(Named)
    builder.add_node(NODE, lambda state: {"found": {IN_MAP: 1, "token": BESIDE}, "log": [{IN_MAP: 1}], CHANNEL: "a vase"})
    builder.add_node("two", lambda state: {"found": {IN_MAP: 2, "token": BESIDE}})
    builder.add_edge(START, NODE)
    builder.add_edge(NODE, "two")
    builder.add_edge("two", END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"log": ["a"]}, config(THREAD))
    return path
