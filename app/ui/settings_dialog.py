"""The settings window: the few values that shape an answer and the look; every change takes effect at once."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QDoubleSpinBox,
    QFormLayout,
    QLabel,
    QSpinBox,
    QWidget,
)

from app.services.learning import Learning
from app.services.settings import MODE_NAMES, TEXT_SIZES, SettingsService
from app.ui import theme

LEARNING = (
    "Learning makes answers faster and never changes them. The model answers the questions of your chats again, and its draft, the "
    "small model that guesses ahead, practises on those answers. It is taken into use only if it then guesses better in chats kept "
    "apart for that. Everything stays on this machine. Undo it in the Model menu: Use the Original Draft, Forget What Was Learned."
)


class SettingsDialog(QDialog):
    """Edits ``SettingsService`` in place; Close is the only button."""

    def __init__(self, service: SettingsService, learning: Learning, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle("Settings")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._settings = service
        current = service.current
        self.temperature = QDoubleSpinBox(minimum=0.0, maximum=2.0, singleStep=0.1, decimals=1, value=current.temperature)
        self.max_tokens = QSpinBox(minimum=1, maximum=32_768, singleStep=256, value=current.max_tokens)
        self.mode, self.text_size = QComboBox(), QComboBox()
        for mode, name in MODE_NAMES.items():
            self.mode.addItem(name, mode)
        for size in TEXT_SIZES:
            self.text_size.addItem(f"{size} %", size)
        self.mode.setCurrentIndex(self.mode.findData(current.mode))
        self.text_size.setCurrentIndex(self.text_size.findData(current.text_size))
        self.temperature.valueChanged.connect(lambda value: service.update(temperature=round(value, 2)))
        self.max_tokens.valueChanged.connect(lambda value: service.update(max_tokens=value))
        self.mode.activated.connect(lambda _index: service.update(mode=self.mode.currentData()))
        self.text_size.activated.connect(lambda _index: service.update(text_size=self.text_size.currentData()))
        self.updates = QCheckBox("Once a day; nothing is sent but the question")
        self.updates.setChecked(current.check_updates)
        self.updates.toggled.connect(lambda on: service.update(check_updates=on))
        self.learn = QCheckBox("When the window is not in use and the machine is on mains power")
        self.learn.setChecked(current.learn_from_chats)
        self.learn.toggled.connect(lambda on: service.update(learn_from_chats=on))
        self.learning = QLabel(learning.status, wordWrap=True)
        learning.changed.connect(self._show_learning)
        self._learning = learning
        form = QFormLayout(self)
        form.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        form.setSpacing(theme.M)
        for text, field in (
            ("Temperature", self.temperature),
            ("Longest answer, in tokens", self.max_tokens),
            ("Mode", self.mode),
            ("Text size", self.text_size),
            ("Look for updates", self.updates),
            ("Learn from my chats", self.learn),
        ):
            field.setAccessibleName(text)
            form.addRow(text, field)
        hint = QLabel("Temperature 0 always takes the likeliest token: the same prompt gives the same answer.", wordWrap=True)
        form.addRow(hint)
        form.addRow(QLabel(LEARNING, wordWrap=True))
        form.addRow(self.learning)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Close)
        buttons.rejected.connect(self.close)
        form.addRow(buttons)

    def _show_learning(self) -> None:
        self.learning.setText(self._learning.status)
        if self.learn.isChecked() != self._settings.current.learn_from_chats:
            self.learn.setChecked(self._settings.current.learn_from_chats)
