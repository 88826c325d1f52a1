"""The tape of a gated delta net against the recurrence run again, and both against the rule in double precision."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.gated_delta import compute_g, gated_delta_update

from engine.targets.gated_delta import GatedDeltaReplay
from engine.targets.recurrent import flat_entries
from engine.targets.tape import Tape
from tests.engine.targets.hybrids import hybrid

STEPS = 6
HEADS = [(2, 2), (2, 4), (1, 4), (3, 6)]


class Inputs:
    """Random inputs of the rule as a layer makes them: keys of length one, gates below one."""

    def __init__(self, key_heads: int, value_heads: int, dtype: mx.Dtype, with_state: bool):
        draw = [mx.random.normal(shape, key=mx.random.key(seed)) for seed, shape in enumerate((
            (1, STEPS, key_heads, 8), (1, STEPS, value_heads, 12), (1, STEPS, value_heads), (1, STEPS, value_heads),
            (value_heads,), (1, value_heads, 12, 8),
        ))]  # fmt: skip
        self.keys = (draw[0] / mx.linalg.norm(draw[0], axis=-1, keepdims=True)).astype(dtype)
        self.values, self.a, self.b = (array.astype(dtype) for array in draw[1:4])
        self.a_log, self.dt_bias = draw[4], mx.ones(value_heads)
        self.state = draw[5] if with_state else None
        self.gates, self.betas = compute_g(self.a_log, self.a, self.dt_bias), mx.sigmoid(self.b)

    def rerun(self, kept: int) -> mx.array:
        keys, values, a, b = (array[:, :kept] for array in (self.keys, self.values, self.a, self.b))
        return gated_delta_update(keys, keys, values, a, b, self.a_log, self.dt_bias, self.state)[1]

    def tape(self) -> Tape:
        return Tape.record(self.keys, self.values, self.gates, self.betas, self.state)

    def in_double(self, kept: int) -> np.ndarray:
        keys, values, gates, betas = (
            np.array(array.astype(mx.float32), np.float64)[0] for array in (self.keys, self.values, self.gates, self.betas)
        )
        keys = np.repeat(keys, values.shape[1] // keys.shape[1], axis=1)
        state = np.zeros((values.shape[1], 12, 8)) if self.state is None else np.array(self.state, np.float64)[0]
        for step in range(kept):
            for head in range(values.shape[1]):
                decayed = gates[step, head] * state[head]
                innovation = betas[step, head] * (values[step, head] - decayed @ keys[step, head])
                state[head] = decayed + np.outer(innovation, keys[step, head])
        return state


@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize("dtype", [mx.float32, mx.bfloat16])
@pytest.mark.parametrize(("key_heads", "value_heads"), HEADS)
def test_tape_and_rerun_agree_bit_for_bit_at_every_accepted_length(
    key_heads: int, value_heads: int, dtype: mx.Dtype, with_state: bool
) -> None:
    inputs = Inputs(key_heads, value_heads, dtype, with_state)
    tape = inputs.tape()
    for kept in range(1, STEPS + 1):
        assert mx.array_equal(tape.state_after(kept), inputs.rerun(kept)), kept
    assert not mx.array_equal(tape.state_after(1), tape.state_after(2))


@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize(("key_heads", "value_heads"), HEADS)
def test_both_follow_the_rule(key_heads: int, value_heads: int, with_state: bool) -> None:
    inputs = Inputs(key_heads, value_heads, mx.float32, with_state)
    tape = inputs.tape()
    for kept in range(1, STEPS + 1):
        expected = inputs.in_double(kept)
        for state in (tape.state_after(kept), inputs.rerun(kept)):
            assert np.abs(np.array(state)[0] - expected).max() < 1e-5


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_5 equal heads", "qwen3_5_moe", "qwen3_next"])
@pytest.mark.parametrize("kept", range(1, 6))
def test_a_target_rolls_back_to_the_same_bits_by_either_method(name: str, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    target, states = hybrid(name), []
    for method in ("rerun", "tape"):
        monkeypatch.setattr(GatedDeltaReplay, "method", method)
        cache = target.make_cache()
        for ids in ([7, 3, 19, 42], [11, 22, 33, 44, 55, 66]):
            target.forward(mx.array(ids), cache)
        target.rollback(cache, 6 - kept)
        states.append([array for entry in flat_entries(cache)[::2] for array in entry.cache])
    assert len(states[0]) == 4
    assert all(mx.array_equal(ours, theirs) for ours, theirs in zip(*states, strict=True))
