"""What is said of a download: amounts in one unit, times that do not flicker, and the state in words."""

from __future__ import annotations

import pytest

from app.core.downloads import Download, Trouble, remaining, speed_words, state_words, summary_words
from app.core.figures import size, size_of
from app.core.words import unbroken
from engine.models.download_types import DownloadPlan, Progress

GB = 10**9
PLAN = DownloadPlan("qwen", "Qwen", ("org/qwen",), (), 9_100_000_000, 0)


def progress(done: float = 3.1, remaining_s: float | None = 200.0, **settings) -> Progress:
    return Progress(round(done * GB), PLAN.total_bytes, 24_300_000, remaining_s, "model.safetensors", **settings)


@pytest.mark.parametrize(
    ("count", "words"),
    [(0, "0 B"), (999, "999 B"), (85_400, "85 kB"), (93_200_000, "93.2 MB"), (999_600_000, "1.0 GB"), (123_400_000_000, "123 GB")],
)
def test_sizes_are_in_units_of_a_thousand(count, words):
    assert size(count) == unbroken(words)


def test_what_is_there_has_the_unit_and_the_places_of_the_whole():
    assert size_of(3_100_000_000, 9_100_000_000) == unbroken("3.1 of 9.1 GB")
    assert size_of(0, 9_100_000_000) == unbroken("0.0 of 9.1 GB")
    assert size_of(40_000, 85_000) == unbroken("40 of 85 kB")


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(5, "less than a minute"), (61, "2 min"), (200, "4 min"), (3_601, "1 h 10 min"), (7_200, "2 h")],
)
def test_remaining_times_are_rounded_up(seconds, words):
    assert remaining(seconds) == unbroken(words)


@pytest.mark.parametrize(
    ("download", "words"),
    [
        (Download("qwen", "asking"), "Asking the hub"),
        (Download("qwen", "queued", PLAN), "0.0 of 9.1 GB, waits for its turn"),
        (Download("qwen", "running", PLAN, progress()), "3.1 of 9.1 GB, 4 min"),
        (Download("qwen", "running", PLAN, progress(remaining_s=None)), "3.1 of 9.1 GB"),
        (Download("qwen", "running", PLAN, progress(9.1, phase="checking")), "9.1 of 9.1 GB, checking"),
        (Download("qwen", "running", PLAN, progress(note="trying again")), "3.1 of 9.1 GB, trying again"),
        (Download("qwen", "paused", PLAN, progress()), "3.1 of 9.1 GB, paused"),
        (Download("qwen", "waiting", PLAN, progress()), "3.1 of 9.1 GB, waits for the network"),
        (Download("qwen", "failed", PLAN, None, Trouble("disk", "The disk is full", "free some")), "The disk is full"),
        (Download("qwen", "done", PLAN), "9.1 GB fetched and checked"),
    ],
)
def test_every_stage_has_its_words(download, words):
    assert state_words(download) == unbroken(words)


def test_a_speed_is_told_only_while_bytes_arrive():
    assert speed_words(Download("qwen", "running", PLAN, progress())) == unbroken("24.3 MB/s")
    assert speed_words(Download("qwen", "paused", PLAN, progress())) == ""


def test_the_sum_counts_what_goes_on_by_itself():
    going = Download("qwen", "running", PLAN, progress())
    stopped = Download("other", "paused", PLAN, progress())
    assert summary_words([going, stopped]) == unbroken("1 download, 3.1 of 9.1 GB")
    assert summary_words([going, going]) == unbroken("2 downloads, 6.2 of 18.2 GB")
    assert summary_words([stopped]) == ""
