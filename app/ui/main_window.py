"""The main window: lays the parts out, shows what the services report, and keeps the commands' enabled state right."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QEvent, Qt, Signal
from PySide6.QtGui import QCloseEvent, QFont, QGuiApplication, QHideEvent, QShowEvent
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QMainWindow,
    QMenuBar,
    QSplitter,
    QVBoxLayout,
    QWidget,
)

from app.commands import Situation, build_actions, fill_menu_bar, update_enabled
from app.core.chat import Chat, ChatMessage
from app.core.meter import MeterSnapshot
from app.core.words import tr
from app.mac import IS_MAC
from app.services.engine_client import BUSY, EngineState
from app.services.settings import Settings
from app.services.wiring import Services
from app.ui import theme
from app.ui.banner import Banner
from app.ui.branching import Branching
from app.ui.compare_view import CompareView
from app.ui.comparing import Comparing
from app.ui.composer import Composer
from app.ui.empty_state import EmptyState
from app.ui.failure_notice import FailureNotice
from app.ui.find_in_chat import FindInChat
from app.ui.first_run import FirstRun
from app.ui.focus_ring import FocusRing
from app.ui.labels import ElidedLabel
from app.ui.learning_notice import LearningNotice
from app.ui.loading_notice import LoadingNotice
from app.ui.meter_strip import MeterStrip
from app.ui.model_picker import ModelPicker
from app.ui.models.manager import ModelManager
from app.ui.notifier import Notifier
from app.ui.options_pane import NARROWEST_CHAT, NARROWEST_WINDOW, OptionsPane
from app.ui.outlines import outline_controls
from app.ui.pages import Pages
from app.ui.panes import restore_panes, save_panes
from app.ui.server_notice import ServerNotice
from app.ui.shelf_view import ShelfView, damage_words
from app.ui.sidebar import Sidebar
from app.ui.transcript import Transcript
from app.ui.update_notice import UpdateNotice
from app.ui.window_actions import WindowActions
from app.ui.writing import Writing
from app.worker import Failure
from engine import PairInfo


class MainWindow(QMainWindow):
    """One window over ``services``. ``closing`` fires when the user closes it; ``quit_asked`` from the Quit command."""

    closing = Signal()
    quit_asked = Signal()

    def __init__(self, services: Services):
        super().__init__()
        self.services = services
        self._rules: list[QFrame] = []
        self.do = WindowActions(self)
        self.actions_by_id = build_actions(self, self.do)
        # On a Mac a bar without a parent stays when the window is closed, so that New Chat can open it again.
        bar = QMenuBar() if IS_MAC else self.menuBar()
        self._shared_bar = bar
        fill_menu_bar(bar, self.actions_by_id)
        self.setWindowTitle("Slipstream")
        self.setWindowIcon(theme.app_icon())
        self.setUnifiedTitleAndToolBarOnMac(True)
        self._build()
        self.failures = FailureNotice(self)
        self._connect()
        self.comparing = Comparing(self)
        self.updates = UpdateNotice(self, services.updates)
        self.learning = LearningNotice(self, services.learning)
        self.server = ServerNotice(self, services.server)
        self.loading = LoadingNotice(self, services.client)
        self.model_manager = ModelManager(self)
        self.writing = Writing(self)
        self.focus_ring = FocusRing(self)
        self.notifier, self.first_run = Notifier(self), FirstRun(self)
        self.setTabOrder(self.sidebar.search, self.sidebar.chats)
        self._apply_settings(services.settings.current)
        self.fill_models()
        self._restore()

    # Layout

    def _build(self) -> None:
        size = self.services.settings.current.text_size
        new_chat, models, settings = (self.actions_by_id[name] for name in ("new_chat", "models", "settings"))
        self.sidebar = Sidebar(new_chat, models, settings)
        self.title, self.models = ElidedLabel(), ModelPicker()
        self.title.setFont(theme.scaled_font(110, QFont.Weight.DemiBold))
        self.empty, self.transcript, self.compare = EmptyState(), Transcript(size), CompareView(size)
        self.stack = Pages()
        for page in (self.empty, self.transcript, self.compare):
            self.stack.addWidget(page)
        self.banner, self.composer, self.meter = Banner(), Composer(), MeterStrip()
        header = QHBoxLayout()
        header.setContentsMargins(theme.L, theme.S, theme.M, theme.S)
        header.setSpacing(theme.M)
        self.options = OptionsPane(self)
        header.addWidget(self.title, 1)
        header.addWidget(self.models)
        header.addWidget(self.options.button)
        foot = QVBoxLayout()
        foot.setContentsMargins(theme.L, theme.S, theme.L, theme.M)
        foot.setSpacing(theme.S)
        for part in (self.banner, self.composer):
            part.setMaximumWidth(theme.column_width(self.font(), theme.FOOT_CHARACTERS))  # in the middle, as the messages are
            row = QHBoxLayout()
            row.addStretch(1)
            row.addWidget(part, 1_000)
            row.addStretch(1)
            foot.addLayout(row)
        chat = QWidget()
        chat.setAutoFillBackground(True)
        chat.setBackgroundRole(chat.palette().ColorRole.Base)
        right = QVBoxLayout(chat)
        right.setContentsMargins(0, 0, 0, 0)
        right.setSpacing(0)
        right.addLayout(header)
        right.addWidget(self._rule())
        self.finder = FindInChat(self)
        right.addWidget(self.finder.bar)
        right.addWidget(self.stack, 1)
        right.addLayout(foot)
        self.splitter = QSplitter(Qt.Orientation.Horizontal, childrenCollapsible=False)
        self.splitter.setHandleWidth(1)
        self.splitter.addWidget(self.sidebar)
        self.splitter.addWidget(chat)
        self.splitter.addWidget(self.options.panel)
        self.splitter.setStretchFactor(1, 1)
        self.splitter.setSizes([230, 850, 300])
        self.sidebar.setMinimumWidth(160)
        chat.setMinimumWidth(NARROWEST_CHAT)
        central = QWidget()
        whole = QVBoxLayout(central)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.setSpacing(0)
        whole.addWidget(self.splitter, 1)
        whole.addWidget(self._rule())
        whole.addWidget(self.meter)
        self.setCentralWidget(central)
        self.setMinimumSize(NARROWEST_WINDOW, 480)
        self.resize(1080, 740)

    def _rule(self) -> QFrame:
        rule = QFrame(frameShape=QFrame.Shape.HLine, frameShadow=QFrame.Shadow.Plain)
        rule.setFixedHeight(1)
        theme.tint(rule, theme.current().line)
        self._rules.append(rule)
        return rule

    def _connect(self) -> None:
        services, talk, client = self.services, self.services.conversation, self.services.client
        talk.opened.connect(self._on_opened)
        talk.chats_changed.connect(self._on_chats_changed)
        talk.message_added.connect(self._on_message_added)
        talk.answer_grew.connect(self.transcript.grow)
        talk.answer_ended.connect(self._on_answer_ended)
        talk.failed.connect(self.show_failure)
        client.state_changed.connect(self._on_state)
        client.loading.connect(self.models.show_progress)
        client.loaded.connect(self._on_loaded)
        services.meter.changed.connect(self._on_meter)
        self.meter.details_asked.connect(self.do.show_meter_details)
        services.settings.changed.connect(self._apply_settings)
        self.composer.send_asked.connect(self.do.send)
        self.composer.stop_asked.connect(self.do.stop)
        self.composer.mode_chosen.connect(self.do.set_mode)
        self.composer.text_changed.connect(self.update_commands)
        self.composer.notice.connect(lambda text: self.banner.show_message(text, until="chat"))
        self.empty.chosen.connect(self.do.use_example)
        self.branching = Branching(self)
        self.finder.follow()
        self.shelf = ShelfView(self)
        self.models.chosen.connect(self.do.load_model)
        self.models.folder_asked.connect(self.do.choose_model_folder)
        self.models.more_asked.connect(self.do.show_models)
        self.models.load_asked.connect(self.do.reload_model)
        self.models.report_asked.connect(self.do.show_load_report)

    # What the services report

    def _on_opened(self, chat: Chat | None, messages: list[ChatMessage]) -> None:
        self._show_title()
        self.banner.settle("chat")
        if self.services.conversation.comparison.running is None:
            self.services.meter.clear()
        self.transcript.show_messages(messages)
        self.reveal_chat()
        self.writing.restore(chat)
        self.fill_chats()
        self.writing.count()
        self.update_commands()
        if not self.sidebar.chats.hasFocus():  # where the arrow keys go from chat to chat
            self.composer.setFocus()

    def _on_chats_changed(self) -> None:
        self._show_title()
        self.fill_chats()

    def _on_message_added(self, message: ChatMessage) -> None:
        if message.chat_id != self._chat_id():
            return
        self._show_title()
        self.transcript.add(message)
        self.reveal_chat()  # a comparison that begins with it comes to the front after this
        self.update_commands()

    def _on_answer_ended(self, message: ChatMessage) -> None:
        self.transcript.end(message)
        self.fill_chats()
        self.writing.count()
        self.update_commands()

    def _on_state(self, state: EngineState) -> None:
        self.models.show_state(state, self.services.client.info)
        self.update_commands()
        if state is EngineState.READY:
            self.banner.settle("ready")
        if state is EngineState.LOST and self.banner.isHidden():
            text = tr("The engine does not answer. Your chats are saved.")
            self.banner.show_message(text, *self.loading.way_back(), until="ready")

    def _on_loaded(self, info: PairInfo) -> None:
        self.models.show_state(EngineState.READY, info)
        self.fill_models()
        self.writing.count()

    def _on_meter(self, snapshot: MeterSnapshot) -> None:
        self.meter.show_snapshot(snapshot)

    def reveal_chat(self) -> None:
        """Puts the chat in front of a comparison, and its messages in front of the words for a chat without any."""
        self.compare.stop_replay()
        self.stack.setCurrentWidget(self.transcript if self.services.conversation.messages else self.empty)

    def show_failure(self, failure: Failure) -> None:
        """Shows what went wrong in one line, with what to do next."""
        self.failures.show(failure)

    # What follows from it

    def fill_chats(self) -> None:
        """Lists the chats, or those that the search field finds."""
        self.shelf.fill()

    def fill_models(self) -> None:
        """Lists the pairs on this machine."""
        pair = self.services.client.pair or self.services.settings.current.pair
        self.models.fill(self.model_manager.pairs() + self.model_manager.loose(), pair)

    def situation(self) -> Situation:
        """What the commands' enabled state depends on."""
        talk, learning, info = self.services.conversation, self.services.learning, self.services.client.info
        return Situation(
            shown=self.isVisible() or not IS_MAC,
            state=self.services.client.state,
            loaded=info is not None,
            has_text=self.composer.has_content,
            has_chat=talk.chat is not None,
            has_question=any(message.role == "user" for message in talk.messages),
            has_versions=talk.tree.has_versions(talk.messages),
            has_deleted=bool(self.services.shelf.deletions),
            has_answer=any(message.role == "assistant" and message.content for message in talk.messages),
            comparing=talk.comparison.running is not None,
            has_comparison=talk.comparison.comparison is not None,
            has_draft=info is not None and info.draft_name is not None,
            learning=learning.running,
            learned=learning.learned,
            learned_in_use=learning.learned_in_use,
            serving=self.services.server.wanted,
        )

    def update_commands(self) -> None:
        """Enables what can be done now, in the menus and on the buttons."""
        situation = self.situation()
        update_enabled(self.actions_by_id, situation)
        self.comparing.show_state(situation.idle and situation.has_question)
        stoppable = situation.state in BUSY
        self.composer.show_busy(stoppable, situation.idle and situation.has_text)
        if situation.state is EngineState.STOPPING:
            self.composer.button.setEnabled(False)
            self.composer.button.setText(tr("Stopping"))

    def _apply_settings(self, settings: Settings) -> None:
        theme.use_appearance(settings.appearance)
        outline_controls()
        self.composer.modes.show_mode(settings.mode)
        self.transcript.set_text_size(settings.text_size)
        self.compare.restyle(settings.text_size)

    def _show_title(self) -> None:
        chat = self.services.conversation.chat
        self.title.setText(chat.title if chat is not None else tr("New chat"))

    def _chat_id(self) -> int | None:
        chat = self.services.conversation.chat
        return chat.id if chat is not None else None

    # The window itself

    def _restore(self) -> None:
        store = self.services.store
        self.restoreGeometry(QByteArray.fromBase64(str(store.setting("geometry", "")).encode()))
        restore_panes(self)
        last = store.setting("last_chat")
        if not self.services.conversation.open(last if isinstance(last, int) else None):
            self.services.conversation.open(None)
        self._on_state(self.services.client.state)
        if store.moved_aside is not None:
            text = damage_words(store.moved_aside.name, store.saved_chats)
            self.banner.show_message(text)
        elif self.services.recovered:
            text = tr("The last answer was cut short when Slipstream ended. What had arrived is kept.")
            self.banner.show_message(text, until="chat")

    def save_state(self) -> None:
        """Keeps the draft and the place of the window."""
        self.writing.save()
        geometry = bytes(self.saveGeometry().toBase64().data()).decode()
        self.services.conversation.remember("geometry", geometry)
        save_panes(self)

    def retire(self) -> None:
        """Hides the window for good: nothing it still had planned may reach services that are being shut down."""
        self.save_state()
        self.model_manager.retire()
        self.composer.settle()
        self.writing.settle()
        self.options.panel.commit()
        self.finder.bar.stop()
        self.sidebar.settle()
        self.compare.stop_replay()
        for dialog in self.findChildren(QDialog):
            dialog.close()
        self.hide()

    def raise_window(self) -> None:
        """Brings the window to the front, from the Dock or for a second start."""
        if self.isMinimized():
            self.showNormal()
        self.show()
        self.raise_()
        self.activateWindow()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.update_commands()

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self.update_commands()

    def closeEvent(self, event: QCloseEvent) -> None:
        self.closing.emit()
        event.accept()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.PaletteChange and hasattr(self, "meter"):
            outline_controls()
            for rule in self._rules:
                theme.tint(rule, theme.current().line)
            self.sidebar.restyle()
            self.banner.restyle()
            self.meter.restyle()
            self.empty.restyle()
            self.options.restyle()
            self.finder.restyle()
            self.compare.restyle(self.services.settings.current.text_size)
            self.models.show_state(self.services.client.state, self.services.client.info)

    @property
    def clipboard(self):
        """The system's clipboard."""
        return QGuiApplication.clipboard()
