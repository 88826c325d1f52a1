"""What macOS tells by name reaches those who ask. The system's function is stood in for by one of the same signature."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import psutil
import pytest

from engine import pressure, sysctl
from engine.bench.environment import processor
from engine.loading import machine_identity
from engine.models import fit

GIB = 2**30
SIGNATURE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p, ctypes.c_size_t
)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """The values of a Mac by name, to be filled in."""
    values: dict[str, bytes] = {}

    def sysctlbyname(name: bytes, buffer: int | None, size, new: int | None, new_size: int) -> int:
        value = values.get(name.decode())
        if value is None or new is not None or new_size:
            return -1
        if buffer is not None:
            if size[0] < len(value):
                return -1
            ctypes.memmove(buffer, value, len(value))
        size[0] = len(value)
        return 0

    library = SimpleNamespace(sysctlbyname=SIGNATURE(sysctlbyname))
    monkeypatch.setattr(sysctl.ctypes, "CDLL", lambda _: library)
    monkeypatch.setattr(sys, "platform", "darwin")
    return values


def test_numbers_and_texts_are_read_and_unknown_names_are_nothing(known: dict[str, bytes]) -> None:
    known |= {"a.level": (4).to_bytes(4, "little"), "a.size": (2**40).to_bytes(8, "little"), "a.name": b"Apple M9\0"}
    assert (sysctl.system_number("a.level"), sysctl.system_number("a.size")) == (4, 2**40)
    assert sysctl.system_text("a.name") == "Apple M9"
    assert (sysctl.system_number("no.such"), sysctl.system_text("no.such")) == (None, None)


@pytest.mark.parametrize(("level", "word"), [(1, "normal"), (2, "warning"), (4, "critical"), (3, "normal"), (None, "normal")])
def test_the_memory_pressure_is_macos_own(known: dict[str, bytes], level: int | None, word: str) -> None:
    if level is not None:
        known["kern.memorystatus_vm_pressure_level"] = level.to_bytes(4, "little")
    assert pressure.system_pressure() == word


@pytest.mark.parametrize(
    ("gibibytes", "limit", "usable"),
    [(16, 0, 16 / 1.5), (32, None, 32 / 1.5), (36, 0, 27), (64, 0, 48), (64, 57344, 56), (8, 99999, 8)],
)
def test_models_may_use_what_a_mac_gives_its_gpu(
    known: dict[str, bytes], monkeypatch: pytest.MonkeyPatch, gibibytes: int, limit: int | None, usable: float
) -> None:
    """By the figures that Metal names for such machines, unless their owner set another with ``iogpu.wired_limit_mb``."""
    machine = psutil.virtual_memory()._replace(total=gibibytes * GIB)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: machine)
    if limit is not None:
        known["iogpu.wired_limit_mb"] = limit.to_bytes(4, "little")
    assert fit.machine_memory() == int(usable * GIB)


def test_measurements_belong_to_a_macs_chip_and_release(known: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> None:
    """Newer releases of macOS let MLX pick other kernels: other costs, and other last bits."""
    known["machdep.cpu.brand_string"] = b"Apple M9 Max\0"
    monkeypatch.setattr("engine.bench.environment.Path.exists", lambda path: False)
    assert processor() == "Apple M9 Max"
    identities = []
    for release in ("26.1", "26.2"):
        monkeypatch.setattr("platform.mac_ver", lambda release=release: (release, ("", "", ""), "arm64"))
        identities.append(machine_identity())
    assert identities[0] != identities[1] and all("Apple M9 Max" in identity for identity in identities)
