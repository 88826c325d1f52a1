"""What macOS tells of the machine by name. Other systems have no such names: there nothing is known."""

from __future__ import annotations

import ctypes
import sys
from typing import Any


def system_number(name: str) -> int | None:
    """The whole number that macOS keeps under ``name``; None elsewhere, and where it has no such name."""
    value = _value(name)
    return None if value is None else int.from_bytes(value, "little", signed=True)


def system_text(name: str) -> str | None:
    """The text that macOS keeps under ``name``; None elsewhere, and where it has no such name."""
    value = _value(name)
    return None if value is None else value.rstrip(b"\0").decode("utf-8", "replace")


def _value(name: str) -> bytes | None:
    if sys.platform != "darwin":
        return None
    ask, size = _function(), ctypes.c_size_t(0)
    if ask(name.encode(), None, ctypes.byref(size), None, 0):
        return None
    buffer = ctypes.create_string_buffer(size.value)
    if ask(name.encode(), buffer, ctypes.byref(size), None, 0):
        return None
    return buffer.raw[: size.value]


def _function() -> Any:
    ask = ctypes.CDLL(None).sysctlbyname
    ask.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t), ctypes.c_void_p, ctypes.c_size_t]
    return ask
