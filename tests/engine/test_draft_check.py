"""The check of a draft at load: it finds what is read wrongly or made for another model, spares what is only weak, and is told."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from engine import Cancelled, draft_check, load
from engine.cli import main
from engine.draft_check import CYCLES, FirstGuesses, first_guesses
from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.model import DFlashModel
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.engine.bench.pairs import write_pair

Change = Callable[[DFlashModel], DFlashModel]


def convention(**changes: Any) -> Change:
    """The same weights, read by another convention."""

    def read(model: DFlashModel) -> DFlashModel:
        other = copy.copy(model)
        other.convention = replace(model.convention, **changes)
        return other

    return read


def weights(change: Callable[[mx.array], mx.array]) -> Change:
    """Other weights of the same shapes."""

    def rewritten(model: DFlashModel) -> DFlashModel:
        mx.random.seed(1)
        other = DFlashModel(model.convention)
        floats = [(name, value) for name, value in tree_flatten(model.parameters()) if mx.issubdtype(value.dtype, mx.floating)]
        other.update(model.parameters())
        other.load_weights([(name, change(value)) for name, value in floats], strict=False)
        return other

    return rewritten


def noisy(share: float) -> Change:
    return weights(lambda array: array + share * mx.std(array) * mx.random.normal(array.shape))


def guesses(engine: Engine, change: Change) -> FirstGuesses:
    draft = engine._drafters["dflash"]
    assert isinstance(draft, DFlashDrafter)
    changed = DFlashDrafter(change(draft.model), engine._target, "changed", draft.block_length)
    return first_guesses(engine._target, engine._tokenizer, changed)


def test_the_starters_draft_passes_and_nothing_is_said(engine: Engine) -> None:
    found = guesses(engine, lambda model: model)
    assert found.cycles == CYCLES and found.right > CYCLES // 2 and found.tokens > 2 * CYCLES
    assert found.notice is None and engine.info.notices == ()


@pytest.mark.parametrize(
    "change",
    [
        convention(first_slot=0),
        convention(taps=(25, 26, 27, 28, 29)),
        weights(lambda array: mx.random.normal(array.shape) * mx.std(array)),
        weights(lambda array: array[:, ::-1] if array.ndim == 2 and array.shape[1] == 5 * 576 else array),
    ],
    ids=["another first slot", "other layers", "another seed", "features of another model"],
)
def test_a_draft_that_is_read_wrongly_or_made_for_another_model_is_told(engine: Engine, change: Change) -> None:
    found = guesses(engine, change)
    assert found.cycles == CYCLES
    assert found.notice is not None and f"right {found.right} of {CYCLES} times" in found.notice


def test_a_draft_that_is_only_weak_is_not_cried_at(engine: Engine) -> None:
    """Noise of a third of each matrix' spread takes a third of what the draft gains."""
    found, good = guesses(engine, noisy(0.35)), guesses(engine, lambda model: model)
    assert found.tokens < good.tokens and found.notice is None


def test_the_shares_that_are_told() -> None:
    assert FirstGuesses(1, 8, 9).notice and not FirstGuesses(2, 8, 11).notice
    assert FirstGuesses(0, 0, 0).notice is None, "where the context leaves no room nothing was seen"


def test_cancel_ends_the_check_and_keeps_nothing(engine: Engine, tmp_path: Path) -> None:
    cancel = threading.Event()
    cancel.set()
    with pytest.raises(Cancelled):
        draft_check.kept_first_guesses(tmp_path, ["x"], engine._target, engine._tokenizer, engine._drafters["dflash"], cancel)
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def pair(tmp_path: Path, starter: ResolvedPair, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A tiny random pair and a data folder of its own: its draft cannot guess."""
    found = write_pair(tmp_path / "pair", starter)
    monkeypatch.setenv("SLIPSTREAM_HOME", str(tmp_path / "home"))
    yield found


def notices(pair: str) -> tuple[str, ...]:
    engine = load(pair)
    engine.close()
    return engine.info.notices


@pytest.mark.slow
def test_a_load_tells_it_and_checks_the_same_files_once(pair: str, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []
    real = draft_check.first_guesses

    def counted(*given: Any) -> FirstGuesses:
        checked.append(1)
        return real(*given)

    monkeypatch.setattr(draft_check, "first_guesses", counted)
    first = notices(pair)
    assert len(first) == 1 and first[0].endswith("choose another draft or none.") and "short check" in first[0]
    assert notices(pair) == first and len(checked) == 1, "what is known is told at every load"
    target, draft = pair.split("+")
    os.utime(Path(draft) / "model.safetensors", ns=(1, 1))
    assert notices(pair) == first and len(checked) == 2, "other files are another draft"
    assert notices(target) == () and len(checked) == 2


def test_the_command_line_tells_it_once(pair: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "--model", pair, "--prompt", "hello", "--max-tokens", "3"]) == 0
    assert capsys.readouterr().err.count("slipstream: In a short check the draft's first guess was right ") == 1
