"""The files that go with a message, as chips: above the editor with a way to remove them, on a sent message to look into them."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QSizePolicy, QToolButton, QVBoxLayout, QWidget

from app.core.chat import KINDS, Attachment
from app.core.sanitize import break_long_runs
from app.core.words import tr, trn
from app.ui import theme
from app.ui.blocks import TextBlock
from app.ui.flow_layout import FlowLayout
from app.ui.labels import plain, tip

NAME_LENGTH = 32  # characters of a file's name
PREVIEW = 400  # characters in the tool tip
SHOWN = 2_000  # characters of a sent file shown at first
ROWS = 2.5  # of chips on show: half a row tells that there are more


def short_name(name: str) -> str:
    """A file's name with its end, which tells what it is, and an ellipsis in the middle where it is long."""
    half = NAME_LENGTH // 2
    return name if len(name) <= NAME_LENGTH else f"{name[:half]}…{name[-half:]}"


def document_words(attachment: Attachment, length: str) -> str:
    """What kind of document it is, how many pages of it were read, and its ``length``: "PDF · 12 pages · 3,400 tokens"."""
    pages = ""
    if attachment.pages < attachment.of_pages:
        pages = tr("{pages} of {of_pages} pages", pages=attachment.pages, of_pages=attachment.of_pages)
    elif attachment.pages:
        pages = trn("{count} page", "{count} pages", attachment.pages)
    return " · ".join(filter(None, (KINDS.get(attachment.kind, ""), pages, length)))


class Chip(QFrame):
    """The name of a file, a figure and a button. ``removed()`` comes from that, Delete and Backspace."""

    removed = Signal()

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(parent)
        self.name = name
        self._icon, self._name, self._figure = QLabel(), QLabel(short_name(name)), QLabel()
        self._icon.setAccessibleName(tr("File"))
        self._name.setTextFormat(Qt.TextFormat.PlainText)
        self._remove = QToolButton(autoRaise=True)
        self._remove.setIconSize(QSize(10, 10))
        self._remove.setAccessibleName(tr("Remove {name}", name=name))
        self._remove.setToolTip(tr("Remove"))
        self._remove.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the chip itself takes the focus, and Delete removes it
        self._remove.clicked.connect(self.removed)
        layout = QHBoxLayout(self)
        layout.setContentsMargins(theme.S, theme.XS, theme.XS, theme.XS)
        layout.setSpacing(theme.S)
        for widget in (self._icon, self._name, self._figure, self._remove):
            layout.addWidget(widget)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)

    @property
    def figure(self) -> str:
        """What is told beside the name."""
        return self._figure.text()

    def show_figure(self, words: str) -> None:
        """Tells ``words`` beside the name."""
        self._figure.setText(words)
        self.setAccessibleName(tr("Attachment {name}, {size}. Delete removes it.", name=self.name, size=words))

    def restyle(self) -> None:
        """Follows the palette."""
        colours = theme.current()
        self._icon.setPixmap(theme.icon("attach", colours.quiet).pixmap(theme.ICON))
        self._remove.setIcon(theme.icon("close", colours.quiet))
        self._figure.setFont(theme.figure_font(85))
        theme.tint(self._figure, colours.quiet)
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit()
        else:
            super().keyPressEvent(event)

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(self.palette().highlight().color() if self.hasFocus() else theme.current().line)
        painter.setBrush(theme.current().card)
        painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 6, 6)


class AttachmentChip(Chip):
    """One file that goes with the message being written."""

    def __init__(self, attachment: Attachment, parent: QWidget | None = None):
        super().__init__(attachment.name, parent)
        self.attachment = attachment
        text = attachment.text[:PREVIEW]
        self.setToolTip(tip(break_long_runs(text if len(attachment.text) <= PREVIEW else f"{text} …", 80)))
        self.show_tokens(None)
        self.restyle()

    def show_tokens(self, tokens: int | None) -> None:
        """How many tokens the file takes; characters while that is not known."""
        length = len(self.attachment.text)
        words = trn("{count} character", "{count} characters", length)
        if tokens is not None:
            words = trn("{count} token", "{count} tokens", tokens)
        self.show_figure(document_words(self.attachment, words))


class ReadingChip(Chip):
    """One document that is still being read."""

    def __init__(self, name: str, parent: QWidget | None = None):
        super().__init__(name, parent)
        self.show_pages(0, 0)
        self.restyle()

    def show_pages(self, pages: int, of_pages: int) -> None:
        """How far it is; ``of_pages`` is 0 where that is not known."""
        words = tr("reading page {page} of {pages} …", page=pages + 1, pages=of_pages) if of_pages else tr("reading …")
        self.show_figure(words)


