"""How many bytes were written within the last hour, by all processes that share a folder: SSDs wear out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from engine.prefix.disk_files import published
from engine.prefix.disk_format import write_all

HOUR = 3600.0
TIDY_BYTES = 2**16  # a longer file is cut to its last hour at start


class WriteLedger:
    """Lines of time and bytes in ``file``, added to by every process. Without a writable file it counts this process alone."""

    def __init__(self, file: Path, limit: int, clock: Callable[[], float]):
        self._file, self._limit, self._clock = file, limit, clock
        self._writes: list[tuple[float, int]] = []
        self._read = 0
        self._unsaved: list[tuple[float, int]] = []
        self._tidy()

    def allows(self, nbytes: int) -> bool:
        """Whether so many bytes more stay within the hour's limit."""
        self._catch_up()
        self._writes, self._unsaved = self._recent(self._writes), self._recent(self._unsaved)
        return sum(size for _, size in self._writes + self._unsaved) + nbytes <= self._limit

    def add(self, nbytes: int) -> None:
        """Counts a write."""
        now = self._clock()
        try:
            descriptor = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                os.write(descriptor, f"{now:.0f} {nbytes}\n".encode())  # one short append: lines of two processes do not mix
            finally:
                os.close(descriptor)
        except OSError:
            self._unsaved.append((now, nbytes))

    def _catch_up(self) -> None:
        try:
            size = self._file.stat().st_size
            if size < self._read:  # begun anew by another process
                self._writes, self._read = [], 0
            if size == self._read:
                return
            with self._file.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except OSError:
            return
        whole = text[: text.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            try:
                at, count = line.split()
                self._writes.append((float(at), max(0, int(count))))
            except ValueError:  # a torn or foreign line counts for nothing
                continue

    def _recent(self, writes: list[tuple[float, int]]) -> list[tuple[float, int]]:
        """Those of the last hour; after a clock was set back also those up to an hour ahead."""
        now = self._clock()
        return [write for write in writes if abs(now - write[0]) < HOUR]

    def _tidy(self) -> None:
        try:
            if self._file.stat().st_size <= TIDY_BYTES:
                return
            self._catch_up()
            lines = "".join(f"{at:.0f} {count}\n" for at, count in self._recent(self._writes))
            with published(self._file) as descriptor:
                write_all(descriptor, lines.encode())
        except OSError:
            return
        self._writes, self._read = [], 0
