"""jundot/omlx#1372, #300, #734: a model too large for the memory was loaded all the same, to the point of a kernel panic."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from engine import LoadOptions, LoadProgress, NotEnoughMemory, RequestError, load
from engine.models import ResolvedPair, fit
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target


def test_what_cannot_fit_is_refused_in_words_before_it_is_read(starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit, "machine_memory", lambda: 400_000_000)
    steps: list[LoadProgress] = []
    began = time.process_time()
    with pytest.raises(NotEnoughMemory) as caught:
        load("starter", progress=steps.append)
    assert time.process_time() - began < 2.0 and not any("target" in step.stage for step in steps)
    assert "0.4 GB" in str(caught.value) and "choose a smaller model" in str(caught.value) and "\n" not in str(caught.value)
    assert caught.value.needed > caught.value.available == 400_000_000


def test_the_draft_and_the_caches_at_the_context_count(tmp_path: Path, starter: ResolvedPair) -> None:
    size = {"vocab_size": 49152}
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", **size))
    draft = write_draft(tmp_path / "draft", target_config(**size))

    def needed(pair: str, **options: int) -> int:
        with pytest.raises(NotEnoughMemory) as caught:
            load(pair, options=LoadOptions(memory_bytes=1, **options))
        return caught.value.needed

    alone = needed(str(target), context_tokens=16)
    rows = 4 * 2 * 2 * 8 * 4  # layers, keys and values, heads, their size, bytes of fp32
    assert needed(str(target), context_tokens=1016) - alone == 1000 * rows
    assert needed(str(target), context_tokens=10**9) == needed(str(target), context_tokens=2048), "no longer than its context"
    assert needed(f"{target}+{draft}", context_tokens=16) > alone
    assert needed(str(target), context_tokens=1016, kv_bits=8) < needed(str(target), context_tokens=1016)


def test_the_check_can_be_overridden(tmp_path: Path, starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = copy_tokenizer(starter.target, write_target(tmp_path / "target", vocab_size=49152))
    monkeypatch.setattr(fit, "machine_memory", lambda: 1)
    with pytest.raises(NotEnoughMemory):
        load(str(folder))
    with pytest.raises(NotEnoughMemory, match=r"0\.1 GB"):
        load(str(folder), options=LoadOptions(memory_bytes=10**8))
    load(str(folder), options=LoadOptions(memory_bytes=0, prefix_disk_bytes=0)).close()
    with pytest.raises(RequestError):
        LoadOptions(memory_bytes=-1)
