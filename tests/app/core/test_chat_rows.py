"""The list of chats: pinned ones, folders, then days and months."""

from __future__ import annotations

from datetime import date, datetime

import pytest

from app.core.chat import Chat
from app.core.chat_rows import chat_rows, day_group, free_folder_name, hit_rows

TODAY = date(2026, 3, 5)
NOON = datetime(2026, 3, 5, 12, 0).timestamp()


def chat(chat_id: int, title: str, days_ago: float = 0, pinned: bool = False, folder: str = "") -> Chat:
    at = NOON - days_ago * 86_400
    return Chat(chat_id, title, at, at, pinned, folder)


@pytest.mark.parametrize(
    ("hours_ago", "group"),
    [
        (0, "Today"), (13, "Yesterday"), (37, "Previous 7 Days"), (-24, "Today"), (24 * 7, "Previous 7 Days"),
        (24 * 8, "February 2026"), (24 * 80, "December 2025"),
    ],
)  # fmt: skip
def test_chats_are_grouped_by_the_local_calendar(hours_ago, group):
    assert day_group(NOON - hours_ago * 3600, TODAY) == group


def test_pinned_chats_come_first_then_folders_by_name_then_the_rest_by_day():
    chats = [
        chat(1, "new"), chat(2, "letter", 1, folder="Work"), chat(3, "pin", 2, pinned=True, folder="Work"),
        chat(4, "poem", 3, folder="art"),
        chat(5, "old", 100), chat(6, "older", 101),
    ]  # fmt: skip
    rows = chat_rows(chats, TODAY)
    assert [(row.kind, row.text) for row in rows] == [
        ("heading", "Pinned"), ("chat", "pin"), ("heading", "Folders"), ("folder", "art"), ("chat", "poem"),
        ("folder", "Work"), ("chat", "letter"), ("heading", "Today"), ("chat", "new"), ("heading", "November 2025"),
        ("chat", "old"), ("chat", "older"),
    ]  # fmt: skip
    assert [row.folder for row in rows if row.kind == "chat"] == ["", "art", "Work", "", "", ""]


def test_a_closed_folder_hides_its_chats_and_stays():
    rows = chat_rows([chat(1, "letter", folder="Work"), chat(2, "x")], TODAY, {"Work", "gone"})
    assert [row.text for row in rows] == ["Folders", "Work", "Today", "x"] and rows[1].collapsed


def test_hits_carry_their_excerpt_and_message_whatever_folder_they_are_in():
    rows = hit_rows([chat(1, "a", folder="Work"), chat(2, "b", 1, pinned=True)], TODAY, {1: ("… light …", 7), 2: ("", None)})
    found = [(row.text, row.excerpt, row.message_id) for row in rows if row.kind == "chat"]
    assert found == [("a", "… light …", 7), ("b", "", None)]
    assert [row.text for row in rows if row.kind != "chat"] == ["Today", "Yesterday"]


def test_a_new_folder_gets_a_name_that_is_free():
    assert free_folder_name(["Work"]) == "New Folder"
    assert free_folder_name(["new folder", "New Folder 2"]) == "New Folder 3"
