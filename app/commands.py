"""Every action of the user, once: its name, menu, shortcut, when it is enabled, and what it runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QApplication, QMenu, QMenuBar, QWidget

from app.core.words import mark, tr
from app.services.engine_client import BUSY, EngineState
from app.services.settings import ChatMode

Role = QAction.MenuRole
Keys = QKeySequence.StandardKey


@dataclass(frozen=True, slots=True)
class Situation:
    """What decides which commands are enabled."""

    shown: bool = True  # a Mac's menus stay when the window is closed
    state: EngineState = EngineState.NO_MODEL
    loaded: bool = False
    has_text: bool = False
    has_chat: bool = False
    has_question: bool = False
    has_answer: bool = False
    has_versions: bool = False
    has_deleted: bool = False
    comparing: bool = False
    has_comparison: bool = False
    has_draft: bool = False
    learning: bool = False
    learned: bool = False
    learned_in_use: bool = False
    serving: bool = False

    @property
    def idle(self) -> bool:
        """The engine can take a request."""
        return self.state is EngineState.READY


class Actions(Protocol):
    """What the window can do; each command runs one of these."""

    def new_chat(self) -> None: ...
    def send(self) -> None: ...
    def stop(self) -> None: ...
    def attach_files(self) -> None: ...
    def answer_again(self) -> None: ...
    def rename_chat(self) -> None: ...
    def pin_chat(self) -> None: ...
    def move_chat(self) -> None: ...
    def delete_chat(self) -> None: ...
    def undo_delete(self) -> None: ...
    def show_deleted(self) -> None: ...
    def export_chat(self) -> None: ...
    def export_all(self) -> None: ...
    def import_chats(self) -> None: ...
    def edit_message(self) -> None: ...
    def step_version(self, step: int) -> None: ...
    def branch_chat(self) -> None: ...
    def delete_message(self) -> None: ...
    def copy_answer(self) -> None: ...
    def find_chats(self) -> None: ...
    def find_in_chat(self, step: int = 0) -> None: ...
    def show_palette(self) -> None: ...
    def step_chat(self, step: int) -> None: ...
    def set_mode(self, mode: ChatMode) -> None: ...
    def replay(self) -> None: ...
    def copy_report(self) -> None: ...
    def show_chat(self) -> None: ...
    def show_comparison(self) -> None: ...
    def show_comparisons(self) -> None: ...
    def focus_models(self) -> None: ...
    def choose_model_folder(self) -> None: ...
    def show_models(self) -> None: ...
    def reload_model(self) -> None: ...
    def unload_model(self) -> None: ...
    def show_load_report(self) -> None: ...
    def show_pair_options(self) -> None: ...
    def learn_now(self) -> None: ...
    def use_draft(self, learned: bool) -> None: ...
    def forget_learned(self) -> None: ...
    def serve(self, on: bool) -> None: ...
    def toggle_sidebar(self) -> None: ...
    def toggle_options(self) -> None: ...
    def change_text_size(self, step: int) -> None: ...
    def show_reason(self) -> None: ...
    def show_meter_details(self) -> None: ...
    def show_settings(self, server: bool = False) -> None: ...
    def show_about(self) -> None: ...
    def show_tour(self) -> None: ...
    def look_for_updates(self) -> None: ...
    def show_log(self) -> None: ...
    def close_window(self) -> None: ...
    def minimise(self) -> None: ...
    def quit(self) -> None: ...


Run = Callable[[Actions], None]


def _always(_situation: Situation) -> bool:
    return True


def _in_chat(situation: Situation) -> bool:
    return situation.has_chat


def _compared(situation: Situation) -> bool:
    return situation.has_comparison and not situation.comparing


@dataclass(frozen=True, slots=True)
class Command:
    """One action. ``text`` is collected for the catalogues; ``shortcut`` may list several, the first is shown. On a Mac Qt's Ctrl
    is the Command key. ``windowless``: it can be done while the window is closed, which nobody sees change then.
    """

    id: str
    menu: str
    text: str
    run: Run
    shortcut: str | QKeySequence.StandardKey | tuple[str, ...] = ""
    enabled: Callable[[Situation], bool] = _always
    role: QAction.MenuRole = Role.NoRole
    separated: bool = False
    windowless: bool = False


OVER_DIALOGS = frozenset(("stop", "close_window", "minimise", "quit"))
MENUS = (mark("File"), mark("Edit"), mark("View"), mark("Model"), mark("Window"), mark("Help"))
COMMANDS: tuple[Command, ...] = (
    Command("new_chat", "File", "New Chat", lambda a: a.new_chat(), Keys.New, windowless=True),
    Command("send", "File", "Send", lambda a: a.send(), "Ctrl+Return", lambda s: s.idle and s.has_text, separated=True),
    Command("stop", "File", "Stop", lambda a: a.stop(), ("Ctrl+.", "Escape"), lambda s: s.state in BUSY, windowless=True),
    Command("attach_files", "File", "Attach Files …", lambda a: a.attach_files(), "Ctrl+Shift+A"),
    Command(
        "answer_again",
        "File",
        "Answer Again",
        lambda a: a.answer_again(),
        "Ctrl+R",
        lambda s: s.idle and s.has_question,
    ),
    Command("rename_chat", "File", "Rename Chat …", lambda a: a.rename_chat(), "Ctrl+Shift+N", _in_chat, separated=True),
    Command("pin_chat", "File", "Pin or Unpin Chat", lambda a: a.pin_chat(), "Ctrl+Shift+T", _in_chat),
    Command("move_chat", "File", "Move Chat to Folder …", lambda a: a.move_chat(), "Ctrl+Shift+D", _in_chat),
    Command("delete_chat", "File", "Delete Chat", lambda a: a.delete_chat(), "Ctrl+Shift+Backspace", _in_chat),
    Command("show_deleted", "File", "Recently Deleted …", lambda a: a.show_deleted()),
    Command("export_chat", "File", "Export Chat …", lambda a: a.export_chat(), "Ctrl+Shift+E", _in_chat),
    Command("export_all", "File", "Export All Chats …", lambda a: a.export_all()),
    Command("import_chats", "File", "Import Chats …", lambda a: a.import_chats()),
    Command("close_window", "File", "Close Window", lambda a: a.close_window(), "Ctrl+W", separated=True, windowless=True),
    Command("quit", "File", "Quit Slipstream", lambda a: a.quit(), "Ctrl+Q", role=Role.QuitRole, windowless=True),
    Command("undo_delete", "Edit", "Undo Delete", lambda a: a.undo_delete(), "Ctrl+Z", lambda s: s.has_deleted),
    Command("copy_answer", "Edit", "Copy Last Answer", lambda a: a.copy_answer(), "Ctrl+Shift+C", lambda s: s.has_answer),
    Command("copy_report", "Edit", "Copy Comparison Report", lambda a: a.copy_report(), "", _compared),
    Command("edit_message", "Edit", "Edit Message", lambda a: a.edit_message(), "Ctrl+E", lambda s: s.has_question, separated=True),
    Command(
        "previous_version",
        "Edit",
        "Previous Version",
        lambda a: a.step_version(-1),
        ("Ctrl+[", "Ctrl+Alt+Left"),
        lambda s: s.has_versions,
    ),
    Command(
        "next_version",
        "Edit",
        "Next Version",
        lambda a: a.step_version(1),
        ("Ctrl+]", "Ctrl+Alt+Right"),
        lambda s: s.has_versions,
    ),
    Command("branch_chat", "Edit", "Branch into a New Chat", lambda a: a.branch_chat(), "Ctrl+Shift+B", lambda s: s.has_question),
    Command("delete_message", "Edit", "Delete With What Follows", lambda a: a.delete_message(), enabled=lambda s: s.has_question),
    Command("find_in_chat", "Edit", "Find in Chat", lambda a: a.find_in_chat(), Keys.Find, _in_chat, separated=True),
    Command("find_next", "Edit", "Find Next", lambda a: a.find_in_chat(1), ("Ctrl+G", "F3"), _in_chat),
    Command("find_previous", "Edit", "Find Previous", lambda a: a.find_in_chat(-1), ("Ctrl+Shift+G", "Shift+F3"), _in_chat),
    Command("find_chats", "Edit", "Search Chats", lambda a: a.find_chats(), "Ctrl+Shift+F"),
    Command(
        "settings",
        "Edit",
        "Settings …",
        lambda a: a.show_settings(),
        "Ctrl+,",
        role=Role.PreferencesRole,
        separated=True,
        windowless=True,
    ),
    Command("mode_dflash", "View", "Mode: DFlash", lambda a: a.set_mode("dflash"), "Ctrl+1"),
    Command("mode_baseline", "View", "Mode: Plain", lambda a: a.set_mode("baseline"), "Ctrl+2"),
    Command("mode_compare", "View", "Mode: Side by Side", lambda a: a.set_mode("compare"), "Ctrl+3"),
    Command("show_chat", "View", "Show Chat", lambda a: a.show_chat(), "Ctrl+Shift+1", separated=True),
    Command(
        "show_comparison",
        "View",
        "Show Comparison",
        lambda a: a.show_comparison(),
        "Ctrl+Shift+2",
        lambda s: s.has_comparison,
    ),
    Command("replay", "View", "Replay Comparison", lambda a: a.replay(), "Ctrl+Shift+R", _compared),
    Command("show_comparisons", "View", "Earlier Comparisons …", lambda a: a.show_comparisons(), "Ctrl+Shift+H"),
    Command("meter_details", "View", "Meter Details", lambda a: a.show_meter_details(), "Ctrl+I"),
    Command("show_reason", "View", "Why Speculation Is Off", lambda a: a.show_reason()),
    Command("palette", "View", "Command Palette …", lambda a: a.show_palette(), "Ctrl+K", separated=True),
    Command("larger", "View", "Larger Text", lambda a: a.change_text_size(1), ("Ctrl++", "Ctrl+="), separated=True),
    Command("smaller", "View", "Smaller Text", lambda a: a.change_text_size(-1), "Ctrl+-"),
    Command("actual", "View", "Actual Text Size", lambda a: a.change_text_size(0), "Ctrl+0"),
    Command("toggle_sidebar", "View", "Show or Hide Chats", lambda a: a.toggle_sidebar(), "Ctrl+Alt+S", separated=True),
    Command("models", "Model", "Models …", lambda a: a.show_models(), "Ctrl+Shift+M", windowless=True),
    Command("toggle_options", "View", "Show or Hide Options of This Chat", lambda a: a.toggle_options(), "Ctrl+Shift+P"),
    Command("choose_model", "Model", "Choose Model", lambda a: a.focus_models(), "Ctrl+L"),
    Command("model_folder", "Model", "Open Model Folder …", lambda a: a.choose_model_folder(), "Ctrl+O"),
    Command(
        "load_report", "Model", "Model Details", lambda a: a.show_load_report(), "Ctrl+Shift+I", lambda s: s.loaded, separated=True
    ),
    Command("pair_options", "Model", "Options of This Model …", lambda a: a.show_pair_options(), "Ctrl+Alt+O"),
    Command("reload_model", "Model", "Load Again", lambda a: a.reload_model(), "", lambda s: s.state not in BUSY),
    Command("unload_model", "Model", "Unload Model", lambda a: a.unload_model(), "", lambda s: s.loaded),
    Command(
        "learn_now",
        "Model",
        "Learn From My Chats Now",
        lambda a: a.learn_now(),
        enabled=lambda s: s.idle and s.has_draft and not s.learning,
        separated=True,
    ),
    Command(
        "use_original",
        "Model",
        "Use the Original Draft",
        lambda a: a.use_draft(False),
        enabled=lambda s: s.idle and s.learned_in_use,
    ),
    Command(
        "use_learned",
        "Model",
        "Use the Learned Draft",
        lambda a: a.use_draft(True),
        enabled=lambda s: s.idle and s.learned and not s.learned_in_use,
    ),
    Command("forget_learned", "Model", "Forget What Was Learned …", lambda a: a.forget_learned()),
    Command(
        "start_server",
        "Model",
        "Start Server",
        lambda a: a.serve(True),
        enabled=lambda s: not s.serving,
        separated=True,
        windowless=True,
    ),
    Command("stop_server", "Model", "Stop Server", lambda a: a.serve(False), enabled=lambda s: s.serving, windowless=True),
    Command("server_settings", "Model", "Server Settings …", lambda a: a.show_settings(True), windowless=True),
    Command("next_chat", "Window", "Next Chat", lambda a: a.step_chat(1), "Ctrl+Alt+Down"),
    Command("previous_chat", "Window", "Previous Chat", lambda a: a.step_chat(-1), "Ctrl+Alt+Up"),
    Command("minimise", "Window", "Minimise", lambda a: a.minimise(), "Ctrl+M", separated=True, windowless=True),
    Command("look_for_updates", "Help", "Look for Updates …", lambda a: a.look_for_updates(), role=Role.ApplicationSpecificRole),
    Command("tour", "Help", "Show the Tour", lambda a: a.show_tour()),
    Command("show_log", "Help", "Show Log", lambda a: a.show_log(), windowless=True),
    Command("about", "Help", "About Slipstream", lambda a: a.show_about(), role=Role.AboutRole, windowless=True),
)


def build_actions(owner: QWidget, target: Actions) -> dict[str, QAction]:
    """One QAction a command, by id, each added to ``owner`` so that its shortcut works there."""
    built = {}
    for command in COMMANDS:
        action = QAction(tr(command.text), owner)
        action.setMenuRole(command.role)
        if isinstance(command.shortcut, QKeySequence.StandardKey):
            action.setShortcuts(command.shortcut)
        elif isinstance(command.shortcut, tuple):
            action.setShortcuts([QKeySequence(keys) for keys in command.shortcut])
        elif command.shortcut:
            action.setShortcut(QKeySequence(command.shortcut))
        action.triggered.connect(lambda _checked=False, command=command: _run(command, target))
        owner.addAction(action)
        built[command.id] = action
    return built


def _run(command: Command, target: Actions) -> None:
    """A Mac's menus and their keys go past a dialog that waits for an answer: what is behind it must not change meanwhile."""
    if command.id in OVER_DIALOGS or QApplication.activeModalWidget() is None:
        command.run(target)


def fill_menu_bar(bar: QMenuBar, actions: dict[str, QAction]) -> None:
    """Puts every command into its menu."""
    menus: dict[str, QMenu] = {name: bar.addMenu(tr(name)) for name in MENUS}
    for command in COMMANDS:
        if command.separated:
            menus[command.menu].addSeparator()
        menus[command.menu].addAction(actions[command.id])


def update_enabled(actions: dict[str, QAction], situation: Situation) -> None:
    """Enables what can be done now."""
    for command in COMMANDS:
        actions[command.id].setEnabled(command.enabled(situation) and (situation.shown or command.windowless))
