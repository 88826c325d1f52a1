"""MLX on Linux computes with OpenBLAS, whatever part of the engine is imported first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from engine.kernels import blas

ROOT = Path(__file__).parents[3]
use_fast_blas = blas.use_fast_blas.__wrapped__
linux = pytest.mark.skipif(sys.platform != "linux", reason="macOS has a fast BLAS of its own")

MEASURE = """
import {first}
import time
import mlx.core as mx
mx.set_default_device(mx.cpu)
a = mx.random.normal((512, 512))
mx.eval(a @ a)
times = []
for _ in range(5):
    start = time.perf_counter()
    mx.eval(a @ a)
    times.append(time.perf_counter() - start)
print(min(times))
"""


@pytest.fixture(autouse=True)
def mlx_not_imported_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As at the start of a program; the functions under test look no further than this."""
    monkeypatch.delitem(sys.modules, "mlx.core", raising=False)


def product_seconds(first: str) -> float:
    """The time of one 512 x 512 product in a fresh process that imports ``first`` before MLX."""
    command = [sys.executable, "-c", MEASURE.format(first=first)]
    return float(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=120).stdout)


@linux
def test_every_room_that_imports_mlx_makes_its_products_fast() -> None:
    slow = product_seconds("math")
    for first in ("engine.decoding.acceptance", "engine.engine", "engine.drafters.lookup", "engine.kernels.expand"):
        assert product_seconds(first) * 4 < slow, first


@linux
def test_a_program_that_imported_mlx_itself_is_told_that_it_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mlx.core", sys)
    assert use_fast_blas() is False


def test_what_is_imported_before_a_pair_is_loaded_does_not_import_mlx() -> None:
    """A window or a command that only lists models must not wait for it."""
    modules = (
        "engine, engine.models, engine.cli, engine.terminal, engine.selftest, engine.report, engine.bench.run, engine.bench.suite"
    )
    code = f"import {modules}, sys; print([name for name in sys.modules if name.split('.')[0] in ('mlx', 'mlx_lm')])"
    found = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "[]\n"


@linux
def test_a_library_is_found_here() -> None:
    assert use_fast_blas() is True


def test_a_machine_without_the_library_is_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(blas, "LIBRARIES", ("libno-such-library.so.0",))
    assert use_fast_blas() is False


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delenv("OPENBLAS_CORETYPE", raising=False)
    assert use_fast_blas() is None
    assert "OPENBLAS_CORETYPE" not in os.environ


@pytest.mark.parametrize(
    ("flags", "core"),
    [
        ("flags\t\t: fpu sse2 avx2 avx512f avx512dq avx512vl avx512_bf16", "SkylakeX"),
        ("flags\t\t: fpu sse2 avx2 avx512f", "Haswell"),
        ("flags\t\t: fpu sse2 avx avx2", "Haswell"),
        ("flags\t\t: fpu sse2 avx", None),
        ("Features\t: fp asimd", None),
        ("", None),
    ],
)
def test_the_core_is_named_by_what_it_can_do(tmp_path: Path, flags: str, core: str | None) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nmodel name\t: Some Processor\n{flags}\n")
    assert blas._core_type(tmp_path / "cpuinfo") == core


def test_a_system_that_does_not_describe_its_processor_is_left_alone(tmp_path: Path) -> None:
    assert blas._core_type(tmp_path / "missing") is None


@linux
def test_a_core_chosen_by_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    use_fast_blas()
    assert os.environ["OPENBLAS_CORETYPE"] == "Zen"


@pytest.mark.parametrize(("cores", "threads"), [(1, 1), (2, 1), (4, 3), (16, 15)])
def test_one_core_is_left_to_the_window_and_to_building_the_next_pass(cores: int, threads: int) -> None:
    assert blas.blas_threads(cores) == threads


@linux
def test_a_number_of_threads_chosen_by_the_user_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "5")
    use_fast_blas()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "5"
