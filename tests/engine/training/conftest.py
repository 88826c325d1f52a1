"""A tiny target with a draft to train, and texts it really says."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.targets.attention import AttentionTarget
from engine.targets.loading import load_target
from engine.training.corpus import Corpus, Text
from tests.engine.tiny import VOCAB, target_config, write_draft, write_target


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> AttentionTarget:
    found = load_target(write_target(tmp_path_factory.mktemp("teacher") / "target"), mx.float32)
    assert isinstance(found, AttentionTarget)
    return found


def make_drafter(target: AttentionTarget, folder: Path, **changes: object) -> DFlashDrafter:
    """A random draft of ``target``; ``changes`` to its config."""
    model = load_draft(write_draft(folder, target_config(), **changes), target.shape, mx.float32)
    return DFlashDrafter(model, target, "draft", model.convention.block_length)


def greedy(target: AttentionTarget, prompt: list[int], count: int) -> list[int]:
    """What the target says after ``prompt``."""
    cache, ids, said = target.make_cache(), mx.array(prompt), []
    for _ in range(count):
        said.append(int(mx.argmax(target.forward(ids, cache).logits[-1]).item()))
        ids = mx.array(said[-1:])
    return said


@pytest.fixture(scope="session")
def corpus(target: AttentionTarget) -> Corpus:
    """12 texts and 3 held out: 6 random tokens, then 34 of the target's own."""
    texts = []
    for seed in range(15):
        prompt = np.random.default_rng(seed).integers(8, VOCAB, 6).tolist()
        ids = prompt + greedy(target, prompt, 34)
        texts.append(Text(tuple(ids), tuple([False] * 6 + [True] * 34)))
    ids = np.array([text.ids for text in texts[:12]], dtype=np.int32)
    return Corpus(ids, np.array([text.answer for text in texts[:12]]), tuple(texts[12:]))
