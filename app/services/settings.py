"""What the user prefers: typed, checked, kept in the chat file's settings table, and announced when it changes."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, Protocol, get_args

from PySide6.QtCore import QObject, Signal

from app.core.arms import DFLASH, PLAIN, arm_of
from app.core.words import LANGUAGES, mark
from app.store import StoreError

ChatMode = Literal["dflash", "baseline", "compare"]
Appearance = Literal["system", "light", "dark"]
MODE_NAMES: dict[ChatMode, str] = {"dflash": "DFlash", "baseline": mark("Plain"), "compare": mark("Side by side")}
log = logging.getLogger(__name__)
APPEARANCE_NAMES: dict[Appearance, str] = {"system": mark("As the system"), "light": mark("Light"), "dark": mark("Dark")}
KEY = "settings"
TEXT_SIZES = (85, 100, 115, 130, 150)


class KeyValueStore(Protocol):
    """The two calls that settings need of ``ChatStore``."""

    def setting(self, key: str, default: Any = None) -> Any: ...

    def set_setting(self, key: str, value: Any) -> None: ...


@dataclass(frozen=True, slots=True)
class Settings:
    """``temperature`` 0 is greedy, ``max_tokens`` bounds one answer, ``text_size`` is in percent of the system font.

    ``language`` is "system" or a code and counts from the next start; ``notify``: say so when an answer is ready and the user away.
    ``preset`` is the id of the preset that new chats begin with, "": the values above.
    ``arms`` are the two ways of decoding to set side by side, by id.
    The local server: its ``server_port``; whether it starts with the program (``_at_start``), asks for a key that lies in the
    keychain (``_key``), and lets other computers ask (``_open``, never without a key); the web pages that may ask (``_origins``).
    """

    temperature: float = 0.0
    max_tokens: int = 1024
    mode: ChatMode = "dflash"
    text_size: int = 100
    pair: str = "starter"
    check_updates: bool = False
    learn_from_chats: bool = False
    language: str = "system"
    appearance: Appearance = "system"
    notify: bool = True
    preset: str = ""
    arms: tuple[str, str] = (PLAIN.id, DFLASH.id)
    server_port: int = 8000
    server_at_start: bool = False
    server_key: bool = False
    server_open: bool = False
    server_origins: str = ""

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
            appearance=self.appearance if self.appearance in APPEARANCE_NAMES else "system",
            notify=self.notify is not False,
            preset=str(self.preset),
            arms=_arms(self.arms),
            server_port=min(max(int(self.server_port), 1), 65_535),
            server_at_start=self.server_at_start is True,
            server_key=self.server_key is True or self.server_open is True,
            server_open=self.server_open is True,
            server_origins=str(self.server_origins),
        )


def _arms(values: Any) -> tuple[str, str]:
    """Two arms by id, the standard ones where ``values`` names none."""
    given = [*values, "", ""] if isinstance(values, list | tuple) else ["", ""]
    left, right = (str(value) if arm_of(str(value)) else arm.id for value, arm in zip(given[:2], (PLAIN, DFLASH), strict=True))
    return left, right


def _numbered(values: dict[str, Any]) -> dict[str, Any]:
    """Version 1 had no number and no choice of language, look and notifications: all take their defaults."""
    return values


# MIGRATIONS[n - 1] brings settings from version n to n + 1. Never change a step that was released: append one.
MIGRATIONS: list[Callable[[dict[str, Any]], dict[str, Any]]] = [_numbered]


def newest() -> int:
    """The version that this program writes."""
    return len(MIGRATIONS) + 1


def version_of(values: Any) -> int:
    """The version that wrote ``values``; 1 where that is not said."""
    version = values.get("version", 1) if isinstance(values, dict) else 1
    return version if isinstance(version, int) and version >= 1 else 1


def parse(values: Any) -> Settings:
    """Reads settings of any version: older ones step by step, of newer ones what is known; what is unusable takes its default."""
    known = {field.name for field in fields(Settings)}
    try:
        current = dict(values)
        for step in MIGRATIONS[version_of(values) - 1 :]:
            current = step(current)
        return Settings(**{key: value for key, value in current.items() if key in known}).checked()
    except (ValueError, TypeError, OverflowError):
        return Settings()


class SettingsService(QObject):
    """``changed(Settings)`` follows every real change; writing is immediate.

    Settings of a newer version are never written over: this version keeps its own beside them.
    """

    changed = Signal(object)

    def __init__(self, store: KeyValueStore, parent: QObject | None = None):
        super().__init__(parent)
        self._store, self._key = store, KEY
        kept = store.setting(KEY, {})
        if version_of(kept) > newest():
            self._key = f"{KEY}_{newest()}"
            kept = store.setting(self._key, kept)
        self.current = parse(kept)

    def update(self, **values: object) -> None:
        """Changes some fields, for example ``update(mode="compare")``; it takes effect even where it cannot be kept."""
        new = replace(self.current, **values).checked()  # type: ignore[arg-type]
        if new != self.current:
            self.current = new
            self.changed.emit(new)
            try:
                self._store.set_setting(self._key, {**asdict(new), "version": newest()})
            except StoreError as error:
                log.warning("settings not kept: %s", error)  # they hold until the program ends
