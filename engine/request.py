"""What a caller asks for. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import RequestError
from engine.events import Mode

Role = Literal["system", "user", "assistant"]
Overflow = Literal["refuse", "drop_oldest"]
Scorer = Literal["stride", "lexical", "draft"]
MODES: tuple[Mode, ...] = ("auto", "dflash", "baseline", "lookup")
OVERFLOWS: tuple[Overflow, ...] = ("refuse", "drop_oldest")
SCORERS: tuple[Scorer, ...] = ("stride", "lexical", "draft")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class SparsePrefill:
    """Read only the share ``keep`` of a prompt's tokens, at their own positions: faster, and approximate.

    ``scorer`` chooses what is kept beside the beginning, the end and the chat's frame: "stride" evenly, "lexical" what shares
    words with the last user turn, "draft" what the draft's attention looks at. Raises ``RequestError`` for values out of range.
    """

    keep: float
    scorer: Scorer = "lexical"

    def __post_init__(self) -> None:
        if not 0.0 < self.keep <= 1.0:
            raise RequestError(f"The share of the prompt to keep is {self.keep}: choose a value above 0 and up to 1.")
        if self.scorer not in SCORERS:
            raise RequestError(f"Sparse scorer {self.scorer!r} is unknown: use one of {', '.join(SCORERS)}.")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One answer to produce.

    ``mode`` "auto" is "dflash" where the pair has a draft and "baseline" otherwise. ``temperature`` 0 is greedy; above 0 the
    same ``seed`` gives the same text in every mode. ``block_length`` overrides the pair's own (anchor included); ``stop``
    strings end the answer and are not part of it. ``exact`` uses only block lengths whose verify rows were measured to equal plain
    steps bit for bit (``PairInfo.exact_widths``), and decodes plainly where there are none. ``use_cache`` False neither starts from
    what earlier requests left in the prefix cache nor leaves anything there. ``overflow`` says what happens to a chat that does not
    fit the context: "refuse" raises ``ContextOverflow``; "drop_oldest" leaves out the oldest turns and keeps system messages and
    the last user turn. ``sparse`` None reads the whole prompt. Raises ``RequestError`` for values out of range.
    """

    messages: tuple[Message, ...]
    mode: Mode = "auto"
    max_tokens: int = 1024
    temperature: float = 0.0
    seed: int = 0
    stop: tuple[str, ...] = ()
    block_length: int | None = None
    exact: bool = False
    use_cache: bool = True
    overflow: Overflow = "refuse"
    sparse: SparsePrefill | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise RequestError(f"Mode {self.mode!r} is unknown: use one of {', '.join(MODES)}.")
        if not any(message.content.strip() for message in self.messages if message.role == "user"):
            raise RequestError("The prompt is empty: type something to answer.")
        if self.overflow not in OVERFLOWS:
            raise RequestError(f"Overflow policy {self.overflow!r} is unknown: use one of {', '.join(OVERFLOWS)}.")
        if self.max_tokens < 1:
            raise RequestError(f"max_tokens is {self.max_tokens}: ask for at least 1.")
        if not 0.0 <= self.temperature <= 5.0:
            raise RequestError(f"temperature is {self.temperature}: choose a value from 0 to 5.")
        if self.block_length is not None and not 2 <= self.block_length <= 64:
            raise RequestError(f"block_length is {self.block_length}: choose a value from 2 to 64.")

    @classmethod
    def of(cls, prompt: str, **settings) -> GenerationRequest:
        """A request of one user message."""
        return cls(messages=(Message("user", prompt),), **settings)
