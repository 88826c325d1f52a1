"""What is read of a prompt: the frame of the chat always, then the best spans, never more than the share asked for."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from engine import Message, RequestError, SparsePrefill
from engine.engine import Engine
from engine.prefill.attention import DEPTH, attention_weights
from engine.prefill.scorers import attention_scores, choose_tokens, lexical_scores, stride_scores
from engine.prefill.selection import RECENT, SINKS, SPAN, TURN, Prompt, always_kept, choose, describe, runs_of, spans
from engine.request import SCORERS
from engine.text.places import content_places

WORDS = st.text(st.sampled_from("ab é\n<|im_end|>user虹"), max_size=60)
CHATS = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), WORDS), max_size=4)


def prompt_of(length: int, turn: int = 0, frame: tuple[int, ...] = ()) -> Prompt:
    """``length`` tokens, the last ``turn`` of them the last user turn, those at ``frame`` the template's."""
    content, last = np.ones(length, bool), np.zeros(length, bool)
    content[list(frame)] = False
    last[length - turn :] = True
    return Prompt(list(range(length)), content, last)


@given(st.integers(1, 2000), st.integers(0, 2000), st.floats(0.01, 1.0), st.sets(st.integers(0, 1999), max_size=9), st.randoms())
def test_what_always_stays_stays_and_no_more_than_the_share_is_added(length, turn, keep, frame, random) -> None:
    prompt = prompt_of(length, min(turn, length), tuple(place for place in frame if place < length))
    scores = np.array([random.random() for _ in spans(length)])
    always, kept = always_kept(prompt), choose(prompt, scores, keep)
    assert kept[always].all()
    assert kept.sum() <= max(round(keep * length), always.sum())
    assert kept.sum() > round(keep * length) - SPAN or kept.all() or kept.sum() >= always.sum() > round(keep * length) - SPAN
    assert always[:SINKS].all() and always[-RECENT:].all() and always[~prompt.content].all()
    if 0 < turn <= TURN:
        assert always[length - min(turn, length) :].all()
    runs = runs_of(kept)
    assert sum(stop - start for start, stop in runs) == kept.sum() and runs[-1][1] == length
    assert all(kept[start:stop].all() for start, stop in runs)
    assert all(earlier[1] < later[0] for earlier, later in pairwise(runs))


@given(st.integers(1, 3000))
def test_the_whole_prompt_is_kept_at_one(length: int) -> None:
    assert choose(prompt_of(length), stride_scores(prompt_of(length)), 1.0).all()


