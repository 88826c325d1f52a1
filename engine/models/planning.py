"""Says what has to be fetched for a pair or a repository of the hub: files, sizes and hashes at a fixed commit."""

from __future__ import annotations

from engine.errors import UnknownModel
from engine.models.catalog import read_catalog
from engine.models.download_types import DownloadPlan, DownloadProblem
from engine.models.hub_paths import is_repository
from engine.models.locate import find_complete
from engine.models.pairing import find_draft, no_draft
from engine.models.repository import RemoteRepository, read_repository
from engine.models.runnable import refusal
from engine.models.snapshots import present_bytes
from engine.models.starter import STARTER_ID


def plan_download(wanted: str, token: str | None = None, with_draft: bool = True) -> DownloadPlan:
    """Asks the hub what ``wanted`` consists of: a catalog id, a hub id, or ``TARGET+DRAFT`` of hub ids. Blocks for seconds.

    The draft that fits a lone target is found and planned with it, unless ``with_draft`` is False. What this machine already holds
    (hub cache, LM Studio) is not planned again. ``token`` None takes the kept one. Raises ``DownloadProblem``, ``UnknownModel``.
    """
    wanted = wanted.strip()
    if wanted == STARTER_ID:
        raise UnknownModel("The starter pair comes with the program: set it up with `slipstream models add starter`.")
    pair = next((pair for pair in read_catalog() if wanted in (pair.id, f"{pair.target}+{pair.draft}")), None)
    target, plus, draft = (pair.target, "", pair.draft) if pair else wanted.partition("+")
    for name in (target, draft):
        if name and not is_repository(name):
            raise UnknownModel(f"{name} is neither a pair of the catalog nor a hub id: write OWNER/NAME.")
    if not target or (plus and not draft):
        raise UnknownModel("One side of the + is empty: write TARGET+DRAFT, or TARGET alone.")
    remote = {target: _read(target, token)}
    _refuse_what_cannot_run(target, remote[target])
    chosen = draft or None
    if chosen is None and with_draft and pair is None:
        described = remote[target] or read_repository(target, token)
        chosen = find_draft(described, token)
        pair = next((pair for pair in read_catalog() if (target, chosen) == (pair.target, pair.draft)), None)
    if chosen is not None:
        remote[chosen] = _read(chosen, token)
        _refuse_what_cannot_run(chosen, remote[chosen])
    identity = pair.id if pair else f"{target}+{chosen}" if chosen else target
    name = pair.name if pair else target.rsplit("/", 1)[-1]
    return _plan(identity, name, chosen, remote, no_draft(name) if chosen is None else None)


def _read(repository: str, token: str | None) -> RemoteRepository | None:
    """None where this machine holds it already."""
    return None if find_complete(repository) is not None else read_repository(repository, token)


def _refuse_what_cannot_run(repository: str, described: RemoteRepository | None) -> None:
    """By its config.json, before any weights are fetched. Raises ``DownloadProblem``."""
    refused = None if described is None else refusal(described.config, repository)
    if refused is not None:
        raise DownloadProblem("unsupported", *refused)


def _plan(
    identity: str, name: str, draft: str | None, remote: dict[str, RemoteRepository | None], reason: str | None
) -> DownloadPlan:
    files = tuple(file for described in remote.values() if described is not None for file in described.files)
    return DownloadPlan(
        id=identity,
        name=name,
        repositories=tuple(remote),
        files=files,
        total_bytes=sum(file.size for file in files),
        present_bytes=sum(present_bytes(file) for file in files),
        draft=draft,
        no_draft_reason=reason,
        found=tuple(repository for repository, described in remote.items() if described is None),
    )
