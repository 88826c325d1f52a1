"""Gated delta net hybrids: Qwen3-Next, Qwen3.5 and Qwen3.6, dense and mixture of experts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar

import mlx.core as mx
import mlx.nn as nn
from mlx_lm.models.gated_delta import compute_g, gated_delta_update
from mlx_lm.models.qwen3_5 import GatedDeltaNet
from mlx_lm.models.qwen3_next import Qwen3NextGatedDeltaNet

from engine.targets.recurrent import RecurrentTarget, Replay, State, rebound, recorded_calls, stood_in, window_after
from engine.targets.tape import Tape, run


class _Record:
    """One pass of one layer: the convolution's input, and a tape or else what the recurrence was called with."""

    def __init__(self) -> None:
        self.conv_input: mx.array | None = None
        self.tape: Tape | None = None
        self.given: tuple[mx.array, ...] = ()


class GatedDeltaReplay(Replay):
    """Runs mlx-lm's own mixer with its recurrence handed to this object, which records it.

    By tape where mlx-lm would take single steps itself: on the CPU the same bits in less time. Where it has a kernel for the whole
    recurrence, as on Metal, that kernel runs in the pass and again over the kept rows.
    """

    by_tape = not mx.metal.is_available()

    def __init__(self, layer: nn.Module, name: str):
        super().__init__(layer, name)
        self._call = rebound(self.mixer, "gated_delta_update", self._update)
        self._record = _Record()

    @contextmanager
    def recorded(self) -> Iterator[_Record]:
        self._record = record = _Record()
        with recorded_calls(self.mixer, ("conv1d",)) as calls, stood_in(self.layer, self.name, self._call):
            yield record
        record.conv_input = calls["conv1d"].given

    def state_after(self, kept: int, record: Any, before: State) -> Sequence[mx.array]:
        window = window_after(kept, record.conv_input, self.mixer.conv_kernel_size)
        if record.tape is not None:
            return window, record.tape.state_after(kept)
        keys, values, a, b, *constants = record.given
        keys, values, a, b = (array[:, :kept] for array in (keys, values, a, b))
        # What is read out is not needed, so the keys stand in for the queries.
        return window, gated_delta_update(keys, keys, values, a, b, *constants, use_kernel=not self.mixer.training)[1]

    def _update(
        self, q: mx.array, k: mx.array, v: mx.array, a: mx.array, b: mx.array, A_log: mx.array, dt_bias: mx.array,
        state: mx.array | None, mask: None, *, use_kernel: bool,
    ) -> tuple[mx.array, mx.array]:  # fmt: skip
        """Called in place of mlx-lm's function of the same parameters; a mask comes only with several sequences."""
        assert mask is None
        if not self.by_tape:
            self._record.given = (k, v, a, b, A_log, dt_bias, *(() if state is None else (state,)))
            return gated_delta_update(q, k, v, a, b, A_log, dt_bias, state, use_kernel=use_kernel)
        if state is None:
            state = mx.zeros((1, *v.shape[2:], k.shape[3]), dtype=mx.float32)
        read, after, self._record.tape = run(q, k, v, compute_g(A_log, a, dt_bias), mx.sigmoid(b), state)
        return read, after


class GatedDeltaTarget(RecurrentTarget):
    """A target whose recurrent layers are gated delta nets."""

    replays: ClassVar[dict[type[nn.Module], type[Replay]]] = {
        GatedDeltaNet: GatedDeltaReplay,
        Qwen3NextGatedDeltaNet: GatedDeltaReplay,
    }
