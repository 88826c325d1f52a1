"""Fetches models one after the other, at most two at once, and goes on at the next start with what a quit interrupted."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.downloads import Download, Stage, Trouble
from app.services.background import Background
from app.services.settings import KeyValueStore
from app.store import StoreError
from engine import SlipstreamError, models
from engine.models.download_types import REPAIR, DownloadPlan, DownloadProblem, DownloadState, Progress

AT_ONCE = 2
REFRESH_MS = 250  # progress is told at most this often
RETRY_MS = 30_000  # after the network was away or the hub asked for patience
QUIT_LIMIT_S = 1.0
KEPT = "downloads"  # by id, in order: whether it goes on at the next start, or was paused by the user or failed
log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Task:
    """One download. ``active``: a thread works on it, which may go on for a moment after it was told to pause."""

    id: str
    stage: Stage
    plan: DownloadPlan | None = None
    progress: Progress | None = None
    trouble: Trouble | None = None
    active: bool = False
    pause: threading.Event = field(default_factory=threading.Event)
    cancel: threading.Event = field(default_factory=threading.Event)

    def shown(self) -> Download:
        return Download(self.id, self.stage, self.plan, self.progress, self.trouble)


class Downloads(QObject):
    """Signals: ``changed(id)`` follows every change of one, at most four times a second while it runs; ``listed()`` when one is
    added or removed; ``finished(id)`` when its files are checked and usable; ``failed(id)``; ``active_changed(bool)``.
    """

    changed = Signal(str)
    listed = Signal()
    finished = Signal(str)
    failed = Signal(str)
    active_changed = Signal(bool)

    def __init__(self, store: KeyValueStore, parent: QObject | None = None):
        super().__init__(parent)
        self._store = store
        self._tasks: dict[str, _Task] = {}
        self._background = Background(self)
        self._was_active = False
        self._refresh = QTimer(self, interval=REFRESH_MS)
        self._refresh.timeout.connect(self._on_refresh)
        self._retry = QTimer(self, interval=RETRY_MS, singleShot=True)
        self._retry.timeout.connect(self.retry_waiting)

    # What the user does

    def get(self, model: str) -> None:
        """Fetches ``model`` (a catalog id or ``TARGET[+DRAFT]`` of hub ids), or goes on with it."""
        task = self._tasks.get(model)
        if task is None or task.stage == "done":
            self._add(_Task(model, "asking"))
        elif task.stage in ("paused", "waiting", "failed"):
            self._go_on(task)

    def repair(self, plan: DownloadPlan) -> None:
        """Fetches the damaged files of ``plan`` again."""
        task = self._tasks.get(plan.id)
        if task is None or task.stage in ("paused", "failed", "done"):
            self._add(_Task(plan.id, "queued", plan))

    def pause(self, model: str) -> None:
        """Stops it until ``get`` is called again, also over a quit. What was fetched stays."""
        task = self._tasks.get(model)
        if task is not None and task.stage in ("asking", "queued", "running", "waiting"):
            task.pause.set()
            self._set(task, "paused")

    def cancel(self, model: str) -> None:
        """Ends it and removes what was fetched."""
        task = self._tasks.get(model)
        if task is None or task.stage == "cancelling":
            return
        if task.active:
            task.cancel.set()
            self._set(task, "cancelling")
        elif task.plan is not None and task.stage != "done":
            self._set(task, "cancelling")
            self._discard(task)
        else:
            self._remove(task)

    def restore(self) -> None:
        """Lists what earlier runs left unfinished, and goes on with what the user did not pause."""
        kept = dict(self._store.setting(KEPT, {}))
        self._background.run(
            lambda: models.list_downloads(), lambda states: self._on_restored(kept, states), self._log, "downloads"
        )

    def retry_waiting(self) -> None:
        """Tries again what waits for the network."""
        for task in list(self._tasks.values()):
            if task.stage == "waiting":
                self._go_on(task)

    # What is told

    def all(self) -> list[Download]:
        """Every download, in the order in which they were asked for."""
        return [task.shown() for task in self._tasks.values()]

    def find(self, model: str) -> Download | None:
        """The download of ``model``."""
        task = self._tasks.get(model)
        return task.shown() if task is not None else None

    @property
    def active(self) -> bool:
        """Whether bytes are being fetched or checked."""
        return any(task.active for task in self._tasks.values())

    def shutdown(self, limit_s: float = QUIT_LIMIT_S) -> bool:
        """Pauses everything and waits up to ``limit_s`` seconds. False: something still works, and ends with the process."""
        self._refresh.stop()
        self._retry.stop()
        for task in self._tasks.values():
            task.pause.set()
        return self._background.close(limit_s)

    # How it goes on

    def _add(self, task: _Task) -> None:
        self._tasks[task.id] = task
        self._keep_list()
        self.listed.emit()
        self._go_on(task)

    def _go_on(self, task: _Task) -> None:
        task.trouble = None
        if task.plan is None:
            self._set(task, "asking")
            self._run(task, lambda: models.plan_download(task.id), lambda plan: self._on_planned(task, plan))
        else:
            self._set(task, "queued")
            self._pump()

    def _on_planned(self, task: _Task, plan: DownloadPlan) -> None:
        if self._tasks.get(task.id) is not task:
            return
        task.plan = plan
        if not self._rename(task, plan.id):
            return
        if task.stage != "asking":
            self.changed.emit(task.id)  # paused in the meantime
        elif plan.files:
            self._set(task, "queued")
            self._pump()
        else:
            self._on_done(task)

    def _rename(self, task: _Task, name: str) -> bool:
        """The plan's own name, which has the draft, replaces the one asked for. False: that one is there and goes on instead."""
        if name == task.id:
            return True
        other = self._tasks.get(name)
        del self._tasks[task.id]
        if other is not None and other.stage != "done":
            self.listed.emit()
            self.get(name)
            return False
        task.id = name
        self._tasks[name] = task
        self._keep_list()
        self.listed.emit()
        return True

    def _pump(self) -> None:
        """Starts what is due. A task whose thread still ends is started when it has."""
        for task in self._tasks.values():
            if sum(other.active for other in self._tasks.values()) >= AT_ONCE:
                break
            if task.stage == "queued" and not task.active and task.plan is not None:
                self._start(task, task.plan)
        self._tell_active()

    def _start(self, task: _Task, plan: DownloadPlan) -> None:
        task.pause, task.cancel, task.active = threading.Event(), threading.Event(), True

        def keep(progress: Progress) -> None:
            task.progress = progress  # the timer tells it: a signal for each would be too many

        def fetch() -> str:
            return models.Downloader(plan, on_progress=keep, pause=task.pause, cancel=task.cancel).run()

        self._refresh.start()
        self._set(task, "running")
        self._run(task, fetch, lambda outcome: self._on_outcome(task, outcome))

    def _on_outcome(self, task: _Task, outcome: str) -> None:
        task.active = False
        if outcome == "done":
            self._on_done(task)
        elif outcome == "cancelled":
            self._remove(task)
        elif task.stage == "cancelling":
            self._discard(task)  # it was paused first, and has kept its files
        elif task.stage == "running":
            self._set(task, "paused")
        self._pump()

    def _on_done(self, task: _Task) -> None:
        self._set(task, "done")
        self._keep_list()
        self.finished.emit(task.id)

    def _on_failed(self, task: _Task, error: SlipstreamError) -> None:
        if self._tasks.get(task.id) is not task:
            return
        task.active = False
        if task.stage == "cancelling":
            self._discard(task)
        elif task.stage == "paused":
            self.changed.emit(task.id)
        elif isinstance(error, DownloadProblem) and error.kind in ("network", "rate") and task.plan is not None:
            task.trouble = trouble(error)
            self._set(task, "waiting")
            self._retry.start()
        else:
            self._give_up(task, error)
        self._pump()

    def _give_up(self, task: _Task, error: SlipstreamError) -> None:
        log.warning("the download of %s failed: %s", task.id, error)
        task.trouble = trouble(error)
        self._set(task, "failed")
        self.failed.emit(task.id)

    def _discard(self, task: _Task) -> None:
        name = f"discard {task.id}"
        self._background.run(
            lambda: models.discard(task.id), lambda _freed: self._remove(task), lambda e: self._give_up(task, e), name
        )

    def _remove(self, task: _Task) -> None:
        if self._tasks.get(task.id) is task:
            del self._tasks[task.id]
        self._keep_list()
        self.listed.emit()

    def _on_restored(self, kept: dict[str, bool], states: list[DownloadState]) -> None:
        for state in states:
            if state.id not in self._tasks and not state.running:
                self._tasks[state.id] = _Task(state.id, "paused", state.plan, _as_progress(state))
        for model in kept:
            if model not in self._tasks and not model.startswith(REPAIR):  # a repair that had not begun has no plan any more
                self._tasks[model] = _Task(model, "paused")
        self.listed.emit()
        for model, goes_on in kept.items():
            if goes_on and model in self._tasks:
                self.get(model)

    # Small parts

    def _run(self, task: _Task, work: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self._background.run(work, then, lambda error: self._on_failed(task, error), f"download {task.id}")

    def _set(self, task: _Task, stage: Stage) -> None:
        task.stage = stage
        self._keep_list()
        self.changed.emit(task.id)

    def _on_refresh(self) -> None:
        for task in self._tasks.values():
            if task.active:
                self.changed.emit(task.id)
        if not self.active:
            self._refresh.stop()

    def _tell_active(self) -> None:
        if self.active != self._was_active:
            self._was_active = self.active
            self.active_changed.emit(self._was_active)

    def _keep_list(self) -> None:
        unfinished = [task for task in self._tasks.values() if task.stage not in ("done", "cancelling")]
        kept = {task.id: task.stage not in ("paused", "failed") for task in unfinished}
        try:
            if kept != self._store.setting(KEPT, {}):
                self._store.set_setting(KEPT, kept)
        except StoreError as error:
            log.warning("%s not kept: %s", KEPT, error)  # at worst they are listed as paused at the next start

    def _log(self, error: SlipstreamError) -> None:
        log.warning("unfinished downloads cannot be listed: %s", error)


def trouble(error: SlipstreamError) -> Trouble:
    """What the window shows of ``error``."""
    if isinstance(error, DownloadProblem):
        return Trouble(error.kind, error.message, error.action, error.url)
    return Trouble("", str(error), "")


def _as_progress(state: DownloadState) -> Progress:
    return Progress(state.done_bytes, state.total_bytes, 0.0, None, "")
