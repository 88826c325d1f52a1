"""The release workflow's scripts do in order what they must, with stand-ins for the Mac's own commands."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from bundle import report

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github" / "workflows" / "release.yml"
SCRIPTS = ROOT / "packaging" / "release"


def steps(job: str) -> list[dict]:
    return yaml.safe_load(WORKFLOW.read_text())["jobs"][job]["steps"]


def test_every_script_and_module_that_the_workflow_calls_exists() -> None:
    commands = " ".join(step.get("run", "") for job in ("build", "on-26", "publish") for step in steps(job))
    modules, scripts = set(re.findall(r"python -m (bundle\.\w+)", commands)), set(re.findall(r"sh (packaging/\S+)", commands))
    assert {"bundle.lint", "bundle.finish", "bundle.report", "bundle.feed"} <= modules and len(scripts) == 2
    assert all(importlib.util.find_spec(module) for module in modules) and all((ROOT / script).is_file() for script in scripts)
    assert (ROOT / "NOTES.md").read_text().strip()


def test_the_order_is_create_complete_sign_lint_run_pack_try() -> None:
    commands = [step.get("run", "") for step in steps("build")]

    def place(part: str) -> int:
        return next(index for index, command in enumerate(commands) if part in command)

    order = ["bundle.lock --check", "bundle.icons", "briefcase create", "bundle.appearance", "bundle.finish", "briefcase build"]
    order += ["bundle.lint", "--device cpu", "package.sh", "try_image.sh", "shasum", "bundle.feed write"]
    places = [place(part) for part in order]
    assert places == sorted(places) and len(set(places)) == len(places)


def test_the_same_image_runs_on_macos_26_and_only_a_tag_publishes() -> None:
    jobs = yaml.safe_load(WORKFLOW.read_text())["jobs"]
    assert (jobs["build"]["runs-on"], jobs["on-26"]["runs-on"]) == ("macos-15", "macos-26")
    assert jobs["publish"]["needs"] == ["build", "on-26"] and "refs/tags/v" in jobs["publish"]["if"]
    assert yaml.safe_load(WORKFLOW.read_text())["permissions"] == {"contents": "read"}


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A PATH whose first folder holds the stand-ins; each notes how it was called."""
    folder = tmp_path / "tools"
    folder.mkdir()
    (folder / "python").write_text(f'#!/bin/sh\necho "python $*" >> "$LOG"\n[ "$2" = briefcase ] || exec "{sys.executable}" "$@"\n')
    for name in ("security", "xcrun", "codesign", "uuidgen"):
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$LOG"\n')
    for path in folder.iterdir():
        path.chmod(0o755)
    return folder


