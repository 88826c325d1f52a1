"""What tests of the Models window share: reading its rows, choosing one, pressing its buttons, searching."""

from __future__ import annotations

from PySide6.QtCore import Qt

from app.core.model_rows import ModelRow


def names(manager) -> list[str]:
    """Headings and rows as they stand in the list."""
    return [entry.name if isinstance(entry, ModelRow) else entry for entry in manager.list.rows.entries]


def wait_row(qtbot, manager, row_id: str, timeout: int = 20_000) -> ModelRow:
    """Waits until there is a row, selects it and returns it."""
    qtbot.waitUntil(lambda: manager.list.rows.find(row_id).isValid(), timeout=timeout)
    manager.list.select(row_id)
    return manager.list.current()


def press(qtbot, manager, action: str) -> None:
    """Clicks a button of the detail pane, which has to be there."""
    button = manager.detail.buttons[action]
    assert not button.isHidden() and button.isEnabled(), f"{action} is not offered"
    qtbot.mouseClick(button, Qt.MouseButton.LeftButton)


def shown_actions(manager) -> set[str]:
    return {action for action, button in manager.detail.buttons.items() if not button.isHidden()}


def search(qtbot, manager, text: str) -> None:
    """Types a search and waits for the hub's answer."""
    manager.search.clear()
    qtbot.keyClicks(manager.search, text)
    library = manager._library
    qtbot.waitUntil(lambda: not manager._settle.isActive() and not library.searching, timeout=20_000)
