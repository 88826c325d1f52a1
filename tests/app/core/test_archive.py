"""Chats as JSON: everything comes back, old files too, and what is damaged or foreign is refused as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.core.archive import ArchiveError, WholeChat, chat_json, chats_json
from app.core.archive import read_chats as reading
from app.core.chat import ROLES, STATES, Attachment, Chat, ChatMessage
from app.core.figures import answer_statistics
from tests.app.core import recordings

CHAT = Chat(3, "Rainbows 虹", 0.25, 86400.0, True, "Work", 12, {"temperature": 0.5, "system": "Be brief."})
MESSAGES = [
    ChatMessage(
        7, 3, "user", "Explain\n\n```py\nx\n```", "sent", 1.5, None, None,
        (Attachment("a.py", "x\n"), Attachment("b.pdf", "[Page 1]\ny", "pdf", 1, 7), Attachment("c", "")),
    ),
    ChatMessage(9, 3, "assistant", "Light **bends**.\n", "stopped", 2.0, answer_statistics(recordings.ENDED[-1]), 7),
    ChatMessage(12, 3, "assistant", "", "failed", 4.0, None, 7),
    ChatMessage(15, 3, "user", "Another beginning", "sent", 5.0),
]
VERSION_1 = {
    "format": "slipstream-chat-1",
    "title": "Old",
    "created_at": "2026-03-05T12:00:00+00:00",
    "updated_at": "2026-03-06T12:00:00+00:00",
    "messages": [
        {"role": "user", "content": "q", "state": "sent", "created_at": "2026-03-05T12:00:01+00:00", "statistics": None},
        {"role": "assistant", "content": "half", "state": "streaming", "created_at": "2026-03-05T12:00:02+00:00", "statistics": {}},
    ],
}


def read_chats(path: Path) -> list[WholeChat]:
    """Every step of reading; how far it is only grows, up to the whole file."""
    steps, shares = reading(path), [0.0]
    while True:
        try:
            shares.append(next(steps))
        except StopIteration as end:
            assert shares == sorted(shares) and shares[-1] <= 1.0
            return end.value


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_chat_comes_back_with_its_branches_attachments_options_and_times(tmp_path: Path):
    ((chat, messages),) = read_chats(written(tmp_path / "x.json", chat_json(CHAT, MESSAGES)))
    assert (chat.title, chat.created_at, chat.updated_at, chat.pinned, chat.folder, chat.options) == (
        CHAT.title, CHAT.created_at, CHAT.updated_at, True, "Work", CHAT.options,
    )  # fmt: skip
    assert chat.leaf_id == 3 and [(m.id, m.parent_id) for m in messages] == [(1, None), (2, 1), (3, 1), (4, None)]
    for before, after in zip(MESSAGES, messages, strict=True):
        assert (after.role, after.content, after.state, after.created_at, after.statistics, after.attachments) == (
            before.role, before.content, before.state, before.created_at, before.statistics, before.attachments,
        )  # fmt: skip


def test_what_was_read_is_written_again_the_same(tmp_path: Path):
    text = chat_json(CHAT, MESSAGES)
    assert "虹" in text and text.endswith("}\n")
    ((chat, messages),) = read_chats(written(tmp_path / "x.json", text))
    assert chat_json(chat, messages) == text


ENDED = [state for state in STATES if state != "streaming"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(ROLES), st.sampled_from(ENDED), st.text(), st.floats(0, 4e9), st.integers(0, 9)
        ),
        max_size=6,
    )
)  # fmt: skip
def test_any_tree_survives_writing_and_reading_unchanged(tmp_path_factory: pytest.TempPathFactory, turns):
    messages = [
        ChatMessage(10 + n, 1, role, text, state, at, None, 10 + parent if parent < n else None, (Attachment(text, text),))
        for n, (role, state, text, at, parent) in enumerate(turns)
    ]
    first = chat_json(Chat(1, "t", 1.0, 2.0, leaf_id=messages[-1].id if messages else None), messages)
    ((chat, again),) = read_chats(written(tmp_path_factory.getbasetemp() / "tree.json", first))
    assert chat_json(chat, again) == first
    assert [(m.role, m.content, m.state) for m in again] == [(m.role, m.content, m.state) for m in messages]


def test_many_chats_are_one_file_and_come_back_in_order(tmp_path: Path):
    pieces = list(chats_json([(CHAT, MESSAGES), (Chat(4, "Empty", 0.0, 0.0), [])]))
    chats = read_chats(written(tmp_path / "all.json", "".join(pieces)))
    assert [(chat.title, len(messages)) for chat, messages in chats] == [(CHAT.title, 4), ("Empty", 0)]
    assert "".join(chats_json(chats)) == "".join(pieces)
    assert read_chats(written(tmp_path / "none.json", "".join(chats_json([])))) == []


def test_a_chat_exported_by_version_1_is_one_chain(tmp_path: Path):
    ((chat, messages),) = read_chats(written(tmp_path / "x.slipchat", json.dumps(VERSION_1)))
    assert (chat.title, chat.pinned, chat.folder, chat.options, chat.leaf_id) == ("Old", False, "", {}, 2)
    assert [(m.content, m.parent_id, m.state) for m in messages] == [("q", None, "sent"), ("half", 1, "stopped")]


def changed(**values: object) -> str:
    return json.dumps({**json.loads(chat_json(CHAT, MESSAGES)), **values})


def with_turn(place: int = 0, **values: object) -> str:
    whole = json.loads(chat_json(CHAT, MESSAGES))
    whole["messages"][place] |= values
    return json.dumps(whole)


@pytest.mark.parametrize(
    "content",
    [
        "", "[]", "{}", "null", '"text"', "[" * 100_000, "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
        json.dumps({"messages": [{"role": "user", "content": "of another program"}]}),
        json.dumps({"format": "slipstream-chats-2", "chats": [json.loads(chat_json(CHAT, MESSAGES)), {}]}),
        changed(messages="abc"), changed(title=None), changed(options=[]), changed(pinned="yes"), changed(leaf=9),
        changed(created_at="yesterday"), changed(created_at="9999-99-99"), changed(updated_at=5), changed(folder=None),
        with_turn(role="root"), with_turn(state="x"), with_turn(content=5), with_turn(statistics=[1]), with_turn(id="1"),
        with_turn(parent=4), with_turn(1, id=1), with_turn(1, parent=77), with_turn(attachments=[{"name": "a"}]),
        with_turn(attachments=[["name", "text"]]), chat_json(CHAT, MESSAGES)[:-200],
    ],
)  # fmt: skip
def test_a_damaged_or_foreign_file_is_refused_as_a_whole_in_one_line(tmp_path: Path, content: str):
    path = written(tmp_path / "x.json", content)
    with pytest.raises(ArchiveError) as error:
        read_chats(path)
    assert str(error.value) == "x.json is no chat that Slipstream exported."


def test_a_file_of_a_newer_version_names_what_to_do(tmp_path: Path):
    with pytest.raises(ArchiveError, match="update this one"):
        read_chats(written(tmp_path / "x.json", changed(format="slipstream-chat-9")))


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path):
    with pytest.raises(ArchiveError, match="it is not there"):
        read_chats(tmp_path / "gone.json")
    with pytest.raises(ArchiveError, match="it is a folder"):
        read_chats(tmp_path)


def test_a_file_too_large_to_read_is_not_read(tmp_path: Path):
    with (tmp_path / "x.json").open("wb") as file:
        file.truncate(500_000_001)
    with pytest.raises(ArchiveError, match="larger than 500"):
        read_chats(tmp_path / "x.json")
