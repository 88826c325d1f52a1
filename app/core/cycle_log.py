"""What one answer's cycles say beyond the meter: acceptance by slot, what each block length would give, and when what happened."""

from __future__ import annotations

from dataclasses import dataclass

from engine import BlockLength, CostCurve, Cycle, Event, Fallback, Mode, Source, Started

BEST_CASE = 0.98  # as the engine's controller: nothing beyond is expected


@dataclass(frozen=True, slots=True)
class CycleMark:
    """One cycle, from and to in seconds since the request."""

    began_s: float
    ended_s: float
    proposed: int
    accepted: int
    committed: int
    source: Source | None


@dataclass(frozen=True, slots=True)
class SlotFigure:
    """Of ``tried`` draft blocks that had this slot (1 is the first after the anchor), ``right`` had it accepted."""

    slot: int
    tried: int
    right: int

    @property
    def share(self) -> float:
        """Accepted share, 0..1."""
        return self.right / self.tried


@dataclass(frozen=True, slots=True)
class Expected:
    """Tokens per second that blocks of ``length`` slots would give; 1 is plain decoding."""

    length: int
    tok_s: float


class CycleLog:
    """Fed with the events of one answer after ``begin``; everything it says follows from them and the machine's costs."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A new answer."""
        self.cycles: list[CycleMark] = []
        self.mode: Mode | None = None
        self.length: int | None = None
        self.reason: str | None = None
        self.fallback: str | None = None
        self._last_s = 0.0

    def feed(self, event: Event) -> None:
        """Takes the next event."""
        match event:
            case Started():
                self.mode, self.length, self._last_s = event.mode, event.block_length, event.at_s
            case BlockLength():
                self.length, self.reason = event.length, event.reason
            case Fallback():
                self.fallback = event.reason
            case Cycle():
                mark = CycleMark(self._last_s, event.at_s, event.proposed, event.accepted, event.committed, event.source)
                self.cycles.append(mark)
                self._last_s = event.at_s

    @property
    def parked(self) -> bool:
        """Whether speculation is off for now because plain decoding is measured to be faster."""
        return self.length == 0 and self.mode not in (None, "baseline")

    @property
    def drafted(self) -> list[CycleMark]:
        """The cycles whose proposals came from a draft pass."""
        return [cycle for cycle in self.cycles if cycle.proposed and cycle.source != "lookup"]

    def slots(self) -> list[SlotFigure]:
        """Acceptance by slot, for every slot that was ever proposed."""
        drafted = self.drafted
        deepest = max((cycle.proposed for cycle in drafted), default=0)
        figures = []
        for slot in range(1, deepest + 1):
            tried = [cycle.accepted for cycle in drafted if cycle.proposed >= slot]
            figures.append(SlotFigure(slot, len(tried), sum(accepted >= slot for accepted in tried)))
        return figures

    @property
    def next_right(self) -> float | None:
        """How often the draft's next token was right given those before it were, 0..1; None where nothing was drafted."""
        attempts = sum(min(cycle.accepted + 1, cycle.proposed) for cycle in self.drafted)
        return sum(cycle.accepted for cycle in self.drafted) / attempts if attempts else None

    def expected(self, costs: CostCurve | None, block_length: int) -> list[Expected]:
        """Tokens per second by block length at this answer's acceptance and the machine's costs; empty while either is unknown."""
        right = self.next_right
        if right is None or costs is None:
            return []
        right = min(right, BEST_CASE)
        lengths = range(2, min(block_length, costs.widest) + 1)
        drafted = [Expected(length, (1 - right**length) / (1 - right) / costs.cycle(length)) for length in lengths]
        return [Expected(1, 1 / costs.verify(1)), *drafted]
