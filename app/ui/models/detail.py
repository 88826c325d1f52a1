"""The detail pane of the Models window: what is known of the chosen model, and a button for everything it can do."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QProgressBar, QPushButton, QVBoxLayout, QWidget

from app.core.downloads import Trouble
from app.core.engine_words import engine_words
from app.core.model_rows import Action, ModelRow
from app.core.words import tr
from app.ui import theme
from app.ui.models.token_box import TokenBox

ACTIONS: tuple[Action, ...] = (
    "chat",
    "options",
    "get",
    "get anyway",
    "resume",
    "pause",
    "cancel",
    "import",
    "verify",
    "repair",
    "delete",
    "forget",
)
MAIN: frozenset[Action] = frozenset(("chat", "options", "get", "get anyway", "resume", "pause", "cancel", "import"))


def action_words(action: Action) -> str:
    """What stands on a button."""
    words = {
        "chat": tr("Chat"),
        "options": tr("Options …"),
        "get": tr("Get"),
        "get anyway": tr("Get anyway"),
        "resume": tr("Resume"),
        "pause": tr("Pause"),
        "cancel": tr("Cancel"),
        "import": tr("Import"),
        "verify": tr("Verify"),
        "repair": tr("Repair"),
        "delete": tr("Delete …"),
        "forget": tr("Remove from list"),
    }
    return words[action]


def remedy_words(trouble: Trouble) -> str:
    """What stands on the one button of a trouble."""
    match trouble.kind:
        case "gated":
            return tr("Open its page")
        case "token":
            return tr("Enter token")
        case "hash":
            return tr("Fetch again")
        case "missing":
            return tr("Remove from list")
    return tr("Try again")


class Detail(QWidget):
    """``asked(action, row id)`` comes from the buttons; ``remedy_asked(Trouble, row id)`` from the one beside a trouble."""

    asked = Signal(str, str)
    remedy_asked = Signal(object, str)

    def __init__(self, parent: QWidget | None = None):
        super().__init__(parent)
        self.row: ModelRow | None = None
        self.name, self.facts, self.fit = QLabel(wordWrap=True), QLabel(wordWrap=True), QLabel(wordWrap=True)
        self.state, self.speed, self.draft, self.about = (
            QLabel(wordWrap=True),
            QLabel(),
            QLabel(wordWrap=True),
            QLabel(wordWrap=True),
        )
        self.name.setFont(theme.scaled_font(120, QFont.Weight.DemiBold))
        for label in (self.state, self.speed, self.facts, self.fit):
            label.setFont(theme.figure_font())
        for label in (self.name, self.facts, self.fit, self.state, self.speed, self.draft, self.about):
            label.setTextFormat(Qt.TextFormat.PlainText)
        self.about.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.bar = QProgressBar(textVisible=False, maximum=1000)
        self.bar.setAccessibleName(tr("How much is fetched"))
        self.bar.setFixedHeight(theme.S)
        self.trouble_text = QLabel(wordWrap=True)
        self.trouble_text.setTextFormat(Qt.TextFormat.PlainText)
        self.remedy = QPushButton(tr("Try again"))
        self.remedy.clicked.connect(self._on_remedy)
        self.token = TokenBox()
        self.buttons = {action: self._button(action) for action in ACTIONS}
        self._lay_out()
        self.show_row(None)

    def _lay_out(self) -> None:
        layout = QVBoxLayout(self)
        layout.setContentsMargins(theme.L, theme.M, theme.L, theme.M)
        layout.setSpacing(theme.S)
        state = QHBoxLayout()
        state.addWidget(self.state, 1)
        state.addWidget(self.speed, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignTop)
        layout.addWidget(self.name)
        layout.addWidget(self.facts)
        layout.addWidget(self.fit)
        layout.addWidget(self.draft)
        layout.addLayout(state)
        layout.addWidget(self.bar)
        layout.addWidget(self.trouble_text)
        layout.addWidget(self.remedy, 0, Qt.AlignmentFlag.AlignLeft)
        layout.addWidget(self.token)
        layout.addSpacing(theme.S)
        for chosen in (MAIN, frozenset(ACTIONS) - MAIN):
            line = QHBoxLayout()
            line.setSpacing(theme.S)
            for action in ACTIONS:
                if action in chosen:
                    line.addWidget(self.buttons[action])
            line.addStretch(1)
            layout.addLayout(line)
        rule = QFrame(frameShape=QFrame.Shape.HLine, frameShadow=QFrame.Shadow.Plain)
        rule.setForegroundRole(rule.palette().ColorRole.Mid)
        layout.addWidget(rule)
        layout.addWidget(self.about)
        layout.addStretch(1)

    def show_row(self, row: ModelRow | None, busy: bool = False) -> None:
        """Shows ``row``; ``busy``: work on files goes on, so that none other can begin."""
        self.row = row
        for button in self.buttons.values():
            button.setVisible(row is not None and button.property("action") in row.actions)
            button.setEnabled(not busy or button.property("action") in MAIN)
        self.name.setText(row.name if row else tr("Choose a model on the left."))
        fit = row.fit if row else None
        texts = {
            self.facts: " · ".join(row.facts) if row else "",
            self.fit: engine_words(fit.words) if fit else "",
            self.draft: row.draft if row else "",
            self.state: "" if row is None or row.trouble else row.state,
            self.speed: row.speed if row else "",
            self.about: row.about if row else "",
        }
        for label, text in texts.items():
            label.setText(text)
            label.setVisible(bool(text))
        fetched = row is not None and row.fraction is not None
        self.bar.setVisible(fetched)
        self.bar.setValue(round(1000 * (row.fraction or 0.0)) if row else 0)
        self._show_trouble(row.trouble if row else None)
        self.restyle()

    def narrowest(self) -> int:
        """The width in pixels at which nothing is cut, whatever is shown."""
        beside = [self.buttons[action].sizeHint().width() for action in ("verify", "repair", "delete")]
        line = sum(beside) + theme.S * (len(beside) - 1)
        return max(line, self.token.minimumSizeHint().width()) + 2 * theme.L

    def restyle(self) -> None:
        """Follows the palette."""
        colours = theme.current()
        for label in (self.facts, self.speed, self.about):
            theme.tint(label, colours.quiet)
        refused = self.row is not None and self.row.fit is not None and self.row.fit.verdict == "no"
        theme.tint(self.fit, colours.warning if refused else colours.text)
        theme.tint(self.trouble_text, colours.warning)

    def _show_trouble(self, trouble: Trouble | None) -> None:
        self.trouble_text.setVisible(trouble is not None)
        self.remedy.setVisible(trouble is not None)
        needs_token = trouble is not None and trouble.kind in ("gated", "token")
        self.token.setVisible(needs_token)
        if trouble is not None:
            self.trouble_text.setText(f"{engine_words(trouble.message).rstrip('.')}: {engine_words(trouble.action)}".rstrip(": "))
            self.remedy.setText(remedy_words(trouble))
            self.buttons["resume"].setVisible(needs_token)  # otherwise the one button does the same

    def _button(self, action: Action) -> QPushButton:
        button = QPushButton(action_words(action))
        button.setProperty("action", action)
        button.setAutoDefault(False)
        button.clicked.connect(lambda: self._on_button(action))
        return button

    def _on_button(self, action: Action) -> None:
        if self.row is not None:
            self.asked.emit(action, self.row.id)

    def _on_remedy(self) -> None:
        if self.row is not None and self.row.trouble is not None:
            self.remedy_asked.emit(self.row.trouble, self.row.id)
