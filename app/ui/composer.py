"""Where prompts are written: the editor, large pasted parts, the mode switch, the token figure, Send and Stop."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QMimeData, QSize, Qt, QTimer, Signal
from PySide6.QtGui import QInputMethodEvent, QKeyEvent, QPainter, QPaintEvent
from PySide6.QtWidgets import (
    QButtonGroup,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPlainTextEdit,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core.sanitize import break_long_runs, clean_text
from app.services.settings import MODE_NAMES, ChatMode
from app.ui import theme

MAX_LINES = 8
INLINE_PASTE = 20_000  # characters; a longer paste is kept beside the editor, never laid out
LONGEST_PASTE = 1_000_000
SETTLE_MS = 300


class PromptEdit(QPlainTextEdit):
    """Grows with its text up to ``MAX_LINES``. Signals: ``submitted()``; ``pasted(str)`` for text too large to lay out;
    ``refused(str)`` with the reason why a paste was not taken.
    """

    submitted = Signal()
    pasted = Signal(str)
    refused = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._composing = False
        self.setAccessibleName("Message")
        self.setPlaceholderText("Ask anything")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setTabChangesFocus(True)
        self.viewport().setAutoFillBackground(False)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().documentLayout().documentSizeChanged.connect(lambda _size: self.fit())
        self.fit()

    def fit(self) -> None:
        """As tall as its lines, within bounds."""
        lines = min(max(int(self.document().size().height()), 1), MAX_LINES)
        margins = self.contentsMargins()
        padding = 2 * int(self.document().documentMargin()) + margins.top() + margins.bottom() + 2
        self.setFixedHeight(lines * self.fontMetrics().lineSpacing() + padding)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return sends; with Shift or Option it makes a line; while an input method composes, it belongs to that."""
        is_return = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        line_break = event.modifiers() & (Qt.KeyboardModifier.ShiftModifier | Qt.KeyboardModifier.AltModifier)
        if is_return and self._composing:
            event.ignore()
        elif is_return and not line_break:
            self.submitted.emit()
        elif is_return:
            self.textCursor().insertText("\n")
            self.ensureCursorVisible()
        elif event.key() == Qt.Key.Key_Escape:
            event.ignore()  # stops the answer, through the window; never clears what was written
        else:
            super().keyPressEvent(event)

    def inputMethodEvent(self, event: QInputMethodEvent) -> None:
        self._composing = bool(event.preeditString())
        super().inputMethodEvent(event)

    def insertFromMimeData(self, source: QMimeData) -> None:
        """Takes plain text; what is too large or has an endless line is handed on before any layout sees it."""
        if not source.hasText():
            return
        text = source.text()
        if len(text) > LONGEST_PASTE:
            self.refused.emit(
                f"The pasted text has {len(text):,} characters and a message holds {LONGEST_PASTE:,}: "
                "nothing was inserted, it is still on the clipboard. Paste a part of it."
            )
            return
        text = clean_text(text)
        if len(text) > INLINE_PASTE or break_long_runs(text) != text:
            self.pasted.emit(text)
        else:
            self.insertPlainText(text)


class PasteChip(QFrame):
    """A pasted part that goes with the message. ``removed`` fires when the user takes it out."""

    removed = Signal()

    def __init__(self, text: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.text = text
        label = QLabel(f"Pasted text, {len(text):,} characters")
        remove = QToolButton(autoRaise=True)
        remove.setIcon(theme.icon("close"))
        remove.setIconSize(QSize(10, 10))
        remove.setAccessibleName("Remove the pasted text")
        remove.clicked.connect(self.removed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.S, theme.XS, theme.XS, theme.XS)
        layout.addWidget(label)
        layout.addWidget(remove)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.current().line)
        painter.setBrush(theme.current().card)
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)


class ModeButton(QToolButton):
    """One segment of the switch: a soft fill marks the chosen one in every palette."""

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = self.rect().adjusted(1, 1, -1, -1)
        if self.isChecked() or self.underMouse():
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(colours.line if self.isChecked() else colours.card)
            painter.drawRoundedRect(box, 6, 6)
        if self.hasFocus():
            painter.setPen(self.palette().highlight().color())
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 6, 6)
        painter.setPen(colours.text if self.isChecked() else colours.quiet)
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignCenter, self.text())

    def sizeHint(self) -> QSize:
        metrics = self.fontMetrics()
        return QSize(metrics.horizontalAdvance(self.text()) + 2 * theme.M, metrics.height() + theme.S + 2)


