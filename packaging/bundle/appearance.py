"""The icon's dark and tinted appearance (macOS 26): writes the Icon Composer document, and compiles it into a bundle on a Mac.

``python -m bundle.appearance APP`` needs Xcode 26's actool; without it the bundle keeps its plain icon, and says so.
"""

from __future__ import annotations

import glob
import json
import os
import plistlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from bundle.project import ROOT, read

XCODES = "/Applications/Xcode_2[6-9]*.app"  # where hosted runners keep versions beside the default one
GROUND = {"light": "0.11373,0.29020,0.24314", "dark": "0.06275,0.08627,0.07843"}
TICKS_TINTED = "0.94902,0.94902,0.94902"


def _colour(rgb: str, kind: str = "solid") -> dict[str, str]:
    return {kind: f"extended-srgb:{rgb},1.00000"}


def document() -> dict[str, Any]:
    """icon.json: one layer of ticks on a ground that darkens; the tinted form is light on what the system chooses."""
    layer = {
        "name": "Ticks",
        "image-name": "app-ticks.svg",
        "glass": False,
        "fill-specializations": [{"appearance": "tinted", "value": _colour(TICKS_TINTED)}],
    }
    return {
        "fill-specializations": [
            {"value": _colour(GROUND["light"], "automatic-gradient")},
            {"appearance": "dark", "value": _colour(GROUND["dark"], "automatic-gradient")},
        ],
        "groups": [{"layers": [layer], "shadow": {"kind": "neutral", "opacity": 0.5}}],
        "supported-platforms": {"squares": ["macOS"]},
    }


def write(folder: Path) -> None:
    """The document as Icon Composer keeps it: a folder with icon.json and its pictures."""
    (folder / "Assets").mkdir(parents=True, exist_ok=True)
    (folder / "icon.json").write_text(json.dumps(document(), indent=2) + "\n", encoding="utf-8")
    shutil.copy(ROOT / "resources" / "icons" / "app-ticks.svg", folder / "Assets")


def compile_into(app: Path) -> bool:
    """Adds Assets.car and its name to ``app``. False where no actool can: the bundle is unchanged then."""
    bundle = read()
    with tempfile.TemporaryDirectory() as scratch:
        source, out = Path(scratch) / f"{bundle.name}.icon", Path(scratch) / "out"
        write(source)
        out.mkdir()
        command = ["xcrun", "actool", str(source), "--compile", str(out), "--app-icon", bundle.name, "--platform", "macosx"]
        command += ["--target-device", "mac", "--minimum-deployment-target", ".".join(map(str, bundle.min_os))]
        command += ["--enable-on-demand-resources", "NO", "--development-region", "en"]
        command += ["--output-partial-info-plist", str(Path(scratch) / "partial.plist"), "--errors", "--warnings"]
        try:
            done = subprocess.run(command, env=_environment(), capture_output=True, text=True, check=False)
        except OSError as error:
            print(f"appearance: no actool ({error.strerror})")
            return False
        if done.returncode != 0 or not (out / "Assets.car").is_file():
            print(f"appearance: actool gave no Assets.car: {(done.stdout + done.stderr).strip()[-500:]}")
            return False
        shutil.copy(out / "Assets.car", app / "Contents" / "Resources" / "Assets.car")
    path = app / "Contents" / "Info.plist"
    path.write_bytes(plistlib.dumps(plistlib.loads(path.read_bytes()) | {"CFBundleIconName": bundle.name}))
    return True


def _environment() -> dict[str, str]:
    """The newest Xcode 26 or later for this one call; the default one of a runner may be older."""
    found = sorted(path for path in glob.glob(XCODES) if "beta" not in path.lower())
    return dict(os.environ) | ({"DEVELOPER_DIR": f"{found[-1]}/Contents/Developer"} if found else {})


if __name__ == "__main__":
    if not compile_into(Path(sys.argv[1])):
        print("appearance: the bundle keeps its plain icon; dark and tinted ones need Xcode 26.")
