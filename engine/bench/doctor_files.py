"""What the doctor finds out about folders, kept measurements, the catalog, the starter pair and the other models."""

from __future__ import annotations

import errno
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from engine.bench.doctor import Verdict, failed, ok, shown, typed, warning
from engine.models import paths
from engine.models.checkpoint import parse_json
from engine.models.hub_paths import hub_cache
from engine.models.room import RESERVE_BYTES, free_bytes, gigabytes

FOLDERS: dict[str, Callable[[], Path]] = {
    "data folder": paths.data_folder,
    "models folder": paths.models_folder,
    "cache folder": paths.cache_folder,
    "hub cache": hub_cache,
}
WHAT_HELPS = {
    errno.ENOSPC: "free some space on its disk",
    errno.EDQUOT: "free some of the space that you may use on its disk",
    errno.ENOTDIR: "move the file away that is where a folder should be",
}
MOVE = {"hub cache": "let HF_HOME name another folder.", "data folder": "let SLIPSTREAM_HOME name another folder."}


def folder(name: str) -> Verdict:
    """Whether a folder can be written, or made, and how much room its disk has. Nothing is left behind."""
    path = FOLDERS[name]().absolute()
    try:
        place = next(parent for parent in (path, *path.parents) if parent.exists())
        with tempfile.TemporaryFile(dir=place) as file:
            file.write(b"ok")
    except OSError as error:
        what = f"{shown(path)} cannot be written ({error.strerror})"
        first = WHAT_HELPS.get(error.errno or 0, "check its owner and rights and those of the folders around it")
        action = f"{first}, or {MOVE.get(name, MOVE['data folder'])}"
        return failed(what, action) if name == "data folder" else warning(what, action)  # the rest can do without
    free = free_bytes(place)
    words = f"{shown(path)}, {gigabytes(free)} free" + ("" if place == path else " (not made yet)")
    return ok(words) if free > RESERVE_BYTES else warning(words, "free some space on this disk.")


def measurements() -> Verdict:
    """What was measured once on this machine and is kept."""
    place = paths.cache_folder() / "costs"
    kinds: Counter[str] = Counter()
    damaged = []
    for file in sorted(place.glob("*.json")) if place.is_dir() else ():
        try:
            parse_json(file.read_bytes())
            kinds[file.stem.rpartition("-")[0]] += 1
        except (OSError, ValueError):
            damaged.append(file.name)
    words = ", ".join(f"{kind}: {count}" for kind, count in sorted(kinds.items())) or "none yet, the first load of a pair measures"
    if damaged:
        return warning(f"{words}; {len(damaged)} cannot be read", f"delete {shown(place)}: what is in it is measured again.")
    return ok(words)


def prefix_cache() -> Verdict:
    """How much of earlier prompts is kept on disk."""
    from engine.models.inventory import size_on_disk

    return ok(f"{gigabytes(size_on_disk(paths.cache_folder() / 'prefix'))} on disk")


def catalog() -> Verdict:
    """Whether the list of pairs that comes with the program is whole."""
    from engine.errors import ModelError
    from engine.models import list_pairs

    try:
        states = Counter(pair.state for pair in list_pairs())
    except ModelError as error:
        return _refused(error)
    return ok(f"{states.total()} pairs, {states['ready']} ready here")


def starter() -> Verdict:
    """Whether the pair that comes with the program is set up and every file of it right, by hashes."""
    from engine.errors import ModelError
    from engine.models import locate, verify_starter
    from engine.models.starter import draft_folder, starter_state

    trouble = locate.problem(draft_folder())
    if trouble is not None:
        return failed("its draft, which comes with the program, is missing or damaged", "install Slipstream again.")
    if starter_state() == "not set up":
        return warning("not set up yet, which the first start does", "run `slipstream models add starter` to do it now.")
    try:
        verify_starter()
    except ModelError as error:
        return _refused(error)
    return ok("every file is as it should be")


def models() -> Verdict:
    """What else lies on this machine."""
    from engine.models import installed, list_downloads
    from engine.models.starter import STARTER_ID

    found, unfinished = installed(), list_downloads()
    words = f"{len(found)} on this machine, {gigabytes(sum(model.bytes for model in found))}"
    words += f"; {len(unfinished)} unfinished downloads" if unfinished else ""
    broken = [model for model in found if model.state == "incomplete" and model.id != STARTER_ID]  # it has a line of its own
    if broken:
        name = typed(shown(broken[0].path)) if broken[0].id == str(broken[0].path) else broken[0].id
        what = f"{words}; {len(broken)} cannot be used, {name} among them"
        return warning(what, f"run `slipstream models verify {name}`, which says what is wrong, or remove it.")
    return ok(words)


def _refused(error: Exception) -> Verdict:
    """An error of ours says what to do after its last colon."""
    what, _, action = str(error).rpartition(": ")
    return failed(what, action)
