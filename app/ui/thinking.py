"""What a model thought before its answer: one line that says how long, the text itself only when asked for."""

from __future__ import annotations

from time import monotonic

from PySide6.QtCore import QMargins, Qt
from PySide6.QtGui import QPainter, QPaintEvent
from PySide6.QtWidgets import QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.core.figures import seconds
from app.core.words import tr
from app.ui import theme
from app.ui.markdown_column import MarkdownColumn


class ThinkingBlock(QWidget):
    """Hidden where nothing is thought. Folded it lays no text out, so that long thoughts cost nothing."""

    def __init__(self, text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._text_size = text_size
        self.text = ""
        self._began: float | None = None
        self._time: float | None = None
        self._live = self._cut = False
        self._column: MarkdownColumn | None = None
        self.button = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setCheckable(True)
        self.button.toggled.connect(self._unfold)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(QMargins())
        self._layout.setSpacing(theme.S)
        self._layout.addWidget(self.button)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Minimum)
        self.restyle(text_size)
        self.hide()

    def feed(self, text: str) -> None:
        """Appends to the thoughts."""
        if text:
            self.text += text
            if self._column is not None:
                self._column.feed(text)

    def show_progress(self, thinking: bool) -> None:
        """``thinking``: more thoughts come. The time shown is this clock's until the engine's own is known."""
        if thinking and self._began is None:
            self._began = monotonic()
        if self._live and not thinking and self._began is not None and self._time is None:
            self._time = monotonic() - self._began
        self._live = thinking
        self._show()

    def finish(self, cut: bool) -> None:
        """No more text comes; ``cut``: the answer ended before the thoughts did."""
        self._live, self._cut, self._began = False, cut, None
        if self._column is not None:
            self._column.finish()
        self._show()

    def show_time(self, duration_s: float) -> None:
        """How long it thought."""
        self._time = duration_s
        self._show()

    def clear(self) -> None:
        """Forgets everything."""
        self.text, self._began, self._time, self._live, self._cut = "", None, None, False, False
        self.button.setChecked(False)
        self._show()

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        self._text_size = text_size
        self.button.setFont(theme.figure_font(text_size * 92 // 100))
        palette = self.button.palette()
        palette.setColor(palette.ColorRole.ButtonText, theme.current().quiet)
        self.button.setPalette(palette)
        if self._column is not None:
            self._column.restyle(text_size * 92 // 100)
        self._show()

    def _unfold(self, open_: bool) -> None:
        if open_ and self._column is None:
            self._column = MarkdownColumn(self._text_size * 92 // 100)
            self._column.setContentsMargins(theme.L, 0, 0, 0)
            self._layout.addWidget(self._column)
            self._column.set_text(self.text.strip("\n") if not self._live else self.text, finished=not self._live)
        elif not open_ and self._column is not None:
            self._layout.removeWidget(self._column)
            self._column.hide()
            self._column.deleteLater()
            self._column = None
        self._show()

    def _show(self) -> None:
        self.setVisible(self._live or bool(self.text.strip()))
        if self._live:
            passed = monotonic() - self._began if self._began is not None else 0.0
            text = tr("Thinking … {time}", time=seconds(passed)) if passed >= 1 else tr("Thinking …")
        elif self._time is None:
            text = tr("Thoughts, cut short") if self._cut else tr("Thoughts")
        elif self._cut:
            text = tr("Thought for {time}, cut short", time=seconds(self._time))
        else:
            text = tr("Thought for {time}", time=seconds(self._time))
        self.button.setText(text)
        self.button.setArrowType(Qt.ArrowType.DownArrow if self.button.isChecked() else Qt.ArrowType.RightArrow)
        self.button.setAccessibleName(text)
        self.button.setAccessibleDescription(tr("Shows or hides what the model thought before it answered"))

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._column is not None:
            painter = QPainter(self)
            painter.fillRect(theme.S - 1, self._column.y(), 2, self._column.height(), theme.current().line)
