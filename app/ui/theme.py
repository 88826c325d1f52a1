"""Colours, spacing, fonts and icons, all derived from the native palette and the system font."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

from PySide6.QtCore import QByteArray, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontDatabase, QFontMetrics, QGuiApplication, QIcon, QImage, QPainter, QPalette, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QWidget

XS, S, M, L, XL = 4, 8, 12, 16, 24
COLUMN_CHARACTERS = 76  # a line that can be read
FOOT_CHARACTERS = 108  # the message field has its buttons and figures in one row
ICON = QSize(16, 16)
SELECTED = "#2878c2"  # white can be read on it, and as a ring it is seen on both looks' grounds
OWN_PALETTE = "slipstream palette"


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of the moment. ``accent`` means one thing: speculation paying off. ``quiet`` is plain decoding."""

    dark: bool
    text: QColor
    quiet: QColor
    accent: QColor
    warning: QColor
    warning_back: QColor
    error: QColor
    card: QColor
    line: QColor


def use_appearance(appearance: str) -> None:
    """"light" or "dark", or what the system says, now and whenever it changes."""
    hints, schemes = QGuiApplication.styleHints(), {"light": Qt.ColorScheme.Light, "dark": Qt.ColorScheme.Dark}
    hints.setColorScheme(schemes.get(appearance, Qt.ColorScheme.Unknown))
    if hints.colorScheme() is not Qt.ColorScheme.Unknown:
        return  # the platform has both looks and follows
    application = QGuiApplication.instance()
    assert application is not None
    if appearance in schemes:
        application.setProperty(OWN_PALETTE, True)
        QApplication.setPalette(_palette(appearance == "dark"))
    elif application.property(OWN_PALETTE):
        application.setProperty(OWN_PALETTE, False)
        QApplication.setPalette(QPalette())


def _palette(dark: bool) -> QPalette:
    """Both looks for platforms that have but one."""
    palette = QPalette(QColor("#3a3a3c"), QColor("#2a2a2c")) if dark else QPalette(QColor("#f0f0f0"), QColor("#f0f0f0"))
    palette.setColor(QPalette.ColorRole.Base, QColor("#1e1e20" if dark else "#ffffff"))
    palette.setColor(QPalette.ColorRole.PlaceholderText, QColor("#98989d" if dark else "#6e6e73"))
    palette.setColor(QPalette.ColorRole.Highlight, QColor(SELECTED))
    palette.setColor(QPalette.ColorRole.HighlightedText, QColor("#ffffff"))
    palette.setColor(QPalette.ColorRole.Link, QColor("#6cb0ff" if dark else "#0a5cc2"))
    return palette


def current() -> Theme:
    """The theme of the application's present palette."""
    palette = QApplication.palette()
    base, text = palette.color(QPalette.ColorRole.Base).rgb(), palette.color(QPalette.ColorRole.Text).rgb()
    return _from_colours(base, text, wants_contrast())


def wants_contrast() -> bool:
    """Whether the system asks for more contrast, as far as this Qt can tell."""
    hints = QGuiApplication.styleHints()
    if not hasattr(hints, "accessibility"):  # before Qt 6.10
        return False
    accessibility = hints.accessibility()
    return accessibility.contrastPreference() is Qt.ContrastPreference.HighContrast


@lru_cache(maxsize=8)
def _from_colours(base_rgb: int, text_rgb: int, contrast: bool) -> Theme:
    base, text = QColor(base_rgb), QColor(text_rgb)
    dark = base.lightnessF() < text.lightnessF()
    return Theme(
        dark=dark,
        text=text,
        quiet=blend(base, text, 0.85 if contrast else 0.62),
        accent=QColor("#3ecf9a") if dark else QColor("#0a7a56"),
        warning=QColor("#f0b45a") if dark else QColor("#8a5200"),
        warning_back=QColor("#3a2f1a") if dark else QColor("#fdf1db"),
        error=QColor("#ff8a80") if dark else QColor("#b3261e"),
        card=blend(base, text, 0.06),
        line=blend(base, text, 0.6 if contrast else 0.16),
    )


