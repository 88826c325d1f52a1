"""A whole training run: texts, draft, steps, held-out decoding, export of the best so far. Runs on the thread that owns MLX."""

from __future__ import annotations

import hashlib
import math
import threading
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import mlx.core as mx
import numpy as np

from engine.drafters.dflash.convention import DraftConvention
from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.drafters.dflash.model import DFlashModel
from engine.errors import Cancelled, RequestError, SlipstreamError
from engine.loading import read_tokenizer
from engine.memory import limit_cache
from engine.models.checkpoint import weight_files
from engine.request import Message
from engine.targets.attention import AttentionTarget
from engine.targets.loading import load_target
from engine.text.chat import encode_chat, stop_token_ids
from engine.training.corpus import Corpus, Text, build_corpus
from engine.training.evaluate import replayed_tau
from engine.training.export import check_exportable, export_draft
from engine.training.fresh import fresh_convention, fresh_draft, mask_token
from engine.training.selfplay import Writer, answer_prompts, invent_prompts
from engine.training.settings import (
    DataProgress,
    DraftPlan,
    Evaluated,
    TrainingEvent,
    TrainingFinished,
    TrainingSettings,
    TrainingStep,
)
from engine.training.state import Reached, SavedRun, run_identity
from engine.training.teacher import Teacher
from engine.training.trainer import Trainer

TIMED_STEPS = (3, 8)  # steps over which the pace is measured before a run's length is fixed
OUT_OF_MEMORY = ("malloc", "out of memory", "unable to allocate")  # Metal, CUDA and the CPU
JUDGED_BLOCK = 8  # slots; longer blocks are seldom chosen


