"""The Models window: models to chat with, to fetch, to look after and to delete, and the hub's search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QEvent, QPoint, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QHBoxLayout,
    QLabel,
    QMenu,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSplitter,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from app.core.downloads import Trouble, summary_words
from app.core.engine_words import engine_words
from app.core.figures import size
from app.core.model_rows import ModelRow, disk_rows, model_rows
from app.core.words import tr
from app.services.downloads import Downloads
from app.services.library import CONTEXTS, Job, Library
from app.ui import theme
from app.ui.banner import Banner
from app.ui.labels import name_buttons
from app.ui.links import open_outside
from app.ui.models.detail import MAIN, Detail, action_words
from app.ui.models.row_list import RowList
from app.ui.sidebar import SearchField
from app.ui.wheel import let_wheel_pass

SETTLE_MS = 300  # typing rests this long before the hub is asked


class ModelsWindow(QWidget):
    """``chat_asked(pair)``: load this model and chat; ``options_asked(pair, name)``: say how to keep it in memory;
    ``folder_asked()``: choose a model's folder."""

    chat_asked = Signal(str)
    options_asked = Signal(str, str)
    folder_asked = Signal()

    def __init__(self, library: Library, downloads: Downloads, is_loaded: Callable[[str], bool], parent: QWidget | None = None):
        super().__init__(parent, Qt.WindowType.Window)
        self._library, self._downloads, self._is_loaded = library, downloads, is_loaded
        self.setWindowTitle(tr("Models"))
        self.search = SearchField(placeholderText=tr("Search here and on the hub"), clearButtonEnabled=True)
        name_buttons(self.search)
        self.search.setAccessibleName(tr("Search models"))
        self.context = QComboBox()
        self.context.setAccessibleName(tr("Context that models have to fit with"))
        for tokens in CONTEXTS:
            self.context.addItem(tr("Fits with {count}k context", count=tokens // 1024), tokens)
        self.context.setCurrentIndex(self.context.findData(library.context))
        let_wheel_pass(self.context)
        self.total = QLabel()
        self.total.setFont(theme.figure_font())
        self.tabs = QTabBar(drawBase=False, expanding=False)
        self.tabs.setAccessibleName(tr("Which models"))
        self.tabs.addTab(tr("Models"))
        self.tabs.addTab(tr("On this computer"))
        self.list = RowList(tr("Models"))
        self.detail = Detail()
        self.banner = Banner()
        self.job_label, self.job_bar, self.job_stop = QLabel(), QProgressBar(textVisible=False), QPushButton(tr("Stop"))
        self.job_label.setTextFormat(Qt.TextFormat.PlainText)
        self.job_bar.setAccessibleName(tr("How far it is"))
        self.folder, self.gguf = QPushButton(tr("Open Folder …")), QPushButton(tr("Import GGUF …"))
        self._settle = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._lay_out()
        self._connect()
        self.setMinimumSize(680, 420)
        self.resize(920, 620)

    def _lay_out(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(theme.S)
        top.addWidget(self.search, 1)
        top.addWidget(self.context)
        second = QHBoxLayout()
        second.addWidget(self.tabs)
        second.addStretch(1)
        second.addWidget(self.total)
        scroll = QScrollArea(widgetResizable=True)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setAccessibleName(tr("The chosen model"))
        scroll.setWidget(self.detail)
        scroll.setMinimumWidth(self.detail.narrowest() + scroll.verticalScrollBar().sizeHint().width())
        self.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False)
        self.splitter.addWidget(self.list)
        self.splitter.addWidget(scroll)
        self.splitter.setStretchFactor(0, 3)
        self.splitter.setStretchFactor(1, 2)
        self.splitter.setSizes([540, 360])
        foot = QHBoxLayout()
        foot.setSpacing(theme.S)
        self.job_bar.setFixedSize(120, theme.S)
        for widget in (self.job_label, self.job_bar, self.job_stop):
            foot.addWidget(widget)
        foot.addStretch(1)
        foot.addWidget(self.folder)
        foot.addWidget(self.gguf)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.M, theme.L, theme.M)
        layout.setSpacing(theme.S)
        layout.addLayout(top)
        layout.addLayout(second)
        layout.addWidget(self.splitter, 1)
        layout.addWidget(self.banner)
        layout.addLayout(foot)

    def _connect(self) -> None:
        library, downloads = self._library, self._downloads
        self.search.textChanged.connect(self._on_text)
        self.search.left.connect(self.list.setFocus)
        self._settle.timeout.connect(lambda: library.search(self.search.text()))
        self.context.activated.connect(lambda _index: library.set_context(self.context.currentData()))
        self.tabs.currentChanged.connect(lambda _index: self.fill())
        self.list.chosen.connect(self._show_row)
        self.list.opened.connect(self._on_opened)
        self.list.menu_asked.connect(self._show_menu)
        self.list.delete_asked.connect(lambda row: self.act("delete", row.id))
        self.detail.asked.connect(self.act)
        self.detail.remedy_asked.connect(self._on_remedy)
        self.detail.token.saved.connect(self._on_token)
        self.detail.token.removed.connect(lambda: library.save_token("", self._show_token))
        self.detail.token.tested.connect(library.test_token)
        self.job_stop.clicked.connect(library.stop_job)
        self.folder.clicked.connect(self.folder_asked)
        self.gguf.clicked.connect(self._on_gguf)
        library.changed.connect(self.fill)
        library.job_changed.connect(self._show_job)
        library.told.connect(self.banner.show_notice)
        library.went_wrong.connect(self._on_trouble)
        downloads.changed.connect(lambda _model: self.fill())
        downloads.listed.connect(self.fill)
        for keys in (QKeySequence(QKeySequence.StandardKey.Close), QKeySequence("Escape")):
            QShortcut(keys, self, self.close)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Find), self, self.search.setFocus)
        self._show_job()
        self._show_token()

    def open(self, row_id: str = "") -> None:
        """Shows the window in front, with the row ``row_id`` selected where it is named."""
        if row_id:
            self.tabs.setCurrentIndex(0)
            self.search.clear()
            self.list.select(row_id)
        self._library.refresh()
        self.fill()
        self.show()
        self.raise_()
        self.activateWindow()

    def fill(self) -> None:
        """Shows what is known now."""
        if self.tabs.currentIndex() == 1:
            rows: list[ModelRow | str] = [*disk_rows(self._library.shelf, self.search.text())]
        else:
            rows = self._with_headings(model_rows(self._library.shelf, self._downloads.all(), self.search.text()))
        self.list.fill(rows)
        on_disk = tr("{amount} on disk", amount=size(self._library.shelf.bytes_on_disk))
        self.total.setText(" · ".join(part for part in (summary_words(self._downloads.all()), on_disk) if part))

    def act(self, action: str, row_id: str) -> None:
        """Does what a button says with the row ``row_id``."""
        row = self.list.current()
        if row is None or row.id != row_id:
            return
        self.banner.hide()  # it told what came of the last thing
        if action == "chat":
            self.chat_asked.emit(row.loads)
        elif action == "options":
            self.options_asked.emit(row.loads, row.name)
        elif action in ("get", "get anyway", "resume"):
            self._downloads.get(row_id)
        elif action == "delete":
            self._ask_delete(row)
        elif action in ("pause", "cancel"):
            {"pause": self._downloads.pause, "cancel": self._downloads.cancel}[action](row_id)
        else:
            library = self._library
            todo = {"verify": library.verify, "repair": library.repair, "import": self._import}
            todo |= {"forget": lambda folder: library.keep_folder(folder, False)}
            todo[action](row_id)

    def settle(self) -> None:
        """Drops a search that is still pending."""
        self._settle.stop()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "banner"):
            self.detail.restyle()
            self.banner.restyle()

    def closeEvent(self, event) -> None:
        self.settle()
        super().closeEvent(event)

    # What follows from it

    def _with_headings(self, rows: list[ModelRow]) -> list[ModelRow | str]:
        entries: list[ModelRow | str] = []
        titles = {"downloads": tr("Being fetched"), "ready": tr("Ready"), "catalog": tr("To get"), "hub": tr("On the hub")}
        for place, row in enumerate(rows):
            if place == 0 or row.group != rows[place - 1].group:
                entries.append(titles[row.group])
            entries.append(row)
        if self.search.text().strip() and not self._library.found:
            entries.append(self._hub_words())
        return entries

    def _hub_words(self) -> str:
        """What stands in place of the hub's models."""
        trouble = self._library.search_trouble
        if self._settle.isActive() or self._library.searching:
            return tr("On the hub: asking …")
        if trouble is not None:
            return tr("On the hub: {message}", message=engine_words(trouble.message))
        return tr("On the hub: nothing found")

    def _show_row(self, row: ModelRow | None) -> None:
        self.detail.show_row(row, busy=self._library.job is not None)

    def _on_opened(self, row: ModelRow | None) -> None:
        """Return and a double click do what the first button says."""
        if row is not None and row.actions and row.actions[0] in MAIN:
            self.act(row.actions[0], row.id)

    def _show_menu(self, row: ModelRow, place: QPoint) -> None:
        """The buttons of a row as a menu."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        for action in row.actions:
            entry = menu.addAction(action_words(action))
            entry.setEnabled(self.detail.buttons[action].isEnabled())
            entry.triggered.connect(lambda _checked=False, action=action: self.act(action, row.id))
        if row.actions:
            menu.popup(place)

    def _on_text(self, text: str) -> None:
        self._settle.start()
        self.fill()

    def _on_remedy(self, trouble: Trouble, row_id: str) -> None:
        if trouble.kind == "gated" and trouble.url:
            open_outside(QUrl(trouble.url), self)
        elif trouble.kind == "token":
            self.detail.token.field.setFocus()
        elif trouble.kind == "missing":
            self._downloads.cancel(row_id)
        else:
            self._downloads.get(row_id)

    def _on_trouble(self, trouble: Trouble) -> None:
        text = engine_words(trouble.message)
        self.banner.show_message(f"{text.rstrip('.')}: {engine_words(trouble.action)}" if trouble.action else text)

    def _on_token(self, token: str) -> None:
        """Keeps the token, then goes on with the model that asked for it."""
        row_id = self.detail.row.id if self.detail.row is not None else ""

        def go_on() -> None:
            self._show_token()
            self._downloads.get(row_id)

        self._library.save_token(token, go_on)

    def _show_token(self) -> None:
        self._library.has_token(self.detail.token.show_kept)

    def _show_job(self) -> None:
        job = self._library.job
        for widget in (self.job_label, self.job_bar, self.job_stop):
            widget.setVisible(job is not None)
        self._show_row(self.list.current())
        self.gguf.setEnabled(job is None)
        if job is None:
            return
        self.job_label.setText(_job_words(job))
        self.job_bar.setRange(0, 0 if job.fraction is None else 1000)
        self.job_bar.setValue(round(1000 * (job.fraction or 0.0)))

    def _on_gguf(self) -> None:
        name, _filter = QFileDialog.getOpenFileName(self, tr("Import GGUF"), str(Path.home()), "GGUF (*.gguf)")
        if name:
            self._library.import_gguf(Path(name))

    def _import(self, row_id: str) -> None:
        """Imports a GGUF file that another program holds."""
        found = next((model for model in self._library.shelf.installed if model.id == row_id), None)
        if found is not None:
            self._library.import_gguf(found.path)

    def _ask_delete(self, row: ModelRow) -> None:
        text = tr(
            "Delete “{name}”?\nUp to {amount} are given back; files that another model uses stay.",
            name=row.name,
            amount=size(row.bytes),
        )
        if self._is_loaded(row.id):
            text += "\n" + tr("It is loaded now and will be unloaded.")
        box = QMessageBox(QMessageBox.Icon.Warning, tr("Delete model"), text, parent=self)
        box.setTextFormat(Qt.TextFormat.PlainText)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        delete = box.addButton(tr("Delete"), QMessageBox.ButtonRole.DestructiveRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        delete.clicked.connect(lambda: self._library.delete(row.id))
        box.open()


def _job_words(job: Job) -> str:
    words = {
        "verify": tr("Checking {name}"),
        "repair": tr("Checking what to repair in {name}"),
        "delete": tr("Deleting {name}"),
        "import": tr("Importing {name}"),
    }
    return words[job.kind].format(name=job.model)
