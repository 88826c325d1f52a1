"""Opens what other programs hand over: a link, or exported chats from the Finder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl

from app.core.links import LinkError, prompt_of

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


def open_url(window: MainWindow, url: QUrl) -> None:
    """Does what ``url`` asks for, or says why not; the window comes to the front either way."""
    window.raise_window()
    try:
        if url.isLocalFile():
            window.services.transfer.import_files([Path(url.toLocalFile())])
        elif prompt := prompt_of(url.toString(QUrl.ComponentFormattingOption.FullyEncoded)):
            window.do.new_chat()
            window.composer.append(prompt)  # below what was written there before
    except LinkError as error:
        window.banner.show_message(str(error))
