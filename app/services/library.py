"""Which models there are: the catalog, what lies on this machine, what the hub offers, and whether each fits."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from PySide6.QtCore import QObject, QTimer, Signal

from app.core.downloads import Trouble
from app.core.figures import size
from app.core.model_rows import Shelf
from app.core.os_words import reason
from app.core.pair_options import PairOptions
from app.core.suggestion import suggested
from app.core.words import tr, trn
from app.services.background import Background
from app.services.downloads import Downloads, trouble
from app.services.pair_options import PairOptionsService
from app.services.settings import KeyValueStore
from app.store import StoreError
from engine import SlipstreamError, models
from engine.models.download_types import REPAIR, DownloadPlan
from engine.models.entries import PairEntry
from engine.models.paths import models_folder
from engine.models.store_types import Fit, HubModel, InstalledModel
from engine.options import BITS

CONTEXTS = (4_096, 8_192, 16_384, 32_768, 65_536, 131_072, 262_144)
CONTEXT = 32_768
RESULTS = 30
FOLDERS, DRAFTS = "model_folders", "fetched_drafts"
REFRESH_MS = 100
QUIT_LIMIT_S = 0.5
log = logging.getLogger(__name__)
JobKind = Literal["verify", "repair", "delete", "import"]


@dataclass(slots=True)
class Job:
    """Work on the files of one model. ``fraction`` is in 0..1, None while unknown."""

    kind: JobKind
    model: str
    fraction: float | None = None
    cancel: threading.Event = field(default_factory=threading.Event)


class Library(QObject):
    """Signals: ``changed()`` follows everything that is listed; ``job_changed()`` the work on files, at most ten times a second;
    ``deleting(model)`` comes before its files go;
    ``told(str)`` has one line of what was done; ``went_wrong(Trouble)`` of what was not.
    """

    changed = Signal()
    job_changed = Signal()
    deleting = Signal(str)
    told = Signal(str)
    went_wrong = Signal(object)

    def __init__(
        self, downloads: Downloads, store: KeyValueStore, pair_options: PairOptionsService, parent: QObject | None = None
    ):
        super().__init__(parent)
        self._downloads, self._store, self._pair_options = downloads, store, pair_options
        pair_options.changed.connect(lambda _pair: self.refresh())
        self._background = Background(self)
        self.shelf = Shelf()
        self.context = CONTEXT
        self.job: Job | None = None
        self.searching = False
        self.search_trouble: Trouble | None = None
        self._found: tuple[HubModel, ...] = ()
        self._look_id = self._search_id = 0
        self._tick = QTimer(self, interval=REFRESH_MS)
        self._tick.timeout.connect(self.job_changed)
        downloads.finished.connect(self._on_fetched)

    # Lists

    def refresh(self) -> None:
        """Looks again; ``changed`` follows. Only the latest look counts."""
        self._look_id += 1
        look, context, found = self._look_id, self.context, self._found
        folders, fetched = self.folders, dict(self._store.setting(DRAFTS, {}))
        options = self._pair_options.all
        self._background.run(
            lambda: read_shelf(found, context, folders, fetched, options),
            lambda shelf: self._on_shelf(look, shelf),
            self._on_trouble,
            "look at models",
        )

    def set_context(self, tokens: int) -> None:
        """Whether a model fits is said for ``tokens`` of context from now on."""
        if tokens != self.context:
            self.context = tokens
            self.refresh()

    def examine(self, pair: str, then: Callable[[Possible], None]) -> None:
        """Calls ``then`` with what ``pair`` can be loaded with at the chosen context."""
        context = self.context
        self._background.run(lambda: _possible(pair, context), then, lambda _error: then(Possible()), "look at options")

    def search(self, text: str) -> None:
        """Asks the hub; ``changed`` follows. An empty text empties the list, and only the latest answer counts."""
        self._search_id += 1
        asked, text = self._search_id, text.strip()
        self.searching, self.search_trouble = bool(text), None
        if text:
            self._background.run(
                lambda: models.search_hub(text, RESULTS),
                lambda found: self._on_found(asked, found),
                lambda error: self._on_search_failed(asked, error),
                "search the hub",
            )
            self.changed.emit()
        else:
            self._on_found(asked, [])

    @property
    def folders(self) -> list[str]:
        """Folders of models that the user has opened, wherever they lie."""
        return [str(folder) for folder in self._store.setting(FOLDERS, [])]

    @property
    def found(self) -> tuple[HubModel, ...]:
        """What the hub has found; ``shelf`` has it once it was looked at."""
        return self._found

    def keep_folder(self, folder: str, keep: bool = True) -> None:
        """Lists a folder among the models, or no longer; the folder itself stays as it is."""
        others = [known for known in self.folders if known != folder]
        self._keep(FOLDERS, [*others, folder] if keep else others)
        self.refresh()

    # Files

    def verify(self, model: str) -> None:
        """Checks every file of ``model`` by its hash; what is damaged is told, and ``repair`` mends it."""
        self._begin(
            Job("verify", model),
            lambda job: models.verify_model(model, lambda done: _keep(job, done), job.cancel),
            self._on_verified,
        )

    def repair(self, model: str) -> None:
        """Fetches the damaged files of ``model`` again."""
        self._begin(Job("repair", model), lambda _job: models.plan_repair(model), self._on_repair)

    def delete(self, model: str) -> None:
        """Deletes what of ``model`` nothing else uses."""
        if self.job is None:
            self.deleting.emit(model)
        self._begin(Job("delete", model), lambda _job: models.delete_model(model), self._on_deleted)

    def import_gguf(self, file: Path) -> None:
        """Makes a model of a GGUF file, beside the others."""

        def work(job: Job) -> Path:
            return models.import_gguf(file, _free_folder(file.stem), lambda done: _keep(job, done), job.cancel)

        self._begin(Job("import", file.name), work, self._on_imported)

    def stop_job(self) -> None:
        """Ends the work on files; an import leaves nothing behind."""
        job = self.job
        if job is not None:
            job.cancel.set()
            self._end_job()

    # The token

    def save_token(self, token: str, then: Callable[[], None]) -> None:
        """Keeps the hub's access token in the keychain; "" forgets it. ``then`` is called once that worked."""
        self._background.run(lambda: models.save_token(token), lambda _nothing: then(), self._on_trouble, "keychain")

    def has_token(self, then: Callable[[bool], None]) -> None:
        """Calls ``then`` with whether there is a token; the token itself stays where it is."""
        self._background.run(lambda: bool(models.read_token()), then, self._on_trouble, "keychain")

    def test_token(self) -> None:
        """Asks the hub whether the kept token is valid, and tells the answer."""

        def work() -> str:
            models.search_hub("", 1)
            return tr("The hub accepts the token.")

        self._background.run(work, self.told.emit, self._on_trouble, "test the token")

    def suggest(self, pair: str, then: Callable[[PairEntry | None], None]) -> None:
        """Calls ``then`` with a bigger pair than ``pair`` that fits this machine; None where there is none."""
        self._background.run(lambda: suggested(pair), then, lambda _error: then(None), "suggest a model")

    def shutdown(self, limit_s: float = QUIT_LIMIT_S) -> bool:
        """Ends the work on files. False: a thread still works, and ends with the process."""
        self._tick.stop()
        if self.job is not None:
            self.job.cancel.set()
        return self._background.close(limit_s)

    # What comes back

    def _on_shelf(self, look: int, shelf: Shelf) -> None:
        if look == self._look_id:
            self.shelf = shelf
            self.changed.emit()

    def _on_fetched(self, model: str) -> None:
        """Remembers which draft came with a target, as its name need not tell it; says that a repair is done."""
        download = self._downloads.find(model)
        if download is not None and model.startswith(REPAIR):
            self.told.emit(tr("{name} is repaired.", name=download.name))
        if download is not None and download.plan is not None and download.plan.draft:
            target = download.plan.repositories[0]
            self._keep(DRAFTS, self._store.setting(DRAFTS, {}) | {target: download.plan.draft})
        self.refresh()

    def _on_found(self, asked: int, found: list[HubModel]) -> None:
        if asked == self._search_id:
            self.searching, self._found = False, tuple(found)
            self.changed.emit()
            self.refresh()

    def _on_search_failed(self, asked: int, error: SlipstreamError) -> None:
        if asked == self._search_id:
            self.search_trouble = trouble(error)
            self._on_found(asked, [])

    def _on_verified(self, damaged: list[str]) -> None:
        if damaged:
            text = trn(
                "{count} file is damaged or missing: {name}.",
                "{count} files are damaged or missing, {name} among them.",
                len(damaged),
                name=damaged[0],
            )
            self.went_wrong.emit(Trouble("hash", text, tr("Choose Repair to fetch what is damaged again.")))
        else:
            self.told.emit(tr("Every file is as it should be."))

    def _on_repair(self, plan: DownloadPlan) -> None:
        if plan.files:
            self._downloads.repair(plan)
        else:
            self.told.emit(tr("Every file is as it should be: there is nothing to repair."))

    def _on_deleted(self, freed: int) -> None:
        self.told.emit(tr("Deleted: {amount} given back.", amount=size(freed)))
        self.refresh()

    def _on_imported(self, folder: Path) -> None:
        self.told.emit(tr("Imported as {name}.", name=folder.name))
        self.refresh()

    def _on_trouble(self, error: SlipstreamError) -> None:
        self.went_wrong.emit(trouble(error))

    # Small parts

    def _keep(self, key: str, value: object) -> None:
        try:
            self._store.set_setting(key, value)
        except StoreError as error:
            log.warning("%s not kept: %s", key, error)  # it counts until the program ends

    def _begin(self, job: Job, work: Callable[[Job], object], then: Callable) -> None:
        if self.job is not None:
            return
        self.job = job

        def done(result: object) -> None:
            if self.job is job:
                self._end_job()
                then(result)

        def failed(error: SlipstreamError) -> None:
            if self.job is job:
                self._end_job()
                self._on_trouble(error)
                self.refresh()  # what is listed may be gone

        self._tick.start()
        self.job_changed.emit()
        self._background.run(lambda: work(job), done, failed, f"{job.kind} {job.model}")

    def _end_job(self) -> None:
        self.job = None
        self._tick.stop()
        self.job_changed.emit()


