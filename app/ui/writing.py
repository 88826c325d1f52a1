"""The window's side of the message being written: its draft, the files that go along, and the tokens it will take."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QObject, QTimer, QUrl
from PySide6.QtGui import QDragEnterEvent, QDropEvent
from PySide6.QtWidgets import QFileDialog

from app.core.attachments import AttachmentError, read_file
from app.core.chat import Attachment, Chat, ChatMessage, attachment_values, attachments_of, request_messages, request_text
from app.core.documents.kinds import kind_of
from app.core.words import tr
from app.ui.attachment_chips import AttachmentChip
from app.ui.composer import SETTLE_MS
from app.ui.context_meter import ContextUse
from app.ui.document_reading import DocumentReading
from app.ui.opening import open_url
from app.ui.prompt_edit import local_files
from engine import Message

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

LEFT_FOR_THE_ANSWER = 0.1  # of the context, where a file is cut to fit
ANY = Message("user", "x")  # a turn to count the others with: a template wants one


class Writing(QObject):
    """Files may be dropped anywhere on the window but on the list of chats, which takes chats."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._talk, self._client = window, window.services.conversation, window.services.client
        self._composer, self._editing = window.composer, window.transcript.editing
        self.documents = DocumentReading(window)
        self._kept_edits: dict[str, str] = {}
        self._edited = QTimer(self, interval=SETTLE_MS, singleShot=True)
        self._edited.timeout.connect(self._save_edits)
        self._editing.changed = self._edited.start
        self._editing.take_chats = self.take_chats
        self._soon = QTimer(self, interval=0, singleShot=True)  # opening a chat asks more than once
        self._soon.timeout.connect(self._count)
        self._known: dict[tuple[Any, ...], int] = {}  # tokens of parts that were counted
        self._asked: list[tuple[Any, ...]] = []
        self._empty = True  # there is nothing yet that could be counted
        self._composer.draft_changed.connect(self._on_settled)
        self._talk.leaving.connect(self._keep_newest)
        self._composer.files_given.connect(self.take_files)
        self._composer.attach_asked.connect(self.choose_files)
        self._client.parts_counted.connect(self._on_counted)
        self._client.loaded.connect(lambda _info: self._known.clear())
        self._client.state_changed.connect(self._on_state)
        self._talk.options.changed.connect(lambda _options: self.count())
        window.setAcceptDrops(True)
        window.installEventFilter(self)

    # Drafts

    def draft_key(self, chat: Chat | None) -> str:
        """Where the draft of a chat is kept."""
        return f"draft:{chat.id if chat else 'new'}"

    def restore(self, chat: Chat | None) -> None:
        """Shows the draft of a chat; half-written edits of its messages are there when they are edited again."""
        self.documents.leave()
        edits = self._window.services.store.setting(f"edits:{chat.id}", {}) if chat else {}
        self._kept_edits = edits
        self._editing.unsent = {int(message_id): text for message_id, text in edits.items()}
        kept = self._window.services.store.setting(self.draft_key(chat), "")
        if isinstance(kept, dict):
            self._composer.set_text(str(kept.get("text", "")), attachments_of(kept.get("attachments")))
        else:
            self._composer.set_text(str(kept))
        self.documents.show(self.draft_key(chat))
        unread = kept.get("unread") if isinstance(kept, dict) else None
        self.documents.resume([path for path in unread if isinstance(path, str)] if isinstance(unread, list) else [])

    def save(self) -> None:
        """Keeps what is being written with its chat."""
        self._save_edits()
        self.documents.draft = self.draft_key(self._talk.chat)
        text, files, unread = self._composer.text(), self._composer.attachments, self.documents.unread
        whole = {"text": text, "attachments": [attachment_values(file) for file in files], "unread": unread}
        kept = whole if files or unread else text
        self._talk.remember(self.draft_key(self._talk.chat), kept)

    def _keep_newest(self) -> None:
        self._save_edits()
        if self._composer.unsettled:
            self.save()

    def _save_edits(self) -> None:
        self._edited.stop()
        chat = self._talk.chat
        edits = {str(message_id): text for message_id, text in self._editing.unsent.items() if self._can_return(message_id)}
        if chat is not None and edits != self._kept_edits:
            self._kept_edits = edits
            self._talk.remember(f"edits:{chat.id}", edits)

    def _can_return(self, message_id: int) -> bool:
        """Whether a message is there, or deleted and can be brought back."""
        return message_id in self._talk.tree or self._window.services.store.has_message(message_id)

    # Files

    def choose_files(self) -> None:
        """Asks for files to attach."""
        names, _filter = QFileDialog.getOpenFileNames(self._window, tr("Attach text, code, PDF or Word files"))
        self.add_files([Path(name) for name in names])

    def add_files(self, paths: Sequence[Path]) -> None:
        """Attaches files, and says of those that cannot be why not."""
        self.documents.begin()
        for path in paths:
            try:
                if kind_of(path):
                    self.documents.read(path)
                else:
                    self._composer.add(read_file(path))
            except AttachmentError as error:
                self.documents.tell(str(error))
        self._composer.setFocus()

    def take_files(self, paths: Sequence[Path]) -> None:
        """Attaches files that were dropped or pasted; exported chats among them are taken in among the chats."""
        if files := self.take_chats(paths):
            self._window.do.show_chat()
            self.add_files(files)

    def take_chats(self, paths: Sequence[Path]) -> list[Path]:
        """Takes in the exported chats among files that were dropped or pasted; the others are returned."""
        chats = [path for path in paths if path.suffix.lower() == ".slipchat"]
        for chat in chats:
            open_url(self._window, QUrl.fromLocalFile(str(chat)))
        return [path for path in paths if path not in chats]

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.DragEnter and isinstance(event, QDragEnterEvent) and local_files(event.mimeData()):
            event.acceptProposedAction()
            return True
        if event.type() == QEvent.Type.Drop and isinstance(event, QDropEvent) and (files := local_files(event.mimeData())):
            event.acceptProposedAction()
            self.take_files(files)
            return True
        return False

    # Tokens

    def count(self) -> None:
        """Asks for the tokens of the chat with what is being written, and of the parts that were not counted before."""
        if self._client.info is None:
            self._composer.context.show_use(None)
        else:
            self._soon.start()

    def settle(self) -> None:
        """Drops what is still to be counted and kept, for the end of the program."""
        self._soon.stop()
        self._edited.stop()

    def _count(self) -> None:
        if self._client.info is None:
            return
        before = request_messages(self._talk.messages)
        parts = self._parts(before)
        self._asked = [key for key in parts if key not in self._known]
        turns = [*before, *self._draft_turn()]
        self._empty = not turns
        self._client.count(self._talk.options.current.turns(turns or [ANY]), [parts[key] for key in self._asked])

    def _draft_turn(self) -> list[Message]:
        draft = ChatMessage(0, 0, "user", self._composer.text(), "sent", 0.0, attachments=self._composer.attachments)
        return [Message("user", request_text(draft))] if draft.has_text else []

    def _history_key(self) -> tuple[Any, ...]:
        system = self._talk.options.current.system.strip()
        return ("history", system, tuple((message.id, len(message.content)) for message in self._talk.messages))

    def _parts(self, turns: Sequence[Message]) -> dict[tuple[Any, ...], list[Message]]:
        """What has to be counted by itself: nothing, the instructions, the chat before the message (``turns``), each file."""
        options = self._talk.options.current
        files = {("file", file): [Message("user", request_text(_alone(file)))] for file in self._composer.attachments}
        return {
            ("nothing",): [ANY],
            ("system", options.system): list(options.turns([ANY])),
            self._history_key(): list(options.turns([*turns, ANY])),
            **files,
        }

    def _on_counted(self, tokens: int, parts: list[int]) -> None:
        self._known |= dict(zip(self._asked, parts, strict=False))
        info, options = self._client.info, self._talk.options.current
        keys: list[tuple[Any, ...]] = [("nothing",), ("system", options.system), self._history_key()]
        if info is None or not all(key in self._known for key in keys):
            return  # another chat was opened meanwhile: its own count is on the way
        nothing, system, history = (self._known[key] for key in keys)
        sizes: dict[AttachmentChip, int] = {}
        for chip in self._composer.chips.chips:
            counted = self._known.get(("file", chip.attachment), -1)
            chip.show_tokens(counted - nothing if counted >= nothing >= 0 else None)
            sizes[chip] = max(0, counted - nothing)
        of_files = sum(sizes.values())
        if self._empty:
            tokens = max(0, system - nothing)
        writing = self._composer.has_content
        chat = history - system if writing else tokens - (system - nothing)
        message = tokens - (history - nothing) - of_files if writing else 0
        named = [(tr("Instructions"), system - nothing), (tr("Chat so far"), chat), (tr("Files"), of_files)]
        # A template that refuses a part by itself leaves only the sum to be told.
        known = min(nothing, system, history) >= 0
        shown = [(name, count) for name, count in [*named, (tr("This message"), message)] if known and count > 0]
        self._composer.context.show_use(ContextUse(tokens, info.context_length, shown, options.drop_oldest, options.sparse))
        if known:
            self._offer_part(sizes, tokens - (chat if options.drop_oldest else 0), info.context_length)
        self._trim()

    def _offer_part(self, sizes: dict[AttachmentChip, int], tokens: int, context: int) -> None:
        """Offers to cut the largest of the files, of these ``sizes`` in tokens, where ``tokens`` are too many for the context."""
        largest = max(sizes, key=lambda chip: sizes[chip], default=None)
        if largest is not None and sizes[largest] and tokens >= context:
            keep = sizes[largest] - (tokens - context) - LEFT_FOR_THE_ANSWER * context
            self.documents.offer_part(largest, keep / sizes[largest])

    def _on_state(self) -> None:
        if self._client.info is None:
            self._composer.context.show_use(None)

    def _trim(self) -> None:
        """Forgets old counts: a file's key holds its text."""
        while len(self._known) > 200:
            self._known.pop(next(iter(self._known)))

    def _on_settled(self) -> None:
        self.save()
        self.count()


def _alone(file: Attachment) -> ChatMessage:
    return ChatMessage(0, 0, "user", "", "sent", 0.0, attachments=(file,))
