"""Messages are edited one by one: what is not touched keeps its bytes, what is touched keeps its type, and the fork says so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studio import rewriting, tagged, value
from studio.errors import PatchError
from studio.model import Address, State
from studio.requests import ForkRequest
from studio.rewriting import Rewriting
from studio.session import Session
from tests.editing import delta_file, edit_file, edit_graph
from tests.factories import config, saver_at


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    folder = tmp_path_factory.mktemp("rewriting")
    edit_file(folder / "edit.sqlite")
    opened = Session.open(str(folder / "edit.sqlite"), scratch=str(folder / "s.sqlite"))
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def state(session: Session) -> State:
    return session.state(session.resolve("2", "t"))


def forked(session: Session, edited: Rewriting) -> Address:
    result = session.fork(ForkRequest(edited.state.checkpoint.address, edited.patch()))
    assert result.verified and not result.surprises
    return result.address


def loaded(session: Session, address: Address) -> list[Any]:
    """The messages of a fork, as the real saver and serializer give them to a graph."""
    with saver_at(session.scratch_path) as saver:
        found = saver.get_tuple(config(address.thread_id, address.checkpoint_id))
    assert found is not None
    return list(found.checkpoint["channel_values"]["messages"])


def raw(message: Any) -> bytes:
    return value.encode("msgpack", message)


# ---------------------------------------------------------------------- one edit each


def test_a_new_text_leaves_type_ids_and_metadata_and_the_other_messages(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "edit", "at": 2, "texts": [[None, "Let me look."]]})
    assert edited.patch().set == {"/messages/2/content": "Let me look."} and not edited.patch().unset
    at = forked(session, edited)
    message = loaded(session, at)[2]
    assert (type(message).__name__, message.content, message.id) == ("AIMessage", "Let me look.", "ai-1")
    assert message.usage_metadata["total_tokens"] == 17 and message.response_metadata["model_name"] == "m-1"
    stored = session.state(at).values["messages"]
    assert [raw(one) == raw(other) for one, other in zip(stored, state.values["messages"], strict=True)].count(False) == 1


def test_a_block_of_text_changes_and_the_blocks_beside_it_stay(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "edit", "at": 5, "texts": [[0, "It is k2."]]})
    assert edited.patch().set == {"/messages/5/content/0/text": "It is k2."}
    content = loaded(session, forked(session, edited))[5].content
    assert content[0] == {"type": "text", "text": "It is k2.", "annotations": []}
    assert [block["type"] for block in content] == ["text", "image_url", "tool_use"]


def test_new_arguments_of_a_call_reach_the_copies_that_a_provider_left(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "edit", "at": 2, "calls": [[0, "find", {"q": "pot", "n": 2.0}]]})
    edited = edited.then({"do": "edit", "at": 5, "calls": [[0, "order", {"sku": "k2"}]]})
    first, second = (loaded(session, forked(session, edited))[at] for at in (2, 5))
    assert first.tool_calls[0] == {"name": "find", "args": {"q": "pot", "n": 2.0}, "id": "call_1", "type": "tool_call"}
    assert first.additional_kwargs["tool_calls"][0]["function"] == {"name": "find", "arguments": '{"q": "pot", "n": 2.0}'}
    assert first.tool_calls[1]["args"] == {"sku": "k1", "exact": 49.0}
    assert second.content[2] == {"type": "tool_use", "id": "call_3", "name": "order", "input": {"sku": "k2"}}


def test_arguments_that_are_stored_as_a_text_stay_a_text(session: Session, state: State) -> None:
    edited = Rewriting(state, "chat").then({"do": "edit", "at": 1, "calls": [[0, "find", '{"q":  "pot"}']]})
    assert edited.patch().set == {"/chat/1/tool_calls/0/function/arguments": '{"q":  "pot"}'}
    with pytest.raises(PatchError, match="must be a map"):
        edited.then({"do": "edit", "at": 1, "calls": [[0, "find", "[1]"]]})


def test_a_removed_call_takes_its_copies_along_and_its_result_is_pointed_out(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "uncall", "at": 2, "call": 0})
    assert edited.problems() == {3: ("an answer to a tool call that is not here (call_1)",)}
    message = loaded(session, forked(session, edited))[2]
    assert [call["id"] for call in message.tool_calls] == ["call_2"] and message.additional_kwargs["tool_calls"] == []


def test_a_deleted_result_leaves_its_call_open_and_the_preview_of_the_fork_says_so(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "delete", "at": 3})
    assert edited.patch().unset == ("/messages/3",) and not edited.patch().set
    assert [text for texts in edited.problems().values() for text in texts] == [
        'the tool call find(q="kettle") has no answer (call_1)'
    ]
    shown = session.preview(ForkRequest(state.checkpoint.address, edited.patch()))
    assert '/messages/2: the tool call find(q="kettle") has no answer (call_1).' in shown.warnings
    again = edited.then({"do": "restore", "at": 3})
    assert not again.patch() and again.problems() == {}


def test_a_new_tool_result_answers_an_open_call_and_is_a_toolmessage(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "delete", "at": 4})
    assert [call.id for call in edited.open_calls(4)] == ["call_2"]
    edited = edited.then(edited.insertion(3, "tool", "49.00"))
    assert edited.problems() == {}
    message = loaded(session, forked(session, edited))[4]
    assert (type(message).__name__, message.content, message.tool_call_id, message.name, message.status) == (
        "ToolMessage",
        "49.00",
        "call_2",
        "price_of",
        "success",
    )
    assert message.id not in {None, "tool-2"}
    with pytest.raises(PatchError, match="No tool call"):
        edited.insertion(0, "tool")


@pytest.mark.parametrize(
    ("role", "kind"), [("user", "HumanMessage"), ("assistant", "AIMessage"), ("system", "SystemMessage")]
)  # fmt: skip
def test_a_new_message_is_one_of_langchain_with_an_id_of_its_own(session: Session, state: State, role: str, kind: str) -> None:
    edited = Rewriting(state, "messages")
    edited = edited.then(edited.insertion(1, role, "new words"))
    messages = loaded(session, forked(session, edited))
    assert (type(messages[2]).__name__, messages[2].content) == (kind, "new words")
    assert len({message.id for message in messages}) == len(messages) == 9
    stored = edited.values
    assert [one is other for one, other in zip(stored[3:], state.values["messages"][2:], strict=True)] == [True] * 6


def test_a_new_message_among_plain_maps_is_a_plain_map(state: State) -> None:
    edited = Rewriting(state, "chat").then({"do": "delete", "at": 2})
    edited = edited.then(edited.insertion(1, "tool", "k2"))
    edited = edited.then(edited.insertion(4, "user", "And now?"))
    assert edited.values[2] == {"role": "tool", "tool_call_id": "c1", "content": "k2"}
    assert edited.values[-1] == {"role": "user", "content": "And now?"}


def test_moved_messages_are_named_by_their_place_and_not_written_out(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "move", "at": 7, "to": 0})
    assert edited.moved() == {0} and edited.summary() == "1 moved"
    assert edited.patch().set == {"/messages": [{"$item": at} for at in (7, 0, 1, 2, 3, 4, 5, 6)]}
    assert loaded(session, forked(session, edited))[0].id == "ai-3"


def test_each_step_and_all_of_them_can_be_taken_back_and_done_again(state: State) -> None:
    first = Rewriting(state, "messages").then({"do": "edit", "at": 0, "texts": [[None, "a"]]})
    second = first.then({"do": "delete", "at": 1})
    assert second.summary() == "1 changed, 1 deleted"
    assert second.undo().summary() == "1 changed" and second.undo().redo().summary() == second.summary()
    assert second.reset().summary() == "" and not second.reset().patch()
    assert second.undo().then({"do": "delete", "at": 5}).steps[-1] == {"do": "delete", "at": 5}
    assert second.then({"do": "edit", "at": 0, "texts": [[None, "You sell kettles."]]}).summary() == "1 deleted"


def test_a_fork_of_messages_that_are_stored_as_deltas_stores_them_whole(tmp_path: Path) -> None:
    delta_file(tmp_path / "delta.sqlite")
    with closing(Session.open(str(tmp_path / "delta.sqlite"), scratch=str(tmp_path / "s.sqlite"))) as opened:
        found = opened.state(opened.resolve("2", "t"))
        assert found.rebuilt.get("messages") == "exact"
        edited = Rewriting(found, "messages").then({"do": "edit", "at": 2, "texts": [[None, "Which pot?"]]})
        edited = edited.then({"do": "move", "at": 0, "to": 8})
        messages = loaded(opened, forked(opened, edited))
        assert messages[1].content == "Which pot?" and messages[8].id == "hum-0"


def test_the_graph_goes_on_with_the_edited_messages(session: Session, state: State) -> None:
    edited = Rewriting(state, "messages").then({"do": "delete", "at": 7})
    at = forked(session, edited)
    with saver_at(session.scratch_path) as saver:
        ended = edit_graph(saver).invoke(None, config("t", at.checkpoint_id))
    assert len(ended["messages"]) == 7 and "size=Size" in ended["kinds"]


def test_channels_that_hold_messages_are_found_and_others_refused(state: State) -> None:
    assert rewriting.channels(state) == ["messages", "chat"]
    with pytest.raises(PatchError, match="holds no list of messages"):
        Rewriting(state, "note")


# ---------------------------------------------------------------------- any edit


def _steps(edited: Rewriting, data: st.DataObject) -> Rewriting:
    """One more step of any kind."""
    size = len(edited.entries)
    at = data.draw(st.integers(0, size - 1)) if size else 0
    kinds = ["insert", *(["delete", "restore", "move", "text", "call", "uncall"] if size else [])]
    kind = data.draw(st.sampled_from(kinds))
    entry = edited.entries[at] if size else None
    if kind == "insert":
        role = data.draw(st.sampled_from(["user", "assistant", "system", "tool"]))
        try:
            return edited.then(edited.insertion(at - 1 if size else -1, role, data.draw(st.text(max_size=5))))
        except PatchError:
            return edited
    if kind == "move":
        return edited.then({"do": "move", "at": at, "to": data.draw(st.integers(0, size))})
    if kind in ("delete", "restore"):
        return edited.then({"do": kind, "at": at})
    assert entry is not None
    fields = tagged.to_tagged(entry.value)
    fields = fields.get("fields", fields)
    if kind == "text":
        block = 0 if isinstance(fields["content"], list) else None
        return edited.then({"do": "edit", "at": at, "texts": [[block, data.draw(st.text(max_size=8))]]})
    calls = fields.get("tool_calls") or []
    if not calls:
        return edited
    if kind == "uncall":
        return edited.then({"do": "uncall", "at": at, "call": len(calls) - 1})
    args = data.draw(st.dictionaries(st.sampled_from("abc"), st.integers() | st.floats() | st.text(max_size=3), max_size=2))
    return edited.then({"do": "edit", "at": at, "calls": [[0, "other", tagged.to_tagged(args)]]})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_the_patch_of_any_steps_gives_the_edited_list_and_the_stored_bytes_of_the_rest(
    session: Session, state: State, data: st.DataObject
) -> None:
    channel = data.draw(st.sampled_from(["messages", "chat"]))
    edited = Rewriting(state, channel)
    for _ in range(data.draw(st.integers(1, 6))):
        edited = _steps(edited, data)
    after = tagged.apply_patch(dict(state.values), edited.patch())
    assert value.equal(after[channel], edited.values)
    untouched = {
        raw(entry.value)
        for at, entry in enumerate(edited.entries)
        if entry.origin is not None and not entry.gone and not edited.changed(at)
    }
    assert untouched <= {raw(message) for message in state.values[channel]}
    assert untouched <= {raw(message) for message in after[channel]}
    assert value.encode("msgpack", [after[name] for name in after if name != channel]) == value.encode(
        "msgpack", [state.values[name] for name in after if name != channel]
    )
    if data.draw(st.integers(0, 7)) == 0:
        at = forked(session, edited)
        assert value.equal(session.state(at).values[channel], edited.values)


def test_ten_thousand_messages_take_a_step_without_a_pause(session: Session, state: State) -> None:
    import time

    from msgspec.structs import replace

    many = replace(state, values={"messages": state.values["messages"] * 1_250})
    start = time.perf_counter()
    edited = Rewriting(many, "messages").then({"do": "move", "at": 9_000, "to": 3}).then({"do": "delete", "at": 500})
    assert edited.summary() == "1 deleted, 1 moved" and len(edited.patch().set["/messages"]) == 9_999
    assert time.perf_counter() - start < 3
