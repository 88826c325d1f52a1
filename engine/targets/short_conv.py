"""Short-convolution hybrids: LFM2, dense and mixture of experts. Such a layer keeps the last rows its convolution read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models import lfm2, lfm2_moe

from engine.targets.recurrent import Call, RecurrentTarget, Replay, State, window_after


class ShortConvReplay(Replay):
    """The window is all there is to keep, so a replay only moves it."""

    watched = ("conv",)

    def state_after(self, kept: int, record: dict[str, Call], before: State) -> Sequence[mx.array]:
        return (window_after(kept, record["conv"].given, self.mixer.L_cache),)


class ShortConvTarget(RecurrentTarget):
    """A target whose recurrent layers are gated short convolutions."""

    replays: ClassVar[dict[type[nn.Module], type[Replay]]] = {
        lfm2.ShortConv: ShortConvReplay,
        lfm2_moe.ShortConv: ShortConvReplay,
    }
