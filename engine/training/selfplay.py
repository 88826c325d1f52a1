"""Texts that the target writes itself: user turns sampled from openings, answers greedy, many at a time by mlx-lm's batches."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mlx.core as mx
from mlx_lm.generate import BatchGenerator

from engine.errors import Cancelled, RequestError
from engine.models.paths import resources_folder
from engine.request import Message
from engine.targets.attention import AttentionTarget
from engine.text.chat import encode_chat
from engine.training.corpus import Text, without_loops
from engine.training.settings import DataProgress

BATCH = 16  # texts written at once
ANSWER_LIMIT = 220  # tokens; speed matters most in the first 200 of an answer
USER_LIMIT = 48
SHORTEST = 8  # answer tokens worth keeping
ALIKE = 12  # user turns that begin with the same so many tokens are one
LONGEST_OPENING = 8  # words of a user's question
MARK = "\N{BLACK SQUARE}mark\N{BLACK SQUARE}"


class Writer:
    """Continues prompts with one target, in batches. Every call must come from the thread that loaded it."""

    def __init__(self, target: AttentionTarget, stop_ids: frozenset[int], cancel: threading.Event | None = None):
        self._target, self._stop_ids, self._cancel = target, stop_ids, cancel or threading.Event()

    def write(
        self, prompts: Sequence[Sequence[int]], limits: Sequence[int], sampler: Callable[[mx.array], mx.array] | None = None
    ) -> Iterator[tuple[int, list[int], bool]]:
        """(index of the prompt, its continuation with the stop token, whether a stop token ended it) as they are done. Greedy
        without ``sampler``, which maps log-probabilities [B, V] to ids [B]. Raises ``Cancelled``."""
        if not prompts:
            return
        batches = BatchGenerator(
            self._target.model,
            stop_tokens=[[token] for token in sorted(self._stop_ids)],
            sampler=sampler,
            completion_batch_size=BATCH,
            prefill_batch_size=4,
            prefill_step_size=512,
            stream=mx.default_stream(mx.default_device()),
        )
        try:
            uids = batches.insert([list(prompt) for prompt in prompts], max_tokens=list(limits))
            index = {uid: number for number, uid in enumerate(uids)}
            written: dict[int, list[int]] = {number: [] for number in index.values()}
            while responses := batches.next_generated():
                if self._cancel.is_set():
                    raise Cancelled("Training was cancelled while its texts were written: it goes on with the next ones.")
                for response in responses:
                    number = index[response.uid]
                    written[number].append(response.token)
                    if response.finish_reason is not None:
                        yield number, written.pop(number), response.finish_reason == "stop"
        finally:
            batches.close()


def answer_prompts(writer: Writer, prompts: Sequence[Sequence[int]], max_length: int) -> Iterator[DataProgress | Text]:
    """The target's greedy answers as texts. Prompts that leave no room are left out; loops are not marked as answer."""
    fitting = [list(prompt) for prompt in prompts if len(prompt) + SHORTEST <= max_length]
    limits = [min(ANSWER_LIMIT, max_length - len(prompt)) for prompt in fitting]
    for done, (number, tokens, _) in enumerate(writer.write(fitting, limits)):
        ids = [*fitting[number], *tokens]
        text = Text(tuple(ids), tuple(without_loops(ids, [False] * len(fitting[number]) + [True] * len(tokens))))
        if text.answer_tokens >= SHORTEST:
            yield text
        yield DataProgress("Writing answers", done + 1, len(fitting))


def invent_prompts(
    writer: Writer, tokenizer: Any, count: int, seed: int, asked: Sequence[str] = ()
) -> Iterator[DataProgress | list[int]]:
    """About ``count`` prompts: seeded openings that the target finishes as a user would. Alike ones and those that never
    end are dropped. ``asked`` are questions of a real user, whose first words are then the openings. A model without a chat
    template gets the bare openings."""
    generator = random.Random(seed)
    openings = [first_words(generator, asked) if asked else opening(generator) for _ in range(count)]
    if not tokenizer.has_chat_template:
        yield from ([*tokenizer.encode(text)] for text in dict.fromkeys(openings))
        return
    before = user_prefix(tokenizer)
    prompts = [list(tokenizer.encode(before + text, add_special_tokens=False)) for text in openings]
    seen: set[tuple[int, ...]] = set()
    for done, (number, tokens, ended) in enumerate(writer.write(prompts, [USER_LIMIT] * len(prompts), _Sampler(seed))):
        text = (openings[number] + tokenizer.decode(tokens[:-1] if ended else tokens)).strip()
        beginning = tuple(tokenizer.encode(text, add_special_tokens=False)[:ALIKE])
        if ended and beginning not in seen:
            seen.add(beginning)
            yield encode_chat(tokenizer, [Message("user", text)])
        yield DataProgress("Inventing questions", done + 1, len(prompts))


def first_words(generator: random.Random, asked: Sequence[str]) -> str:
    """The beginning of one of the questions ``asked``, at most two thirds of it."""
    words = generator.choice(asked).split()
    return " ".join(words[: generator.randint(1, max(1, min(LONGEST_OPENING, 2 * len(words) // 3)))])


def opening(generator: random.Random) -> str:
    """The first words of a user turn, from ``resources/training/openings.json``."""
    parts = _openings()
    text = generator.choice(parts["starts"])
    return text.replace("{topic}", generator.choice(parts["topics"]))


def _openings() -> dict[str, list[str]]:
    return json.loads((resources_folder() / "training" / "openings.json").read_text("utf-8"))


def user_prefix(tokenizer: Any) -> str:
    """What the chat template writes before the first user turn. Raises ``RequestError`` where that cannot be told."""
    rendered = tokenizer.apply_chat_template([{"role": "user", "content": MARK}], tokenize=False, add_generation_prompt=False)
    if rendered.count(MARK) != 1:
        raise RequestError("The model's chat template rewrites what users say: give a file of prompts with --data.")
    return rendered.split(MARK)[0]


class _Sampler:
    """Draws at temperature 1, the same draws for the same seed."""

    def __init__(self, seed: int):
        self._key = mx.random.key(seed)

    def __call__(self, logprobs: mx.array) -> mx.array:
        self._key, key = mx.random.split(self._key)
        return mx.random.categorical(logprobs, key=key)
