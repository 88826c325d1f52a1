"""The queue by itself, with an engine whose answers are written down: faults of one answer, refusals while busy, the stop."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from starlette.testclient import TestClient

from engine import Finished, GenerationRequest
from engine.server.api import Api
from engine.server.desk import Desk, Failed, Item, Job
from engine.server.errors import ApiError, loading
from engine.server.origins import as_origin
from engine.server.settings import ServerSettings
from tests.engine.server.desked import Desked, Scripted, ask


def test_jobs_are_answered_in_the_order_they_came_and_cancelled_ones_not_at_all(desked: Desked) -> None:
    long, _, _ = desked.submit("long")
    assert desked.engine.long.wait(20)
    jobs = [desked.submit(text) for text in ("a", "b", "c", "d")]
    assert [desked.desk.ahead(job) for job, *_ in jobs] == [1, 2, 3, 4] and desked.desk.ahead(long) == 0
    jobs[1][0].cancel.set()
    assert desked.desk.ahead(jobs[3][0]) == 3 and desked.desk.waiting == 3
    long.cancel.set()
    assert jobs[3][2].wait(20)
    assert desked.engine.answered == ["long", "a", "c", "d"]


@pytest.mark.parametrize(("fault", "code"), [("broken", "model_error"), ("bug", "internal_error")])
def test_an_answer_that_breaks_is_an_error_of_its_stream_and_the_queue_goes_on(desked: Desked, fault: str, code: str) -> None:
    client = desked.client()
    streamed = client.post("/v1/chat/completions", json=ask(fault, stream=True)).text
    *_, last, end = streamed.split("\n\n")
    assert '"content":"' + fault in streamed and f'"code":"{code}"' in last and end == "" and "[DONE]" not in streamed
    whole = client.post("/v1/chat/completions", json=ask(fault))
    assert (whole.status_code, whole.json()["error"]["code"], whole.json()["error"]["type"]) == (500, code, "server_error")
    assert client.post("/v1/chat/completions", json=ask("fine")).json()["choices"][0]["message"]["content"] == "fine"
    assert 'slipstream_refused_requests_total{status="500"} 2.0' in client.get("/metrics").text


def test_whom_the_door_or_the_key_turns_away_is_counted_too(desked: Desked) -> None:
    settings = ServerSettings("testserver", local_only=True, api_key="key")
    application = Api(desked.desk, desked.metrics, settings, desked.journal).application()
    client = TestClient(application, headers={"Authorization": "Bearer wrong"})
    assert client.get("/v1/models").status_code == 401
    assert [client.get("/health", headers=bad).status_code for bad in ({"Host": "a.example"}, {"Origin": "http://a"})] == [403] * 2
    counted = desked.metrics.text().decode()
    assert 'refused_requests_total{status="401"} 1.0' in counted and 'refused_requests_total{status="403"} 2.0' in counted


def test_a_packed_body_is_told_to_come_unpacked_and_not_that_it_is_no_json(desked: Desked) -> None:
    packed = gzip.compress(json.dumps(ask("hello")).encode())
    answer = desked.client().post("/v1/chat/completions", content=packed, headers={"Content-Encoding": "gzip"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "unsupported_encoding")
    assert "gzip" in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("written", "sent"),
    [("http://OK.de:80", "http://ok.de"), ("https://ok.de:443/", "https://ok.de"), ("https://ok.de:80", "https://ok.de:80")],
)
def test_a_page_is_known_as_browsers_name_it_however_its_port_is_written(written: str, sent: str) -> None:
    assert as_origin(written) == sent


def test_what_cannot_be_answered_is_refused_while_another_answer_runs(desked: Desked) -> None:
    job, _, _ = desked.submit("long")
    refused = desked.client().post("/v1/chat/completions", json=ask("bad", stream=True))
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "top_p")
    assert desked.desk.running and "bad" not in desked.engine.answered
    job.cancel.set()


def test_an_open_answer_goes_on_while_a_huge_prompt_is_counted_and_later_ones_keep_their_places(desked: Desked) -> None:
    job, items, _ = desked.submit("long")
    _, _, huge_ended = desked.submit("huge")
    _, _, ended = desked.submit("after")
    assert desked.engine.counting.wait(20)
    before, deadline = len(items), time.monotonic() + 20
    while len(items) < before + 5:
        assert time.monotonic() < deadline, "the open answer waits"
        time.sleep(0.005)
    job.cancel.set()
    assert not huge_ended.is_set() and not ended.is_set()
    desked.engine.counted.set()
    assert ended.wait(20) and desked.engine.answered == ["long", "huge", "after"]


def test_a_client_that_leaves_while_its_prompt_is_counted_is_not_answered(desked: Desked) -> None:
    job, items, _ = desked.submit("huge")
    assert desked.engine.counting.wait(20)
    job.cancel.set()
    desked.engine.counted.set()
    assert desked.submit("next")[2].wait(20) and desked.engine.answered == ["next"] and items == []


def test_the_desk_is_left_only_when_nothing_is_counted_any_more(desked: Desked) -> None:
    """Whoever ran it may then close the engine."""
    _, items, refused = desked.submit("huge")
    assert desked.engine.counting.wait(20)
    desked.stop.set()
    assert refused.wait(20) and isinstance(items[-1], Failed) and items[-1].error.status == 503
    desked.thread.join(0.2)
    assert desked.thread.is_alive()
    desked.engine.counted.set()


def test_a_full_desk_says_when_to_come_again(desked: Desked) -> None:
    jobs = [desked.submit("long") for _ in range(9)]
    with pytest.raises(ApiError) as refused:
        desked.submit("one more")
    assert refused.value.status == 429 and (refused.value.retry_after or 0) >= 1
    jobs[4][0].cancel.set()
    desked.submit("one more")
    for job, *_ in jobs:
        job.cancel.set()


def test_the_stop_ends_the_open_answer_refuses_those_that_wait_and_takes_no_more(desked: Desked) -> None:
    _, open_items, ended = desked.submit("long")
    assert desked.engine.long.wait(20)
    _, waiting_items, refused = desked.submit("waits")
    desked.stop.set()
    assert ended.wait(20) and refused.wait(20)
    assert isinstance(open_items[-1], Finished) and open_items[-1].reason == "cancelled"
    assert isinstance(waiting_items[-1], Failed) and waiting_items[-1].error.status == 503
    desked.thread.join(20)
    with pytest.raises(ApiError) as late:
        desked.submit("late")
    assert late.value.status == 503


class Stepped:
    """A desk that this thread answers for, one step a call, as a program does that has other work in between."""

    def __init__(self) -> None:
        self.calls, self.seen = 0, list[object]()
        self.desk = Desk(8, self.seen.append, self._call)
        self.engine = Scripted()

    def _call(self) -> None:
        self.calls += 1

    def submit(self, text: str) -> list[Item]:
        items: list[Item] = []
        self.desk.submit(Job(GenerationRequest.of(text), items.append))
        self.desk._counting.submit(lambda: None).result()  # it was counted before this
        return items

    def use(self) -> None:
        self.desk.use(self.engine)  # type: ignore[arg-type]


def test_one_call_is_made_for_any_number_that_wait_and_the_next_only_after_a_step() -> None:
    stepped = Stepped()
    stepped.use()
    for text in ("a", "b", "c"):
        stepped.submit(text)
    assert stepped.calls == 1
    assert stepped.desk.step() and stepped.engine.answered == ["a"] and stepped.calls == 2
    stepped.submit("d")
    assert stepped.calls == 2, "others have their turn before it"
    assert [stepped.desk.step() for _ in range(4)] == [True, True, True, False]
    assert stepped.engine.answered == ["a", "b", "c", "d"] and stepped.calls == 4
    stepped.submit("e")
    assert stepped.calls == 5


def test_who_watches_sees_every_answer_from_its_request_to_its_end() -> None:
    stepped = Stepped()
    stepped.use()
    stepped.submit("a")
    stepped.submit("broken")
    stepped.desk.step()
    stepped.desk.step()
    kinds = [type(seen).__name__ for seen in stepped.seen]
    assert kinds == ["GenerationRequest", "Started", "TextDelta", "Finished", "GenerationRequest", "Started", "TextDelta", "Failed"]


def test_a_desk_without_an_engine_says_why_and_goes_on_with_the_next_one() -> None:
    stepped = Stepped()

    def refusal() -> tuple[int, str | None, int | None]:
        with pytest.raises(ApiError) as refused:
            stepped.submit("x")
        return refused.value.status, refused.value.code, refused.value.retry_after

    assert refusal() == (503, "model_loading", 5)
    stepped.desk.use(None)
    assert refusal() == (503, "no_model", None)
    stepped.use()
    waiting = stepped.submit("waits")
    stepped.desk.leave(loading)
    (failed,) = waiting
    assert isinstance(failed, Failed) and failed.error.code == "model_loading" and refusal() == (503, "model_loading", 5)
    assert not stepped.desk.step() and stepped.engine.answered == []
    stepped.use()
    stepped.submit("again")
    assert stepped.desk.step() and stepped.desk.loaded.info is stepped.engine.info
    stepped.desk.close()
    stepped.use()
    assert refusal() == (503, "stopping", 5), "closed is closed"
