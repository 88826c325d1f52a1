"""The linter accepts a sound bundle and names what is wrong with each broken one."""

from __future__ import annotations

import plistlib
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from bundle import lint, macho
from bundle.lint_files import PYC_MAGIC
from bundle.project import PACKAGES, SOURCES, Bundle, read

from tests.packaging import tiny_bundle as tiny


@pytest.fixture(scope="module")
def bundle() -> Bundle:
    return read()


@pytest.fixture(scope="module")
def sound(bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.build(bundle, tmp_path_factory.mktemp("sound"))


@pytest.fixture
def app(sound: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(sound, tmp_path / sound.name, symlinks=True))


def test_a_sound_bundle_has_no_problems(sound: Path, bundle: Bundle) -> None:
    assert lint.lint(sound, bundle) == []


def change_plist(app: Path, **values: object) -> None:
    path = app / "Contents" / "Info.plist"
    content = plistlib.loads(path.read_bytes()) | values
    path.write_bytes(plistlib.dumps({key: value for key, value in content.items() if value is not None}))


def package_file(app: Path, name: str, content: bytes | str) -> None:
    tiny.write(app / PACKAGES / name, content)


ARM, INTEL = (tiny.ARM64, tiny.macho()), (tiny.X86_64, tiny.macho(tiny.X86_64))
TIMESTAMP_PYC, OTHER_PYC = PYC_MAGIC + bytes(12), struct.pack("<I", 0x0A0D0DA7) + struct.pack("<I", 1) + bytes(8)
BROKEN: dict[str, tuple[str, Callable[[Path], object]]] = {
    "a library for Intel only": ("architecture", lambda a: package_file(a, "x.so", tiny.macho(tiny.X86_64))),
    "a universal library": ("architecture", lambda a: package_file(a, "x.so", tiny.universal(INTEL, ARM))),
    "a library for macOS 26": ("minimum-os", lambda a: package_file(a, "x.so", tiny.macho(min_os=(26, 2)))),
    "a library for macOS 14.4": ("minimum-os", lambda a: package_file(a, "x.so", tiny.macho(min_os=(14, 4)))),
    "a library that names no macOS": ("minimum-os", lambda a: package_file(a, "x.so", tiny.macho(min_os=None))),
    "a symbol of a later libc++": (
        "libc++",
        lambda a: package_file(a, "x.so", tiny.macho(imports=("__ZTINSt3__117bad_function_callE",))),
    ),
    "an unsigned library": ("signature", lambda a: package_file(a, "x.so", tiny.macho(signed=False))),
    "a truncated library": ("macho", lambda a: package_file(a, "x.so", tiny.macho()[:60])),
    "a library whose framework was pruned": ("load", lambda a: (a / PACKAGES / "mlx/lib/libjaccl.dylib").unlink()),
    "a path of the build machine": ("load", lambda a: package_file(a, "x.so", tiny.macho(loads=("/opt/homebrew/lib/z.dylib",)))),
    "kernels for macOS 26": ("metallib", lambda a: package_file(a, "mlx/lib/mlx.metallib", tiny.metallib(26, 2))),
    "no kernels": ("metallib", lambda a: (a / PACKAGES / "mlx/lib/mlx.metallib").unlink()),
    "kernels away from their library": (
        "load metallib",
        lambda a: (a / PACKAGES / "mlx/lib/libmlx.dylib").rename(a / "Contents/Frameworks/libmlx.dylib"),
    ),
    "kernels twice": ("metallib", lambda a: package_file(a, "mlx/mlx.metallib", tiny.metallib())),
    "a text in the kernels' place": ("metallib", lambda a: package_file(a, "mlx/lib/mlx.metallib", "version https://git-lfs")),
    "a later macOS in Info.plist": ("plist", lambda a: change_plist(a, LSMinimumSystemVersion="15.0")),
    "no URL scheme": ("plist", lambda a: change_plist(a, CFBundleURLTypes=None)),
    "no document type": ("plist", lambda a: change_plist(a, UTExportedTypeDeclarations=[])),
    "a truth value as text": ("plist", lambda a: change_plist(a, NSHighResolutionCapable="true")),
    "an unreadable Info.plist": ("plist", lambda a: (a / "Contents/Info.plist").write_text("<plist>")),
    "another program's version": ("plist", lambda a: change_plist(a, CFBundleShortVersionString="9.9")),
    "no icon": ("icon", lambda a: (a / "Contents/Resources/slipstream.icns").unlink()),
    "a picture that is no icon": ("icon", lambda a: (a / "Contents/Resources/slipstream.icns").write_bytes(b"\x89PNG" + bytes(99))),
    "a package missing": ("packages", lambda a: shutil.rmtree(next((a / PACKAGES).glob("mlx_metal-*")))),
    "a package that is not locked": (
        "packages licences",
        lambda a: package_file(a, "extra-1.dist-info/METADATA", "Metadata-Version: 2.1\nName: extra\nVersion: 1\n"),
    ),
    "no starter model": ("starter", lambda a: shutil.rmtree(a / SOURCES / "resources/starter/target")),
    "a damaged starter model": (
        "starter",
        lambda a: (a / SOURCES / "resources/starter/target/model.safetensors").write_text("WEIGHTS"),
    ),
    "no draft": ("starter", lambda a: (a / SOURCES / "resources/starter/draft/model.safetensors").unlink()),
    "no licences": ("licences", lambda a: (a / SOURCES / "resources/licences/third-party.txt").unlink()),
    "byte code compared by time": ("byte-code", lambda a: package_file(a, "x/__pycache__/x.cpython-312.pyc", TIMESTAMP_PYC)),
    "byte code of another Python": ("byte-code", lambda a: package_file(a, "x/__pycache__/x.cpython-311.pyc", OTHER_PYC)),
    "test files": ("stray", lambda a: package_file(a, "numpy/tests/test_x.py", "")),
    "a cache": ("stray", lambda a: package_file(a, ".pytest_cache/README.md", "")),
    "somebody's chats": ("stray", lambda a: tiny.write(a / SOURCES / "chats.sqlite3", "")),
    "pip": ("stray", lambda a: package_file(a, "pip/__init__.py", "")),
    "names that differ by case": ("stray", lambda a: [package_file(a, name, "") for name in ("Readme", "README")]),
    "a link out of the bundle": ("link", lambda a: (a / "Contents/Resources/link").symlink_to("/usr/lib")),
    "a link to nothing": ("link", lambda a: (a / "Contents/Resources/link").symlink_to("nowhere")),
    "no launcher": ("runtime", lambda a: (a / "Contents/MacOS/Slipstream").unlink()),
    "a launcher that cannot be executed": ("runtime", lambda a: (a / "Contents/MacOS/Slipstream").chmod(0o644)),
    "no Python": ("runtime", lambda a: shutil.rmtree(a / "Contents/Frameworks/Python.framework")),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_bundle_is_caught(app: Path, bundle: Bundle, name: str) -> None:
    rules, break_it = BROKEN[name]
    break_it(app)
    assert {problem.rule for problem in lint.lint(app, bundle)} == set(rules.split())


def test_a_bundle_above_the_size_limit_is_caught(app: Path, bundle: Bundle) -> None:
    with (app / "Contents/Resources/large").open("wb") as file:
        file.truncate(600_000_001)  # a hole: it takes no room on the disk
    assert [problem.rule for problem in lint.lint(app, bundle)] == ["size"]


def test_the_command_ends_with_1_for_a_problem_and_names_it(app: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert lint.main([str(app)]) == 0
    (app / PACKAGES / "mlx/lib/mlx.metallib").unlink()
    assert lint.main([str(app)]) == 1
    assert "metallib: mlx/lib/mlx.metallib is missing" in capsys.readouterr().out


def test_without_the_runtime_only_its_own_rule_is_left_out(app: Path, bundle: Bundle) -> None:
    (app / "Contents/MacOS/Slipstream").unlink()
    assert lint.lint(app, bundle, with_runtime=False) == []


def test_an_optional_library_may_be_absent_and_a_universal_one_is_thinned(tmp_path: Path) -> None:
    path = tiny.write(tmp_path / "x.so", tiny.universal(INTEL, (tiny.ARM64, tiny.macho(min_os=(12, 0), imports=("_a", "_b")))))
    assert [part.architecture for part in macho.slices(path)] == ["x86_64", "arm64"]
    assert macho.thin(path) and not macho.thin(path)
    (part,) = macho.slices(path)
    assert (part.architecture, part.min_os, part.imports, part.signed) == ("arm64", (12, 0), ("_a", "_b"), True)
    assert path.read_bytes() == tiny.macho(min_os=(12, 0), imports=("_a", "_b"))
