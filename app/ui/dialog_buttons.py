"""The row of buttons at the foot of a dialog."""

from __future__ import annotations

from PySide6.QtWidgets import QDialog, QDialogButtonBox, QPushButton

Role = QDialogButtonBox.ButtonRole


def dialog_buttons(dialog: QDialog, close: str, *buttons: tuple[QPushButton, Role]) -> QDialogButtonBox:
    """``buttons``, each with its role, and one with the text ``close`` that closes the dialog, in the order of the system."""
    row = QDialogButtonBox()
    for button, role in buttons:
        row.addButton(button, role)
    row.addButton(close, Role.RejectRole)
    row.rejected.connect(dialog.close)
    return row
