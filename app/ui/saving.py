"""Asks where to save a file, and before another file would be replaced that the system's dialog did not ask about."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QMessageBox, QWidget

from app.core.export import with_ending
from app.core.words import tr


def ask_place(parent: QWidget, title: str, suggested: str, filters: str) -> Path | None:
    """The file to write, in the home folder unless the user says otherwise; None where the user thinks better of it."""
    name, chosen = QFileDialog.getSaveFileName(parent, title, str(Path.home() / suggested), filters)
    if not name:
        return None
    path = with_ending(name, chosen)
    asked = path == Path(name)  # by the dialog itself
    return path if asked or not path.exists() or _may_replace(parent, title, path) else None


def _may_replace(parent: QWidget, title: str, path: Path) -> bool:
    question = tr("{file} is there already. Replace it?", file=path.name)
    buttons = QMessageBox.StandardButton.Yes | QMessageBox.StandardButton.Cancel
    answer = QMessageBox.question(parent, title, question, buttons, QMessageBox.StandardButton.Cancel)
    return answer == QMessageBox.StandardButton.Yes
