"""A superstep that writes thousands of channels, one of them huge, is explained by one look at its rows and its values."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

import ormsgpack
import pytest
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

from studio.codec import packed
from studio.explain import authors, explainer
from studio.session import Session
from tests.factories import config, saver_at

CHANNELS = 400
HUGE = 4_000_000


def _wide(path: Path) -> Path:
    fields: dict[str, Any] = {f"ch_{number:04}": Annotated[list, operator.add] for number in range(CHANNELS)}
    state = TypedDict("state", {**fields, "big": str})  # type: ignore[operator]
    builder: StateGraph[Any] = StateGraph(state)
    builder.add_node("fill", lambda _: {name: [name] for name in fields})
    builder.add_node("change", lambda _: {"ch_0003": ["again"], "big": "lorem ipsum " * (HUGE // 12)})
    builder.add_edge(START, "fill")
    builder.add_edge("fill", "change")
    builder.add_edge("change", END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"big": "small"}, config("t"))
    return path


def test_each_row_is_read_for_its_own_channel_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counted(rows: Any, *rest: Any) -> Any:
        mine = list(rows)
        seen.append(len(mine))
        return authors.written_by_task(mine, *rest)

    monkeypatch.setattr(explainer, "written_by_task", counted)
    session = Session.open(str(_wide(tmp_path / "wide.sqlite")))
    found = session.compare(session.resolve("#2", "t"))
    session.close()
    assert len(found.changes) >= CHANNELS and all(change.authors[0].node == "fill" for change in found.changes)
    assert CHANNELS <= sum(seen) < 4 * CHANNELS


def test_a_huge_text_beside_thousands_of_values_is_not_packed_to_be_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    class Counted:
        def __getattr__(self, name: str) -> Any:
            return getattr(ormsgpack, name)

        def packb(self, *given: Any, **more: Any) -> bytes:
            made = ormsgpack.packb(*given, **more)
            sizes.append(len(made))
            return made

    monkeypatch.setattr(packed, "ormsgpack", Counted())
    session = Session.open(str(_wide(tmp_path / "wide.sqlite")))
    found = session.compare(session.resolve("#3", "t"))
    session.close()
    assert {change.path.split("/")[1] for change in found.changes} == {"ch_0003", "big"}
    assert sizes and max(sizes) < HUGE // 10, "the small values beside it are compared packed, the text is not"
