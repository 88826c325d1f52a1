"""A side-by-side run: what each mode did and when, the verdict on the two, and the report to copy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine import Event, Finished, Mode, PairInfo, Verdict

ArmName = Literal["baseline", "dflash"]


class ArmRecorder:
    """Records one mode's events. ``timeline`` holds (seconds since the request, characters of text so far)."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.text = ""
        self.timeline: list[tuple[float, int]] = []
        self.finished: Finished | None = None
        self.failure: str | None = None

    def feed(self, event: Event) -> None:
        """Takes the next event of this mode's request."""
        raise NotImplementedError

    def fail(self, reason: str) -> None:
        """The request ended with an error."""
        raise NotImplementedError

    def text_at(self, t: float) -> str:
        """The text that stood there ``t`` seconds after the request."""
        raise NotImplementedError

    @property
    def duration_s(self) -> float:
        """Seconds from the request to the last event; for replay."""
        raise NotImplementedError

    @property
    def tok_s(self) -> float | None:
        """Decoding speed, None until finished."""
        raise NotImplementedError


@dataclass(frozen=True)
class Comparison:
    """Two arms of one prompt; may be read while they are still being recorded."""

    prompt: str
    baseline: ArmRecorder
    dflash: ArmRecorder

    @property
    def duration_s(self) -> float:
        """Seconds a replay of both on one clock takes: the slower arm's."""
        raise NotImplementedError

    @property
    def speedup(self) -> float | None:
        """DFlash's decoding speed over plain's; None until both have one."""
        raise NotImplementedError

    @property
    def tokens_per_cycle(self) -> float | None:
        raise NotImplementedError

    @property
    def acceptance_rate(self) -> float | None:
        raise NotImplementedError

    @property
    def verdict(self) -> Verdict | None:
        """Whether the answers are identical, token for token; None until both are finished."""
        raise NotImplementedError

    @property
    def texts_there(self) -> tuple[str, str] | None:
        """The first words that differ, (plain, DFlash); None where nothing differs."""
        raise NotImplementedError

    def text_at(self, arm: ArmName, t: float) -> str:
        """For replay: the text of ``arm`` at ``t`` seconds on the common clock."""
        raise NotImplementedError

    def verdict_line(self) -> str:
        """One line like "3.1x · identical, 214 tokens", "differs from token 57: “ the” / “ a”", "not comparable: stopped"."""
        raise NotImplementedError

    def report_markdown(self, pair: PairInfo, environment: Mapping[str, str]) -> str:
        """The whole comparison as Markdown for the clipboard."""
        raise NotImplementedError
