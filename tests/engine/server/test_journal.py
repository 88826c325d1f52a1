"""The journal has every request with its end and figures, the newest of a bounded number, and never a word of their texts."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from engine.server.journal import KEPT, LONGEST_NAME, Journal
from tests.engine.server.desked import NUMBERS, Desked, ask


def wait(done: Callable[[], bool]) -> None:
    end = time.monotonic() + 20
    while not done():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_each_kind_of_end_is_noted_with_its_program_and_figures(desked: Desked) -> None:
    client = desked.client()
    client.headers["User-Agent"] = "Editor/1.0"
    client.post("/v1/chat/completions", json=ask("secret words"))
    client.post("/v1/chat/completions", json=ask("bad"))
    client.post("/v1/chat/completions", json=ask("bug", stream=True))
    client.get("/v1/nothing")
    client.get("/v1/models", headers={"Origin": "https://evil.example"})
    entries = desked.journal.entries()[::-1]
    assert [entry.status for entry in entries] == [200, 400, 500, 404, 403]
    assert [(entry.method, entry.path) for entry in entries[2:4]] == [("POST", "/v1/chat/completions"), ("GET", "/v1/nothing")]
    assert [entry.statistics for entry in entries] == [NUMBERS, None, None, None, None]
    assert {entry.client for entry in entries} == {"Editor/1.0"} and not any(entry.open for entry in entries)
    assert "secret" not in repr(entries)


def test_a_request_waits_until_its_turn_whether_it_is_streamed_or_not(desked: Desked) -> None:
    first, *_ = desked.submit("long")
    assert desked.engine.long.wait(20)
    client = desked.client()
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(client.post, "/v1/chat/completions", json=ask("long", stream=stream)) for stream in (True, False)]
        wait(lambda: desked.desk.waiting == 2)
        assert [(entry.open, entry.answering) for entry in desked.journal.entries()] == [(True, False)] * 2
        first.cancel.set()
        wait(lambda: any(entry.answering for entry in desked.journal.entries()))
        assert [entry.answering for entry in desked.journal.entries()].count(True) == 1
        desked.stop.set()
        assert sorted(each.result(20).status_code for each in asked) == [200, 503]
    assert not any(entry.open for entry in desked.journal.entries())


def test_a_fault_of_the_server_itself_is_noted_as_one(desked: Desked, monkeypatch: pytest.MonkeyPatch) -> None:
    client = desked.client()
    monkeypatch.setattr(desked.metrics, "text", lambda: 1 / 0)
    assert client.get("/metrics").status_code == 500
    assert desked.journal.entries()[0].status == 500


def test_it_stays_bounded_in_number_and_in_what_clients_choose() -> None:
    journal = Journal()
    first = journal.begin("GET", "/" + "x" * 10_000, "y" * 10_000)
    assert len(first.path) == len(first.client) == LONGEST_NAME
    journal.put(replace(first, open=False))
    before = journal.version
    for _ in range(KEPT):
        journal.put(replace(journal.begin("GET", "/health", ""), open=False))
    journal.put(replace(first, open=False, status=200))  # said once more when it is no longer among the last
    entries = journal.entries()
    assert len(entries) == KEPT and first.number not in {entry.number for entry in entries}
    assert entries[0].number > entries[-1].number and journal.version > before


def test_what_is_still_open_stays_in_view_however_many_come_after_it() -> None:
    journal = Journal()
    answering = replace(journal.begin("POST", "/v1/chat/completions", "Editor"), answering=True)
    journal.put(answering)
    for _ in range(2 * KEPT):
        journal.put(replace(journal.begin("POST", "/v1/chat/completions", "Other"), status=429, open=False))
    assert journal.entries()[-1] == answering and len(journal.entries()) == KEPT
    journal.put(replace(answering, status=200, open=False))
    assert journal.entries()[-1].status == 200
    journal.begin("GET", "/health", "")
    assert answering.number not in {entry.number for entry in journal.entries()} and len(journal.entries()) == KEPT
