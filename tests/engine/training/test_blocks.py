"""Packed blocks: each is run as inference would run it, no slot sees what it should predict, and labels stand where they should."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.targets.attention import AttentionTarget
from engine.training.blocks import draw_anchors, pack, packed_rows
from engine.training.corpus import Corpus
from engine.training.teacher import Teacher
from tests.engine.training.conftest import make_drafter

KINDS = {
    "full": {},
    "causal": {"is_causal": True},
    "sliding": {"layer_types": ["sliding_attention", "full_attention"], "sliding_window": 7},
    "sliding bidirectional": {"layer_types": ["sliding_attention"] * 2, "sliding_window": 5, "is_causal": False},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_packed_pass_gives_every_block_the_rows_that_inference_gives_it(
    tmp_path: Path, target: AttentionTarget, corpus: Corpus, kind: str
) -> None:
    drafter = make_drafter(target, tmp_path, **KINDS[kind])
    model, ids, answer = drafter.model, corpus.ids[:2], corpus.answer[:2]
    taps, _ = Teacher(target, drafter.taps).run(mx.array(ids))
    features = model.features(taps)
    anchors, exists = draw_anchors(answer, 4, np.random.default_rng(3))
    blocks = pack(ids, answer, anchors, exists, 5, model.convention)
    packed = packed_rows(model, drafter.embed(blocks.inputs.reshape(2, -1)), features, blocks).reshape(2, 4, 5, -1)
    for text in range(2):
        for number, anchor in enumerate(anchors[text].tolist()):
            context = model.make_context()
            model.add_context(features[text, : anchor - 1], context, 0)
            inputs = drafter.embed(blocks.inputs[text, number])
            alone = model(inputs, features[text, anchor - 1 : anchor], context, anchor)
            np.testing.assert_allclose(np.array(packed[text, number]), np.array(alone), atol=2e-5)


def test_no_slot_sees_features_at_or_after_its_anchor_and_every_one_sees_those_before(
    tmp_path: Path, target: AttentionTarget, corpus: Corpus
) -> None:
    drafter = make_drafter(target, tmp_path)
    ids, answer = corpus.ids[:1], corpus.answer[:1]
    features = drafter.model.features(Teacher(target, drafter.taps).run(mx.array(ids))[0])
    anchors = np.array([[9, 20]])
    blocks = pack(ids, answer, anchors, np.ones_like(anchors, dtype=bool), 5, drafter.model.convention)

    def rows(changed: slice) -> np.ndarray:
        other = mx.array(features)
        other[:, changed] = other[:, changed] + 1.0
        embedded = drafter.embed(blocks.inputs.reshape(1, -1))
        return np.array(packed_rows(drafter.model, embedded, other, blocks).reshape(2, 5, -1))

    unchanged = rows(slice(0, 0))
    for number, anchor in enumerate((9, 20)):
        np.testing.assert_array_equal(rows(slice(anchor, None))[number], unchanged[number])
        assert (np.abs(rows(slice(anchor - 1, anchor))[number] - unchanged[number]).max(axis=-1) > 1e-4).all()


def test_blocks_of_one_text_do_not_see_each_other(tmp_path: Path, target: AttentionTarget, corpus: Corpus) -> None:
    drafter = make_drafter(target, tmp_path)
    ids, answer = corpus.ids[:1], corpus.answer[:1]
    features = drafter.model.features(Teacher(target, drafter.taps).run(mx.array(ids))[0])

    def first_block(second_anchor: int) -> np.ndarray:
        anchors = np.array([[9, second_anchor]])
        blocks = pack(ids, answer, anchors, np.ones_like(anchors, dtype=bool), 5, drafter.model.convention)
        return np.array(packed_rows(drafter.model, drafter.embed(blocks.inputs.reshape(1, -1)), features, blocks)[0, :5])

    np.testing.assert_allclose(first_block(10), first_block(30), atol=1e-6)


def test_a_slot_is_scored_on_the_token_at_its_own_place_up_to_the_answers_end(tmp_path: Path, target: AttentionTarget) -> None:
    convention = make_drafter(target, tmp_path).model.convention
    ids = np.arange(20, 32, dtype=np.int32)[None]
    answer = np.array([[False] * 3 + [True] * 6 + [False] * 3])
    anchors = np.array([[3, 6]])
    blocks = pack(ids, answer, anchors, np.ones_like(anchors, dtype=bool), 5, convention)
    assert np.array(blocks.inputs).tolist() == [[[23] + [5] * 4, [26] + [5] * 4]]
    assert np.array(blocks.labels[0, 0]).tolist() == [23, 24, 25, 26, 27]
    assert np.array(blocks.scored[0]).tolist() == [[False, True, True, True, True], [False, True, True, False, False]]
    assert np.array(blocks.said_at[0, 0]).tolist() == [2, 3, 4, 5, 6]


def test_anchors_are_places_whose_own_and_next_token_were_said_each_at_most_once() -> None:
    answer = np.zeros((2, 20), dtype=bool)
    answer[0, 4:9] = answer[1, 12:15] = True
    anchors, exists = draw_anchors(answer, 6, np.random.default_rng(0))
    assert sorted(anchors[0][exists[0]].tolist()) == [4, 5, 6, 7]
    assert sorted(anchors[1][exists[1]].tolist()) == [12, 13]
    drawn = {tuple(draw_anchors(answer, 2, np.random.default_rng(seed))[0][0].tolist()) for seed in range(30)}
    assert len(drawn) == 6, "every pair of places comes up"


def test_a_block_that_does_not_exist_scores_nothing_and_gives_finite_rows(
    tmp_path: Path, target: AttentionTarget, corpus: Corpus
) -> None:
    drafter = make_drafter(target, tmp_path)
    answer = np.zeros_like(corpus.answer[:1])
    answer[0, 10:12] = True
    anchors, exists = draw_anchors(answer, 3, np.random.default_rng(0))
    blocks = pack(corpus.ids[:1], answer, anchors, exists, 4, drafter.model.convention)
    features = drafter.model.features(Teacher(target, drafter.taps).run(mx.array(corpus.ids[:1]))[0])
    rows = packed_rows(drafter.model, drafter.embed(blocks.inputs.reshape(1, -1)), features, blocks)
    assert exists.tolist() == [[True, False, False]]
    assert int(blocks.scored.sum()) == 1 and bool(mx.isfinite(rows).all())
