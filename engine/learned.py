"""Drafts learned from the user's own chats: one folder a pair below the data folder, on this machine only. No MLX here."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from pathlib import Path

from engine.errors import SlipstreamError
from engine.info import Learned
from engine.models.checkpoint import weight_files
from engine.models.entries import ResolvedPair
from engine.models.paths import data_folder

log = logging.getLogger(__name__)
DRAFT, RUN = "draft-", "run-"


def learned_folder() -> Path:
    """Everything that was ever learned."""
    return data_folder() / "learned"


def forget_all() -> None:
    """Deletes what was learned for every pair, unfinished runs with their texts among it. Raises ``SlipstreamError``."""
    _delete(learned_folder())


def forget_runs() -> None:
    """Deletes the unfinished runs of every pair with their texts; drafts stay. Raises ``SlipstreamError``."""
    for folder in learned_folder().glob(f"*/{RUN}*"):
        _delete(folder)


class LearnedDrafts:
    """What was learned for ``pair``, which is given with its own draft. The file learned.json names the draft that counts.

    Raises ``SlipstreamError`` where the folder cannot be written.
    """

    def __init__(self, pair: ResolvedPair):
        self.home = learned_folder() / _key(pair)
        self._note = self.home / "learned.json"

    def read(self) -> Learned | None:
        """How the learned draft did, None where there is none."""
        found = self._read()
        return None if found is None else found[1]

    def draft(self) -> Path | None:
        """The folder of the learned draft if it is to be used."""
        found = self._read()
        return found[0] if found is not None and found[1].in_use else None

    def use(self, on: bool) -> None:
        """Whether the learned draft is to be used from now on; it stays on disk either way."""
        found = self._read()
        if found is not None:
            folder, learned = found
            self._write(folder, Learned(learned.before, learned.after, on))

    def run_folder(self, identity: str) -> Path:
        """Where the run ``identity`` keeps its state. Unfinished runs of another identity are deleted with their texts."""
        wanted = self.home / f"{RUN}{identity}"
        self._keep_only(RUN, wanted)
        try:
            wanted.mkdir(mode=0o700, parents=True, exist_ok=True)
            learned_folder().chmod(0o700)  # what is below comes from private chats
        except OSError as error:
            raise _unwritable(self.home, error) from error
        return wanted

    def adopt(self, run: Path, before: float, after: float) -> None:
        """Takes the draft that the finished ``run`` left in its folder; the one learned before is deleted."""
        folder = self.home / f"{DRAFT}{run.name.removeprefix(RUN)}"
        try:
            if folder.exists():
                _delete(folder)
            run.rename(folder)
        except OSError as error:
            raise _unwritable(folder, error) from error
        self._write(folder, Learned(before, after, True))
        self._keep_only(DRAFT, folder)

    def drop_runs(self) -> None:
        """Deletes unfinished runs with their texts; the learned draft stays."""
        self._keep_only(RUN, None)

    def _keep_only(self, prefix: str, kept: Path | None) -> None:
        for folder in self.home.glob(f"{prefix}*"):
            if folder != kept:
                _delete(folder)

    def _read(self) -> tuple[Path, Learned] | None:
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            folder = self.home / Path(str(note["folder"])).name
            learned = Learned(float(note["before"]), float(note["after"]), note["in_use"] is True)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            log.warning("what was learned in %s cannot be read and is not used: %r", self.home, error)
            return None
        return (folder, learned) if (folder / "config.json").is_file() else None

    def _write(self, folder: Path, learned: Learned) -> None:
        note = {"folder": folder.name, "before": learned.before, "after": learned.after, "in_use": learned.in_use}
        part = self._note.with_suffix(".part")
        try:
            with part.open("w", encoding="utf-8") as file:
                json.dump(note, file)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._note)
        except OSError as error:
            raise _unwritable(self._note, error) from error


def _key(pair: ResolvedPair) -> str:
    """The pair by place, configuration and size of its files: another model in the same place is another pair."""
    parts = []
    for folder in (pair.target, pair.draft):
        if folder is not None:
            sizes = [file.stat().st_size for file in weight_files(folder)]
            parts.append([str(folder), (folder / "config.json").read_text(encoding="utf-8"), sizes])
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _delete(folder: Path) -> None:
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        pass
    except OSError as error:
        raise SlipstreamError(f"What was learned in {folder} cannot be deleted ({error.strerror}): delete it by hand.") from error


def _unwritable(path: Path, error: OSError) -> SlipstreamError:
    return SlipstreamError(f"What was learned cannot be kept in {path} ({error.strerror}): make room on the disk.")
