"""The feed that a release signs is the one that the app trusts, and no other."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from bundle import feed
from bundle.project import read

from app.core.updates import FeedError, Source, is_newer, read_feed

PAGE = "https://slipstream.example/download"


@pytest.fixture(scope="module")
def keys() -> tuple[str, str]:
    return feed.keygen()


@pytest.fixture
def written(tmp_path: Path, keys: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A feed as the release workflow writes it."""
    (tmp_path / "image.dmg").write_bytes(b"image")
    (tmp_path / "notes.md").write_text("Faster.\n<b>Müheloser</b>")
    monkeypatch.setenv("UPDATE_SIGNING_KEY", keys[0])
    monkeypatch.setenv("UPDATE_PAGE_URL", PAGE)
    assert feed.main(["write", *(str(tmp_path / name) for name in ("image.dmg", "notes.md", "feed.json"))]) == 0
    return (tmp_path / "feed.json").read_bytes()


def test_the_app_reads_what_the_release_signed(written: bytes, keys: tuple[str, str]) -> None:
    release = read_feed(written, keys[1])
    assert (release.version, release.minimum_macos, release.page) == (read().version, "14.0", PAGE)
    assert release.notes == "Faster.\n<b>Müheloser</b>" and release.sha256 == hashlib.sha256(b"image").hexdigest()


def test_a_changed_payload_another_key_or_signature_is_refused(written: bytes, keys: tuple[str, str]) -> None:
    envelope = json.loads(written)
    changed = {**envelope, "payload": envelope["payload"].replace("slipstream.example", "evil.example")}
    other = json.loads(feed.sign(envelope["payload"], feed.keygen()[0]))
    for content, key in ((changed, keys[1]), (envelope, feed.keygen()[1]), (other, keys[1])):
        with pytest.raises(FeedError, match="not signed"):
            read_feed(json.dumps(content).encode(), key)


@pytest.mark.parametrize("content", [b"", b"<html>", b"[]", b"{}", b'{"payload": 1, "signature": ""}', b"[" * 100_000, b"\xff"])
def test_what_is_no_feed_is_refused_in_one_line(content: bytes, keys: tuple[str, str]) -> None:
    with pytest.raises(FeedError) as refused:
        read_feed(content, keys[1])
    assert "\n" not in str(refused.value) and "cannot be read" in str(refused.value)


@pytest.mark.parametrize("key", ["", "short", "AAAA", "not base64!"])
def test_a_damaged_key_trusts_nothing(written: bytes, key: str) -> None:
    with pytest.raises(FeedError):
        read_feed(written, key)


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("page", "http://slipstream.example", "unsafe"),
        ("page", "file:///Applications/Slipstream.app", "unsafe"),
        ("version", "newest", "no version"),
        ("minimum_macos", "", "no version"),
        ("notes", None, "lacks"),
    ],
)
def test_a_signed_feed_must_still_make_sense(written: bytes, keys: tuple[str, str], field: str, value: object, said: str) -> None:
    payload = json.loads(json.loads(written)["payload"]) | {field: value}
    with pytest.raises(FeedError, match=said):
        read_feed(feed.sign(json.dumps(payload), keys[0]), keys[1])


@pytest.mark.parametrize(
    ("version", "current", "newer"),
    [
        ("0.2.0", "0.1.9", True),
        ("0.10.0", "0.9.9", True),
        ("0.1.0", "0.1.0", False),
        ("0.0.9", "0.1.0", False),
    ],
)
def test_versions_are_compared_as_numbers_and_never_lead_back(version: str, current: str, newer: bool) -> None:
    assert is_newer(version, current) is newer


def test_a_build_gets_its_feed_from_the_release_and_has_none_otherwise(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.core import updates

    assert not updates.source().usable, "no feed in a build from source"
    monkeypatch.setenv("UPDATE_FEED_URL", "https://slipstream.example/feed.json")
    monkeypatch.setenv("UPDATE_PUBLIC_KEY", "key")
    assert feed.main(["configure", str(tmp_path / "updates.json")]) == 0
    monkeypatch.setattr(updates, "resources_folder", lambda: tmp_path)
    assert updates.source() == Source("https://slipstream.example/feed.json", "key")


def test_a_missing_variable_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    monkeypatch.delenv("UPDATE_SIGNING_KEY", raising=False)
    assert feed.main(["write", "a", "b", "c"]) == 2 and feed.main(["sign"]) == 2
    assert "UPDATE_SIGNING_KEY is not set." in capsys.readouterr().err
