"""A branch too large for memory shows the same as any other, and no more of it is read than is drawn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studio.cli.documents import Documents
from studio.codec.lazylist import LazyList
from studio.diff import diff
from studio.session import Session
from studio.stores.transcripts import fold
from studio.stores.transcripts.fold import Folded
from studio.stores.transcripts.store import TranscriptStore
from tests.stores.transcripts.sessions import SESSION, Book, bakery, call
from tests.stores.transcripts.test_formats import baker, write

Write = Callable[[Path], Path]


def _rewound(folder: Path) -> Path:
    book = bakery()
    book.prompt("And the yeast?", parent=book.records[-2]["parentUuid"])
    book.answer("Eighty grams.")
    return book.write(folder)


def _rollout(folder: Path) -> Path:
    return write(folder / "rollout-2026-05-04T08-00-00-x.jsonl", *baker().lines)


def _chat(folder: Path) -> Path:
    return write(
        folder / "chat.jsonl", *({"role": role, "content": f"{role} {n}"} for n in range(4) for role in ("user", "assistant"))
    )


def states(path: Path) -> list[Any]:
    """The documents of every turn, its changes and its sizes."""
    session = Session.open(str(path))
    documents = Documents(False)
    found: list[Any] = []
    for thread in list(session.threads()):
        for row in session.tree(thread.thread_id).rows():
            at = row.checkpoint.address
            found += [
                documents.state(session.state(at)),
                documents.comparison(session.compare(at)),
                documents.sizes(session.sizes(at)),
            ]
    session.close()
    return json.loads(json.dumps(found))


@pytest.mark.parametrize("made", [_rewound, _rollout, _chat])
def test_a_large_branch_shows_the_same_as_a_small_one(made: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path)
    expected = states(path)
    monkeypatch.setattr(fold, "LARGE", 0)
    assert states(path) == expected


BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=5)),
    st.just({"type": "tool_result", "tool_use_id": "call_x", "content": "x"}),
    st.just({"type": "tool_result", "content": [{"type": "text", "text": "of no call"}]}),
    st.just({"type": "image", "source": {"type": "base64", "data": "QUJD"}}),
    st.just({"type": 5}),
    st.just({}),
    st.text(max_size=3),
    st.none(),
)
CONTENTS = st.one_of(st.text(max_size=5), st.none(), st.lists(BLOCKS, max_size=4), st.just({"text": "x"}), st.integers())
RECORDS = st.tuples(
    st.sampled_from(["user", "assistant", "system", "attachment", "progress", "new-kind"]),
    st.one_of(st.just(None), CONTENTS.map(lambda content: {"role": "user", "content": content})),
    st.fixed_dictionaries(
        {},
        optional={
            "isMeta": st.booleans(),
            "isCompactSummary": st.booleans(),
            "subtype": st.sampled_from(["compact_boundary", "api_error", "local_command", "away_summary", "turn_duration"]),
            "attachment": st.sampled_from([{"type": "queued_command", "prompt": "And?"}, {"type": "file"}, {}, "text"]),
            "content": st.text(max_size=3),
        },
    ),
)


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(RECORDS, min_size=1, max_size=6))
def test_the_index_counts_the_messages_that_are_made(tmp_path: Path, records: list[Any]) -> None:
    book = Book()
    book.prompt("Begin.")
    for kind, message, fields in records:
        book._add(kind, **({"message": message} if message is not None else {}), **fields)
    store = TranscriptStore(str(book.write(tmp_path)))
    list(store.threads())
    one = store.transcript(SESSION)
    assert one is not None
    folded = one.folded()
    for turn in one.woven.turns.values():
        assert folded.count(turn) == len(folded.said(turn).messages)
    store.close()


def test_two_neighbours_are_compared_without_what_they_share(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fold, "LARGE", 0)
    book = Book()
    for number in range(60):
        book.prompt(f"Question {number}.")
        book.answer(f"Answer {number}.", call(f"call_{number}", "Bash", command="true"))
        book.result(f"call_{number}")
    read: list[str] = []
    before = Folded._decode
    monkeypatch.setattr(Folded, "_decode", lambda self, turn: read.append(turn.id) or before(self, turn))
    session = Session.open(str(book.write(tmp_path)))
    head = session.resolve("head", SESSION)
    changes = session.compare(head).changes
    assert [change.path for change in changes if change.channel == "messages"] == ["/messages/178", "/messages/179"]
    assert set(read) <= {record["uuid"] for record in book.records[-6:]}
    session.close()


class Squares(LazyList):
    def __init__(self, size: int) -> None:
        super().__init__(range(size))
        self.read: list[int] = []

    def item(self, at: int) -> int:
        self.read.append(at)
        return at * at

    def source(self) -> object:
        return Squares


def test_a_lazy_list_is_a_list_to_whoever_looks() -> None:
    items = Squares(5)
    plain = [0, 1, 4, 9, 16]
    assert isinstance(items, list) and len(items) == 5 and items.read == []
    assert items[-1] == 16 and items[1:3] == [1, 4] and items.read == [4, 1, 2]
    assert items == plain and plain == items and items != [0]
    assert [*items] == list(items) == items.copy() == sorted(items) == plain
    assert list(reversed(items)) == plain[::-1] and 9 in items and 5 not in items
    one = [1]
    assert items + one == plain + one and one + items == one + plain
    assert items.index(9) == 3 and items.count(4) == 1
    with pytest.raises(IndexError):
        items[5]


def test_lazy_lists_differ_where_plain_ones_do() -> None:
    left, right = Squares(200), Squares(203)
    changes = diff({"list": left}, {"list": right})
    assert changes == diff({"list": [*left]}, {"list": [*right]})
    read = Squares(200), Squares(203)
    diff({"list": read[0]}, {"list": read[1]})
    assert len(read[0].read) + len(read[1].read) < 20


def _large(folder: Path) -> Path:
    """A session of more than 50 MB."""
    book = Book()
    path = folder / f"{SESSION}.jsonl"
    with path.open("w") as file:
        for number in range(600):
            book.prompt(f"Question {number}. " + "word " * 10_000)
            book.answer(
                "Answer. " * 2_000, call(f"call_{number}", "Edit", file_path="/a.md", old_string="a", new_string="b" * 20_000)
            )
            book.result(f"call_{number}", toolUseResult={"filePath": "/a.md"})
            file.writelines(line + "\n" for line in book.lines())
            book.records.clear()
            book.prefix = f"a{number % 10}{number // 10 % 10}{number // 100}"
    assert path.stat().st_size > 50_000_000
    return path


def _peak(*words: str) -> tuple[str, int]:
    """What a command says, and how many kilobytes it took at most."""
    code = (
        "import sys; from studio.cli import main; code = main(sys.argv[1:]); "
        "print(open('/proc/self/status').read().partition('VmHWM:')[2].split()[0], file=sys.stderr); sys.exit(code)"
    )
    shown = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True, env={**os.environ})
    return shown.stdout, int(shown.stderr.split()[-1])


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells the peak of one process")
def test_the_head_of_a_large_session_takes_little_memory(tmp_path: Path) -> None:
    shown, peak = _peak("show", str(_large(tmp_path)), "head")
    assert "1,800 ×" in shown
    assert peak < 100_000


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells the peak of one process")
def test_a_fork_of_a_large_session_holds_its_texts_and_its_bytes_once(tmp_path: Path) -> None:
    path = _large(tmp_path)
    shown, peak = _peak("fork", str(path), "head", "--json")
    assert json.loads(shown)["verified"] is True
    assert peak < 60_000 + 2.5 * path.stat().st_size / 1024
