"""The log of a run that ended badly: what it holds, to read and to copy."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.core.failure_details import failure_details
from app.core.os_words import reason
from app.core.words import mark, tr
from app.services.environment import describe
from app.ui import theme
from app.ui.dialog_buttons import Role, dialog_buttons

HOLDS = mark(
    "It says where in the program the last run ended, and the versions of Slipstream and of this system. It holds nothing of your "
    "chats, and it is sent nowhere: copy it into a report if you want us to look at it."
)
READ_LIMIT = 200_000  # characters


class CrashDialog(QDialog):
    """Shows the log at ``path`` without what might quote a chat."""

    def __init__(self, path: Path, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("What is known of the problem"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.log = QPlainTextEdit(readOnly=True)
        self.log.setAccessibleName(tr("Log of the last run"))
        self.log.setFont(theme.code_font(90))
        self.log.setMinimumSize(560, 280)
        self.log.setPlainText(failure_details(tr("the last run ended with a problem"), _read(path), describe(), None))
        self.copy_button = QPushButton(tr("Copy"))
        self.copy_button.clicked.connect(lambda: QGuiApplication.clipboard().setText(self.log.toPlainText()))
        buttons = dialog_buttons(self, tr("Close"), (self.copy_button, Role.ActionRole))
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        layout.setSpacing(theme.M)
        for widget in (QLabel(tr(HOLDS), wordWrap=True), self.log, buttons):
            layout.addWidget(widget)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")[-READ_LIMIT:]
    except OSError as error:
        return tr("{file} cannot be read ({reason}).", file=path.name, reason=reason(error))
