"""The one thread that owns MLX: loads a pair, answers requests and counts tokens, and posts what happens to a mailbox.

``EngineWorker`` lives on a QThread; its slots are reached by queued signals only. Every job carries an id and a
``threading.Event`` that the caller sets directly to cancel it, so cancelling works while a slot is running. Whatever
happens is posted to the ``Mailbox`` with that id; the receiver drops what it no longer waits for.
"""

from __future__ import annotations

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from PySide6.QtCore import QObject, QTimer, Signal, Slot

import engine
from app import launch
from engine import (
    Event,
    Finished,
    GenerationRequest,
    LoadOptions,
    LoadProgress,
    Message,
    PairInfo,
    SlipstreamError,
    TrainingEvent,
    TrainingFinished,
)
from engine.server.errors import loading
from engine.server.loaded import Servable

if TYPE_CHECKING:
    from engine.server.desk import Desk, Seen


class EngineLike(Servable, Protocol):
    """What the worker needs from an engine; ``engine.load`` returns one."""

    def count_tokens(self, messages: Sequence[Message]) -> int: ...

    def learn(self, chats: Sequence[Sequence[Message]], cancel: threading.Event) -> Iterator[TrainingEvent]: ...

    def use_learned(self, on: bool) -> EngineLike: ...

    def forget_prefixes(self) -> None: ...

    def close(self) -> None: ...


log = logging.getLogger(__name__)
OPTIONS = LoadOptions(learned=True)

DraftChoice = Literal["learned", "original", "forget", "forget run"]


class Loader(Protocol):
    """Loads pairs. ``check`` raises ``ModelError`` for one that is not here or cannot fit, before another is given up for it."""

    def check(self, pair: str, options: LoadOptions) -> None: ...

    def __call__(
        self, pair: str, progress: Callable[[LoadProgress], None], cancel: threading.Event, options: LoadOptions
    ) -> EngineLike: ...


class EngineLoader:
    """The loader the app uses."""

    def check(self, pair: str, options: LoadOptions = OPTIONS) -> None:
        launch.prepare()  # here and not at the start of the program, which would wait for the import
        engine.check(pair, options)

    def __call__(
        self, pair: str, progress: Callable[[LoadProgress], None], cancel: threading.Event, options: LoadOptions = OPTIONS
    ) -> EngineLike:
        launch.prepare()
        return engine.load(pair, progress, cancel, options)


load_engine = EngineLoader()


@dataclass(frozen=True, slots=True)
class Loaded:
    """A pair is in memory."""

    info: PairInfo


@dataclass(frozen=True, slots=True)
class Counted:
    """``tokens`` the counted messages take, chat template included, and ``parts`` those of the other chats
    asked for: -1 for one that the model's template refuses.
    """

    tokens: int
    parts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Began:
    """The job's turn has come: what came before it is over."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The job is over and the worker is free. ``cancelled``: it ended because its cancel event was set."""

    cancelled: bool


@dataclass(frozen=True, slots=True)
class Failure:
    """The job failed. ``message`` is one line for the user; ``is_bug``: our doing, ``details`` has the traceback.

    ``is_overflow``: the prompt does not fit the context, so asking the same again cannot help. ``retry`` False: the chats cannot
    be read or written, or there is nothing to answer, and neither asking again nor another model helps. ``too_large``: the model
    was refused because it does not seem to fit the memory.
    """

    message: str
    is_bug: bool = False
    details: str = ""
    is_overflow: bool = False
    retry: bool = True
    too_large: bool = False


Payload = Event | TrainingEvent | LoadProgress | Loaded | Counted | Failure | Began | Ended | GenerationRequest
LENT = 0  # no job's id: answers for other programs, each a request, its events and ``Ended``


@dataclass(frozen=True, slots=True)
class Delivery:
    """One thing that happened to job ``job_id``; ``at`` is ``time.monotonic()`` when it did."""

    job_id: int
    payload: Payload
    at: float


@dataclass(frozen=True, slots=True)
class Timed:
    """An engine event with the ``time.monotonic()`` at which the worker saw it, in seconds."""

    event: Event
    at: float