@dataclass(frozen=True, slots=True)
class Source:
    """Where texts come from: ``chats`` whose user turns the target answers anew, and ``invented`` questions that it makes up, in
    the manner of those chats where there are any."""

    chats: Sequence[Sequence[Message]] = ()
    invented: int = 0

    def split(self, held_out: int, seed: int) -> tuple[Source, Source]:
        """What to learn from, and the chats (at most a fifth) to judge by; too few chats are all learned from."""
        apart = min(held_out, len(self.chats) // 5)
        order = np.random.default_rng([seed, 3]).permutation(len(self.chats))
        chosen = [[self.chats[index] for index in part] for part in (order[apart:], order[:apart])]
        return Source(chosen[0], self.invented), Source(chosen[1])

    def content(self) -> str:
        """What stands for the chats, word for word."""
        return repr([[(message.role, message.content) for message in chat] for chat in self.chats])

    def questions(self) -> list[str]:
        """What the user said."""
        return [message.content for chat in self.chats for message in chat if message.role == "user"]

    def prompts(self, tokenizer: Any) -> list[list[int]]:
        """Every user turn of every chat, with what came before it."""
        ends = ((chat, index) for chat in self.chats for index, message in enumerate(chat) if message.role == "user")
        return [encode_chat(tokenizer, chat[: index + 1]) for chat, index in ends]


@dataclass(frozen=True, slots=True)
class Workshop:
    """A loaded target to train for: ``folder`` holds its config.json."""

    target: AttentionTarget
    tokenizer: Any
    stop_ids: frozenset[int]
    folder: Path

    @classmethod
    def load(cls, folder: Path) -> Workshop:
        """The target in ``folder`` in the form this device trains and decodes with. Raises ``ModelError``."""
        limit_cache(training=True)
        target = load_target(folder, mx.float32 if mx.default_device() == mx.cpu else None)
        tokenizer = read_tokenizer(folder)
        return cls(cast(AttentionTarget, target), tokenizer, stop_token_ids(folder, tokenizer), folder)


class TrainingRun:
    """``events`` does the work. ``first`` is a draft to continue from; otherwise ``plan`` says what to begin.

    ``cancel`` ends it after the step in progress and judges what was reached; with ``pausing`` it ends it between two passes of a
    step, the state of the last whole step is kept and nothing is judged: somebody waits.
    """

    def __init__(
        self,
        workshop: Workshop,
        output: Path,
        settings: TrainingSettings,
        source: Source,
        plan: DraftPlan | None = None,
        first: Path | None = None,
        mask: int | None = None,
        cancel: threading.Event | None = None,
        pausing: bool = False,
    ):
        self._workshop, self._output, self._settings = workshop, output, settings
        self._source, self._plan, self._first, self._mask = source, plan or DraftPlan(), first, mask
        self._cancel, self._pausing = cancel or threading.Event(), pausing
        if not source.chats and source.invented < 1:
            raise RequestError("There is nothing to learn from: give --data FILE.jsonl or --self-play N.")
        self._dtype = mx.float32 if mx.default_device() == mx.cpu else mx.bfloat16
        parts = [str(workshop.folder), _content(first), str(source.invented), source.content(), str(mask)]
        self._saved = SavedRun(output, run_identity(parts, plan, settings))

    def forget(self) -> None:
        """Throws an unfinished run in the output folder away."""
        self._saved.remove()

    def events(self) -> Iterator[TrainingEvent]:
        """Trains and yields what happens; ``TrainingFinished`` is the last. Raises ``RequestError`` for too little text,
        ``Cancelled`` before there is a draft to keep, ``SlipstreamError`` where memory or disk run out."""
        try:
            yield from self._events()
        except OSError as error:
            raise SlipstreamError(f"Training cannot keep its state ({error}): make room on the disk and begin again.") from error
        except RuntimeError as error:
            if not any(words in str(error).lower() for words in OUT_OF_MEMORY):
                raise
            raise SlipstreamError(f"Memory ran out while training ({error}): give fewer --rows or --slots.") from error

    def _events(self) -> Iterator[TrainingEvent]:
        self._output.mkdir(parents=True, exist_ok=True)
        corpus = self._saved.texts()
        if corpus is None:
            self._begin()  # what is asked for is checked before minutes of writing
            corpus = yield from self._write_texts()
            self._saved.save_texts(corpus)
        drafter = self._drafter(corpus)
        teacher = Teacher(self._workshop.target, drafter.taps)
        trainer = Trainer(drafter, teacher, corpus, self._settings, self._dtype, self._check)
        reached, saved = Reached(), self._saved.load()
        if saved is not None:
            arrays, reached = saved
            trainer.restore(arrays, reached.step)
        judge = _Judge(drafter, teacher, corpus, min(JUDGED_BLOCK, drafter.block_length), self._check)
        if saved is None:
            reached.before = judge.tau(trainer) if self._first else 1.0
            reached.best = reached.before if self._first else 0.0  # of a new draft the first one judged is kept
        try:
            yield from self._train(trainer, judge, reached)
        except Cancelled:
            self._saved.save(trainer.state(), reached)
            raise

    def _check(self) -> None:
        """Called between passes. Raises ``Cancelled`` where a pause is asked for."""
        if self._pausing and self._cancel.is_set():
            raise Cancelled("Training was paused: it goes on from its last whole step.")

    def _write_texts(self) -> Generator[DataProgress, None, Corpus]:
        shop, settings = self._workshop, self._settings
        writer = Writer(shop.target, shop.stop_ids, self._cancel)
        learned, apart = self._source.split(settings.held_out, settings.seed)
        prompts, judged = learned.prompts(shop.tokenizer), apart.prompts(shop.tokenizer)
        if learned.invented:
            for item in invent_prompts(writer, shop.tokenizer, learned.invented, settings.seed, learned.questions()):
                if isinstance(item, DataProgress):
                    yield item
                elif item not in judged:
                    prompts.append(item)
        held_out = yield from self._answers(writer, judged)
        texts = yield from self._answers(writer, prompts)
        return build_corpus(texts, settings.held_out, settings.seed, held_out)

    def _answers(self, writer: Writer, prompts: list[list[int]]) -> Generator[DataProgress, None, list[Text]]:
        known = self._saved.answers()
        texts = [known[tuple(prompt)] for prompt in prompts if tuple(prompt) in known]
        missing = [prompt for prompt in prompts if tuple(prompt) not in known]
        for outcome in answer_prompts(writer, missing, self._settings.max_length):
            if isinstance(outcome, DataProgress):
                yield outcome
            else:
                self._saved.add_answer(outcome)
                texts.append(outcome)
        return texts

    def _begin(self) -> DFlashModel | DraftConvention:
        """The draft to continue from, or what a new one will look like. Raises ``RequestError`` and ``ModelError``."""
        shop, shape = self._workshop, self._workshop.target.shape
        if self._first is not None:
            model = load_draft(self._first, shape, mx.float32)
            check_exportable(model.convention)
            return model
        mask = mask_token(shop.tokenizer, shape, shop.stop_ids) if self._mask is None else self._mask
        return fresh_convention(shop.folder, shape, self._plan, mask)

    def _drafter(self, corpus: Corpus) -> DFlashDrafter:
        shop, model = self._workshop, self._begin()
        if isinstance(model, DraftConvention):
            counts = corpus.counts(shop.target.shape.vocab_size)
            model = fresh_draft(model, counts, shop.stop_ids, self._settings.seed)
        return DFlashDrafter(model, shop.target, "draft", model.convention.block_length)

    def _train(self, trainer: Trainer, judge: _Judge, reached: Reached) -> Iterator[TrainingEvent]:
        settings = self._settings
        reached.steps = settings.steps or reached.steps
        begun, before = time.monotonic(), reached.elapsed_s
        pace = _Pace(settings.seconds)
        reason: Literal["done", "cancelled", "diverged"] = "done"
        while reached.steps is None or trainer.step < reached.steps:
            self._check()
            if self._cancel.is_set():
                reason = "cancelled"
                break
            started = time.monotonic()
            result = trainer.update(reached.steps)
            reached.step, reached.elapsed_s = trainer.step, before + time.monotonic() - begun
            if not math.isfinite(result.loss):
                reason = "diverged"
                break
            pace.add(time.monotonic() - started)
            if reached.steps is None:
                reached.steps = pace.steps(trainer.step, reached.elapsed_s)
            remaining = None if reached.steps is None else (reached.steps - trainer.step) * pace.seconds
            tokens_s = result.tokens / max(pace.seconds, 1e-9)
            yield TrainingStep(trainer.step, reached.steps, result.loss, result.tau, tokens_s, reached.elapsed_s, remaining)
            if trainer.step % settings.evaluate_every == 0 and trainer.step != reached.steps:
                yield self._judge(trainer, judge, reached)
                pace.judged(time.monotonic() - started)
                self._saved.save(trainer.state(), reached)
        yield self._judge(trainer, judge, reached)
        if reason == "cancelled":
            self._saved.save(trainer.state(), reached)
        else:
            self._saved.remove()
        elapsed = before + time.monotonic() - begun
        yield TrainingFinished(trainer.step, reached.best_step, reached.before, reached.best, elapsed, mx.get_peak_memory(), reason)

    def _judge(self, trainer: Trainer, judge: _Judge, reached: Reached) -> Evaluated:
        """Decodes the held-out answers and exports the draft where it is the best so far."""
        tau = judge.tau(trainer)
        best = tau > reached.best
        if best:
            reached.best, reached.best_step = tau, trainer.step
            export_draft(judge.drafter.model, trainer.average, self._output)
        return Evaluated(trainer.step, tau, judge.block_length, best)


@dataclass(frozen=True, slots=True)
class _Judge:
    drafter: DFlashDrafter
    teacher: Teacher
    corpus: Corpus
    block_length: int
    check: Callable[[], None]

    def tau(self, trainer: Trainer) -> float:
        trainer.load_average()
        return replayed_tau(self.drafter, self.teacher, self.corpus.held_out, self.block_length, self.check)


class _Pace:
    """How long a step takes, and how many fit into ``budget`` seconds."""

    def __init__(self, budget: float | None):
        self._budget, self._times = budget, []  # type: float | None, list[float]
        self._judging = 0.0

    @property
    def seconds(self) -> float:
        recent = self._times[-20:]
        return sum(recent) / len(recent) if recent else 0.0

    def add(self, seconds: float) -> None:
        self._times.append(seconds)

    def judged(self, seconds: float) -> None:
        self._judging = seconds

    def steps(self, step: int, elapsed_s: float) -> int | None:
        """The run's length in steps, once the pace is known; evaluation is taken to cost a tenth."""
        skipped, timed = TIMED_STEPS
        if self._budget is None or len(self._times) < skipped + timed:
            return step + 1 if self._budget is not None and elapsed_s > self._budget else None
        each = sum(self._times[skipped:]) / len(self._times[skipped:])
        return max(step + 1, step + int(0.9 * (self._budget - elapsed_s) / each))


def _content(draft: Path | None) -> str:
    """What stands for a draft to continue from, whatever its folder is called; empty for none."""
    if draft is None:
        return ""
    return "".join(hashlib.sha256(file.read_bytes()).hexdigest() for file in weight_files(draft))
