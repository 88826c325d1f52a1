"""The window's side of loading: the way back after a failed load, the remembered choice, and the load report."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.engine_words import engine_words
from app.core.option_words import pair_words
from app.core.words import tr
from app.services.engine_client import EngineClient, EngineState
from app.ui.load_report import LoadReportDialog
from app.worker import Failure
from engine import PairInfo

if TYPE_CHECKING:
    from app.ui.banner import Second
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
        """Where the pair before stays loaded, nothing has to be mended; what an option may have to do with it is said."""
        asked, banner, text = self._client.asked, self._window.banner, engine_words(failure.message)
        options = " · ".join(pair_words(asked.kv_bits, asked.draft_bits))
        if options:
            text = tr("{what} It was to be loaded with: {options}.", what=text, options=options)
        pair, ready = self._client.asked_pair, self._client.state is EngineState.READY
        second: Second | None = None
        if options or failure.too_large:
            name = self._window.models.name_of(pair)
            second = tr("Options of this model …"), lambda: self._window.model_manager.show_options(pair, name)
        if ready:
            banner.show_message(text, until="chat", second=second)
            self._window.fill_models()
        elif second is not None and not failure.is_bug:
            banner.show_message(text, *self.way_back(), until="ready", second=second)
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
