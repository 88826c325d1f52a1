"""One line above the composer that says what went wrong or happened, with the next action as a button."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic
from typing import Literal

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QToolButton, QWidget

from app.core.words import tr
from app.ui import theme
from app.ui.announce import announce
from app.ui.labels import plain

READ_S = 6.0
Until = Literal["dismissed", "ready", "chat", "undone", "over", "turn", "served"]
Second = tuple[str, Callable[[], None]]


class Banner(QFrame):
    """Hidden until ``show_message``; one message at a time, the newest."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._run: Callable[[], None] | None = None
        self._run_second: Callable[[], None] | None = None
        self._until: Until = "dismissed"
        self._calm = False
        self._shown_at = 0.0
        self._icon = QLabel()
        self._icon.setAccessibleName(tr("Warning"))
        self.label = QLabel(wordWrap=True)
        self.label.setTextFormat(Qt.TextFormat.PlainText)
        self.label.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.label.setAccessibleName(tr("Message from Slipstream"))
        self.action, self.second = QPushButton(), QPushButton()
        self.action.clicked.connect(self._on_action)
        self.second.clicked.connect(self._on_second)
        self._close = QToolButton(autoRaise=True)
        self._close.setIconSize(QSize(12, 12))
        self._close.setAccessibleName(tr("Dismiss"))
        self._close.clicked.connect(self.hide)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.S, theme.S, theme.S)
        layout.setSpacing(theme.S)
        layout.addWidget(self._icon)
        layout.addWidget(self.label, 1)
        layout.addWidget(self.second)
        layout.addWidget(self.action)
        layout.addWidget(self._close)
        self.restyle()
        self.action.hide()
        self.second.hide()
        self.hide()

    @property
    def text(self) -> str:
        """The message on show; "" while hidden."""
        return "" if self.isHidden() else self.label.text()

    def show_message(
        self,
        text: str,
        action: str = "",
        run: Callable[[], None] | None = None,
        until: Until = "dismissed",
        second: Second | None = None,
    ) -> None:
        """Shows one line; with ``action``, a button that runs ``run`` and closes the banner.

        ``until`` says what ends it besides the user: the engine is "ready", another "chat" is opened, what was deleted is
        "undone", what goes on is "over", it is the user's "turn", or the server runs ("served"). ``second`` is the text of a button
        beside it, which leaves the banner open, and what it runs.
        """
        self._calm = False
        announce(self, text)
        self._show(text, action, run, until, second)

    def show_notice(self, text: str, action: str = "", run: Callable[[], None] | None = None, until: Until = "dismissed") -> None:
        """The same for what is no problem, without the warning's colour; said aloud only where something can be done about it."""
        self._calm = True
        if action:
            announce(self, text)
        self._show(text, action, run, until, None)

    def show_progress(self, text: str, action: str, run: Callable[[], None]) -> None:
        """A notice about something that goes on and is told again and again, so never aloud; ``action`` ends it.

        Any other message stays long enough to be read, and its button under the mouse, before this takes its place.
        """
        matters = self._until != "over" and (not self._calm or not self.action.isHidden())
        if not self.isHidden() and matters and monotonic() - self._shown_at < READ_S:
            return
        self._calm = True
        self._show(text, action, run, "over", None)

    def _show(self, text: str, action: str, run: Callable[[], None] | None, until: Until, second: Second | None) -> None:
        self._shown_at = monotonic()
        self._run_second = second[1] if second else None
        self.second.setText(second[0] if second else "")
        self.second.setVisible(second is not None)
        self.label.setText(text)
        self._until = until
        self._run = run
        self.action.setText(plain(action))
        self.action.setVisible(bool(action))
        self.restyle()
        self.show()

    def stays_until(self, happens: Until) -> bool:
        """Whether a message is on show that ``happens`` ends."""
        return not self.isHidden() and self._until == happens

    def settle(self, happened: Until) -> None:
        """Hides a message whose cause is gone now that ``happened``."""
        if self._until == happened:
            self.hide()

    def restyle(self) -> None:
        """Follows the palette."""
        colours = theme.current()
        icon = theme.icon("info", colours.quiet) if self._calm else theme.icon("warning", colours.warning)
        self._icon.setPixmap(icon.pixmap(theme.ICON))
        self._close.setIcon(theme.icon("close", colours.quiet))
        theme.tint(self.label, colours.text)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.current().card if self._calm else theme.current().warning_back)
        painter.drawRoundedRect(self.rect(), theme.S, theme.S)

    def _on_second(self) -> None:
        if self._run_second is not None:
            self._run_second()

    def _on_action(self) -> None:
        run = self._run
        self.hide()
        if run is not None:
            run()