class Mailbox:
    """A thread-safe queue that calls ``wake`` only when its reader sleeps, so 400 tokens/s cost no signal each."""

    def __init__(self, wake: Callable[[], None]):
        self._wake = wake
        self._items: deque[Delivery] = deque()
        self._lock = threading.Lock()
        self._reader_awake = False

    def post(self, job_id: int, payload: Payload) -> None:
        """Called on the worker's thread."""
        with self._lock:
            self._items.append(Delivery(job_id, payload, time.monotonic()))
            must_wake, self._reader_awake = not self._reader_awake, True
        if must_wake:
            self._wake()

    def take(self) -> list[Delivery]:
        """Called on the reader's thread: everything so far. After an empty list the next post wakes the reader."""
        with self._lock:
            taken = list(self._items)
            self._items.clear()
            if not taken:
                self._reader_awake = False
        return taken


class EngineWorker(QObject):
    """Owns at most one engine. A job's slot posts ``Began`` first and exactly one ``Ended`` last, whatever happened inside.

    ``called()``: another program's request waits for ``answer_next``.
    """

    woke = Signal()
    called = Signal()

    def __init__(self, loader: Loader = load_engine):
        super().__init__()
        self.mailbox = Mailbox(self.woke.emit)
        self._loader = loader
        self._engine: EngineLike | None = None
        self._desk: Desk | None = None
        self._given: Desk | None = None  # the desk that ``serve`` brought last

    def serve(self, desk: Desk | None) -> None:
        """Answers also what comes to ``desk`` from now on, or no more. Called on any thread; ``tend`` follows it."""
        self._given = desk

    def see(self, seen: Seen) -> None:
        """Posts what a desk's answers are made of. Called on the worker's thread."""
        failed = not isinstance(seen, GenerationRequest | Event)
        if isinstance(seen, GenerationRequest | Event):
            self.mailbox.post(LENT, seen)
        if failed or isinstance(seen, Finished):
            self.mailbox.post(LENT, Ended(failed))

    @Slot()
    def answer_next(self) -> None:
        """Answers one request of another program; the desk calls again while more wait, so that others have their turn."""
        self.tend()
        if self._desk is not None and self._desk.step():
            QTimer.singleShot(0, self._settle)

    @Slot()
    def tend(self) -> None:
        """Takes a new desk. Allowed between an answer's events."""
        if self._desk is not self._given:
            self._desk = self._given
            self._offer()

    def _offer(self) -> None:
        """Tells the desk what it answers with now."""
        if self._desk is None:
            return
        try:
            self._desk.use(self._engine)
        except Exception:  # the window's own job must end all the same
            log.exception("the loaded model cannot be served")
            self._desk.use(None)

    @Slot(int, str, object, object)
    def load(self, job_id: int, pair: str, cancel: threading.Event, options: LoadOptions = OPTIONS) -> None:
        """Replaces the loaded pair by ``pair``; the old one is let go first so that both never share the memory.

        It stays where ``pair`` is refused before that, and ``Loaded`` says so once more.
        """

        def work() -> None:
            try:
                self._loader.check(pair, options)
            except Exception:  # a fault in the check, too, is no reason to give up what is loaded
                if self._engine is not None:
                    self.mailbox.post(job_id, Loaded(self._engine.info))
                raise
            self._let_go()
            self._engine = self._loader(pair, lambda step: self.mailbox.post(job_id, step), cancel, options)
            self.mailbox.post(job_id, Loaded(self._engine.info))

        if self._desk is not None:
            self._desk.leave(loading)  # an earlier load in a row may have opened it again
        self._run(job_id, cancel, work, changes=True)

    @Slot(int, object)
    def unload(self, job_id: int, cancel: threading.Event) -> None:
        """Gives the loaded pair's memory back."""
        self._run(job_id, cancel, self._let_go, changes=True)

    @Slot(int, object, object)
    def generate(self, job_id: int, request: GenerationRequest, cancel: threading.Event) -> None:
        """Posts the request's events one by one."""

        def work() -> None:
            loaded = self._require()
            before = loaded.info
            for event in loaded.generate(request, cancel):
                self.mailbox.post(job_id, event)
                self.tend()
            if loaded.info != before:  # it was measured for an exact answer
                self.mailbox.post(job_id, Loaded(loaded.info))

        self._run(job_id, cancel, work)
        QTimer.singleShot(0, self._settle)

    @Slot(int, object, object)
    def count(self, job_id: int, chats: tuple[tuple[Message, ...], ...], cancel: threading.Event) -> None:
        """Posts how many tokens the first chat takes, and the others."""

        def work() -> None:
            tokens = self._require().count_tokens(chats[0])
            self.mailbox.post(job_id, Counted(tokens, tuple(map(self._tokens, chats[1:]))))

        self._run(job_id, cancel, work)

    @Slot(int, object, object)
    def learn(self, job_id: int, chats: Sequence[Sequence[Message]], cancel: threading.Event) -> None:
        """Posts what training on ``chats`` reports, and takes a better draft into use: ``Loaded`` then says so."""

        def work() -> None:
            for event in self._require().learn(chats, cancel):
                self.mailbox.post(job_id, event)
                if isinstance(event, TrainingFinished) and event.reason != "cancelled" and event.better:
                    self._use_learned(job_id, True)

        self._run(job_id, cancel, work)

    @Slot(int, str, object)
    def choose_draft(self, job_id: int, choice: DraftChoice, cancel: threading.Event) -> None:
        """Takes another draft into use, or deletes what was learned or is being learned; posts ``Loaded`` where it changed."""

        def work() -> None:
            if choice == "forget run":
                engine.forget_runs()
                return
            if choice == "forget":
                engine.forget_learned()
            if self._engine is not None:
                self._use_learned(job_id, choice == "learned")

        self._run(job_id, cancel, work)

    @Slot(int, object)
    def forget_prefixes(self, job_id: int, cancel: threading.Event) -> None:
        """Deletes what is kept of prompts, by the loaded engine and on disk: a chat is to be gone for good."""

        def work() -> None:
            if self._engine is not None:
                self._engine.forget_prefixes()
            engine.forget_prefixes()

        self._run(job_id, cancel, work)

    @Slot()
    def _settle(self) -> None:
        """Prepares for the chat's next turn while nothing is asked for. One piece at a time: a job that comes waits for one."""
        try:
            more = self._engine is not None and self._engine.settle()
        except Exception:
            log.exception("preparing for the next turn failed")
            return
        if more:
            QTimer.singleShot(0, self._settle)

    @Slot()
    def finish(self) -> None:
        """Closes the engine on the thread that made it, as MLX requires, and ends this thread's event loop."""
        try:
            self._let_go()
        finally:
            self.thread().quit()

    def _require(self) -> EngineLike:
        if self._engine is None:
            raise engine.ModelError("No model is loaded: choose one in the model menu.")
        return self._engine

    def _tokens(self, messages: tuple[Message, ...]) -> int:
        try:
            return self._require().count_tokens(messages)
        except engine.ModelError:
            return -1

    def _use_learned(self, job_id: int, on: bool) -> None:
        self._engine = self._require().use_learned(on)
        self._offer()
        self.mailbox.post(job_id, Loaded(self._engine.info))

    def _let_go(self) -> None:
        loaded, self._engine = self._engine, None
        if loaded is not None:
            loaded.close()

    def _run(self, job_id: int, cancel: threading.Event, work: Callable[[], None], changes: bool = False) -> None:
        """``changes``: another engine, or none, is there afterwards."""
        # BaseException on purpose: nothing raised inside the engine may end this thread and leave the window waiting.
        self.mailbox.post(job_id, Began())
        try:
            if not cancel.is_set():
                work()
        except engine.Cancelled:
            cancel.set()
        except SlipstreamError as error:
            overflow, too_large = isinstance(error, engine.ContextOverflow), isinstance(error, engine.NotEnoughMemory)
            self.mailbox.post(job_id, Failure(str(error), is_overflow=overflow, too_large=too_large))
        except MemoryError:
            self.mailbox.post(job_id, Failure("The memory ran out: close other programs or choose a smaller model."))
        except BaseException as error:
            line = f"The engine failed ({type(error).__name__}): try again; the details are in the log."
            self.mailbox.post(job_id, Failure(line, is_bug=True, details=traceback.format_exc()))
        if changes:
            self._offer()
        self.mailbox.post(job_id, Ended(cancel.is_set()))
