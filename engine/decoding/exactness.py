"""For which widths a verify pass gives, bit for bit, what single steps give on this machine: measured once, kept on disk.

A kernel that adds up the rows of a wide pass in another order than a single row rounds differently, and such a difference may
flip a choice at a near-tie. Where it does not, speculation is lossless in the strict sense.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine.measured import keep, kept
from engine.targets.protocol import Cache, Target

KIND = "exact-widths"
WIDEST = 16  # slots; looked-up blocks may be wider, and an exact answer narrows them
# Rows in the cache before the pass: a few, across borders where buffers grow, and where kernels change with the key length.
KEY_LENGTHS = {"cpu": ((7, 250), (61, 130)), "gpu": ((7, 250, 1020), (61, 530, 2040))}  # of two prompts
CHUNK = 64  # rows of a prefill pass here; any, because both sides start from the same caches


class Exactness:
    """The exact widths of one target up to ``widest``. ``identity`` is what they belong to: machine, versions, pair, options."""

    def __init__(self, target: Target, widest: int, folder: Path, identity: Sequence[str]):
        self._target, self._widest, self._folder = target, widest, folder
        self._identity = [*identity, str(widest)]
        self.widths = kept(folder, KIND, self._identity, _parse)

    def measuring(self) -> Iterator[float]:
        """Measures the widths, pass by pass: as long as answering a few hundred tokens takes. Yields the share that is done.

        Left before its end, it keeps nothing and ``widths`` stays None.
        """
        equal: tuple[int, ...] = ()
        for share, left in probing(self._target, self._widest):
            equal = left
            yield share
        self.widths = equal
        keep(self._folder, KIND, self._identity, {"widths": equal})


def _parse(record: dict[str, Any]) -> tuple[int, ...]:
    return tuple(int(width) for width in record["widths"])


def exact_widths(target: Target, widest: int) -> tuple[int, ...]:
    """The widths of 2 to ``widest`` whose rows equal single steps in logits and caches, also after half of them is undone."""
    *_, (_share, widths) = probing(target, widest)
    return widths


def probing(target: Target, widest: int) -> Iterator[tuple[float, tuple[int, ...]]]:
    """The probe pass by pass: the share that is done, and the widths that have agreed so far; the last are those that do."""
    left = tuple(range(2, widest + 1))
    prompts = KEY_LENGTHS["cpu" if mx.default_device() == mx.cpu else "gpu"]
    places, done = sum(map(len, prompts)), 0
    for number, lengths in enumerate(prompts):
        ids = mx.random.randint(0, target.shape.vocab_size, (lengths[-1] + widest,), key=mx.random.key(number))
        cache, filled = target.make_cache(), 0
        for length in lengths:
            if not left or length + left[-1] > target.shape.context_length:
                break
            for start in range(filled, length, CHUNK):
                target.forward(ids[start : min(start + CHUNK, length)], cache)
                mx.eval(target.cache_arrays(cache))
                yield done / places, left
            filled = length
            equal: list[int] = []
            for share in _agreeing(target, cache, ids[length : length + left[-1]], left, equal):
                yield (done + share) / places, left
            left, done = tuple(equal), done + 1
    yield 1.0, left


def _agreeing(target: Target, cache: Cache, ids: mx.array, widths: Sequence[int], equal: list[int]) -> Iterator[float]:
    """Adds to ``equal`` those of ``widths`` that agree on ``ids`` after what ``cache`` holds, which is left as it was.

    Yields the share that is done after each pass.
    """
    stepped, rows, states = copy.deepcopy(cache), [], []
    passes = ids.shape[0] + len(widths)
    for row in range(ids.shape[0]):
        rows.append(target.forward(ids[row : row + 1], stepped).logits)
        states.append(_digest(target, stepped))
        mx.eval(rows[-1], states[-1])  # one at a time, so that no step's caches are kept
        yield (row + 1) / passes
    for number, width in enumerate(widths, 1):
        logits, half = target.forward(ids[:width], cache).logits, width // 2
        whole_state = _digest(target, cache)
        target.rollback(cache, width - half)
        half_state = _digest(target, cache)
        target.rollback(cache, half)
        pairs = ((logits, mx.concatenate(rows[:width])), (whole_state, states[width - 1]), (half_state, states[half - 1]))
        if all(mx.array_equal(ours, theirs).item() for ours, theirs in pairs):
            equal.append(width)
        yield (ids.shape[0] + number) / passes


def _digest(target: Target, cache: Cache) -> mx.array:
    """One number for each array that later tokens depend on: its bits, weighted by their places."""
    digests = []
    for array in target.visible(cache):
        bits = mx.view(array, mx.uint16 if array.itemsize == 2 else mx.uint32).astype(mx.uint32).flatten()
        digests.append((bits * (2 * mx.arange(bits.size, dtype=mx.uint32) + 1)).sum())
    return mx.stack(digests)
