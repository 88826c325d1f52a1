"""What makes a span of the prompt worth reading: one score a span, the higher the sooner it is read."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

import numpy as np

from engine.prefill.selection import SPAN, Prompt, always_kept, choose, spans
from engine.request import SparsePrefill

Piece = Callable[[int], str]
Attend = Callable[[], np.ndarray]

NEIGHBOURS = 0.5  # of a span's score goes to those beside it: what is looked for may begin or go on there


def choose_tokens(sparse: SparsePrefill, prompt: Prompt, piece: Piece, attend: Attend) -> np.ndarray:
    """[P], True for the tokens of ``prompt`` to read. ``piece`` is a token's text; ``attend`` gives the weight [P] of each token
    for the last user turn and is called for the scorer "attention" alone."""
    if sparse.scorer == "attention":
        scores = attention_scores(prompt, attend())
    else:
        scores = stride_scores(prompt) if sparse.scorer == "stride" else lexical_scores(prompt, piece)
    return choose(prompt, scores, sparse.keep)


def attention_scores(prompt: Prompt, weights: np.ndarray) -> np.ndarray:
    """The largest of the ``weights`` [P] in each span, among the tokens that would not stay anyway."""
    free = np.where(always_kept(prompt), 0.0, weights)
    return spread(np.array([free[start:stop].max() for start, stop in spans(len(free))]))


def stride_scores(prompt: Prompt) -> np.ndarray:
    """Spans in an order whose every beginning is spread evenly over the prompt: that of their numbers read backwards in binary."""
    count = len(spans(len(prompt.ids)))
    bits = max(1, (count - 1).bit_length())
    return -np.array([int(f"{index:0{bits}b}"[::-1], 2) for index in range(count)], dtype=float)


def lexical_scores(prompt: Prompt, piece: Piece) -> np.ndarray:
    """How many of the rarer words of the last user turn a span has too; evenly spread spans where it has none.

    ``piece`` is a token's text. A word weighs the more the fewer spans have it, as in tf-idf.
    """
    count = len(spans(len(prompt.ids)))
    asked = prompt.turn & always_kept(prompt)
    query: set[str] = set()
    found: list[set[str]] = [set() for _ in range(count)]
    for word, first, last in _words(prompt.ids, piece):
        if asked[first]:
            query.add(word)
        else:
            for span in range(first // SPAN, last // SPAN + 1):
                found[span].add(word)
    spans_with = {word: sum(word in span for span in found) for word in query}
    own = np.array([sum(np.log(count / spans_with[word]) for word in sorted(span & query)) for span in found])
    return spread(own) + 1e-6 * stride_scores(prompt) / count


def spread(scores: np.ndarray) -> np.ndarray:
    """``scores`` with a part of each added to its neighbours."""
    padded = np.concatenate([[0.0], scores, [0.0]])
    return scores + NEIGHBOURS * np.maximum(padded[:-2], padded[2:])


def _words(ids: Sequence[int], piece: Piece) -> Iterator[tuple[str, int, int]]:
    """The prompt's words in small letters, each with its first and last token."""
    texts = {token: piece(token) for token in set(ids)}
    ends = list(accumulate(len(texts[token]) for token in ids))
    for word in re.finditer(r"\w+", "".join(texts[token] for token in ids)):
        yield word.group().lower(), bisect_right(ends, word.start()), bisect_right(ends, word.end() - 1)
