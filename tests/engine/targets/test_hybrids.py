"""Recurrent hybrids: whatever part of a pass is undone, the caches are those of the kept rows, and the text is plain text."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import mlx.core as mx
import pytest
from mlx_lm.models.cache import ArraysCache

from engine.decoding.baseline import decode_baseline
from engine.decoding.controller import FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.speculative import decode_speculative
from engine.decoding.steps import Decoding, Step
from engine.prefill.chunked import Prefilled, prefill
from engine.targets import gated_delta, mamba2, short_conv
from engine.targets.protocol import Cache
from engine.targets.recurrent import (
    MAX_RECORDED,
    RecurrentTarget,
    flat_entries,
    recurrent_entries,
    window_after,
)
from engine.targets.registry import make_target
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.targets.hybrids import HYBRIDS, RECURRENCES, REPLAYS, hybrid
from tests.engine.tiny import VOCAB

BLOCK, OTHER = [11, 22, 33, 44, 55, 66], [91, 82, 73, 64, 75, 96]
PROMPT = [7, 3, 19, 42, 99, 5, 120]
NORMS = ("norm", "embedding_norm", "norm_f", "final_layernorm")


@pytest.fixture(scope="module", params=HYBRIDS)
def target(request: pytest.FixtureRequest) -> RecurrentTarget:
    return hybrid(request.param)


def prompt_of(length: int) -> list[int]:
    return [(11 * i + 5) % VOCAB for i in range(length)]


def after(target: RecurrentTarget, *passes: list[int]) -> Cache:
    """A cache after these passes."""
    cache = target.make_cache()
    for ids in passes:
        target.forward(mx.array(ids), cache)
    return cache


def arrays(cache: Cache) -> list[mx.array]:
    """What the cache says of its tokens: states whole, keys and values as far as they count."""
    found = []
    for entry in flat_entries(cache):
        if type(entry) is ArraysCache:
            found += [array for array in entry.cache if array is not None]
        elif entry.keys is not None:
            found += [entry.keys[..., : entry.offset, :], entry.values[..., : entry.offset, :]]
    return found


def same(ours: Cache, theirs: Cache) -> bool:
    return all(mx.array_equal(a, b).item() for a, b in zip(arrays(ours), arrays(theirs), strict=True))


def close(ours: Cache, theirs: Cache, tolerance: float = 1e-4) -> bool:
    """Within ``tolerance`` of each array's largest value: passes of different widths round their products differently."""
    pairs = zip(arrays(ours), arrays(theirs), strict=True)
    return all((mx.abs(a - b).max() <= tolerance * mx.abs(b).max()).item() for a, b in pairs)


def test_the_adapter_is_found_and_its_probe_passes(target: RecurrentTarget) -> None:
    assert type(make_target(target.model, target.family, target.shape)) is type(target)
    assert target.capabilities.taps and target.capabilities.rollback, target.capabilities.reason


def test_a_recorded_pass_gives_what_the_model_gives(target: RecurrentTarget) -> None:
    """The contract with mlx-lm: its own call, its own caches, and the stream after the last layer is what its head reads."""
    last, cache, own = target.shape.num_layers - 1, target.make_cache(), target.make_cache()
    for ids in (PROMPT, BLOCK, [5]):
        output = target.forward(mx.array(ids), cache, (0, last))
        assert mx.array_equal(output.logits, target.model(mx.array([ids]), cache=own)[0])
        assert output.taps is not None and output.taps.shape == (len(ids), 64)
        norm = next(target._body[name] for name in NORMS if name in target._body)
        logits = target.head(norm(output.taps[:, 32:]))
        assert mx.allclose(logits, output.logits, atol=1e-4)
        rows = mx.array([0, 3, 50, VOCAB - 1])
        assert mx.allclose(target.partial_head(rows)(norm(output.taps[:, 32:])), logits[:, rows], atol=1e-4)
    assert same(cache, own)


def test_embeddings_are_what_the_first_layer_reads(target: RecurrentTarget) -> None:
    layers, seen = target._body.layers, []
    first = layers[0]

    class Listening:
        def __call__(self, stream: mx.array, *args: object, **kwargs: object) -> mx.array:
            seen.append(stream)
            return first(stream, *args, **kwargs)

        def __getattr__(self, name: str) -> object:
            return getattr(first, name)

    layers[0] = Listening()
    try:
        target.forward(mx.array(PROMPT), target.make_cache())
    finally:
        layers[0] = first
    assert mx.array_equal(seen[0][0], target.embed(mx.array(PROMPT)))


