"""Where Slipstream keeps its files. ``SLIPSTREAM_HOME`` puts everything under one folder; nothing is created here."""

from __future__ import annotations

import os
from pathlib import Path

APP_NAME = "Slipstream"


def _override() -> Path | None:
    home = os.environ.get("SLIPSTREAM_HOME", "").strip()
    return Path(home).expanduser().absolute() if home else None


def data_folder() -> Path:
    """Chats, models and everything that must survive."""
    import platformdirs  # here and below not above: where it is missing the doctor still has to start

    return _override() or Path(platformdirs.user_data_dir(APP_NAME, appauthor=False))


def models_folder() -> Path:
    """Imported models, one folder each."""
    return data_folder() / "models"


def cache_folder() -> Path:
    """What can be made again: interrupted downloads, measurements."""
    import platformdirs

    override = _override()
    return override / "cache" if override else Path(platformdirs.user_cache_dir(APP_NAME, appauthor=False))


def resources_folder() -> Path:
    """The files shipped with the program: beside the code, or in the bundle."""
    import resources

    return Path(next(iter(resources.__path__)))
