"""Answers through the real ``openai`` client and raw server-sent events: text, figures, limits, cancelling, the queue."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Iterator
from typing import Any

import openai
import pytest

from engine import Finished, GenerationRequest, Message
from engine.engine import Engine
from tests.engine.server.conftest import PATIENCE_S, Served

RAINBOW = [{"role": "user", "content": "Explain how rainbows form."}]
LONG = [{"role": "user", "content": "Tell the whole history of every rainbow. " * 40}]


def generated(engine: Engine, prompt: str, **settings: Any) -> Finished:
    """What ``slipstream generate`` would answer."""
    *_, last = engine.generate(GenerationRequest.of(prompt, use_cache=False, **settings))
    assert isinstance(last, Finished)
    return last


def events(lines: Iterator[str]) -> Iterator[Any]:
    """The data of a stream's events, without comments."""
    for line in lines:
        if line.startswith("data: "):
            yield line[6:] if line == "data: [DONE]" else json.loads(line[6:])


def wait_until_idle(server: Served) -> None:
    end = time.monotonic() + PATIENCE_S
    while (state := server.http.get("/health").json())["running"] or state["waiting"]:
        assert time.monotonic() < end, state
        time.sleep(0.02)


def cancelled_since(server: Served, before: dict[str, float]) -> float:
    label = 'slipstream_answers_total{finish_reason="cancelled",mode="dflash"}'
    return server.counts().get(label, 0) - before.get(label, 0)


