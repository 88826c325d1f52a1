"""A short tour of the window: three notes, each beside what it is about; it takes no key from the message field but Escape."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QPoint, Qt
from PySide6.QtGui import QFont, QKeySequence, QPainter, QPaintEvent, QPen, QShortcut
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPushButton, QVBoxLayout, QWidget

from app.core.words import mark, tr
from app.ui import theme
from app.ui.announce import announce

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

SEEN = "tour_seen"
ESCAPE = QKeySequence(Qt.Key.Key_Escape)
WIDTH = 360
STEPS = (
    (
        mark("Ask here"),
        mark(
            "Type a question and press Return. Escape stops an answer, and what was written by then stays. The starter model is "
            "built in: it needs no account and no network."
        ),
    ),
    (
        mark("Three ways to answer"),
        mark(
            "DFlash guesses several tokens ahead and lets the model check them in one go. Plain does without. Side by Side runs "
            "both on one question and says whether the texts are identical."
        ),
    ),
    (
        mark("See whether it pays"),
        mark(
            "Each group of ticks is one check: filled ticks were guessed right. Green means that guessing ahead pays. Click the "
            "strip for the details of this computer."
        ),
    ),
)


class Tour(QFrame):
    """Shown by ``start``, or by ``start_once`` on the first run; over after its last step, with Escape, or with a question."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._step = window, 0
        self.setAccessibleName(tr("Tour"))
        self.title, self.text, self.place = QLabel(), QLabel(wordWrap=True), QLabel()
        self.title.setFont(theme.scaled_font(110, QFont.Weight.DemiBold))
        self.next, self.skip = QPushButton(tr("Next")), QPushButton(tr("Skip the tour"))
        self.next.clicked.connect(self._on_next)
        self.skip.clicked.connect(self.end)
        foot = QHBoxLayout()
        foot.addWidget(self.place)
        foot.addStretch(1)
        foot.addWidget(self.skip)
        foot.addWidget(self.next)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.M, theme.L, theme.M)
        layout.setSpacing(theme.S)
        layout.addWidget(self.title)
        layout.addWidget(self.text)
        layout.addLayout(foot)
        self.setFixedWidth(WIDTH)
        self._escape = QShortcut(ESCAPE, window, self.end, enabled=False)
        window.services.conversation.message_added.connect(self.end)
        window.installEventFilter(self)
        self.hide()

    def start_once(self) -> None:
        """Starts on the first run: nobody saw the tour, and there is no chat yet."""
        store = self._window.services.store
        if not store.setting(SEEN, False) and not store.chats():
            self.start()

    def start(self) -> None:
        """Starts from the beginning."""
        self._window.services.conversation.remember(SEEN, True)
        self._window.do.show_chat()
        self._step = 0
        self._take_escape(True)
        self._show()

    def end(self, *_anything: object) -> None:
        """Ends the tour; it can be started again from the Help menu."""
        if self.isVisible():
            self._take_escape(False)
            self.hide()
            self._window.composer.setFocus()

    def _take_escape(self, taken: bool) -> None:
        """Escape is the tour's while that is there: of two that want a key Qt gives it to neither."""
        stop = self._window.actions_by_id["stop"]
        others = [keys for keys in stop.shortcuts() if keys != ESCAPE]
        stop.setShortcuts(others if taken else [*others, ESCAPE])
        self._escape.setEnabled(taken)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize and self.isVisible():
            self._move()
        return False

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.current().quiet, 1))
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(1, 1, -1, -1), theme.S, theme.S)

    def _on_next(self) -> None:
        self._step += 1
        if self._step == len(STEPS):
            self.end()
        else:
            self._show()

    def _show(self) -> None:
        title, text = STEPS[self._step]
        self.title.setText(tr(title))
        self.text.setText(tr(text))
        self.place.setText(tr("{place} of {count}", place=self._step + 1, count=len(STEPS)))
        last = self._step == len(STEPS) - 1
        self.next.setText(tr("Done") if last else tr("Next"))
        self.skip.setVisible(not last)
        self.show()
        self._move()
        self.raise_()
        announce(self, f"{self.title.text()}. {self.text.text()}")

    def _move(self) -> None:
        """Above what the step is about, within the window."""
        target = self._target()
        self.setFixedHeight(self.heightForWidth(WIDTH) if self.hasHeightForWidth() else self.sizeHint().height())
        corner = target.mapTo(self._window, QPoint(0, 0))
        x = min(max(corner.x(), theme.L), self._window.width() - self.width() - theme.L)
        self.move(x, max(corner.y() - self.height() - theme.S, theme.S))

    def _target(self) -> QWidget:
        return (self._window.composer, self._window.composer.modes, self._window.meter)[self._step]
