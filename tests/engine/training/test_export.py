"""Exported drafts: read back they are what was trained, and an interrupted export leaves the one before."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.drafters.dflash.convention import DraftConvention
from engine.drafters.dflash.loading import load_draft
from engine.errors import RequestError, SlipstreamError
from engine.targets.attention import AttentionTarget
from engine.training.export import check_exportable, export_draft, trainable
from engine.training.fresh import frequent, fresh_convention, fresh_draft, spread_taps
from engine.training.settings import DraftPlan
from tests.engine.drafters.dflash.packagings import PACKAGINGS
from tests.engine.tiny import VOCAB, write_target
from tests.engine.training.conftest import make_drafter

STOP = frozenset([2])


@pytest.mark.parametrize("vocabulary", [None, 64])
def test_a_fresh_draft_read_back_has_its_convention_and_its_weights(
    tmp_path: Path, target: AttentionTarget, vocabulary: int | None
) -> None:
    plan = DraftPlan(layers=2, block_length=8, taps=(0, 2), vocabulary=vocabulary)
    convention = fresh_convention(write_target(tmp_path / "target"), target.shape, plan, mask_token_id=7)
    model = fresh_draft(convention, np.arange(VOCAB), STOP, seed=1)
    export_draft(model, trainable(model), tmp_path / "draft")
    assert DraftConvention.read(tmp_path / "draft") == convention
    read = load_draft(tmp_path / "draft", target.shape, mx.float32)
    for name, value in trainable(model).items():
        expected = value.astype(mx.bfloat16).astype(mx.float32)
        assert mx.array_equal(trainable(read)[name], expected).item(), name
    ours, theirs = model.target_ids(), read.target_ids()
    assert (ours is None) == (vocabulary is None)
    assert ours is None or (theirs is not None and mx.array_equal(ours, theirs).item())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"is_causal": True},
        {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7},
        {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7, "is_causal": False},
    ],
)
def test_a_draft_continued_from_keeps_its_convention(tmp_path: Path, target: AttentionTarget, changes: dict) -> None:
    model = make_drafter(target, tmp_path / "first", **changes).model
    check_exportable(model.convention)
    export_draft(model, trainable(model), tmp_path / "draft")
    assert DraftConvention.read(tmp_path / "draft") == model.convention


@pytest.mark.parametrize("name", ["second", "deepspec", "own embedding and head"])
def test_a_draft_of_a_kind_that_cannot_be_trained_further_is_refused(tmp_path: Path, name: str) -> None:
    convention = DraftConvention.read(PACKAGINGS[name](VOCAB).write(tmp_path))
    with pytest.raises(RequestError, match=r"begin a new one without --from"):
        check_exportable(convention)


def test_an_export_that_is_interrupted_leaves_the_draft_before_it(
    tmp_path: Path, target: AttentionTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_drafter(target, tmp_path / "first").model
    export_draft(model, trainable(model), tmp_path / "draft")
    before = (tmp_path / "draft" / "model.safetensors").read_bytes()

    def cut_off(path: str, *_: object) -> None:
        Path(path).write_bytes(b"half a file")
        raise RuntimeError("[write] no space left on device")

    monkeypatch.setattr(mx, "save_safetensors", cut_off)
    with pytest.raises(SlipstreamError, match=r"cannot be written .* make room"):
        export_draft(model, {name: value + 1 for name, value in trainable(model).items()}, tmp_path / "draft")
    assert (tmp_path / "draft" / "model.safetensors").read_bytes() == before
    assert sorted(file.name for file in (tmp_path / "draft").iterdir()) == ["config.json", "model.safetensors"]


def test_a_reduced_vocabulary_is_the_most_frequent_tokens_with_every_stop_token_and_no_mask() -> None:
    counts = np.array([9, 0, 8, 7, 0, 6, 5])
    assert frequent(counts, 4, frozenset([4]), never=0).tolist() == [2, 3, 4, 5]


def test_taps_are_spread_from_the_second_layer_to_the_third_from_the_end() -> None:
    assert spread_taps(36) == (1, 9, 17, 25, 33) and spread_taps(24) == (1, 6, 11, 16, 21) and spread_taps(30) == (1, 8, 14, 20, 27)
    assert spread_taps(2) == (0, 1) and len(spread_taps(8)) <= 5


@pytest.mark.parametrize("taps", [(2, 1), (0, 9), (-1, 2)])
def test_taps_the_target_does_not_have_are_refused(tmp_path: Path, target: AttentionTarget, taps: tuple[int, ...]) -> None:
    with pytest.raises(RequestError, match="give ascending layer numbers from 0 to 3"):
        fresh_convention(write_target(tmp_path), target.shape, DraftPlan(taps=taps), 7)
