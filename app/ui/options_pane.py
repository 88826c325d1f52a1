"""The window's side of a chat's options: keeps the pane and the service together, and asks for the names of presets."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtWidgets import QInputDialog, QToolButton

from app.core.option_words import whole_only
from app.core.words import tr
from app.store import StoreError
from app.ui import theme
from app.ui.options_panel import OptionsPanel

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


ROOM = 920  # pixels for all three panes
NARROWEST_WINDOW, NARROWEST_CHAT = 720, 460  # without the pane


class OptionsPane(QObject):
    """``panel`` is hidden until asked for; ``button`` in the window's header shows and hides it. ``hid_sidebar``: for its room."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._options = window, window.services.conversation.options
        self.panel, self.button = OptionsPanel(), QToolButton(autoRaise=True)
        self.panel.hide()
        self.hid_sidebar = False
        self.button.setCheckable(True)
        self.button.setIconSize(QSize(16, 16))
        self.button.setAccessibleName(tr("Options of this chat"))
        self.button.setToolTip(tr("Instructions, sampling and presets of this chat"))
        self.button.clicked.connect(self.toggle)
        self.restyle()
        panel, options = self.panel, self._options
        panel.edited.connect(lambda values: self._try(lambda: options.set(values)))
        panel.preset_chosen.connect(lambda preset: self._try(lambda: options.use_preset(preset)))
        panel.reset_asked.connect(lambda: self._try(lambda: options.set(options.default)))
        panel.save_asked.connect(self.save_preset)
        panel.rename_asked.connect(self.rename_preset)
        panel.delete_asked.connect(self.delete_preset)
        panel.close_asked.connect(self.toggle)
        window.services.conversation.leaving.connect(panel.commit)
        options.changed.connect(lambda _options: self.show())
        options.presets_changed.connect(self.show)
        window.services.client.loaded.connect(lambda _info: self.show())
        window.installEventFilter(self)
        self.show()

    def show(self) -> None:
        """Follows the service."""
        info = self._window.services.client.info
        self.panel.show_presets(self._options.presets, self._options.matching_preset())
        self.panel.show_options(self._options.current, info is not None and info.thinking_switch, whole_only(info))

    def toggle(self) -> None:
        """Shows or hides the pane; shown, it has the focus."""
        self.set_open(self.panel.isHidden())
        if not self.panel.isHidden():
            self.panel.preset.setFocus()
        else:
            self._window.composer.setFocus()

    def set_open(self, open_: bool) -> None:
        """Shows or hides the pane."""
        if not open_:
            self.panel.commit()
        self.panel.setVisible(open_)
        self.button.setChecked(open_)
        self._make_room()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Resize:
            self._make_room()
        return False

    def _make_room(self) -> None:
        """In a narrow window the list of chats gives way while the pane is open; where that is not enough the window widens."""
        narrow = not self.panel.isHidden() and self._window.width() < ROOM
        sidebar = self._window.sidebar
        if narrow and not sidebar.isHidden():
            self.hid_sidebar = True
            sidebar.hide()
        elif not narrow and self.hid_sidebar:
            self.hid_sidebar = False
            sidebar.show()
        both = NARROWEST_CHAT + self._window.splitter.handleWidth() + self.panel.minimumWidth()
        self._window.setMinimumWidth(NARROWEST_WINDOW if self.panel.isHidden() else max(NARROWEST_WINDOW, both))

    def restyle(self) -> None:
        """Follows the palette."""
        self.button.setIcon(theme.icon("sliders"))
        self.panel.restyle()

    def save_preset(self) -> None:
        """Asks for a name and keeps the options under it."""
        self.panel.commit()
        self._ask(tr("Save preset"), "", self._options.save_preset)

    def rename_preset(self) -> None:
        """Asks for another name of the preset on show."""
        preset = self._options.matching_preset()
        if preset is not None and not preset.built_in:
            self._ask(tr("Rename preset"), preset.name, lambda name: self._options.rename_preset(preset.id, name))

    def delete_preset(self) -> None:
        """Deletes the preset on show; the chat keeps its values."""
        preset = self._options.matching_preset()
        if preset is not None:
            self._try(lambda: self._options.delete_preset(preset.id))

    def _ask(self, title: str, name: str, then: Callable[[str], object]) -> None:
        dialog = QInputDialog(self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(title)
        dialog.setLabelText(tr("Name"))
        dialog.setTextValue(name)
        dialog.textValueSelected.connect(lambda text: self._try(lambda: then(text)))
        dialog.open()

    def _try(self, work: Callable[[], object]) -> None:
        try:
            work()
        except (StoreError, ValueError) as error:
            self._window.banner.show_message(str(error), until="chat")
            self.show()
