"""The pane beside a chat with what is set for it alone: instructions, sampling, length, and the presets of these."""

from __future__ import annotations

from PySide6.QtCore import QMimeData, Qt, QTimer, Signal
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QDoubleSpinBox,
    QFormLayout,
    QFrame,
    QHBoxLayout,
    QLabel,
    QMenu,
    QPlainTextEdit,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSpinBox,
    QToolButton,
    QVBoxLayout,
    QWidget,
)

from app.core.options import RANGES, SEEDS, SHARES, SYSTEM_LENGTH, ChatOptions, Preset
from app.core.words import mark, tr
from app.ui import theme
from app.ui.labels import tip
from app.ui.prompt_edit import local_files
from app.ui.wheel import let_wheel_pass

SETTLE_MS = 400
NARROWEST = 280
# field: its name, step, what it does
NUMBERS: dict[str, tuple[str, float, str]] = {
    "temperature": (mark("Temperature"), 0.1, mark("0 always takes the most likely token; higher is more varied")),
    "top_p": (mark("Top-p"), 0.05, mark("Draws from the fewest tokens that together reach this share; 1 is off")),
    "top_k": (mark("Top-k"), 10, mark("Draws from that many of the most likely tokens; 0 is off")),
    "min_p": (mark("Min-p"), 0.05, mark("Leaves out tokens less likely than this share of the most likely one; 0 is off")),
    "repetition_penalty": (mark("Repetition penalty"), 0.05, mark("Above 1, tokens of the chat become less likely; 1 is off")),
    "presence_penalty": (mark("Presence penalty"), 0.1, mark("Taken once off every token that is in the answer; 0 is off")),
    "frequency_penalty": (mark("Frequency penalty"), 0.1, mark("Taken off a token for each time it is in the answer; 0 is off")),
    "max_tokens": (mark("Longest answer"), 256, mark("In tokens")),
}


class Instructions(QPlainTextEdit):
    """Takes text; files are the window's, which attaches them, where this would write their addresses."""

    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return not local_files(source) and super().canInsertFromMimeData(source)

    def insertFromMimeData(self, source: QMimeData) -> None:
        if not local_files(source):
            super().insertFromMimeData(source)


