"""Keeps how wide the panes are and which are open, from one start to the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray
from PySide6.QtWidgets import QSplitter

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

KEY = "panes"


def save_panes(window: MainWindow) -> None:
    """Keeps the state of the window's panes."""
    state = {
        **{name: bytes(splitter.saveState().toBase64().data()).decode() for name, splitter in _splitters(window).items()},
        "sidebar": not window.sidebar.isHidden() or window.options.hid_sidebar,
        "options": not window.options.panel.isHidden(),
    }
    window.services.conversation.remember(KEY, state)


def restore_panes(window: MainWindow) -> None:
    """Brings back what ``save_panes`` kept; without it, or after a version with other panes, they stay as they are."""
    state = window.services.store.setting(KEY, {})
    if not isinstance(state, dict):
        return
    window.sidebar.setVisible(state.get("sidebar") is not False)
    window.options.set_open(state.get("options") is True)
    for name, splitter in _splitters(window).items():
        splitter.restoreState(QByteArray.fromBase64(str(state.get(name, "")).encode()))


def _splitters(window: MainWindow) -> dict[str, QSplitter]:
    return {"splitter": window.splitter, "comparison": window.compare.splitter}
