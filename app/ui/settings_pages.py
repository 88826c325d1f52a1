"""The pages of the settings window: each lays out a few values of ``SettingsService`` and changes them at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.core.figures import percent
from app.core.words import LANGUAGES, mark, tr
from app.services.settings import APPEARANCE_NAMES, MODE_NAMES, TEXT_SIZES, Settings, SettingsService
from app.ui import theme
from app.ui.wheel import let_wheel_pass

if TYPE_CHECKING:
    from app.services.learning import Learning
    from app.ui.window_actions import WindowActions

LEARNING = mark(
    "Learning makes answers faster and never changes them. The model answers the questions of your chats again, and its draft, the "
    "small model that guesses ahead, practises on those answers. It is taken into use only if it then guesses better in chats kept "
    "apart for that. Everything stays on this machine. Undo it in the Model menu: Use the Original Draft, Forget What Was Learned."
)


class Page(QWidget):
    """A form of labelled values that follow the settings, whoever changes them."""

    def __init__(self, service: SettingsService, parent: QWidget | None = None):
        super().__init__(parent)
        self.service = service
        self._following: list[Callable[[Settings], None]] = []
        self._form = QFormLayout(self)
        self._form.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        self._form.setSpacing(theme.M)
        self._form.setFieldGrowthPolicy(QFormLayout.FieldGrowthPolicy.FieldsStayAtSizeHint)
        service.changed.connect(self._follow)

    def row(self, text: str, field: QWidget) -> None:
        """A value with its name before it."""
        if isinstance(field, QComboBox | QAbstractSpinBox):
            let_wheel_pass(field)
        label = QLabel(text)
        label.setBuddy(field)
        field.setAccessibleName(text)
        self._form.addRow(label, field)

    def hint(self, text: str) -> QLabel:
        """A quiet paragraph under the rows before it."""
        label = QLabel(text, wordWrap=True)
        label.setTextFormat(Qt.TextFormat.PlainText)
        self._form.addRow(label)
        return label

    def choice(self, text: str, key: str, options: Mapping[Any, str]) -> QComboBox:
        """One of ``options`` (value to name as shown) for the setting ``key``."""
        box = QComboBox()
        for value, name in options.items():
            box.addItem(name, value)
        box.activated.connect(lambda _index: self.service.update(**{key: box.currentData()}))
        self._keep(lambda settings: box.setCurrentIndex(box.findData(getattr(settings, key))))
        self.row(text, box)
        return box

    def switch(self, text: str, key: str, words: str) -> QCheckBox:
        """On or off for the setting ``key``; ``words`` says what on means."""
        box = QCheckBox(words)
        box.toggled.connect(lambda on: self.service.update(**{key: on}))
        self._keep(lambda settings: box.setChecked(getattr(settings, key)))
        self.row(text, box)
        return box

    def button(self, text: str, run: Callable[[], None]) -> QPushButton:
        """An action that has to do with the rows before it."""
        button = QPushButton(text)
        button.setAutoDefault(False)
        button.clicked.connect(lambda _checked=False: run())
        self._form.addRow("", button)
        return button

    def _keep(self, follow: Callable[[Settings], None]) -> None:
        follow(self.service.current)
        self._following.append(follow)

    def _follow(self, settings: Settings) -> None:
        for follow in self._following:
            follow(settings)


class GeneralPage(Page):
    """Language, look and notifications."""

    def __init__(self, service: SettingsService):
        super().__init__(service)
        self.language = self.choice(tr("Language"), "language", {"system": tr("As the system"), **LANGUAGES})
        self.hint(tr("Another language is used from the next start on."))
        self.appearance = self.choice(tr("Look"), "appearance", {key: tr(name) for key, name in APPEARANCE_NAMES.items()})
        self.text_size = self.choice(tr("Text size"), "text_size", {size: percent(size / 100) for size in TEXT_SIZES})
        self.notify = self.switch(tr("Notifications"), "notify", tr("When an answer is ready and another app is in front"))


class AnswersPage(Page):
    """What shapes an answer where a chat says nothing else."""

    def __init__(self, service: SettingsService, presets: Mapping[str, str]):
        """``presets`` are names by id."""
        super().__init__(service)
        self.mode = self.choice(tr("Mode"), "mode", {mode: tr(name) for mode, name in MODE_NAMES.items()})
        self.temperature = QDoubleSpinBox(minimum=0.0, maximum=2.0, singleStep=0.1, decimals=1)
        self.temperature.valueChanged.connect(lambda value: service.update(temperature=round(value, 2)))
        self._keep(lambda settings: self.temperature.setValue(settings.temperature))
        self.row(tr("Temperature"), self.temperature)
        self.max_tokens = QSpinBox(minimum=1, maximum=32_768, singleStep=256)
        self.max_tokens.setGroupSeparatorShown(True)
        self.max_tokens.valueChanged.connect(lambda value: service.update(max_tokens=value))
        self._keep(lambda settings: self.max_tokens.setValue(settings.max_tokens))
        self.row(tr("Longest answer, in tokens"), self.max_tokens)
        self.hint(tr("Temperature 0 always takes the likeliest token: the same prompt gives the same answer."))
        self.preset = self.choice(tr("New chats begin with"), "preset", {"": tr("The values above"), **presets})
        self.hint(tr("Each chat can have its own values and instructions: View menu, Show or Hide Options of This Chat."))


class ModelsPage(Page):
    """Where models come from."""

    def __init__(self, service: SettingsService, do: WindowActions):
        super().__init__(service)
        self.pair = QLabel()
        self.pair.setTextFormat(Qt.TextFormat.PlainText)
        self._keep(lambda settings: self.pair.setText(settings.pair))
        self.row(tr("Loaded at the start"), self.pair)
        self.hint(tr("The model used last is loaded at the next start."))
        self.button(tr("Models …"), do.show_models)
        self.button(tr("Open Model Folder …"), do.choose_model_folder)


class PrivacyPage(Page):
    """What leaves this machine, and what is learned on it."""

    def __init__(self, service: SettingsService, learning: Learning, do: WindowActions):
        super().__init__(service)
        self.updates = self.switch(tr("Look for updates"), "check_updates", tr("Once a day; nothing is sent but the question"))
        self.learn = self.switch(
            tr("Learn from my chats"),
            "learn_from_chats",
            tr("When the window is not in use and the machine is on mains power"),
        )
        self.hint(tr(LEARNING))
        self._learning = learning
        self.learning = self.hint("")
        self._show_learning()
        learning.changed.connect(self._show_learning)
        self.button(tr("Forget What Was Learned …"), do.forget_learned)

    def _show_learning(self) -> None:
        self.learning.setText(self._learning.status)
        self._form.setRowVisible(self.learning, bool(self.learning.text()))  # or an empty one leaves a gap


class AdvancedPage(Page):
    """Where things lie, and what helps when something went wrong."""

    def __init__(self, service: SettingsService, folder: str, do: WindowActions):
        super().__init__(service)
        self.folder = QLineEdit(folder, readOnly=True)
        self.folder.setMinimumWidth(self.folder.fontMetrics().averageCharWidth() * 50)
        self.row(tr("Chats, settings and measurements"), self.folder)
        self.button(tr("Open Folder"), do.open_data_folder)
        self.button(tr("Show Log"), do.show_log)
        self.button(tr("Standard Settings"), self._reset)
        self.hint(tr("Standard settings change neither chats and models nor what you agreed to."))

    def _reset(self) -> None:
        kept = ("pair", "check_updates", "learn_from_chats", "language", "server_at_start", "server_key")
        self.service.update(**{name: value for name, value in asdict(Settings()).items() if name not in kept})
