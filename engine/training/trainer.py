"""The training loop's arithmetic: one step after the other, each a function of seed and step number alone, so that a run
that is taken up again goes on exactly as it would have."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import mlx.core as mx
import mlx.optimizers as optim
import numpy as np
from mlx.utils import tree_flatten, tree_map, tree_unflatten

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.training.blocks import Blocks, draw_anchors, pack, packed_rows
from engine.training.corpus import Corpus
from engine.training.export import trainable
from engine.training.loss import block_loss
from engine.training.settings import TrainingSettings
from engine.training.teacher import TapStore, Teacher

CLIP = 1.0
MUON_SCALE = 0.2  # times the root of a matrix' larger side: an update as large as AdamW's, so that one rate serves both
MIX = ((1, 0.35), (2, 0.55), (4, 0.10))  # block lengths trained: the whole, a half, a quarter, so that any may be chosen
SHORTEST_BLOCK = 4


@dataclass(frozen=True, slots=True)
class StepResult:
    """Loss and tau of one step, and how many text tokens it read."""

    loss: float
    tau: float
    tokens: int


class Trainer:
    """Holds fp32 masters, their running average and the optimiser; passes run in ``dtype``. ``check`` is called between passes:
    where it raises, the step is as if it had never begun."""

    def __init__(
        self,
        drafter: DFlashDrafter,
        teacher: Teacher,
        corpus: Corpus,
        settings: TrainingSettings,
        dtype: mx.Dtype,
        check: Callable[[], None] = lambda: None,
    ):
        self._drafter, self._teacher, self._corpus, self._settings, self._dtype = drafter, teacher, corpus, settings, dtype
        self.masters = {name: value.astype(mx.float32) for name, value in trainable(drafter.model).items()}
        self.average = dict(self.masters)
        self._taps, self._check = TapStore(teacher, corpus.ids, settings.tap_bytes, check), check
        self.step = 0
        self._optimizer = make_optimizer(settings)
        self._optimizer.init(_tree(self.masters))
        self._places = self._vocabulary_places()
        self._lengths = block_lengths(drafter.model.convention.block_length)

    def update(self, steps: int | None) -> StepResult:
        """One step; the rate falls to zero over ``steps`` (None: not known yet)."""
        blocks, numbers, width = self._batch()
        taps, stream = self._taps.get(numbers, width)
        teacher = self._teacher.probabilities(stream, blocks.said_at, self._drafter) if self._settings.distil else None
        mx.eval(taps, *([] if teacher is None else [teacher]))
        self._check()
        parameters = {name: value.astype(self._dtype) for name, value in self.masters.items()}
        (loss, tau), gradients = mx.value_and_grad(self._loss)(parameters, blocks, taps.astype(self._dtype), teacher)
        gradients = tree_map(lambda gradient: gradient.astype(mx.float32), gradients)
        gradients, _ = optim.clip_grad_norm(gradients, CLIP)
        self._set_rate(self._settings.rate * self.factor(steps))
        stepped = dict(tree_flatten(self._optimizer.apply_gradients(_tree(gradients), _tree(self.masters))))
        # In an order and a layout in memory that do not depend on whether the run was taken up again: sums are over them.
        masters = {name: mx.contiguous(stepped[name]) for name in self.masters}
        self._optimizer.state = tree_map(mx.contiguous, self._optimizer.state)
        keep = min(self._settings.average, (1 + self.step) / (10 + self.step))
        average = {name: keep * self.average[name] + (1 - keep) * masters[name] for name in masters}
        mx.eval(masters, average, self._optimizer.state, loss, tau)
        result = StepResult(cast(float, loss.item()), cast(float, tau.item()), len(numbers) * width)
        if math.isfinite(result.loss):  # a step that went wrong changes nothing that is kept
            self.masters, self.average = masters, average
        self.step += 1
        return result

    def factor(self, steps: int | None) -> float:
        """Warm-up, then a cosine to zero."""
        warm = min(1.0, (self.step + 1) / self._settings.warm_up) if self._settings.warm_up else 1.0
        done = 0.0 if not steps else min(1.0, self.step / steps)
        return warm * 0.5 * (1 + math.cos(math.pi * done))

    def load_average(self) -> None:
        """Puts the running average into the drafter's model, for evaluation."""
        self._load({name: value.astype(self._dtype) for name, value in self.average.items()})

    def state(self) -> dict[str, mx.array]:
        """Everything ``restore`` needs but the step number, by name."""
        flat = {f"masters/{name}": value for name, value in self.masters.items()}
        flat |= {f"average/{name}": value for name, value in self.average.items()}
        return flat | {f"optimizer/{name}": value for name, value in tree_flatten(self._optimizer.state)}

    def restore(self, arrays: dict[str, mx.array], step: int) -> None:
        """Goes back to a saved state. Raises ``KeyError`` where it belongs to another draft."""
        self.masters = {name: arrays[f"masters/{name}"] for name in self.masters}
        self.average = {name: arrays[f"average/{name}"] for name in self.average}
        names = [name for name, _ in tree_flatten(self._optimizer.state)]
        self._optimizer.state = tree_unflatten([(name, arrays[f"optimizer/{name}"]) for name in names])
        self.step = step

    def _batch(self) -> tuple[Blocks, list[int], int]:
        """This step's blocks, its texts and their width: texts in a new order each round, anchors and length drawn anew."""
        settings, corpus = self._settings, self._corpus
        count = len(corpus.ids)
        first = self.step * settings.rows
        numbers = [int(self._order(place // count)[place % count]) for place in range(first, first + settings.rows)]
        ids, answer = corpus.ids[numbers], corpus.answer[numbers]
        width = int(np.flatnonzero(answer.any(axis=0))[-1]) + 1 if answer.any() else ids.shape[1]
        ids, answer = ids[:, :width], answer[:, :width]
        generator = np.random.default_rng([settings.seed, 2, self.step])
        lengths, weights = zip(*self._lengths, strict=True)
        slots = int(generator.choice(lengths, p=np.asarray(weights) / sum(weights)))
        anchors, exists = draw_anchors(answer, max(1, settings.slots // slots), generator)
        return pack(ids, answer, anchors, exists, slots, self._drafter.model.convention), numbers, width

    def _order(self, epoch: int) -> np.ndarray:
        return np.random.default_rng([self._settings.seed, 1, epoch]).permutation(len(self._corpus.ids))

    def _loss(
        self, parameters: dict[str, mx.array], blocks: Blocks, taps: mx.array, teacher: mx.array | None
    ) -> tuple[mx.array, mx.array]:
        self._load(parameters)
        model, settings = self._drafter.model, self._settings
        texts = taps.shape[0]
        inputs = self._drafter.embed(blocks.inputs.reshape(texts, -1)).astype(self._dtype)
        rows = packed_rows(model, inputs, model.features(taps), blocks)
        logits = self._drafter.project(rows).reshape(*blocks.labels.shape, -1)
        labels = blocks.labels if self._places is None else self._places[blocks.labels]
        return block_loss(
            logits, labels, blocks.scored, teacher,
            kind=settings.loss, distil=settings.distil, first_slot=model.convention.first_slot, gamma=settings.gamma,
        )  # fmt: skip

    def _load(self, parameters: dict[str, mx.array]) -> None:
        self._drafter.model.update(_tree(parameters))

    def _set_rate(self, rate: float) -> None:
        *matrices, rest = self._optimizer.optimizers
        rest.learning_rate = rate
        for optimizer in matrices:
            optimizer.learning_rate = rate * MUON_SCALE * self._drafter.model.convention.hidden_size**0.5

    def _vocabulary_places(self) -> mx.array | None:
        """Index in the draft's vocabulary of each target id [V], -1 for those left out; None where nothing is."""
        if self._drafter.vocabulary is None:
            return None
        places = np.full(self._drafter.model.convention.vocab_size, -1, dtype=np.int32)
        ids = np.asarray(self._drafter.vocabulary)
        places[ids] = np.arange(len(ids))
        return mx.array(places)


def _tree(flat: dict[str, mx.array]) -> Any:
    return tree_unflatten(list(flat.items()))


def make_optimizer(settings: TrainingSettings) -> Any:
    """Muon for matrices with AdamW for the rest, or AdamW for all."""
    adamw = optim.AdamW(settings.rate, betas=[0.9, 0.95], weight_decay=0.0, bias_correction=True)
    if settings.optimizer == "adamw":
        return optim.MultiOptimizer([adamw])
    return optim.MultiOptimizer([optim.Muon(settings.rate, weight_decay=0.0), adamw], [lambda _, weight: weight.ndim == 2])


def block_lengths(longest: int) -> list[tuple[int, float]]:
    """Block lengths to train and how often each, for drafts of blocks up to ``longest``."""
    found = {max(min(SHORTEST_BLOCK, longest), longest // part): share for part, share in reversed(MIX)}
    return sorted(found.items())
