"""The settings window: a page for each kind of choice; every change takes effect at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence, QShortcut
from PySide6.QtWidgets import QDialog, QScrollArea, QTabWidget, QVBoxLayout, QWidget

from app.core.words import tr
from app.ui import theme
from app.ui.server_page import ServerPage
from app.ui.settings_pages import AdvancedPage, AnswersPage, GeneralPage, ModelsPage, PrivacyPage

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class SettingsDialog(QDialog):
    """One at a time, beside the main window; it closes like any window and has nothing to confirm."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self.setWindowTitle(tr("Settings"))
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        services, do = window.services, window.do
        self.general = GeneralPage(services.settings)
        presets = {each.id: tr(each.name) if each.built_in else each.name for each in services.conversation.options.presets}
        self.answers = AnswersPage(services.settings, presets)
        self.models = ModelsPage(services.settings, do)
        self.server = ServerPage(services.settings, services.server, services.client)
        self.privacy = PrivacyPage(services.settings, services.learning, do)
        self.advanced = AdvancedPage(services.settings, str(services.folder), do)
        self.pages = QTabWidget(documentMode=True)
        self.pages.setAccessibleName(tr("Settings pages"))
        for page, name in (
            (self.general, tr("General")),
            (self.answers, tr("Answers")),
            (self.models, tr("Models")),
            (self.server, tr("Server")),
            (self.privacy, tr("Privacy and Learning")),
            (self.advanced, tr("Advanced")),
        ):
            self._add(page, name)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, theme.S, 0, 0)
        layout.addWidget(self.pages)
        self.resize(800, 560)
        QShortcut(QKeySequence(QKeySequence.StandardKey.Close), self, self.close)

    def show_server(self) -> None:
        """Turns to the server's page."""
        self.pages.setCurrentIndex(next(place for place in range(self.pages.count()) if self._page(place) is self.server))

    def _page(self, place: int) -> QWidget | None:
        scroll = self.pages.widget(place)
        return scroll.widget() if isinstance(scroll, QScrollArea) else None

    def _add(self, page: QWidget, name: str) -> None:
        scroll = QScrollArea(widgetResizable=True)
        scroll.setFrameShape(QScrollArea.Shape.NoFrame)
        scroll.setAccessibleName(name)
        scroll.setWidget(page)
        self.pages.addTab(scroll, name)
