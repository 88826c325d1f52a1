"""The texts a draft learns from: token ids, which of them an answer said, and how often each token is said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from engine.errors import RequestError

LOOP_PERIOD, LOOP_RUN = 64, 24  # a run this long that repeats what stood at most this far back is a loop


@dataclass(frozen=True, slots=True)
class Text:
    """``ids`` of a prompt and the target's answer to it; ``answer`` marks the tokens that the target said."""

    ids: tuple[int, ...]
    answer: tuple[bool, ...]

    @property
    def answer_tokens(self) -> int:
        return sum(self.answer)


@dataclass(frozen=True, slots=True)
class Corpus:
    """``ids`` and ``answer`` [N, S], padded at the end with token 0 that no answer said; ``held_out`` texts train nothing."""

    ids: np.ndarray
    answer: np.ndarray
    held_out: tuple[Text, ...]

    def counts(self, vocabulary: int) -> np.ndarray:
        """How often each token is said [V]."""
        return np.bincount(self.ids[self.answer], minlength=vocabulary)


def without_loops(ids: Sequence[int], answer: Sequence[bool]) -> list[bool]:
    """``answer`` with nothing marked from where an answer begins to repeat itself to that answer's end: loops teach a draft
    what no user wants and make every figure look better than it is."""
    kept = list(answer)
    start = 0
    while start < len(ids):
        if not answer[start]:
            start += 1
            continue
        end = next((i for i in range(start, len(ids)) if not answer[i]), len(ids))
        begun = loop_start(ids[start:end])
        if begun is not None:
            kept[start + begun : end] = [False] * (end - start - begun)
        start = end
    return kept


def loop_start(ids: Sequence[int]) -> int | None:
    """Where a repetition that is long enough to be a loop begins (its first copy), None without one."""
    tokens, best = np.asarray(ids), None
    for period in range(1, min(LOOP_PERIOD, len(tokens) - 1) + 1):
        run = max(LOOP_RUN, 2 * period)
        same = np.concatenate([[0], np.cumsum(tokens[period:] == tokens[:-period])])
        if len(same) > run:
            hits = np.flatnonzero(same[run:] - same[:-run] == run)
            if hits.size and (best is None or hits[0] + period < best):
                best = int(hits[0]) + period
    return best


def build_corpus(texts: Sequence[Text], held_out: int, seed: int, apart: Sequence[Text] = ()) -> Corpus:
    """Drops repeated texts and pads the rest. Held out are ``apart``, or else ``held_out`` of ``texts``, at most a fifth.

    Raises ``RequestError`` when too little is left.
    """
    unique = [text for text in dict.fromkeys(texts) if text not in set(apart)]
    if len(unique) < 4 or sum(text.answer_tokens for text in unique) < 256:
        raise RequestError(
            f"There is too little to learn from ({len(unique)} texts, {sum(t.answer_tokens for t in unique)} answer tokens): "
            "give at least 4 chats with 256 answer tokens."
        )
    order = np.random.default_rng([seed, 0]).permutation(len(unique))
    count = 0 if apart else max(1, min(held_out, len(unique) // 5))
    kept = [unique[index] for index in order[count:]]
    width = max(len(text.ids) for text in kept)
    ids, answer = np.zeros((len(kept), width), dtype=np.int32), np.zeros((len(kept), width), dtype=bool)
    for row, text in enumerate(kept):
        ids[row, : len(text.ids)], answer[row, : len(text.ids)] = text.ids, text.answer
    return Corpus(ids, answer, tuple(apart) or tuple(unique[index] for index in order[:count]))
