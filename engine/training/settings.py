"""What a training run is asked to do. No MLX here."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from engine.errors import RequestError

Loss = Literal["dpace", "decay"]
Optimizer = Literal["muon", "adamw"]
MARGIN = 0.02  # of the tokens per cycle: less may be chance, on the few chats that are held out


@dataclass(frozen=True, slots=True)
class DraftPlan:
    """The draft to make. ``taps`` None: five layers spread over the target's depth; ``vocabulary`` None: all of the target's.

    ``block_length`` counts the anchor. Raises ``RequestError`` for values out of range.
    """

    layers: int = 4
    block_length: int = 16
    taps: tuple[int, ...] | None = None
    vocabulary: int | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.layers <= 16:
            raise RequestError(f"layers is {self.layers}: choose a value from 1 to 16.")
        if not 2 <= self.block_length <= 64:
            raise RequestError(f"block is {self.block_length}: choose a value from 2 to 64.")
        if self.vocabulary is not None and self.vocabulary < 64:
            raise RequestError(f"vocabulary is {self.vocabulary}: choose at least 64 tokens, or none for all of them.")


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """How to train. A run ends after ``steps``, or after as many as fit into ``seconds`` (measured once, on its first steps).

    A step takes ``rows`` texts of at most ``max_length`` tokens and ``slots`` block slots in each. ``distil`` is the share of the
    loss that follows the target's whole distribution instead of its own choice. ``gamma`` decays the weight of later slots in
    the "decay" loss; None takes the paper's for the block length. Taps of all
    texts are kept in memory where they fit into ``tap_bytes``.
    """

    steps: int | None = None
    seconds: float | None = 600.0
    rows: int = 4
    slots: int = 256
    max_length: int = 448
    rate: float = 1e-3
    warm_up: int = 20
    optimizer: Optimizer = "muon"
    loss: Loss = "dpace"
    distil: float = 0.5
    gamma: float | None = None
    average: float = 0.99
    evaluate_every: int = 50
    held_out: int = 8
    seed: int = 0
    tap_bytes: int = 2**29

    def __post_init__(self) -> None:
        positive = {"rows": self.rows, "slots": self.slots, "evaluate-every": self.evaluate_every, "held-out": self.held_out}
        for name, value in positive.items():
            if value < 1:
                raise RequestError(f"{name} is {value}: choose at least 1.")
        if self.steps is not None and self.steps < 1:
            raise RequestError(f"steps is {self.steps}: choose at least 1.")
        if self.steps is None and (self.seconds is None or not 0 < self.seconds < math.inf):
            raise RequestError("Training needs an end: give a number of minutes or of steps.")
        if self.max_length < 32:
            raise RequestError(f"max-length is {self.max_length}: choose at least 32 tokens.")
        if not 0 < self.rate < 1:
            raise RequestError(f"rate is {self.rate}: choose a value between 0 and 1, for instance 0.001.")
        if not 0 <= self.distil <= 1 or not 0 <= self.average < 1:
            raise RequestError("distil and average are shares: choose values from 0 to 1.")


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """One step is done. ``tau`` is the mean number of tokens a cycle would commit on the step's own blocks; ``remaining_s`` is an
    estimate, None before the length of the run is known. ``tokens_s`` counts text tokens."""

    step: int
    steps: int | None
    loss: float
    tau: float
    tokens_s: float
    elapsed_s: float
    remaining_s: float | None


@dataclass(frozen=True, slots=True)
class Evaluated:
    """Held-out answers were decoded: ``tau`` tokens a cycle at blocks of ``block_length``. ``best``: kept and exported."""

    step: int
    tau: float
    block_length: int
    best: bool


@dataclass(frozen=True, slots=True)
class DataProgress:
    """``done`` of ``total`` texts are written by the target or read."""

    stage: str
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class TrainingFinished:
    """The end of a run. ``before`` is the tau of the draft it began from (1.0 for none), ``best`` that of the exported one."""

    steps: int
    best_step: int
    before: float
    best: float
    elapsed_s: float
    peak_bytes: int
    reason: Literal["done", "cancelled", "diverged"]

    @property
    def better(self) -> bool:
        """Whether the exported draft is worth taking in place of the one that the run began from."""
        return self.best > self.before * (1 + MARGIN)


TrainingEvent = DataProgress | TrainingStep | Evaluated | TrainingFinished
