"""The draft's context comes back with a prefix, whichever mode left it there: the proposals are those of a cold run."""

from __future__ import annotations

import threading

import mlx.core as mx
import pytest

from engine.prefill.chunked import Prefilled, prefill
from engine.prefix.cache import PrefixCache
from tests.engine.prefill.test_chunked import Pair, load_tiny
from tests.engine.prefix.targets import GRID, open_cache, prompt

WINDOWED = {"layer_types": ["sliding_attention"] * 2, "sliding_window": 40, "use_sliding_window": True}
MIXED = {**WINDOWED, "layer_types": ["sliding_attention", "full_attention"]}


@pytest.fixture(scope="module", params=[{}, WINDOWED, MIXED], ids=["sees all", "windows", "both"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return load_tiny(tmp_path_factory.mktemp("pair"), **request.param)


def proposals(pair: Pair, ids: list[int], kept: PrefixCache | None, plain: bool = False) -> tuple[list[int], int]:
    """What the draft proposes after ``ids``, and how many tokens came out of the cache; ``plain`` only leaves ``ids`` there."""
    target, drafter = pair
    cache, session, never = target.make_cache(), None if plain else drafter.session(), threading.Event()
    recording = kept.begin(ids, cache, session, lambda beyond: [], never) if kept is not None else None
    *_, ready = prefill(target, cache, ids, session, () if plain else drafter.taps, GRID, never, recording)
    assert isinstance(ready, Prefilled)
    if kept is not None and recording is not None:
        kept.end(recording)
    found = session.propose(mx.array([17]), ready.taps, len(ids), 5, [*ids, 17]) if session is not None else mx.array([])
    return found.tolist(), recording.tokens if recording is not None else 0


@pytest.mark.parametrize("plain", [True, False], ids=["left by plain decoding", "left by DFlash"])
@pytest.mark.parametrize("more", [0, 3, 20, 100])
def test_proposals_after_a_kept_prefix_are_those_of_a_cold_run(pair: Pair, plain: bool, more: int) -> None:
    """``more`` tokens follow the prefix: from inside a window's reach to far past it."""
    kept, stem = open_cache(*pair), prompt(5 * GRID + 3)
    proposals(pair, stem, kept, plain)
    ids = stem + prompt(more, seed=1)
    restored, cached = proposals(pair, ids, kept)
    assert cached == 5 * GRID
    assert restored == proposals(pair, ids, None)[0]


def test_two_prefixes_lead_to_different_proposals(pair: Pair) -> None:
    """Otherwise the above would hold without any context."""
    assert len({tuple(proposals(pair, prompt(5 * GRID, seed), None)[0]) for seed in range(4)}) > 1
