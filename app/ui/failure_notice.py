"""Says what went wrong in the user's language, with the next action; of our own faults the details can be copied too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.engine_words import engine_words
from app.core.failure_details import failure_details
from app.core.words import tr
from app.services.engine_client import EngineState
from app.services.environment import describe
from app.worker import Failure

if TYPE_CHECKING:
    from app.ui.banner import Second
    from app.ui.main_window import MainWindow


class FailureNotice(QObject):
    """The window's side of ``Failure``."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window = window

    def show(self, failure: Failure) -> None:
        """One line, until its cause is gone."""
        window, state, text = self._window, self._window.services.client.state, engine_words(failure.message)
        second = self._copying(failure.message, failure.details) if failure.is_bug else None
        if not failure.retry:
            window.banner.show_message(text)
        elif failure.is_overflow:
            window.banner.show_message(text, tr("New chat"), window.do.new_chat_with_last_prompt, until="chat")
        elif state in (EngineState.LOST, EngineState.NO_MODEL):
            window.banner.show_message(text, *window.loading.way_back(), until="ready", second=second)
        elif window.services.conversation.can_retry():
            window.banner.show_message(text, tr("Retry"), window.do.answer_again, until="chat", second=second)
        else:
            window.banner.show_message(text, second=second)

    def show_fault(self, text: str, traceback: str) -> None:
        """An error that nothing in the window expected: ours."""
        self._window.banner.show_message(text, tr("Show log"), self._window.do.show_log, second=self._copying(text, traceback))

    def _copying(self, title: str, traceback: str) -> Second:
        info = self._window.services.client.info  # as it is now: a pair that is loaded later had no part in it
        text = failure_details(title, traceback, describe(), info)
        return tr("Copy details"), lambda: self._window.clipboard.setText(text)
