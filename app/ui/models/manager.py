"""The main window's side of the Models window: opens it, and loads what is to be chatted with."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from app.core.engine_words import engine_words
from app.core.model_rows import display_name, standing_alone
from app.core.words import tr
from app.ui.models.options_dialog import PairOptionsDialog
from app.ui.models.window import ModelsWindow
from engine import SlipstreamError
from engine.models import PairEntry, list_pairs

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class ModelManager(QObject):
    """Makes the Models window when it is first asked for."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window = window
        self.window: ModelsWindow | None = None
        window.services.library.changed.connect(window.fill_models)
        window.services.library.deleting.connect(self._on_deleting)
        window.services.downloads.finished.connect(self._on_finished)
        window.services.downloads.failed.connect(self._on_failed)

    def show(self, row_id: str = "") -> None:
        """Opens the Models window, at the row ``row_id`` where it is named."""
        if self.window is None:
            services = self._window.services
            self.window = ModelsWindow(services.library, services.downloads, self._is_loaded, self._window)
            self.window.chat_asked.connect(self._chat)
            self.window.options_asked.connect(lambda pair, name: self.show_options(pair, name, self.window))
            self.window.folder_asked.connect(self._window.do.choose_model_folder)
        self.window.open(row_id)

    def show_options(self, pair: str, name: str, parent: QWidget | None = None) -> None:
        """Asks how ``pair`` is to be kept in memory; it is loaded anew where that is wanted."""
        services = self._window.services
        loaded = services.client.info if services.client.pair == pair else None
        dialog = PairOptionsDialog(name, services.pair_options.of(pair), loaded, parent or self._window)
        services.library.examine(pair, lambda possible: dialog.show_possible(possible) if isValid(dialog) else None)
        dialog.kept.connect(lambda options: services.pair_options.keep(pair, options))
        dialog.load_asked.connect(lambda check_memory: self._window.do.load_model(pair, check_memory))
        dialog.open()

    def pairs(self) -> list[PairEntry]:
        """The pairs of the catalog; none where it cannot be read, and the banner says why."""
        try:
            return [replace(pair, description=tr(pair.description)) for pair in list_pairs()]
        except SlipstreamError as error:
            self._window.banner.show_message(engine_words(str(error)))
            return []

    def loose(self) -> list[PairEntry]:
        """The models on this machine that can be loaded and are in no ready pair of the catalog."""
        shelf = self._window.services.library.shelf
        models = standing_alone(shelf)
        return [PairEntry(shelf.pair_of(model), display_name(model), str(model.path), "ready", model.bytes) for model in models]

    def retire(self) -> None:
        """Hides it for good."""
        if self.window is not None:
            self.window.settle()
            self.window.hide()

    def _is_loaded(self, model: str) -> bool:
        """Whether what is in memory came from the files of ``model``."""
        services = self._window.services
        return services.client.info is not None and services.library.shelf.shares_files(model, services.client.pair)

    def _on_deleting(self, model: str) -> None:
        if self._is_loaded(model):
            self._window.do.unload_model()

    def _on_finished(self, model: str) -> None:
        """Tells it where the user is."""
        if self.window is None or not self.window.isVisible():
            download = self._window.services.downloads.find(model)
            if download is not None:
                text = tr("{name} is here, checked and ready.", name=download.name)
                self._window.banner.show_notice(text, tr("Chat"), lambda: self._chat(download.loads))

    def _on_failed(self, model: str) -> None:
        download = self._window.services.downloads.find(model)
        if download is None or download.trouble is None or (self.window is not None and self.window.isVisible()):
            return
        text = f"{download.name}: {engine_words(download.trouble.message)}"
        self._window.banner.show_message(text, tr("Show"), lambda: self.show(model))

    def _chat(self, pair: str) -> None:
        self._window.do.load_model(pair)
        self._window.fill_models()
        self._window.raise_window()
        self._window.composer.setFocus()
