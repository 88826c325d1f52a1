"""The window's side of the engine: one thread, one request at a time, named states, and late results dropped by id."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from PySide6.QtCore import QObject, Qt, QThread, QTimer, Signal, Slot

from app.core.words import mark
from app.services.lending import Lending
from app.worker import (
    LENT,
    OPTIONS,
    Began,
    Counted,
    Delivery,
    DraftChoice,
    Ended,
    EngineWorker,
    Failure,
    Loaded,
    Loader,
    Payload,
    Timed,
    load_engine,
)
from engine import (
    Event,
    ExactnessProgress,
    Finished,
    GenerationRequest,
    LoadOptions,
    LoadProgress,
    Message,
    PairInfo,
    PrefillProgress,
    TrainingEvent,
)
from engine.server.errors import loading, no_model

DRAIN_MS = 33
STOP_PATIENCE_MS = 5_000
log = logging.getLogger(__name__)


class EngineState(Enum):
    """What the engine is doing, in the words that ``tr`` shows to the user."""

    NO_MODEL = mark("No model")
    LOADING = mark("Loading")
    READY = mark("Ready")
    WAITING = mark("Waiting")  # for an answer to another program
    PREFILL = mark("Reading the prompt")
    DECODING = mark("Answering")
    STOPPING = mark("Stopping")
    LOST = mark("Engine lost")


BUSY = frozenset(set(EngineState) - {EngineState.NO_MODEL, EngineState.READY, EngineState.LOST})


@dataclass(slots=True)
class _Job:
    id: int
    kind: str
    cancel: threading.Event
    failure: Failure | None = None
    begun: bool = False


class EngineClient(QObject):
    """Lives on the UI thread and owns the worker's thread.

    Signals: ``state_changed(EngineState)``; ``loading(LoadProgress)``; ``loaded(PairInfo)``;
    ``requested(GenerationRequest)``; ``events(id, list[Timed])``, at most one batch every 33 ms;
    ``ended(id, Failure | None)`` once per request; ``load_failed(Failure)``; ``counted(tokens)``;
    ``parts_counted(tokens, list[int])`` with it;
    ``learning(TrainingEvent)``; ``learning_ended(Failure | None)`` once per run or pause; ``draft_changed(PairInfo)``.
    ``lending`` tells of answers for other programs.

    ``options_of(pair)`` says how to load a pair; ``asked_pair`` is the last that was to be loaded, ``asked`` how.
    """

    state_changed = Signal(EngineState)
    loading = Signal(object)
    loaded = Signal(object)
    requested = Signal(object)
    load_failed = Signal(object)
    events = Signal(int, list)
    ended = Signal(int, object)
    counted = Signal(int)
    parts_counted = Signal(int, list)
    learning = Signal(object)
    learning_ended = Signal(object)
    draft_changed = Signal(object)

    _load = Signal(int, str, object, object)
    _unload = Signal(int, object)
    _generate = Signal(int, object, object)
    _count = Signal(int, object, object)
    _learn = Signal(int, object, object)
    _choose = Signal(int, str, object)
    _forget = Signal(int, object)
    _finish = Signal()

    def __init__(self, loader: Loader = load_engine, parent: QObject | None = None):
        super().__init__(parent)
        self.state = EngineState.NO_MODEL
        self.info: PairInfo | None = None
        self.pair = ""
        self.last_pair = ""  # the last one that could be loaded
        self.options_of: Callable[[str], LoadOptions] = lambda _pair: OPTIONS
        self.asked_pair, self.asked = "", OPTIONS
        self._last_id = 0
        self._job: _Job | None = None
        self._count_job: _Job | None = None
        self._to_count: tuple[tuple[Message, ...], ...] | None = None
        self._asides: dict[int, _Job] = {}  # what nobody waits for: learning, choosing a draft, forgetting prefixes
        self._thread = QThread(self)
        self._thread.setObjectName("engine")
        self._worker = EngineWorker(loader)
        self._worker.moveToThread(self._thread)
        self.lending = Lending(self._worker, self)
        self.lending.began.connect(self._on_lent)
        for signal, slot in ((self._load, self._worker.load), (self._unload, self._worker.unload),
                             (self._generate, self._worker.generate),
                             (self._count, self._worker.count), (self._learn, self._worker.learn),
                             (self._choose, self._worker.choose_draft), (self._forget, self._worker.forget_prefixes),
                             (self._worker.called, self._worker.answer_next), (self._worker.called, self.pause_learning),
                             (self._finish, self._worker.finish)):  # fmt: skip
            signal.connect(slot, Qt.ConnectionType.QueuedConnection)
        self._worker.woke.connect(self._on_woke, Qt.ConnectionType.QueuedConnection)
        self._timer = QTimer(self, interval=DRAIN_MS)
        self._timer.timeout.connect(self._drain)
        self._patience = QTimer(self, interval=STOP_PATIENCE_MS, singleShot=True)
        self._patience.timeout.connect(self._on_patience_over)
        self._thread.start()

    # What the window asks for

    def load(self, pair: str, check_memory: bool = True) -> None:
        """Loads ``pair``; whatever runs now is cancelled and its late results are dropped.

        Without ``check_memory`` also one that does not seem to fit this machine is loaded.
        """
        self._job = self._leave_pair("load")
        self.pair, self.asked_pair, options = pair, pair, self.options_of(pair)
        self.asked = options if check_memory else replace(options, memory_bytes=0)
        self._set_state(EngineState.LOADING)
        self._load.emit(self._job.id, pair, self._job.cancel, self.asked)

    def unload(self) -> None:
        """Gives the pair's memory back; an answer in progress is stopped first. ``NO_MODEL`` follows once it is done."""
        self._job = self._leave_pair("unload")
        self._set_state(EngineState.STOPPING)
        self._patience.start()
        self._unload.emit(self._job.id, self._job.cancel)

    def generate(self, request: GenerationRequest) -> int:
        """Starts an answer and returns its id. A request that still runs is cancelled and superseded."""
        self._supersede()
        self.pause_learning()
        self._job = self._new_job("generate")
        self.requested.emit(request)
        self._set_state(EngineState.WAITING if self.lending.active else EngineState.PREFILL)
        self._generate.emit(self._job.id, request, self._job.cancel)
        return self._job.id

    def count(self, messages: Sequence[Message], parts: Sequence[Sequence[Message]] = ()) -> None:
        """Counts the tokens of ``messages``, and of other chats, when the worker is next free; only the latest call is answered."""
        self.pause_learning()  # somebody is writing
        self._to_count = (tuple(messages), *map(tuple, parts))
        self._send_count()

    def learn(self, chats: Sequence[Sequence[Message]]) -> bool:
        """Trains the draft on ``chats`` until it is done or anything else is asked for. False: the engine is not free for it."""
        if self.state is not EngineState.READY or self.lending.active or self._asides:
            return False
        job = self._new_job("learn")
        self._asides[job.id] = job
        self._learn.emit(job.id, tuple(chats), job.cancel)
        return True

    @Slot()
    def pause_learning(self) -> None:
        """Ends the learning in progress between two passes; it goes on when ``learn`` is called with the same chats."""
        for job in self._asides.values():
            if job.kind == "learn":
                job.cancel.set()

    def choose_draft(self, choice: DraftChoice) -> None:
        """Takes the learned or the original draft into use, or deletes what was learned, as soon as the worker is free."""
        self.pause_learning()
        job = self._new_job("choose")
        self._asides[job.id] = job
        self._choose.emit(job.id, choice, job.cancel)

    def forget_prefixes(self) -> None:
        """Deletes what is kept of prompts, in memory and on disk, as soon as the worker is free; also where no model is loaded."""
        self.pause_learning()
        job = self._new_job("forget prefixes")
        self._asides[job.id] = job
        self._forget.emit(job.id, job.cancel)

    @property
    def is_learning(self) -> bool:
        """Whether a run is in progress and was not asked to pause."""
        return any(job.kind == "learn" and not job.cancel.is_set() for job in self._asides.values())

    def stop(self) -> None:
        """Stops the load or answer in progress; partial text is kept. Works while the worker is inside a slot."""
        if self._job is not None and not self._job.begun:
            self._drain()  # it may have begun a moment ago
        if self._job is None or self.state not in BUSY or self.state is EngineState.STOPPING:
            return
        self._job.cancel.set()
        if self.state is EngineState.WAITING:
            self._on_ended(self._job)  # what is before it goes on: there is nothing to wait for
            return
        self._set_state(EngineState.STOPPING)
        self._patience.start()

    def shutdown(self, limit_s: float) -> bool:
        """Cancels, closes the engine on its thread, waits up to ``limit_s`` seconds. False: the thread still runs."""
        self._supersede()
        self.pause_learning()
        self._timer.stop()
        self._to_count = None
        if self._count_job is not None:
            self._count_job.cancel.set()
        if self._thread.isRunning():
            self._finish.emit()
        return self._thread.wait(int(limit_s * 1000))

    @property
    def busy(self) -> bool:
        return self.state in BUSY

    # How results come back

    @Slot()
    def _on_woke(self) -> None:
        self._timer.start()
        self._drain()

    def _drain(self) -> None:
        deliveries = self._worker.mailbox.take()
        if not deliveries:
            self._timer.stop()
            return
        batch: list[Timed] = []
        for delivery in deliveries:
            if delivery.job_id == LENT:
                self.lending.take(delivery)
            elif self._job is not None and delivery.job_id == self._job.id:
                self._handle(self._job, delivery, batch)
            elif self._count_job is not None and delivery.job_id == self._count_job.id:
                self._handle_count(delivery.payload)
            elif delivery.job_id in self._asides:
                self._handle_aside(self._asides[delivery.job_id], delivery.payload)
        self._flush(batch)
        self.lending.flush()

    def _on_lent(self) -> None:
        if self._job is None or self._job.kind != "generate" or self._job.begun:
            return
        if self.state is EngineState.STOPPING:
            self._on_ended(self._job)
        else:
            self._set_state(EngineState.WAITING)

    def _handle(self, job: _Job, delivery: Delivery, batch: list[Timed]) -> None:
        payload = delivery.payload
        if isinstance(payload, Failure):
            job.failure = payload
        elif isinstance(payload, Loaded):
            self.info = payload.info
        elif isinstance(payload, LoadProgress):
            self.loading.emit(payload)
        elif isinstance(payload, Began):
            job.begun = True
            if self.state is EngineState.WAITING:
                self._set_state(EngineState.PREFILL)
        elif isinstance(payload, Ended):
            self._flush(batch)
            self._on_ended(job)
        elif isinstance(payload, Event):
            batch.append(Timed(payload, delivery.at))
            if self.state is EngineState.PREFILL and not isinstance(payload, ExactnessProgress | PrefillProgress | Finished):
                self._set_state(EngineState.DECODING)

    def _flush(self, batch: list[Timed]) -> None:
        if batch and self._job is not None:
            self.events.emit(self._job.id, list(batch))
        batch.clear()

    def _on_ended(self, job: _Job) -> None:
        self._job = None
        self._patience.stop()
        if job.failure is not None and job.failure.is_bug:
            log.error("%s\n%s", job.failure.message, job.failure.details)
        if job.kind == "load":
            self._on_load_ended(job)
        elif job.kind == "unload":
            self._set_state(EngineState.LOST if job.failure is not None else EngineState.NO_MODEL)
        else:
            # After a bug nobody knows what state the engine is in: it has to be loaded again.
            lost = job.failure is not None and job.failure.is_bug
            idle = EngineState.READY if self.info is not None else EngineState.NO_MODEL
            if lost:
                self.lending.leave(no_model)
            self._set_state(EngineState.LOST if lost else idle)
            self.ended.emit(job.id, job.failure)
        self._send_count()

    def _on_load_ended(self, job: _Job) -> None:
        if self.info is not None:
            # With a failure it is the pair before: the other was refused before this one was given up.
            self.pair = self.last_pair = self.last_pair if job.failure is not None else self.pair
            self._set_state(EngineState.READY)
            self.loaded.emit(self.info)
            if job.failure is not None:
                self.load_failed.emit(job.failure)
        elif job.failure is not None:
            self._set_state(EngineState.NO_MODEL)
            self.load_failed.emit(job.failure)
        else:
            self._set_state(EngineState.NO_MODEL)

    def _handle_count(self, payload: Payload) -> None:
        if isinstance(payload, Counted) and self._to_count is None:
            self.counted.emit(payload.tokens)
            self.parts_counted.emit(payload.tokens, list(payload.parts))
        elif isinstance(payload, Failure):
            log.warning("counting tokens failed: %s\n%s", payload.message, payload.details)
        elif isinstance(payload, Ended):
            self._count_job = None
            self._send_count()

    def _handle_aside(self, job: _Job, payload: Payload) -> None:
        if isinstance(payload, Loaded):
            self.info = payload.info
            self.draft_changed.emit(payload.info)
        elif isinstance(payload, Failure):
            job.failure = payload
            log.warning("%s failed: %s\n%s", job.kind, payload.message, payload.details)
        elif isinstance(payload, Ended):
            del self._asides[job.id]
            if job.kind == "learn" or (job.kind == "choose" and job.failure is not None):
                self.learning_ended.emit(job.failure)
        elif isinstance(payload, TrainingEvent):
            self.learning.emit(payload)

    def _on_patience_over(self) -> None:
        if self._job is not None:
            self._set_state(EngineState.LOST)

    # Small parts

    def _leave_pair(self, kind: str) -> _Job:
        """Cancels what runs with the loaded pair, whose late results are dropped, and begins a job that replaces or unloads it."""
        self._supersede()
        self.pause_learning()
        self._drain()  # a draft that was taken until now belongs to the old pair
        self._asides.clear()
        self.info = None
        self.lending.leave(loading if kind == "load" else no_model)
        return self._new_job(kind)

    def _new_job(self, kind: str) -> _Job:
        self._last_id += 1
        return _Job(self._last_id, kind, threading.Event())

    def _supersede(self) -> None:
        if self._job is not None:
            self._drain()  # what has already arrived belongs to the answer that ends here
        job, self._job = self._job, None
        self._patience.stop()
        if job is not None:
            job.cancel.set()
            if job.kind == "generate":
                self.ended.emit(job.id, None)

    def _send_count(self) -> None:
        if self._to_count is None or self._job is not None or self._count_job is not None or self.info is None:
            return
        self._count_job, chats, self._to_count = self._new_job("count"), self._to_count, None
        self._count.emit(self._count_job.id, chats, self._count_job.cancel)

    def _set_state(self, state: EngineState) -> None:
        if state is not self.state:
            self.state = state
            self.state_changed.emit(state)
