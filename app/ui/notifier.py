"""Tells who is away that an answer is ready or a model is there, and who listens that an answer is; never while it is written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QSystemTrayIcon

from app import mac
from app.core.chat import ChatMessage
from app.core.words import tr
from app.ui import theme
from app.ui.announce import announce
from engine import split_thinking

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

TEXT_LENGTH = 120


def is_away() -> bool:
    """Whether another program is in front."""
    return QGuiApplication.applicationState() is not Qt.ApplicationState.ApplicationActive


class Notifier(QObject):
    """``send(title, text)`` shows a notification, ``say(text)`` speaks to screen readers; both may be replaced in tests."""

    def __init__(self, window: MainWindow, away: Callable[[], bool] = is_away):
        super().__init__(window)
        self._window, self.away = window, away
        self._tray: QSystemTrayIcon | None = None
        self.send: Callable[[str, str], None] = self._send
        self.say: Callable[[str], None] = lambda text: announce(window, text)
        window.services.conversation.answer_ended.connect(self._on_answer)
        window.services.downloads.finished.connect(self._on_download)
        QGuiApplication.instance().applicationStateChanged.connect(self._on_application_state)  # type: ignore[union-attr]

    def _on_answer(self, message: ChatMessage) -> None:
        title = {"done": tr("Answer ready"), "failed": tr("No answer: something went wrong")}.get(message.state)
        if title is None:
            return  # stopped by the user, who knows
        self.say(title)
        said = split_thinking(message.content)[1]
        self._tell(title, " ".join(said[:TEXT_LENGTH].split()))

    def _on_download(self, _model: str) -> None:
        self._tell(tr("Model ready"), tr("The download is complete and checked."))

    def _tell(self, title: str, text: str) -> None:
        if self._window.services.settings.current.notify and self.away():
            self.send(title, text)

    def _send(self, title: str, text: str) -> None:
        if mac.notify(title, text) or not QSystemTrayIcon.isSystemTrayAvailable():
            return
        self._tray = self._tray or QSystemTrayIcon(theme.app_icon(), self)
        self._tray.messageClicked.connect(self._window.raise_window, Qt.ConnectionType.UniqueConnection)
        self._tray.show()
        self._tray.showMessage(title, text, theme.app_icon())

    def _on_application_state(self, state: Qt.ApplicationState) -> None:
        if self._tray is not None and state is Qt.ApplicationState.ApplicationActive:
            self._tray.hide()
