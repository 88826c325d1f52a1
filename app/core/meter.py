"""The live meter: turns the engine's events into the numbers on show, with nothing that the events do not say."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

from app.core.figures import cache_words
from app.core.rate_window import RateWindow
from app.core.words import mark
from engine import (
    BlockLength,
    Cycle,
    Event,
    ExactnessProgress,
    Fallback,
    Finished,
    LoadProgress,
    Mode,
    PairInfo,
    PrefillProgress,
    Started,
    TextDelta,
)

Phase = Literal["idle", "no_model", "loading", "prefill", "decoding", "done", "stopped"]
RIBBON_LENGTH = 60
CHOSE_PLAIN = mark("You chose plain decoding.")
NO_DRAFT = mark("This model has no draft.")


@dataclass(frozen=True, slots=True)
class RibbonCycle:
    """One tick of the ribbon: ``accepted`` of ``proposed`` tokens, ``committed`` tokens entered the answer."""

    accepted: int
    proposed: int
    committed: int


@dataclass(frozen=True, slots=True)
class MeterSnapshot:
    """What the meter shows at one moment.

    ``tok_s`` is tokens per second over the last seconds, and over the whole answer once it is finished.
    ``tokens_per_cycle``, ``acceptance_rate``, ``ttft_s`` (seconds), ``mode`` and ``block_length`` are None until known;
    ``acceptance_rate`` (0..1) stays None where nothing is proposed. ``off_reason`` says in words why nothing is
    proposed, or why lookup stands in for a draft, None while speculation is on; ``parked``: it is off for now because plain
    decoding is measured to be faster, and ``block_length`` is 0. ``cache`` says in words what the prefix cache gave.
    ``measuring`` is the share (0..1) of the exact block lengths that is measured, None where that is not going on. ``options`` in
    words are what the answer was asked with and how its pair was loaded, "" for the defaults.
    ``lent``: these are figures of another program's answer.
    ``load_stage`` and ``load_fraction`` (0..1) belong to phase "loading".
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
    parked: bool = False
    cache: str = ""
    measuring: float | None = None
    options: str = ""
    lent: bool = False


class Meter:
    """Fed with events and a clock of the caller's (seconds, any origin); keeps no clock of its own."""

    def __init__(self) -> None:
        self.reset(0.0)

    def reset(self, now: float, asked: Mode | None = None, pair: PairInfo | None = None, lent: bool = False) -> None:
        """Forgets everything and turns "idle"; with ``asked``, a request in that mode was just sent: "prefill"."""
        self.lent = lent
        self._phase: Phase = "idle" if asked is None else "prefill"
        self._asked, self._pair = asked, pair
        self._rate = RateWindow()
        self._ribbon: deque[RibbonCycle] = deque(maxlen=RIBBON_LENGTH)
        self._cycles = self._proposed = self._accepted = self._committed = 0
        self._prefill = PrefillProgress(0, 0, 0.0)
        self._measuring: float | None = None
        self._load = LoadProgress("")
        self._started: Started | None = None
        self._fallback: str | None = None
        self._block: BlockLength | None = None
        self._finished: Finished | None = None

    def feed(self, event: Event | LoadProgress, now: float) -> None:
        """Takes the next event, which reached the caller at ``now``."""
        match event:
            case LoadProgress():
                self._phase, self._load = "loading", event
            case ExactnessProgress():
                self._phase, self._measuring = "prefill", event.fraction
            case PrefillProgress():
                self._phase, self._prefill, self._measuring = "prefill", event, None
                self._rate.heard(event.at_s, now)
            case Started():
                self._phase, self._started = "decoding", event
                self._rate.start(event.at_s, now)
            case BlockLength():
                self._block = event
                self._rate.heard(event.at_s, now)
            case Cycle():
                self._take_cycle(event, now)
            case TextDelta():
                self._rate.heard(event.at_s, now)
            case Fallback():
                self._fallback = event.reason
            case Finished():
                self._phase, self._measuring = "stopped" if event.reason == "cancelled" else "done", None
                self._finished = event

    def interrupt(self, now: float) -> None:
        """Loading or the request ended in an error, without ``Finished``: numbers stay, the phase is "stopped".

        Before the first token there is nothing to stop or to keep: the meter turns "idle".
        """
        if self._started is None:
            self.reset(now)
            return
        self._phase = "stopped"
        self._rate.freeze(now)

    def snapshot(self, now: float) -> MeterSnapshot:
        """What to show at ``now``."""
        statistics = self._finished.statistics if self._finished else None
        ttft_s = self._started.at_s if self._started else None
        if statistics and statistics.completion_tokens:
            ttft_s = statistics.ttft_s
        return MeterSnapshot(
            phase=self._phase,
            tok_s=statistics.decode_tok_s if statistics else self._rate.tok_s(now),
            tokens=self._committed + 1 if self._started else 0,  # the first token comes with Started, before any cycle
            tokens_per_cycle=self._committed / self._cycles if self._cycles else None,
            acceptance_rate=self._accepted / self._proposed if self._proposed else None,
            ribbon=tuple(self._ribbon),
            ttft_s=ttft_s,
            mode=self._started.mode if self._started else None,
            block_length=self._block_length(),
            prefill_done=self._prefill.done,
            prefill_total=self._prefill.total,
            measuring=self._measuring,
            load_stage=self._load.stage,
            load_fraction=self._load.fraction,
            off_reason=self._off_reason(),
            parked=self._block is not None and self._block.length == 0,
            cache=cache_words(started.cached_tokens, started.prompt_tokens, started.cache) if (started := self._started) else "",
            lent=self.lent,
        )

    def _block_length(self) -> int | None:
        current = self._block or self._started
        return None if current is None else current.length if isinstance(current, BlockLength) else current.block_length

    def _take_cycle(self, cycle: Cycle, now: float) -> None:
        self._cycles += 1
        self._proposed += cycle.proposed
        self._accepted += cycle.accepted
        self._committed += cycle.committed
        self._ribbon.append(RibbonCycle(cycle.accepted, cycle.proposed, cycle.committed))
        self._rate.add(cycle.committed, cycle.at_s, now)

    def _off_reason(self) -> str | None:
        if self._fallback is not None:
            return self._fallback
        if self._block is not None and self._block.length == 0:
            return f"{self._block.reason}."
        if self._asked == "baseline":
            return CHOSE_PLAIN
        decoding_plain = self._started is not None and self._started.mode == "baseline"
        waiting_without_draft = self._started is None and self._pair is not None and self._pair.draft_name is None
        if decoding_plain or (waiting_without_draft and self._asked != "lookup"):
            return (self._pair.no_draft_reason if self._pair else None) or NO_DRAFT
        return None