@pytest.mark.parametrize("kept", range(7))
def test_undone_rows_leave_no_trace(target: RecurrentTarget, kept: int) -> None:
    """Bit for bit: two blocks that agree in the kept rows leave the same caches once the others are taken back."""
    ours, theirs = after(target, PROMPT, BLOCK), after(target, PROMPT, BLOCK[:kept] + OTHER[kept:])
    assert kept == len(BLOCK) or not same(ours, theirs), "the comparison sees a difference"
    for cache in (ours, theirs):
        target.rollback(cache, len(BLOCK) - kept)
    assert same(ours, theirs)


@pytest.mark.parametrize(
    ("prompt_length", "kept"), [(1, 0), (1, 1), (2, 5), (9, 3), (63, 2), (64, 4), (253, 0), (253, 2), (253, 4)]
)
def test_rollback_leaves_what_a_pass_over_the_kept_rows_leaves(target: RecurrentTarget, prompt_length: int, kept: int) -> None:
    """Prompts shorter than a convolution's window, and blocks across the border where key/value buffers grow (256)."""
    prompt = prompt_of(prompt_length)
    ours = after(target, prompt, BLOCK)
    target.rollback(ours, len(BLOCK) - kept)
    fresh = after(target, prompt, BLOCK[:kept]) if kept else after(target, prompt)
    assert close(ours, fresh)
    following = mx.array([9, 8])
    assert mx.allclose(target.forward(following, ours).logits, target.forward(following, fresh).logits, atol=1e-3)


@pytest.mark.parametrize("name", [name for name in HYBRIDS if name.startswith(("qwen", "lfm2"))])
@pytest.mark.parametrize("kept", range(1, 7))
def test_rollback_is_the_models_own_pass_with_the_other_rows_masked(name: str, kept: int) -> None:
    """mlx-lm can end a row of a batch early; with that length its state is ours bit for bit, the pass being as wide."""
    target = hybrid(name)
    ours, theirs = after(target, PROMPT, BLOCK), after(target, PROMPT)
    target.rollback(ours, len(BLOCK) - kept)
    for entry in recurrent_entries(theirs):
        entry.prepare(lengths=[kept])
    target.model(mx.array([BLOCK]), cache=theirs)
    for mine, reference in zip(recurrent_entries(ours), recurrent_entries(theirs), strict=True):
        assert all(mx.array_equal(a, b) for a, b in zip(mine.cache, reference.cache, strict=True))


def test_rows_can_be_taken_back_in_two_goes(target: RecurrentTarget) -> None:
    ours, theirs = after(target, PROMPT, BLOCK), after(target, PROMPT, BLOCK)
    target.rollback(ours, 2)
    target.rollback(ours, 1)
    target.rollback(theirs, 3)
    assert same(ours, theirs)


def test_a_single_step_can_be_taken_back(target: RecurrentTarget) -> None:
    ours = after(target, PROMPT, [5])
    target.rollback(ours, 1)
    assert same(ours, after(target, PROMPT))


def test_caches_in_turn_do_not_disturb_each_other(target: RecurrentTarget) -> None:
    ours, other = after(target, PROMPT, BLOCK), after(target, PROMPT, OTHER)
    target.rollback(ours, 4)
    target.rollback(other, 1)
    alone = after(target, PROMPT, BLOCK)
    target.rollback(alone, 4)
    assert same(ours, alone)


def test_what_was_not_recorded_is_refused_and_the_cache_left_alone(target: RecurrentTarget) -> None:
    wide = prompt_of(MAX_RECORDED + 1)
    for passes, rejected in (([PROMPT, BLOCK], 7), ([PROMPT, BLOCK, [3]], 2), ([PROMPT, wide], 1)):
        cache, untouched = after(target, *passes), after(target, *passes)
        with pytest.raises(RuntimeError, match="cannot be taken back"):
            target.rollback(cache, rejected)
        assert same(cache, untouched)


def test_watching_ends_with_the_pass_even_when_it_fails(target: RecurrentTarget) -> None:
    replay = target._replays[0]
    before = [dict(replay.layer), dict(replay.mixer)]
    with pytest.raises(RuntimeError, match="boom"), replay.recorded():
        assert [dict(replay.layer), dict(replay.mixer)] != before
        raise RuntimeError("boom")
    assert [dict(replay.layer), dict(replay.mixer)] == before