def stand_in(tools: Path, name: str, text: str) -> None:
    (tools / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "$LOG"\n{text}\n')
    (tools / name).chmod(0o755)


def run(tools: Path, script: str, *arguments: str, **variables: str) -> tuple[subprocess.CompletedProcess[str], str]:
    log = tools.parent / "log"
    log.unlink(missing_ok=True)
    environment = {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "LOG": str(log),
        "RETRY_S": "0",
        "SETTLE_S": "1",
        "POLL_S": "0.2",
    } | variables
    environment |= {"POLL_S": "0.2", "PYTHONPATH": f"{ROOT / 'packaging'}:{ROOT}", "TMPDIR": str(tools.parent)}
    command = ["sh", str(SCRIPTS / script), *arguments]
    done = subprocess.run(command, env=environment, cwd=tools.parent, capture_output=True, text=True, timeout=60, check=False)
    return done, log.read_text() if log.exists() else ""


def test_without_a_certificate_the_app_is_signed_ad_hoc(tools: Path) -> None:
    done, log = run(tools, "package.sh")
    assert done.returncode == 0 and "ad hoc" in done.stdout
    assert log == "python -m briefcase package macOS app --no-input --packaging-format dmg --adhoc-sign\n"


def test_a_busy_disk_image_is_tried_once_more_and_then_fails(tools: Path) -> None:
    stand_in(tools, "python", "[ -e tried ] || { touch tried; exit 1; }")
    assert run(tools, "package.sh")[0].returncode == 0
    stand_in(tools, "python", "exit 1")
    done, log = run(tools, "package.sh")
    assert done.returncode == 1 and log.count("briefcase package") == 2


IDENTITY = '[ "$1" = find-identity ] && echo "  1) ABCDEF \\"Developer ID Application: Somebody (TEAM)\\"" || true'
SECRETS = {"SIGNING_CERTIFICATE": "Y2VydA==", "SIGNING_PASSWORD": "p", "NOTARY_APPLE_ID": "a", "NOTARY_TEAM_ID": "TEAM"}


@pytest.mark.parametrize("notary", ["", "secret"])
def test_with_a_certificate_it_is_signed_by_it_and_notarised_where_that_is_possible(tools: Path, notary: str) -> None:
    stand_in(tools, "security", IDENTITY)
    done, log = run(tools, "package.sh", NOTARY_PASSWORD=notary, **SECRETS)
    assert done.returncode == 0, done.stderr
    assert "--identity ABCDEF" in log and "adhoc" not in log and "delete-keychain" in log.splitlines()[-1]
    assert ("notarytool store-credentials briefcase-macOS-TEAM" in log) is bool(notary)
    assert ("--no-notarize" in log) is not bool(notary)
    assert not list(tools.parent.glob("tmp.*")), "the certificate must not stay on the disk"


def test_a_certificate_of_another_kind_is_refused_and_removed(tools: Path) -> None:
    done, log = run(tools, "package.sh", **SECRETS)
    assert done.returncode == 1 and "no Developer ID" in done.stderr and "briefcase" not in log
    assert not list(tools.parent.glob("tmp.*"))


APP = """#!/bin/sh
if [ "$1" = selftest ]; then cp "$ROOT_TEST/report.json" "$5"; exit 0; fi
[ -e "$ROOT_TEST/lock" ] && [ -z "$ALWAYS" ] && exit 0
touch "$ROOT_TEST/lock"; echo $$ >> "$ROOT_TEST/pids"
sleep 30 & trap 'kill $!; exit 0' TERM; wait
"""


@pytest.fixture
def image(tools: Path) -> Iterator[Path]:
    """A folder as the image, and commands that mount, start and count as a Mac's would."""
    here = tools.parent
    binary = here / "image" / "Slipstream.app" / "Contents" / "MacOS" / "Slipstream"
    binary.parent.mkdir(parents=True)
    binary.write_text(APP)
    binary.chmod(0o755)
    (here / "image" / "Applications").symlink_to("/Applications")
    (here / "report.json").write_text(json.dumps({"ok": True, "checks": [{"name": "x", "ok": True, "detail": "", "seconds": 0}]}))
    stand_in(tools, "hdiutil", 'case $1 in attach) cp -R "$2" "$4";; detach) rm -rf "$2";; esac')
    stand_in(
        tools,
        "open",
        'wait=; [ "$1" = -W ] && { wait=1; shift; }; shift; app=$1; shift; [ "${1:-}" = --args ] && shift\n'
        'set -- "$app/Contents/MacOS/Slipstream" "$@"\n'
        'if [ -n "$wait" ]; then "$@"; else "$@" >/dev/null 2>&1 & fi',
    )
    alive = 'for pid in $(cat "$ROOT_TEST/pids" 2>/dev/null); do kill -0 $pid 2>/dev/null && echo $pid; done; true'
    stand_in(tools, "pgrep", alive)
    yield here / "image"
    pids = here / "pids"
    for pid in pids.read_text().split() if pids.exists() else []:
        try:
            os.kill(int(pid), signal.SIGTERM)
        except ProcessLookupError:
            continue


def try_image(tools: Path, image: Path, **variables: str) -> tuple[subprocess.CompletedProcess[str], str]:
    here = str(tools.parent)
    return run(
        tools, "try_image.sh", str(image), f"{here}/out.json", ROOT_TEST=here, ALWAYS=variables.pop("ALWAYS", ""), **variables
    )


def test_an_image_that_works_is_mounted_copied_run_and_left(tools: Path, image: Path) -> None:
    done, log = try_image(tools, image)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "ok   x" in done.stdout and "runs once" in done.stdout and log.count("codesign --verify --deep --strict") == 2
    assert not list(tools.parent.glob("tmp.*"))


def test_a_second_window_of_the_same_app_is_caught(tools: Path, image: Path) -> None:
    done, _log = try_image(tools, image, ALWAYS="1")
    assert done.returncode == 1 and "second start" in done.stderr


def test_an_image_without_the_applications_link_or_with_a_failed_check_is_caught(tools: Path, image: Path) -> None:
    (tools.parent / "report.json").write_text('{"ok": false, "checks": [{"name": "x", "ok": false, "detail": "no", "seconds": 0}]}')
    assert try_image(tools, image)[0].returncode == 1
    (image / "Applications").unlink()
    done, _log = try_image(tools, image)
    assert done.returncode == 1 and "no link to Applications" in done.stderr


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ('{"ok": true, "checks": [{"name": "x", "ok": true, "detail": "", "seconds": 1}]}', 0),
        ('{"ok": true, "checks": [{"name": "x", "ok": false, "detail": "", "seconds": 1}]}', 1),
        ('{"ok": true, "checks": []}', 1),
        ("{}", 2),
        ("", 2),
        (None, 2),
    ],
)
def test_a_report_counts_only_where_checks_ran_and_passed(tmp_path: Path, content: str | None, code: int) -> None:
    path = tmp_path / "report.json"
    if content is not None:
        path.write_text(content)
    assert report.main([str(path)]) == code


def test_the_icon_gets_its_appearances_only_where_actool_makes_them(
    tools: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import plistlib

    from bundle import appearance

    app = tmp_path / "Slipstream.app"
    (app / "Contents" / "Resources").mkdir(parents=True)
    (app / "Contents" / "Info.plist").write_bytes(plistlib.dumps({"CFBundleName": "Slipstream"}))
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("LOG", str(tmp_path / "log"))
    assert not appearance.compile_into(app), "actool of an older Xcode makes nothing"
    stand_in(tools, "xcrun", 'PATH=/usr/bin:/bin; cp "$2/icon.json" "$4/Assets.car" && test -f "$2/Assets/app-ticks.svg"')
    assert appearance.compile_into(app)
    assert plistlib.loads((app / "Contents" / "Info.plist").read_bytes())["CFBundleIconName"] == "Slipstream"
    icon = json.loads((app / "Contents" / "Resources" / "Assets.car").read_text())
    appearances = {entry.get("appearance") for entry in icon["fill-specializations"]}
    layers = [entry for group in icon["groups"] for layer in group["layers"] for entry in layer["fill-specializations"]]
    assert "dark" in appearances and {entry["appearance"] for entry in layers} == {"tinted"}
