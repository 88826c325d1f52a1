"""What to set side by side next: two choices of arms, a button that runs them, and the way to earlier comparisons."""

from __future__ import annotations

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QPushButton, QWidget

from app.core.arms import Arm
from app.core.words import tr
from app.ui import theme
from app.ui.flow_layout import FlowLayout
from app.ui.wheel import let_wheel_pass


class CompareBar(QWidget):
    """``arms_chosen(left id, right id)`` fires on the user's choice; ``run_asked()`` and ``history_asked()`` from the buttons."""

    arms_chosen = Signal(str, str)
    run_asked = Signal()
    history_asked = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.left, self.right = QComboBox(), QComboBox()
        self.left.setAccessibleName(tr("Left arm of the next comparison"))
        self.right.setAccessibleName(tr("Right arm of the next comparison"))
        let_wheel_pass(self.left, self.right)
        self.run_button = QPushButton(tr("Compare again"))
        self.run_button.clicked.connect(self.run_asked)
        self.history_button = QPushButton(tr("Earlier comparisons …"))
        self.history_button.clicked.connect(self.history_asked)
        outer = QHBoxLayout(self)
        outer.setContentsMargins(theme.L, 0, theme.L, 0)
        layout = FlowLayout(theme.S)
        outer.addLayout(layout)
        for box in (self.left, self.right):
            box.activated.connect(self._on_chosen)
        layout.addWidget(self.left)
        beside = QLabel(tr("beside"))
        beside.setMinimumHeight(self.left.sizeHint().height())
        layout.addWidget(beside)
        layout.addWidget(self.right)
        layout.addWidget(self.run_button)
        layout.addWidget(self.history_button)

    def show_arms(self, offered: tuple[Arm, ...], chosen: tuple[Arm, Arm]) -> None:
        """What the loaded pair can do, and what is chosen."""
        for box, arm in zip((self.left, self.right), chosen, strict=True):
            box.clear()
            for possible in offered:
                box.addItem(possible.name, possible.id)
            box.setCurrentIndex(box.findData(arm.id))

    def _on_chosen(self) -> None:
        self.arms_chosen.emit(self.left.currentData(), self.right.currentData())
