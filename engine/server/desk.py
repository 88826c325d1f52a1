"""The queue in front of the engine: jobs come from any thread and are answered on the engine's, one after the other, in order."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from engine import Event, Finished, GenerationRequest, SlipstreamError
from engine.engine import Engine
from engine.server.errors import STOPPING, ApiError, as_api_error

IDLE_S = 0.5  # how long an idle desk sleeps before it looks whether it should stop
LONGEST_WAIT_S = 120
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer, or no more of it."""

    error: ApiError


Item = Event | Failed


@dataclass(slots=True, eq=False)
class Job:
    """One answer. ``deliver`` gets its items on the engine's thread; ``cancel`` set gives it up, wherever it is."""

    request: GenerationRequest
    deliver: Callable[[Item], None]
    cancel: threading.Event = field(default_factory=threading.Event)
    checked: bool = False


class Desk:
    """Belongs to the engine's thread, which calls ``run``; ``submit`` and the counts are for all. ``max_waiting``: beside the one
    being answered. ``count`` is told of every answer's end."""

    def __init__(self, engine: Engine, max_waiting: int, count: Callable[[Finished], None]):
        self._engine, self._max_waiting, self._count = engine, max_waiting, count
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._closed = False
        self._usual_s = 1.0  # what an answer takes, a moving average
        self._changed = threading.Condition()

    def submit(self, job: Job) -> None:
        """Puts ``job`` at the end of the queue. Raises ``ApiError`` where that is full or the server is stopping."""
        with self._changed:
            if self._closed:
                raise ApiError(503, STOPPING, code="stopping", retry_after=5)
            self._forget_cancelled()
            taken = len(self._waiting) + (self._running is not None)
            if taken > self._max_waiting:
                wait = min(LONGEST_WAIT_S, max(1, math.ceil(self._usual_s)))
                message = f"{len(self._waiting)} requests are waiting already: try again in {wait} s, or raise --max-queue."
                raise ApiError(429, message, code="queue_full", retry_after=wait)
            self._waiting.append(job)
            self._changed.notify()

    def ahead(self, job: Job) -> int:
        """How many answers come before that of ``job``; 0 while it is being answered."""
        with self._changed:
            self._forget_cancelled()
            return 0 if job not in self._waiting else self._waiting.index(job) + (self._running is not None)

    @property
    def waiting(self) -> int:
        with self._changed:
            self._forget_cancelled()
            return len(self._waiting)

    @property
    def running(self) -> bool:
        return self._running is not None

    def run(self, stop: threading.Event) -> None:
        """Answers until ``stop`` is set: the open answer then ends where it is, and those that wait are refused."""
        while not stop.is_set():
            self._check_new()
            job = self._next()
            if job is not None:
                self._answer(job, stop)
            elif not self._settle():
                with self._changed:
                    if not self._waiting:
                        self._changed.wait(IDLE_S)
        with self._changed:
            self._closed = True
            left, self._waiting = self._waiting, deque()
        for job in left:
            job.deliver(Failed(ApiError(503, STOPPING, code="stopping", retry_after=5)))

    def _next(self) -> Job | None:
        with self._changed:
            self._forget_cancelled()
            ready = bool(self._waiting) and self._waiting[0].checked
            self._running = self._waiting.popleft() if ready else None
            return self._running

    def _answer(self, job: Job, stop: threading.Event) -> None:
        began = time.monotonic()
        try:
            for event in self._engine.generate(job.request, job.cancel):
                if isinstance(event, Finished):
                    self._count(event)
                job.deliver(event)
                self._check_new()
                if stop.is_set():
                    job.cancel.set()
        except Exception as error:  # one answer's trouble, whatever it is, must not end the others'
            self._fail(job, error, refused=False)
        finally:
            self._usual_s += 0.3 * (time.monotonic() - began - self._usual_s)
            self._running = None

    def _check_new(self) -> None:
        """Refuses what cannot be answered as soon as it came, not when it is its turn."""
        with self._changed:
            new = [job for job in self._waiting if not job.checked and not job.cancel.is_set()]
        for job in new:
            job.checked = True
            try:
                self._engine.check(job.request)
            except Exception as error:
                with self._changed:
                    if job in self._waiting:  # its client may have left in the meantime
                        self._waiting.remove(job)
                self._fail(job, error, refused=True)

    def _settle(self) -> bool:
        """A bit of work ahead for the next turn of the last chat; whether there is more."""
        try:
            return self._engine.settle()
        except Exception:
            log.exception("Preparing the next turn failed")
            return False

    def _forget_cancelled(self) -> None:
        self._waiting = deque(job for job in self._waiting if not job.cancel.is_set())

    def _fail(self, job: Job, error: Exception, refused: bool) -> None:
        if not isinstance(error, SlipstreamError):
            log.exception("An answer failed")
        job.deliver(Failed(as_api_error(error, refused, "prompt" if job.request.raw else "messages")))
