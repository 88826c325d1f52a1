"""What the user prefers: typed, checked, kept in the chat file's settings table, and announced when it changes."""

from __future__ import annotations

import logging
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Protocol, get_args

from PySide6.QtCore import QObject, Signal

from app.core.words import LANGUAGES, mark
from app.store import StoreError

ChatMode = Literal["dflash", "baseline", "compare"]
MODE_NAMES: dict[ChatMode, str] = {"dflash": "DFlash", "baseline": mark("Plain"), "compare": mark("Side by side")}
log = logging.getLogger(__name__)
TEXT_SIZES = (85, 100, 115, 130, 150)


class KeyValueStore(Protocol):
    """The two calls that settings need of ``ChatStore``."""

    def setting(self, key: str, default: Any = None) -> Any: ...

    def set_setting(self, key: str, value: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """``temperature`` 0 is greedy, ``max_tokens`` bounds one answer, ``text_size`` is in percent of the system font."""

    temperature: float = 0.0
    max_tokens: int = 1024
    mode: ChatMode = "dflash"
    text_size: int = 100
    pair: str = "starter"
    check_updates: bool = False
    learn_from_chats: bool = False
    language: str = "system"

    def checked(self) -> Settings:
        """The nearest valid settings, so that an edited or damaged file never stops the app."""
        return Settings(
            temperature=min(max(float(self.temperature), 0.0), 2.0),
            max_tokens=min(max(int(self.max_tokens), 1), 32_768),
            mode=self.mode if self.mode in get_args(ChatMode) else "dflash",
            text_size=min(TEXT_SIZES, key=lambda size: abs(size - int(self.text_size))),
            pair=str(self.pair) or "starter",
            check_updates=self.check_updates is True,  # nothing but a clear yes is one
            learn_from_chats=self.learn_from_chats is True,
            language=self.language if self.language in LANGUAGES else "system",
        )


def parse(values: Any) -> Settings:
    """Reads settings written by any version: unknown keys are dropped, missing or unusable ones take their defaults."""
    known = {field.name for field in fields(Settings)}
    try:
        return Settings(**{key: value for key, value in dict(values).items() if key in known}).checked()
    except (ValueError, TypeError, OverflowError):
        return Settings()


class SettingsService(QObject):
    """``changed(Settings)`` follows every real change; writing is immediate."""

    changed = Signal(object)

    def __init__(self, store: KeyValueStore, parent: QObject | None = None):
        super().__init__(parent)
        self._store = store
        self.current = parse(store.setting("settings", {}))

    def update(self, **values: object) -> None:
        """Changes some fields, for example ``update(mode="compare")``; it takes effect even where it cannot be kept."""
        new = replace(self.current, **values).checked()  # type: ignore[arg-type]
        if new != self.current:
            self.current = new
            self.changed.emit(new)
            try:
                self._store.set_setting("settings", asdict(new))
            except StoreError as error:
                log.warning("settings not kept: %s", error)  # they hold until the program ends
