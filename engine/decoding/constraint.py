"""Where an answer stands in the form it is held to: which tokens may come next, along a block, and which ones must."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import mlx.core as mx
import numpy as np

from engine.errors import ModelError

LONGEST_REASON = 200  # characters of the library's


class Matcher(Protocol):
    """What is used of the library's matcher. ``compute_bitmask`` has one bit a token, the lowest first."""

    def compute_bitmask(self) -> bytes: ...
    def compute_ff_tokens(self) -> list[int]: ...
    def compute_ff_bytes(self) -> bytes: ...
    def consume_token(self, sampled_token: int) -> bool: ...
    def rollback(self, num_tokens: int) -> bool: ...
    def is_stopped(self) -> bool: ...
    def is_error(self) -> bool: ...
    def get_error(self) -> str: ...


class Speller(Protocol):
    """What is used of the library's tokenizer."""

    def tokenize_bytes(self, utf8bytes: bytes) -> list[int]: ...


class Path(NamedTuple):
    """Proposals that the form allows, of which the first ``drafted`` were given, and a mask before each and after the last."""

    tokens: list[int]
    masks: list[bytes]
    drafted: int


class Guide:
    """One answer's place in its form: behind the tokens it was ``advance``\\ d by, and nowhere else between calls.

    ``ends`` are the tokens that end an answer, ``end`` the usual one. The form lets them come only where it may end.
    """

    def __init__(self, matcher: Matcher, speller: Speller, ends: frozenset[int], end: int):
        self._matcher, self._speller, self._ends, self._end = matcher, speller, ends, end

    def follow(self, proposals: Sequence[int], room: int) -> Path:
        """``proposals`` up to the first that the form refuses, then what must follow; at most ``room`` tokens.

        What must follow is what the form leaves no choice of, and how its text is usually written as tokens.
        """
        tokens: list[int] = []
        pending: list[int] = []
        masks = [self._mask()]
        drafted = 0
        while len(tokens) < room:
            if drafted == len(tokens) < len(proposals) and _allows(masks[-1], proposals[drafted]):
                token, drafted = proposals[drafted], drafted + 1
            else:
                pending = pending or self._forced()
                if not pending or not _allows(masks[-1], pending[0]):
                    break
                token, *pending = pending
            tokens.append(token)
            if token in self._ends:
                masks.append(b"\xff" * len(masks[-1]))  # nothing is chosen behind it
                break
            self._consume(token)
            masks.append(self._mask())
        steps = sum(token not in self._ends for token in tokens)
        if steps and not self._matcher.rollback(steps):
            raise self._lost()
        return Path(tokens, masks, drafted)

    def held(self, logits: mx.array, masks: Sequence[bytes] | None = None) -> mx.array:
        """``logits`` [L, V] with -inf for what ``masks`` (None: this place's, L is 1) refuse. A row of no numbers is all NaN."""
        rows = np.frombuffer(b"".join(masks or [self._mask()]), dtype=np.uint8).reshape(logits.shape[0], -1)
        bits = np.zeros(logits.shape, dtype=bool)  # what a padded head has beyond the vocabulary is never chosen
        known = np.unpackbits(rows, axis=1, bitorder="little")[:, : logits.shape[1]]
        bits[:, : known.shape[1]] = known
        is_number = mx.abs(mx.max(logits, axis=-1, keepdims=True)) < math.inf
        return mx.where(is_number, mx.where(mx.array(bits), logits, -math.inf), math.nan)

    def advance(self, tokens: Sequence[int]) -> None:
        """``tokens`` are part of the answer for good."""
        for token in tokens:
            if token not in self._ends:
                self._consume(token)

    def _consume(self, token: int) -> None:
        if not self._matcher.consume_token(token):
            raise self._lost()

    def _mask(self) -> bytes:
        mask = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise self._lost()
        return mask

    def _lost(self) -> ModelError:
        reason = " ".join(self._matcher.get_error().split())[:LONGEST_REASON]
        return ModelError(f"The form of the answer became too difficult to follow ({reason}): make it simpler.")

    def _forced(self) -> list[int]:
        if self._matcher.is_stopped():
            return [self._end]
        return self._matcher.compute_ff_tokens() or self._speller.tokenize_bytes(self._matcher.compute_ff_bytes())


def _allows(mask: bytes, token: int) -> bool:
    return 0 <= token < 8 * len(mask) and bool(mask[token >> 3] >> (token & 7) & 1)
