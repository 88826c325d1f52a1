"""Reads documents that are attached, one after the other, on a thread beside the window's."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import monotonic

from PySide6.QtCore import QObject, Signal

from app.core.attachments import AttachmentError
from app.core.chat import Attachment
from app.core.documents.kinds import read_document
from app.core.documents.watch import Watch
from app.services.background import Background
from engine import Cancelled

TELL_S = 0.1  # between two reports of how far it is
STOP_S = 1.0
# Python hands over from thread to thread so often while a document is read (in seconds; its usual 5 ms let the window stutter).
HAND_OVER_S = 0.000_5


@dataclass(eq=False, slots=True)
class Job:
    """One document. Of its ``of_pages`` ``pages`` are read; ``of_pages`` is 0 where that is not known.

    ``draft`` is where its text belongs once its message is no longer on show; "" while it is.
    """

    path: Path
    password: str = ""
    pages: int = 0
    of_pages: int = 0
    draft: str = ""
    watch: Watch = field(default_factory=Watch)


class Reading(QObject):
    """Signals: ``progressed(Job)``; ``read(Job, Attachment)``; ``failed(Job, AttachmentError)``. A cancelled job gives none."""

    progressed = Signal(object)
    read = Signal(object, object)
    failed = Signal(object, object)

    def __init__(self, parent: QObject | None = None):
        super().__init__(parent)
        self._background = Background(self)
        self._jobs: list[Job] = []  # the first is being read
        self._usual_s = sys.getswitchinterval()

    def start(self, path: Path, password: str = "") -> Job:
        """Reads a document when those before it are read."""
        job = Job(path, password)
        self._jobs.append(job)
        if len(self._jobs) == 1:
            self._next()
        return job

    def cancel(self, job: Job) -> None:
        """Nobody waits for a document any more."""
        job.watch.cancel()
        if job in self._jobs:
            self._leave(job)

    def waiting(self, draft: str) -> list[Job]:
        """What is being read for a draft that is not on show."""
        return [job for job in self._jobs if job.draft == draft]

    def stop(self) -> None:
        """Ends all reading."""
        for job in self._jobs:
            job.watch.cancel()
        self._jobs.clear()
        self._next()
        self._background.close(STOP_S)

    def _next(self) -> None:
        sys.setswitchinterval(HAND_OVER_S if self._jobs else self._usual_s)
        if self._jobs:
            job = self._jobs[0]
            job.watch = Watch(_Reports(self, job))  # its time begins now
            end = partial(self._on_end, job)
            self._background.run(partial(_outcome, job), end, end, "document")

    def _leave(self, job: Job) -> None:
        was_first = self._jobs[0] is job
        self._jobs.remove(job)
        if was_first:
            self._next()

    def _on_end(self, job: Job, end: Attachment | Exception) -> None:
        if job not in self._jobs:
            return  # cancelled
        self._leave(job)
        if isinstance(end, Attachment):
            self.read.emit(job, end)
        else:
            self.failed.emit(job, end if isinstance(end, AttachmentError) else AttachmentError(str(end)))


def _outcome(job: Job) -> Attachment | Exception:
    try:
        return read_document(job.path, job.watch, job.password)
    except (AttachmentError, Cancelled) as error:
        return error


class _Reports:
    """Called on the reading thread."""

    def __init__(self, reading: Reading, job: Job):
        self._reading, self._job, self._told = reading, job, 0.0

    def __call__(self, done: int, total: int) -> None:
        self._job.pages, self._job.of_pages = done, total
        if monotonic() - self._told > TELL_S:
            self._told = monotonic()
            self._reading.progressed.emit(self._job)
