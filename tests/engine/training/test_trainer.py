"""Steps: they lower the loss, move the draft alone, and depend on nothing but seed and number."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest
from mlx.utils import tree_flatten

from engine.decoding.controller import FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.speculative import decode_speculative
from engine.decoding.steps import Decoding
from engine.prefill.chunked import Prefilled, prefill
from engine.targets.attention import AttentionTarget
from engine.training.corpus import Corpus
from engine.training.evaluate import replayed_tau
from engine.training.settings import TrainingSettings
from engine.training.teacher import TapStore, Teacher
from engine.training.trainer import Trainer, block_lengths
from tests.engine.training.conftest import make_drafter

SETTINGS = TrainingSettings(steps=60, rows=4, slots=24, rate=5e-3, warm_up=3, seed=4)


def make_trainer(target: AttentionTarget, corpus: Corpus, folder: Path, settings: TrainingSettings = SETTINGS) -> Trainer:
    drafter = make_drafter(target, folder)
    return Trainer(drafter, Teacher(target, drafter.taps), corpus, settings, mx.float32)


@pytest.mark.parametrize("optimizer", ["muon", "adamw"])
def test_training_lowers_the_loss_and_raises_tokens_per_cycle_on_what_it_saw(
    target: AttentionTarget, corpus: Corpus, tmp_path: Path, optimizer: str
) -> None:
    trainer = make_trainer(target, corpus, tmp_path, replace(SETTINGS, rate=1e-2, optimizer=optimizer))  # type: ignore[arg-type]
    results = [trainer.update(80) for _ in range(80)]
    losses = [result.loss for result in results]
    assert np.mean(losses[-10:]) < 0.85 * np.mean(losses[:5])
    assert np.mean([result.tau for result in results[-10:]]) > np.mean([result.tau for result in results[:5]]) + 0.1


def test_only_the_draft_moves(target: AttentionTarget, corpus: Corpus, tmp_path: Path) -> None:
    before = {name: np.array(value) for name, value in tree_flatten(target.model.parameters())}
    trainer = make_trainer(target, corpus, tmp_path)
    first = {name: np.array(value) for name, value in trainer.masters.items()}
    trainer.update(10)
    after = dict(tree_flatten(target.model.parameters()))
    assert all(np.array_equal(before[name], np.array(after[name])) for name in before)
    assert all(not np.array_equal(first[name], np.array(value)) for name, value in trainer.masters.items())


def test_a_run_that_is_taken_up_again_has_the_losses_it_would_have_had(
    target: AttentionTarget, corpus: Corpus, tmp_path: Path
) -> None:
    whole = make_trainer(target, corpus, tmp_path / "a")
    losses = [whole.update(20).loss for _ in range(3)]
    file = tmp_path / "state.safetensors"
    mx.save_safetensors(str(file), whole.state())
    losses += [whole.update(20).loss for _ in range(3)]
    later = make_trainer(target, corpus, tmp_path / "b")
    later.restore(mx.load(str(file)), 3)  # type: ignore[arg-type]
    assert [later.update(20).loss for _ in range(3)] == losses[3:]
    assert all(mx.array_equal(value, later.average[name]).item() for name, value in whole.average.items())


def test_a_loss_that_is_no_number_changes_nothing(target: AttentionTarget, corpus: Corpus, tmp_path: Path) -> None:
    trainer = make_trainer(target, corpus, tmp_path)
    trainer.update(10)
    kept = {name: np.array(value) for name, value in trainer.average.items()}
    trainer.masters["norm.weight"] = trainer.masters["norm.weight"] * float("nan")
    assert np.isnan(trainer.update(10).loss)
    assert all(np.array_equal(kept[name], np.array(value)) for name, value in trainer.average.items())


def test_taps_that_are_kept_are_those_that_a_pass_gives(target: AttentionTarget, corpus: Corpus) -> None:
    teacher = Teacher(target, (0, 2))
    kept, passing = TapStore(teacher, corpus.ids, 2**30), TapStore(teacher, corpus.ids, 0)
    for numbers in ([3, 1], [1, 5, 3], [5]):
        for ours, theirs in zip(kept.get(numbers, 30), passing.get(numbers, 30), strict=True):
            np.testing.assert_allclose(np.array(ours), np.array(theirs), atol=1e-4)
    assert len(kept._kept) == 3 and not passing._kept


def test_the_teachers_distribution_is_the_targets_own(target: AttentionTarget, corpus: Corpus, tmp_path: Path) -> None:
    drafter = make_drafter(target, tmp_path)
    teacher = Teacher(target, drafter.taps)
    ids = mx.array(corpus.ids[:1])
    _, stream = teacher.run(ids)
    places = mx.array([[[7, 8], [20, 21]]])
    found = teacher.probabilities(stream, places, drafter)
    logits = target.forward(ids[0], target.make_cache()).logits
    np.testing.assert_allclose(
        np.array(found[0].reshape(4, -1)), np.array(mx.softmax(logits[mx.array([7, 8, 20, 21])], -1)), atol=1e-5
    )


def test_a_replayed_answer_takes_as_many_cycles_as_real_decoding(target: AttentionTarget, corpus: Corpus, tmp_path: Path) -> None:
    trainer = make_trainer(target, corpus, tmp_path)
    for _ in range(60):
        trainer.update(60)
    trainer.load_average()
    drafter = trainer._drafter
    for text in corpus.held_out:
        prompt, said = list(text.ids[:6]), len(text.ids) - 6
        cache, session = target.make_cache(), drafter.session()
        (ready,) = (
            o for o in prefill(target, cache, prompt, session, drafter.taps, 64, threading.Event()) if isinstance(o, Prefilled)
        )
        state = Decoding(
            target=target, cache=cache, sampler=Sampler(0.0, 0), stop_ids=frozenset(), max_tokens=said,
            cancel=threading.Event(),
            position=6, anchor=mx.argmax(ready.logits, axis=-1).astype(mx.int32), committed=list(prompt), session=session,
            taps=drafter.taps, tap_rows=ready.taps, policy=FixedLength(6),
        )  # fmt: skip
        steps = list(decode_speculative(state))
        tokens = [token for step in steps for token in step.tokens]
        assert tuple(tokens) == text.ids[6:]
        assert replayed_tau(drafter, Teacher(target, drafter.taps), [text], 6) == pytest.approx((said - 1) / (len(steps) - 1))


def test_the_whole_block_a_half_and_a_quarter_are_trained() -> None:
    assert [length for length, _ in block_lengths(16)] == [4, 8, 16]
    assert [length for length, _ in block_lengths(8)] == [4, 8]
    assert [length for length, _ in block_lengths(3)] == [3]