@dataclass(frozen=True, slots=True)
class Possible:
    """What a pair can be loaded with: ``refused`` says why not, by the option's name; ``fits`` is by bits of keys and values."""

    refused: dict[str, str] = field(default_factory=dict)
    fits: dict[int | None, Fit | None] = field(default_factory=dict)


def _possible(pair: str, context: int) -> Possible:
    return Possible(models.refused_options(pair), {bits: models.fits(pair, context, kv_bits=bits) for bits in (None, *BITS)})


def read_shelf(
    found: tuple[HubModel, ...],
    context: int,
    folders: list[str],
    fetched: dict[str, str],
    options: Mapping[str, PairOptions] = MappingProxyType({}),
) -> Shelf:
    """Looks at the catalog and the folders of this machine. Takes a while: not for the window's thread."""
    pairs, installed = tuple(models.list_pairs()), models.installed()
    known_paths = {model.path for model in installed}
    others = [Path(folder) for folder in folders if Path(folder) not in known_paths]
    installed += [model for folder in others if (model := _opened(folder)) is not None]
    shelf = Shelf(pairs, tuple(installed), found, drafts=_drafts(installed, fetched), options=options)
    known: list[tuple[str, str | InstalledModel | HubModel, str]] = [(pair.id, pair.id, pair.id) for pair in pairs]
    known += [(model.id, model, shelf.pair_of(model)) for model in installed]
    known += [(model.repository, model, model.repository) for model in found]
    judged = ((name, models.fits(model, context, kv_bits=shelf.options_of(loads).kv_bits)) for name, model, loads in known)
    return replace(shelf, fits={name: fit for name, fit in judged if fit is not None})


