"""jjang-ai/vmlx#120, shaircast/vvrite#2, jundot/omlx#125: built on a newer macOS, the app did not start on an older one."""

from __future__ import annotations

from pathlib import Path

import pytest
from bundle import lint
from bundle.project import PACKAGES, read

from tests.packaging import tiny_bundle as tiny


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mlx/lib/libmlx.dylib", tiny.macho(min_os=(26, 2))),
        ("mlx/lib/mlx.metallib", tiny.metallib(26, 0)),
        ("PySide6/QtCore.abi3.so", tiny.macho(min_os=(15, 0))),
    ],
)
def test_one_file_for_a_later_system_stops_the_build(tmp_path: Path, name: str, content: bytes) -> None:
    bundle = read()
    app = tiny.build(bundle, tmp_path)
    assert lint.lint(app, bundle) == []
    tiny.write(app / PACKAGES / name, content)
    assert any(Path(name).name in str(problem) for problem in lint.lint(app, bundle))