def test_greedy_text_is_that_of_generate_streamed_or_not(server: Served, engine: Engine) -> None:
    wanted = generated(engine, "Explain how rainbows form.", max_tokens=12)
    client = server.client()
    whole = client.chat.completions.create(model="starter", messages=RAINBOW, max_completion_tokens=12)
    assert whole.choices[0].message.content == wanted.text
    assert (whole.choices[0].finish_reason, whole.object, whole.model) == ("length", "chat.completion", "starter")
    assert whole.usage and (whole.usage.prompt_tokens, whole.usage.completion_tokens) == (wanted.statistics.prompt_tokens, 12)
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + 12
    chunks = list(
        client.chat.completions.create(
            model="starter", messages=RAINBOW, max_tokens=12, stream=True, stream_options={"include_usage": True}
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks[:-1]) == wanted.text
    assert [chunk.choices[0].finish_reason for chunk in chunks[:-1]] == [None] * (len(chunks) - 2) + ["length"]
    assert not chunks[-1].choices and chunks[-1].usage and chunks[-1].usage.total_tokens == whole.usage.total_tokens
    assert len({chunk.id for chunk in chunks}) == 1 and all(chunk.object == "chat.completion.chunk" for chunk in chunks)


def test_one_seed_gives_the_text_of_generate_in_every_mode(server: Served, engine: Engine) -> None:
    choices = {"temperature": 0.9, "top_p": 0.9, "top_k": 40, "min_p": 0.02, "presence_penalty": 0.3, "repetition_penalty": 1.1}
    wanted = generated(engine, "Explain how rainbows form.", mode="baseline", seed=7, max_tokens=8, **choices).text
    for mode in ("dflash", "baseline", "lookup"):
        answer = server.post(messages=RAINBOW, seed=7, max_tokens=8, mode=mode, **choices).json()
        assert answer["choices"][0]["message"]["content"] == wanted
        assert (answer["slipstream"]["mode"], answer["slipstream"]["seed"], answer["slipstream"]["fallback"]) == (mode, 7, None)


def test_without_a_seed_every_answer_is_drawn_anew(server: Served) -> None:
    answers = [server.post(messages=RAINBOW, temperature=1.5, max_tokens=1).json() for _ in range(2)]
    assert answers[0]["slipstream"]["seed"] != answers[1]["slipstream"]["seed"]


def test_a_bias_reaches_the_logits(server: Served, engine: Engine) -> None:
    (token,) = engine.encode([Message("user", " rainbow")], raw=True)
    answer = server.post(messages=RAINBOW, max_tokens=3, logit_bias={str(token): 100}).json()
    assert answer["choices"][0]["message"]["content"] == " rainbow" * 3


def test_the_second_turn_of_a_chat_starts_where_the_first_ended(server: Served) -> None:
    first = server.post(messages=LONG, max_tokens=8).json()
    assert first["usage"]["prompt_tokens"] > 300
    said = {"role": "assistant", "content": first["choices"][0]["message"]["content"]}
    second = server.post(messages=[*LONG, said, {"role": "user", "content": "Shorter."}], max_tokens=2).json()
    cached = second["usage"]["prompt_tokens_details"]["cached_tokens"]
    assert cached >= 0.75 * first["usage"]["prompt_tokens"]
    assert second["slipstream"]["cached_tokens"] == cached


def test_a_stop_text_ends_the_generation_itself(server: Served) -> None:
    text = server.post(messages=RAINBOW, max_tokens=12).json()["choices"][0]["message"]["content"]
    stop = text[20:26]
    answer = server.post(messages=RAINBOW, max_tokens=400, stop=["never said", stop]).json()
    assert answer["choices"][0]["message"]["content"] == text[: text.index(stop)]
    assert answer["choices"][0]["finish_reason"] == "stop" and answer["usage"]["completion_tokens"] < 12


def test_log_probabilities_come_as_openai_gives_them(server: Served, engine: Engine) -> None:
    wanted = generated(engine, "Explain how rainbows form.", max_tokens=4, logprobs=2)
    client = server.client()
    answer = client.chat.completions.create(model="starter", messages=RAINBOW, max_tokens=4, logprobs=True, top_logprobs=2)
    assert answer.choices[0].logprobs and answer.choices[0].logprobs.content
    content = answer.choices[0].logprobs.content
    assert "".join(entry.token for entry in content) == wanted.text
    assert b"".join(bytes(entry.bytes or ()) for entry in content).decode() == wanted.text
    assert [entry.logprob for entry in content] == pytest.approx([entry.logprob for entry in wanted.logprobs], abs=1e-4)
    assert all(entry.top_logprobs[0].token == entry.token and len(entry.top_logprobs) == 2 for entry in content)
    stream = client.chat.completions.create(model="starter", messages=RAINBOW, max_tokens=4, logprobs=True, stream=True)
    streamed = [entry for chunk in stream if chunk.choices[0].logprobs for entry in chunk.choices[0].logprobs.content or []]
    assert [entry.token for entry in streamed] == [entry.token for entry in content]


def test_completions_go_on_with_the_bare_prompt(server: Served, engine: Engine) -> None:
    wanted = generated(engine, "Once upon a time", raw=True, max_tokens=10).text
    client = server.client()
    whole = client.completions.create(model="starter", prompt="Once upon a time", max_tokens=10, logprobs=1)
    assert (whole.choices[0].text, whole.object, whole.choices[0].finish_reason) == (wanted, "text_completion", "length")
    assert whole.usage and whole.usage.prompt_tokens == 4
    columns = whole.choices[0].logprobs
    assert columns and "".join(columns.tokens or ()) == wanted and columns.top_logprobs and len(columns.top_logprobs) == 10
    assert columns.text_offset == [len("".join((columns.tokens or [])[:index])) for index in range(10)]
    stream = client.completions.create(model="starter", prompt=["Once upon a time"], max_tokens=10, stream=True)
    assert "".join(chunk.choices[0].text for chunk in stream) == wanted


def test_the_places_of_tokens_in_a_completion_count_characters_not_their_parts(server: Served) -> None:
    answer = server.post("/v1/completions", prompt="The emoji is: 😀 😀 😀 😀 😀", max_tokens=12, logprobs=0).json()["choices"][0]
    assert answer["text"] == " 😀" * 6, "each is two tokens: a space with a part of the character, and the rest of it"
    assert answer["logprobs"]["text_offset"] == list(range(12))


@pytest.mark.parametrize(
    ("path", "prompt", "limit"),
    [("/v1/chat/completions", {"messages": RAINBOW}, {"max_tokens": -1}),
     ("/v1/chat/completions", {"messages": RAINBOW}, {"max_completion_tokens": -1}),
     ("/v1/completions", {"prompt": "Once upon a time"}, {"max_tokens": -1})],
)  # fmt: skip
def test_a_limit_of_minus_one_is_none(server: Served, path: str, prompt: dict[str, Any], limit: dict[str, int]) -> None:
    """LM Studio's way to say so."""

    def choice(**more: Any) -> tuple[str, str]:
        found = server.post(path, **prompt, **more).json()["choices"][0]
        return found["message"]["content"] if "message" in found else found["text"], found["finish_reason"]

    text, _ = choice(max_tokens=24)  # more than the default of completions
    assert choice(**limit, stop=text[-12:]) == (text[:-12], "stop")


def test_an_answer_cut_inside_a_character_ends_before_it(server: Served) -> None:
    """vLLM leaves it out too; a client that shows or goes on with the text is spared a U+FFFD."""
    body = {"prompt": "The emoji is: 😀 😀 😀 😀 😀", "max_tokens": 3}
    assert server.post("/v1/completions", **body).json()["choices"][0]["text"] == " 😀 "
    assert "\ufffd" not in server.post("/v1/completions", **body, stream=True).text


def test_both_names_of_the_repetition_penalty_mean_it(server: Served) -> None:
    texts = [server.post(messages=RAINBOW, max_tokens=12, **{name: 1.8}).json()["choices"][0]["message"]["content"]
             for name in ("repetition_penalty", "repeat_penalty")]  # fmt: skip
    assert texts[0] == texts[1] != server.post(messages=RAINBOW, max_tokens=12).json()["choices"][0]["message"]["content"]


def test_a_dozen_stop_texts_as_editors_send_them_are_taken(server: Served, engine: Engine) -> None:
    text = generated(engine, "Explain how rainbows form.", max_tokens=12).text
    stop = text[20:26]
    answer = server.post(messages=RAINBOW, max_tokens=400, stop=[*(f"<|{index}|>" for index in range(11)), stop]).json()
    assert answer["choices"][0]["message"]["content"] == text[: text.index(stop)]


def test_system_and_developer_turns_and_text_parts_reach_the_model_alike(server: Served, engine: Engine) -> None:
    parts = [{"type": "text", "text": "Explain how "}, {"type": "text", "text": "rainbows form."}]
    texts = [
        server.post(messages=[{"role": role, "content": "Be brief."}, {"role": "user", "content": content}], max_tokens=6).json()
        for role, content in (("system", "Explain how rainbows form."), ("developer", parts))
    ]
    assert texts[0]["choices"][0]["message"] == texts[1]["choices"][0]["message"]
    assert texts[0]["usage"]["prompt_tokens"] == texts[1]["usage"]["prompt_tokens"]


def test_a_raw_stream_is_events_then_the_figures_then_done(server: Served) -> None:
    body = {"messages": RAINBOW, "max_tokens": 6, "stream": True}
    with server.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        *chunks, last, done = events(answer.iter_lines())
    assert done == "[DONE]" and last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}]
    figures = last["slipstream"]
    assert figures["completion_tokens"] == 6 and {"acceptance_rate", "tokens_per_cycle", "decode_tok_s", "fallback"} <= set(figures)
    assert all("slipstream" not in chunk and "usage" not in chunk for chunk in chunks)


