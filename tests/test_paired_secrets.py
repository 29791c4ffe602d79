"""A value whose name stands beside it, in a pair, is masked like one under that name; the name stays readable."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypedDict

import pytest
from langgraph.graph import START, StateGraph

from studio.render import masking, preview
from studio.tagged import from_tagged, to_tagged
from studio.value import equal
from tests.cli.conftest import Studio
from tests.cli.conftest import studio as studio
from tests.factories import config, saver_at
from tests.web.conftest import client_of

SECRET = "hunter2-correct-horse"
PAIRS: list[Any] = [
    ["X-Api-Key", SECRET],
    [["accept", "*/*"], ["authorization", SECRET]],
    {"name": "X-Api-Key", "value": SECRET},
    {"key": "password", "value": [SECRET]},
    {b"api_key": SECRET, b"other": "x"},
    {"$odd": 1, "name": "client_secret", "value": SECRET},
]


class Held(TypedDict, total=False):
    headers: Any
    said: str


@pytest.mark.parametrize("value", PAIRS, ids=str)
def test_a_pair_is_masked_in_every_view_and_stands_for_what_is_stored(value: Any, tmp_path: Path, studio: Studio) -> None:
    builder: StateGraph[Any] = StateGraph(Held)
    builder.add_node("put", lambda state: {"headers": value, "said": f'{{"credentials": {{"a": "{"x" * 60_000}{SECRET}"}}}}'})
    builder.add_edge(START, "put")
    path = tmp_path / "held.sqlite"
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"said": ""}, config("t"))
    calls = [["show", "head"], ["show", "head", "--path", "/headers"], ["show", "head", "--raw"], ["search", "horse"], ["export"]]
    calls += [["show", "head", "--path", f"/headers{inner}"] for inner in ("/1", "/1/1", "/value", "/value/0")]
    for command, *rest in [*calls, ["tree"], ["diff", "head"]]:
        for form in ([], ["--json"]):
            answer = studio(command, path, *rest, *form)
            assert SECRET not in answer.out + answer.err, (command, rest, form)
    assert SECRET in studio("show", path, "head", "--path", "/headers", "--show-secrets").out


@pytest.mark.parametrize("value", PAIRS[:4], ids=str)
def test_the_name_of_a_pair_is_readable_and_its_mask_keeps_the_stored_value(value: Any) -> None:
    document = masking.document(value)
    assert "$masked" in str(document) and "e" in preview.summary(value)
    assert equal(from_tagged(document, value), value)
    assert to_tagged(value) == masking.document(value, show_secrets=True)


@pytest.mark.parametrize(
    "value", [["name", SECRET], ["api_key", "b", "c"], {"name": "city", "value": "Graz"}, ["a", "b"]], ids=str
)
def test_other_lists_and_maps_stay_readable(value: Any) -> None:
    assert masking.document(value) == value


@pytest.mark.parametrize("path", ["", "/headers", "/headers/0", "/headers/0/1"])
def test_a_pair_that_changed_is_masked_in_diffs_pages_and_forms(path: str, tmp_path: Path, studio: Studio) -> None:
    builder: StateGraph[Any] = StateGraph(Held)
    builder.add_node("first", lambda state: {"headers": [["X-Api-Key", "another-secret"], ["accept", "a"]]})
    builder.add_node("then", lambda state: {"headers": [["X-Api-Key", SECRET], ["accept", "b"]]})
    builder.add_edge(START, "first")
    builder.add_edge("first", "then")
    file = tmp_path / "held.sqlite"
    with saver_at(file) as saver:
        builder.compile(checkpointer=saver).invoke({"said": ""}, config("t"))
    for form in ([], ["--json"]):
        answer = studio("diff", file, "head", *form)
        assert SECRET not in answer.out and "another-secret" not in answer.out
        assert "/headers/1" in answer.out
    assert SECRET in studio("diff", file, "head", "--show-secrets").out
    with client_of(file) as client:
        at = {"thread": "t", "at": "head", **({"path": path} if path else {})}
        for tab in ("changes", "state"):
            page = client.get("/", params={**at, "tab": tab}).text
            assert "headers" in page and SECRET not in page and "another-secret" not in page
        slug = page.split('hx-get="')[1].split("?")[0].rsplit("/", 1)[0] if 'hx-get="/f/' in page else "/f/held"
        edit = client.get(f"{slug}/edit", params=at)
        assert edit.status_code == 200 and "Fork" in edit.text and SECRET not in edit.text
