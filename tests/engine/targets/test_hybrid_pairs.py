"""Whole pairs of a hybrid target and a random draft, loaded from disk: the texts of both modes agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import Fallback, GenerationRequest, load
from engine.models import ResolvedPair
from tests.engine.targets.hybrids import HYBRIDS, RECURRENCES
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

WIDE = {"vocab_size": 49152}  # the starter's tokenizer


@pytest.mark.parametrize("name", [*RECURRENCES, "qwen3_5_moe", "lfm2_moe"])
def test_a_hybrid_pair_decodes_identically(name: str, tmp_path: Path, starter: ResolvedPair) -> None:
    """Random weights: nothing is accepted, so every block is rolled back to its first row."""
    _, family, changes = HYBRIDS[name]
    folder = copy_tokenizer(starter.target, write_target(tmp_path / "target", family, **changes, **WIDE))
    engine = load(f"{folder}+{write_draft(tmp_path / 'draft', target_config(family, **changes, **WIDE))}")
    answers = {}
    for mode in ("baseline", "dflash", "lookup"):
        events = list(engine.generate(GenerationRequest.of("hello " * 70, mode=mode, max_tokens=24, block_length=6)))
        assert not any(isinstance(event, Fallback) for event in events)
        answers[mode] = events[-1]
    assert answers["dflash"].token_ids == answers["baseline"].token_ids == answers["lookup"].token_ids
    assert answers["dflash"].statistics.proposed > 50
    engine.close()
