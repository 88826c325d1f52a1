"""The size of a prefill pass: about 100 ms of work, a power of two, and the same from load to load."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from engine.prefill.chunk_size import LARGEST, SMALLEST, kept_chunk, measure_chunk
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import TargetShape
from tests.engine.tiny import VOCAB, build_target, target_config


@pytest.fixture(scope="module")
def target() -> AttentionTarget:
    return AttentionTarget(build_target(target_config()), "llama", TargetShape(32, VOCAB, 4, 2048))


def clock_of(target: AttentionTarget, monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int], float]) -> Callable[[], float]:
    """A clock on which a pass of ``target`` over n tokens takes ``seconds(n)``."""
    now, forward = [0.0], target.forward

    def timed(ids, cache, taps=()):
        now[0] += seconds(ids.shape[0])
        return forward(ids, cache, taps)

    monkeypatch.setattr(target, "forward", timed)
    return lambda: now[0]


@pytest.mark.parametrize(
    ("token_s", "expected"), [(0.0012, 128), (0.0013, 64), (1.0, SMALLEST), (1e-4, 1024), (1e-9, LARGEST)]
)
def test_the_longest_pass_within_the_time_is_chosen(target, monkeypatch, token_s: float, expected: int) -> None:
    assert measure_chunk(target, clock_of(target, monkeypatch, lambda tokens: tokens * token_s)) == expected


def test_a_passing_disturbance_does_not_shorten_it(target, monkeypatch) -> None:
    disturbed = iter([5.0, 0.0, 5.0] * 50)
    assert measure_chunk(target, clock_of(target, monkeypatch, lambda tokens: tokens * 0.001 + next(disturbed))) == 128


def test_a_pass_is_measured_over_many_different_tokens(target, monkeypatch) -> None:
    """A mixture of experts reads few of its weights for one token repeated, and a chunk chosen by that takes too long on a text."""
    widths, forward = {}, target.forward

    def noted(ids, cache, taps=()):
        widths[ids.shape[0]] = len(set(ids.tolist()))
        return forward(ids, cache, taps)

    monkeypatch.setattr(target, "forward", noted)
    measure_chunk(target, lambda: 0.0)
    assert sorted(widths) == [128, 256, 512, 1024, 2048]
    assert all(different > VOCAB / 2 for different in widths.values())


def test_it_is_measured_once_for_machine_and_pair(tmp_path: Path) -> None:
    sizes = iter([64, 256])
    assert [kept_chunk(tmp_path, ["a"], lambda: next(sizes)) for _ in range(3)] == [64, 64, 64]
    assert kept_chunk(tmp_path, ["b"], lambda: next(sizes)) == 256


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"tokens": 96}', '{"tokens": 32}', '{"tokens": 4096}', '{"tokens": "64"}'])
def test_a_kept_size_that_is_none_is_measured_again(tmp_path: Path, content: str) -> None:
    kept_chunk(tmp_path, ["a"], lambda: 64)
    (file,) = tmp_path.iterdir()
    file.write_text(content)
    assert kept_chunk(tmp_path, ["a"], lambda: 128) == 128
    assert kept_chunk(tmp_path, ["a"], lambda: 256) == 128
