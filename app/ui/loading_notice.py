"""The window's side of loading: the way back after a failed load, the remembered choice, and the load report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.engine_words import engine_words
from app.core.words import tr
from app.services.engine_client import EngineClient, EngineState
from app.ui.load_report import LoadReportDialog
from app.worker import Failure
from engine import PairInfo

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


STARTER = "starter"  # it comes with the program, so there is always one that works


class LoadingNotice(QObject):
    """Remembers a pair once it could be loaded: one that ends the program is not tried again at the next start."""

    def __init__(self, window: MainWindow, client: EngineClient):
        super().__init__(window)
        self._window, self._client = window, client
        client.load_failed.connect(self._on_failed)
        client.loaded.connect(self._on_loaded)
        self._told: tuple[str, tuple[str, ...]] = ("", ())

    def way_back(self) -> tuple[str, Callable[[], None]]:
        """A button's text and what it does where no model is loaded: the last one that worked, the starter, or the same again."""
        last = self._client.last_pair or STARTER
        if last != self._client.pair:
            name = self._window.models.name_of(last)
            return tr("Load {name}", name=name), lambda: self._window.do.load_model(last)
        return tr("Load again"), self._window.do.reload_model

    def _on_loaded(self, info: PairInfo) -> None:
        self._window.services.settings.update(pair=self._client.pair)
        found = (info.id, info.notices)
        if info.notices and found != self._told and self._window.banner.isHidden():  # else it stands beside the model's name only
            self._told = found
            self._window.banner.show_message(" ".join(engine_words(notice) for notice in info.notices))

    def _on_failed(self, failure: Failure) -> None:
        """Where the pair before stays loaded, nothing has to be mended."""
        if self._client.state is EngineState.READY:
            self._window.banner.show_message(engine_words(failure.message), until="chat")
            self._window.fill_models()
        else:
            self._window.show_failure(failure)

    def explain(self) -> None:
        """Says why nothing can be sent now, and offers to load a model where none is loaded."""
        if self._client.state in (EngineState.NO_MODEL, EngineState.LOST):
            text = tr("No model is loaded: your text stays here until one is.")
            self._window.banner.show_message(text, *self.way_back(), until="ready")
        else:
            text = tr("The engine is not ready yet: your text stays here until it is.")
            self._window.banner.show_message(text, until="ready")

    def show_report(self) -> None:
        """Says what was loaded and how."""
        if self._client.info is not None:
            LoadReportDialog(self._client.info, self._window).open()
