"""Gated delta net hybrids: Qwen3-Next, Qwen3.5 and Qwen3.6, dense and mixture of experts.

B 1 sequence, T rows, Hk/Hv key and value heads (Hk <= Hv), Dk/Dv their sizes, K the convolution's width.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.gated_delta import compute_g, gated_delta_update, normalize_qk
from mlx_lm.models.qwen3_5 import GatedDeltaNet
from mlx_lm.models.qwen3_next import Qwen3NextGatedDeltaNet

from engine.targets.recurrent import Call, RecurrentTarget, Replay, State, window_after
from engine.targets.tape import Tape

L2_EPS = 1e-6  # of the keys' norm, a constant of the family


class GatedDeltaReplay(Replay):
    """Replays a gated delta net from the convolution's output and the two gate projections.

    ``rerun`` calls the model's own recurrence on the kept rows: the same kernel as in the pass, hence the same bits everywhere.
    ``tape`` adds recorded innovations instead: the same bits where multiply and add round apart, as on the CPU, and no promise
    where a kernel fuses them.
    """

    watched = ("conv1d", "in_proj_a", "in_proj_b")
    method: Literal["rerun", "tape"] = "rerun"

    def state_after(self, kept: int, calls: dict[str, Call], before: State) -> Sequence[mx.array]:
        mixer, conv = self.mixer, calls["conv1d"]
        keys, values = self.keys_and_values(conv.returned)
        a, b = self.gate_inputs(calls)
        window = window_after(kept, conv.given, mixer.conv_kernel_size)
        if self.method == "tape":
            return window, self.tape(keys, values, a, b, before[1]).state_after(kept)
        keys, values, a, b = (array[:, :kept] for array in (keys, values, a, b))
        _, state = gated_delta_update(  # what is read out is not needed, so the keys stand in for the queries
            keys, keys, values, a, b, mixer.A_log, mixer.dt_bias, before[1], use_kernel=not mixer.training
        )
        return window, state

    def keys_and_values(self, conv_output: mx.array) -> tuple[mx.array, mx.array]:
        """Keys [1, T, Hk, Dk] and values [1, T, Hv, Dv] as the recurrence reads them."""
        mixer, (_, rows, _) = self.mixer, conv_output.shape
        _, keys, values = mx.split(nn.silu(conv_output), [mixer.key_dim, 2 * mixer.key_dim], -1)
        keys = keys.reshape(1, rows, mixer.num_k_heads, mixer.head_k_dim)
        _, keys = normalize_qk(keys, keys, inv_scale=mixer.head_k_dim**-0.5, eps=L2_EPS)
        return keys, values.reshape(1, rows, mixer.num_v_heads, mixer.head_v_dim)

    def gate_inputs(self, calls: dict[str, Call]) -> tuple[mx.array, mx.array]:
        """What the decay and the learning rate are computed from, [1, T, Hv] each."""
        return calls["in_proj_a"].returned, calls["in_proj_b"].returned

    def tape(self, keys: mx.array, values: mx.array, a: mx.array, b: mx.array, state: mx.array | None) -> Tape:
        """The innovations of every row of the recorded pass."""
        gates = compute_g(self.mixer.A_log, a, self.mixer.dt_bias)
        return Tape.record(keys, values, gates, mx.sigmoid(b), state)


class Qwen3NextReplay(GatedDeltaReplay):
    """The same recurrence; its projections are fused and ordered by key head."""

    watched = ("conv1d", "in_proj_qkvz", "in_proj_ba")

    def gate_inputs(self, calls: dict[str, Call]) -> tuple[mx.array, mx.array]:
        *_, b, a = self.mixer.fix_query_key_value_ordering(calls["in_proj_qkvz"].returned, calls["in_proj_ba"].returned)
        return a, b


class GatedDeltaTarget(RecurrentTarget):
    """A target whose recurrent layers are gated delta nets."""

    replays: ClassVar[dict[type[nn.Module], type[Replay]]] = {
        GatedDeltaNet: GatedDeltaReplay,
        Qwen3NextGatedDeltaNet: Qwen3NextReplay,
    }
