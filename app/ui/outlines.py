"""Outlines that can be seen around the controls of Qt's own style, which draws them in both looks too faint to find a check box."""

from __future__ import annotations

from PySide6.QtGui import QColor, QPalette
from PySide6.QtWidgets import QApplication

from app.ui.theme import blend

STYLE = "fusion"
SHARE, SHARE_IN_THE_DARK = 0.56, 0.5  # of the text's colour on the ground: three to one, as WCAG asks of a control's edges
FAINT = 0.5  # of that share, for what cannot be used now
DARKER = 140  # percent by which that style darkens the window's colour for an outline
CONTROLS = ("QCheckBox", "QRadioButton", "QComboBox", "QAbstractSpinBox", "QLineEdit", "QPushButton")


def outline_controls() -> None:
    """For the application's present palette, which every change of that takes back. A native style has outlines of its own."""
    if QApplication.style().name() != STYLE:
        return
    palette, role = QApplication.palette(), QPalette.ColorRole.Window
    colour, faint = _window_for(palette, 1.0), _window_for(palette, FAINT)
    if QApplication.palette(CONTROLS[0]).color(role) == colour:  # type: ignore[call-overload]  # it takes no bytes
        return
    palette.setColor(role, colour)  # they paint no ground, so that this colours their outline alone
    palette.setColor(QPalette.ColorGroup.Disabled, role, faint)
    for name in CONTROLS:
        QApplication.setPalette(palette, name)  # type: ignore[arg-type]


def _window_for(palette: QPalette, share: float) -> QColor:
    base, text = palette.color(QPalette.ColorRole.Base), palette.color(QPalette.ColorRole.Text)
    whole = SHARE_IN_THE_DARK if base.lightnessF() < text.lightnessF() else SHARE
    return blend(base, text, share * whole).lighter(DARKER)