def test_a_client_that_leaves_ends_its_answer_and_the_next_one_comes(server: Served) -> None:
    before = server.counts()
    stream = server.client().chat.completions.create(model="starter", messages=RAINBOW, max_tokens=2000, stream=True)
    for _, _chunk in zip(range(3), stream, strict=False):
        pass
    stream.close()
    wait_until_idle(server)
    assert cancelled_since(server, before) == 1
    assert 0 < server.counts()["slipstream_completion_tokens_total"] - before["slipstream_completion_tokens_total"] < 200
    assert server.post(messages=RAINBOW, max_tokens=2).json()["usage"]["completion_tokens"] == 2


def test_long_prompts_tell_their_progress_and_a_client_that_leaves_then_frees_the_engine(server: Served) -> None:
    body = {"messages": [{"role": "user", "content": "Where does the sea end, and why? " * 850}], "stream": True}
    before = server.counts()
    with server.http.stream("POST", "/v1/chat/completions", json=body) as answer:
        comment = next(answer.iter_lines())
    found = re.fullmatch(r": (\d+) of (7\d{3}) prompt tokens read", comment)
    assert found and 0 < int(found[1]) < int(found[2]), comment
    wait_until_idle(server)
    assert cancelled_since(server, before) == 1
    assert server.counts()["slipstream_completion_tokens_total"] == before["slipstream_completion_tokens_total"]