def test_of_a_long_last_turn_both_ends_stay() -> None:
    always = always_kept(prompt_of(2000, turn=1000))
    assert always[1000 : 1000 + TURN // 2].all() and always[2000 - TURN // 2 :].all() and not always[1200:1800].any()


def test_the_best_spans_are_taken_first() -> None:
    scores = np.zeros(len(spans(1024)))
    scores[[7, 19]] = [1.0, 2.0]
    kept = choose(prompt_of(1024), scores, (SINKS + RECENT + SPAN) / 1024)
    assert kept[19 * SPAN : 20 * SPAN].all() and not kept[7 * SPAN : 8 * SPAN].any()


@pytest.mark.parametrize("taken", [3, 8, 16, 40])
def test_strided_spans_are_spread_evenly(taken: int) -> None:
    scores = stride_scores(prompt_of(100 * SPAN))
    best = np.sort(np.argsort(-scores)[:taken])
    gaps = np.diff(np.concatenate([[-1], best, [100]]))
    assert gaps.max() <= 2 * np.ceil(128 / taken)


def test_a_span_with_the_rare_words_of_the_question_scores_highest(engine: Engine) -> None:
    filler = "The river ran past the mill and the baker counted his loaves. " * 60
    middle = len(filler) // 2
    text = f"{filler[:middle]}The code of Zanzibar is 48213. {filler[middle:]}"
    messages = (Message("user", text), Message("assistant", "Read."), Message("user", "What is the code of ZANZIBAR in the river?"))
    prompt = describe(engine._tokenizer, messages, engine.encode(messages))
    scores = lexical_scores(prompt, lambda token: engine.decode([token]))
    best = sorted(np.argsort(-scores)[:2])
    start, stop = spans(len(prompt.ids))[best[0]][0], spans(len(prompt.ids))[best[1]][1]
    assert best[1] - best[0] == 1 and "code of Zanzibar" in engine.decode(prompt.ids[start:stop])


def test_without_a_shared_word_the_lexical_choice_is_an_even_one() -> None:
    prompt = prompt_of(64 * SPAN, turn=8)
    order = np.argsort(-lexical_scores(prompt, str), kind="stable")
    assert order.tolist() == np.argsort(-stride_scores(prompt), kind="stable").tolist()


@pytest.mark.parametrize("scorer", SCORERS)
def test_every_scorer_keeps_what_must_stay(engine: Engine, scorer: Any) -> None:
    messages = (Message("user", "word " * 900), Message("assistant", "Yes."), Message("user", "And?"))
    prompt = describe(engine._tokenizer, messages, engine.encode(messages))
    attend = partial(attention_weights, engine._target, prompt.ids, prompt.turn, 256)
    kept = choose_tokens(SparsePrefill(0.5, scorer), prompt, lambda token: engine.decode([token]), attend)
    assert kept[always_kept(prompt)].all() and 0.45 < kept.mean() <= 0.5


def test_the_span_that_the_targets_own_attention_finds_scores_highest(engine: Engine) -> None:
    filler = "The harbour lay quiet under a thin fog. Rain had washed the long road to the mill. " * 16
    told = f"{filler}The secret code of Marta is 48213. {filler}"
    messages = (
        Message("user", told),
        Message("assistant", "I have read it."),
        Message("user", "What is the secret code of Marta?"),
    )
    prompt = describe(engine._tokenizer, messages, engine.encode(messages))
    scores = attention_scores(prompt, attention_weights(engine._target, prompt.ids, prompt.turn, 256))
    place = next(index for index in range(len(prompt.ids)) if engine._tokenizer.decode(prompt.ids[index : index + 5]) == "48213")
    assert place // SPAN in np.argsort(-scores)[:3]


def test_attention_weights_are_those_of_the_layer_itself(engine: Engine) -> None:
    """Against the layer's own attention run on a prompt whose values are made to show the weights: rows of the identity."""
    ids = engine.encode((Message("user", "Name three rivers in Europe."),))
    asking = np.zeros(len(ids), dtype=bool)
    asking[-1] = True
    weights = attention_weights(engine._target, ids, asking, 16)
    chunked = attention_weights(engine._target, ids, asking, 7)
    layer = round(engine._target.shape.num_layers * DEPTH)
    (stream,) = engine._target.streams(mx.array(ids)[None], (layer - 1,))
    block = engine._target.layer(layer)
    attention, rows = block.self_attn, block.input_layernorm(stream)
    groups, size = attention.n_kv_heads, attention.rope.dims
    queries = attention.rope(attention.q_proj(rows).reshape(1, len(ids), -1, size).transpose(0, 2, 1, 3))
    keys = attention.rope(attention.k_proj(rows).reshape(1, len(ids), groups, size).transpose(0, 2, 1, 3))
    shown = mx.zeros((1, groups, len(ids), size))
    found = np.zeros(len(ids))
    for first in range(0, len(ids), size):
        count = min(size, len(ids) - first)
        values = mx.zeros_like(shown)
        values[:, :, first : first + count, :count] = mx.eye(count)
        mixed = mx.fast.scaled_dot_product_attention(queries, keys, values, scale=attention.scale, mask="causal")
        found[first : first + count] = np.array(mixed[0, :, -1, :count]).max(axis=0)
    np.testing.assert_allclose(weights, found, atol=1e-5)
    np.testing.assert_allclose(chunked, weights, atol=1e-4)


# Where the messages stand


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(CHATS, WORDS)
def test_what_the_template_put_around_the_messages_always_stays(engine: Engine, before: list[Message], last: str) -> None:
    """Whatever stands in the messages, be it the template's own words: without their content the frame is left, in full."""
    messages = (*before, Message("user", "q" + last))
    ids = engine.encode(messages)
    prompt = describe(engine._tokenizer, messages, ids)
    frame = engine.decode([token for token, content in zip(ids, prompt.content, strict=True) if not content])
    empty = engine.decode(engine.encode([Message(message.role, "") for message in messages]))
    assert frame.count("<|im_start|>") >= empty.count("<|im_start|>") and frame.count("assistant\n") >= 1
    assert "".join(frame.split()).startswith("<|im_start|>") and frame.endswith("<|im_start|>assistant\n")
    for (start, stop), message in zip(content_places(engine._tokenizer, messages, ids), messages, strict=True):
        assert engine.decode(ids[start:stop]) in message.content


def test_every_message_is_found_where_it_stands(engine: Engine) -> None:
    texts = ["Be brief.", "user", "é虹 ok", "<|im_end|> ?"]
    messages = [Message(role, text) for role, text in zip(("system", "user", "assistant", "user"), texts, strict=True)]
    ids = engine.encode(messages)
    found = [engine.decode(ids[start:stop]) for start, stop in content_places(engine._tokenizer, messages, ids)]
    assert found == texts


class Renderer:
    """The starter's tokenizer with another way to render a chat."""

    has_chat_template = True

    def __init__(self, tokenizer: Any, render):
        self._tokenizer, self._render = tokenizer, render
        self.encode = tokenizer.encode

    @property
    def backend_tokenizer(self):
        return self._tokenizer.backend_tokenizer

    def apply_chat_template(self, turns, **_):
        return self._render([turn["content"] for turn in turns])


@pytest.mark.parametrize(
    ("render", "expected"),
    [
        (lambda texts: "".join(f"[{text.strip()}]" for text in texts), ["one", "two", "three"]),  # a template may strip
        (lambda texts: f"[{texts[0]}][{texts[1].upper()}][{texts[2]}]", ["", "", ""]),  # or change a message: the rest is unknown
        (lambda texts: f"{texts[0]}{texts[0]}{texts[2]}", ["", "", ""]),
    ],
)
def test_a_message_the_template_changed_counts_as_its_own_words(engine: Engine, render, expected: list[str]) -> None:
    tokenizer = Renderer(engine._tokenizer, render)
    messages = (Message("user", "one"), Message("assistant", "two "), Message("user", "three"))
    ids = tokenizer.encode(render([message.content for message in messages]), add_special_tokens=False)
    found = [engine.decode(ids[start:stop]).strip() for start, stop in content_places(tokenizer, messages, ids)]
    assert found == expected or (expected[1:] == ["", ""] and found[1:] == ["", ""])


def test_a_tokenizer_that_does_not_tell_places_is_refused(engine: Engine) -> None:
    messages = (Message("user", "one"),)
    with pytest.raises(RequestError, match="leave sparse prefill off"):
        content_places(engine._tokenizer, messages, [1, 2, 3])