def blend(under: QColor, over: QColor, share: float) -> QColor:
    """``share`` of ``over`` on ``under``, each channel on its own."""

    def mix(low: int, high: int) -> int:
        return round(low + (high - low) * share)

    return QColor(mix(under.red(), over.red()), mix(under.green(), over.green()), mix(under.blue(), over.blue()))


def tint(label: QWidget, colour: QColor) -> None:
    """Gives a label a text colour without a style sheet, so that everything else follows the palette."""
    palette = label.palette()
    for role in (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text):  # which one counts depends on what is behind
        palette.setColor(role, colour)
    label.setPalette(palette)


def column_width(font: QFont, characters: int = COLUMN_CHARACTERS) -> int:
    """Pixels of a column of so many average characters of ``font``, its margins included."""
    return QFontMetrics(font).averageCharWidth() * characters + 2 * M


def scaled_font(percent: int = 100, weight: QFont.Weight | None = None) -> QFont:
    """The system font at ``percent`` of its size."""
    font = QFont(QApplication.font())
    font.setPointSizeF(max(font.pointSizeF(), 1.0) * percent / 100)
    if weight is not None:
        font.setWeight(weight)
    return font


def figure_font(percent: int = 100, weight: QFont.Weight | None = None) -> QFont:
    """The system font with digits of one width, for numbers that change."""
    font = scaled_font(percent, weight)
    font.setFeature(QFont.Tag("tnum"), 1)
    return font


def code_font(percent: int = 100) -> QFont:
    """The system's fixed-width font, as large as the text around it."""
    font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
    font.setPointSizeF(max(QApplication.font().pointSizeF(), 1.0) * percent / 100)
    return font


@lru_cache(maxsize=64)
def _svg(name: str) -> bytes:
    return (files("resources") / "icons" / f"{name}.svg").read_bytes()


def icon(name: str, colour: QColor | None = None) -> QIcon:
    """One of our icons in ``colour`` (the text colour by default), sharp on every screen."""
    return _icon(name, (colour or QApplication.palette().color(QPalette.ColorRole.ButtonText)).rgba())


@lru_cache(maxsize=256)  # a long chat shows the same few some hundred times
def _icon(name: str, rgba: int) -> QIcon:
    drawn = QIcon()
    for mode, alpha in ((QIcon.Mode.Normal, 1.0), (QIcon.Mode.Disabled, 0.4)):
        shade = QColor.fromRgba(rgba)
        shade.setAlphaF(alpha)
        for scale in (1, 2, 3):
            pixmap = QPixmap.fromImage(_drawn(name, ICON.width() * scale, shade.rgba()))
            pixmap.setDevicePixelRatio(scale)
            drawn.addPixmap(pixmap, mode)
    return drawn


def app_icon() -> QIcon:
    """The program's own icon, in its own colours."""
    drawn = QIcon()
    for side in (16, 32, 64, 128, 256, 512):
        drawn.addPixmap(QPixmap.fromImage(_drawn("app", side, None)))
    return drawn


@lru_cache(maxsize=512)
def _drawn(name: str, side: int, rgba: int | None) -> QImage:
    """An icon of ``side`` pixels in one colour, or its own. Kept, because a chat shows hundreds and each takes time to draw."""
    image = QImage(side, side, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(_svg(name))).render(painter, QRectF(0, 0, side, side))
    if rgba is not None:
        painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
        painter.fillRect(image.rect(), QColor.fromRgba(rgba))
    painter.end()
    return image


def paint_card(widget: QWidget) -> None:
    """The rounded ground behind code and the user's messages; call from ``paintEvent``."""
    painter = QPainter(widget)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(current().card)
    painter.drawRoundedRect(widget.rect(), S, S)
