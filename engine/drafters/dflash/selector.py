"""DFlash 2's choice of a block: the path through each slot's likeliest tokens that fits together, walked from the anchor."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn

from engine.drafters.dflash.convention import Selector


class CandidateSelector(nn.Module):
    """Scores the step from a token to a candidate by <before[token] * (W hidden), after[candidate]>."""

    def __init__(self, settings: Selector, hidden_size: int, vocab_size: int):
        super().__init__()
        self.settings = settings
        self.hidden_projection = nn.Linear(hidden_size, settings.rank, bias=False)
        self.predecessor_codebook = nn.Embedding(vocab_size, settings.rank)
        self.successor_codebook = nn.Embedding(vocab_size, settings.rank)

    def walk(self, logits: mx.array, hidden: mx.array, anchor: mx.array) -> mx.array:
        """Token ids [L]: from ``anchor`` [1], in each slot the candidate that scores best after the one before it.

        ``logits`` [L, V] and final-normed ``hidden`` [L, H] are those of the slots that propose.
        """
        count = self.settings.top_k
        candidates = mx.argpartition(logits, -count, axis=-1)[:, -count:]  # [L, K]
        own = self._scale(mx.take_along_axis(logits, candidates, axis=-1))
        before = mx.concatenate([mx.broadcast_to(anchor.astype(candidates.dtype), (1, count)), candidates[:-1]])
        steps = self.predecessor_codebook(before) * self.hidden_projection(hidden)[:, None]  # [L, K, r]
        fit = steps @ self.successor_codebook(candidates).transpose(0, 2, 1)  # [L, K before, K after]
        best = mx.argmax(own[:, None] + fit.astype(mx.float32), axis=-1)  # [L, K]: where to go from each candidate
        path = [best[0, :1]]  # before the first slot stands the anchor, whichever candidate is looked at
        for slot in range(1, best.shape[0]):
            path.append(best[slot][path[-1]])
        return mx.take_along_axis(candidates, mx.stack(path), axis=-1)[:, 0]

    def _scale(self, logits: mx.array) -> mx.array:
        """In fp32, on the scale the step scores were trained beside."""
        logits = logits.astype(mx.float32) * self.settings.multiplier
        cap = self.settings.softcap
        return logits if cap is None else mx.tanh(logits / cap) * cap
