"""The prefix cache of one engine: finds what is kept of a prompt, fills fresh caches with it, and keeps what prefill adds.

Prefixes are kept in blocks of ``grid`` tokens, the chunks of prefill, and only such rows as a whole chunk's pass made. A prompt
that goes on after a kept prefix therefore runs exactly the passes that it would run from the start, and the outcome is the same
bit for bit. Where a target has recurrent layers, some blocks are followed by a segment without tokens that holds their state.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import mlx.core as mx

from engine.drafters.protocol import Drafter, DraftSession
from engine.prefix.disk import DiskTier
from engine.prefix.ram import SHORT_TOKENS, RamTier
from engine.prefix.recording import FEATURES, Recording
from engine.prefix.segment import Segment, segment_key
from engine.prefix.snapshot import foreign_kind, has_state, put
from engine.targets.protocol import Cache, Target

CLOSE_S = 2.0  # for what still waits to be written; the window must be able to quit
NOTHING = "nothing kept begins like this prompt"
NO_STATE = "no state was kept before the first difference"

Boundaries = Callable[[int], list[int]]


class PrefixCache:
    """``drafter`` is the pair's own draft, whose features are kept with every block so that a change of mode loses nothing.

    ``root`` is the content key of pair and settings, ``ram_bytes`` the budget in memory.
    """

    def __init__(self, target: Target, drafter: Drafter | None, grid: int, root: str, ram_bytes: int, disk: DiskTier | None = None):
        cache = target.make_cache()
        self._target, self._drafter, self._root, self._budget = target, drafter, root, ram_bytes
        self._ram, self._disk = RamTier(root, ram_bytes), disk
        self.grid = grid
        self._stateful = has_state(cache)
        foreign = foreign_kind(cache)
        self.off_reason = f"this model's cache cannot be kept ({foreign})" if foreign else None

    def covered(self, ids: Sequence[int]) -> int:
        """How many leading tokens of ``ids`` are in memory, in whole blocks and ready to begin after."""
        return _end(self._in_ram(ids))

    @contextmanager
    def recording(
        self, ids: Sequence[int], cache: Cache, session: DraftSession | None, boundaries: Boundaries, cancel: threading.Event
    ) -> Iterator[Recording]:
        """``begin``, and ``end`` once the block is over, also where its generator is closed early. After an error nothing is kept:
        what was recorded may never have been computed.
        """
        recording = self.begin(ids, cache, session, boundaries, cancel)
        failed = False
        try:
            yield recording
        except Exception:
            failed = True
            raise
        finally:
            if not failed:
                self.end(recording)

    def begin(
        self, ids: Sequence[int], cache: Cache, session: DraftSession | None, boundaries: Boundaries, cancel: threading.Event
    ) -> Recording:
        """Fills the empty ``cache`` and ``session`` with the longest kept prefix of prompt ``ids``, its last token left out.

        ``boundaries`` gives the places past a token where later prompts may part from this one; it is asked only for a target
        whose states are worth keeping there.
        """
        limit = (len(ids) - 1) // self.grid * self.grid
        chain, from_disk = self._find(ids[:limit], cancel)
        blocks = [segment for segment in chain if segment.token_ids]
        tokens = _end(chain)
        if chain:
            put(cache, [block.rows for block in blocks], chain[-1].state, tokens)
            mx.eval(self._target.cache_arrays(cache))
            self._restore_draft(session, blocks, len(ids))
        tip = blocks[-1].key if blocks else self._root
        source = _kinds(len(chain), from_disk) if chain else self._miss(ids[:limit])
        recording = Recording(ids, self.grid, tip, source, self._budget, self._drafter, chain, tokens=tokens)
        if self._stateful:
            recording.state_at = {limit, *(place // self.grid * self.grid for place in boundaries(tokens))}
        return recording

    def end(self, recording: Recording) -> None:
        """Keeps what was recorded, in memory and, unless it is soon made again, on disk; that is written in the background."""
        self._ram.add(recording.chain)
        if self._disk is not None and _end(recording.chain) >= SHORT_TOKENS:
            for segment in recording.chain:
                self._disk.store(segment)

    def shed(self) -> None:
        """Forgets what is kept in memory; what is on disk stays."""
        self._ram.clear()

    def forget(self) -> None:
        """Forgets what is kept in memory and on disk, for every pair, and what waits to be written."""
        self._ram.clear()
        if self._disk is not None:
            self._disk.clear()

    def close(self) -> None:
        """Lets the memory go and waits a moment for what is being written."""
        self._ram.clear()
        if self._disk is not None:
            self._disk.close(CLOSE_S)

    def _restore_draft(self, session: DraftSession | None, blocks: Sequence[Segment], length: int) -> None:
        """Block by block, because a product of other rows together could differ in its last bits.

        As in prefill, blocks that the draft no longer sees behind a prompt of ``length`` tokens are left out.
        """
        restored: list[mx.array] = []
        seen = 0 if session is None else session.first_seen(length)
        for block in blocks:
            if session is not None and block.end > seen and FEATURES in block.rows:
                restored = session.restore(block.rows[FEATURES], block.start)
        mx.eval(restored)

    def _find(self, ids: Sequence[int], cancel: threading.Event) -> tuple[list[Segment], int]:
        """The chain that covers most of ``ids``, and how many of its segments were loaded from disk."""
        kept = self._in_ram(ids)
        if self._disk is None:
            return kept, 0
        matches = [match for match in self._disk.match(self._root, ids, self._stateful) if match.whole]
        if sum(match.tokens for match in matches) <= _end(kept):
            return kept, 0
        chain: list[Segment] = []
        loaded = 0
        for match in matches:
            segment = self._ram.get(match.key)
            if segment is None and not cancel.is_set():
                segment = self._disk.load(match.key)
                loaded += segment is not None
            if segment is None:
                break
            chain.append(segment)
        usable = _end(chain) > _end(kept) and (bool(chain[-1].state) or not self._stateful)
        return (chain, loaded) if usable else (kept, 0)

    def _in_ram(self, ids: Sequence[int]) -> list[Segment]:
        """The chain in memory that covers most of ``ids``; for a target with states it ends with one."""
        chain: list[Segment] = []
        usable: list[Segment] = []
        key = self._root
        for start in range(0, len(ids) - self.grid + 1, self.grid):
            key = segment_key(key, ids[start : start + self.grid])
            block = self._ram.get(key)
            if block is None:
                break
            chain.append(block)
            state = self._ram.get(segment_key(key, ())) if self._stateful else None
            if state is not None:
                usable = [*chain, state]
        return usable if self._stateful else chain

    def _miss(self, ids: Sequence[int]) -> str:
        """Why nothing of ``ids``, cut to whole blocks, was found."""
        if not ids:
            return f"the prompt is shorter than a block of {self.grid} tokens"
        first = self._ram.get(segment_key(self._root, ids[: self.grid]))
        return NOTHING if first is None else NO_STATE


def _end(chain: Sequence[Segment]) -> int:
    return chain[-1].end if chain else 0


def _kinds(segments: int, from_disk: int) -> str:
    return "memory" if not from_disk else "disk" if from_disk == segments else "memory and disk"
