"""The DFlash draft as a drafter: one loaded model that borrows the target's embedding and head, unless it has its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import mlx.core as mx

from engine.drafters.dflash.model import DFlashModel
from engine.drafters.protocol import Draw
from engine.events import Mode


class Vocabulary(Protocol):
    """What is borrowed from the target."""

    def embed(self, ids: mx.array) -> mx.array:
        """Embeddings [L, H]."""

    def head(self, hidden: mx.array) -> mx.array:
        """Logits [L, V]."""

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        """From [L, H] to the logits [L, K] of rows ``ids`` [K] only."""


class DFlashDrafter:
    """Shared by all requests; ``block_length`` counts the anchor and may be below the trained block."""

    mode: Mode = "dflash"

    def __init__(self, model: DFlashModel, vocabulary: Vocabulary, name: str, block_length: int):
        self.model, self.name, self.block_length = model, name, block_length
        self.taps = model.convention.taps
        self._ids = model.target_ids()
        self._embed = vocabulary.embed if model.convention.embedding_rows is None else model.embed_tokens
        self._head: Callable[[mx.array], mx.array] = self._own_head
        if model.convention.head_rows is None:
            head = vocabulary.head if self._ids is None else vocabulary.partial_head(self._ids)
            dtype = vocabulary.embed(mx.array([0])).dtype  # the target's
            self._head = lambda hidden: head(hidden.astype(dtype))

    def session(self, draw: Draw | None = None) -> DFlashSession:
        return DFlashSession(self, draw)

    def features(self, taps: mx.array) -> mx.array | None:
        return self.model.features(taps)

    def block(self, anchor: mx.array, masks: mx.array) -> mx.array:
        """Embeddings [B, H] of the anchor [1] and the mask tokens [B-1] that stand for the proposals."""
        return self.embed(mx.concatenate([anchor, masks]))

    @property
    def vocabulary(self) -> mx.array | None:
        """Target ids [K] this draft chooses from; None: all of them."""
        return self._ids

    def embed(self, ids: mx.array) -> mx.array:
        """Embeddings [.., H] of ``ids`` as a block takes them."""
        embedded, scale = self._embed(ids).astype(self.model.dtype), self.model.convention.embedding_scale
        return embedded if scale == 1 else embedded * scale

    def project(self, hidden: mx.array) -> mx.array:
        """Logits [.., K] of final-normed rows [.., H] over the draft's own vocabulary."""
        return self._head(hidden)

    def choose(self, hidden: mx.array, anchor: mx.array, position: int = 0, draw: Draw | None = None) -> mx.array:
        """Token ids [L] for the rows [L, H] of the slots that propose, the first of which follows ``anchor`` [1] and stands at
        absolute ``position``. A draft with a selector chooses by it, without ``draw``.
        """
        logits = self._head(hidden)
        if self.model.convention.selector is not None:
            return self.model.candidate_selector.walk(logits, hidden, anchor)
        if draw is not None:
            return draw(logits, position, self._ids)
        best = mx.argmax(logits, axis=-1)
        return best if self._ids is None else self._ids[best]

    def _own_head(self, hidden: mx.array) -> mx.array:
        """Rows past the vocabulary are padding."""
        return self.model.lm_head(hidden)[..., : self.model.convention.vocab_size]


class DFlashSession:
    """One answer's draft context."""

    def __init__(self, drafter: DFlashDrafter, draw: Draw | None = None):
        self._drafter, self._model, self._draw = drafter, drafter.model, draw
        self._context = self._model.make_context()
        self._masks: dict[int, mx.array] = {}

    def prefill(self, taps: mx.array | None, position: int) -> list[mx.array]:
        return [] if taps is None else self.restore(self._model.features(taps), position)

    def restore(self, features: mx.array, position: int) -> list[mx.array]:
        self._model.add_context(features, self._context, position)
        return self._context.arrays()

    def first_seen(self, position: int) -> int:
        return max(0, position - self._context.reach) if self._context.reach is not None else 0

    def skip_to(self, position: int) -> None:
        self._context.skip_to(position)

    def propose(
        self, anchor: mx.array, taps: mx.array | None, position: int, length: int, committed: Sequence[int]
    ) -> mx.array | None:
        features = None if taps is None else self._model.features(taps)
        if length < 1:
            if features is not None:
                self._model.add_context(features, self._context, position - features.shape[0])
            return None
        first = self._model.convention.first_slot
        if length not in self._masks:
            masks = length - 1 + first
            self._masks[length] = mx.full((masks,), self._model.convention.mask_token_id, dtype=anchor.dtype)
        block = self._drafter.block(anchor, self._masks[length])
        hidden = self._model(block, features, self._context, position)
        return self._drafter.choose(hidden[first:], anchor, position + 1, self._draw).astype(anchor.dtype)
