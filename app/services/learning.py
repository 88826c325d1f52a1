"""Learns from the user's chats where they agreed: while nobody uses the window, on mains power, and only as long as that lasts."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import psutil
from PySide6.QtCore import QObject, QTimer, Signal

from app.core.chat import request_messages, up_to_last_question
from app.core.engine_words import engine_words
from app.core.tree import ChatTree
from app.core.words import tr
from app.services.engine_client import BUSY, EngineClient, EngineState
from app.services.settings import Settings, SettingsService
from app.store import ChatStore, StoreError
from app.worker import Failure
from engine import DataProgress, Message, PairInfo, TrainingEvent, TrainingFinished, TrainingStep

TICK_MS = 5_000
IDLE_S = 180.0
IDLE_AFTER_ASKING_S = 5.0  # the user waits for it: a key pressed is only an interruption
ENOUGH = 20  # chats with new questions: a fifth of them is kept apart to judge by, and fewer than four would judge by chance
MOST = 40  # chats of one run, the newest: more would take a night on a small machine
RUN, UNTIL = "learning_run", "learned_until"
log = logging.getLogger(__name__)


def on_mains_power() -> bool:
    """Whether the machine runs on mains power; a machine without a battery does."""
    battery = psutil.sensors_battery()
    return battery is None or battery.power_plugged is True


def gain_words(before: float, after: float) -> str:
    """Tokens per cycle before and after learning."""
    return tr("{before:.2f} → {after:.2f} tokens/cycle", before=before, after=after)


class Learning(QObject):
    """``changed()`` follows whatever ``status`` says. Call ``touch`` for everything the user does.

    A run stands in the chat file as the chats it is of, so that it goes on with the same ones after any interruption.
    """

    changed = Signal()

    def __init__(
        self,
        store: ChatStore,
        client: EngineClient,
        settings: SettingsService,
        parent: QObject | None = None,
        on_mains: Callable[[], bool] = on_mains_power,
        clock: Callable[[], float] = time.monotonic,
    ):
        super().__init__(parent)
        self._store, self._client, self._settings, self._on_mains, self._clock = store, client, settings, on_mains, clock
        self._touched_at = clock()
        self._asked = False
        run = store.setting(RUN)
        self._run: dict[str, Any] | None = run if isinstance(run, dict) and run.keys() >= {"pair", "chats", "until"} else None
        self._note = ""  # what became of the last run, or why there is none
        self._refused = False  # the pair cannot learn: nothing to try again before another is loaded
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self.tick)
        client.state_changed.connect(self._on_state)
        client.loaded.connect(self._on_loaded)
        client.learning.connect(self._on_event)
        client.learning_ended.connect(self._on_ended)
        client.draft_changed.connect(lambda _info: self.changed.emit())
        client.lending.began.connect(self.touch)
        client.lending.ended.connect(self.touch)
        settings.changed.connect(self._on_settings)
        self._agreed = settings.current.learn_from_chats
        if self._agreed:
            self._timer.start()

    # What the user does

    def touch(self) -> None:
        """Somebody uses the window: learning pauses at once."""
        self._touched_at = self._clock()
        self._pause()

    def learn_now(self) -> None:
        """Starts without waiting for an idle window, for new chats or for mains power."""
        if not self._agreed:
            return
        self._asked, self._note, self._refused = True, "", False
        self._begin()
        self.changed.emit()

    def use(self, learned: bool) -> None:
        """Takes the learned draft into use again, or the original one."""
        self._client.choose_draft("learned" if learned else "original")

    def forget(self) -> None:
        """Deletes everything that was learned, for every model, and learns no more until the user agrees again."""
        self._settings.update(learn_from_chats=False)
        self._keep(UNTIL, {})
        self._client.choose_draft("forget")

    def chats_changed(self) -> None:
        """A chat may have been deleted: a run that reads it is thrown away."""
        if self._run is not None and any(self._store.chat(chat_id) is None for chat_id, _ in self._run["chats"]):
            self._drop_run()

    def stop(self) -> None:
        """Ends everything, for the end of the program. What was learned until then is kept."""
        self._timer.stop()
        self._client.pause_learning()

    # What is told

    @property
    def running(self) -> bool:
        """Whether it learns now."""
        return self._client.is_learning

    @property
    def learned(self) -> bool:
        """Whether there is a learned draft for the loaded pair."""
        return self._client.info is not None and self._client.info.learned is not None

    @property
    def learned_in_use(self) -> bool:
        """Whether the learned draft is the one in use."""
        info = self._client.info
        return info is not None and info.learned is not None and info.learned.in_use

    @property
    def status(self) -> str:
        """One line in words; empty where the user did not agree."""
        if not self._agreed:
            return ""
        return tr("Learning from your chats: {what}", what=self._words())

    def _words(self) -> str:
        info = self._client.info
        if self._note or self.running:
            return self._note or tr("beginning")
        if self._run is not None:
            return tr("paused")
        if info is not None and info.learned is not None:
            figures = gain_words(info.learned.before, info.learned.after)
            return figures if info.learned.in_use else tr("{figures}, but the original draft is in use", figures=figures)
        return tr("begins when there is enough to learn from and nobody uses the window")

    # When it learns

    def tick(self) -> None:
        """Looks whether to begin, to go on or to pause."""
        if self.running:
            if not self._free():
                self._pause()
        elif self._free() and not self._refused:
            self._begin()

    def _free(self) -> bool:
        idle_s = IDLE_AFTER_ASKING_S if self._asked else IDLE_S
        idle = self._client.state is EngineState.READY and self._clock() - self._touched_at >= idle_s
        return self._agreed and idle and (self._asked or self._on_mains())

    def _pause(self) -> None:
        if self.running:
            self._client.pause_learning()
            self._note = ""
            self.changed.emit()

    def _begin(self) -> None:
        info = self._client.info
        if info is None:
            return
        if self._run is not None and self._run["pair"] != info.id:
            self._drop_run()  # the texts of another model's run are not kept; this one begins with the next tick
            return
        try:
            run = self._run or self._next_run(info)
            chats = [self._turns(chat_id, last) for chat_id, last in run["chats"]] if run else []
        except StoreError as error:
            self._refused, self._note = True, str(error)
            return
        if run is None:
            if self._asked:
                self._asked, self._note = False, tr("there is nothing new to learn from")
        elif self._client.learn(chats):
            self._run, self._note = run, ""
            self._keep(RUN, run)
            self.changed.emit()

    def _next_run(self, info: PairInfo) -> dict[str, Any] | None:
        """The newest chats, if enough of them have questions that this pair has not learned from."""
        new = self._store.asked_since(self._until().get(info.id, 0))
        if not new or (len(new) < ENOUGH and not self._asked):
            return None
        return {"pair": info.id, "chats": self._store.asked_since(0)[:MOST], "until": new[0][1]}

    def _turns(self, chat_id: int, last: int) -> tuple[Message, ...]:
        """The branch of a chat that ends with the question ``last``; empty if it was deleted."""
        tree = ChatTree(self._store.messages(chat_id))
        return request_messages(up_to_last_question(tree.path(last))) if last in tree else ()

    # What happens

    def _on_event(self, event: TrainingEvent) -> None:
        if isinstance(event, DataProgress):
            stage = engine_words(event.stage)
            self._note = tr("{stage}, {done} of {total}", stage=stage[:1].lower() + stage[1:], done=event.done, total=event.total)
        elif isinstance(event, TrainingStep):
            self._note = tr("step {done} of {total}", done=event.step, total=event.steps)
        elif isinstance(event, TrainingFinished) and event.reason != "cancelled":
            self._settle_run()
            figures = gain_words(event.before, event.best)
            worse = tr("{figures} is no real gain, so the draft stays as it is", figures=figures)
            self._note = figures if event.better else worse
        self.changed.emit()

    def _on_ended(self, failure: Failure | None) -> None:
        if failure is not None:
            self._refused, self._note = True, engine_words(failure.message)
            self._settle_run()
        elif self._run is not None:
            self._note = ""
        self.changed.emit()

    def _on_state(self, state: EngineState) -> None:
        if state in BUSY:
            self._touched_at = self._clock()
            self._note = "" if self._run is not None else self._note
        self.changed.emit()

    def _on_loaded(self, _info: PairInfo) -> None:
        self._refused, self._asked, self._note = False, False, ""
        self.changed.emit()

    def _on_settings(self, settings: Settings) -> None:
        if settings.learn_from_chats == self._agreed:
            return
        self._agreed = settings.learn_from_chats
        if self._agreed:
            self._touched_at = self._clock()
            self._timer.start()
        else:
            self._timer.stop()
            self._asked, self._note = False, ""
            self._drop_run()
        self.changed.emit()

    # What is kept

    def _settle_run(self) -> None:
        """The run is over: its questions count as known."""
        if self._run is not None:
            self._keep(UNTIL, self._until() | {self._run["pair"]: self._run["until"]})
        self._asked, self._run = False, None
        self._keep(RUN, None)

    def _drop_run(self) -> None:
        """Throws the unfinished run away with its texts."""
        self._run = None
        self._keep(RUN, None)
        self._client.choose_draft("forget run")

    def _until(self) -> dict[str, int]:
        """By pair, the newest question that was learned from."""
        return self._store.setting(UNTIL, {})

    def _keep(self, key: str, value: Any) -> None:
        try:
            self._store.set_setting(key, value)
        except StoreError as error:
            log.warning("%s not kept: %s", key, error)  # at worst the same chats are learned from once more
