"""Opens what other programs hand over: a link, or an exported chat from the Finder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl

from app.core.links import LinkError, prompt_of, read_chat
from app.store import StoreError

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


def open_url(window: MainWindow, url: QUrl) -> None:
    """Does what ``url`` asks for, or says why not; the window comes to the front either way."""
    window.raise_window()
    try:
        if url.isLocalFile():
            _import_chat(window, Path(url.toLocalFile()))
        elif prompt := prompt_of(url.toString(QUrl.ComponentFormattingOption.FullyEncoded)):
            window.do.new_chat()
            window.composer.set_text(prompt)
    except (LinkError, StoreError) as error:
        window.banner.show_message(str(error))


def _import_chat(window: MainWindow, path: Path) -> None:
    chat, store = read_chat(path), window.services.store
    kept = store.create_chat(chat.title)
    for message in chat.messages:
        store.add_message(kept.id, message.role, message.content, message.state, message.statistics)
    window.do.open_chat(kept.id)
