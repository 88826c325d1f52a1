"""What is set for one chat alone: its instructions, how tokens are drawn, how long answers get; and the presets of these."""

from __future__ import annotations

import contextlib
import math
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from app.core.sanitize import clean_text
from app.core.words import mark, tr
from engine import Message, SparsePrefill

LONGEST_ANSWER = 131_072
SEEDS = 2**31
SYSTEM_LENGTH = 100_000  # characters
# Shares of a long prompt to read, in words that ``tr`` shows.
SHARES: dict[float, str] = {
    1.0: mark("All of it"),
    0.5: mark("About half: approximate"),
    0.25: mark("About a quarter: approximate"),
}
# name: lowest, highest, as the fields of the panel offer them; all lie within what the engine takes
RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0.0, 2.0),
    "top_p": (0.01, 1.0),
    "top_k": (0, 10_000),
    "min_p": (0.0, 1.0),
    "repetition_penalty": (0.5, 2.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
    "max_tokens": (1, LONGEST_ANSWER),
}


@dataclass(frozen=True, slots=True)
class ChatOptions:
    """``system`` is what the model is told before the chat; ``seed`` None draws another one for each answer.

    ``thinking`` None leaves the model's own default; ``drop_oldest``: a chat that is too long loses its oldest turns in place of
    being refused. ``sparse`` is the share of a long prompt to read, one of ``SHARES``. The rest as in ``engine.GenerationRequest``.
    """

    system: str = ""
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    seed: int | None = 0
    max_tokens: int = 1024
    thinking: bool | None = None
    drop_oldest: bool = False
    sparse: float = 1.0
    exact: bool = False
    use_cache: bool = True

    def checked(self) -> ChatOptions:
        """The nearest valid options, so that an edited or imported file never stops a chat."""
        numbers: dict[str, Any] = {}
        for name, (lowest, highest) in RANGES.items():
            kind = int if name in ("top_k", "max_tokens") else float
            value = kind(getattr(self, name))
            if math.isnan(value):
                raise ValueError(f"{name} is no number")
            numbers[name] = kind(min(max(value, kind(lowest)), kind(highest)))
        return replace(
            self,
            system=clean_text(str(self.system))[:SYSTEM_LENGTH],
            seed=None if self.seed is None else int(self.seed) % SEEDS,
            thinking=self.thinking if isinstance(self.thinking, bool) else None,
            drop_oldest=self.drop_oldest is True,
            sparse=_share(self.sparse),
            exact=self.exact is True,
            use_cache=self.use_cache is not False,
            **numbers,
        )

    def with_values(self, values: Mapping[str, Any]) -> ChatOptions:
        """These options with some of ``values`` taken over; what is unknown or unusable is left out."""
        known, options = {field.name for field in fields(ChatOptions)}, self
        for name in known & values.keys():
            with contextlib.suppress(ValueError, TypeError, OverflowError):
                options = replace(options, **{name: values[name]}).checked()
        return options

    def values(self) -> dict[str, Any]:
        """The options as a chat keeps them."""
        return asdict(self)

    def request_fields(self) -> dict[str, Any]:
        """The fields of a ``GenerationRequest`` that they set."""
        taken = {name: getattr(self, name) for name in RANGES}
        seed = secrets.randbelow(SEEDS) if self.seed is None else self.seed
        overflow = "drop_oldest" if self.drop_oldest else "refuse"
        sparse = SparsePrefill(self.sparse) if self.sparse < 1.0 else None
        engine = {"overflow": overflow, "sparse": sparse, "exact": self.exact, "use_cache": self.use_cache}
        return {**taken, "seed": seed, "thinking": self.thinking, **engine}

    def turns(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """The chat as the model reads it: with the instructions first, where there are any and the chat has none of its own."""
        if not self.system.strip() or any(message.role == "system" for message in messages):
            return tuple(messages)
        return (Message("system", self.system), *messages)


def _share(value: float) -> float:
    """The nearest share that is offered. Raises ``ValueError`` for what is no share."""
    share = float(value)
    if not 0.0 < share <= 1.0:
        raise ValueError("sparse is no share")
    return min(SHARES, key=lambda offered: abs(offered - share))


def taken_otherwise(values: Mapping[str, Any]) -> list[str]:
    """What of options that came in a file is not taken as it stands there, a few words each."""
    known, notes = ChatOptions().with_values(values).values(), []
    for name, value in values.items():
        if name not in known:
            notes.append(tr("option “{name}” is unknown", name=name))
        elif name == "system" and isinstance(value, str):
            if len(value) > SYSTEM_LENGTH:
                notes.append(tr("instructions were cut to {limit} characters", limit=SYSTEM_LENGTH))
        elif known[name] != value:
            notes.append(tr("option “{name}” cannot be {value}", name=name, value=f"{value!r}"[:20]))
    return notes


@dataclass(frozen=True, slots=True)
class Preset:
    """A named set of options. ``id`` is the name of a built-in one; the user's own have ids that begin with "user:"."""

    id: str
    name: str
    values: Mapping[str, Any]

    @property
    def built_in(self) -> bool:
        """Whether it came with the program and cannot be changed."""
        return not self.id.startswith("user:")


_PLAIN = {name: getattr(ChatOptions(), name) for name in RANGES if name != "max_tokens"}
# Their names are translated where they are shown.
BUILT_IN: tuple[Preset, ...] = (
    Preset("precise", mark("Precise"), {**_PLAIN, "seed": 0}),
    Preset("balanced", mark("Balanced"), {**_PLAIN, "temperature": 0.7, "top_p": 0.95, "seed": None}),
    Preset("creative", mark("Creative"), {**_PLAIN, "temperature": 1.0, "min_p": 0.05, "presence_penalty": 0.3, "seed": None}),
    Preset("code", mark("Code"), {**_PLAIN, "temperature": 0.2, "top_p": 0.95, "top_k": 40, "seed": 0}),
)


def user_preset(name: str, values: Mapping[str, Any]) -> Preset:
    """A preset of the user's own. Raises ``ValueError`` for a name without any text."""
    shown = " ".join(clean_text(name).split())[:60]
    if not shown:
        raise ValueError(tr("A preset needs a name: type one."))
    return Preset(f"user:{shown}", shown, ChatOptions().with_values(values).values())
