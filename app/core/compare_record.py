"""A comparison as plain values for the disk, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from app.core.arms import PLAIN, arm_of
from app.core.compare import ArmRecorder, Comparison
from engine import Finished, PairInfo, Statistics

PER_SECOND = 1_000_000  # a clock in whole numbers is read in half the time, and a long answer has ten thousands
LEFT_OUT = ("learned", "costs")  # what belongs to the pair of today, not to what it did then


@dataclass(frozen=True, slots=True)
class ComparisonEntry:
    """One line of the history. ``left`` and ``right`` are arms in words, rates in tokens per second; ``at`` since 1970."""

    id: int
    at: float
    prompt: str
    pair: str
    left: str
    right: str
    left_tok_s: float | None
    right_tok_s: float | None
    verdict: str


def entry_of(comparison_id: int, comparison: Comparison) -> ComparisonEntry:
    """What the history shows of a comparison."""
    left, right = comparison.arms
    pair = comparison.pair.name if comparison.pair else ""
    return ComparisonEntry(comparison_id, comparison.at, comparison.prompt, pair, left.arm.name, right.arm.name, left.tok_s,
                           right.tok_s, comparison.verdict_line())  # fmt: skip


def to_record(comparison: Comparison) -> dict[str, Any]:
    """All of it in what JSON can hold."""
    pair = comparison.pair
    return {
        "prompt": comparison.prompt,
        "at": comparison.at,
        "environment": dict(comparison.environment),
        "settings": dict(comparison.settings),
        "options": comparison.options,
        "pair": {key: value for key, value in asdict(pair).items() if key not in LEFT_OUT} if pair else None,
        "left": _arm_record(comparison.left),
        "right": _arm_record(comparison.right),
    }


def from_record(record: Mapping[str, Any]) -> Comparison:
    """The comparison of a record. Raises ``KeyError``, ``TypeError`` or ``ValueError`` for what is none."""
    pair = record["pair"]
    return Comparison(
        str(record["prompt"]),
        _arm(record["left"]),
        _arm(record["right"]),
        _known(PairInfo, {key: value for key, value in _with_tuples(pair).items() if key not in LEFT_OUT}) if pair else None,
        {str(key): str(value) for key, value in record["environment"].items()},
        float(record["at"]),
        {str(key): str(value) for key, value in record.get("settings", {}).items()},  # not in the first records
        str(record.get("options", "")),
    )


def _arm_record(arm: ArmRecorder) -> dict[str, Any]:
    finished = arm.finished
    return {
        "arm": arm.arm.id,
        "text": arm.text,
        "clock": [round(at * PER_SECOND) for at, _length in arm.timeline],
        "lengths": [length for _at, length in arm.timeline],
        "failure": arm.failure,
        "fallback": arm.fallback,
        "finished": {
            "reason": finished.reason,
            "text": finished.text,
            "token_ids": list(finished.token_ids),
            "statistics": asdict(finished.statistics),
        }
        if finished
        else None,
    }


def _arm(record: Mapping[str, Any]) -> ArmRecorder:
    arm, finished = ArmRecorder(arm_of(record["arm"]) or PLAIN), record["finished"]
    ended = None
    if finished is not None:
        statistics = _known(Statistics, finished["statistics"])
        ended = Finished(finished["reason"], finished["text"], tuple(finished["token_ids"]), statistics)
    arm.restore(str(record["text"]), _timeline(record), ended)
    arm.failure, arm.fallback = record["failure"], record["fallback"]
    return arm


def _timeline(record: Mapping[str, Any]) -> list[tuple[float, int]]:
    """Also as records of earlier versions have it: (seconds, length) by (seconds, length)."""
    if "timeline" in record:
        return [(float(at), int(length)) for at, length in record["timeline"]]
    return [(at / PER_SECOND, int(length)) for at, length in zip(record["clock"], record["lengths"], strict=True)]


def _known(kind: type, values: Mapping[str, Any]) -> Any:
    """A record class from values of any version: what it does not know is left out."""
    names = {field.name for field in fields(kind)}
    return kind(**{key: value for key, value in values.items() if key in names})


def _with_tuples(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}
