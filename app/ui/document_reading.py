"""The window's side of documents that are being read: their chips, what is said of them, and the draft each belongs to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt
from PySide6.QtWidgets import QInputDialog, QLineEdit

from app.core.attachments import AttachmentError
from app.core.chat import Attachment, attachment_values
from app.core.documents.part import first_part
from app.core.documents.pdf import PasswordNeeded
from app.core.figures import percent
from app.core.words import tr, trn
from app.services.reading import Job
from app.ui.attachment_chips import AttachmentChip, ReadingChip

if TYPE_CHECKING:
    from app.ui.main_window import MainWindow

TOLD = 3  # problems of files that came together; the others are counted


class DocumentReading(QObject):
    """``draft`` is where what is being written is kept. What files that came together run into is told together."""

    def __init__(self, window: MainWindow):
        super().__init__(window)
        self._window, self._reading = window, window.services.reading
        self._chips: dict[Job, ReadingChip] = {}
        self._offered: Attachment | None = None
        self._told: list[str] = []
        self._locked: dict[Path, str] = {}  # what was said of each document that a password opens
        self.draft = "draft:new"
        self._reading.progressed.connect(self._on_progress)
        self._reading.read.connect(self._on_read)
        self._reading.failed.connect(self._on_failed)

    def begin(self) -> None:
        """More files come; what was said of those before them is no longer told with it, unless some are still being read."""
        if not self._chips:
            self._told.clear()
            self._locked.clear()

    def tell(self, words: str) -> None:
        """Says why a file cannot be attached, with what was said of those that came with it."""
        self._told.append(words)
        more = len(self._told) - TOLD
        rest = [trn("{count} more file has problems.", "{count} more files have problems.", more)] if more > 0 else []
        text, banner = " ".join([*self._told[:TOLD], *rest]), self._window.banner
        if locked := dict(self._locked):
            banner.show_message(text, tr("Enter Password …"), lambda: self._ask_password(locked), until="chat")
        else:
            banner.show_message(text, until="chat")

    def read(self, path: Path, password: str = "") -> None:
        """Reads a document and attaches it to what is being written."""
        self._show(self._reading.start(path, password))

    def leave(self) -> None:
        """What is being written is no longer on show: what is still being read for it will be kept with it."""
        for job in self._chips:
            job.draft = self.draft
        self._chips.clear()
        self.begin()

    def show(self, draft: str) -> None:
        """Another draft is on show, with what is still being read for it."""
        self.draft = draft
        for job in self._reading.waiting(draft):
            job.draft = ""
            self._show(job)

    @property
    def unread(self) -> list[str]:
        """The paths of what is still being read for the draft on show."""
        return [str(job.path) for job in self._chips]

    def resume(self, paths: list[str]) -> None:
        """Reads again what a quit interrupted, and what could not be read while its draft was not on show, to tell why."""
        running = self.unread
        for path in paths:
            if path in running:
                running.remove(path)
            else:
                self.read(Path(path))

    def explain(self) -> None:
        """Says why nothing can be sent."""
        names = ", ".join(chip.name for chip in self._chips.values())
        self._window.banner.show_message(tr("{names} is still being read: wait a moment, or remove it.", names=names), until="chat")

    def offer_part(self, chip: AttachmentChip, share: float) -> None:
        """Offers, once a file, to keep the beginning of one that is too long for the model: at most ``share`` (0 to 1) of it."""
        file = chip.attachment
        if file is self._offered:
            return
        self._offered, part = file, first_part(file, share)
        if part is None:
            return
        if part.pages:
            pages = {"pages": part.pages, "of_pages": part.of_pages}
            words = tr("{name} is too long for this model: its first {pages} of {of_pages} pages fit.", name=file.name, **pages)
        else:
            words = tr("{name} is too long for this model: about {share} of it fits.", name=file.name, share=percent(share))
        self._window.banner.show_message(words, tr("Keep What Fits"), lambda: self._exchange(chip, part), until="chat")

    def _exchange(self, chip: AttachmentChip, part: Attachment) -> None:
        if chip in self._window.composer.chips.chips:
            self._window.composer.chips.remove(chip)
            self._window.composer.add(part)

    def _show(self, job: Job) -> None:
        chip = self._chips[job] = self._window.composer.chips.add_reading(job.path.name)
        chip.removed.connect(lambda: self._cancel(job))
        self._on_progress(job)

    def _cancel(self, job: Job) -> None:
        self._chips.pop(job, None)
        self._reading.cancel(job)

    def _on_progress(self, job: Job) -> None:
        if job in self._chips:
            self._chips[job].show_pages(job.pages, job.of_pages)

    def _on_read(self, job: Job, attachment: Attachment) -> None:
        chip = self._chips.pop(job, None)
        if chip is not None:
            self._window.composer.add_read(chip, attachment)
            self._say_what_is_missing(attachment)
        elif job.draft:
            self._keep(job, attachment)

    def _on_failed(self, job: Job, error: AttachmentError) -> None:
        chip = self._chips.pop(job, None)
        if chip is None:
            return  # of another draft, which reads it again when it is on show, and tells why it cannot be read
        self._window.composer.chips.remove(chip)
        if isinstance(error, PasswordNeeded):
            self._locked[job.path] = str(error)
        self.tell(str(error))

    def _say_what_is_missing(self, attachment: Attachment) -> None:
        if attachment.pages < attachment.of_pages:
            words = tr(
                "The first {pages} of {of_pages} pages of {name} were read: the others are too much for one message.",
                pages=attachment.pages,
                of_pages=attachment.of_pages,
                name=attachment.name,
            )
            self._window.banner.show_notice(words, until="chat")

    def _ask_password(self, locked: dict[Path, str]) -> None:
        """Asks for the password of the first locked document, and offers the others again after it."""
        path, *others = locked
        self._told.clear()
        self._locked.clear()
        dialog = QInputDialog(self._window)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setWindowTitle(tr("Password"))
        dialog.setLabelText(tr("Password of {name}", name=path.name))
        dialog.setTextEchoMode(QLineEdit.EchoMode.Password)
        dialog.textValueSelected.connect(lambda password: self.read(path, password))
        dialog.finished.connect(lambda _result: self._offer({other: locked[other] for other in others}))
        dialog.open()

    def _offer(self, locked: dict[Path, str]) -> None:
        self._locked.update(locked)
        for words in locked.values():
            self.tell(words)

    def _keep(self, job: Job, attachment: Attachment) -> None:
        """Adds a document to its draft, which is not on show."""
        kept = self._window.services.store.setting(job.draft, "")
        known = kept if isinstance(kept, dict) else {"text": str(kept), "attachments": []}
        files, unread = [*known.get("attachments", []), attachment_values(attachment)], list(known.get("unread", []))
        if str(job.path) in unread:
            unread.remove(str(job.path))
        self._window.services.conversation.remember(job.draft, {**known, "attachments": files, "unread": unread})
