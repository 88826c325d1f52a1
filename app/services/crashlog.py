"""A log that survives a crash: Python errors and hard faults go to a file that the next start offers."""

from __future__ import annotations

import faulthandler
import logging
import sys
import threading
import time
import traceback as tracebacks
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from app.core.words import tr
from app.store import StoreError

CRASH, PREVIOUS, LOG = "crash.log", "crash-previous.log", "slipstream.log"
LOG_LIMIT = 1_000_000
log = logging.getLogger("slipstream")


class CrashLog:
    """``previous`` is the log of the last run's crash, None where it ended well."""

    def __init__(self, folder: Path):
        self._folder, self._hooks = folder, (sys.excepthook, threading.excepthook)
        self.previous = self._set_aside()
        self.on_error: Callable[[str, str], None] | None = None  # the line to show, and the traceback
        self.on_refusal: Callable[[str], None] | None = None  # what the disk refused, in words
        self._file = (folder / CRASH).open("w", encoding="utf-8", errors="backslashreplace")
        self._handler = logging.FileHandler(folder / LOG, encoding="utf-8", errors="backslashreplace")
        self._handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))

    def install(self) -> None:
        """Routes uncaught errors, hard faults and log records of this process to the folder."""
        logging.getLogger().addHandler(self._handler)
        faulthandler.enable(self._file)
        sys.excepthook = self._on_uncaught
        threading.excepthook = lambda hook: self._on_uncaught(hook.exc_type, hook.exc_value, hook.exc_traceback)

    def close(self) -> None:
        """Restores the hooks. An empty crash file is removed: this run ended well."""
        sys.excepthook, threading.excepthook = self._hooks
        faulthandler.disable()
        logging.getLogger().removeHandler(self._handler)
        self._handler.close()
        self._file.close()
        path = self._folder / CRASH
        if path.exists() and path.stat().st_size == 0:
            path.unlink()

    def _set_aside(self) -> Path | None:
        log_file = self._folder / LOG
        if log_file.exists() and log_file.stat().st_size > LOG_LIMIT:
            log_file.replace(log_file.with_suffix(".old.log"))
        path = self._folder / CRASH
        if not path.exists() or path.stat().st_size == 0:
            return None
        return path.replace(self._folder / PREVIOUS)

    def _on_uncaught(self, kind: type[BaseException], error: BaseException | None, traceback: TracebackType | None) -> None:
        error = error if error is not None else kind()
        in_window = threading.current_thread() is threading.main_thread()
        if isinstance(error, StoreError):  # the disk's doing and no crash: nothing for the next start to tell about
            log.error("the chats could not be read or written", exc_info=(kind, error, traceback))
            if self.on_refusal is not None and in_window:
                self.on_refusal(str(error))
            return
        log.error("uncaught error", exc_info=(kind, error, traceback))
        self._file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} uncaught error\n")
        self._file.writelines(tracebacks.format_exception(kind, error, traceback))
        self._file.flush()
        if sys.__stderr__ is not None:
            sys.__stderr__.writelines(tracebacks.format_exception(kind, error, traceback))
        if self.on_error is not None and in_window:
            line = tr("Something went wrong ({kind}). The chat is saved; the details are in the log.", kind=kind.__name__)
            self.on_error(line, "".join(tracebacks.format_exception(kind, error, traceback)))
