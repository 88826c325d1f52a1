"""Where prompts are written: the editor, the files that go along, the mode switch, the context meter, Send and Stop."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import monotonic

from PySide6.QtCore import QEvent, QTimer, Signal
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QApplication, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout, QWidget

from app.core.attachments import LONGEST, is_editable, pasted
from app.core.chat import Attachment
from app.core.words import tr
from app.ui import theme
from app.ui.attachment_chips import AttachmentChip, Chip, ChipRow, ReadingChip
from app.ui.context_meter import ContextMeter
from app.ui.mode_switch import ModeSwitch
from app.ui.prompt_edit import PromptEdit

SETTLE_MS = 300


class Composer(QWidget):
    """Signals: ``send_asked()``; ``stop_asked()``; ``mode_chosen(mode)``; ``draft_changed()`` once typing settles;
    ``text_changed()`` at once, also for files; ``files_given(list[Path])``, pasted or dropped; ``attach_asked()``;
    ``notice(str)`` for one line to show.
    """

    send_asked = Signal()
    stop_asked = Signal()
    mode_chosen = Signal(str)
    draft_changed = Signal()
    text_changed = Signal()
    files_given = Signal(list)
    attach_asked = Signal()
    notice = Signal(str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.edit, self.modes, self.chips, self.context = PromptEdit(), ModeSwitch(), ChipRow(), ContextMeter()
        self.attach = QToolButton(autoRaise=True)
        self.attach.setAccessibleName(tr("Attach files"))
        self.attach.setToolTip(tr("Attach text, code, PDF or Word files"))
        self.attach.clicked.connect(self.attach_asked)
        self.button = QPushButton()
        self.button.clicked.connect(self._on_button)
        self._busy = False
        self._sent_at = 0.0  # by the button
        self._came: list[Chip] = []  # with the last paste or drop on the editor
        self._came_as_text = False
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(self.draft_changed)
        self.edit.textChanged.connect(self._on_text)
        self.edit.submitted.connect(self.send_asked)
        self.edit.pasted.connect(lambda text: self._take(lambda: self.add_paste(text), as_text=True))
        self.edit.undone.connect(self._take_paste_back)
        self.edit.files_pasted.connect(lambda files: self._take(lambda: self.files_given.emit(files), as_text=False))
        self.edit.refused.connect(self.notice)
        self.chips.changed.connect(self._on_text)
        self.modes.chosen.connect(self.mode_chosen)
        self._lay_out()
        self.show_busy(False, False)
        self.restyle()

    def _lay_out(self) -> None:
        controls = QHBoxLayout()
        controls.setSpacing(theme.M)
        controls.addWidget(self.attach)
        controls.addWidget(self.modes)
        controls.addStretch(1)
        controls.addWidget(self.context)
        controls.addWidget(self.button)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.M, theme.M, theme.M)
        layout.setSpacing(theme.S)
        layout.addWidget(self.chips)
        layout.addWidget(self.edit)
        layout.addLayout(controls)
        self.setFocusProxy(self.edit)

    # Text and files

    def text(self) -> str:
        """What is written."""
        return self.edit.toPlainText()

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files that go with it."""
        return self.chips.attachments

    @property
    def has_content(self) -> bool:
        """Whether there is anything to send."""
        return bool(self.text().strip()) or bool(self.attachments)

    def set_text(self, text: str, attachments: Sequence[Attachment] = ()) -> None:
        """Replaces the draft; text too large to lay out becomes an attachment."""
        self.chips.clear()
        inline = is_editable(text)
        self.edit.setPlainText(text if inline else "")
        for attachment in attachments:
            self.add(attachment)
        if not inline:
            self.add_paste(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)

    def append(self, text: str) -> None:
        """Puts ``text`` below what is written; text too large to lay out becomes an attachment."""
        written = self.text()
        whole = f"{written}\n\n{text}" if written.strip() else text
        if is_editable(whole):
            self.edit.setPlainText(whole)
            self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        else:
            self.add_paste(text)

    @property
    def unsettled(self) -> bool:
        """Whether ``draft_changed`` is still to come for what was written."""
        return self._settle.isActive()

    def settle(self) -> None:
        """Drops the announcement of a change that is still pending."""
        self._settle.stop()

    def clear(self) -> None:
        """Empties the editor after sending."""
        self.set_text("")

    def add(self, attachment: Attachment) -> bool:
        """Adds a file, within the limit of one message; False: it is too much."""
        held = sum(len(each.text) for each in self.attachments) + len(self.text())
        if held + len(attachment.text) > LONGEST:
            text = tr("A message holds {count} characters: {name} was not added.", count=LONGEST, name=attachment.name)
            self.notice.emit(text)
            return False
        self.chips.add(attachment)
        return True

    def add_read(self, chip: ReadingChip, attachment: Attachment) -> None:
        """A document that was being read is here."""
        came, focused = chip in self._came, chip.hasFocus()
        self.chips.remove(chip)
        if self.add(attachment):
            self._came += self.chips.chips[-1:] if came else []  # Undo takes it back as well
            if focused:
                self.chips.chips[-1].setFocus()

    def add_paste(self, text: str) -> None:
        """Keeps a pasted text beside the editor."""
        self.add(pasted(text, {each.name for each in self.attachments}))

    def _take(self, take: Callable[[], None], as_text: bool) -> None:
        before, self._came_as_text = self.chips.all, as_text
        take()
        self._came = [chip for chip in self.chips.all if chip not in before]

    def _take_paste_back(self) -> None:
        """Undo after a paste that became attachments: they go, and a pasted text comes into the editor where that can hold it."""
        came, self._came = [chip for chip in self._came if chip in self.chips.all], []
        for chip in came:
            chip.removed.emit()
            if self._came_as_text and isinstance(chip, AttachmentChip) and is_editable(chip.attachment.text):
                self.edit.insertPlainText(chip.attachment.text)

    def _on_text(self) -> None:
        self.text_changed.emit()
        self._settle.start()

    # State

    def show_busy(self, stoppable: bool, can_send: bool) -> None:
        """The one button sends, or stops while there is something to stop."""
        self._busy = stoppable
        self.button.setText(tr("Stop") if stoppable else tr("Send"))
        self.button.setAccessibleName(self.button.text())
        self.button.setIcon(theme.icon("stop" if stoppable else "send"))
        self.button.setEnabled(stoppable or can_send)

    def restyle(self) -> None:
        """Follows the palette."""
        self.attach.setIcon(theme.icon("attach", theme.current().quiet))
        self.button.setIcon(theme.icon("stop" if self._busy else "send"))
        self.chips.restyle()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(theme.current().line)
        painter.setBrush(self.palette().base())
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 10, 10)

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "_busy"):
            self.restyle()

    def _on_button(self) -> None:
        """Sends or stops. The second press of a double click on Send does not stop what the first one began."""
        if not self._busy:
            self._sent_at = monotonic()
            self.send_asked.emit()
        elif (monotonic() - self._sent_at) * 1_000 > QApplication.doubleClickInterval():
            self.stop_asked.emit()
