"""What a caller asks for. No MLX here."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from engine.constraint import Constraint
from engine.errors import RequestError
from engine.events import Mode

Role = Literal["system", "user", "assistant", "tool"]
ROLES: tuple[Role, ...] = ("system", "user", "assistant", "tool")
Overflow = Literal["refuse", "drop_oldest"]
Scorer = Literal["stride", "lexical", "attention"]
MODES: tuple[Mode, ...] = ("auto", "dflash", "baseline", "lookup")
OVERFLOWS: tuple[Overflow, ...] = ("refuse", "drop_oldest")
SCORERS: tuple[Scorer, ...] = ("stride", "lexical", "attention")
MAX_LOGPROBS = 20
# name: lowest, whether the lowest itself is allowed, highest; the ranges of the OpenAI API and vLLM
SAMPLING_RANGES: dict[str, tuple[float, bool, float]] = {
    "temperature": (0.0, True, 5.0),
    "top_p": (0.0, False, 1.0),
    "min_p": (0.0, True, 1.0),
    "repetition_penalty": (0.01, True, 10.0),
    "presence_penalty": (-2.0, True, 2.0),
    "frequency_penalty": (-2.0, True, 2.0),
}
MAX_BIAS = 100.0


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A function that the model asks to be called; ``arguments`` is JSON text, ``id`` what the result names."""

    name: str
    arguments: str
    id: str


@dataclass(frozen=True, slots=True)
class Message:
    """One turn of a chat. ``tool_calls`` are an assistant's; a "tool" turn is the result of ``tool_call_id``; ``name`` speaks."""

    role: Role
    content: str
    name: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""


WHOLE_NUMBERS = ("max_tokens", "seed", "top_k", "block_length", "logprobs")


@dataclass(frozen=True, slots=True)
class SparsePrefill:
    """Read only the share ``keep`` of a prompt's tokens, at their own positions: faster, and approximate.

    ``scorer`` chooses what is kept beside the beginning, the end and the chat's frame: "stride" evenly, "lexical" what shares
    rare words with the last user turn, "attention" what the target's first layers look at from there. Raises
    ``RequestError`` for values out of range.
    """

    keep: float
    scorer: Scorer = "lexical"

    def __post_init__(self) -> None:
        if not isinstance(self.keep, int | float) or not 0.0 < self.keep <= 1.0:
            raise RequestError(f"The share of the prompt to keep is {self.keep}: choose a value above 0 and up to 1.")
        if self.scorer not in SCORERS:
            raise RequestError(f"Sparse scorer {self.scorer!r} is unknown: use one of {', '.join(SCORERS)}.")


