"""Whole prefill: bounded memory, no vocabulary projection but the last row's, and taps only where the draft can see them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.drafters.protocol import DraftSession
from engine.models import resolve_pair
from engine.prefill.chunked import Prefilled, prefill
from engine.targets.attention import AttentionTarget
from engine.targets.loading import load_target
from tests.engine.tiny import target_config, write_draft, write_target

CHUNK = 64
CONTEXT = {"vocab_size": 49152, "max_position_embeddings": 9000}
Pair = tuple[AttentionTarget, DFlashDrafter]


def load_tiny(folder: Path, **draft: Any) -> Pair:
    """A tiny pair with a full-sized vocabulary, so that a projection of a whole chunk would show."""
    write_target(folder / "target", **CONTEXT)
    write_draft(folder / "draft", target_config(**CONTEXT), **draft)
    resolved = resolve_pair(f"{folder / 'target'}+{folder / 'draft'}")
    target = load_target(resolved.target, mx.float32)
    return target, DFlashDrafter(load_draft(resolved.draft, target.shape, mx.float32), target, "draft", 6)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return load_tiny(tmp_path_factory.mktemp("pair"))


@pytest.fixture
def small_cache() -> Iterator[None]:
    """As ``load`` sets it: what MLX keeps of freed buffers does not count as in use."""
    before = mx.set_cache_limit(2**20)
    yield
    mx.set_cache_limit(before)


def run(pair: Pair, tokens: int, session: DraftSession | None = None) -> tuple[Prefilled, list[mx.array]]:
    """Prefills ``tokens`` tokens; also returns what the caches hold then."""
    target, drafter = pair
    cache, taps = target.make_cache(), drafter.taps if session is not None else ()
    ids = [(7 * index + index // 9) % 900 for index in range(tokens)]
    *_, ready = prefill(target, cache, ids, session, taps, CHUNK, threading.Event())
    mx.eval(ready.logits)
    return ready, target.cache_arrays(cache)


@pytest.mark.parametrize("mode", ["plain", "dflash"])
@pytest.mark.parametrize("tokens", [2_000, 4_000, pytest.param(8_000, marks=pytest.mark.slow)])
def test_memory_beside_the_caches_is_one_layers_attention_scores(pair: Pair, small_cache, mode: str, tokens: int) -> None:
    """Without a fused kernel one layer's scores [heads, chunk, tokens] exist at a time; nothing else grows with the prompt."""
    session = pair[1].session() if mode == "dflash" else None
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    _, held = run(pair, tokens, session)
    peak = mx.get_peak_memory() - before
    context = session._context.arrays() if session else []
    caches = sum(array.nbytes for array in [*held, *context])
    scores = 4 * CHUNK * tokens * 4
    assert peak - caches <= 1.3 * scores + 2**20, f"{(peak - caches) / 2**20:.1f} MiB beside the caches"


def test_only_the_last_row_is_projected_on_the_vocabulary(pair: Pair) -> None:
    """MLX is lazy: what nobody asks for is never computed, so the peak tells whether a chunk's logits were."""
    mx.clear_cache()
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    ready, _ = run(pair, 3 * CHUNK + 1)
    assert ready.logits.shape == (1, 49152)
    assert mx.get_peak_memory() - before < CHUNK * 49152 * 4 / 2


def heard_chunks(pair: Pair, tokens: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[int], DraftSession]:
    """The chunks of which taps were taken, and the session they went to."""
    target, drafter = pair
    heard: list[int] = []
    forward = target.forward

    def watched(ids, cache, taps=()):
        if taps:
            heard.append(cache[0].offset // CHUNK)
        return forward(ids, cache, taps)

    monkeypatch.setattr(target, "forward", watched)
    session = drafter.session()
    run(pair, tokens, session)
    return heard, session


def test_a_draft_that_sees_everything_hears_every_chunk(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    assert heard_chunks(pair, 5 * CHUNK + 10, monkeypatch)[0] == [0, 1, 2, 3, 4, 5, 5]


def test_a_windowed_draft_hears_only_the_chunks_it_will_still_see(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    windows = {"layer_types": ["sliding_attention"] * 2, "sliding_window": 40, "use_sliding_window": True}
    pair = load_tiny(tmp_path, **windows)
    assert pair[1].session().first_seen(1000) >= 1000 - 40
    heard, session = heard_chunks(pair, 5 * CHUNK + 10, monkeypatch)
    assert heard == [4, 5, 5]
    whole = pair[1].session()
    monkeypatch.setattr(whole, "first_seen", lambda position: 0)
    ready, _ = run(pair, 5 * CHUNK + 10, whole)
    anchor, position = mx.array([17]), 5 * CHUNK + 10
    ours, theirs = (one.propose(anchor, ready.taps, position, 5, [0, 0, 17]) for one in (session, whole))
    assert mx.array_equal(ours, theirs)
