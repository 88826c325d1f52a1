"""Choosing a token from the target's logits so that the choice at a position depends on nothing but logits, history, seed and
position.

That makes speculative decoding lossless for every setting: an emitted token is always the target's own draw, a proposal is
accepted when it equals that draw, and one seed gives one text in every mode. ``acceptance.py`` says why this is the rule of
Leviathan et al. and Chen et al.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import mlx.core as mx

from engine.decoding.logprobs import pack_logprobs
from engine.decoding.processors import Cuts, Penalties
from engine.request import GenerationRequest

GREEDY_BELOW = 1e-5  # dividing by less than this overflows, and the draw could only be the argmax
NOT_A_NUMBER = -1  # stands for the token of a row whose logits are no numbers; travels with the ids that are read anyway
LOWEST_NOISE = -16.0  # uniform noise of exactly 0 would make -inf, as low as a token that is cut


class Sampler:
    """Greedy at temperature 0, otherwise Gumbel-max with noise keyed by (seed, absolute position).

    The order of operations is that of ``GenerationRequest``. A setting that is off costs no operation.
    """

    def __init__(
        self,
        temperature: float,
        seed: int,
        cuts: Cuts | None = None,
        penalties: Penalties | None = None,
        logprobs: int | None = None,
        masked: bool = False,
    ):
        self._temperature, self._seed, self._logprobs = temperature, seed, logprobs
        self._cuts = None if cuts is None or (cuts.cut_nothing and not masked) else cuts  # masked: they raise the lowest noise
        self._penalties = None if penalties is None or penalties.changes_nothing else penalties
        self._vocabulary = 0
        self._noise_rows: dict[int, mx.array] = {}  # by position: drafts, rolled back rows and their next try share them

    @classmethod
    def of(cls, request: GenerationRequest, prompt: Sequence[int]) -> Sampler:
        """What ``request`` asks for, after ``prompt``'s token ids."""
        bias = dict(request.logit_bias).items()
        penalties = Penalties(prompt, bias, request.repetition_penalty, request.presence_penalty, request.frequency_penalty)
        cuts = Cuts(request.top_k, request.top_p, request.min_p)
        return cls(request.temperature, request.seed, cuts, penalties, request.logprobs, request.constraint is not None)

    def pick(self, logits: mx.array, position: int, block: mx.array | None = None) -> mx.array:
        """Token ids [L] for ``logits`` [L, V], whose first row chooses the token at absolute ``position``.

        ``block`` [L] are the answer's tokens whose pass made these rows, proposals included: row j is chosen as if the answer
        went on with ``block[: j + 1]``. ``NOT_A_NUMBER`` stands for the token of a row that holds NaN or +inf, or nothing finite.
        """
        self._vocabulary = logits.shape[-1]
        scores = logits if self._penalties is None else self._penalties.apply(logits, block)
        chosen = mx.argmax(scores, axis=-1) if self._temperature < GREEDY_BELOW else self._draw(scores, position)
        is_number = mx.abs(mx.max(logits, axis=-1)) < math.inf
        return mx.where(is_number, chosen.astype(mx.int32), NOT_A_NUMBER)

    def propose(self, logits: mx.array, position: int, ids: mx.array | None = None) -> mx.array:
        """A draft's proposals [L] from its ``logits`` [L, K] of the token ``ids`` [K] (None: all), the first for ``position``.

        They are drawn with the noise that the target's own draws there will use (see ``acceptance.py``); call after ``pick``.
        """
        if self._temperature < GREEDY_BELOW:
            best = mx.argmax(logits, axis=-1)
        else:
            columns = mx.arange(min(logits.shape[-1], self._vocabulary)) if ids is None else ids
            best = self._draw(logits[:, : columns.shape[0]], position, columns)
        return best if ids is None else ids[best]

    def score(self, logits: mx.array, chosen: mx.array) -> mx.array | None:
        """The packed log probabilities of ``chosen`` [L] under ``logits`` [L, V]; None when they were not asked for."""
        return None if self._logprobs is None else pack_logprobs(logits, chosen, self._logprobs)

    def advance(self, ids: mx.array) -> None:
        """``ids`` [n], run through the target by now, are part of the answer for good."""
        if self._penalties is not None:
            self._penalties.advance(ids, self._vocabulary)

    def _draw(self, logits: mx.array, position: int, columns: mx.array | None = None) -> mx.array:
        """Indices [L] into ``logits`` [L, K], whose columns are the tokens ``columns`` [K] (None: all)."""
        noise = self._noise_of(position, logits.shape[0])
        if columns is not None:
            noise = noise[:, columns]
        scaled = logits.astype(mx.float32) / self._temperature
        if self._cuts is None:
            return mx.argmax(scaled + noise, axis=-1)
        ids, scaled = self._cuts.apply(scaled)
        noise = mx.maximum(noise, LOWEST_NOISE)
        if ids is None:
            return mx.argmax(scaled + noise, axis=-1)
        best = mx.argmax(scaled + mx.take_along_axis(noise, ids, axis=-1), axis=-1, keepdims=True)
        return mx.take_along_axis(ids, best, axis=-1).squeeze(-1)

    def _noise_of(self, position: int, rows: int) -> mx.array:
        """[rows, V] from ``position`` on."""
        places = range(position, position + rows)
        kept = {place: row for place, row in self._noise_rows.items() if place >= position}
        self._noise_rows = kept | {place: self._noise(place, self._vocabulary) for place in places if place not in kept}
        return mx.stack([self._noise_rows[place] for place in places])

    def _noise(self, position: int, width: int) -> mx.array:
        key = mx.random.key((self._seed * 0x9E3779B97F4A7C15 + position) % 2**64)  # odd factor: seeds do not share positions
        return mx.random.gumbel((width,), key=key)
