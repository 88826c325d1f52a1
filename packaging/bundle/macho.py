"""Reads Mach-O files on any system: architectures, minimum macOS, what they load and from where; thins universal ones."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from macholib import mach_o
from macholib.MachO import MachO

MAGICS = (b"\xca\xfe\xba\xbe", b"\xbe\xba\xfe\xca", b"\xcf\xfa\xed\xfe", b"\xfe\xed\xfa\xcf")
ARM64 = 0x0100000C
ARCHITECTURES = {ARM64: "arm64", 0x01000007: "x86_64"}
LC_CODE_SIGNATURE = 0x1D
_NLIST = struct.Struct("<IBBHQ")


@dataclass(frozen=True, slots=True)
class Slice:
    """One architecture inside a file. ``loads`` are (install name, is weak); ``imports`` the undefined symbols."""

    architecture: str
    offset: int
    size: int
    min_os: tuple[int, int] | None
    loads: tuple[tuple[str, bool], ...]
    rpaths: tuple[str, ...]
    signed: bool
    imports: tuple[str, ...]


def is_macho(path: Path) -> bool:
    """By its first bytes."""
    with path.open("rb") as file:
        return file.read(4) in MAGICS


def slices(path: Path) -> list[Slice]:
    """Every architecture in ``path``. Raises ``ValueError`` where the file is damaged."""
    try:
        headers = MachO(str(path), allow_unknown_load_commands=True).headers
    except (ValueError, struct.error, KeyError, OverflowError) as error:
        raise ValueError(f"{path.name} is no readable Mach-O file: {error}") from error
    content = path.read_bytes()
    return [_slice(header, content) for header in headers]


def _slice(header, content: bytes) -> Slice:
    min_os, signed, loads, rpaths = None, False, [], []
    symbols = dynamic = None
    for load, command, data in header.commands:
        kind = load.cmd
        if kind == mach_o.LC_BUILD_VERSION:
            min_os = _version(command.minos)
        elif kind == mach_o.LC_VERSION_MIN_MACOSX:
            min_os = _version(command.version)
        elif kind in (mach_o.LC_LOAD_DYLIB, mach_o.LC_LOAD_WEAK_DYLIB, mach_o.LC_REEXPORT_DYLIB):
            loads.append((_text(data), kind == mach_o.LC_LOAD_WEAK_DYLIB))
        elif kind == mach_o.LC_RPATH:
            rpaths.append(_text(data))
        elif kind == LC_CODE_SIGNATURE:
            signed = True
        elif kind == mach_o.LC_SYMTAB:
            symbols = command
        elif kind == mach_o.LC_DYSYMTAB:
            dynamic = command
    return Slice(
        architecture=ARCHITECTURES.get(header.header.cputype & 0xFFFFFFFF, str(header.header.cputype)),
        offset=header.offset,
        size=header.size,
        min_os=min_os,
        loads=tuple(loads),
        rpaths=tuple(rpaths),
        signed=signed,
        imports=tuple(_undefined(content, header.offset, symbols, dynamic)) if symbols and dynamic else (),
    )


def _version(packed) -> tuple[int, int]:
    return int(packed) >> 16, int(packed) >> 8 & 0xFF


def _text(data: bytes) -> str:
    return data.split(b"\0", 1)[0].decode()


def _undefined(content: bytes, offset: int, symbols, dynamic) -> Iterator[str]:
    names = content[offset + symbols.stroff : offset + symbols.stroff + symbols.strsize]
    start = offset + symbols.symoff + dynamic.iundefsym * _NLIST.size
    for place, *_ in _NLIST.iter_unpack(content[start : start + dynamic.nundefsym * _NLIST.size]):
        yield names[place : names.index(b"\0", place)].decode(errors="replace")


def thin(path: Path) -> bool:
    """Keeps the arm64 part of a universal file, as ``lipo -thin`` does. False: there was nothing to remove."""
    found = slices(path)
    if len(found) < 2:
        return False
    arm = next((part for part in found if part.architecture == "arm64"), None)
    if arm is None:
        raise ValueError(f"{path.name} has no arm64 part")
    content = path.read_bytes()
    path.write_bytes(content[arm.offset : arm.offset + arm.size])
    return True
