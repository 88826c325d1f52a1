"""Learning from the user's chats with a loaded pair: trains a copy of the draft in use, and takes it only if it is better."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import mlx.core as mx

from engine.drafters.dflash.convention import DraftConvention
from engine.errors import RequestError
from engine.learned import LearnedDrafts
from engine.models.entries import ResolvedPair
from engine.request import Message
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import Target
from engine.training.export import why_not_exportable
from engine.training.settings import TrainingEvent, TrainingFinished, TrainingSettings

# Small steps, so that a prompt never waits long, and few evaluations: the best of many would be chosen by chance.
BACKGROUND = TrainingSettings(
    steps=120, rows=2, slots=128, rate=3e-4, warm_up=10, evaluate_every=40, held_out=12, optimizer="adamw", tap_bytes=2**28
)


@dataclass(frozen=True, slots=True)
class Learner:
    """A loaded pair as something to learn for. ``pair`` has its own draft, ``draft`` is the one in use."""

    pair: ResolvedPair
    draft: Path | None
    target: Target
    tokenizer: Any
    stop_ids: frozenset[int]

    @property
    def drafts(self) -> LearnedDrafts:
        """What was learned for this pair."""
        return LearnedDrafts(self.pair)

    def learn(
        self, chats: Sequence[Sequence[Message]], settings: TrainingSettings | None, cancel: threading.Event
    ) -> Iterator[TrainingEvent]:
        """See ``Engine.learn``."""
        from engine.training.run import Source, TrainingRun, Workshop  # only where something is learned: it is not cheap

        if self.draft is None:
            raise RequestError("This model has no draft to go on from: choose a pair with a draft.")
        if not isinstance(self.target, AttentionTarget):
            raise RequestError(f"Drafts of {self.target.family} models cannot be trained here: choose another pair.")
        reason = why_not_exportable(DraftConvention.read(self.draft))
        if reason is not None:
            raise RequestError(f"This pair's draft {reason}, and such drafts cannot learn here: choose another pair.")
        settings, drafts = settings or BACKGROUND, self.drafts
        output = drafts.run_folder(_identity(chats, self.draft, settings))
        shop = Workshop(self.target, self.tokenizer, self.stop_ids, self.pair.target)
        run = TrainingRun(shop, output, settings, Source(chats), first=self.draft, cancel=cancel, pausing=True)
        try:
            for event in run.events():
                if isinstance(event, TrainingFinished) and event.reason != "cancelled":
                    if event.better:
                        drafts.adopt(output, event.before, event.best)
                    drafts.drop_runs()
                yield event
        finally:
            mx.clear_cache()


def _identity(chats: Sequence[Sequence[Message]], draft: Path, settings: TrainingSettings) -> str:
    """What makes two runs one: the chats word for word, the draft and the settings."""
    said = [[(message.role, message.content) for message in chat] for chat in chats]
    return hashlib.sha256(json.dumps([said, str(draft), asdict(settings)]).encode()).hexdigest()[:16]
