"""Puts together what of Slipstream.app can be made on any system: all but Python's runtime and the launcher.

``python -m bundle.assemble BUILD`` downloads the locked packages by hash, installs, prunes and thins them, and adds our
code, the starter pair, icons, licences and Info.plist. A Mac then needs nothing of this: there Briefcase does it.
"""

from __future__ import annotations

import plistlib
import shutil
import subprocess
import sys
from pathlib import Path

from bundle import finish, icons, macho, plist
from bundle.lock import LOCK
from bundle.project import APP, PACKAGES, PYTHON, ROOT, SOURCES, Bundle, read

TAG = "".join(PYTHON.split("."))


def platform_arguments(bundle: Bundle) -> list[str]:
    """pip's arguments for the machine the bundle is for."""
    major, minor = bundle.min_os
    arguments = ["--platform", f"macosx_{major}_{minor}_arm64", "--only-binary", ":all:", "--python-version", PYTHON]
    return [*arguments, "--implementation", "cp", "--abi", f"cp{TAG}", "--abi", "abi3", "--abi", "none"]


def fetch(bundle: Bundle, folder: Path) -> None:
    """Downloads the locked wheels into ``folder``, each checked against its hash; those already there are kept."""
    arguments = ["--require-hashes", "--no-deps", "--requirement", str(LOCK), "--dest", str(folder)]
    _pip("download", *arguments, *platform_arguments(bundle))


def install(bundle: Bundle, wheels: Path, packages: Path) -> None:
    """Installs the wheels of ``wheels`` into ``packages``, checking the hashes once more, without the network."""
    shutil.rmtree(packages, ignore_errors=True)
    arguments = ["--no-index", "--find-links", str(wheels), "--require-hashes", "--no-deps", "--no-compile"]
    arguments += ["--target", str(packages), "--requirement", str(LOCK)]
    _pip("install", *arguments, *platform_arguments(bundle))


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "--no-input", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"pip {arguments[0]} failed: {done.stderr.strip()[-2000:]}")


def prune(bundle: Bundle, parent: Path) -> int:
    """Applies the clean-up list to the bundle in ``parent``, in Briefcase's own order and way; returns the bytes saved.

    Raises ``ValueError`` for a pattern that matches nothing: the list would no longer fit the packages.
    """
    before = size(parent)
    for pattern in bundle.cleanup_paths:
        found = 0
        for path in parent.glob(pattern):
            found += 1
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        if not found:
            raise ValueError(f"cleanup_paths: {pattern} matches nothing")
    return before - size(parent)


def thin(packages: Path) -> int:
    """Removes every architecture but arm64; returns the number of files changed."""
    return sum(macho.thin(path) for path in files(packages) if macho.is_macho(path))


def copy_sources(bundle: Bundle, root: Path, folder: Path) -> None:
    """Our own code and resources as Briefcase copies them: each source by its last name, without byte code."""
    for source in bundle.sources:
        name = source.rsplit("/", 1)[-1]
        shutil.copytree(root / source, folder / name, ignore=shutil.ignore_patterns("__pycache__", "*.py[co]"))


def files(folder: Path) -> list[Path]:
    """Every regular file below ``folder``."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


def size(folder: Path) -> int:
    """The bytes of every file below ``folder``."""
    return sum(path.stat().st_size for path in files(folder))


def assemble(build: Path, root: Path = ROOT) -> Path:
    """The bundle in ``build``, made anew; downloads are kept in ``build``/wheels. Returns the .app folder."""
    bundle = read(root)
    app = build / bundle.folder
    shutil.rmtree(app, ignore_errors=True)
    packages, sources, resources = app / PACKAGES, app / SOURCES, app / "Contents" / "Resources"
    fetch(bundle, build / "wheels")
    install(bundle, build / "wheels", packages)
    copy_sources(bundle, root, sources)
    saved = prune(bundle, build)
    thinned = thin(packages)
    print(f"assemble: pruned {saved / 1e6:.0f} MB, thinned {thinned} files")
    finish.finish(app, finish.starter_target())
    icons.draw(root, build / "icons")
    shutil.copy(build / "icons" / f"{Path(bundle.icon).name}.icns", resources / f"{APP}.icns")
    for id, kind in bundle.document_types.items():
        shutil.copy(build / "icons" / f"{Path(kind['icon']).name}.icns", resources / f"{APP}-{id}.icns")
    (app / "Contents" / "Info.plist").write_bytes(plistlib.dumps(plist.info(bundle)))
    return app


def main(arguments: list[str]) -> int:
    """Assembles into the folder named, ``build`` by default."""
    try:
        print(assemble(Path(arguments[0] if arguments else "build")))
    except (RuntimeError, ValueError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
