"""The hash-locked list of packages inside the bundle: ``python -m bundle.lock`` renews it, ``--check`` compares."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from bundle.project import PYTHON, ROOT, Bundle, read

LOCK = ROOT / "packaging" / "bundle" / "constraints-macos.txt"
HEADER = "# Every package inside Slipstream.app with its hashes; written by `python -m bundle.lock`, do not edit.\n"
_PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s\\;]+)", re.MULTILINE)


def pins(text: str) -> dict[str, str]:
    """Package name (normalised) to version."""
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in _PIN.findall(text)}


def resolve(bundle: Bundle, keep: str, upgrade: bool = False) -> str:
    """The lock for ``bundle``: versions of ``keep`` (an earlier lock) stay as long as they fit.

    Raises ``RuntimeError`` with the resolver's words.
    """
    with tempfile.TemporaryDirectory() as folder:
        wanted, lock = Path(folder) / "requirements.in", Path(folder) / "lock.txt"
        wanted.write_text("\n".join(bundle.requires) + "\n", encoding="utf-8")
        lock.write_text("" if upgrade else keep, encoding="utf-8")
        command = [sys.executable, "-m", "uv", "pip", "compile", str(wanted), "--output-file", str(lock), "--quiet"]
        command += ["--python-platform", "aarch64-apple-darwin", "--python-version", PYTHON, "--only-binary", ":all:"]
        command += ["--generate-hashes", "--no-annotate", "--no-header", "--no-progress"]
        done = subprocess.run(command, env=_environment(bundle), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"The packages for macOS do not resolve: {done.stderr.strip()}")
        return HEADER + lock.read_text(encoding="utf-8")


def _environment(bundle: Bundle) -> dict[str, str]:
    """uv listens to its own variables; what was said to pip is passed on. Without a target it assumes an older macOS."""
    environment = dict(os.environ) | {"MACOSX_DEPLOYMENT_TARGET": ".".join(map(str, bundle.min_os))}
    environment.setdefault("UV_NATIVE_TLS", "1")  # the system's certificates, as pip takes them
    for ours, theirs in (
        ("PIP_INDEX_URL", "UV_DEFAULT_INDEX"),
        ("PIP_EXTRA_INDEX_URL", "UV_INDEX"),
        ("PIP_FIND_LINKS", "UV_FIND_LINKS"),
        ("PIP_CERT", "SSL_CERT_FILE"),
    ):
        value = environment.get(ours)
        if value and (ours != "PIP_FIND_LINKS" or Path(value).exists()):  # pip ignores a missing folder, uv does not
            environment.setdefault(theirs, value)
    return environment


def difference(old: str, new: str) -> list[str]:
    """What changed between two locks, one line a package."""
    before, after = pins(old), pins(new)
    return [
        f"{name}: {before.get(name, 'absent')} in the lock, {after.get(name, 'absent')} when resolved now"
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


def main(arguments: list[str]) -> int:
    """Writes the lock, or with ``--check`` says whether it still answers pyproject.toml. ``--upgrade`` takes newest versions."""
    bundle, old = read(), LOCK.read_text(encoding="utf-8") if LOCK.exists() else ""
    try:
        new = resolve(bundle, old, upgrade="--upgrade" in arguments)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1
    changed = difference(old, new)
    print(*changed, sep="\n") if changed else print(f"lock: {len(pins(new))} packages, as pyproject.toml asks")
    if "--check" in arguments:
        return 1 if changed else 0
    LOCK.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
