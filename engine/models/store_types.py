"""What the models room tells of models: what lies on this machine, what the hub offers, and whether it fits. No Qt, no MLX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

ModelSource = Literal["slipstream", "hub cache", "lm studio", "folder"]
ModelState = Literal["ready", "incomplete", "importable", "unsupported"]
Verdict = Literal["fits", "tight", "no"]


@dataclass(frozen=True, slots=True)
class InstalledModel:
    """A model or draft on this machine. ``bytes`` are on disk, ``path`` is its folder (or GGUF file), ``id`` what loads it.

    ``used_by`` are the catalog pairs that need it. ``problem`` says in words why ``state`` is not "ready".
    ``family`` is the model_type of its config, "" where there is none; ``is_draft``: it proposes and cannot be loaded alone.
    """

    id: str
    source: ModelSource
    path: Path
    bytes: int
    state: ModelState
    used_by: tuple[str, ...] = ()
    problem: str = ""
    family: str = ""
    is_draft: bool = False


@dataclass(frozen=True, slots=True)
class HubModel:
    """A model that the hub offers. ``size_bytes`` None: the hub does not say. ``draft`` is the repository of its draft, if known.

    ``supported``: its family runs here, ``takes_draft``: with a draft or lookup. ``licence`` is the hub's tag, "" for none.
    """

    repository: str
    downloads: int
    size_bytes: int | None
    gated: bool
    licence: str
    family: str
    supported: bool
    draft: str | None
    takes_draft: bool = True


@dataclass(frozen=True, slots=True)
class MemoryNeed:
    """What a pair takes in memory, in bytes. The caches take ``per_token`` for each token of context and ``fixed`` beside.

    ``weights`` are target and draft; ``longest`` is the context in tokens that the model was made for, 0 where that is unknown.
    """

    weights: int
    per_token: int
    fixed: int
    longest: int = 0

    def at(self, context: int) -> int:
        """Bytes with ``context`` tokens in the caches, with room for what a pass computes."""
        tokens = min(context, self.longest) if self.longest else context
        return round(1.05 * self.weights) + self.per_token * tokens + self.fixed + WORKING_BYTES


WORKING_BYTES = 256 * 2**20  # activations, logits and the program itself


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether a model fits this machine: ``words`` for the user, like "fits with 32,768 tokens of context".

    ``needed_bytes`` at the asked context; ``memory_bytes`` is what models may use here, less than all there is.
    """

    needed_bytes: int
    memory_bytes: int
    verdict: Verdict
    words: str