@dataclass(frozen=True, slots=True)
class GenerationRequest:
    """One answer to produce.

    ``mode`` "auto" is "dflash" where the pair has a draft and "lookup" otherwise. ``temperature`` 0 is greedy; above 0 the
    same ``seed`` gives the same text in every mode. ``block_length`` overrides the pair's own (anchor included); ``stop``
    strings end the answer and are not part of it. ``exact`` uses only block lengths whose verify rows were measured to equal plain
    steps bit for bit (``PairInfo.exact_widths``), and decodes plainly where there are none. ``use_cache`` False neither starts from
    what earlier requests left in the prefix cache nor leaves anything there. ``overflow`` says what happens to a chat that does not
    fit the context: "refuse" raises ``ContextOverflow``; "drop_oldest" leaves out the oldest turns and keeps system messages and
    the last user turn. ``sparse`` None reads the whole prompt. ``thinking`` turns the chat template's switch for thinking on or
    off, where it has one; None leaves it as the template has it. ``tools`` are what the model may call, each the JSON text of a
    tool as the OpenAI API has it; ``raw`` takes the messages' text as the prompt, without the chat template. ``constraint`` is the
    form that the answer has; it does not think, or where the template makes it, its form begins behind the thought. Raises
    ``RequestError`` for values out of range.

    A token is chosen in every mode in this order, of those that the ``constraint`` allows there: ``logit_bias`` is added to the
    logits of its token ids; ``repetition_penalty`` divides the positive and multiplies the other logits of tokens in prompt or
    answer; ``frequency_penalty`` times its count in the answer, and ``presence_penalty`` once if it is there, are taken off a
    token's logit; the logits are divided by ``temperature``; ``top_k`` keeps the k most likely tokens (0: all), ``top_p`` of
    those the fewest that together reach this share, ``min_p`` of those the tokens at least this fraction as likely as the most
    likely; one of the rest is drawn. Greedy takes the highest logit after bias and penalties. ``logprobs`` asks for each token's
    log probability and for that many (0 to 20) of the most likely tokens at its place, all by the model's own distribution over
    what the ``constraint`` allows: before bias, penalties and temperature.
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
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    logit_bias: Mapping[int, float] | tuple[tuple[int, float], ...] = ()  # kept as pairs, so that a request can be hashed
    logprobs: int | None = None
    thinking: bool | None = None
    tools: tuple[str, ...] = ()
    raw: bool = False
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise RequestError(f"Mode {self.mode!r} is unknown: use one of {', '.join(MODES)}.")
        self._check_kinds()
        if not any(message.content.strip() for message in self.messages if message.role == "user"):
            raise RequestError("The prompt is empty: type something to answer.")
        if self.overflow not in OVERFLOWS:
            raise RequestError(f"Overflow policy {self.overflow!r} is unknown: use one of {', '.join(OVERFLOWS)}.")
        if self.max_tokens < 1:
            raise RequestError(f"max_tokens is {self.max_tokens}: ask for at least 1.")
        if self.block_length is not None and not 2 <= self.block_length <= 64:
            raise RequestError(f"block_length is {self.block_length}: choose a value from 2 to 64.")
        if self.sparse is not None and (self.tools or self.raw):
            raise RequestError("A prompt with tools or without the chat template cannot be read in part: leave sparse prefill off.")
        if self.constraint is not None:
            self._check_constraint()
        object.__setattr__(self, "logit_bias", tuple(sorted(dict(self.logit_bias).items())))
        self._check_sampling()

    def _check_constraint(self) -> None:
        if not isinstance(self.constraint, Constraint):
            raise RequestError(f"constraint is {self.constraint!r}: make one with json_schema or one of its kind.")
        if self.thinking or self.tools:
            other = "thinking" if self.thinking else "tools"
            raise RequestError(f"{self.constraint.name} and {other} cannot be used together: leave one of them out.")
        object.__setattr__(self, "thinking", False)

    def _check_kinds(self) -> None:
        """A wrong kind of value is refused here and not by whatever meets it first, an answer later."""
        if not isinstance(self.stop, tuple | list) or not all(isinstance(text, str) and text for text in self.stop):
            raise RequestError(f"stop is {self.stop!r}: give a list of texts that are not empty.")
        for message in self.messages:
            if message.role not in ROLES or not isinstance(message.content, str):
                raise RequestError(f"A message has the role {message.role!r}: use one of {', '.join(ROLES)}, with a text.")
        for name in WHOLE_NUMBERS:
            value = getattr(self, name)
            if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
                raise RequestError(f"{name} is {value!r}: give a whole number.")
        for name in SAMPLING_RANGES:
            if not isinstance(getattr(self, name), int | float):
                raise RequestError(f"{name} is {getattr(self, name)!r}: give a number.")
        try:
            biases = dict(self.logit_bias)
        except (TypeError, ValueError):
            raise RequestError(f"logit_bias is {self.logit_bias!r}: give a number for each token id.") from None
        for token, bias in biases.items():
            if type(token) is not int or not isinstance(bias, int | float):
                raise RequestError(f"logit_bias {token!r}={bias!r} cannot be used: give a token id and a number.")

    def _check_sampling(self) -> None:
        for name, (lowest, with_lowest, highest) in SAMPLING_RANGES.items():
            value = getattr(self, name)
            if not lowest <= value <= highest or (value == lowest and not with_lowest):
                border = "from" if with_lowest else "above"
                raise RequestError(f"{name} is {value}: choose a value {border} {lowest:g} to {highest:g}.")
        if self.top_k < 0:
            raise RequestError(f"top_k is {self.top_k}: choose how many tokens to keep, or 0 for all.")
        if self.logprobs is not None and not 0 <= self.logprobs <= MAX_LOGPROBS:
            raise RequestError(f"logprobs is {self.logprobs}: choose a number from 0 to {MAX_LOGPROBS}.")
        for token, bias in dict(self.logit_bias).items():
            if token < 0 or not math.isfinite(bias) or abs(bias) > MAX_BIAS:
                raise RequestError(
                    f"logit_bias {token}={bias} cannot be used: give a token id and a value from {-MAX_BIAS:g} to {MAX_BIAS:g}."
                )

    def check_vocabulary(self, size: int) -> None:
        """Raises ``RequestError`` where ``logit_bias`` names a token that a vocabulary of ``size`` does not have."""
        for token, _ in dict(self.logit_bias).items():
            if token >= size:
                raise RequestError(
                    f"logit_bias names token {token} and the model's last one is {size - 1}: give an id of this model."
                )

    @classmethod
    def of(cls, prompt: str, **settings) -> GenerationRequest:
        """A request of one user message."""
        return cls(messages=(Message("user", prompt),), **settings)
