"""What the doctor finds out about the machine and the installed packages."""

from __future__ import annotations

import os
import platform
import sys
from importlib import metadata

import engine
from engine.bench.doctor import Verdict, failed, ok, one_line, warning
from engine.bench.environment import processor
from engine.models.room import gigabytes

OLDEST_MACOS = 14
NAMED_PACKAGES = ("mlx", "mlx-lm", "PySide6-Essentials")  # whose versions a bug report needs
AGAIN = "install Slipstream again (from its source: `make run` does)."
REPORT = "report this with the whole output of `slipstream doctor`."


def system() -> Verdict:
    """Versions of the program, Python and the system, and whether models can run on such a machine at all."""
    release = f"macOS {platform.mac_ver()[0]}" if sys.platform == "darwin" else f"{platform.system()} {platform.release()}"
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()
    parts = [f"Slipstream {engine.__version__}", f"Python {platform.python_version()}", release, processor(), f"{cores} cores"]
    detail = ", ".join(parts)
    if sys.platform == "darwin" and platform.machine() != "arm64":
        return failed(f"{detail}: MLX needs Apple Silicon", "use a Mac with an M-series chip, and a Python built for arm64.")
    if sys.platform == "darwin" and int(platform.mac_ver()[0].partition(".")[0] or 0) < OLDEST_MACOS:
        return failed(f"{detail}: too old", f"update to macOS {OLDEST_MACOS} or newer.")
    return ok(detail)


def packages() -> Verdict:
    """Versions that matter, and whether what is installed is what this version of the program asks for."""
    versions = [f"{name} {_version(name) or 'missing'}" for name in NAMED_PACKAGES]
    wrong = _wrong_packages()
    if wrong:
        return warning(f"{', '.join(versions)}; not as required: {', '.join(wrong)}", AGAIN)
    missing = [name for name in NAMED_PACKAGES if _version(name) is None]
    if missing:
        return failed(", ".join(versions), AGAIN)
    return ok(", ".join(versions))


def _wrong_packages() -> list[str]:
    """The requirements of the installed program that are not met; none where it is not installed as a package."""
    try:
        lines = metadata.requires("slipstream")
    except metadata.PackageNotFoundError:
        lines = None
    if not lines:
        return []
    from packaging.requirements import Requirement

    wrong = []
    for requirement in map(Requirement, lines):
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = _version(requirement.name)
        if found is None or not requirement.specifier.contains(found, prereleases=True):
            wrong.append(f"{requirement.name}{requirement.specifier} (here {found or 'missing'})")
    return wrong


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def mlx() -> Verdict:
    """Whether MLX can be imported and computes, and on which device."""
    try:
        import mlx.core as mx

        device, facts = mx.default_device(), mx.device_info()
        product = (mx.ones((4, 8)) @ mx.ones((8, 4))).sum().item()
    except Exception as error:  # a broken library raises ImportError or OSError, a broken driver RuntimeError
        return failed(f"MLX cannot be used ({one_line(error)})", AGAIN)
    if product != 4 * 4 * 8:
        return failed(f"MLX computed {product:g} where {4 * 4 * 8} is right", REPORT)
    if device == mx.gpu:
        kind = "Metal" if sys.platform == "darwin" else "CUDA"
        limit = facts.get("max_recommended_working_set_size")
        return ok(f"{kind} on {facts.get('device_name', 'the GPU')}" + (f", {gigabytes(int(limit))} for the GPU" if limit else ""))
    if sys.platform == "darwin":
        return warning("Metal is not available, so models run on the CPU and slowly", "start Slipstream outside a virtual machine.")
    return ok("CPU: every value is expanded to fp32")


def engine_imports() -> Verdict:
    """Whether all that the engine is made of can be imported."""
    try:
        import engine.loading
        import engine.server.run  # noqa: F401
    except Exception as error:
        return failed(f"a part cannot be imported ({type(error).__name__}: {one_line(error)})", AGAIN)
    return ok("every part can be imported")


def blas() -> Verdict:
    """Which library multiplies matrices on the CPU, and with how many threads."""
    from engine.kernels.blas import blas_version, use_fast_blas

    fast = use_fast_blas()
    if fast is None:
        return ok("the system's own")
    if not fast:
        return warning(
            "MLX's reference BLAS is in use, so a block takes as long as that many single steps and a draft cannot pay",
            "install OpenBLAS (on Debian: `apt-get install libopenblas0-pthread`).",
        )
    threads, cores = os.environ.get("OPENBLAS_NUM_THREADS", ""), len(os.sched_getaffinity(0))
    words = f"{' '.join(blas_version().split()[:2])}, kernels {os.environ.get('OPENBLAS_CORETYPE', 'as it chooses')}"
    words += f", {threads} of {cores} cores"
    if threads.isdecimal() and int(threads) > cores:
        return warning(words, "set OPENBLAS_NUM_THREADS to no more than the cores, or unset it: its threads wait by spinning.")
    return ok(words)


def memory() -> Verdict:
    """How much memory models may use here, and which pairs of the catalog fit."""
    import psutil

    from engine.models import fits, list_pairs
    from engine.models.fit import machine_memory

    found, usable = psutil.virtual_memory(), machine_memory()
    verdicts = {pair.id: fit.verdict for pair in list_pairs() if (fit := fits(pair.id)) is not None}
    fitting = [name for name, verdict in verdicts.items() if verdict != "no"]
    words = f"{gigabytes(found.total)}, of which models may use {gigabytes(usable)} and {gigabytes(found.available)} are free now; "
    words += f"{len(fitting)} of {len(verdicts)} pairs fit: {', '.join(fitting)}"
    starter = fits("starter")
    if starter is not None and starter.needed_bytes > found.available:
        return warning(words, "close other programs before a model is loaded.")
    return ok(words)
