"""The options of each pair: kept in the settings, and used at its next load."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace

from PySide6.QtCore import QObject, Signal

from app.core.pair_options import PairOptions
from app.services.settings import KeyValueStore
from app.store import StoreError
from app.worker import OPTIONS
from engine import LoadOptions

KEY = "pair_options"
log = logging.getLogger(__name__)


class PairOptionsService(QObject):
    """``changed(pair)`` follows every change; pairs are named by what loads them."""

    changed = Signal(str)

    def __init__(self, store: KeyValueStore, parent: QObject | None = None):
        super().__init__(parent)
        self._store = store
        kept = store.setting(KEY, {})
        values = kept.items() if isinstance(kept, Mapping) else ()
        self._chosen = {str(pair): PairOptions.of(value) for pair, value in values}

    def of(self, pair: str) -> PairOptions:
        """What is chosen for ``pair``."""
        return self._chosen.get(pair, PairOptions())

    @property
    def all(self) -> dict[str, PairOptions]:
        """What is chosen, by pair."""
        return dict(self._chosen)

    def keep(self, pair: str, options: PairOptions) -> None:
        """Chooses ``options`` for the next load of ``pair``; they hold for this run even where they cannot be kept."""
        if options == self.of(pair):
            return
        self._chosen[pair] = options
        try:
            self._store.set_setting(KEY, {name: chosen.values() for name, chosen in self._chosen.items() if chosen.values()})
        except StoreError as error:
            log.warning("%s not kept: %s", KEY, error)
        self.changed.emit(pair)

    def load_options(self, pair: str) -> LoadOptions:
        """How to load ``pair`` now."""
        chosen = self.of(pair)
        return replace(OPTIONS, kv_bits=chosen.kv_bits, draft_bits=chosen.draft_bits)
