"""Sliding-window families decode speculatively to the text of plain decoding: every accepted length, chunk and window border."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import pytest

from engine import GenerationRequest, load
from engine.decoding.acceptance import accepted_prefix
from engine.drafters.dflash.drafter import DFlashDrafter
from engine.models import ResolvedPair
from engine.prefill.chunked import Prefilled, prefill
from engine.targets.loading import load_target
from engine.targets.protocol import Cache
from engine.targets.sliding_window import SlidingWindowTarget
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.targets.sliding_families import FAMILIES, LAYERS, sliding_target, write_sliding_target
from tests.engine.targets.test_sliding_window import same
from tests.engine.tiny import VOCAB, copy_tokenizer, target_config, write_draft

KEY = ["gemma3_text", "gemma4_text with shared key/value layers", "gpt_oss", "cohere2"]
BLOCK_LENGTH = 8
Oracle = Callable[[int], int]


def start(target: SlidingWindowTarget, prompt: list[int], chunk: int) -> tuple[Cache, mx.array]:
    """Caches that hold the prompt, and the first token of the answer."""
    cache = target.make_cache()
    (*_, ready) = prefill(target, cache, prompt, None, (), chunk, threading.Event())
    assert isinstance(ready, Prefilled)
    return cache, mx.argmax(ready.logits, axis=-1).astype(mx.int32)


def plain(target: SlidingWindowTarget, prompt: list[int], count: int, chunk: int = 4) -> list[int]:
    cache, token = start(target, prompt, chunk)
    answer = [token]
    while len(answer) < count:
        answer.append(mx.argmax(target.forward(answer[-1], cache).logits, axis=-1).astype(mx.int32))
    return mx.concatenate(answer).tolist()


def speculative(
    target: SlidingWindowTarget, prompt: list[int], answer: list[int], right: Oracle, chunk: int = 4
) -> tuple[list[int], list[int], Cache]:
    """The text, what was accepted in each cycle, and the caches, with a drafter that knows ``answer``."""
    drafter = OracleDrafter(answer, len(prompt), right, BLOCK_LENGTH)
    cache, anchor = start(target, prompt, chunk)
    text, accepted = anchor.tolist(), []
    while len(text) < len(answer):
        length = min(BLOCK_LENGTH - 1, len(answer) - len(text) - 1)
        proposals = drafter.propose(anchor, None, len(prompt) + len(text) - 1, length, prompt + text)
        proposals = anchor[:0] if proposals is None else proposals
        choices = mx.argmax(target.forward(mx.concatenate([anchor, proposals]), cache).logits, axis=-1).astype(mx.int32)
        count = int(accepted_prefix(proposals, choices))
        target.rollback(cache, proposals.shape[0] - count)
        text += choices[: count + 1].tolist()
        accepted.append(count)
        anchor = choices[count : count + 1]
    return text, accepted, cache


def prompt_of(length: int) -> list[int]:
    return [(11 * index + 5) % VOCAB for index in range(length)]


@pytest.mark.parametrize("name", KEY)
def test_text_is_plain_text_at_every_accepted_length(name: str) -> None:
    target, prompt = sliding_target(name), prompt_of(9)
    answer = plain(target, prompt, 25)
    for right in range(BLOCK_LENGTH):
        text, accepted, _ = speculative(target, prompt, answer, lambda _cycle, right=right: right)
        assert text == answer
        assert all(count == right for count in accepted[:-1])


@pytest.mark.parametrize("name", KEY[:2])
def test_two_hundred_cycles_give_plain_text_and_the_caches_of_a_fresh_run(name: str) -> None:
    """Past 256 tokens, so the buffers fill and are moved, and every ring would have wrapped many times."""
    assert check_long_run(name, 302, (0, 1, 0, 0, 2, 0)) >= 200


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_two_thousand_tokens_of_every_family_are_plain_text(name: str) -> None:
    assert check_long_run(name, 2000, (0, 3, 1, 7, 2, 0, 5)) >= 500


def check_long_run(name: str, count: int, pattern: tuple[int, ...]) -> int:
    """Compares text and caches of ``count`` tokens; returns the number of cycles."""
    target, prompt = sliding_target(name), prompt_of(21)
    answer = plain(target, prompt, count)
    text, accepted, cache = speculative(target, prompt, answer, lambda cycle: pattern[cycle % len(pattern)])
    assert text == answer and set(accepted) >= set(pattern)
    fresh = target.make_cache()
    target.forward(mx.array((prompt + answer)[:-1]), fresh)  # the last token was never run
    assert same(cache, fresh, exactly=False)
    return len(accepted)


@pytest.mark.parametrize("name", [name for name in FAMILIES if name not in KEY])
def test_the_other_families_give_plain_text_too(name: str) -> None:
    target, prompt = sliding_target(name), prompt_of(21)
    answer = plain(target, prompt, 40)
    text, accepted, _ = speculative(target, prompt, answer, lambda cycle: cycle % BLOCK_LENGTH)
    assert text == answer and max(accepted) == BLOCK_LENGTH - 1


@pytest.mark.parametrize("window", [1, 2, 7, 8, 20])
def test_windows_smaller_and_larger_than_a_block_and_a_chunk_give_plain_text(window: int) -> None:
    """Prompts around the borders of chunks and windows, in chunks of 4 and of 64: neither chunks nor blocks change the text."""
    target = sliding_target("gemma3_text", sliding_window=window)
    for length in (5, window + 1, 65):
        prompt = prompt_of(length)
        answer = plain(target, prompt, 20)
        for chunk in (4, 64):
            text, _, _ = speculative(target, prompt, answer, lambda cycle: (cycle * 3) % BLOCK_LENGTH, chunk)
            assert text == answer


@pytest.mark.parametrize("name", ["gemma3", pytest.param("gemma4", marks=pytest.mark.slow), "gpt_oss"])
def test_the_engine_answers_the_same_with_and_without_a_draft(name: str, tmp_path: Path, starter: ResolvedPair) -> None:
    """A real checkpoint folder and a random draft: nothing is accepted, all is rolled back, across the window's border."""
    wide = {"vocab_size": 49152}
    sizes = wide | ({"vocab_size_per_layer_input": 49152} if name == "gemma4" else {})
    folder = copy_tokenizer(starter.target, write_sliding_target(tmp_path / name, name, **sizes))
    draft = write_draft(tmp_path / "draft", target_config(num_hidden_layers=LAYERS, **wide))
    engine = load(f"{folder}+{draft}")
    assert isinstance(engine._target, SlidingWindowTarget) and isinstance(engine._drafters["dflash"], DFlashDrafter)
    requests = [GenerationRequest.of("hello", mode=mode, max_tokens=40, block_length=6) for mode in ("baseline", "dflash")]
    ends = [list(engine.generate(request))[-1] for request in requests]
    assert ends[0].token_ids == ends[1].token_ids and ends[0].statistics.completion_tokens == 40
    assert ends[1].statistics.mode == "dflash" and ends[1].statistics.proposed > 100
    engine.close()


def test_a_config_that_leaves_sizes_to_the_familys_defaults_loads(tmp_path: Path) -> None:
    """Gemma 3's published config names neither vocabulary nor context: mlx-lm's defaults fill them, and ours must agree."""
    folder = write_sliding_target(tmp_path / "gemma3", "gemma3", vocab_size=262208)
    config = json.loads((folder / "config.json").read_text())
    text = {key: value for key, value in config["text_config"].items() if key not in ("vocab_size", "max_position_embeddings")}
    (folder / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
    target = load_target(folder, mx.float32)
    assert (target.shape.vocab_size, target.shape.context_length) == (262208, 32768)
    assert target.forward(mx.array([262207]), target.make_cache()).logits.shape == (1, 262208)
