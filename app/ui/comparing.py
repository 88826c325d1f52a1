"""Ties the side-by-side view to its run, to the choice of arms and to the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QObject

from app.core.arms import chosen, offered
from app.core.compare import Comparison
from app.ui.comparison_list import ComparisonList

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow


class Comparing(QObject):
    """The window's side of comparisons."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._services = window, window.services
        run, view, client = self._services.conversation.comparison, window.compare, self._services.client
        self._run = run
        run.started.connect(self._on_started)
        run.arm_started.connect(view.start_arm)
        run.grew.connect(view.grow)
        run.ended.connect(self._on_ended)
        view.replay_asked.connect(window.do.replay)
        view.copy_asked.connect(window.do.copy_report)
        view.close_asked.connect(window.do.show_chat)
        view.bar.arms_chosen.connect(lambda left, right: self._services.settings.update(arms=(left, right)))
        view.bar.run_asked.connect(window.do.compare_again)
        view.bar.history_asked.connect(self.show_history)
        self._services.comparisons.failed.connect(window.show_failure)
        client.loaded.connect(self._offer)
        client.draft_changed.connect(self._offer)
        self._offer()

    def show_history(self) -> None:
        """Lists earlier comparisons."""
        dialog = self._window.findChild(ComparisonList)
        if dialog is None:
            dialog = ComparisonList(self._services.comparisons, self._open, self._window.clipboard.setText, self._window)
        dialog.open()

    def show_state(self, can_run: bool) -> None:
        """Enables running again where there is a question and the engine is free."""
        self._window.compare.bar.run_button.setEnabled(can_run)

    def _open(self, comparison: Comparison) -> None:
        if self._run.running is None:
            self._run.show(comparison)
            self._window.compare.show_whole(comparison)
            self._window.do.show_comparison()
            self._window.update_commands()

    def _offer(self, *_info: object) -> None:
        pair = self._services.client.info
        self._window.compare.bar.show_arms(offered(pair), chosen(self._services.settings.current.arms, pair))

    def _on_started(self, comparison: Comparison) -> None:
        self._window.compare.start(comparison)
        self._window.stack.setCurrentWidget(self._window.compare)

    def _on_ended(self, _failure: object) -> None:
        self._window.compare.end()
        self._window.update_commands()
