"""The field for the hub's access token: shown where a model asks for one, kept in the keychain, never shown again."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QGridLayout, QLabel, QLineEdit, QPushButton, QWidget

from app.core.words import tr
from app.ui import theme


class TokenBox(QWidget):
    """``saved(str)`` has a token to keep, ``tested()`` asks whether the kept one is valid, ``removed()`` forgets it."""

    saved = Signal(str)
    tested = Signal()
    removed = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.label = QLabel(tr("Access token of the hub, kept in this computer's keychain"), wordWrap=True)
        self.field = QLineEdit(echoMode=QLineEdit.EchoMode.Password)
        self.field.setAccessibleName(tr("Access token"))
        self.field.returnPressed.connect(self._on_save)
        self.save = QPushButton(tr("Save"))
        self.save.clicked.connect(self._on_save)
        self.test = QPushButton(tr("Test"))
        self.test.clicked.connect(self.tested)
        self.remove = QPushButton(tr("Remove"))
        self.remove.clicked.connect(self.removed)
        self.field.textChanged.connect(lambda text: self.save.setEnabled(bool(text.strip())))
        layout = QGridLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.S)
        layout.addWidget(self.label, 0, 0, 1, 4)
        layout.addWidget(self.field, 1, 0, 1, 4)
        for column, button in enumerate((self.save, self.test, self.remove)):
            layout.addWidget(button, 2, column)
        layout.setColumnStretch(3, 1)
        self.show_kept(False)

    def show_kept(self, kept: bool) -> None:
        """Whether the keychain holds a token; the token itself is not shown."""
        self.field.clear()
        self.field.setPlaceholderText(tr("A token is kept") if kept else tr("hf_…"))
        self.save.setEnabled(False)
        self.test.setEnabled(kept)
        self.remove.setEnabled(kept)

    def _on_save(self) -> None:
        token = self.field.text().strip()
        if token:
            self.saved.emit(token)
