"""A well-known key that stands as a name, of a node, a thread or a map's key, is masked in text until it is asked for."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.graph import END, START, StateGraph

from studio.render import preview
from tests.cli.conftest import Studio
from tests.factories import config, saver_at

KEYS = ("sk-live-0123456789abcdef0123", "ghp_0123456789abcdefghij0123456789", "AKIAABCDEFGHIJKLMNOP")


class Named(TypedDict, total=False):
    found: dict[str, Any]
    log: Annotated[list[Any], operator.add]


@pytest.fixture
def named(tmp_path: Path) -> Path:
    path = tmp_path / "named.sqlite"
    builder = StateGraph(Named)
    builder.add_node(KEYS[1], lambda state: {"found": {KEYS[0]: 1, "in": {KEYS[2]: "v"}}, "log": [{KEYS[0]: 1}]})
    builder.add_node("two", lambda state: {"found": {KEYS[0]: 2}})
    builder.add_edge(START, KEYS[1])
    builder.add_edge(KEYS[1], "two")
    builder.add_edge("two", END)
    with saver_at(path) as saver:
        builder.compile(checkpointer=saver).invoke({"log": ["a"]}, config(KEYS[2]))
    return path


@pytest.mark.parametrize(
    "call",
    [
        ["ls"],
        ["tree"],
        ["show", "2"],
        ["diff", "2"],
        ["diff", "3"],
        ["edges"],
        ["search", "v"],
        ["compare", "2", "3"],
        ["fork", "2", "--set", "/log=[]", "--dry-run"],
        ["fork", "2", "--goto", KEYS[1], "--dry-run"],
        ["fork", "2", "--nodes"],
    ],
)
def test_it_is_masked_in_what_a_person_reads(
    studio: Studio, named: Path, call: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for colour in ("", "1"):  # a colour before it must not hide it from the mask
        monkeypatch.setenv("FORCE_COLOR", colour)
        found = studio(call[0], named, *call[1:])
        assert found.code == 0, found.err
        assert not [key for key in KEYS if key in found.out + found.err]
        assert "[masked]" in found.out
    monkeypatch.setenv("FORCE_COLOR", "")
    plain = studio(call[0], named, *call[1:], "--show-secrets")
    assert [key for key in KEYS if key in plain.out]


def test_programs_get_the_names_that_they_call_by(studio: Studio, named: Path) -> None:
    thread = studio("ls", named, "--json").doc["threads"][0]["thread_id"]
    assert thread == KEYS[2]
    assert studio("tree", named, "--thread", thread, "--json").doc["rows"][2]["nodes"][0]["name"] == KEYS[1]


@pytest.mark.parametrize(
    "call",
    [
        ["show", "2", "--path", f"/found/{KEYS[0]}x"],
        ["show", KEYS[1]],
        ["tree", "--thread", f"{KEYS[2]}"[:-1] + "Q"],
        ["fork", "2", "--goto", f"{KEYS[1]}z"],
        ["run", "2", "--graph", KEYS[0]],
        ["run", "2", "--config", KEYS[0]],
        ["tree", "--limit", KEYS[0]],
        ["show", "2", f"--{KEYS[0]}"],
        ["show", "2", f"--api-key={KEYS[0]}"],
    ],
)
def test_an_argument_in_an_error_is_masked_too(studio: Studio, named: Path, call: list[str]) -> None:
    found = studio(call[0], named, *call[1:])
    assert found.code != 0
    assert not [key for key in KEYS if key[:-1] in found.out + found.err]


def test_the_one_line_of_a_value_masks_its_keys() -> None:
    value = {KEYS[0]: 1, "in": {KEYS[1]: 2}}
    assert preview.summary(value) == "{[masked]: 1, in: {[masked]: 2}}"
    assert preview.summary(value, 200, show_secrets=True) == f"{{{KEYS[0]}: 1, in: {{{KEYS[1]}: 2}}}}"
