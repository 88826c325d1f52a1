"""What a caller asks for. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from engine.errors import RequestError
from engine.events import Mode

Role = Literal["system", "user", "assistant"]
MODES: tuple[Mode, ...] = ("auto", "dflash", "baseline", "lookup")


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One answer to produce.

    ``mode`` "auto" is "dflash" where the pair has a draft and "baseline" otherwise. ``temperature`` 0 is greedy; above 0 the
    same ``seed`` gives the same text in every mode. ``block_length`` overrides the pair's own (anchor included); ``stop``
    strings end the answer and are not part of it. ``exact`` uses only block lengths whose verify rows were measured to equal plain
    steps bit for bit (``PairInfo.exact_widths``), and decodes plainly where there are none. ``use_cache`` False neither starts from
    what earlier requests left in the prefix cache nor leaves anything there. Raises ``RequestError`` for values out of range.
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

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise RequestError(f"Mode {self.mode!r} is unknown: use one of {', '.join(MODES)}.")
        if not any(message.content.strip() for message in self.messages if message.role == "user"):
            raise RequestError("The prompt is empty: type something to answer.")
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
