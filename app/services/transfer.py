"""Chats to files and back: written whole or not at all, in slices between which the window lives on."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.archive import ArchiveError, WholeChat, chat_json, chats_json
from app.core.chat import Chat
from app.core.export import chat_markdown, file_name
from app.core.os_words import reason
from app.core.tree import ChatTree
from app.core.words import tr, trn
from app.services.conversation import Conversation
from app.services.importing import import_file
from app.store import ChatStore, StoreError

SLICE_S = 0.02
SHOWN_PROBLEMS = 3  # of files that could not be taken in
AS_JSON = (".json", ".slipchat")
Steps = Generator[str, None, None]


class Cancelled(Exception):
    """The user wants no more of it."""


class Transfer(QObject):
    """One transfer at a time. Signals: ``progressed(str)``, one line about how far it is; ``told(str)``, what was done;
    ``failed(str)``, why it was not; ``imported(chat id)`` where it was one chat.
    """

    progressed = Signal(str)
    told = Signal(str)
    failed = Signal(str)
    imported = Signal(int)

    def __init__(self, store: ChatStore, conversation: Conversation, parent: QObject | None = None):
        super().__init__(parent)
        self._store, self._talk = store, conversation
        self._steps: Steps | None = None
        self._waiting: list[Path] = []  # files to take in
        self._importing = self._cancelling = False
        self._said = ""
        self._timer = QTimer(self, interval=0)
        self._timer.timeout.connect(self._run_slice)

    @property
    def running(self) -> bool:
        """Whether a transfer is going on."""
        return self._steps is not None

    def export_chat(self, chat: Chat, path: Path) -> None:
        """Writes a chat: the branch on show as Markdown, or all of it as JSON where the name ends in .json or .slipchat."""
        self._talk.save_partial()
        self._start(self._export_chat(chat, path))

    def export_all(self, path: Path) -> None:
        """Writes all chats: as one JSON file, or as Markdown files in one .zip."""
        self._talk.save_partial()
        self._start(self._export_zip(path) if path.suffix.lower() == ".zip" else self._export_json(path))

    def import_files(self, paths: Sequence[Path]) -> None:
        """Takes in every chat of each exported file, or none of that file's; while an import goes on, after it."""
        if not paths:
            return
        if self._importing:
            self._waiting += paths
            return
        self._waiting = [*paths]
        self._start(self._imports())

    def cancel(self) -> None:
        """Ends what is going on; what was imported so far is taken back first, in slices too."""
        self._cancelling = self.running

    def stop(self) -> None:
        """Ends a transfer at the end of the program; nothing of it is there at the next start."""
        self._timer.stop()
        steps, self._steps = self._steps, None
        if steps is not None:
            steps.close()

    # The slices

    def _start(self, steps: Steps) -> None:
        if self.running:
            self.failed.emit(tr("Chats are being exported or imported already: wait for the end, then try again."))
            return
        self._steps = steps
        self._timer.start()
        self._run_slice()

    def _run_slice(self) -> None:
        begun, steps = time.perf_counter(), self._steps
        if steps is None:
            return
        said = ""
        try:
            if self._cancelling:
                self._cancelling = False
                said = steps.throw(Cancelled())
            while time.perf_counter() - begun < SLICE_S:
                said = next(steps)
        except StopIteration:
            self._end()
        except Cancelled:
            self._end()
            self.told.emit(tr("Cancelled: nothing was changed."))
        except (ArchiveError, StoreError) as error:
            self._end()
            self.failed.emit(str(error))
        except OSError as error:
            self._end()
            self.failed.emit(tr("The chats could not be written ({reason}): choose another place.", reason=reason(error)))
        except Exception:
            self._end()  # or none could follow it
            raise
        else:
            if said != self._said:
                self._said = said
                self.progressed.emit(said)

    def _end(self) -> None:
        self._timer.stop()
        self._steps, self._cancelling = None, False

    # What is done in them: each yields a line about how far it is

    def _export_chat(self, chat: Chat, path: Path) -> Steps:
        with _whole(path) as part:
            messages = self._store.messages(chat.id)
            as_json = path.suffix.lower() in AS_JSON
            text = chat_json(chat, messages) if as_json else chat_markdown(chat, ChatTree(messages).path(chat.leaf_id))
            part.write_text(text, encoding="utf-8")
        yield from ()
        self._tell_exported(1, path)

    def _export_json(self, path: Path) -> Steps:
        chats = self._store.chats()
        done = 0
        with _whole(path) as part, part.open("w", encoding="utf-8") as file:
            for piece in chats_json(self._with_messages(chats)):
                file.write(piece)
                done += 1
                yield tr("Exporting: {done} of {total} chats", done=min(done, len(chats)), total=len(chats))
        self._tell_exported(len(chats), path)

    def _export_zip(self, path: Path) -> Steps:
        chats = self._store.chats()
        names: set[str] = set()
        with _whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as file:
            for done, (chat, messages) in enumerate(self._with_messages(chats), 1):
                name = file_name(chat, "md")
                if name.casefold() in names:
                    name = f"{name.removesuffix('.md')} ({chat.id}).md"
                names.add(name.casefold())
                file.writestr(name, chat_markdown(chat, ChatTree(messages).path(chat.leaf_id)))
                yield tr("Exporting: {done} of {total} chats", done=done, total=len(chats))
        self._tell_exported(len(chats), path)

    def _with_messages(self, chats: list[Chat]) -> Iterator[WholeChat]:
        for chat in chats:
            yield chat, self._store.messages(chat.id)

    def _tell_exported(self, count: int, path: Path) -> None:
        self.told.emit(trn("{count} chat was exported to {file}.", "{count} chats were exported to {file}.", count, file=path.name))

    def _imports(self) -> Steps:
        kept: list[int] = []
        problems: list[str] = []
        notes: list[str] = []  # what was taken in otherwise than it stands there
        self._importing = True
        try:
            while self._waiting:
                try:
                    kept += yield from import_file(self._store, self._waiting.pop(0), notes)
                except (ArchiveError, StoreError) as error:
                    problems.append(str(error))
                except Cancelled:
                    self._waiting.clear()
                    if not kept:
                        raise
                    problems.append(tr("The rest was cancelled."))
        finally:
            self._importing = False
        if kept:
            self._talk.chats_changed.emit()
        said = trn("{count} chat was imported.", "{count} chats were imported.", len(kept))
        if len(kept) == 1:
            self.imported.emit(kept[0])
        elif not problems and not notes:
            self.told.emit(said)
        if problems or notes:
            self.failed.emit(" ".join([*([said] if kept else []), *(problems + notes)[:SHOWN_PROBLEMS]]))


@contextmanager
def _whole(path: Path) -> Iterator[Path]:
    """A file beside ``path`` to write to, which takes its place at the end or is removed where that was not reached."""
    part = path.with_name(f"{path.name}.part")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
