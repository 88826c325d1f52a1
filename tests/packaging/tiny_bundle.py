"""A small bundle that the linter finds nothing wrong with, and Mach-O files written byte by byte to break it with."""

from __future__ import annotations

import plistlib
import struct
from pathlib import Path

from bundle import icons, plist
from bundle.lint_files import PYC_MAGIC
from bundle.lock import LOCK, pins
from bundle.project import APP, PACKAGES, ROOT, SOURCES, Bundle

from engine.models import manifest
from engine.models.starter import PACKAGE

ARM64, X86_64 = (0x0100000C, 0), (0x01000007, 3)


def _string_command(kind: int, fields: bytes, text: str) -> bytes:
    body = fields + text.encode() + b"\0"
    body += b"\0" * (-(8 + len(body)) % 8)
    return struct.pack("<II", kind, 8 + len(body)) + body


def macho(
    cpu: tuple[int, int] = ARM64,
    min_os: tuple[int, int] | None = (14, 0),
    loads: tuple[str, ...] = ("/usr/lib/libSystem.B.dylib",),
    rpaths: tuple[str, ...] = (),
    signed: bool = True,
    imports: tuple[str, ...] = (),
    weak: tuple[str, ...] = (),
) -> bytes:
    """A dynamic library of load commands only; the imports are in its symbol table."""
    commands = [_string_command(0xC, struct.pack("<IIII", 24, 0, 0, 0), name) for name in loads]
    commands += [_string_command(0x80000018, struct.pack("<IIII", 24, 0, 0, 0), name) for name in weak]
    commands += [_string_command(0x8000001C, struct.pack("<I", 12), path) for path in rpaths]
    if min_os is not None:
        packed = min_os[0] << 16 | min_os[1] << 8
        commands.append(struct.pack("<IIIIII", 0x32, 24, 1, packed, packed, 0))
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in imports)
    places = [strings.index(name.encode()) for name in imports]
    symbols = b"".join(struct.pack("<IBBHQ", place, 1, 0, 0, 0) for place in places)
    size = 32 + sum(map(len, commands)) + 24 + 80 + (16 if signed else 0)
    commands.append(struct.pack("<IIIIII", 0x2, 24, size, len(imports), size + len(symbols), len(strings)))
    commands.append(struct.pack("<20I", 0xB, 80, 0, 0, 0, 0, 0, len(imports), *[0] * 12))
    if signed:
        commands.append(struct.pack("<IIII", 0x1D, 16, size, 0))
    body = b"".join(commands)
    return struct.pack("<IIIIIIII", 0xFEEDFACF, *cpu, 6, len(commands), len(body), 0, 0) + body + symbols + strings


def universal(*parts: tuple[tuple[int, int], bytes]) -> bytes:
    """One file of several architectures."""
    place, header, body = 4096, struct.pack(">II", 0xCAFEBABE, len(parts)), b""
    for cpu, content in parts:
        header += struct.pack(">IIIII", *cpu, place + len(body), len(content), 12)
        body += content + b"\0" * (-len(content) % 4096)
    return header.ljust(4096, b"\0") + body


def metallib(major: int = 14, minor: int = 0) -> bytes:
    """The header that names the macOS a Metal library was compiled for."""
    return struct.pack("<4s8sHH", b"MTLB", b"\0" * 8, major, minor) + b"\0" * 8


def write(path: Path, content: bytes | str) -> Path:
    """Writes with the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def build(bundle: Bundle, parent: Path) -> Path:
    """The sound bundle, with launcher and runtime."""
    app = parent / bundle.folder
    packages, resources = app / PACKAGES, app / SOURCES / "resources"
    write(app / "Contents" / "Info.plist", plistlib.dumps(plist.info(bundle)))
    write(app / "Contents" / "MacOS" / bundle.name, macho()).chmod(0o755)
    write(app / "Contents" / "Frameworks" / "Python.framework" / "Python", universal((X86_64, macho(X86_64)), (ARM64, macho())))
    icons.draw(ROOT, parent / "icons")
    write(app / "Contents" / "Resources" / f"{APP}.icns", (parent / "icons" / "slipstream.icns").read_bytes())
    write(app / "Contents" / "Resources" / f"{APP}-slipchat.icns", (parent / "icons" / "document.icns").read_bytes())
    licences = ""
    for name, version in pins(LOCK.read_text()).items():
        folder = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        write(folder / "METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        licences += f"{name} {version}\n"
    write(resources / "licences" / "third-party.txt", licences)
    write(packages / "mlx" / "lib" / "libmlx.dylib", macho(loads=("@rpath/libjaccl.dylib",), rpaths=("@loader_path",)))
    write(packages / "mlx" / "lib" / "libjaccl.dylib", macho())
    write(packages / "mlx" / "lib" / "mlx.metallib", metallib())
    write(packages / "mlx" / "core.so", macho(loads=("@loader_path/lib/libmlx.dylib",), weak=("@rpath/optional.dylib",)))
    write(packages / "mlx" / "__pycache__" / "utils.cpython-312.pyc", PYC_MAGIC + struct.pack("<I", 1) + b"\0" * 8)
    write(resources / "starter" / "target" / "model.safetensors", "weights")
    manifest.write(resources / "starter" / "target", PACKAGE.member_sha256)
    for name in ("config.json", "model.safetensors"):
        write(resources / "starter" / "draft" / name, "{}")
    return app
