"""Every check of the bundle that needs no Mac: ``python -m bundle.check [BUILD]``, or ``make bundle-check``.

Needs a package index (downloads about 220 MB into BUILD/wheels once) and nothing else.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bundle import assemble, lint, lock, macho, project

IMAGE_LIMIT = 260_000_000
PIECE = 4 << 20
SELFTEST_LIMIT_S = 300
WORKFLOWS = project.ROOT / ".github" / "workflows"


def configuration(_build: Path) -> str:
    """Briefcase itself reads pyproject.toml and takes from it what our own reader does."""
    from briefcase.config import DraftAppConfig, parse_config
    from briefcase.console import Console

    root = project.ROOT
    _whole, apps = parse_config(root / "pyproject.toml", platform="macOS", output_format="app", console=Console())
    app: Any = DraftAppConfig(**apps[project.APP])
    ours = project.read()
    theirs = {
        "name": app.formal_name,
        "identifier": app.bundle_identifier,
        "version": str(app.version),
        "min_os": project.version(app.min_os_version),
        "requires": tuple(app.requires),
        "installer_args": tuple(app.requirement_installer_args),
        "sources": tuple(app.sources),
        "cleanup_paths": tuple(path.format(app=app) for path in app.cleanup_paths),
        "icon": app.icon,
        "background": app.installer_background,
        "info": app.info,
        "entitlements": app.entitlement,
    }
    different = [name for name, value in theirs.items() if getattr(ours, name) != value]
    if different or app.universal_build is not False or app.main_module() != "slipstream":
        raise ValueError(f"Briefcase reads other values than we do: {different}")
    return f"{app.bundle_identifier} {app.version}, {len(app.requires)} requirements, {len(app.cleanup_paths)} clean-up paths"


def locked(_build: Path) -> str:
    """The lock still answers pyproject.toml, and has what a resolver on another system would forget."""
    text = lock.LOCK.read_text(encoding="utf-8")
    if changed := lock.difference(text, lock.resolve(project.read(), text)):
        raise ValueError("; ".join(changed) + ": run `python -m bundle.lock`")
    names = lock.pins(text)
    if missing := {"mlx", "mlx-metal", "hf-xet", "pyobjc-core", "pyside6-essentials"} - names.keys():
        raise ValueError(f"the lock lacks {', '.join(sorted(missing))}")
    return f"{len(names)} packages"


def assembled(build: Path) -> str:
    """Downloads, prunes, thins and assembles anew."""
    app = assemble.assemble(build)
    return f"{assemble.size(app) / 1e6:.0f} MB without Python's runtime and the launcher"


def linted(build: Path) -> str:
    """No problem in the assembled bundle."""
    bundle = project.read()
    app = build / bundle.folder
    if problems := lint.lint(app, bundle, with_runtime=False):
        raise ValueError("\n".join(map(str, problems)))
    return f"{sum(macho.is_macho(path) for path in assemble.files(app))} Mach-O files, 0 problems"


def compressed(build: Path) -> str:
    """An estimate of the disk image: its usual format compresses pieces of the files with zlib."""
    app = build / project.read().folder
    pieces = (path.read_bytes()[at : at + PIECE] for path in assemble.files(app) for at in range(0, path.stat().st_size, PIECE))
    total = sum(len(zlib.compress(piece, 6)) for piece in pieces)
    if total > IMAGE_LIMIT:
        raise ValueError(f"{total / 1e6:.0f} MB compressed, more than {IMAGE_LIMIT / 1e6:.0f}")
    return f"{total / 1e6:.0f} MB by zlib, of at most {IMAGE_LIMIT / 1e6:.0f}"


def twin(build: Path) -> str:
    """The self-test of the assembled code, with this system's compiled packages in place of the Mac's.

    Started as the Finder would: no PATH, no variables, in the root folder. Pruned packages without compiled code are the
    bundle's own, so what was pruned and is still needed is noticed here.
    """
    app, pure = build / project.read().folder, build / "pure"
    _link_pure_packages(app / project.PACKAGES, pure)
    report, home = build / "selftest.json", build / "home"
    report.unlink(missing_ok=True)
    before = snapshot(app)
    environment = {"HOME": str(home), "PYTHONPATH": f"{app / project.SOURCES}:{pure}", "QT_QPA_PLATFORM": "offscreen"}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1"}  # as the bundle's launcher sets it
    command = [sys.executable, "-m", "slipstream", "selftest", "--json", str(report)]
    home.mkdir(exist_ok=True)
    done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=SELFTEST_LIMIT_S, check=False)
    if done.returncode != 0:
        raise ValueError(f"the self-test ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-2000:]}")
    if snapshot(app) != before:
        raise ValueError("the self-test wrote into the bundle")
    checks = json.loads(report.read_text(encoding="utf-8"))["checks"]
    return f"{len(checks)} checks, nothing written into the bundle"


def _link_pure_packages(packages: Path, folder: Path) -> None:
    """Links to the packages that hold no compiled code: these run on any system."""
    folder.mkdir(exist_ok=True)
    for link in folder.iterdir():
        link.unlink()
    mac_only = {"AppKit", "Foundation", "CoreFoundation", "Cocoa", "PyObjCTools", "mlx", "PySide6", "shiboken6", "google"}
    for path in packages.iterdir():
        compiled = path.is_dir() and any(macho.is_macho(file) for file in assemble.files(path))
        if not compiled and path.suffix != ".dist-info" and path.name not in mac_only | {"__pycache__"}:
            (folder / path.name).symlink_to(path)


def snapshot(folder: Path) -> dict[str, tuple[int, int]]:
    """Every file with its size and the time of its last change."""
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in assemble.files(folder)}


def briefcase_dev(_build: Path) -> str:
    """``briefcase dev --test``: Briefcase starts the test module of the app with its own paths."""
    command = [sys.executable, "-m", "briefcase", "dev", "--test", "--no-isolation", "--no-input"]
    environment = dict(os.environ) | {"QT_QPA_PLATFORM": "offscreen", "PYTHONDEVMODE": ""}
    done = subprocess.run(command, cwd=project.ROOT, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0 or "Test suite passed!" not in done.stdout:
        raise ValueError(f"ended with {done.returncode}: {(done.stdout + done.stderr).strip()[-2000:]}")
    return next((line for line in reversed(done.stdout.splitlines()) if " passed" in line), "passed").strip()


def workflows(_build: Path) -> str:
    """The workflow files have the form that GitHub asks for."""
    files = sorted(WORKFLOWS.glob("*.yml"))
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.github-workflows", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0 or not files:
        raise ValueError(done.stdout.strip() or done.stderr.strip())
    return ", ".join(path.name for path in files)


Check = Callable[[Path], str]
CHECKS: tuple[Check, ...] = (configuration, locked, workflows, briefcase_dev, assembled, linted, compressed, twin)


def main(arguments: list[str]) -> int:
    """Runs every check and prints one line for each; 1 where one failed."""
    build = Path(arguments[0] if arguments else project.ROOT / "build" / "bundle").resolve()
    build.mkdir(parents=True, exist_ok=True)
    failed: list[Check] = []
    for check in CHECKS:
        start = time.monotonic()
        try:
            if assembled in failed:
                raise ValueError("not run, because there is no bundle")
            text, word = check(build), "ok"
        except Exception as error:  # one failed check must not hide the others
            text, word = f"{type(error).__name__}: {error}", "FAILED"
            failed.append(check)
        print(f"{word:<6} {check.__name__:<14} {text} ({time.monotonic() - start:.0f} s)", flush=True)
    print(f"{len(CHECKS) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
