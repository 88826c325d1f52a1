"""The rows of the Models window: what is said of each model, and what can be done with it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from app.core.downloads import Download, Trouble, speed_words, state_words
from app.core.engine_words import engine_words
from app.core.figures import size
from app.core.option_words import pair_words
from app.core.pair_options import PairOptions
from app.core.words import tr
from engine.models.entries import PairEntry
from engine.models.paths import models_folder
from engine.models.store_types import Fit, HubModel, InstalledModel

Group = Literal["ready", "downloads", "catalog", "hub"]
Action = Literal[
    "chat", "options", "get", "get anyway", "pause", "resume", "cancel", "import", "verify", "repair", "delete", "forget"
]
STARTER = "starter"


@dataclass(frozen=True, slots=True)
class Shelf:
    """What is known of models now. ``fits`` is by catalog id, installed id or hub id; nothing where sizes are unknown.

    ``drafts`` has, by installed target, the installed draft that fits it; ``options``, by what loads it, how a pair is kept in
    memory where that was chosen.
    """

    pairs: tuple[PairEntry, ...] = ()
    installed: tuple[InstalledModel, ...] = ()
    found: tuple[HubModel, ...] = ()
    fits: dict[str, Fit] = field(default_factory=dict)
    drafts: dict[str, str] = field(default_factory=dict)
    options: Mapping[str, PairOptions] = field(default_factory=dict)

    def options_of(self, pair: str) -> PairOptions:
        """How ``pair`` is to be kept in memory."""
        return self.options.get(pair, PairOptions())

    def pair_of(self, model: InstalledModel) -> str:
        """What loads ``model`` with its draft: a ready pair of the catalog, or itself and the draft that is here."""
        listed = next((name for name in model.used_by if name in self.ready_pairs), "")
        draft = self.drafts.get(model.id)
        return listed or (f"{model.id}+{draft}" if draft else model.id)

    def shares_files(self, one: str, other: str) -> bool:
        """Whether two models (catalog ids or ``TARGET[+DRAFT]``) have a target or draft in common."""
        return bool(self._parts(one) & self._parts(other))

    def _parts(self, model: str) -> set[str]:
        listed = next((pair for pair in self.pairs if pair.id == model), None)
        return {listed.target, listed.draft or listed.target} if listed is not None else set(model.split("+"))

    @property
    def ready_pairs(self) -> set[str]:
        """The ids of the catalog's pairs that can be loaded."""
        return {pair.id for pair in self.pairs if pair.state == "ready"}

    @property
    def bytes_on_disk(self) -> int:
        """All that models take here, of every source."""
        return sum(model.bytes for model in self.installed)


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One model. ``id`` is what is fetched, checked and deleted, ``loads`` what Chat loads; ``fraction`` is a download's, in 0..1.

    ``facts`` are short ("9.1 GB", "Apache-2.0"), ``draft`` and ``about`` sentences, ``bytes`` what deleting gives back at most.
    """

    id: str
    group: Group
    name: str
    facts: tuple[str, ...] = ()
    state: str = ""
    speed: str = ""
    draft: str = ""
    about: str = ""
    fit: Fit | None = None
    fraction: float | None = None
    actions: tuple[Action, ...] = ()
    trouble: Trouble | None = None
    bytes: int = 0
    loads: str = ""

    @property
    def spoken(self) -> str:
        """The row in one sentence, for VoiceOver."""
        fit = engine_words(self.fit.words) if self.fit is not None else ""
        return ", ".join(part for part in (self.name, *self.facts, fit, self.state) if part)


def model_rows(shelf: Shelf, downloads: Iterable[Download], text: str = "") -> list[ModelRow]:
    """What can be chatted with, what is being fetched, what can be fetched, and what the hub has found, in this order.

    ``text`` keeps only the rows whose name or facts have all its words; what the hub found and what is being fetched stay.
    """
    unfinished = [download for download in downloads if download.stage != "done"]
    rows = [_pair_row(pair, shelf) for pair in shelf.pairs]
    rows += [_installed_row(model, shelf) for model in standing_alone(shelf)]
    words = text.lower().split()
    rows = [row for row in rows if all(word in " ".join((row.id, row.name, *row.facts)).lower() for word in words)]
    listed = {row.id for row in rows}
    rows += [_hub_row(model, shelf) for model in shelf.found if model.repository not in listed]
    taken = {name for download in unfinished for name in _names(download)}
    rows = [row for row in rows if row.id not in taken]
    rows += [_download_row(download, shelf) for download in unfinished]
    order: tuple[Group, ...] = ("downloads", "ready", "catalog", "hub")
    verdicts = ("fits", "tight", "no")  # in the catalog what fits comes first
    return sorted(
        rows, key=lambda row: (order.index(row.group), verdicts.index(row.fit.verdict) if row.group == "catalog" and row.fit else 0)
    )


def disk_rows(shelf: Shelf, text: str = "") -> list[ModelRow]:
    """Every model and draft on this machine, largest first: where it lies, how large it is, which pairs need it."""
    words = text.lower().split()
    rows = [replace(_installed_row(model, shelf), group="ready") for model in shelf.installed]
    return [row for row in rows if all(word in row.spoken.lower() for word in words)]


def standing_alone(shelf: Shelf) -> list[InstalledModel]:
    """The models that can be chatted with and are in no ready pair of the catalog."""
    ready = [model for model in shelf.installed if model.state == "ready" and not model.is_draft]
    return [model for model in ready if not shelf.ready_pairs.intersection(model.used_by)]


def display_name(model: InstalledModel) -> str:
    """The repository, or the name of the folder or file."""
    return model.path.name if model.id == str(model.path) else model.id


def source_words(model: InstalledModel) -> str:
    """Where a model came from."""
    names = {
        "slipstream": tr("Slipstream"),
        "hub cache": tr("hub cache"),
        "lm studio": tr("LM Studio"),
        "folder": tr("imported") if model.path.parent == models_folder() else tr("your folder"),
    }
    return names[model.source]


def _names(download: Download) -> set[str]:
    """The ids of rows that a download stands for."""
    return {download.id, download.loads, *(download.plan.repositories[:1] if download.plan is not None else ())}


def _pair_row(pair: PairEntry, shelf: Shelf) -> ModelRow:
    fit = shelf.fits.get(pair.id)
    ready = pair.state == "ready"
    row = ModelRow(
        pair.id,
        "ready" if ready or pair.id == STARTER else "catalog",
        pair.name,
        _facts(pair.size_bytes if ready else pair.download_bytes, pair.precision, pair.licence, pair.gated),
        tr("ready") if ready else tr("incomplete") if pair.state == "incomplete" else "",
        draft=draft_words(pair.draft),
        about=tr(pair.description),
        fit=fit,
        bytes=pair.size_bytes,
        loads=pair.id,
    )
    if pair.id == STARTER:
        return _with_options(replace(row, actions=("chat", "options", "verify") if ready else ("chat",)), shelf)
    if ready:
        return _with_options(replace(row, actions=("chat", "options", "verify", "repair", "delete")), shelf)
    return replace(row, actions=(_get(fit), "delete") if pair.state == "incomplete" else (_get(fit),))


def _installed_row(model: InstalledModel, shelf: Shelf) -> ModelRow:
    names = [pair.name for pair in shelf.pairs if pair.id in model.used_by]
    actions: list[Action] = []
    if model.state == "ready" and not model.is_draft:
        actions += ["chat", "options"]
    if model.state == "importable":
        actions.append("import")
    if model.source == "hub cache":
        actions += ["verify", "repair", "delete"]
    elif model.source == "folder" and model.path.parent != models_folder():
        actions.append("forget")  # the user's own
    elif model.source != "lm studio":
        actions += ["verify"] if model.id == STARTER else ["verify", "delete"]
    row = ModelRow(
        model.id,
        "ready",
        display_name(model),
        tuple(fact for fact in (tr("draft") if model.is_draft else "", size(model.bytes), source_words(model)) if fact),
        tr("ready") if model.state == "ready" else engine_words(model.problem),
        draft=tr("Used by {names}.", names=", ".join(names))
        if names
        else ""
        if model.is_draft
        else draft_words(shelf.drafts.get(model.id)),
        about=str(model.path),
        fit=shelf.fits.get(model.id),
        actions=tuple(actions),
        bytes=model.bytes,
        loads=shelf.pair_of(model),
    )
    return _with_options(row, shelf)


def _with_options(row: ModelRow, shelf: Shelf) -> ModelRow:
    """``row`` with how it will be kept in memory among its facts, where that was chosen."""
    options = shelf.options_of(row.loads)
    return replace(row, facts=(*row.facts, *pair_words(options.kv_bits, options.draft_bits)))


def _hub_row(model: HubModel, shelf: Shelf) -> ModelRow:
    here = any(known.id == model.repository and known.state == "ready" for known in shelf.installed)
    fit = shelf.fits.get(model.repository)
    family = model.family or tr("unknown")
    return ModelRow(
        model.repository,
        "hub",
        model.repository,
        _facts(model.size_bytes, "", model.licence, model.gated),
        tr("ready") if here else "" if model.supported else tr("does not run here"),
        draft=tr("Models of the family {family} do not run here.", family=family)
        if not model.supported
        else draft_words(model.draft)
        if model.takes_draft
        else tr("Runs without a draft."),
        fit=fit,
        actions=() if not model.supported else ("chat",) if here else (_get(fit),),
        loads=model.repository,
    )


def _download_row(download: Download, shelf: Shelf) -> ModelRow:
    names = _names(download)
    known = next((_pair_row(pair, shelf) for pair in shelf.pairs if pair.id in names), None)
    known = known or next((_hub_row(model, shelf) for model in shelf.found if model.repository in names), None)
    row = known or ModelRow(download.id, "downloads", download.name, _facts(download.total, "", "", False))
    plan, draft = download.plan, row.draft
    if plan is not None:
        draft = f"{engine_words(plan.no_draft_reason)}." if plan.no_draft_reason else draft_words(plan.draft)
    actions: dict[str, tuple[Action, ...]] = {
        "asking": ("pause", "cancel"),
        "queued": ("pause", "cancel"),
        "running": ("pause", "cancel"),
        "waiting": ("resume", "pause", "cancel"),
        "paused": ("resume", "cancel"),
        "failed": ("resume", "cancel"),
        "cancelling": (),
    }
    return replace(
        row,
        id=download.id,
        group="downloads",
        state=state_words(download),
        speed=speed_words(download),
        draft=draft,
        fraction=download.fraction if download.fraction is not None else 0.0,
        actions=actions[download.stage],
        trouble=download.trouble,
        loads=download.loads,
    )


def draft_words(draft: str | None) -> str:
    """What guesses ahead, in a sentence."""
    if draft is None:
        return tr("No draft: runs with lookup.")
    return tr("Comes with its draft.") if draft == "built-in" else tr("Comes with its draft {name}.", name=draft)


def _get(fit: Fit | None) -> Action:
    return "get anyway" if fit is not None and fit.verdict == "no" else "get"


def _facts(count: int | None, precision: str, licence: str, gated: bool) -> tuple[str, ...]:
    facts = (size(count) if count else "", precision, licence, tr("asks for consent") if gated else "")
    return tuple(fact for fact in facts if fact)
