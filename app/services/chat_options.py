"""The open chat's options and the presets: kept with the chat, announced when they change."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from PySide6.QtCore import QObject, Signal

from app.core.chat import Chat
from app.core.options import BUILT_IN, ChatOptions, Preset, user_preset
from app.core.words import tr
from app.services.settings import SettingsService
from app.store import ChatStore, StoreError

PRESETS = "presets"
NEW = "options:new"  # what was set for a chat that has no message yet
log = logging.getLogger(__name__)


class ChatOptionsService(QObject):
    """Options of the open chat, or of the new one until its first message creates it. Setters raise ``StoreError``.

    Signals: ``changed(ChatOptions)``; ``presets_changed()``.
    """

    changed = Signal(object)
    presets_changed = Signal()

    def __init__(self, store: ChatStore, settings: SettingsService, parent: QObject | None = None):
        super().__init__(parent)
        self._store, self._settings = store, settings
        self._chat: Chat | None = None
        self._own: dict[str, Any] = {}  # what is set for the open chat alone
        self._users = self._kept_presets()
        settings.changed.connect(lambda _settings: self.changed.emit(self.current))

    @property
    def current(self) -> ChatOptions:
        """What holds for the open chat."""
        return self.default.with_values(self._own)

    @property
    def default(self) -> ChatOptions:
        """What a new chat begins with: the settings' values, then those of the preset chosen there."""
        settings = self._settings.current
        begun = ChatOptions(temperature=settings.temperature, max_tokens=settings.max_tokens)
        preset = self.preset(settings.preset)
        return begun.with_values(preset.values) if preset is not None else begun

    def follow(self, chat: Chat | None) -> None:
        """Another chat is open; None: the new one without a message, which is as it was left."""
        self._chat, self._own = chat, dict(chat.options if chat is not None else self._store.setting(NEW, {}))
        self.changed.emit(self.current)

    def created(self, chat: Chat) -> None:
        """The new chat got its first message: what was set for it is its own now, and the next one begins anew."""
        self._chat, self._own = chat, dict(chat.options)
        try:
            self._store.set_setting(NEW, {})
        except StoreError as error:
            log.warning("%s not kept: %s", NEW, error)

    @property
    def for_new_chat(self) -> dict[str, Any]:
        """What the new chat keeps: what was set, and what the chosen preset says today."""
        return self.current.values() if self._own or self.preset(self._settings.current.preset) is not None else {}

    def set(self, options: ChatOptions) -> None:
        """Sets the open chat's options."""
        checked = options.checked()
        if checked == self.current:
            return
        values = checked.values()
        if self._chat is not None:
            self._store.set_options(self._chat.id, values)
            self._chat = replace(self._chat, options=values)
        else:
            values = {} if checked == self.default else values
            self._store.set_setting(NEW, values)
        self._own = values
        self.changed.emit(checked)

    # Presets

    @property
    def presets(self) -> list[Preset]:
        """The built-in presets, then the user's own by name."""
        return [*BUILT_IN, *sorted(self._users, key=lambda preset: preset.name.casefold())]

    def preset(self, preset_id: str) -> Preset | None:
        """The preset of that id, None where there is none."""
        return next((preset for preset in self.presets if preset.id == preset_id), None)

    def matching_preset(self) -> Preset | None:
        """The preset whose every value the open chat has."""
        values = self.current.values()
        return next((preset for preset in self.presets if all(values[name] == preset.values[name] for name in preset.values)), None)

    def use_preset(self, preset_id: str) -> None:
        """Takes over what a preset sets; a built-in one leaves instructions and length alone."""
        preset = self.preset(preset_id)
        if preset is not None:
            self.set(self.current.with_values(preset.values))

    def save_preset(self, name: str) -> Preset:
        """Keeps the open chat's options under ``name``, in place of one of that name of the user's own.

        Raises ``ValueError`` for no name, and for that of a built-in one.
        """
        preset = user_preset(name, self.current.values())
        self._refuse_name_of(BUILT_IN, preset.name)
        self._keep([*(known for known in self._users if known.id != preset.id), preset])
        return preset

    def rename_preset(self, preset_id: str, name: str) -> None:
        """Renames one of the user's presets; it stays the default where it was. Raises ``ValueError`` for a name taken or empty."""
        old = self.preset(preset_id)
        if old is None or old.built_in:
            return
        new = user_preset(name, old.values)
        if new.id == old.id:
            return
        self._refuse_name_of((known for known in self.presets if known.id != old.id), new.name)
        self._keep([new if known.id == old.id else known for known in self._users])
        if self._settings.current.preset == old.id:
            self._settings.update(preset=new.id)

    def _refuse_name_of(self, presets: Iterable[Preset], name: str) -> None:
        for preset in presets:
            shown = (preset.name, tr(preset.name)) if preset.built_in else (preset.name,)
            if name.casefold() in map(str.casefold, shown):
                raise ValueError(tr("There is a preset “{name}” already: choose another name.", name=name))

    def delete_preset(self, preset_id: str) -> None:
        """Deletes one of the user's presets; chats keep what they took over from it."""
        self._keep([known for known in self._users if known.id != preset_id])
        if self._settings.current.preset == preset_id:
            self._settings.update(preset="")

    def _kept_presets(self) -> list[Preset]:
        kept = self._store.setting(PRESETS, {})
        values = kept.items() if isinstance(kept, Mapping) else ()
        return [user_preset(name, value) for name, value in values if name.strip() and isinstance(value, Mapping)]

    def _keep(self, presets: list[Preset]) -> None:
        self._store.set_setting(PRESETS, {preset.name: dict(preset.values) for preset in presets})
        self._users = presets
        self.presets_changed.emit()
