"""The bundle's settings: what they promise a Mac, and that lock, version and clean-up list fit them."""

from __future__ import annotations

import plistlib
import tomllib

from bundle import lock, plist
from bundle.project import ROOT, read

from app.core.words import LANGUAGES
from engine import __version__

BUNDLE = read()


def test_the_bundle_opens_on_macos_14_on_apple_silicon_only() -> None:
    mac = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["briefcase"]["app"]["slipstream"]["macOS"]
    assert BUNDLE.min_os == (14, 0) and mac["universal_build"] is False
    assert "LSMinimumSystemVersion" not in BUNDLE.info, "Briefcase writes it from min_os_version"
    assert BUNDLE.info["LSArchitecturePriority"] == ["arm64"] and BUNDLE.info["LSRequiresNativeExecution"] is True


def test_the_bundle_has_the_engine_s_version() -> None:
    assert BUNDLE.version == __version__


def test_only_the_two_needed_entitlements_are_asked_for() -> None:
    prefix = "com.apple.security.cs."
    assert BUNDLE.entitlements == {
        f"{prefix}allow-unsigned-executable-memory": True,
        f"{prefix}disable-library-validation": True,
    }


def test_the_lock_holds_every_requirement_with_hashes_and_the_versions_that_fit_macos_14() -> None:
    text = lock.LOCK.read_text()
    pins = lock.pins(text)
    assert pins["pyside6-essentials"] == pins["shiboken6"] == "6.9.3"
    assert pins["mlx"] == pins["mlx-metal"] and {"hf-xet", "pyobjc-framework-cocoa", "pynacl"} <= pins.keys()
    entries = [entry for entry in text.split("\n") if "==" in entry]
    assert len(entries) == len(pins) and all(entry.endswith("\\") for entry in entries)  # a hash follows each
    assert BUNDLE.installer_args == ("--constraint", lock.LOCK.relative_to(ROOT).as_posix())


def test_a_changed_version_in_the_lock_is_named() -> None:
    old = "mlx==0.32.4 \\\n    --hash=sha256:00\nNumPy==2.5.5 \\\n"
    assert lock.difference(old, old) == []
    assert lock.difference(old, old.replace("0.32.4", "0.32.5")) == ["mlx: 0.32.4 in the lock, 0.32.5 when resolved now"]
    assert lock.difference(old, "mlx==0.32.4 \\\n") == ["numpy: 2.5.5 in the lock, absent when resolved now"]


def test_info_plist_names_scheme_documents_and_why_folders_are_opened() -> None:
    info = plistlib.loads(plistlib.dumps(plist.info(BUNDLE)))
    assert info["CFBundleURLTypes"][0]["CFBundleURLSchemes"] == ["slipstream"]
    (kind,) = info["UTExportedTypeDeclarations"]
    assert kind["UTTypeTagSpecification"]["public.filename-extension"] == ["slipchat"]
    assert info["CFBundleDocumentTypes"][0]["LSItemContentTypes"] == [kind["UTTypeIdentifier"]]
    reasons = {key for key in info if key.endswith("UsageDescription")}
    assert {"NSDocumentsFolderUsageDescription", "NSDownloadsFolderUsageDescription"} <= reasons
    assert not any(word in key for key in reasons for word in ("Camera", "Microphone", "Location", "Contacts"))


def test_the_bundle_names_the_languages_that_the_program_speaks() -> None:
    assert BUNDLE.info["CFBundleLocalizations"] == list(LANGUAGES), "the system's dialogs speak only what the bundle names"


def test_no_text_of_info_plist_needs_escaping_which_briefcase_s_template_does_not_do() -> None:
    assert not [value for value in BUNDLE.info.values() if isinstance(value, str) and set(value) & set("<>&")]


def test_the_clean_up_list_stays_inside_the_packages_and_names_no_braces() -> None:
    assert all(path.startswith(f"{BUNDLE.folder}/Contents/Resources/app") and "{" not in path for path in BUNDLE.cleanup_paths)
    assert not [path for path in BUNDLE.cleanup_paths if "QtDBus.framework" in path], "QtGui loads it"


def test_the_sources_exist_and_the_launcher_s_package_is_among_them() -> None:
    assert all((ROOT / source).is_dir() for source in BUNDLE.sources)
    assert (ROOT / BUNDLE.sources[-1] / "__main__.py").is_file() and BUNDLE.sources[-1].endswith("/slipstream")
