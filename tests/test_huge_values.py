"""Values far too large for a screen: what a look costs is bound by what differs and by what is shown, counted in visits."""

from __future__ import annotations

import copy
import operator
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, TypedDict

import ormsgpack
import pytest
from langgraph.graph import END, START, StateGraph

from studio import comparing, value
from studio.codec import objects, oddities
from studio.codec.inert import Opaque
from studio.diff import apply, diff
from studio.model import Address
from studio.session import Session
from studio.stores.queries import Queries
from studio.value import equal
from studio.web.views import forks
from tests.factories import config, saver_at
from tests.web.conftest import client_of

COUNT = 40_000


def rows(count: int = COUNT) -> list[dict[str, Any]]:
    return [{"id": f"row-{n}", "n": n} for n in range(count)]


def changed_row(n: int) -> list[dict[str, Any]]:
    return [*rows()[:n], {"id": f"row-{n}", "n": -n}, *rows()[n + 1 :]]


@pytest.fixture
def packed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the packer was called."""
    counts: Counter[str] = Counter()
    pack = ormsgpack.packb

    def counted(*arguments: Any, **options: Any) -> bytes:
        counts["calls"] += 1
        return pack(*arguments, **options)

    monkeypatch.setattr(ormsgpack, "packb", counted)
    return counts


@pytest.mark.parametrize("at", [0, 7, COUNT // 2, COUNT - 1])
def test_one_changed_item_of_a_long_list_is_found_without_visiting_each(at: int, packed: Counter[str]) -> None:
    found = diff({"rows": rows()}, {"rows": changed_row(at)})
    assert [(change.path, change.before, change.after) for change in found] == ([(f"/rows/{at}/n", at, -at)] if at else [])
    assert packed["calls"] < 500


def test_one_changed_entry_of_a_large_map_is_found_without_visiting_each(packed: Counter[str]) -> None:
    before = {f"key-{n}": {"n": n} for n in range(COUNT)}
    after: dict[str, Any] = {**copy.deepcopy(before), "key-777": {"n": 1.0}}
    assert [(change.path, change.after) for change in diff({"map": before}, {"map": after})] == [("/map/key-777/n", 1.0)]
    assert packed["calls"] < 500
    backwards = dict(reversed(list(after.items())))
    found = diff({"map": before}, {"map": backwards})
    assert [change.path for change in found] == ["/map/key-777/n"]
    assert apply({"map": before}, found)["map"]["key-777"] == {"n": 1.0}


def test_long_values_are_equal_only_if_each_part_is(packed: Counter[str]) -> None:
    assert equal(rows(), rows()) and not equal(rows(), rows()[:-1])
    assert packed["calls"] < 200
    for one, other in ((1, 1.0), (0, False), (0.0, -0.0), ("a", b"a"), (None, False)):
        left, right = [one] * COUNT, [one] * (COUNT - 1) + [other]
        assert not equal(left, right) and not equal({"a": left}, {"a": right})
        assert [change.path for change in diff({"a": left}, {"a": right})][-1].startswith("/a/")
        keyed, other_keyed = (
            dict(zip(map(str, range(COUNT)), left, strict=True)),
            dict(zip(map(str, range(COUNT)), right, strict=True)),
        )
        assert not equal(keyed, other_keyed) and [change.after for change in diff(keyed, other_keyed)] == [other]
    same = float("nan")
    assert equal([same] * COUNT, [-same] * COUNT) and equal([{"a": 1, "b": 2}] * 99, [{"b": 2, "a": 1}] * 99)


@pytest.mark.parametrize("odd", [chr(0xDCFF), chr(0xD800), Opaque("pickle", b"?")])
def test_what_is_odd_in_a_long_list_is_found_and_a_plain_one_is_not_walked(odd: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []
    look = oddities._odd
    monkeypatch.setattr(oddities, "_odd", lambda item: (seen.append(item), look(item))[1])
    assert oddities.oddities({"plain": rows(), "map": {str(n): {"n": n} for n in range(COUNT)}}, "here") == []
    assert len(seen) == 2
    found = oddities.oddities({"rows": [*rows(900), {"deep": [{"id": odd}]}, *rows(9)]}, "here")
    assert [problem.where for problem in found] == ["here /rows/900/deep/0/id"]


class Huge(TypedDict, total=False):
    text: str
    rows: Annotated[list[Any], operator.add]


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    """A text of 20 million characters and a long list; the last superstep changed a word and appended an item."""
    text = "word " * 4_000_000
    builder: StateGraph[Any] = StateGraph(Huge)
    builder.add_node("first", lambda state: {"text": text, "rows": rows()})
    builder.add_node("second", lambda state: {"text": text + "!", "rows": rows(COUNT + 1)[-1:]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "second")
    builder.add_edge("second", END)
    with saver_at(tmp_path / "huge.sqlite") as saver:
        builder.compile(checkpointer=saver).invoke({"text": ""}, config("huge"))
    return tmp_path / "huge.sqlite"


def test_a_page_reads_and_decodes_what_is_huge_once_and_compares_it_once(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: Counter[Any] = Counter()
    raw, unpack, compare = Queries.raw, objects.unpack, comparing.compare

    def read(queries: Queries, address: Address) -> Any:
        seen["read", address] += 1
        return raw(queries, address)

    def unpacked(stored: bytes) -> Any:
        seen["unpacked", hash(stored)] += len(stored) > 1_000_000
        return unpack(stored)

    def compared(session: Session, after: Address, before: Address | None = None, *, origin: bool = False) -> Any:
        seen["compared", after, before] += 1
        return compare(session, after, before, origin=origin)

    monkeypatch.setattr(Queries, "raw", read)
    monkeypatch.setattr(value, "unpack", unpacked)
    monkeypatch.setattr(comparing, "compare", compared)
    with client_of(huge) as client:
        for tab in ("changes", "state", "tasks", "conversation", "raw"):
            page = client.get(f"/f/huge.sqlite?tab={tab}")
            assert page.status_code == 200 and len(page.text) < 800_000
    assert {name for name, *_ in seen} == {"read", "unpacked", "compared"} and max(seen.values()) == 1


def test_a_huge_text_is_not_put_into_the_fork_form_of_a_page_by_itself(huge: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[Any] = []
    write = forks.json_text
    monkeypatch.setattr(forks, "json_text", lambda value, *more: (written.append(value), write(value, *more))[1])
    with client_of(huge) as client:
        assert client.get("/f/huge.sqlite?tab=changes&path=/text").status_code == 200
        assert written == []
        assert client.get(f"/f/huge.sqlite?tab=changes&path=/rows/{COUNT}").status_code == 200
        assert written == [{"id": f"row-{COUNT}", "n": COUNT}]