class OptionsPanel(QScrollArea):
    """Shows options and says how the user changes them. Signals: ``edited(ChatOptions)``; ``preset_chosen(id)``;
    ``save_asked()``, ``rename_asked()`` and ``delete_asked()`` for presets; ``reset_asked()``; ``close_asked()``.
    """

    edited = Signal(object)
    preset_chosen = Signal(str)
    save_asked = Signal()
    rename_asked = Signal()
    delete_asked = Signal()
    reset_asked = Signal()
    close_asked = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self._shown = ChatOptions()
        self.setAccessibleName(tr("Options of this chat"))
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._settle.timeout.connect(self.commit)
        self.preset, self.system = QComboBox(), Instructions()
        self.too_long = QLabel(wordWrap=True)
        self.too_long.hide()
        self.numbers: dict[str, QSpinBox | QDoubleSpinBox] = {name: self._number(name) for name in NUMBERS}
        self.seed, self.new_seed = QSpinBox(), QCheckBox(tr("Another for each answer"))
        self.thinking, self.drop_oldest = QComboBox(), QCheckBox(tr("Drop the oldest turns when full"))
        self.sparse, self.exact = QComboBox(), QCheckBox(tr("Exactly as plain decoding"))
        self.use_cache = QCheckBox(tr("Go on from what was read before"))
        self.more = QToolButton(autoRaise=True)
        self.more.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.more.setAccessibleName(tr("Save, rename or delete presets"))
        self.more.setToolTip(self.more.accessibleName())
        menu = QMenu(self.more)
        self.save, self.rename, self.delete = (
            menu.addAction(text) for text in (tr("Save as preset …"), tr("Rename preset …"), tr("Delete preset"))
        )
        self.more.setMenu(menu)
        self.reset = QPushButton(tr("Back to the defaults"))
        let_wheel_pass(self.preset, self.seed, self.thinking, self.sparse, *self.numbers.values())
        self._lay_out()
        self._connect()
        self.restyle()

    def _number(self, name: str) -> QSpinBox | QDoubleSpinBox:
        lowest, highest = RANGES[name]
        title, step, meaning = NUMBERS[name]
        field: QSpinBox | QDoubleSpinBox
        if name in ("top_k", "max_tokens"):
            field = QSpinBox(minimum=int(lowest), maximum=int(highest), singleStep=int(step))
            field.setGroupSeparatorShown(True)
        else:
            field = QDoubleSpinBox(decimals=2, minimum=lowest, maximum=highest, singleStep=step)
        field.setAccessibleName(tr(title))
        field.setToolTip(tr(meaning))
        field.setKeyboardTracking(False)
        field.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        field.setMinimumWidth(80)
        return field

    def _lay_out(self) -> None:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(theme.L, theme.S, theme.L, theme.L)
        form = QFormLayout()
        column.addLayout(form)
        column.addStretch(1)
        form.setSpacing(theme.S)
        form.setRowWrapPolicy(QFormLayout.RowWrapPolicy.WrapLongRows)
        title, close = QLabel(tr("Options of this chat")), QToolButton(autoRaise=True)
        title.setFont(theme.scaled_font(110))
        close.setAccessibleName(tr("Close the options"))
        close.clicked.connect(self.close_asked)
        self._close = close
        header = QHBoxLayout()
        header.addWidget(title, 1)
        header.addWidget(close)
        form.addRow(header)
        self.preset.setAccessibleName(tr("Preset"))
        self.preset.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        presets = QHBoxLayout()
        presets.addWidget(self.preset, 1)
        presets.addWidget(self.more)
        form.addRow(tr("Preset"), presets)
        self.system.setPlaceholderText(tr("What the model should know or how it should answer, before every chat turn"))
        self.system.setTabChangesFocus(True)
        self.system.setFixedHeight(self.system.fontMetrics().lineSpacing() * 7)
        self.system.setAccessibleName(tr("Instructions"))
        instructions = QVBoxLayout()
        instructions.addWidget(QLabel(tr("Instructions")))
        instructions.addWidget(self.system)
        instructions.addWidget(self.too_long)
        form.addRow(instructions)
        for name, field in self.numbers.items():
            self._row(form, tr(NUMBERS[name][0]), field)
        self.seed.setRange(0, SEEDS - 1)
        self.seed.setMinimumWidth(80)
        self.seed.setToolTip(tr("The same seed gives the same answer again"))
        self._row(form, tr("Seed"), self.seed)
        form.addRow(self.new_seed)
        for name, value in ((tr("As the model does"), None), (tr("On"), True), (tr("Off"), False)):
            self.thinking.addItem(name, value)
        self.thinking.setMinimumWidth(self.thinking.sizeHint().width())
        self._row(form, tr("Thinking"), self.thinking)
        form.addRow(self.drop_oldest)
        self._lay_out_engine(form)
        form.addRow(self.reset)
        self.setWidget(page)
        needed = page.minimumSizeHint().width() + self.verticalScrollBar().sizeHint().width()  # words are longer in some languages
        self.setMinimumWidth(max(NARROWEST, needed))

    def _lay_out_engine(self, form: QFormLayout) -> None:
        """How the prompt is read and checked: nothing of it changes what is drawn, but for a prompt read in part."""
        for share, name in SHARES.items():
            self.sparse.addItem(tr(name), share)
        label, read = QLabel(tr("Read of a long prompt")), QVBoxLayout()
        label.setBuddy(self.sparse)
        self.sparse.setAccessibleName(label.text())
        self.sparse.setMinimumWidth(self.sparse.sizeHint().width())
        read.addWidget(label)
        read.addWidget(self.sparse)
        form.addRow(read)
        self.exact.setToolTip(
            tip(
                tr(
                    "The same text as plain decoding, bit for bit, on this computer: only block lengths that were measured to give "
                    "it are used. The first answer measures them for some seconds; Stop ends that."
                )
            )
        )
        form.addRow(self.exact)
        words = tr("Off: every answer reads the whole chat anew, and nothing of what it reads is kept for the next.")
        self.use_cache.setToolTip(tip(words))
        form.addRow(self.use_cache)

    def _row(self, form: QFormLayout, text: str, field: QWidget) -> None:
        label = QLabel(text)
        label.setBuddy(field)
        field.setAccessibleName(text)
        form.addRow(label, field)

    def _connect(self) -> None:
        for field in (*self.numbers.values(), self.seed):
            field.valueChanged.connect(lambda _value: self.commit())
        for box in (self.new_seed, self.drop_oldest, self.exact, self.use_cache):
            box.toggled.connect(lambda _on: self.commit())
        for choice in (self.thinking, self.sparse):
            choice.activated.connect(lambda _index: self.commit())
        self.system.textChanged.connect(self._settle.start)
        self.system.textChanged.connect(self._tell_length)
        self.preset.activated.connect(lambda _index: self.preset_chosen.emit(self.preset.currentData() or ""))
        self.save.triggered.connect(self.save_asked)
        self.rename.triggered.connect(self.rename_asked)
        self.delete.triggered.connect(self.delete_asked)
        self.reset.clicked.connect(self.reset_asked)

    # What is on show

    def show_presets(self, presets: list[Preset], current: Preset | None) -> None:
        """Lists the presets; ``current`` None: the options are those of none."""
        self.preset.clear()
        if current is None:
            self.preset.addItem(tr("Own values"), "")
        for preset in presets:
            self.preset.addItem(tr(preset.name) if preset.built_in else preset.name, preset.id)
        self.preset.setCurrentIndex(self.preset.findData(current.id if current else ""))
        for action in (self.rename, self.delete):
            action.setEnabled(current is not None and not current.built_in)

    def show_options(self, options: ChatOptions, can_think: bool, whole_only: str = "") -> None:
        """Shows ``options`` without announcing them; ``can_think``: the model can be told to think or not; ``whole_only`` says
        why a prompt cannot be read in part."""
        self._settle.stop()
        boxes = {self.drop_oldest: options.drop_oldest, self.exact: options.exact, self.use_cache: options.use_cache}
        fields = [*self.numbers.values(), self.seed, self.new_seed, *boxes, self.system]
        for field in fields:
            field.blockSignals(True)
        for name, number in self.numbers.items():
            number.setValue(getattr(options, name))
        self.seed.setValue(options.seed or 0)
        self.new_seed.setChecked(options.seed is None)
        for box, on in boxes.items():
            box.setChecked(on)
        if self.system.toPlainText()[:SYSTEM_LENGTH] != options.system:  # what is too long stays there to be shortened
            self.system.setPlainText(options.system)
        self._tell_length()
        for field in fields:
            field.blockSignals(False)
        self.seed.setEnabled(options.seed is not None)
        self.thinking.setCurrentIndex(self.thinking.findData(options.thinking))
        self.thinking.setEnabled(can_think)
        self.thinking.setToolTip("" if can_think else tr("This model cannot be told to think or not to"))
        self.sparse.setCurrentIndex(self.sparse.findData(options.sparse))
        self.sparse.setEnabled(not whole_only or options.sparse < 1.0)  # what is set must be possible to take back
        sooner = tr("Of a long prompt only what fits the question best is read: sooner, but what is left out is not known.")
        self.sparse.setToolTip(tip(whole_only or sooner))
        self._shown = self._read()  # a field may round what it is given: that is no edit

    def commit(self) -> None:
        """Announces what the fields hold now, if that is new."""
        self._settle.stop()
        for field in (*self.numbers.values(), self.seed):
            field.interpretText()  # also what is typed without Return
        options = self._read()
        if options != self._shown:
            self.edited.emit(options)

    def _tell_length(self) -> None:
        count = self.system.document().characterCount() - 1
        self.too_long.setVisible(count > SYSTEM_LENGTH)
        words = tr("Only the first {limit} of these {count} characters count: shorten them.", limit=SYSTEM_LENGTH, count=count)
        self.too_long.setText(words)

    def _read(self) -> ChatOptions:
        return ChatOptions(
            system=self.system.toPlainText()[:SYSTEM_LENGTH],
            seed=None if self.new_seed.isChecked() else self.seed.value(),
            thinking=self.thinking.currentData(),
            drop_oldest=self.drop_oldest.isChecked(),
            sparse=self.sparse.currentData(),
            exact=self.exact.isChecked(),
            use_cache=self.use_cache.isChecked(),
            **{name: field.value() for name, field in self.numbers.items()},  # type: ignore[arg-type]
        )

    def restyle(self) -> None:
        """Follows the palette."""
        self._close.setIcon(theme.icon("close"))
        self.more.setIcon(theme.icon("more"))
        theme.tint(self.too_long, theme.current().warning)
