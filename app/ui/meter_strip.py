"""The meter along the bottom: a ribbon of recent cycles and the figures of the answer in progress, always in view."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPainter, QPaintEvent, QPen, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QMessageBox, QSizePolicy, QToolButton, QWidget

from app.core.engine_words import engine_words
from app.core.figures import percent
from app.core.meter import CHOSE_PLAIN, MeterSnapshot
from app.core.words import mark, number, tr
from app.ui import theme
from app.ui.labels import ElidedLabel, Figure, tip

GIVE_WAY = ("first", "acceptance", "tokens")  # in this order
MODE_WORDS = {"dflash": "DFlash", "baseline": mark("Plain"), "lookup": mark("Lookup"), "auto": mark("Auto")}
MOST_TOK_S = 9_999
PHASE_WORDS = {
    "idle": mark("Ready"),
    "no_model": mark("No model"),
    "loading": mark("Loading"),
    "prefill": mark("Reading the prompt"),
    "stopped": mark("Stopped"),
}


class Ribbon(QWidget):
    """One group a cycle, newest at the right: filled slots were accepted, hollow ones not, a grey dot is plain."""

    SLOT, GAP, GROUP_GAP, HEIGHT = 4, 1, 5, 14

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._snapshot = MeterSnapshot()
        self.setAccessibleName(tr("Recent cycles"))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def show_snapshot(self, snapshot: MeterSnapshot) -> None:
        """Draws the ribbon of ``snapshot``."""
        if snapshot.ribbon != self._snapshot.ribbon:
            last = snapshot.ribbon[-1] if snapshot.ribbon else None
            counts = {"accepted": last.accepted, "proposed": last.proposed} if last else {}
            self.setAccessibleDescription(tr("Last cycle: {accepted} of {proposed} accepted", **counts) if last else "")
            self.update()
        self._snapshot = snapshot

    def sizeHint(self) -> QSize:
        return QSize(160, self.HEIGHT + 4)

    def minimumSizeHint(self) -> QSize:
        return QSize(60, self.HEIGHT + 4)

    def paintEvent(self, event: QPaintEvent) -> None:
        colours, painter = theme.current(), QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        top, right = (self.height() - self.HEIGHT) / 2, float(self.width())
        for cycle in reversed(self._snapshot.ribbon):
            slots = max(cycle.proposed, 1)
            left = right - slots * (self.SLOT + self.GAP)
            if left < 0:
                break
            for slot in range(slots):
                box = QRectF(left + slot * (self.SLOT + self.GAP), top, self.SLOT, self.HEIGHT)
                if cycle.proposed == 0:
                    painter.setPen(Qt.PenStyle.NoPen)
                    painter.setBrush(colours.quiet)
                    painter.drawEllipse(box.center(), self.SLOT / 2, self.SLOT / 2)
                elif slot < cycle.accepted:
                    painter.setPen(Qt.PenStyle.NoPen)
                    painter.setBrush(colours.accent)
                    painter.drawRoundedRect(box, 1.5, 1.5)
                else:
                    painter.setPen(QPen(colours.quiet, 0.8))
                    painter.setBrush(Qt.BrushStyle.NoBrush)
                    painter.drawRoundedRect(box.adjusted(0.5, 0.5, -0.5, -0.5), 1.5, 1.5)
            right = left - self.GROUP_GAP


def _rate(tok_s: float) -> str:
    """A rate that no answer has, of a clock that stood still, must not be cut into another one."""
    return number(tok_s, ",.0f") if tok_s < MOST_TOK_S + 0.5 else f"> {number(MOST_TOK_S)}"


def figures_of(snapshot: MeterSnapshot) -> dict[str, str]:
    """The texts on show; a dash where a number is not known yet."""
    acceptance = snapshot.acceptance_rate
    tokens = snapshot.tokens_per_cycle
    first = snapshot.ttft_s
    return {
        "rate": tr("{rate} tok/s", rate=_rate(snapshot.tok_s) if snapshot.tokens else "–"),
        "tokens": tr("{tokens} tok/cycle", tokens=number(tokens, ".1f") if tokens is not None else "–"),
        "acceptance": tr("{share} accepted", share=percent(acceptance) if acceptance is not None else "–"),
        "first": tr("first {time}", time=f"{number(first, '.2f')} s" if first is not None else "–"),
    }


def status_of(snapshot: MeterSnapshot) -> str:
    """The mode while there is one to name, else what goes on."""
    if snapshot.phase == "loading":
        share = f" {percent(snapshot.load_fraction)}" if snapshot.load_fraction is not None else ""
        return (engine_words(snapshot.load_stage) or tr("Loading")) + share
    if snapshot.lent:
        return tr("Other program")
    if snapshot.phase == "prefill" and snapshot.measuring is not None:
        return tr("Measuring {share}", share=percent(snapshot.measuring))
    if snapshot.phase == "prefill" and snapshot.prefill_total:
        return tr("Reading {share}", share=percent(snapshot.prefill_done / snapshot.prefill_total))
    if snapshot.phase in ("decoding", "done") and snapshot.mode is not None:
        return mode_of(snapshot)
    return tr(PHASE_WORDS[snapshot.phase]) if snapshot.phase in PHASE_WORDS else ""


def measuring_words(snapshot: MeterSnapshot) -> str:
    """What is measured, and that it can be stopped; "" where nothing is."""
    if snapshot.measuring is None:
        return ""
    return tr("Which block lengths give exactly what plain decoding gives on this computer: measured once. Stop ends it.")


def mode_of(snapshot: MeterSnapshot) -> str:
    """The mode, as soon as it is known."""
    mode = tr(MODE_WORDS[snapshot.mode or "auto"])
    return tr("{mode}, parked", mode=mode) if snapshot.parked else mode


class MeterStrip(QWidget):
    """``reason_asked(str)`` fires when the user asks why speculation is off, ``details_asked()`` on a click, ``server_asked()`` on
    one on the server's sign.
    """

    reason_asked = Signal(str)
    details_asked = Signal()
    server_asked = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._snapshot = MeterSnapshot()
        self.setAccessibleName(tr("Meter"))
        self.ribbon = Ribbon()
        self.figures = {
            "rate": Figure(tr("Tokens per second"), tr("{rate} tok/s", rate="> 8,888")),
            "tokens": Figure(tr("Tokens per cycle"), tr("{tokens} tok/cycle", tokens="88.8")),
            "acceptance": Figure(tr("Accepted of the proposed tokens"), tr("{share} accepted", share="100 %")),
            "first": Figure(tr("Time to the first token"), tr("first {time}", time="888.88 s")),
        }
        self.status = Figure(tr("Mode and state"), tr("Reading the prompt"))
        self.status.setAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.note = ElidedLabel()
        self.note.setAccessibleName(tr("Learning"))
        self.note.hide()
        self.reason = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.reason.setText(tr("Why?"))
        self.reason.setAccessibleName(tr("Why speculation is off"))
        self.reason.clicked.connect(self.show_reason)
        self.server = QToolButton(autoRaise=True)
        self.server.clicked.connect(self.server_asked)
        self.server.hide()
        keep = self.reason.sizePolicy()
        keep.setRetainSizeWhenHidden(True)  # so that nothing moves when it comes and goes
        self.reason.setSizePolicy(keep)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.M, theme.XS, theme.M, theme.XS)
        layout.setSpacing(theme.M)
        layout.addWidget(self.server)
        layout.addWidget(self.ribbon, 1)
        layout.addWidget(self.note, 4)
        for figure in self.figures.values():
            layout.addWidget(figure)
        layout.addWidget(self.status)
        layout.addWidget(self.reason)
        self.setFixedHeight(self.fontMetrics().height() + 2 * theme.S + 2)
        self.show_snapshot(self._snapshot)
        self._needed = self.minimumSizeHint().width()

    def show_snapshot(self, snapshot: MeterSnapshot) -> None:
        """Shows the numbers of ``snapshot``."""
        self._snapshot = snapshot
        self.ribbon.show_snapshot(snapshot)
        for key, text in figures_of(snapshot).items():
            if self.figures[key].text() != text:
                self.figures[key].setText(text)
        words = status_of(snapshot)
        whole = tr("An answer for another program ({mode})", mode=mode_of(snapshot)) if snapshot.lent else words
        self.status.setText(self.status.fontMetrics().elidedText(words, Qt.TextElideMode.ElideRight, self.status.width()))
        self.status.setToolTip(tip(" · ".join(filter(None, (whole, measuring_words(snapshot), snapshot.options)))))
        self.figures["first"].setToolTip(": ".join(filter(None, (self.figures["first"].accessibleName(), snapshot.cache))))
        self.reason.setVisible(snapshot.off_reason is not None)
        self.reason.setToolTip(tip(engine_words(snapshot.off_reason or "")))
        self._colour()

    def show_note(self, text: str) -> None:
        """One line beside the ribbon; none where ``text`` is empty."""
        self.note.setText(text)
        self.note.setVisible(bool(text))

    def show_server(self, url: str) -> None:
        """The sign that other programs may ask, and where; none where ``url`` is empty."""
        address = url.removeprefix("http://").removesuffix("/v1")
        self.server.setText(address)
        self.server.setAccessibleName(tr("Server at {address}", address=address))
        self.server.setToolTip(tr("Other programs may ask at {url}", url=url))
        self.server.setVisible(bool(url))
        self._fit(self.width())

    def _fit(self, width: int) -> None:
        """Where the words are too long for a narrow window the sign loses its own, and figures that stand elsewhere give way."""
        needed, style = self._needed, Qt.ToolButtonStyle
        if not self.server.isHidden():
            self.server.setToolButtonStyle(style.ToolButtonIconOnly)
            needed += self.server.sizeHint().width() + theme.M
            text = self.server.fontMetrics().horizontalAdvance(self.server.text()) + theme.L
            if width >= needed + text:
                self.server.setToolButtonStyle(style.ToolButtonTextBesideIcon)
        for name in GIVE_WAY:
            fits = width >= needed
            self.figures[name].setVisible(fits)
            needed -= 0 if fits else self.figures[name].width() + theme.M

    def show_reason(self) -> None:
        """Says in words why nothing is proposed, or nothing drafted."""
        if self._snapshot.off_reason is None:
            return
        self.reason_asked.emit(self._snapshot.off_reason)
        looked_up = self._snapshot.mode == "lookup" and not self._snapshot.parked
        title = tr("Lookup instead of a draft") if looked_up else tr("Speculation is off")
        box = QMessageBox(QMessageBox.Icon.Information, title, engine_words(self._snapshot.off_reason), parent=self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.open()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit(event.size().width())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if event.button() is Qt.MouseButton.LeftButton and self.rect().contains(event.position().toPoint()):
            self.details_asked.emit()

    def restyle(self) -> None:
        """Follows the palette."""
        self._colour()
        self.ribbon.update()

    def _colour(self) -> None:
        colours, snapshot = theme.current(), self._snapshot
        # The accent is kept for speculation that pays: tokens committed beyond the one a plain step gives.
        pays = snapshot.mode in ("dflash", "lookup") and (snapshot.tokens_per_cycle or 0) > 1 and not snapshot.parked
        for key in ("rate", "tokens", "acceptance"):
            theme.tint(self.figures[key], colours.accent if pays else colours.quiet)
        theme.tint(self.figures["first"], colours.quiet)
        theme.tint(self.note, colours.quiet)
        self.server.setIcon(theme.icon("server", colours.quiet))
        fell_back = snapshot.off_reason not in (None, CHOSE_PLAIN)
        theme.tint(self.status, colours.warning if fell_back else colours.text)
        self.reason.setIcon(theme.icon("warning", colours.warning if fell_back else colours.quiet))