class ModeSwitch(QWidget):
    """DFlash, Plain or Side by side. ``chosen(mode)`` fires on the user's choice only."""

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setAccessibleName("Mode")
        self._group, self._buttons = QButtonGroup(self), {}  # type: QButtonGroup, dict[str, QToolButton]
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        for mode, name in MODE_NAMES.items():
            button = ModeButton()
            button.setText(name)
            button.setCheckable(True)
            button.setAccessibleName(f"Mode: {name}")
            button.setFocusPolicy(Qt.FocusPolicy.TabFocus)
            button.clicked.connect(lambda _checked=False, mode=mode: self.chosen.emit(mode))
            self._group.addButton(button)
            self._buttons[mode] = button
            layout.addWidget(button)

    def show_mode(self, mode: ChatMode) -> None:
        """Marks ``mode`` without announcing it."""
        self._buttons[mode].setChecked(True)

    def button(self, mode: ChatMode) -> QToolButton:
        """The button of one mode."""
        return self._buttons[mode]


class Composer(QWidget):
    """Signals: ``send_asked()``; ``stop_asked()``; ``mode_chosen(mode)``; ``draft_changed()`` once typing settles;
    ``text_changed()`` at once; ``notice(str)`` for one line to show.
    """

    send_asked = Signal()
    stop_asked = Signal()
    mode_chosen = Signal(str)
    draft_changed = Signal()
    text_changed = Signal()
    notice = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.edit, self.modes = PromptEdit(), ModeSwitch()
        self.tokens = QLabel()
        self.tokens.setFont(theme.figure_font(90))
        self.tokens.setAccessibleName("Tokens of the chat and of the context")
        self.button = QPushButton()
        self.button.clicked.connect(self._on_button)
        self._chips: list[PasteChip] = []
        self._chip_row = QHBoxLayout()
        self._chip_row.addStretch(1)
        self._busy = False
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(self.draft_changed)
        self.edit.textChanged.connect(self._on_text)
        self.edit.submitted.connect(self.send_asked)
        self.edit.pasted.connect(self.add_paste)
        self.edit.refused.connect(self.notice)
        self.modes.chosen.connect(self.mode_chosen)
        self._lay_out()
        self.show_busy(False, False)

    def _lay_out(self) -> None:
        controls = QHBoxLayout()
        controls.setSpacing(theme.M)
        controls.addWidget(self.modes)
        controls.addStretch(1)
        controls.addWidget(self.tokens)
        controls.addWidget(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.M, theme.M, theme.M)
        layout.setSpacing(theme.S)
        layout.addLayout(self._chip_row)
        layout.addWidget(self.edit)
        layout.addLayout(controls)
        self.setFocusProxy(self.edit)

    # Text

    def text(self) -> str:
        """Everything that Send would send: the typed text, then the pasted parts."""
        parts = [self.edit.toPlainText(), *(chip.text for chip in self._chips)]
        return "\n\n".join(part for part in parts if part.strip())

    def set_text(self, text: str) -> None:
        """Replaces the draft; text too large to lay out becomes a pasted part."""
        for chip in list(self._chips):
            self._remove(chip)
        inline = len(text) <= INLINE_PASTE and break_long_runs(text) == text
        self.edit.setPlainText(text if inline else "")
        if not inline:
            self.add_paste(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def settle(self) -> None:
        """Drops the announcement of a change that is still pending."""
        self._settle.stop()

    def clear(self) -> None:
        """Empties the editor after sending."""
        self.set_text("")

    def add_paste(self, text: str) -> None:
        """Keeps ``text`` beside the editor, within the limit of one message."""
        held = sum(len(chip.text) for chip in self._chips) + len(self.edit.toPlainText())
        if held + len(text) > LONGEST_PASTE:
            self.notice.emit(f"A message holds {LONGEST_PASTE:,} characters: this paste was not added.")
            return
        chip = PasteChip(text)
        chip.removed.connect(lambda: self._remove(chip))
        self._chips.append(chip)
        self._chip_row.insertWidget(len(self._chips) - 1, chip)
        self._on_text()

    def _remove(self, chip: PasteChip) -> None:
        self._chips.remove(chip)
        self._chip_row.removeWidget(chip)
        chip.hide()
        chip.deleteLater()
        self._on_text()

    def _on_text(self) -> None:
        self.text_changed.emit()
        self._settle.start()

    # State

    def show_busy(self, stoppable: bool, can_send: bool) -> None:
        """The one button sends, or stops while there is something to stop."""
        self._busy = stoppable
        self.button.setText("Stop" if stoppable else "Send")
        self.button.setAccessibleName("Stop" if stoppable else "Send")
        self.button.setIcon(theme.icon("stop" if stoppable else "send"))
        self.button.setEnabled(stoppable or can_send)

    def show_tokens(self, tokens: int | None, context: int | None) -> None:
        """The token figure, in the warning tint from 90 % of the context on."""
        known = tokens is not None and context
        self.tokens.setText(f"{tokens:,} / {context:,} tokens" if known else "")
        near = bool(known and tokens is not None and context and tokens >= 0.9 * context)
        theme.tint(self.tokens, theme.current().warning if near else theme.current().quiet)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.current().line)
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 10, 10)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_busy"):
            self.button.setIcon(theme.icon("stop" if self._busy else "send"))

    def _on_button(self) -> None:
        (self.stop_asked if self._busy else self.send_asked).emit()
