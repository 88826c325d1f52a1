"""How a pair is to be kept in memory: fewer bits for keys and values and for the draft, and a load that may not fit."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont, QShowEvent
from PySide6.QtWidgets import QCheckBox, QComboBox, QDialog, QFormLayout, QLabel, QPushButton, QWidget

from app.core.engine_words import engine_words
from app.core.option_words import pair_words
from app.core.pair_options import PairOptions
from app.core.words import tr
from app.services.library import Possible
from app.ui import theme
from app.ui.dialog_buttons import Role, dialog_buttons
from app.ui.wheel import let_wheel_pass
from engine import PairInfo
from engine.options import BITS


class PairOptionsDialog(QDialog):
    """``kept(PairOptions)`` on either button; ``load_asked(check_memory)`` follows it where the pair is to be loaded now."""

    kept = Signal(object)
    load_asked = Signal(bool)

    def __init__(self, name: str, options: PairOptions, loaded: PairInfo | None, parent: QWidget | None = None):
        super().__init__(parent)
        self.setWindowTitle(tr("Options of this model"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self._possible = Possible()
        title = QLabel(name, wordWrap=True)
        title.setTextFormat(Qt.TextFormat.PlainText)
        title.setFont(theme.scaled_font(120, QFont.Weight.DemiBold))
        self.kv, self.draft = QComboBox(), QComboBox()
        self.kv_words, self.draft_words, self.now, self.fit, self.warning = (QLabel(wordWrap=True) for _ in range(5))
        self.anyway = QCheckBox(tr("Load it although it may not fit, this time"))
        self.load, self.keep = QPushButton(tr("Load Now")), QPushButton(tr("Keep for the Next Load"))
        for box, whole, chosen in ((self.kv, tr("Full"), options.kv_bits), (self.draft, tr("As it is stored"), options.draft_bits)):
            for bits in (None, *sorted(BITS, reverse=True)):
                box.addItem(whole if bits is None else tr("{bits} bit", bits=bits), bits)
            box.setCurrentIndex(box.findData(chosen))
        let_wheel_pass(self.kv, self.draft)
        self.now.setText(_now_words(loaded))
        self.warning.setText(
            tr("If the memory runs out, this computer becomes very slow or ends programs, this one too: save your work first.")
        )
        self._lay_out(title)
        self.kv.currentIndexChanged.connect(self._show)
        self.anyway.toggled.connect(self._show)
        self.load.clicked.connect(lambda: self._leave(load=True))
        self.keep.clicked.connect(lambda: self._leave(load=False))
        self.show_possible(self._possible)

    def _lay_out(self, title: QLabel) -> None:
        form = QFormLayout(self, fieldGrowthPolicy=QFormLayout.FieldGrowthPolicy.AllNonFixedFieldsGrow)
        form.setContentsMargins(theme.XL, theme.L, theme.XL, theme.L)
        form.setSpacing(theme.S)
        form.addRow(title)
        form.addRow(self.now)
        for name, box, words in (
            (tr("Keys and values"), self.kv, self.kv_words),
            (tr("Draft"), self.draft, self.draft_words),
        ):
            label = QLabel(name)
            label.setBuddy(box)
            box.setAccessibleName(name)
            form.addRow(label, box)
            form.addRow(words)
        form.addRow(self.fit)
        form.addRow(self.anyway)
        form.addRow(self.warning)
        self.load.setDefault(True)
        form.addRow(dialog_buttons(self, tr("Cancel"), (self.load, Role.AcceptRole), (self.keep, Role.ApplyRole)))
        for label in (self.now, self.kv_words, self.draft_words):
            label.setTextFormat(Qt.TextFormat.PlainText)
            theme.tint(label, theme.current().quiet)
        theme.tint(self.warning, theme.current().warning)
        self.setMinimumWidth(max(460, self.minimumSizeHint().width()))  # else it would take the buttons' room away

    @property
    def chosen(self) -> PairOptions:
        """What the fields hold."""
        return PairOptions(self.kv.currentData(), self.draft.currentData())

    def show_possible(self, possible: Possible) -> None:
        """What the pair's files refuse is disabled with its reason; what is set already can still be taken back."""
        self._possible = possible
        meanings = {
            "kv_bits": tr(
                "8 bit take about half the memory of 16 bit, 4 bit about a quarter: for long chats. Answers may differ a little, "
                "and on the processor a prompt takes longer to read."
            ),
            "draft_bits": tr("Takes less memory, and guesses right a little less often. Answers stay the same."),
        }
        for name, box, words in (("kv_bits", self.kv, self.kv_words), ("draft_bits", self.draft, self.draft_words)):
            refused = possible.refused.get(name)
            text = meanings[name] if refused is None else engine_words(refused)
            words.setText(text)
            box.setAccessibleDescription(text)
            box.setEnabled(refused is None or box.currentData() is not None)
        self._show()

    def _show(self) -> None:
        fit = self._possible.fits.get(self.kv.currentData())
        self.fit.setText(engine_words(fit.words) if fit is not None else "")
        self.fit.setVisible(fit is not None)
        theme.tint(self.fit, theme.current().warning if fit is not None and fit.verdict == "no" else theme.current().text)
        self.warning.setVisible(self.anyway.isChecked())
        self.keep.setEnabled(not self.anyway.isChecked())  # it holds for one load only
        self._make_room()

    def _make_room(self) -> None:
        """As high as the words need: a form does not ask for wrapped lines by itself."""
        layout = self.layout()
        assert layout is not None
        layout.activate()
        width = max(self.width(), self.minimumWidth())
        self.resize(width, layout.totalHeightForWidth(width))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._make_room()

    def _leave(self, load: bool) -> None:
        self.kept.emit(self.chosen)
        if load:
            self.load_asked.emit(not self.anyway.isChecked())
        self.close()


def _now_words(loaded: PairInfo | None) -> str:
    if loaded is None:
        return tr("What you choose counts when this model is loaded.")
    options = " · ".join(pair_words(loaded.kv_bits, loaded.draft_bits)) or tr("the defaults")
    return tr("Loaded now with: {options}. What you choose counts when it is loaded again.", options=options)
