"""Opens files and addresses with other programs: what an answer links to only after the user has seen where it leads."""

from __future__ import annotations

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QMessageBox, QWidget

from app.core.words import tr

SAFE_SCHEMES = ("http", "https", "mailto")
SHOWN = 400  # characters of an address


def ask_to_open(url: QUrl, parent: QWidget) -> QMessageBox | None:
    """Asks before a web or mail address is opened; anything else an answer links to is ignored (None)."""
    if url.scheme().lower() not in SAFE_SCHEMES:
        return None
    address = bytes(url.toEncoded().data()).decode("ascii")  # so that letters that look alike give themselves away
    shown = address if len(address) <= SHOWN else f"{address[: SHOWN // 2]} … {address[-SHOWN // 2 :]}"
    box = QMessageBox(QMessageBox.Icon.Question, tr("Open link"), tr("Open this address outside Slipstream?"), parent=parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(shown)
    box.addButton(tr("Open"), QMessageBox.ButtonRole.AcceptRole).clicked.connect(lambda: open_outside(url, parent))
    _offer_copy(box, address)
    cancel = box.addButton(QMessageBox.StandardButton.Cancel)
    box.setDefaultButton(cancel)
    box.setEscapeButton(cancel)
    box.open()
    return box


def open_outside(url: QUrl, parent: QWidget) -> None:
    """Opens a file, a folder or an address with the program that the system has for it; where there is none, says so."""
    if QDesktopServices.openUrl(url):
        return
    place = url.toLocalFile() if url.isLocalFile() else url.toString()
    text = tr("No program on this computer opens this: copy the address and open it elsewhere.")
    box = QMessageBox(QMessageBox.Icon.Warning, tr("Open"), text, parent=parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setInformativeText(place)
    _offer_copy(box, place)
    box.setEscapeButton(box.addButton(QMessageBox.StandardButton.Close))
    box.open()


def _offer_copy(box: QMessageBox, address: str) -> None:
    copy = box.addButton(tr("Copy address"), QMessageBox.ButtonRole.ActionRole)
    copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(address))
