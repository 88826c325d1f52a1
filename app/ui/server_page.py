"""The settings' page of the local server: on and off, who may ask, how to ask, and what was asked last."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QHideEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QWidget,
)

from app.core.origins import not_origins
from app.core.server_words import curl_example
from app.core.words import mark, tr
from app.services.engine_client import EngineClient
from app.services.server import LocalServer, ServerState
from app.services.settings import SettingsService
from app.ui import theme
from app.ui.request_list import RequestList
from app.ui.settings_pages import Page

A_PAGE = "http://localhost:3000"
WIDTH = 52  # characters of the example's longest line
HIDDEN_KEY = "sk-…"
OPEN = mark(
    "Let other computers ask?\n"
    "Everyone in your network who has the key can then use the model on this computer, and what is sent is not encrypted. "
    "Do this in networks you trust only."
)


class ServerPage(Page):
    """Who may ask is changed while the server is off: what it was started with holds until it is stopped."""

    def __init__(self, service: SettingsService, server: LocalServer, client: EngineClient):
        super().__init__(service)
        self._server, self._client = server, client
        self.on = QCheckBox(tr("Other programs on this computer may ask the loaded model"))
        self.on.clicked.connect(lambda on: server.start() if on else server.stop())
        self.row(tr("Server"), self.on)
        self.state = self.hint("")
        self.other_port = self.button("", self._use_free_port)
        self.url = QLineEdit(readOnly=True)
        self.row(tr("Base URL"), self._beside(tr("Base URL"), self.url, (tr("Copy"), tr("Copy the base URL"), self._copy_url)))
        self.example = QPlainTextEdit(readOnly=True, tabChangesFocus=True, lineWrapMode=QPlainTextEdit.LineWrapMode.NoWrap)
        self.example.setFont(theme.code_font())
        self.example.setFixedHeight(self.example.fontMetrics().lineSpacing() * 4 + theme.L)
        self.example.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        copy = (tr("Copy"), tr("Copy the example"), self._copy_example)
        self.row(tr("Example"), self._beside(tr("Example"), self.example, copy))
        self.at_start = self.switch(tr("At the start"), "server_at_start", tr("Start the server with Slipstream"))
        self._set_up_who_may_ask()
        self.requests = RequestList(server)
        self._form.addRow(QLabel(tr("Last requests")))
        self._form.addRow(self.requests)
        self.hint(tr("Only what stands here is noted, until the server is started anew: never a word of a question or an answer."))
        server.changed.connect(self.show_state)
        client.state_changed.connect(self.show_state)
        self._keep(lambda _settings: self.show_state())
        server.find_key()

    def _set_up_who_may_ask(self) -> None:
        service = self.service
        self.port = QSpinBox(minimum=1, maximum=65_535)
        self.port.editingFinished.connect(lambda: service.update(server_port=self.port.value()))
        self._keep(lambda settings: self.port.setValue(settings.server_port))
        self.row(tr("Port"), self.port)
        self.asks_key = QCheckBox(tr("Every program must send the key"))
        self.asks_key.clicked.connect(self._ask_for_key)
        self._keep(lambda settings: self.asks_key.setChecked(settings.server_key))
        self.row(tr("API key"), self.asks_key)
        self.new_key, self.copy_key = QPushButton(tr("New Key")), QPushButton(tr("Copy Key"))
        self.new_key.clicked.connect(self._server.make_key)
        self.copy_key.clicked.connect(lambda: QGuiApplication.clipboard().setText(self._server.key))
        self._form.addRow("", self._in_line(self.new_key, self.copy_key))
        self.key_note = self.hint(tr("The keychain does not take the key: it holds until Slipstream ends."))
        self.origins = QLineEdit(placeholderText=A_PAGE)
        self.origins.setMinimumWidth(self.origins.fontMetrics().averageCharWidth() * WIDTH)
        self.origins.editingFinished.connect(lambda: service.update(server_origins=self.origins.text().strip()))
        self._keep(lambda settings: self.origins.setText(settings.server_origins))
        self.row(tr("Web pages that may ask"), self.origins)
        self.origins_note = self.hint("")
        self.open = QCheckBox(tr("Other computers in the network may ask, with the key"))
        self.open.clicked.connect(self._open_up)
        self._keep(lambda settings: self.open.setChecked(settings.server_open))
        self.row(tr("Network"), self.open)
        self.locked = self.hint(tr("To change these, stop the server first."))

    # What the user does

    def _use_free_port(self) -> None:
        problem = self._server.problem
        if problem is not None and problem.free_port is not None:
            self._server.use_port(problem.free_port)

    def _copy_url(self) -> None:
        QGuiApplication.clipboard().setText(self._server.url)

    def _copy_example(self) -> None:
        """With the real key, so that it works where it is pasted."""
        wants_key = self.service.current.server_key
        QGuiApplication.clipboard().setText(curl_example(self._server.url, (self._server.key or HIDDEN_KEY) if wants_key else ""))

    def _ask_for_key(self, on: bool) -> None:
        if on:
            self._server.ask_for_key()
        else:
            self.service.update(server_key=False)

    def _open_up(self, on: bool) -> None:
        self.open.setChecked(self.service.current.server_open)
        if not on:
            self.service.update(server_open=False)
            return
        box = QMessageBox(QMessageBox.Icon.Warning, tr("Other computers"), tr(OPEN), parent=self)
        box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        allow = box.addButton(tr("Let them ask"), QMessageBox.ButtonRole.AcceptRole)
        box.setDefaultButton(box.addButton(QMessageBox.StandardButton.Cancel))
        allow.clicked.connect(self._allow)
        box.open()

    def _allow(self) -> None:
        self._server.ask_for_key()
        self.service.update(server_open=True)

    def hideEvent(self, event: QHideEvent) -> None:
        """What was typed and not finished counts, too."""
        self.service.update(server_port=self.port.value(), server_origins=self.origins.text().strip())
        super().hideEvent(event)

    # What is shown

    def show_state(self) -> None:
        """Follows the server, the settings and the model."""
        server, settings = self._server, self.service.current
        state, problem = server.state, server.problem
        self.on.setChecked(state in (ServerState.STARTING, ServerState.ON))
        self.state.setText(self._words())
        theme.tint(self.state, theme.current().warning if problem is not None else theme.current().text)
        free = problem.free_port if problem is not None else None
        self.other_port.setVisible(free is not None)
        self.other_port.setText(tr("Use Port {port}", port=str(free)))
        self.url.setText(server.url)
        self.example.setPlainText(curl_example(server.url, HIDDEN_KEY if settings.server_key else ""))
        off = state is ServerState.OFF
        for field in (self.port, self.new_key, self.origins, self.open):
            field.setEnabled(off)
        self.asks_key.setEnabled(off and not settings.server_open)
        self.copy_key.setEnabled(bool(server.key) and settings.server_key)
        self.key_note.setVisible(not server.key_kept)
        self.locked.setVisible(not off)
        wrong = not_origins(settings.server_origins)
        self.origins_note.setVisible(bool(wrong))
        text = tr("{words} is no web page's address: write it as http://localhost:3000, or * for all.", words=", ".join(wrong))
        self.origins_note.setText(text)

    def _words(self) -> str:
        server, info = self._server, self._client.info
        if server.problem is not None:
            return server.problem.text
        if server.state is ServerState.ON and info is None:
            return tr("The server is on, but no model is loaded: programs are told so.")
        return {
            ServerState.OFF: tr("The server is off."),
            ServerState.STARTING: tr("The server is starting."),
            ServerState.ON: tr("Answering with {model}, one request at a time.", model=info.name if info is not None else ""),
            ServerState.STOPPING: tr("The server is stopping: what is being sent is sent to its end."),
        }[server.state]

    # Small parts

    def _beside(self, name: str, field: QWidget, copy: tuple[str, str, Callable[[], None]]) -> QWidget:
        """A field with its button for the clipboard; ``copy`` is that one's text, name and action."""
        field.setAccessibleName(name)
        field.setMinimumWidth(field.fontMetrics().horizontalAdvance("x") * WIDTH + theme.L)
        button = QPushButton(copy[0])
        button.setAccessibleName(copy[1])
        button.clicked.connect(copy[2])
        whole = self._in_line(field, button)
        whole.setFocusProxy(field)
        return whole

    def _in_line(self, *widgets: QWidget) -> QWidget:
        whole = QWidget()
        line = QHBoxLayout(whole)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(theme.S)
        for widget in widgets:
            if isinstance(widget, QPushButton):
                widget.setAutoDefault(False)
            line.addWidget(widget, 0, Qt.AlignmentFlag.AlignTop)
        return whole
