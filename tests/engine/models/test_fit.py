"""Whether a model fits: what is predicted from headers and configs covers what a loaded model really takes."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache

from engine.models import HubModel, InstalledModel, MemoryNeed, ResolvedPair, fit, fits, list_pairs
from engine.models.fit import judge
from engine.models.memory_need import cache_need, memory_need
from engine.targets.loading import load_target
from tests.engine.targets.hybrids import HYBRIDS
from tests.engine.targets.sliding_families import FAMILIES, WRAPPED, sliding_config
from tests.engine.tiny import build_target, target_config, write_target

GIGABYTE = 10**9


def test_the_starters_weights_are_predicted_to_a_percent(starter: ResolvedPair) -> None:
    target = load_target(starter.target, mx.float32)
    real = sum(array.nbytes for _, array in tree_flatten(target.model.parameters()))
    assert memory_need(starter.target, None, expanded=True).weights == pytest.approx(real, rel=0.01)
    stored = sum(file.stat().st_size for file in starter.target.glob("*.safetensors"))
    assert memory_need(starter.target, None).weights == pytest.approx(stored, rel=0.01)


CONFIGS = {f"{name}, hybrid": target_config(family, **changes) for name, (_, family, changes) in HYBRIDS.items()}
CONFIGS |= {name: sliding_config(name) for name in FAMILIES} | {name: sliding_config(name) for name in WRAPPED}


@pytest.mark.parametrize("name", CONFIGS)
def test_the_caches_of_every_family_are_predicted(name: str) -> None:
    """Bytes a token are exact; what does not grow is at least what is there, and no more than a window's growth above it."""
    config = CONFIGS[name]
    model = build_target(config)
    cache = make_prompt_cache(model)
    sizes = []
    for _ in range(3):  # a window's cache takes its size with the second chunk
        mx.eval(model(mx.ones((1, 256), dtype=mx.int32), cache=cache))
        sizes.append(sum(array.nbytes for _, array in tree_flatten([each.state for each in cache]) if isinstance(array, mx.array)))
    per_token, fixed = cache_need(config)
    assert 2 * per_token == (sizes[2] - sizes[1]) / 256
    flat = sizes[2] - 768 * 2 * per_token
    assert flat <= 2 * fixed and (flat > 0) == (fixed > 0)


@pytest.mark.parametrize(("context", "memory", "verdict", "words"), [
    (1000, 3 * GIGABYTE, "fits", "fits with 1,000 tokens"),
    (1000, round(2.5 * GIGABYTE), "tight", "close other programs"),
    (100_000, 3 * GIGABYTE, "tight", "fits with up to 15,360 tokens of context, not 40,000"),
    (1000, 2 * GIGABYTE, "no", "needs 2.4 GB, and models may use 2.0 GB here"),
])  # fmt: skip
def test_the_verdict_is_said_in_words(context: int, memory: int, verdict: str, words: str) -> None:
    need = MemoryNeed(weights=2 * GIGABYTE, per_token=40_000, fixed=0, longest=40_000)
    judged = judge(need, context, memory)
    assert judged.verdict == verdict and words in judged.words
    assert judged.memory_bytes == memory


def test_a_pair_that_is_not_here_is_judged_by_the_catalog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "on_cpu", lambda: False)
    large, small = fits("qwen3.5-122b-a10b", memory_bytes=24 * GIGABYTE), fits("qwen3.5-4b", memory_bytes=24 * GIGABYTE)
    assert large is not None and small is not None and (large.verdict, small.verdict) == ("no", "fits")
    longer = fits("qwen3.5-4b", context=32_768, memory_bytes=24 * GIGABYTE)
    assert longer is not None and longer.needed_bytes - small.needed_bytes == 32_768 * (32_768 - 8192)
    assert fits("no such pair") is None
    assert all(fits(pair.id) is not None for pair in list_pairs())


def test_a_model_of_the_hub_is_judged_by_its_size() -> None:
    def model(size: int | None) -> HubModel:
        return HubModel("org/model", 1, size, False, "", "qwen3", True, None)

    small, large = fits(model(GIGABYTE), memory_bytes=4 * GIGABYTE), fits(model(9 * GIGABYTE), memory_bytes=4 * GIGABYTE)
    assert small is not None and large is not None and (small.verdict, large.verdict) == ("fits", "no")
    assert fits(model(None)) is None


def test_an_installed_model_is_judged_by_its_files(tmp_path: Path) -> None:
    folder = write_target(tmp_path / "model")
    judged = fits(InstalledModel("model", "folder", folder, 1, "ready"), context=100, memory_bytes=GIGABYTE)
    assert judged is not None and judged.verdict == "fits" and "100 tokens" in judged.words
