"""About Slipstream: what it is, its version, and the licences of everything inside."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QHBoxLayout, QLabel, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from app.core.licences import licences
from app.core.words import mark, tr
from app.ui import theme
from engine import __version__

PURPOSE = mark("Local language models, sped up by drafts that the model checks itself.")
SIDE = 72


class AboutDialog(QDialog):
    """The licences are read when they are asked for."""

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("About Slipstream"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        picture = QLabel()
        picture.setAccessibleName(tr("Slipstream's icon"))
        picture.setPixmap(theme.app_icon().pixmap(SIDE, SIDE))
        name = QLabel(f"Slipstream {__version__}")
        name.setFont(theme.scaled_font(130, QFont.Weight.DemiBold))
        text = QVBoxLayout()
        text.addWidget(name)
        text.addWidget(QLabel(tr(PURPOSE), wordWrap=True))
        head = QHBoxLayout()
        head.setSpacing(theme.L)
        head.addWidget(picture, 0, Qt.AlignmentFlag.AlignTop)
        head.addLayout(text, 1)
        self.texts = QPlainTextEdit(readOnly=True)
        self.texts.setAccessibleName(tr("Licences"))
        self.texts.setFont(theme.code_font(90))
        self.texts.setMinimumSize(560, 320)
        self.texts.hide()
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.licences_button = QPushButton(tr("Licences"))
        buttons.addButton(self.licences_button, QDialogButtonBox.ButtonRole.ActionRole)
        self.licences_button.clicked.connect(self.show_licences)
        buttons.rejected.connect(self.close)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        whole.setSpacing(theme.M)
        whole.addLayout(head)
        whole.addWidget(self.texts, 1)
        whole.addWidget(buttons)

    def show_licences(self) -> None:
        """Unfolds the texts."""
        self.texts.setPlainText(licences())
        self.texts.show()
        self.licences_button.setEnabled(False)
        self.adjustSize()
