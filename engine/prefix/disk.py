"""The prefix cache's second tier: segments as files in one folder, which survive a restart and may be shared by processes.

The files are the truth. The index in memory, and its copy on disk, only remember their headers; last use is a file's
modification time. Every fault is a miss with a log line.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from engine.models.staging import flush, write_problem
from engine.prefix.disk_files import make_private_folder, published, sweep
from engine.prefix.disk_format import Damaged, Prepared, Record, prepare, read_record, read_segment, write_all, write_prepared
from engine.prefix.disk_index import Entry, Index, Match, pack_records, unpack_records
from engine.prefix.disk_ledger import HOUR, WriteLedger
from engine.prefix.disk_writer import Abandoned, Writer
from engine.prefix.segment import Segment

log = logging.getLogger(__name__)

SUFFIX = ".segment"
_NAME = re.compile(r"[0-9a-f]{64}\.segment")
RESERVE = 2 * 2**30  # bytes of free disk space that the cache leaves to others
BACKLOG = 2**30
CLOSE_S = 5.0
CLEAR_S = 2.0  # for the chunk under way to notice that it is not wanted
RETRY_S = 60.0  # how long nothing is written after a failed write
SECOND = 10**9  # ns
SETTLED = SECOND // 10  # a folder changed within this time may change again under the same time stamp


class DiskTier:
    """Segments in ``folder``, at most ``budget_bytes`` of them, of which at most ``writes_per_hour`` bytes are written an hour.

    ``reserve_bytes`` of free disk space are never used; ``backlog_bytes`` may wait to be written; ``clock`` is in seconds since
    the epoch. ``store`` and ``load`` are for the thread that owns MLX. No fault of disk or file raises.
    """

    def __init__(
        self,
        folder: Path,
        budget_bytes: int,
        writes_per_hour: int,
        clock: Callable[[], float] = time.time,
        reserve_bytes: int = RESERVE,
        backlog_bytes: int = BACKLOG,
    ):
        self._folder, self._budget, self._clock, self._reserve = folder, budget_bytes, clock, reserve_bytes
        self._lock = threading.RLock()
        self._index = Index()
        self._seen: int | None = None  # the folder's modification time when it was listed
        self._stamp = 0
        self._generation = 0
        self._unsaved = 0
        self._said: dict[str, float] = {}
        self._resume_at = 0.0
        self._closed = False
        try:
            make_private_folder(folder)
            sweep(folder)
        except OSError as error:
            self._say("folder", write_problem(error, folder))
        self._ledger = WriteLedger(folder / "writes", writes_per_hour, clock)
        self._writer = Writer(self._write, backlog_bytes)
        self._scan(saved=self._read_index())
        atexit.register(self.close)

    @property
    def nbytes(self) -> int:
        """Bytes of the known segments on disk."""
        with self._lock:
            return self._index.total

    def match(self, parent: str, token_ids: Sequence[int], boundary: bool = False) -> list[Match]:
        """The stored chain that covers most of ``token_ids``, which follow ``parent``: the pair's content key or a segment's key.

        All matches but the last are whole; the last may cover only its first tokens. With ``boundary`` the chain ends with a
        whole segment that has state. Empty: nothing fits. Segments still waiting to be written are not found.
        """
        self._scan()
        with self._lock:
            return self._index.match(parent, token_ids, boundary)

    def load(self, key: str) -> Segment | None:
        """The segment, its arrays evaluated; None when it is not there or no longer whole."""
        with self._lock:
            if not self._index.usable(key):
                return None
        try:
            segment = read_segment(self._path(key))
        except Damaged as error:
            log.warning("the stored prefix %s is thrown away: %s", self._path(key), error)
            self._forget(key, remove=True)
            return None
        except OSError as error:
            log.warning("the stored prefix %s cannot be read: %s", self._path(key), error.strerror or error)
            self._forget(key, remove=False)
            return None
        self._touch(key)
        return segment

    def store(self, segment: Segment) -> None:
        """Has the segment written in the background; one that is there already counts as used now. Returns at once.

        Nothing is written without the segment before it (see ``Segment.start``), or beyond a budget.
        """
        key, size = segment.key, segment.nbytes
        with self._lock:
            known = self._index.usable(key)
            rooted = segment.start == 0 or self._index.usable(segment.parent)
        if known:
            self._touch(key)
        if known or self._closed or time.monotonic() < self._resume_at or self._writer.holds(key):
            return
        if not rooted and not self._writer.holds(segment.parent):
            log.debug("a prefix is not stored: the one before it is not there")
        elif size > self._budget:
            self._say("size", f"A prefix of {size:,} bytes is larger than the disk cache may be and is not stored.")
        elif not self._ledger.allows(size + self._writer.backlog):
            self._say("hour", "No more prefixes are stored for now: the disk cache has written all it may within an hour.")
        elif not self._writer.offer(prepare(segment)):
            self._say("backlog", "A prefix is not stored: too many are waiting to be written.")

    def flush(self, timeout: float) -> bool:
        """Waits until all is written; False when ``timeout`` seconds did not suffice."""
        return self._writer.flush(timeout)

    def clear(self) -> None:
        """Removes every segment and the index, for good: what waits or is being written is not kept either."""
        self._generation += 1
        self._writer.drop()
        self._writer.flush(CLEAR_S)
        with self._lock:
            self._scan()
            for key in list(self._index.entries):
                self._forget(key, remove=True)
            self._unsaved = 0
            with suppress(OSError):
                self._index_file.unlink()

    def close(self, timeout: float | None = None) -> None:
        """Writes what waits, for ``timeout`` (or ``CLOSE_S``) seconds at most, saves the index, ends the thread; works twice."""
        self._closed = True
        self._writer.close(CLOSE_S if timeout is None else timeout)
        self._save_index()
        atexit.unregister(self.close)

    def _path(self, key: str) -> Path:
        return self._folder / (key + SUFFIX)

    @property
    def _index_file(self) -> Path:
        return self._folder / "index"

    def _say(self, kind: str, text: str) -> None:
        """Logs, at most once an hour a kind."""
        now = time.monotonic()
        if kind not in self._said or now - self._said[kind] >= HOUR:
            self._said[kind] = now
            log.warning("%s", text)

    # The index

    def _scan(self, saved: dict[str, Record] | None = None, stat_all: bool = False) -> None:
        """Brings the index up to the folder's files. Cheap while none came or went; ``stat_all`` also asks when each was used."""
        with self._lock:
            try:
                changed = os.stat(self._folder).st_mtime_ns
                if changed == self._seen and not stat_all:
                    return
                with os.scandir(self._folder) as listing:
                    files = {e.name[:64]: e for e in listing if _NAME.fullmatch(e.name) and e.is_file(follow_symlinks=False)}
            except FileNotFoundError:
                self._index, self._seen = Index(), None
                return
            except OSError as error:
                self._say("folder", f"The folder of stored prefixes {self._folder} cannot be read: {error.strerror}.")
                return
            for key in self._index.entries.keys() - files.keys():
                self._index.remove(key)
            faults: list[str] = []
            for key in files if stat_all else files.keys() - self._index.entries.keys():
                with suppress(FileNotFoundError):
                    self._take_in(key, files[key].stat(follow_symlinks=False), saved or {}, faults)
            if faults:
                log.warning("%d stored prefixes cannot be used; %s", len(faults), faults[0])
            self._seen = changed if abs(time.time_ns() - changed) > SETTLED else None

    def _take_in(self, key: str, status: os.stat_result, saved: dict[str, Record], faults: list[str]) -> None:
        entry = self._index.entries.get(key)
        record = entry.record if entry else saved.get(key)
        if entry is None and record is None:
            try:
                record = read_record(self._path(key))
                self._unsaved += 1
            except FileNotFoundError:
                return
            except (Damaged, OSError) as error:
                faults.append(f"{self._path(key)}: {error}")
        self._index.add(key, Entry(record, _bytes_on_disk(status), status.st_mtime_ns))
        self._stamp = max(self._stamp, status.st_mtime_ns)

    def _touch(self, key: str) -> None:
        """Marks the segment as used now; those before it are safe for as long as it is there."""
        with self._lock:
            entry, stamp = self._index.entries.get(key), self._next_stamp()
            if entry is not None:
                entry.used = stamp
                with suppress(OSError):
                    os.utime(self._path(key), ns=(stamp, stamp))

    def _next_stamp(self) -> int:
        """Later than every use so far, even if the clock was set back."""
        self._stamp = max(int(self._clock() * SECOND), self._stamp + 1_000)
        return self._stamp

    def _forget(self, key: str, remove: bool) -> None:
        with self._lock:
            entry = self._index.entries.get(key)
            self._index.remove(key)
            if remove:
                try:
                    self._path(key).unlink(missing_ok=True)
                    return
                except OSError as error:
                    self._say("remove", f"{self._path(key)} cannot be removed: {error.strerror}.")
            if entry is not None:
                self._index.add(key, Entry(None, entry.nbytes, entry.used))  # known to be of no use: not read again

    def _read_index(self) -> dict[str, Record]:
        try:
            return unpack_records(self._index_file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            log.warning("the index of stored prefixes is made anew: %s", error)
            return {}

    def _save_index(self) -> None:
        with self._lock:
            if not self._unsaved or not self._folder.is_dir():
                return
            data = pack_records(self._index.records())
            self._unsaved = 0
        try:
            with published(self._index_file) as descriptor:
                write_all(descriptor, data)
        except OSError as error:
            self._say("index", write_problem(error, self._index_file))

    # On the writer's thread

    def _write(self, prepared: Prepared) -> None:
        try:
            self._write_file(prepared)
        except OSError as error:
            self._resume_at = time.monotonic() + RETRY_S
            self._say(f"write {error.errno}", write_problem(error, self._folder))
            return
        if self._unsaved >= max(32, len(self._index.entries) // 8):
            self._save_index()

    def _write_file(self, prepared: Prepared) -> None:
        record, generation = prepared.record, self._generation
        make_private_folder(self._folder)
        self._scan()
        with self._lock:
            if self._index.usable(record.key):
                self._touch(record.key)
                return
            if record.start and not self._index.usable(record.parent):
                log.debug("a prefix is not stored: the one before it was given up")
                return
        if not self._make_room(prepared):
            self._say("room", "A prefix is not stored: the disk cache is too small for it and those before it.")
            return
        if shutil.disk_usage(self._folder).free < self._reserve + prepared.nbytes:
            self._say("reserve", f"No prefixes are stored for now: the disk of {self._folder} is nearly full.")
            return
        self._ledger.add(prepared.nbytes)
        with published(self._path(record.key)) as descriptor:
            write_prepared(descriptor, prepared, lambda: self._pause(generation))
            os.fsync(descriptor)
            status = os.fstat(descriptor)
        with self._lock:
            self._index.add(record.key, Entry(record, _bytes_on_disk(status), status.st_mtime_ns))
            self._touch(record.key)
            self._unsaved += 1
            if generation != self._generation:  # cleared since the last chunk
                self._forget(record.key, remove=True)
        flush(self._folder)

    def _pause(self, generation: int) -> None:
        if generation != self._generation:
            raise Abandoned
        self._writer.pause()

    def _make_room(self, prepared: Prepared) -> bool:
        """Gives up the least recently used segments until ``prepared`` fits the budget; never those before it."""
        limit = self._budget - prepared.nbytes
        with self._lock:
            if self._index.total <= limit:
                return True
            self._scan(stat_all=True)  # another process may have used or removed some
            kept = set(self._index.path(prepared.record.parent))
            for key in list(self._index.victims()):
                if self._index.total <= limit:
                    break
                if key not in kept:
                    self._forget(key, remove=True)
            return self._index.total <= limit


def _bytes_on_disk(status: os.stat_result) -> int:
    return max(status.st_size, 512 * status.st_blocks)