class ChipRow(QScrollArea):
    """The chips above the editor, hidden while there are none; many of them scroll. ``changed()`` follows every file that comes or
    goes.
    """

    changed = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.chips: list[AttachmentChip] = []
        self.readings: list[ReadingChip] = []
        self._page = QWidget()
        self._layout = FlowLayout(theme.S, self._page)
        self.setWidget(self._page)
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the chips take it, and bring themselves into view
        for part in (self._page, self.viewport()):
            part.setAutoFillBackground(False)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(tr("Attachments"))
        self._high = 0  # of the scroll bar
        self.verticalScrollBar().rangeChanged.connect(self._on_range)
        self.hide()

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The files, in order."""
        return tuple(chip.attachment for chip in self.chips)

    @property
    def all(self) -> list[Chip]:
        """The chips of the files and of the documents being read."""
        return [*self.chips, *self.readings]

    def add(self, attachment: Attachment) -> AttachmentChip:
        """Appends a file."""
        chip = AttachmentChip(attachment, self._page)
        self.chips.append(chip)
        self._append(chip)
        return chip

    def add_reading(self, name: str) -> ReadingChip:
        """Appends a document that is still being read."""
        chip = ReadingChip(name, self._page)
        self.readings.append(chip)
        self._append(chip)
        return chip

    def remove(self, chip: Chip) -> None:
        """Takes a file out; the focus goes to its neighbour."""
        place, focused = self.all.index(chip), chip.hasFocus()
        self._drop(chip)
        if focused and self.all:
            neighbour = self.all[min(place, len(self.all) - 1)]
            neighbour.setFocus()
            self.ensureWidgetVisible(neighbour, 0, 0)
        elif focused:
            self.focusNextChild()
        self.changed.emit()

    def clear(self) -> None:
        """Takes all files out."""
        if self.all:
            for chip in self.all:
                self._drop(chip)
            self.changed.emit()

    def restyle(self) -> None:
        """Follows the palette."""
        for chip in self.all:
            chip.restyle()

    def _append(self, chip: Chip) -> None:
        chip.removed.connect(lambda: self.remove(chip))
        self._layout.addWidget(chip)
        self.show()
        self._fit()
        self._show_newest()
        self.changed.emit()

    def _drop(self, chip: Chip) -> None:
        self.chips = [each for each in self.chips if each is not chip]
        self.readings = [each for each in self.readings if each is not chip]
        self._layout.removeWidget(chip)
        chip.hide()
        chip.deleteLater()
        self.setVisible(bool(self.all))
        self._fit()

    def _fit(self) -> None:
        row = max((chip.sizeHint().height() for chip in self.all), default=0) + theme.S
        height = min(self._layout.heightForWidth(self.viewport().width()), int(ROWS * row))
        self.setFixedHeight(max(height, 1))

    def _show_newest(self) -> None:
        self.verticalScrollBar().setValue(self.verticalScrollBar().maximum())

    def _on_range(self, _low: int, high: int) -> None:
        grew, self._high = high > self._high, high
        if grew:
            self._show_newest()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()

    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:  # a chip got wider with its figure
            self._fit()
        return super().event(event)


class SentAttachments(QWidget):
    """The files of a sent message, each folded until its button is pressed."""

    def __init__(self, attachments: Sequence[Attachment], text_size: int, parent: QWidget | None = None):
        super().__init__(parent)
        self._files = [_SentFile(attachment, text_size) for attachment in attachments]
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.XS)
        for file in self._files:
            layout.addWidget(file, 0, Qt.AlignmentFlag.AlignTop)
        if not self._files:
            self.hide()

    @property
    def buttons(self) -> list[QToolButton]:
        """One button a file."""
        return [file.button for file in self._files]

    def restyle(self, text_size: int) -> None:
        """Follows the palette and the text size."""
        for file in self._files:
            file.restyle(text_size)


class _SentFile(QWidget):
    def __init__(self, attachment: Attachment, text_size: int):
        super().__init__()
        self._attachment, self._text_size = attachment, text_size
        self.text: TextBlock | None = None
        self.button = QToolButton(autoRaise=True, toolButtonStyle=Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.button.setCheckable(True)
        count = document_words(attachment, trn("{count} character", "{count} characters", len(attachment.text)))
        self.button.setText(plain(f"{short_name(attachment.name)} · {count}"))
        self.button.setAccessibleName(tr("Attachment {name}, {size}", name=attachment.name, size=count))
        self.button.toggled.connect(self._unfold)
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.addWidget(self.button, 0, Qt.AlignmentFlag.AlignLeft)
        self.restyle(text_size)

    def restyle(self, text_size: int) -> None:
        self._text_size = text_size
        self.button.setIcon(theme.icon("attach", theme.current().quiet))
        self.button.setFont(theme.scaled_font(text_size * 92 // 100))
        if self.text is not None:
            self.text.set_text_size(text_size * 92 // 100)

    def _unfold(self, open_: bool) -> None:
        if not open_ and self.text is not None:
            self._layout.removeWidget(self.text)
            self.text.hide()
            self.text.deleteLater()
            self.text = None
        elif open_ and self.text is None:
            self.text = TextBlock(tr("Text of {name}", name=self._attachment.name), self._text_size * 92 // 100)
            whole = self._attachment.text
            rest = len(whole) - SHOWN
            more = "\n" + trn("… and {count} more character", "… and {count} more characters", rest) if rest > 0 else ""
            self.text.show_plain(whole[:SHOWN] + more)
            self._layout.addWidget(self.text)
            self.text.fit()
