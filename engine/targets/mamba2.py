"""Mamba-2 hybrids: Nemotron-H, Falcon-H1 and Granite 4, dense and mixture of experts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.falcon_h1 import FalconH1Mixer
from mlx_lm.models.granitemoehybrid import GraniteMoeHybridMamba2Mixer
from mlx_lm.models.nemotron_h import NemotronHMamba2Mixer
from mlx_lm.models.ssm import ssm_update

from engine.targets.recurrent import Call, RecurrentTarget, Replay, State, window_after


class Mamba2Replay(Replay):
    """Replays a Mamba-2 mixer from the convolution's output and the step sizes.

    The model computes a block's final state in one sum over its rows, so there is no state between two rows to go back to:
    the sum is made again over the kept rows, as a pass over them alone would make it.
    """

    watched = ("conv1d", "in_proj")

    def state_after(self, kept: int, record: dict[str, Call], before: State) -> Sequence[mx.array]:
        mixer, conv = self.mixer, record["conv1d"]
        groups = mixer.n_groups * mixer.ssm_state_size
        rows = nn.silu(conv.returned)[:, :kept]
        x, b, c = mx.split(rows, [mixer.intermediate_size, mixer.intermediate_size + groups], axis=-1)
        steps = record["in_proj"].returned[:, :kept, mixer.intermediate_size + mixer.conv_dim :]
        _, state = ssm_update(
            x.reshape(1, kept, mixer.num_heads, mixer.head_dim),
            mixer.A_log,
            b.reshape(1, kept, mixer.n_groups, mixer.ssm_state_size),
            c.reshape(1, kept, mixer.n_groups, mixer.ssm_state_size),
            mixer.D.astype(x.dtype),
            steps,
            mixer.dt_bias,
            before[1],
            mixer.time_step_limit,
        )
        return window_after(kept, conv.given, mixer.conv_kernel_size), state


class Mamba2Target(RecurrentTarget):
    """A target whose recurrent layers are Mamba-2 mixers."""

    replays: ClassVar[dict[type[nn.Module], type[Replay]]] = {
        NemotronHMamba2Mixer: Mamba2Replay,
        FalconH1Mixer: Mamba2Replay,
        GraniteMoeHybridMamba2Mixer: Mamba2Replay,
    }

    def find_body(self) -> nn.Module:
        return self.model.get("backbone") or super().find_body()  # Nemotron-H names its parts otherwise

    def embed(self, ids: mx.array) -> mx.array:
        table = self._body.get("embeddings") or self._body.embed_tokens
        return table(ids) * getattr(self._body, "embedding_multiplier", 1.0)

    def head(self, hidden: mx.array) -> mx.array:
        return super().head(hidden) * self._logit_scale

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        project = super().partial_head(ids)
        return lambda hidden: project(hidden) * self._logit_scale

    @property
    def _logit_scale(self) -> float:
        """What the family multiplies its logits by after the head."""
        args = self.model.args
        if args.model_type == "granitemoehybrid":
            return 1.0 / args.logits_scaling
        if args.model_type == "falcon_h1" and args.tie_word_embeddings:
            return args.lm_head_multiplier / args.embedding_multiplier
        return 1.0
