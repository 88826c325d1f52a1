"""A newer version is there: its notes, and the way to its download page."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtWidgets import QDialog, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.core.updates import Release
from app.core.words import tr
from app.ui import theme
from app.ui.dialog_buttons import Role, dialog_buttons
from app.ui.links import open_outside
from engine import __version__


class UpdateDialog(QDialog):
    """Opens the page in the browser where the user asks for it; nothing else happens."""

    def __init__(self, release: Release, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("A newer Slipstream"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        line = tr("Slipstream {version} is out; you have {current}. It needs macOS {macos} or newer.", version=release.version,
                  current=__version__, macos=release.minimum_macos)  # fmt: skip
        self.notes = QPlainTextEdit(release.notes, readOnly=True)
        self.notes.setAccessibleName(tr("What is new"))
        self.notes.setMinimumSize(420, 160)
        check = QLabel(tr("SHA-256 of the disk image: {digest}", digest=release.sha256), wordWrap=True)
        check.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.open_button = QPushButton(tr("Open Download Page"))
        self.open_button.clicked.connect(lambda: open_outside(QUrl(release.page), parent or self))
        self.open_button.clicked.connect(self.close)
        buttons = dialog_buttons(self, tr("Later"), (self.open_button, Role.AcceptRole))
        whole = QVBoxLayout(self)
        whole.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        whole.setSpacing(theme.M)
        for widget in (QLabel(line, wordWrap=True), self.notes, check, buttons):
            whole.addWidget(widget)
