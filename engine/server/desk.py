"""The queue in front of the engine: jobs come from any thread and are answered on the engine's, one after the other, in order."""

from __future__ import annotations

import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from engine import Event, GenerationRequest, SlipstreamError
from engine.server.errors import ApiError, as_api_error, loading, no_model, stopping
from engine.server.loaded import Loaded, Servable

IDLE_S = 0.5  # how long an idle desk sleeps before it looks whether it should stop
LONGEST_WAIT_S = 120
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Failed:
    """There is no answer, or no more of it."""

    error: ApiError


Why = Callable[[], ApiError]
Item = Event | Failed
Seen = GenerationRequest | Item  # an answer's request when it begins, then its items: ``Finished`` or ``Failed`` is the last


@dataclass(slots=True, eq=False)
class Job:
    """One answer. ``deliver`` gets its items, on any thread; ``cancel`` set gives it up, wherever it is."""

    request: GenerationRequest
    deliver: Callable[[Item], None]
    cancel: threading.Event = field(default_factory=threading.Event)
    checked: bool = False


class Desk:
    """``run`` or ``step`` and ``use`` are for the engine's thread, everything else for all.

    ``max_waiting``: beside the one being answered. ``watch`` sees every answer on the engine's thread. ``on_work`` is called, on
    any thread, when something waits that no call before was for: one ``step`` a call is enough, and lets others in between.
    """

    def __init__(self, max_waiting: int, watch: Callable[[Seen], None], on_work: Callable[[], None] = lambda: None):
        self._max_waiting, self._watch, self._on_work = max_waiting, watch, on_work
        self._engine: Servable | None = None
        self._loaded: Loaded | None = None
        self._away: Why | None = loading
        self._waiting: deque[Job] = deque()
        self._running: Job | None = None
        self._called = False
        self._usual_s = 1.0  # what an answer takes, a moving average
        self._changed = threading.Condition()
        self._counting = ThreadPoolExecutor(1, "counting")  # a huge prompt takes a second, for which no open answer should wait

    # For all

    def submit(self, job: Job) -> None:
        """Puts ``job`` at the end of the queue. Raises ``ApiError`` where that is full or nothing can be answered now."""
        with self._changed:
            if self._away is not None:
                raise self._away()
            self._forget_cancelled()
            taken = len(self._waiting) + (self._running is not None)
            if taken > self._max_waiting:
                wait = min(LONGEST_WAIT_S, max(1, math.ceil(self._usual_s)))
                message = f"{len(self._waiting)} requests are waiting already: try again in {wait} s."
                raise ApiError(429, message, code="queue_full", retry_after=wait)
            self._waiting.append(job)
            self._counting.submit(self._check, job)

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

    @property
    def loaded(self) -> Loaded:
        """Raises ``ApiError`` where nothing can be answered now."""
        with self._changed:
            if self._away is not None or self._loaded is None:
                raise (self._away or no_model)()
            return self._loaded

    def leave(self, why: Why) -> None:
        """Refuses the open answer, those that wait and all that come, until ``use``."""
        with self._changed:
            if self._away is stopping:
                return
            self._away = why
            left = [*([self._running] if self._running else ()), *self._waiting]
            self._waiting.clear()
        for job in left:
            job.cancel.set()
            job.deliver(Failed(why()))

    def close(self) -> None:
        """Ends the open answer where it is, refuses those that wait and takes no more, for good."""
        with self._changed:
            self._away = stopping
            left, self._waiting = self._waiting, deque()
            if self._running is not None:
                self._running.cancel.set()
            self._counting.shutdown(wait=False, cancel_futures=True)
        for job in left:
            job.deliver(Failed(stopping()))

    # For the engine's thread

    def use(self, engine: Servable | None) -> None:
        """Answers with ``engine`` from now on; None: there is none."""
        loaded = Loaded.of(engine) if engine is not None else None
        if engine is None:
            self.leave(no_model)
        with self._changed:
            self._engine, self._loaded = engine, loaded
            if self._away is not stopping:
                self._away = no_model if engine is None else None

    def run(self, stop: threading.Event) -> None:
        """Answers until ``stop`` is set: the open answer then ends where it is, and those that wait are refused."""
        while not stop.is_set():
            if not self.step(stop) and not self._settle():
                with self._changed:
                    if not self._ready():
                        self._changed.wait(IDLE_S)
        self.close()
        self._counting.shutdown()  # it uses the engine, which the caller may close now

    def step(self, stop: threading.Event | None = None) -> bool:
        """Answers the job whose turn it is; False: there was none. ``stop`` set ends it where it is."""
        try:
            job = self._next()
            if job is not None:
                self._answer(job, stop)
        finally:
            with self._changed:
                call = self._called = self._ready()
        if call:
            self._on_work()
        return job is not None

    def _next(self) -> Job | None:
        with self._changed:
            self._running = self._waiting.popleft() if self._ready() else None
            return self._running

    def _ready(self) -> bool:
        self._forget_cancelled()
        return bool(self._waiting) and self._waiting[0].checked

    def _answer(self, job: Job, stop: threading.Event | None) -> None:
        began = time.monotonic()
        self._watch(job.request)
        try:
            assert self._engine is not None  # without one nothing waits
            for event in self._engine.generate(job.request, job.cancel):
                self._watch(event)
                job.deliver(event)
                if stop is not None and stop.is_set():
                    job.cancel.set()
        except Exception as error:  # one answer's trouble, whatever it is, must not end the others'
            self._watch(self._fail(job, error, refused=False))
        finally:
            self._usual_s += 0.3 * (time.monotonic() - began - self._usual_s)
            self._running = None

    def _check(self, job: Job) -> None:
        """Refuses what cannot be answered as soon as it came, not when it is its turn."""
        with self._changed:
            self._forget_cancelled()
            engine = self._engine if job in self._waiting else None
        try:
            if engine is not None:
                engine.check(job.request)
        except Exception as error:
            with self._changed:
                refused = job in self._waiting  # its client may have left in the meantime, or the engine
                if refused:
                    self._waiting.remove(job)
            if refused:
                self._fail(job, error, refused=True)
        with self._changed:
            job.checked = True
            call = self._ready() and not self._called
            self._called = self._called or call
            self._changed.notify_all()
        if call:
            self._on_work()

    def _settle(self) -> bool:
        """A bit of work ahead for the next turn of the last chat; whether there is more."""
        try:
            return self._engine is not None and self._engine.settle()
        except Exception:
            log.exception("Preparing the next turn failed")
            return False

    def _forget_cancelled(self) -> None:
        self._waiting = deque(job for job in self._waiting if not job.cancel.is_set())

    def _fail(self, job: Job, error: Exception, refused: bool) -> Failed:
        if not isinstance(error, SlipstreamError):
            log.exception("An answer failed")
        failed = Failed(as_api_error(error, refused, "prompt" if job.request.raw else "messages"))
        job.deliver(failed)
        return failed