def test_two_clients_at_once_are_both_answered_in_the_order_they_came(server: Served) -> None:
    ends: list[str] = []

    async def ask(client: openai.AsyncOpenAI, name: str, tokens: int) -> str:
        stream = await client.chat.completions.create(model="starter", messages=RAINBOW, max_tokens=tokens, stream=True)
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
        ends.append(name)
        return text

    async def both() -> tuple[str, str]:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
            first = asyncio.create_task(ask(client, "first", 16))
            await asyncio.sleep(0.1)
            return await asyncio.gather(first, ask(client, "second", 3))

    first, second = asyncio.run(both())
    assert ends == ["first", "second"] and first.startswith(second) and second


def test_a_full_queue_is_said_with_when_to_come_again_and_waiting_streams_are_kept_alive(server: Served) -> None:
    async def crowd() -> None:
        async with openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="any", max_retries=0) as client:
            create = client.chat.completions.create
            running = await create(model="starter", messages=RAINBOW, max_tokens=2000, stream=True)
            with pytest.raises(openai.BadRequestError, match="8,192"):  # refused when it comes, not when it is its turn
                await create(model="starter", messages=[{"role": "user", "content": "word " * 9000}], stream=True)
            waiting = [asyncio.create_task(create(model="starter", messages=RAINBOW, max_tokens=1)) for _ in range(2)]
            while server.http.get("/health").json()["waiting"] < 2:
                await asyncio.sleep(0.02)
            with pytest.raises(openai.RateLimitError) as refused:
                await create(model="starter", messages=RAINBOW)
            assert int(refused.value.response.headers["retry-after"]) >= 1 and refused.value.code == "queue_full"
            waiting.pop().cancel()  # one leaves, so that another can wait
            while server.http.get("/health").json()["waiting"] > 1:
                await asyncio.sleep(0.02)
            comments = asyncio.create_task(asyncio.to_thread(comments_of_a_stream))
            assert ": 2 ahead in the queue" in await comments
            await running.close()
            assert (await waiting[0]).choices[0].message.content

    def comments_of_a_stream() -> str:
        """The first line of a stream that has to wait."""
        body = {"messages": RAINBOW, "max_tokens": 1, "stream": True}
        with server.http.stream("POST", "/v1/chat/completions", json=body) as answer:
            return next(answer.iter_lines())

    asyncio.run(crowd())
    wait_until_idle(server)


def test_health_and_metrics_tell_what_was_done(server: Served) -> None:
    before = server.counts()
    server.post(messages=RAINBOW, max_tokens=3)
    after = server.counts()
    assert after["slipstream_completion_tokens_total"] - before["slipstream_completion_tokens_total"] == 3
    label = 'slipstream_answers_total{finish_reason="length",mode="dflash"}'
    assert after[label] - before.get(label, 0) == 1
    assert server.http.get("/health").json() | {"version": ""} == {
        "status": "ok", "model": "starter", "running": False, "waiting": 0, "version": "", "notices": [],
    }  # fmt: skip


def test_the_served_pair_is_listed_and_found_by_its_names(server: Served) -> None:
    client = server.client()
    assert [model.id for model in client.models.list()] == ["starter"]
    assert client.models.retrieve("starter").id == client.models.retrieve("Starter (SmolLM2 135M)").id == "starter"
    with pytest.raises(openai.NotFoundError, match="'gpt-9' is not served here: use 'starter'") as refused:
        client.chat.completions.create(model="gpt-9", messages=RAINBOW)
    assert (refused.value.code, refused.value.param) == ("model_not_found", "model")
