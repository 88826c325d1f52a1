"""What the commands do: each method is one user action on the main window and its services."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, QUrl
from PySide6.QtWidgets import QApplication, QDialog, QFileDialog

from app.core.chat import Attachment
from app.core.export import file_name
from app.core.words import mark, tr
from app.services.crashlog import LOG
from app.services.settings import TEXT_SIZES, ChatMode
from app.ui.about import AboutDialog
from app.ui.deleted_dialog import DeletedDialog
from app.ui.links import open_outside
from app.ui.meter_details import MeterDetails
from app.ui.palette import Palette, entries_of
from app.ui.saving import ask_place
from app.ui.settings_dialog import SettingsDialog

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

log = logging.getLogger(__name__)
EXPORTS = mark("Markdown (*.md);;Slipstream chat (*.slipchat);;JSON (*.json)")
ALL_EXPORTS = mark("JSON (*.json);;Markdown files in a ZIP (*.zip)")
IMPORTS = mark("Exported chats (*.json *.slipchat)")


class WindowActions:
    """Implements ``app.commands.Actions``."""

    def __init__(self, window: MainWindow):
        self._window = window
        self._services = window.services

    # Chats

    def new_chat(self) -> None:
        """Opens an empty chat; it is created with its first message."""
        if not self._window.isVisible():
            self._window.raise_window()
        self.open_chat(None)

    def new_chat_with_last_prompt(self) -> None:
        """Opens an empty chat with the last prompt to shorten."""
        asked = [message for message in self._services.conversation.messages if message.role == "user"]
        self.open_chat(None)
        if asked and not self._window.composer.has_content:
            self._window.composer.set_text(asked[-1].content, asked[-1].attachments)

    def open_chat(self, chat_id: int | None, message_id: int | None = None) -> None:
        """Shows a chat and its draft; with ``message_id`` at that message, which is marked."""
        window, talk = self._window, self._services.conversation
        is_open = chat_id is not None and talk.chat is not None and talk.chat.id == chat_id
        if is_open and (message_id is None or message_id in [message.id for message in talk.messages]):
            self.show_chat()
        elif not talk.open(chat_id, message_id):
            QTimer.singleShot(0, window, window.fill_chats)  # the list marks the one that is open again
        if message_id is not None:
            window.transcript.reveal(message_id)

    def step_chat(self, step: int) -> None:
        """Opens the chat below or above in the list."""
        ids = self._window.sidebar.chats.chat_ids()
        current = self._services.conversation.chat
        if not ids:
            return
        place = ids.index(current.id) + step if current is not None and current.id in ids else 0
        self.open_chat(ids[min(max(place, 0), len(ids) - 1)])

    def rename_chat(self) -> None:
        """Renames the open chat in the list."""
        chat = self._services.conversation.chat
        if chat is not None:
            self._window.sidebar.setVisible(True)
            self._window.sidebar.chats.edit_chat(chat.id)

    def delete_chat(self) -> None:
        """Deletes the open chat until Undo."""
        chat = self._services.conversation.chat
        if chat is not None:
            self._services.shelf.delete(chat.id)

    def undo_delete(self) -> None:
        """Brings back what was deleted last."""
        self._services.shelf.undo()

    def pin_chat(self) -> None:
        """Keeps the open chat above all others, or no longer."""
        chat = self._services.conversation.chat
        if chat is not None:
            self._services.shelf.pin(chat.id, not chat.pinned)

    def move_chat(self) -> None:
        """Asks for the folder of the open chat."""
        chat = self._services.conversation.chat
        if chat is not None:
            self._window.sidebar.setVisible(True)
            self._window.sidebar.chats.show_move_menu(chat.id)

    def show_deleted(self) -> None:
        """Lists the deleted chats that can be brought back."""
        DeletedDialog(self._services.shelf, self._window).open()

    def export_chat(self) -> None:
        """Saves the open chat as Markdown, or as a file that Slipstream opens again."""
        chat = self._services.conversation.chat
        if chat is None:
            return
        path = ask_place(self._window, tr("Export chat"), file_name(chat, "md"), tr(EXPORTS))
        if path is not None:
            self.write_export(path)

    def write_export(self, path: Path) -> None:
        """Writes the open chat to ``path``, as JSON if it ends in .json or .slipchat."""
        chat = self._services.conversation.chat
        assert chat is not None
        self._services.transfer.export_chat(chat, path)

    def export_all(self) -> None:
        """Saves all chats in one file."""
        path = ask_place(self._window, tr("Export all chats"), tr("Slipstream chats.json"), tr(ALL_EXPORTS))
        if path is not None:
            self._services.transfer.export_all(path)

    def import_chats(self) -> None:
        """Asks for exported chats and takes them in."""
        names, _filter = QFileDialog.getOpenFileNames(self._window, tr("Import chats"), str(Path.home()), tr(IMPORTS))
        self.import_files([Path(name) for name in names])

    def import_files(self, paths: list[Path]) -> None:
        """Takes in exported chats."""
        self._services.transfer.import_files(paths)

    def find_chats(self) -> None:
        """Goes to the search field."""
        self._window.sidebar.setVisible(True)
        self._window.sidebar.search.setFocus()
        self._window.sidebar.search.selectAll()

    def find_in_chat(self, step: int = 0) -> None:
        """Opens the search in the open chat; with ``step`` goes to the next or previous hit."""
        if step:
            self._window.finder.step(step)
        else:
            self._window.finder.open()

    def show_palette(self) -> None:
        """Lists everything that can be done by name."""
        Palette(entries_of(self._window), self._window).open()

    # Asking

    def send(self) -> None:
        """Sends what is written, in the chosen mode. What cannot be sent stays in the composer."""
        window, talk = self._window, self._services.conversation
        if not window.situation().idle:
            if window.composer.has_content:
                window.loading.explain()
            return
        if window.composer.chips.readings:
            window.writing.documents.explain()
            return
        key = window.writing.draft_key(talk.chat)
        if self._ask(window.composer.text(), window.composer.attachments):
            window.composer.clear()
            talk.remember(key, "")

    def _ask(self, text: str, attachments: Sequence[Attachment] = ()) -> bool:
        """Whether the message is in its chat now, answered or not."""
        talk, known = self._services.conversation, len(self._services.conversation.messages)
        self._window.banner.hide()
        talk.send(text, self._services.settings.current.mode, attachments)
        return len(talk.messages) > known

    def attach_files(self) -> None:
        """Asks for files to go with the message."""
        self._window.writing.choose_files()

    def use_example(self, text: str) -> None:
        """Sends an example prompt, or only writes it while the engine is not ready; what is being written stays."""
        window, talk, idle = self._window, self._services.conversation, self._window.situation().idle
        key = window.writing.draft_key(talk.chat)
        if idle and self._ask(text):
            talk.remember(key, "")
            window.writing.save()  # it belongs to the chat that has begun now
        elif not idle and window.composer.has_content:
            window.loading.explain()
        elif not idle:
            window.composer.set_text(text)
            window.composer.setFocus()

    def stop(self) -> None:
        """Stops loading, answering or comparing; what has arrived stays."""
        self._services.conversation.stop()

    def answer_again(self) -> None:
        """Asks for another answer to the last question."""
        self._window.branching.answer_again()

    def edit_message(self) -> None:
        """Edits the message in focus, or the last one of the user's."""
        self._window.branching.edit()

    def step_version(self, step: int) -> None:
        """Shows the version before or after of the message in focus, or of the last that has several."""
        self._window.branching.step(step)

    def branch_chat(self) -> None:
        """Goes on in a new chat from the message in focus, or from the last."""
        self._window.branching.branch()

    def delete_message(self) -> None:
        """Deletes the message in focus, or the last, with what follows."""
        self._window.branching.delete()

    def copy_answer(self) -> None:
        """Copies the last answer as Markdown."""
        answers = self._window.transcript.answers
        if answers:
            answers[-1].copy_answer()

    def set_mode(self, mode: ChatMode) -> None:
        """Chooses how the next prompt is answered."""
        self._services.settings.update(mode=mode)

    # Side by side

    def show_chat(self) -> None:
        """Goes back from the comparison to the chat."""
        self._window.reveal_chat()
        self._window.composer.setFocus()

    def show_comparison(self) -> None:
        """Goes to the last comparison."""
        self._window.stack.setCurrentWidget(self._window.compare)

    def replay(self) -> None:
        """Plays both recordings on one clock."""
        self.show_comparison()
        self._window.compare.replay()

    def copy_report(self) -> None:
        """Copies the comparison as Markdown."""
        comparison = self._services.conversation.comparison.comparison
        if comparison is not None:
            self._window.clipboard.setText(comparison.report_markdown())

    def compare_again(self) -> None:
        """Sets the last question side by side once more, with the arms chosen now."""
        if self._window.situation().idle:
            self._window.banner.hide()
            self._services.conversation.answer("compare")

    def show_comparisons(self) -> None:
        """Lists earlier comparisons."""
        self._window.comparing.show_history()

    # Models

    def load_model(self, pair: str, check_memory: bool = True) -> None:
        """Loads a pair; it is remembered once that worked. The chat and what is being written stay."""
        self._services.client.load(pair, check_memory)

    def reload_model(self) -> None:
        """Loads the chosen pair again, after an error."""
        self._services.client.load(self._services.client.pair or self._services.settings.current.pair)

    def unload_model(self) -> None:
        """Gives the model's memory back."""
        self._services.client.unload()

    def show_pair_options(self) -> None:
        """Asks how the chosen pair is to be kept in memory."""
        pair = self._services.client.pair or self._services.settings.current.pair
        self._window.model_manager.show_options(pair, self._window.models.name_of(pair))

    def show_load_report(self) -> None:
        """Says what was loaded and how."""
        self._window.loading.show_report()

    def show_models(self) -> None:
        """Opens the window of models to get and to delete."""
        self._window.model_manager.show()

    def focus_models(self) -> None:
        """Opens the model menu."""
        self._window.models.box.setFocus()
        self._window.models.box.showPopup()

    def choose_model_folder(self) -> None:
        """Loads a model from a folder."""
        folder = QFileDialog.getExistingDirectory(self._window, tr("Open model folder"))
        if folder:
            self._services.library.keep_folder(folder)
            self.load_model(folder)
            self._window.fill_models()

    # Learning

    def learn_now(self) -> None:
        """Learns from the chats now."""
        self._window.learning.learn_now()

    def use_draft(self, learned: bool) -> None:
        """Takes the learned or the original draft into use."""
        self._services.learning.use(learned)

    def forget_learned(self) -> None:
        """Asks, then deletes what was learned."""
        self._window.learning.forget()

    # The window

    def toggle_sidebar(self) -> None:
        """Shows or hides the list of chats."""
        self._window.sidebar.setVisible(self._window.sidebar.isHidden())

    def toggle_options(self) -> None:
        """Shows or hides what is set for the open chat."""
        self._window.options.toggle()

    def change_text_size(self, step: int) -> None:
        """One size up or down; 0 is the system's own."""
        now = TEXT_SIZES.index(self._services.settings.current.text_size)
        place = TEXT_SIZES.index(100) if step == 0 else min(max(now + step, 0), len(TEXT_SIZES) - 1)
        self._services.settings.update(text_size=TEXT_SIZES[place])

    def show_reason(self) -> None:
        """Says why speculation is off, if it is."""
        self._window.meter.show_reason()

    def show_meter_details(self) -> None:
        """Opens the meter's details, or brings them to the front."""
        feed, client = self._services.meter, self._services.client
        self._bring(self._window.findChild(MeterDetails) or MeterDetails(feed, client, self._window))

    def show_settings(self, server: bool = False) -> None:
        """Opens the settings, or brings them to the front; ``server``: at the server's page."""
        dialog = self._window.findChild(SettingsDialog) or SettingsDialog(self._window)
        if server:
            dialog.show_server()
        self._bring(dialog)

    def serve(self, on: bool) -> None:
        """Lets other programs ask the loaded model, or no more."""
        (self._services.server.start if on else self._services.server.stop)()

    @staticmethod
    def _bring(dialog: QDialog) -> None:
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()

    def open_data_folder(self) -> None:
        """Shows where chats and settings lie."""
        self.open_file(self._services.folder)

    def show_tour(self) -> None:
        """Starts the tour again."""
        self._window.first_run.tour.start()

    def show_about(self) -> None:
        """Says what this is."""
        self._bring(self._window.findChild(AboutDialog) or AboutDialog(self._window))

    def look_for_updates(self) -> None:
        """Asks the feed now, and says what it answers."""
        self._window.updates.look()

    def show_log(self) -> None:
        """Opens the log with the system's own viewer."""
        self.open_file(self._services.folder / LOG)

    def open_file(self, path: Path) -> None:
        """Opens a file with the system's own viewer."""
        open_outside(QUrl.fromLocalFile(str(path)), self._window)

    def close_window(self) -> None:
        """Closes the window in front; on a Mac the app stays."""
        (QApplication.activeModalWidget() or QApplication.activeWindow() or self._window).close()

    def minimise(self) -> None:
        """Puts the window in front into the Dock, the main one where that is a dialog."""
        front = QApplication.activeWindow()
        (front if front is not None and front.windowType() is Qt.WindowType.Window else self._window).showMinimized()

    def quit(self) -> None:
        """Ends the app in an orderly way."""
        self._window.quit_asked.emit()
