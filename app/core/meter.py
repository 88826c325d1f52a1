"""The live meter: turns the engine's events into the numbers on show, with nothing that the events do not say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine import Event, LoadProgress, Mode, PairInfo

Phase = Literal["idle", "loading", "prefill", "decoding", "done", "stopped"]
WINDOW_S = 2.0
RIBBON_LENGTH = 60


@dataclass(frozen=True, slots=True)
class RibbonCycle:
    """One tick of the ribbon: ``accepted`` of ``proposed`` tokens, ``committed`` tokens entered the answer."""

    accepted: int
    proposed: int
    committed: int


@dataclass(frozen=True, slots=True)
class MeterSnapshot:
    """What the meter shows at one moment.

    ``tok_s`` is tokens per second over the last ``WINDOW_S``, and over the whole answer once it is finished.
    ``tokens_per_cycle``, ``acceptance_rate``, ``ttft_s`` (seconds), ``mode`` and ``block_length`` are None until known;
    ``acceptance_rate`` (0..1) stays None where nothing is proposed. ``off_reason`` says in words why nothing is proposed, None
    while speculation is on. ``load_stage`` and ``load_fraction`` belong to phase "loading".
    """

    phase: Phase = "idle"
    tok_s: float = 0.0
    tokens: int = 0
    tokens_per_cycle: float | None = None
    acceptance_rate: float | None = None
    ribbon: tuple[RibbonCycle, ...] = ()
    ttft_s: float | None = None
    mode: Mode | None = None
    block_length: int | None = None
    prefill_done: int = 0
    prefill_total: int = 0
    load_stage: str = ""
    load_fraction: float | None = None
    off_reason: str | None = None


class Meter:
    """Fed with events and a clock of the caller's (seconds, any origin, never going back); keeps no clock of its own."""

    def reset(self, now: float, asked: Mode | None = None, pair: PairInfo | None = None) -> None:
        """Forgets everything. With ``asked``, a request was just sent in that mode on ``pair``: the phase is "prefill"."""
        raise NotImplementedError

    def feed(self, event: Event | LoadProgress, now: float) -> None:
        """Takes the next event, which reached the caller at ``now``."""
        raise NotImplementedError

    def interrupt(self, now: float) -> None:
        """The request or the loading ended without ``Finished`` (an error): the numbers stay, the phase is "stopped"."""
        raise NotImplementedError

    def snapshot(self, now: float) -> MeterSnapshot:
        """What to show at ``now``."""
        raise NotImplementedError
