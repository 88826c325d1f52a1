"""A newer version is there: its notes, and the way to its download page."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.core.updates import Release
from app.ui import theme
from engine import __version__


class UpdateDialog(QDialog):
    """Opens the page in the browser where the user asks for it; nothing else happens."""

    def __init__(self, release: Release, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle("A newer Slipstream")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        line = f"Slipstream {release.version} is out; you have {__version__}. It needs macOS {release.minimum_macos} or newer."
        self.notes = QPlainTextEdit(release.notes, readOnly=True)
        self.notes.setAccessibleName("What is new")
        self.notes.setMinimumSize(420, 160)
        check = QLabel(f"SHA-256 of the disk image: {release.sha256}", wordWrap=True)
        check.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.open_button = QPushButton("Open Download Page")
        self.open_button.clicked.connect(lambda: QDesktopServices.openUrl(QUrl(release.page)))
        self.open_button.clicked.connect(self.close)
        buttons = QDialogButtonBox()
        buttons.addButton(self.open_button, QDialogButtonBox.ButtonRole.AcceptRole)
        buttons.addButton("Later", QDialogButtonBox.ButtonRole.RejectRole)
        buttons.rejected.connect(self.close)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        whole.setSpacing(theme.M)
        for widget in (QLabel(line, wordWrap=True), self.notes, check, buttons):
            whole.addWidget(widget)
