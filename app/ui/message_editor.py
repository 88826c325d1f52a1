"""Where a sent message is changed: in its own place, with Cancel and Send."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QLabel, QPushButton, QScrollArea, QVBoxLayout, QWidget

from app.core.attachments import is_editable
from app.core.chat import Attachment, ChatMessage
from app.core.words import tr
from app.ui import theme
from app.ui.attachment_chips import SentAttachments
from app.ui.prompt_edit import PromptEdit


class MessageEditor(QWidget):
    """Signals: ``submitted(text)`` by Return or Send; ``cancelled()`` by Escape or Cancel; ``files_given(list[Path])``, pasted or
    dropped.
    """

    submitted = Signal(str)
    cancelled = Signal()
    files_given = Signal(list)

    def __init__(self, text: str, text_size: int, attachments: Sequence[Attachment] = (), parent: QWidget | None = None):
        super().__init__(parent)
        self.edit, self.attachments = PromptEdit(), SentAttachments(attachments, text_size)
        self.edit.setAccessibleName(tr("Edit message"))
        self.edit.setFont(theme.scaled_font(text_size))
        self.edit.setPlainText(text)
        self.edit.moveCursor(self.edit.textCursor().MoveOperation.End)
        self.edit.submitted.connect(self._submit)
        self.send, cancel = QPushButton(tr("Send")), QPushButton(tr("Cancel"))
        self.send.clicked.connect(self._submit)
        cancel.clicked.connect(self.cancelled)
        self.edit.textChanged.connect(lambda: self.send.setEnabled(self._has_content))
        self.note = QLabel(tr("The version before stays."), wordWrap=True)
        theme.tint(self.note, theme.current().quiet)
        self.edit.pasted.connect(self._paste)
        self.edit.refused.connect(self.note.setText)
        self.edit.files_pasted.connect(self.files_given)
        buttons = QHBoxLayout()
        buttons.setSpacing(theme.S)
        buttons.addWidget(self.note, 1)
        buttons.addWidget(cancel)
        buttons.addWidget(self.send)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.S, theme.M, theme.S)
        layout.setSpacing(theme.S)
        layout.addWidget(self.attachments)  # they go along with every version
        layout.addWidget(self.edit)
        layout.addLayout(buttons)
        self.setFocusProxy(self.edit)
        self.edit.installEventFilter(self)

    @property
    def text(self) -> str:
        """What is written now."""
        return self.edit.toPlainText()

    @property
    def _has_content(self) -> bool:
        return bool(self.text.strip() or self.attachments.buttons)

    def refuse_files(self) -> None:
        """Says that files have no place here."""
        self.note.setText(tr("Files cannot be added here: send them in a new message."))

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Escape is the editor's while it has the focus, also when elsewhere it would stop an answer."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            event.accept()
        return False

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.cancelled.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        theme.paint_card(self)

    def _paste(self, text: str) -> None:
        """A long paste, which in the composer would become an attachment."""
        if is_editable(text):
            self.edit.insertPlainText(text)
        else:
            self.note.setText(tr("This paste is too long for an edited message: attach it to a new one."))

    def _submit(self) -> None:
        if self._has_content:
            self.submitted.emit(self.text)


class EditInPlace:
    """Opens an editor where a message of ``column`` stands, one at a time, in ``area``, which ``settle`` lays out.

    ``unsent`` is what was written for messages of the chat and neither sent nor cancelled; ``changed`` is called when that changes.
    ``take_chats`` is called with files that were dropped or pasted; those that it returns are refused.
    """

    def __init__(self, area: QScrollArea, column: QVBoxLayout, settle: Callable[[], None]):
        self._area, self._column, self._settle = area, column, settle
        self._message: QWidget | None = None
        self.unsent: dict[int, str] = {}
        self.changed: Callable[[], None] = lambda: None
        self.take_chats: Callable[[list[Path]], list[Path]] = lambda files: files
        self.editor: MessageEditor | None = None

    def open(self, widget: QWidget, message: ChatMessage, text_size: int, submitted: Callable[[str], None]) -> None:
        """Puts an editor in the place of ``widget``, which shows ``message``; what is sent goes to ``submitted``, and it stays.

        What was written here before and neither sent nor cancelled is there again.
        """
        self.close()
        text = self.unsent.get(message.id, message.content)
        editor = self.editor = MessageEditor(text, text_size, message.attachments, widget.parentWidget())
        editor.edit.textChanged.connect(lambda: self._note(message.id, editor.text))
        editor.submitted.connect(submitted)
        editor.cancelled.connect(lambda: self._cancel(message.id))
        editor.files_given.connect(lambda files: editor.refuse_files() if self.take_chats(files) else None)
        self._message = widget
        self._column.insertWidget(self._column.indexOf(widget) + 1, editor)
        widget.hide()
        editor.show()  # now, and not with the next event: what is hidden has no place in the layout
        self._settle()
        self._area.ensureWidgetVisible(editor)
        editor.setFocus()

    def sent(self, message_id: int) -> None:
        """What was written for a message is sent."""
        self.unsent.pop(message_id, None)
        self.changed()

    def _note(self, message_id: int, text: str) -> None:
        self.unsent[message_id] = text
        self.changed()

    def _cancel(self, message_id: int) -> None:
        self.sent(message_id)
        self.close()

    def close(self) -> None:
        """Drops the editor; the message stands as it was."""
        editor, message, self.editor, self._message = self.editor, self._message, None, None
        if editor is None or message is None:
            return
        self._column.removeWidget(editor)
        editor.hide()
        editor.deleteLater()
        message.show()
        self._area.setFocus()
