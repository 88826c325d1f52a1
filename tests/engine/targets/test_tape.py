"""The tape of a gated delta net against the recurrence run again, and both against the rule in double precision."""

from __future__ import annotations

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.gated_delta import compute_g, gated_delta_update

from engine.targets import tape
from engine.targets.gated_delta import GatedDeltaReplay
from engine.targets.recurrent import flat_entries
from tests.engine.targets.hybrids import hybrid

STEPS = 18  # four parts of five, the last one short
HEADS = [(2, 2), (2, 4), (1, 4), (3, 6)]


class Inputs:
    """Random inputs of the rule as a layer makes them: keys of length one, gates below one."""

    def __init__(self, key_heads: int, value_heads: int, dtype: mx.Dtype, with_state: bool):
        draw = [mx.random.normal(shape, key=mx.random.key(seed)) for seed, shape in enumerate((
            (1, STEPS, key_heads, 8), (1, STEPS, value_heads, 12), (1, STEPS, value_heads), (1, STEPS, value_heads),
            (value_heads,), (1, value_heads, 12, 8), (1, STEPS, key_heads, 8),
        ))]  # fmt: skip
        self.keys = (draw[0] / mx.linalg.norm(draw[0], axis=-1, keepdims=True)).astype(dtype)
        self.values, self.a, self.b, self.queries = (draw[place].astype(dtype) for place in (1, 2, 3, 6))
        self.a_log, self.dt_bias = draw[4], mx.ones(value_heads)
        self.state = draw[5] if with_state else mx.zeros(draw[5].shape)
        self.gates, self.betas = compute_g(self.a_log, self.a, self.dt_bias), mx.sigmoid(self.b)

    def rerun(self, kept: int) -> tuple[mx.array, mx.array]:
        """What mlx-lm's own function reads and leaves."""
        arrays = (array[:, :kept] for array in (self.queries, self.keys, self.values, self.a, self.b))
        return gated_delta_update(*arrays, self.a_log, self.dt_bias, self.state)

    def run(self) -> tuple[mx.array, mx.array, tape.Tape]:
        return tape.run(self.queries, self.keys, self.values, self.gates, self.betas, self.state)

    def in_double(self, kept: int) -> np.ndarray:
        keys, values, gates, betas = (
            np.array(array.astype(mx.float32), np.float64)[0] for array in (self.keys, self.values, self.gates, self.betas)
        )
        keys = np.repeat(keys, values.shape[1] // keys.shape[1], axis=1)
        state = np.array(self.state, np.float64)[0]
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
    read, final, record = inputs.run()
    their_read, their_final = inputs.rerun(STEPS)
    assert read.dtype == their_read.dtype == dtype
    assert mx.array_equal(read, their_read) and mx.array_equal(final, their_final), "the pass itself is mlx-lm's"
    for kept in range(1, STEPS + 1):
        assert mx.array_equal(record.state_after(kept), inputs.rerun(kept)[1]), kept
    assert not mx.array_equal(record.state_after(1), record.state_after(2))


@pytest.mark.parametrize("with_state", [True, False])
@pytest.mark.parametrize(("key_heads", "value_heads"), HEADS)
def test_both_follow_the_rule(key_heads: int, value_heads: int, with_state: bool) -> None:
    inputs = Inputs(key_heads, value_heads, mx.float32, with_state)
    record = inputs.run()[2]
    for kept in (1, 2, 5, 6, STEPS):
        expected = inputs.in_double(kept)
        for state in (record.state_after(kept), inputs.rerun(kept)[1]):
            assert np.abs(np.array(state)[0] - expected).max() < 1e-5


@pytest.mark.parametrize(("steps", "states", "stride"), [(2, 1, 4), (4, 1, 4), (5, 2, 4), (16, 4, 4), (17, 4, 5), (128, 4, 32)])
def test_a_replay_is_never_longer_than_a_part_and_few_states_are_kept(
    steps: int, states: int, stride: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = [mx.random.normal(shape, key=mx.random.key(1)) for shape in ((1, steps, 2, 4), (1, steps, 2), (1, 2, 4, 4))]
    record = tape.run(draw[0], draw[0], draw[0], draw[1], draw[1], draw[2])[2]
    assert (len(record.states), record.stride, len(record.innovations)) == (states, stride, steps)
    added, replayed = tape._added, []
    monkeypatch.setattr(tape, "_added", lambda *arrays: replayed.append(1) or added(*arrays))
    for kept in range(1, steps):
        replayed.clear()
        record.state_after(kept)
        assert len(replayed) < stride or kept > stride * (states - 1)


@pytest.mark.parametrize("name", ["qwen3_5", "qwen3_5 equal heads", "qwen3_5_moe", "qwen3_next"])
@pytest.mark.parametrize("kept", range(1, 6))
def test_a_target_rolls_back_to_the_same_bits_by_either_method(name: str, kept: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also from an empty cache, where the state before the pass is none."""
    target, states = hybrid(name), []
    for by_tape in (False, True):
        monkeypatch.setattr(GatedDeltaReplay, "by_tape", by_tape)
        for before in ([], [7, 3, 19, 42]):
            cache = target.make_cache()
            for ids in filter(None, (before, [11, 22, 33, 44, 55, 66])):
                output = target.forward(mx.array(ids), cache)
            target.rollback(cache, 6 - kept)
            states.append([output.logits, *(array for entry in flat_entries(cache)[::2] for array in entry.cache)])
    assert len(states[0]) == 5
    for ours, theirs in zip(states[:2], states[2:], strict=True):
        assert all(mx.array_equal(a, b) for a, b in zip(ours, theirs, strict=True))
