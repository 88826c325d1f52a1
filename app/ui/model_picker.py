"""The model menu in the header: the pairs on this machine, what the engine is doing, and how far loading is."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLabel, QProgressBar, QPushButton, QToolButton, QWidget

from app.core.engine_words import engine_words
from app.core.option_words import pair_tag, pair_words
from app.core.words import tr
from app.services.engine_client import EngineState
from app.ui import theme
from app.ui.labels import tip
from app.ui.wheel import let_wheel_pass
from engine import LoadProgress, PairInfo
from engine.models import PairEntry

NAME_CHARACTERS = 40


class ModelPicker(QWidget):
    """``chosen(pair)`` fires on the user's choice; ``folder_asked()`` and ``more_asked()`` from the last rows.

    ``load_asked()`` comes from the button shown while no model is loaded, ``report_asked()`` from the one while one is.
    """

    chosen = Signal(str)
    folder_asked = Signal()
    more_asked = Signal()
    load_asked = Signal()
    report_asked = Signal()

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.state = QLabel()
        self.state.setAccessibleName(tr("Engine state"))
        self.progress = QProgressBar(textVisible=False, maximum=0)
        self.progress.setAccessibleName(tr("Loading progress"))
        self.progress.setFixedWidth(96)
        self.progress.setFixedHeight(theme.S)
        self.load = QPushButton(tr("Load"))
        self.load.setToolTip(tr("Load the chosen model"))
        self.load.clicked.connect(self.load_asked)
        self.details = QToolButton(autoRaise=True)
        self.details.setAccessibleName(tr("Model details"))
        self.details.setToolTip(tr("What was loaded and how"))
        self.details.clicked.connect(self.report_asked)
        self.options = QLabel()
        self.options.setAccessibleName(tr("How the model is kept in memory"))
        self.options.hide()
        self.box = QComboBox()
        self.box.setAccessibleName(tr("Model"))
        self.box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
        self.box.activated.connect(self._on_activated)
        let_wheel_pass(self.box)
        self.box.setMaximumWidth(NAME_CHARACTERS * self.fontMetrics().averageCharWidth())
        self._pair, self._without_model = "", True
        self._shown: tuple[list[PairEntry], str] | None = None
        layout = QHBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(theme.S)
        layout.addWidget(self.state, 0, Qt.AlignmentFlag.AlignRight)
        for widget in (self.progress, self.load, self.box, self.options, self.details):
            layout.addWidget(widget)
        self.setFocusProxy(self.box)

    def fill(self, entries: list[PairEntry], pair: str) -> None:
        """Lists those of ``entries`` that can be loaded, with ``pair`` chosen, which may be a folder that is not among them."""
        self._pair = pair
        shown = (entries, pair)
        if shown == self._shown and self.box.currentData() == pair:
            return  # an open menu must not be taken away from under the mouse
        self._shown = shown
        self.box.clear()
        for entry in entries:
            if entry.state != "ready" and entry.id not in (pair, "starter"):
                continue
            suffix = "" if entry.state == "ready" else f" ({tr(entry.state)})"
            self.box.addItem(entry.name + suffix, entry.id)
            self.box.setItemData(self.box.count() - 1, tip(entry.description), Qt.ItemDataRole.ToolTipRole)
        if self.box.findData(pair) < 0:
            self.box.addItem(_last_part(pair), pair)
        self.box.insertSeparator(self.box.count())
        self.box.addItem(tr("Open model folder …"), None)
        self.box.addItem(tr("Get more models …"), None)
        self.box.setCurrentIndex(self.box.findData(pair))
        self.box.view().setMinimumWidth(self.box.view().sizeHintForColumn(0) + theme.XL)  # names are cut in the header only

    def name_of(self, pair: str) -> str:
        """How ``pair`` is called in the list."""
        index = self.box.findData(pair)
        return self.box.itemText(index) if index >= 0 else _last_part(pair)

    def show_state(self, state: EngineState, info: PairInfo | None) -> None:
        """What the engine is doing, in words."""
        loading = state is EngineState.LOADING
        self.progress.setVisible(loading)
        if loading:
            self.progress.setRange(0, 0)
        self.state.setText(tr(state.value))
        warn = state in (EngineState.LOST, EngineState.NO_MODEL)
        theme.tint(self.state, theme.current().warning if warn else theme.current().quiet)
        self._without_model = warn
        self.load.setVisible(warn)
        self.details.setVisible(info is not None)
        self.details.setIcon(theme.icon("info", theme.current().quiet))
        self._show_options(info)
        words = ""
        if info is not None:
            length = info.block_length
            drafted = tr("draft {name}, block length {length}", name=info.draft_name, length=length)
            draft = drafted if info.draft_name else engine_words(info.no_draft_reason or "")
            device = tr("{dtype} on {device}", dtype=info.dtype, device=info.device)
            context = tr("context {count} tokens", count=info.context_length)
            words = f"{info.name} · {draft} · {device} · {context}"
            words = " · ".join((words, *map(engine_words, info.notices)))
        self.box.setToolTip(tip(words))

    def _show_options(self, info: PairInfo | None) -> None:
        """Beside the name, where the model is not kept as it comes."""
        kept = (info.kv_bits, info.draft_bits) if info is not None else (None, None)
        self.options.setText(pair_tag(*kept))
        self.options.setToolTip(" · ".join(pair_words(*kept)))
        self.options.setAccessibleDescription(self.options.toolTip())
        self.options.setVisible(bool(self.options.text()))
        theme.tint(self.options, theme.current().quiet)

    def show_progress(self, progress: LoadProgress) -> None:
        """One step of loading."""
        self.state.setText(engine_words(progress.stage))
        if progress.fraction is None:
            self.progress.setRange(0, 0)
        else:
            self.progress.setRange(0, 1000)
            self.progress.setValue(round(progress.fraction * 1000))

    def _on_activated(self, index: int) -> None:
        data = self.box.itemData(index)
        if data is None:
            self.box.setCurrentIndex(self.box.findData(self._pair))
            (self.more_asked if index == self.box.count() - 1 else self.folder_asked).emit()
        elif data != self._pair or self._without_model:
            self._pair = data
            self.chosen.emit(data)


def _last_part(pair: str) -> str:
    return pair.rstrip("/").rsplit("/", 1)[-1] or pair
