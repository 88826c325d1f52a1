"""What is added to a created bundle: byte code that is never written again, the starter pair, licences; and what is pruned."""

from __future__ import annotations

import importlib.util
import marshal
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bundle import assemble, finish, icons, licences
from bundle.project import PACKAGES, ROOT, SOURCES, read

from tests.packaging import tiny_bundle as tiny

THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    app = tmp_path / "Slipstream.app"
    tiny.write(app / SOURCES / "shown.py", "answer = 42\n")
    tiny.write(app / PACKAGES / "old" / "__pycache__" / "x.cpython-38.pyc", b"stale")
    tiny.write(app / PACKAGES / "broken.py", "this is for another Python (\n")
    return app


def test_byte_code_is_used_without_being_compared_and_never_written_again(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish, "PYTHON", THIS)
    assert finish.compile_code(app)
    source = app / SOURCES / "shown.py"
    compiled = Path(importlib.util.cache_from_source(str(source)))
    content = compiled.read_bytes()
    assert content[4:8] == b"\1\0\0\0", "the flags of an unchecked hash (PEP 552)"
    assert str(app) not in marshal.loads(content[16:]).co_filename
    source.write_text("answer = 43\n")  # a compared one would be compiled again
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(source.parent)!r}); import shown; print(shown.answer)"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "42\n"
    assert compiled.read_bytes() == content


@pytest.mark.parametrize("python", [THIS, "2.7"])
def test_byte_code_of_other_pythons_goes_and_none_is_made_by_another_python(
    app: Path, monkeypatch: pytest.MonkeyPatch, python: str
) -> None:
    monkeypatch.setattr(finish, "PYTHON", python)
    assert finish.compile_code(app) is (python == THIS)
    assert not (app / PACKAGES / "old" / "__pycache__").exists()
    assert bool(list(app.rglob("*.pyc"))) is (python == THIS)


def test_a_package_without_a_licence_stops_the_build(app: Path) -> None:
    tiny.write(app / PACKAGES / "odd-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: odd\nVersion: 1\n")
    with pytest.raises(ValueError, match="No licence text for odd 1"):
        licences.write(app / PACKAGES, app / "third-party.txt")
    tiny.write(app / PACKAGES / "odd-1.dist-info" / "METADATA", "Metadata-Version: 2.1\nName: odd\nVersion: 1\nLicense: MIT\n")
    licences.write(app / PACKAGES, app / "third-party.txt")
    text = (app / "third-party.txt").read_text()
    assert "odd 1\n=====\n" in text and "Permission is hereby granted" in text and "PYTHON SOFTWARE FOUNDATION" in text


def test_a_licence_that_a_package_brings_is_taken_over_the_general_text(app: Path) -> None:
    information = app / PACKAGES / "odd-1.dist-info"
    tiny.write(information / "METADATA", "Metadata-Version: 2.1\nName: odd\nVersion: 1\nLicense: MIT\n")
    tiny.write(information / "licenses" / "LICENSE.txt", "Do what you like.")
    tiny.write(information / "RECORD", "odd-1.dist-info/licenses/LICENSE.txt,,\n")
    licences.write(app / PACKAGES, app / "third-party.txt")
    assert "odd 1\n=====\n\nDo what you like.\n" in (app / "third-party.txt").read_text()
    assert "Permission is hereby granted" not in (app / "third-party.txt").read_text()


def test_the_clean_up_list_removes_what_it_names_and_must_name_something(app: Path) -> None:
    tiny.write(app / PACKAGES / "x" / "tests" / "deep" / "test_y.py", "")
    tiny.write(app / PACKAGES / "x" / "y.py", "")
    pattern = f"{app.name}/{PACKAGES}/**/tests"
    assemble.prune(replace(read(), cleanup_paths=(pattern,)), app.parent)
    assert not (app / PACKAGES / "x" / "tests").exists() and (app / PACKAGES / "x" / "y.py").exists()
    with pytest.raises(ValueError, match="matches nothing"):
        assemble.prune(replace(read(), cleanup_paths=(pattern,)), app.parent)


def test_the_starter_replaces_what_was_there(app: Path, tmp_path: Path) -> None:
    resources = app / SOURCES / "resources"
    tiny.write(resources / "starter" / "target" / "old", "")
    tiny.write(tmp_path / "target" / "model.safetensors", "weights")
    finish.add_starter(tmp_path / "target", resources)
    assert [path.name for path in (resources / "starter" / "target").iterdir()] == ["model.safetensors"]


def test_our_sources_are_copied_by_their_last_name_without_byte_code(tmp_path: Path) -> None:
    root, bundle = tmp_path / "root", replace(read(), sources=("app", "packaging/entry/slipstream"))
    tiny.write(root / "app" / "__pycache__" / "x.pyc", "")
    tiny.write(root / "app" / "x.py", "")
    shutil.copytree(ROOT / "packaging" / "entry", root / "packaging" / "entry")
    assemble.copy_sources(bundle, root, tmp_path / "copied")
    assert sorted(path.name for path in (tmp_path / "copied").iterdir()) == ["app", "slipstream"]
    assert not list((tmp_path / "copied").rglob("__pycache__"))


def test_the_same_sources_draw_the_same_icons_and_every_size_is_there(tmp_path: Path) -> None:
    import icnsutil

    for turn in ("one", "two"):
        icons.draw(ROOT, tmp_path / turn)
    for name in ("slipstream.icns", "document.icns", "disk-image.png", "app-dark.png", "app-tinted.png"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    media = icnsutil.IcnsFile(str(tmp_path / "one" / "slipstream.icns")).media
    sides = {icnsutil.IcnsType.get(code).size[0] for code in media}
    assert set(media) == set(icons.ENTRIES) and sides == {16, 32, 64, 128, 256, 512, 1024}
    small = icnsutil.ArgbImage(data=media["ic05"])
    assert small.size == (32, 32) and small.a[0] == 0 and small.a[16 * 32 + 5] == 255, "clear corner, opaque ground"
