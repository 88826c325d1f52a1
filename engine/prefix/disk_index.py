"""Which segments lie on disk, as a tree: what of a prompt is there, what was used when, and what to give up first."""

from __future__ import annotations

import heapq
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.prefix.disk_format import Record

SAVED_MAGIC = b"SLIPIDX\n"
SAVED_VERSION = 1
_HEAD = struct.Struct("<8sIII")  # magic, version, records, CRC of all but itself
_ROW = struct.Struct("<32s32sqI?")  # key, parent, start, token count, boundary


class Match(NamedTuple):
    """A stored segment whose first ``tokens`` tokens are the prompt's. ``whole``: all of them are, so its state may be used."""

    key: str
    tokens: int
    whole: bool


@dataclass(slots=True)
class Entry:
    """A file: its bytes on disk and when it was last used, in ns. ``record`` is None where the file cannot be used."""

    record: Record | None
    nbytes: int
    used: int


class Index:
    """Entries by key. Not thread-safe."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self._children: dict[str, set[str]] = {}
        self.total = 0

    def add(self, key: str, entry: Entry) -> None:
        """Adds or replaces an entry."""
        self.remove(key)
        self.entries[key] = entry
        self.total += entry.nbytes
        if entry.record is not None:
            self._children.setdefault(entry.record.parent, set()).add(key)

    def remove(self, key: str) -> None:
        """Forgets an entry; unknown keys are fine."""
        entry = self.entries.pop(key, None)
        if entry is None:
            return
        self.total -= entry.nbytes
        if entry.record is not None:
            siblings = self._children[entry.record.parent]
            siblings.discard(key)
            if not siblings:
                del self._children[entry.record.parent]

    def usable(self, key: str) -> bool:
        """A file with a valid header is there."""
        entry = self.entries.get(key)
        return entry is not None and entry.record is not None

    def path(self, key: str) -> list[str]:
        """``key`` and the keys of the segments before it, as far as they are known."""
        found: list[str] = []
        while (entry := self.entries.get(key)) is not None and entry.record is not None:
            found.append(key)
            key = entry.record.parent
        return found

    def records(self) -> Iterator[Record]:
        """All usable records."""
        return (entry.record for entry in self.entries.values() if entry.record is not None)

    def match(self, parent: str, token_ids: Sequence[int], boundary: bool) -> list[Match]:
        """The chain below ``parent`` that covers most of ``token_ids``; see ``DiskTier.match``."""
        ids = np.asarray(token_ids, dtype="<i4")
        best: tuple[int, bool] = (0, False)
        best_chain: tuple = ()
        open_ends: list[tuple[str, int, tuple]] = [(parent, 0, ())]  # key, tokens so far, chain as nested pairs
        while open_ends:
            above, start, chain = open_ends.pop()
            for key in self._children.get(above, ()):
                record = self.entries[key].record
                assert record is not None
                common = _common(record.tokens, ids[start:])
                whole = common == record.count
                longer = (chain, Match(key, common, whole))
                if whole:
                    open_ends.append((key, start + common, longer))
                counts = whole and record.boundary if boundary else common > 0
                if counts and (start + common, whole) > best:
                    best, best_chain = (start + common, whole), longer
        matches = []
        while best_chain:
            best_chain, match = best_chain
            matches.append(match)
        return matches[::-1]

    def victims(self) -> Iterator[str]:
        """Keys in the order to give up: files of no use, then leaves by last use; a parent outlives its children."""
        waiting = {parent: len(children) for parent, children in self._children.items()}
        heap = [(self._worth(key), key) for key in self.entries if not waiting.get(key)]
        heapq.heapify(heap)
        while heap:
            _, key = heapq.heappop(heap)
            entry = self.entries[key]
            yield key
            if entry.record is not None and entry.record.parent in self.entries:
                parent = entry.record.parent
                waiting[parent] -= 1
                if not waiting[parent]:
                    heapq.heappush(heap, (self._worth(parent), parent))

    def _worth(self, key: str) -> tuple[bool, int]:
        entry = self.entries[key]
        path = self.path(key)
        first = self.entries[path[-1]].record if path else None
        return first is not None and first.start == 0, entry.used


def _common(tokens: bytes, ids: np.ndarray) -> int:
    """How many leading tokens agree."""
    stored = np.frombuffer(tokens, dtype="<i4")[: len(ids)]
    if not len(stored) or stored[0] != ids[0]:
        return 0
    differing = stored != ids[: len(stored)]
    first = int(differing.argmax())
    return first if differing[first] else len(stored)


def pack_records(records: Iterable[Record]) -> bytes:
    """Records as bytes, to be read again by ``unpack_records``."""
    kept = list(records)
    rows = (_ROW.pack(bytes.fromhex(r.key), bytes.fromhex(r.parent), r.start, r.count, r.boundary) for r in kept)
    body = b"".join(rows) + b"".join(r.tokens for r in kept)
    fields = (SAVED_MAGIC, SAVED_VERSION, len(kept))
    return _HEAD.pack(*fields, zlib.crc32(body, zlib.crc32(_HEAD.pack(*fields, 0)[:-4]))) + body


def unpack_records(data: bytes) -> dict[str, Record]:
    """What ``pack_records`` packed, by key. Raises ``ValueError`` for anything else."""
    if len(data) < _HEAD.size:
        raise ValueError("too short")
    magic, version, count, checksum = _HEAD.unpack_from(data)
    body = memoryview(data)[_HEAD.size :]
    if magic != SAVED_MAGIC or version != SAVED_VERSION or zlib.crc32(body, zlib.crc32(data[: _HEAD.size - 4])) != checksum:
        raise ValueError("damaged, or of another version")
    found: dict[str, Record] = {}
    offset = count * _ROW.size
    for key, parent, start, tokens, boundary in _ROW.iter_unpack(body[:offset]):
        found[key.hex()] = Record(key.hex(), parent.hex(), start, bytes(body[offset : offset + 4 * tokens]), boundary)
        offset += 4 * tokens
    return found
