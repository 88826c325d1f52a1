"""Slipstream's engine: DFlash speculative decoding on MLX, usable alone.

    engine = load("starter")
    for event in engine.generate(GenerationRequest.of("Hello")):
        ...

Importing this package does not import MLX; ``load`` does. All calls on an ``Engine`` must come from the thread that
loaded it, because MLX streams belong to their thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from engine.constraint import Constraint, choice, grammar, json_object, json_schema, regex
from engine.decoding.curve import CostCurve
from engine.errors import Cancelled, ContextOverflow, ModelError, NotEnoughMemory, RequestError, SetupError, SlipstreamError
from engine.events import (
    Approximate,
    BlockLength,
    ContextFull,
    Cycle,
    Event,
    ExactnessProgress,
    Fallback,
    Finished,
    FinishReason,
    LoadProgress,
    Mode,
    Notice,
    PrefillProgress,
    Source,
    Started,
    Statistics,
    TextDelta,
    TokenLogprob,
    Trimmed,
)
from engine.info import Learned, PairInfo
from engine.kernels.blas import use_fast_blas
from engine.kernels.open_files import be_content_with_fewer
from engine.learned import forget_all as forget_learned
from engine.learned import forget_runs
from engine.options import LoadOptions
from engine.prefix.forgetting import forget_prefixes
from engine.request import GenerationRequest, Message, SparsePrefill
from engine.text.thinking import Split, ThinkingSplitter, split_thinking
from engine.training.settings import DataProgress, Evaluated, TrainingEvent, TrainingFinished, TrainingSettings, TrainingStep
from engine.verdict import Verdict, compare_tokens, identity_reason

if TYPE_CHECKING:
    from engine.engine import Engine

use_fast_blas()  # here, so that no room of this package can import MLX before them
be_content_with_fewer()

__version__ = "0.1.0"

__all__ = [
    "Approximate",
    "BlockLength",
    "Cancelled",
    "Constraint",
    "ContextFull",
    "ContextOverflow",
    "CostCurve",
    "Cycle",
    "DataProgress",
    "Engine",
    "Evaluated",
    "Event",
    "ExactnessProgress",
    "Fallback",
    "FinishReason",
    "Finished",
    "GenerationRequest",
    "Learned",
    "LoadOptions",
    "LoadProgress",
    "Message",
    "Mode",
    "ModelError",
    "NotEnoughMemory",
    "Notice",
    "PairInfo",
    "PrefillProgress",
    "RequestError",
    "SetupError",
    "SlipstreamError",
    "Source",
    "SparsePrefill",
    "Split",
    "Started",
    "Statistics",
    "TextDelta",
    "ThinkingSplitter",
    "TokenLogprob",
    "TrainingEvent",
    "TrainingFinished",
    "TrainingSettings",
    "TrainingStep",
    "Trimmed",
    "Verdict",
    "check",
    "choice",
    "compare_tokens",
    "forget_learned",
    "forget_prefixes",
    "forget_runs",
    "grammar",
    "identity_reason",
    "json_object",
    "json_schema",
    "load",
    "regex",
    "split_thinking",
]


def __getattr__(name: str) -> Any:
    if name == "Engine":  # not above: it imports MLX
        from engine.engine import Engine

        return Engine
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def check(pair: str, options: LoadOptions | None = None) -> None:
    """Raises the ``ModelError`` that ``load`` would, as far as files, memory, configs, names and shapes can tell.

    Takes about a second and no memory to speak of, so that what is loaded needs not be given up for a pair that cannot be. Like
    ``load`` to be called on the thread that owns MLX.
    """
    from engine.checking import check as check_pair

    check_pair(pair, options)


def load(
    pair: str,
    progress: Callable[[LoadProgress], None] | None = None,
    cancel: threading.Event | None = None,
    options: LoadOptions | None = None,
) -> Engine:
    """Loads a pair and returns the engine that owns it.

    ``pair`` is a catalog id ("starter") or ``TARGET[+DRAFT]``, each a local directory or a hub id already on this machine.
    The starter pair is set up first if it is not there yet. ``progress`` is called on this thread. Raises ``ModelError``,
    ``SetupError``, or ``Cancelled`` when ``cancel`` was set.
    """
    from engine.loading import load as load_pair

    return load_pair(pair, progress=progress, cancel=cancel, options=options)
