"""Draws every picture of the bundle from vector sources: app and document icons, their variants, the disk image's background.

``python -m bundle.icons FOLDER``. Needs neither a screen nor a Qt application, as long as no picture holds text.
"""

from __future__ import annotations

import sys
from pathlib import Path

import icnsutil
from PySide6.QtCore import QBuffer, QRectF
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from bundle.project import ROOT

# The entries that Apple's own iconutil writes: code and side in pixels; 16 and 32 at one to one are ARGB, the rest PNG.
ENTRIES = {
    "ic04": 16,
    "ic05": 32,
    "ic11": 32,
    "ic12": 64,
    "ic07": 128,
    "ic13": 256,
    "ic08": 256,
    "ic14": 512,
    "ic09": 512,
    "ic10": 1024,
}
ARGB = ("ic04", "ic05")
VARIANTS = ("app", "app-dark", "app-tinted")
DOTS_PER_METRE = 2835  # 72 an inch
BACKGROUND = (350, 150)  # the inner size of the window that Briefcase gives the disk image


def draw(root: Path, folder: Path) -> None:
    """Fills ``folder``: slipstream.icns, document.icns, a 1024-pixel PNG of each variant, and disk-image.png."""
    sources = root / "resources" / "icons"
    folder.mkdir(parents=True, exist_ok=True)
    _icns(sources / "app.svg", folder / "slipstream.icns")
    _icns(sources / "document.svg", folder / "document.icns")
    for name in VARIANTS:
        (folder / f"{name}.png").write_bytes(_png(_render(sources / f"{name}.svg", 1024, 1024)))
    (folder / "disk-image.png").write_bytes(_png(_render(sources / "disk-image.svg", *BACKGROUND)))


def _render(source: Path, width: int, height: int) -> QImage:
    renderer = QSvgRenderer(str(source))
    if not renderer.isValid():
        raise ValueError(f"{source} is no picture that Qt can draw")
    image = QImage(width, height, QImage.Format.Format_ARGB32)
    image.fill(0)
    image.setDotsPerMeterX(DOTS_PER_METRE)  # else the screen's, so that every machine draws the same bytes
    image.setDotsPerMeterY(DOTS_PER_METRE)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, width, height))
    painter.end()
    return image


def _png(image: QImage) -> bytes:
    buffer = QBuffer()
    buffer.open(QBuffer.OpenModeFlag.WriteOnly)
    if not image.save(buffer, "PNG"):  # type: ignore[call-overload]
        raise ValueError("the picture cannot be written as PNG")
    return bytes(buffer.data().data())


def _argb(image: QImage) -> bytes:
    """The packed form of the two smallest sizes: one channel after the other."""
    held = image.convertToFormat(QImage.Format.Format_RGBA8888)  # a name of its own: its bits go when it does
    pixels = bytes(held.constBits())
    return b"ARGB" + b"".join(icnsutil.PackBytes.pack(list(pixels[channel::4])) for channel in (3, 0, 1, 2))


def _icns(source: Path, file: Path) -> None:
    """Every size is drawn from the vector source, none is scaled from another."""
    made = icnsutil.IcnsFile()
    for code, side in ENTRIES.items():
        image = _render(source, side, side)
        made.add_media(code, data=_argb(image) if code in ARGB else _png(image))
    made.write(str(file), toc=False)


if __name__ == "__main__":
    draw(ROOT, Path(sys.argv[1]))
