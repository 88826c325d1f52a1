"""Search finds words in any script and case, and its index never drifts from the messages."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.core.chat import Attachment
from app.store import ChatStore
from app.store import connection as connection_module
from app.store import search as search_module
from app.store.search import has_fts5, message_text


def pretend_no_fts5(patch: pytest.MonkeyPatch) -> None:
    for module in (search_module, connection_module):
        patch.setattr(module, "has_fts5", lambda db: False)


@pytest.fixture(params=["index", "no index"])
def either(request: pytest.FixtureRequest, path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChatStore]:
    """A store with FTS5, and one as where SQLite was built without it."""
    if request.param == "no index":
        pretend_no_fts5(monkeypatch)
    store = ChatStore(path)
    assert store._indexed == (request.param == "index")
    yield store
    store.close()


def titles(store: ChatStore, text: str) -> list[str]:
    return [hit.chat.title for hit in store.search(text)]


def check_index(store: ChatStore) -> None:
    """Raises if the index differs from the messages in any term."""
    store._db.execute("INSERT INTO message_index(message_index, rank) VALUES ('integrity-check', 1)")


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("sunlight", True), ("SUNLIGHT", True), ("water sun", True), ("nligh", True), ("虹の", True), ("虹", True),
        ("of", True), ("ÜBER", True), ("über", True), ("sunlight moon", False), ("100%", True), ("%", True),
        ("_", False),
        ('"quoted"', True), ("a* OR b", False), ("'", False), ("(", False), ("👩‍👩‍👧", True), ("drop_of", False),
    ],
)  # fmt: skip
def test_every_word_of_the_query_has_to_be_there(either: ChatStore, query: str, found: bool):
    chat = either.create_chat("first")
    either.add_message(chat.id, "user", 'Sunlight in a drop of water. 虹の色 Über 100% "quoted" 👩‍👩‍👧', "sent")
    either.create_chat("other")
    assert titles(either, query) == (["first"] if found else [])


def test_titles_are_searched_too(either: ChatStore):
    chat = either.create_chat("Ärger mit Regen")
    hit = either.search("ärger")[0]
    assert (hit.chat, hit.message_id, hit.excerpt) == (chat, None, "")


def test_a_chat_is_found_once_with_its_newest_match_and_the_text_around_it(either: ChatStore):
    chat, newer = either.create_chat("a"), either.create_chat("b")
    either.add_message(chat.id, "user", "a prism there", "sent")
    match = either.add_message(chat.id, "user", "x" * 200 + "\nthen a PRISM\nsplits light " + "y" * 200, "sent")
    either.add_message(chat.id, "user", "nothing", "sent")
    either.add_message(newer.id, "user", "prism", "sent")
    hits = either.search("prism")
    assert [hit.chat.title for hit in hits] == ["b", "a"]
    assert hits[1].message_id == match.id
    assert "then a PRISM splits light" in hits[1].excerpt
    assert hits[1].excerpt.startswith("…") and hits[1].excerpt.endswith("…")
    assert len(hits[1].excerpt) < 100


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ('print("hi")', True), ("C:\\new", True), ("rain.py", True), ("虹の", True), ("tab here", True), ("second", True),
        ("question sunlight", True), ("name", False), ('"text":', False), ("\\t", False), ("gone", False),
    ],
)  # fmt: skip
def test_attachments_are_searched_as_the_text_they_hold(either: ChatStore, query: str, found: bool):
    chat = either.create_chat("first")
    files = (Attachment("rain.py", 'print("hi")\n\ttab here C:\\new'), Attachment("b", "second 虹の色 sunlight"))
    either.add_message(chat.id, "user", "a question", "sent", attachments=files)
    assert titles(either, query) == (["first"] if found else [])


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(*[st.text(st.sampled_from('ab"\\,:{}[] \n\t虹nt'))] * 2), min_size=1, max_size=3),
    st.permutations([(), ("pdf", 12, 345), ("docx",)]),
)
def test_what_search_reads_of_attachments_is_their_names_and_texts(
    store: ChatStore, files: list[tuple[str, str]], kinds: list[tuple]
):
    kept = [Attachment(*file, *about) for file, about in zip(files, itertools.cycle(kinds), strict=False)]
    message = store.add_message(store.create_chat("a").id, "user", "said", "sent", attachments=kept)
    (text,) = store._db.execute(f"SELECT {message_text('messages')} FROM messages WHERE id = ?", (message.id,)).fetchone()
    assert text == "\n".join(["said", *(part for file in files for part in file)])
    check_index(store)


def test_what_was_found_in_another_branch_is_found_too(either: ChatStore):
    chat = either.create_chat("a")
    question = either.add_message(chat.id, "user", "question", "sent")
    hidden = either.add_message(chat.id, "assistant", "a prism", "done")
    either.add_message(chat.id, "assistant", "a drop", "done", parent=question.id)
    assert [hit.message_id for hit in either.search("prism")] == [hidden.id]


def test_an_empty_query_finds_nothing(either: ChatStore):
    either.create_chat("a")
    assert either.search("") == either.search(" \n") == []


def test_the_number_of_hits_is_limited(either: ChatStore):
    for _ in range(5):
        either.create_chat("same")
    assert len(either.search("same", limit=3)) == 3


def test_an_answer_is_found_when_it_is_finished_and_gone_when_it_is_deleted(store: ChatStore):
    chat = store.create_chat("a")
    answer = store.add_message(chat.id, "assistant", "rain", "streaming")
    store.update_message(answer.id, "rainbow")
    assert store.search("rainbow") == []
    store.update_message(answer.id, state="done")
    assert store.search("rainbow")[0].message_id == answer.id
    store.update_message(answer.id, "snow only")
    assert store.search("rainbow") == []
    assert store.search("snow")[0].message_id == answer.id
    store.delete_chat(chat.id)
    assert store.search("snow") == []
    check_index(store)


def test_an_interrupted_answer_is_found(store: ChatStore):
    chat = store.create_chat("a")
    store.add_message(chat.id, "assistant", "half a rainbow", "streaming")
    store.recover()
    assert titles(store, "rainbow") == ["a"]
    check_index(store)


actions = st.lists(
    st.tuples(
        st.sampled_from(("add", "change", "delete chat", "recover")),
        st.integers(0, 5),
        st.sampled_from(("rain", "snow and ice", "日本語の虹", "")),
        st.sampled_from(("sent", "streaming", "done", "stopped")),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40, deadline=None)
@given(actions)
def test_the_index_agrees_with_the_messages_after_any_changes(store: ChatStore, steps: list[tuple[str, int, str, str]]):
    chats = [store.create_chat("x").id for _ in range(2)]
    ids: list[int] = []
    for action, number, content, state in steps:
        if action == "add" and chats:
            ids.append(store.add_message(chats[number % len(chats)], "user", content, state).id)
        elif action == "change" and ids:
            store.update_message(ids[number % len(ids)], content, state)
        elif action == "delete chat" and chats:
            store.delete_chat(chats.pop())
        elif action == "recover":
            store.recover()
    check_index(store)


def test_messages_written_without_the_index_are_found_once_it_is_back(path: Path, monkeypatch: pytest.MonkeyPatch):
    store = ChatStore(path)
    chat = store.create_chat("a")
    store.add_message(chat.id, "user", "rain before", "sent")
    store.close()
    with monkeypatch.context() as patch:
        pretend_no_fts5(patch)
        without = ChatStore(path)
        without.add_message(chat.id, "user", "snow meanwhile", "sent")
        assert titles(without, "snow") == ["a"]
        without.close()
    again = ChatStore(path)
    assert titles(again, "snow") == titles(again, "rain") == ["a"]
    check_index(again)
    again.close()


@pytest.mark.parametrize("place", ["content", "attachment"])
def test_words_far_into_a_very_long_message_are_found_and_the_index_stays_sound(either: ChatStore, place: str):
    chat, text = either.create_chat("a"), "early " * 20_000 + "Needle"
    files = [Attachment("b.txt", text)] if place == "attachment" else []
    message = either.add_message(chat.id, "user", "See" if files else text, "sent", attachments=files)
    either.add_message(either.create_chat("other").id, "user", "needless", "sent")
    assert titles(either, "early") == ["a"]
    assert titles(either, "needle") == ["other", "a"] and titles(either, "early needle") == ["a"]
    assert titles(either, "early le") == ["a"] and titles(either, "early needles") == []
    (hit,) = either.search("early NEEDLE")
    assert hit.message_id == message.id and "early" in hit.excerpt
    if either._indexed:
        check_index(either)
    either.update_message(message.id, "short")
    assert titles(either, "needle") == (["other", "a"] if files else ["other"])
    either.delete_messages(message.id)
    assert titles(either, "early") == []


def test_only_the_long_messages_are_read_through(store: ChatStore):
    plan = " ".join(row[-1] for row in store._db.execute(f"EXPLAIN QUERY PLAN SELECT id FROM messages WHERE {search_module.LONG}"))
    assert "messages_long" in plan


def test_this_sqlite_keeps_the_index(store: ChatStore):
    assert has_fts5(store._db)


@pytest.mark.parametrize("typed", ["cafe\u0301s", "caf\u00e9s", "CAFE\u0301S", "\u00e9s", "e\u0301s"])
def test_accents_are_found_however_they_were_typed(either, typed):
    for title, text in (("composed", "two caf\u00e9s"), ("apart", "two cafe\u0301s"), ("none", "two cafes")):
        either.add_message(either.create_chat(title).id, "user", text, "sent")
    either.create_chat("caf\u00e9s, a title")
    assert titles(either, typed)[-2:] == ["apart", "composed"] and len(titles(either, typed)) == 3
    assert titles(either, f"two {typed}") == ["apart", "composed"]
    assert all("two" in hit.excerpt and "s" in hit.excerpt for hit in either.search(f"{typed} two"))