def _drafts(installed: list[InstalledModel], fetched: dict[str, str]) -> dict[str, str]:
    """By target, its draft: the one that was fetched with it, else one whose name and numbers fit."""
    ready = {model.id: model for model in installed if model.state == "ready"}
    known = {target: draft for target, draft in fetched.items() if target in ready and draft in ready}
    for draft in (model for model in ready.values() if model.is_draft):
        for target in (model for model in ready.values() if not model.is_draft and model.id not in known):
            if models.belongs_to(draft, target):
                known[target.id] = draft.id
    return known


def _opened(folder: Path) -> InstalledModel | None:
    """A folder that the user has opened; None while it is not there, on a disk that is not connected, say."""
    try:
        return models.describe_folder(folder) if folder.is_dir() else None
    except OSError as error:  # a Mac asks its user whether a program may read some folders
        problem = tr("{name} cannot be read ({reason}).", name=folder.name, reason=reason(error))
        return InstalledModel(str(folder), "folder", folder, 0, "incomplete", problem=problem)


def _keep(job: Job, fraction: float) -> None:
    job.fraction = fraction


def _free_folder(name: str) -> Path:
    """A folder of ours that is not there yet."""
    folders = (models_folder() / (name if number == 1 else f"{name} {number}") for number in range(1, 1000))
    return next(folder for folder in folders if not folder.exists())
