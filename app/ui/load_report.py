"""The window that says what was loaded and how: contexts, draft or why there is none, memory."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QDialogButtonBox, QFormLayout, QLabel, QWidget

from app.core.load_report import load_report, load_report_text
from app.core.words import tr
from app.ui import theme
from engine import PairInfo


class LoadReportDialog(QDialog):
    """Shows ``info`` line by line; Copy puts it on the clipboard as text."""

    def __init__(self, info: PairInfo, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("Model details"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setMinimumWidth(420)
        form = QFormLayout(self, fieldGrowthPolicy=QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        form.setSpacing(theme.S)
        for label, text in load_report(info):
            value = QLabel(text, wordWrap=True)
            value.setTextFormat(Qt.TextFormat.PlainText)
            value.setTextInteractionFlags(
                Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
            )
            value.setAccessibleName(f"{label}: {text}")
            form.addRow(label, value)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        self.copy = buttons.addButton(tr("Copy"), QDialogButtonBox.ButtonRole.ActionRole)
        self.copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(load_report_text(info)))
        buttons.rejected.connect(self.close)
        form.addRow(buttons)
