"""The loss against NumPy written out, slot by slot."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest

from engine.training.loss import block_loss, decay_weights

SCORED = np.array([[[False, True, True, True, True], [False, True, True, False, False], [False] * 5]])


def sample() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(1)
    logits = generator.normal(size=(1, 3, 5, 7)).astype(np.float32) * 2
    labels = generator.integers(0, 7, size=(1, 3, 5))
    teacher = generator.random((1, 3, 5, 7))
    return logits, labels, (teacher / teacher.sum(-1, keepdims=True)).astype(np.float32)


def reference(kind: str, distil: float, known: np.ndarray | None = None) -> tuple[float, float]:
    logits, labels, teacher = sample()
    known = np.ones_like(labels, dtype=bool) if known is None else known
    total = weight_sum = 0.0
    taus = []
    for block in range(3):
        if not SCORED[0, block].any():
            continue
        hard, soft, right = [], [], []
        for slot in range(5):
            logs = logits[0, block, slot] - np.log(np.exp(logits[0, block, slot]).sum())
            hard.append(-logs[labels[0, block, slot]] if known[0, block, slot] else 30.0)
            soft.append(-(teacher[0, block, slot] * logs).sum())
            right.append(logs.argmax() == labels[0, block, slot] and known[0, block, slot])
        scored = [slot for slot in range(5) if SCORED[0, block, slot]]
        for slot in scored:
            if kind == "decay":
                weight = np.exp(-(slot - 1) / 4.0)
            else:
                weight = sum(np.prod([0.5 * np.exp(-hard[i]) + 0.5 for i in scored if i <= m]) for m in scored if m >= slot)
            weight_sum += weight
            total += weight * ((1 - distil) * (hard[slot] if known[0, block, slot] else 0.0) + distil * soft[slot])
        accepted = 0
        for slot in scored:
            if not right[slot]:
                break
            accepted += 1
        taus.append(1 + accepted)
    return total / weight_sum, float(np.mean(taus))


@pytest.mark.parametrize("kind", ["decay", "dpace"])
@pytest.mark.parametrize("distil", [0.0, 0.5, 1.0])
def test_the_loss_is_the_weighted_mean_of_both_cross_entropies_over_scored_slots(kind: str, distil: float) -> None:
    logits, labels, teacher = sample()
    loss, tau = block_loss(
        mx.array(logits), mx.array(labels), mx.array(SCORED), mx.array(teacher), kind=kind, distil=distil, first_slot=1
    )
    expected = reference(kind, distil)
    assert loss.item() == pytest.approx(expected[0], rel=1e-5) and tau.item() == pytest.approx(expected[1])


def test_a_token_outside_the_drafts_vocabulary_is_never_accepted_and_pulls_at_no_logit() -> None:
    logits, labels, teacher = sample()
    known = np.ones_like(labels, dtype=bool)
    known[0, 0, 1] = known[0, 1, 2] = False
    outside = mx.array(np.where(known, labels, -1))
    arguments = {"kind": "dpace", "distil": 0.5, "first_slot": 1}
    loss, tau = block_loss(mx.array(logits), outside, mx.array(SCORED), mx.array(teacher), **arguments)
    expected = reference("dpace", 0.5, known)
    assert loss.item() == pytest.approx(expected[0], rel=1e-5) and tau.item() == pytest.approx(expected[1])


def test_slots_that_are_not_scored_have_no_gradient_and_scored_ones_have() -> None:
    logits, labels, teacher = sample()

    def total(values: mx.array) -> mx.array:
        return block_loss(values, mx.array(labels), mx.array(SCORED), mx.array(teacher), kind="dpace", distil=0.5, first_slot=1)[0]

    moved = np.abs(np.array(mx.grad(total)(mx.array(logits)))).max(axis=-1)
    assert (moved[~SCORED] == 0).all() and (moved[SCORED] > 0).all()


def test_later_slots_decay_by_the_papers_gamma_for_the_block_length() -> None:
    for slots, gamma in ((8, 4.0), (10, 5.0), (16, 7.0)):
        weights = np.array(decay_weights(slots, 1, None))
        assert weights[0] == 0 and weights[1] == 1
        np.testing.assert_allclose(weights[2:] / weights[1:-1], np.exp(-1 / gamma), rtol=1e-5)