def test_plain_steps_and_wide_prefill_are_not_watched(target: RecurrentTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: object) -> None:
        raise AssertionError("watched")

    monkeypatch.setattr(type(target._replays[0]), "recorded", forbidden)
    cache = after(target, prompt_of(MAX_RECORDED + 1), [5])
    with pytest.raises(AssertionError, match="watched"):
        target.forward(mx.array(BLOCK), cache)


@pytest.mark.parametrize("name", REPLAYS)
def test_a_model_that_runs_otherwise_than_its_replay_answers_plainly_and_says_why(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = window_after
    for module in (gated_delta, short_conv, mamba2):
        monkeypatch.setattr(module, "window_after", lambda kept, rows, size: known(kept, rows, size) * 1.0001)
    capabilities = hybrid(name).capabilities
    assert not capabilities.rollback and not capabilities.taps
    assert capabilities.reason is not None and "unknown way" in capabilities.reason


def decoding(target: RecurrentTarget, prompt: list[int], length: int, chunk: int, drafter: OracleDrafter | None = None) -> Decoding:
    """A loop's state right after prefill."""
    cache, taps = target.make_cache(), drafter.taps if drafter else ()
    (*_, ready) = prefill(target, cache, prompt, drafter, taps, chunk, threading.Event())
    assert isinstance(ready, Prefilled)
    sampler = Sampler(0.0, 0)
    return Decoding(
        target=target, cache=cache, sampler=sampler, stop_ids=frozenset(), max_tokens=length, cancel=threading.Event(),
        position=len(prompt), anchor=sampler.pick(ready.logits, len(prompt)).astype(mx.int32), committed=list(prompt),
        session=drafter, taps=taps, tap_rows=ready.taps, policy=FixedLength(drafter.block_length if drafter else 1),
    )  # fmt: skip


def tokens(steps: Iterator[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


def test_text_is_plain_text_at_every_accepted_length(target: RecurrentTarget) -> None:
    plain = tokens(decode_baseline(decoding(target, PROMPT, 40, 4)))
    for right in range(6):
        drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle, right=right: right, block_length=6)
        steps = list(decode_speculative(decoding(target, PROMPT, 40, 4, drafter)))
        assert tokens(iter(steps)) == plain
        assert all(step.accepted == min(right, step.proposed) for step in steps[1:])


@pytest.mark.parametrize("name", RECURRENCES)
@pytest.mark.parametrize(("chunk", "length"), [(4, 4), (4, 5), (4, 6), (4, 9), (64, 64), (64, 65), (64, 129)])
def test_text_is_plain_text_for_prompts_around_chunk_borders(name: str, chunk: int, length: int) -> None:
    target, prompt = hybrid(name), prompt_of(length)
    plain = tokens(decode_baseline(decoding(target, prompt, 24, chunk)))
    drafter = OracleDrafter(plain, len(prompt), lambda cycle: cycle % 6, block_length=6)
    assert tokens(decode_speculative(decoding(target, prompt, 24, chunk, drafter))) == plain


@pytest.mark.parametrize(
    "name", [*REPLAYS, *(pytest.param(name, marks=pytest.mark.slow) for name in RECURRENCES if name not in REPLAYS)]
)
def test_two_hundred_cycles_leave_the_caches_of_a_fresh_run(name: str) -> None:
    target, rights = hybrid(name), (0, 0, 1, 0, 2, 0, 0, 3)
    plain = tokens(decode_baseline(decoding(target, PROMPT, 362, 4)))
    assert len(set(plain)) > 20, "a text that repeats itself would hide a wrong state"
    drafter = OracleDrafter(plain, len(PROMPT), lambda cycle: rights[cycle % 8], block_length=4, taps=(0, 2))
    state = decoding(target, PROMPT, 362, 4, drafter)
    steps = list(decode_speculative(state))
    assert tokens(iter(steps)) == plain and len(steps) > 200
    rows = len(PROMPT) + len(plain) - 1  # the last token was never run
    ahead = next(entry.offset for entry in flat_entries(state.cache) if type(entry) is not ArraysCache) - rows
    target.rollback(state.cache, ahead)
    assert close(state.cache, after(target, (PROMPT + plain)[:rows]), tolerance=2e-3)
