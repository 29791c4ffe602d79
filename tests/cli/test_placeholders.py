"""`$masked`, `$cut`, `$opaque` and `$array` stand for what is stored where it is shown so, and for nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from studio.errors import PatchError
from studio.tagged import from_tagged, to_tagged
from studio.value import Tagged, decode, encode, equal
from tests.cli.conftest import Studio
from tests.factories import make_states

KEY = "sk-live-0123456789abcdef0123"
STATE: dict[str, Any] = {
    "total": 49.9,
    "name": "Mara",
    "pin": 7,
    "note": f"call with {KEY} please",
    "login": {"user": "mara", "password": "hunter2"},
    "accounts": [{"user": "a", "token": "t-1"}, {"user": "b", "token": "t-2"}],
    "headers": [["Accept", "json"], ["X-Api-Key", "abc-123"]],
    "words": ["one", "two", "three"],
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    folder = tmp_path / "file"
    folder.mkdir()
    return make_states(folder / "state.sqlite", STATE)


@pytest.mark.parametrize("place", ["/total", "/name", "/pin", "/login/user", "/words/1", "/accounts/0/user", "/headers/0/1"])
def test_a_mask_on_a_value_that_is_not_masked_is_refused_and_not_taken_as_unchanged(
    studio: Studio,
    database: Path,
    place: str,
) -> None:
    found = studio("fork", database, "head", "--set", f'{place}={{"$masked": "named like a secret"}}')
    assert (found.code, found.out) == (1, "")
    assert "what is stored here is not masked, so $masked stands for nothing" in found.err
    assert "Traceback" not in found.err


def test_masks_deep_in_a_document_are_looked_at_one_by_one(studio: Studio, database: Path) -> None:
    shown = studio("show", database, "head", "--json").doc["values"]
    for channel, document in shown.items():
        found = studio("fork", database, "head", "--set", f"/{channel}={json.dumps(document)}", "--dry-run", "--json")
        assert (found.code, found.doc["changes"]) == (0, []), channel
    shown["accounts"][0]["user"] = {"$masked": "named like a secret"}
    found = studio("fork", database, "head", "--set", f"/accounts={json.dumps(shown['accounts'])}")
    assert found.code == 1
    assert "(at /0/user)" in found.err


@pytest.mark.parametrize(
    "place",
    ["/login/password", "/accounts/1/token", "/headers/1/1", "/note"],
    ids=["name", "in a list", "beside its name", "text"],
)
def test_a_mask_stands_for_the_secret_under_its_own_path(studio: Studio, database: Path, place: str) -> None:
    found = studio("fork", database, "head", "--set", f'{place}={{"$masked": "a secret"}}', "--set", "/total=1.0", "--json")
    assert found.code == 0, found.err
    after = studio("show", database, found.doc["checkpoint_id"], "--json", "--show-secrets").doc["values"]
    assert after == {**STATE, "total": 1.0}


CUTS: list[tuple[Any, Any]] = [
    ("x" * 100, {"size": 100, "head": "x" * 9 + "y"}),
    ("x" * 100, {"size": 99, "head": "x" * 10}),
    ("x" * 100, {"size": 100, "head": "x" * 100}),
    ("x" * 100, {"size": 100}),
    (list(range(50)), {"size": 50, "head": [0, 1, 3]}),
    (list(range(50)), {"size": 50, "head": [0, "1"]}),
    ({str(at): at for at in range(50)}, {"size": 50, "head": {"0": 0, "1": 2}}),
    (b"\x00" * 50, {"size": 50, "head": {"$bytes": "AQ=="}}),
    (12, {"size": 1, "head": "1"}),
    ("short", {"size": 5, "head": 5}),
]


@pytest.mark.parametrize(("stored", "cut"), CUTS, ids=map(str, range(len(CUTS))))
def test_a_cut_that_is_not_what_was_shown_is_refused(studio: Studio, tmp_path: Path, stored: Any, cut: Any) -> None:
    path = make_states(tmp_path / "state.sqlite", {"long": stored})
    found = studio("fork", path, "head", "--set", f"/long={json.dumps({'$cut': cut})}")
    assert (found.code, found.out) == (1, "")
    assert "cut value cannot be changed" in found.err or '$cut needs the "size"' in found.err
    assert "hint: Set a part of it by its own path, or write the whole value." in found.err


@pytest.mark.parametrize(
    "stored",
    [
        "x" * 100,
        list(range(50)),
        {str(at): at for at in range(50)},
        {1: "a", 2: "b", **dict.fromkeys(range(3, 20), "c")},
        b"\x01" * 40,
        [["deep" * 20] * 20] * 20,
        Tagged.of_payload(0, ["builtins", "set", [*range(30)]]),
        {"$a": 1, **{str(at): at for at in range(20)}},
    ],
)
def test_what_was_cut_when_it_was_shown_is_taken_back_as_it_was_stored(stored: Any) -> None:
    value = decode("msgpack", encode("msgpack", stored))
    assert equal(from_tagged(to_tagged(value, limit=5), value), value)


def test_the_elements_of_an_array_and_the_sum_of_closed_bytes_cannot_be_changed_in_their_placeholders() -> None:
    array = Tagged.of_payload(6, ["<i2", [2, 2], "C", b"\x01\x00\x02\x00\x03\x00\x04\x00"])
    document = to_tagged(array)
    assert from_tagged({"$array": {}}, array) is array
    document["$array"]["preview"][1] = 9
    with pytest.raises(PatchError, match="array cannot be changed"):
        from_tagged(document, array)
    with pytest.raises(PatchError, match="array cannot be changed"):
        from_tagged({"$array": {"dtype": "<i4"}}, array)
