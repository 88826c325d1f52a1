"""Exact widths: what is called bit-equal is, what differs in any bit is not, and an exact answer uses nothing else."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mlx.core as mx
import pytest

from engine import Cancelled, Cycle, ExactnessProgress, Fallback, Finished, GenerationRequest, PrefillProgress, load
from engine.decoding.baseline import decode_baseline
from engine.decoding.controller import Controller, FixedLength
from engine.decoding.costs import CostCurve
from engine.decoding.exactness import Exactness, exact_widths
from engine.decoding.speculative import decode_speculative
from engine.drafters.lookup import LookupIndex
from engine.engine import Engine
from engine.models import ResolvedPair
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import Cache, TargetOutput, TargetShape
from tests.engine.decoding.test_speculative import decoding, tokens
from tests.engine.targets.hybrids import hybrid
from tests.engine.targets.sliding_families import sliding_target
from tests.engine.tiny import VOCAB, build_target, copy_tokenizer, target_config, write_draft, write_target


class Rounding(AttentionTarget):
    """A target whose passes of some widths are one bit off: in a row's logits, or in what they leave in the cache."""

    def __init__(self) -> None:
        super().__init__(build_target(target_config("llama", num_hidden_layers=1)), "llama", TargetShape(32, VOCAB, 1, 2048))
        self.off_in_logits: tuple[int, ...] = ()
        self.off_in_cache: tuple[int, ...] = ()
        self.beyond = 0

    def forward(self, ids: mx.array, cache: Cache, taps: tuple[int, ...] = ()) -> TargetOutput:
        # Row by row: every width is exact by construction, whatever this machine's kernels do.
        logits = mx.concatenate([super(Rounding, self).forward(row, cache).logits for row in mx.split(ids, ids.shape[0])])
        width, before = ids.shape[0], cache[0].offset - ids.shape[0]
        if width in self.off_in_logits and before >= self.beyond:
            logits[width - 1, 7] = mx.view(mx.view(logits[width - 1, 7], mx.uint32) ^ 1, mx.float32)
        if width in self.off_in_cache and before >= self.beyond:
            last = cache[0].offset - 1
            cache[0].values[0, 1, last, 3] = mx.view(mx.view(cache[0].values[0, 1, last, 3], mx.uint32) ^ 1, mx.float32)
        return TargetOutput(logits, None)


@pytest.fixture(scope="module")
def target() -> Rounding:
    return Rounding()


def test_a_target_that_runs_row_by_row_is_exact_at_every_width(target: Rounding) -> None:
    assert exact_widths(target, 6) == (2, 3, 4, 5, 6)


@pytest.mark.parametrize("place", ["off_in_logits", "off_in_cache"])
@pytest.mark.parametrize("beyond", [0, 200])
def test_one_bit_in_one_row_excludes_a_width(target: Rounding, monkeypatch: pytest.MonkeyPatch, place: str, beyond: int) -> None:
    """Also where it is so for long contexts only, and in nothing but the cache."""
    monkeypatch.setattr(target, place, (3, 5))
    monkeypatch.setattr(target, "beyond", beyond)
    assert exact_widths(target, 6) == (2, 4, 6)


def test_a_short_context_is_probed_as_far_as_it_goes() -> None:
    target = Rounding()
    target.shape = TargetShape(32, VOCAB, 1, 40)
    assert exact_widths(target, 4) == (2, 3, 4)


@pytest.mark.parametrize("make", [lambda: hybrid("qwen3_5"), lambda: hybrid("nemotron_h"), lambda: sliding_target("gemma3_text")])
def test_every_kind_of_cache_can_be_probed_and_is_left_as_it_was(make) -> None:
    target = make()
    cache = target.make_cache()
    before = target.forward(mx.arange(5), cache).logits
    widths = exact_widths(target, 4)
    assert set(widths) <= {2, 3, 4}
    assert mx.array_equal(before, target.forward(mx.arange(5), target.make_cache()).logits)


def test_a_replay_that_is_off_after_a_partly_accepted_block_excludes_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    target = hybrid("lfm2")
    rollback = target.rollback

    def off(cache: Cache, rejected: int) -> None:
        rollback(cache, rejected)
        if rejected == 2:
            cache[0].cache = [array + 1e-6 for array in cache[0].cache]

    whole = exact_widths(target, 5)
    assert whole[0] == 2 and len(whole) > 1  # which of the others are exact depends on the processor
    monkeypatch.setattr(target, "rollback", off)  # all widths but 2 take 2 rows back at some time
    assert exact_widths(target, 5) == (2,)


def test_widths_are_measured_once_and_kept(target: Rounding, tmp_path: Path) -> None:
    first = Exactness(target, 4, tmp_path, ["a"])
    assert first.widths is None
    left = first.measuring()
    assert [next(left) for _ in range(5)] and first.widths is None
    left.close()
    assert first.widths is None and not list(tmp_path.iterdir()), "what was left before its end is not known"
    shares = list(first.measuring())
    assert first.widths == (2, 3, 4) and shares == sorted(shares) and shares[-1] == 1.0 and len(shares) > 20
    assert Exactness(target, 4, tmp_path, ["a"]).widths == (2, 3, 4)
    assert Exactness(target, 4, tmp_path, ["b"]).widths is None, "another machine or pair"
    assert Exactness(target, 5, tmp_path, ["a"]).widths is None, "wider blocks"


REPEATING = [3, 14, 15, 92, 65, 35] * 6


@pytest.mark.parametrize("widths", [(2,), (3, 4), (2, 4, 7), (9,)])
def test_an_exact_answer_runs_only_exact_widths_also_at_its_end(
    target: Rounding, widths: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lookup proposes fewer than it may, and the token limit cuts blocks: what is left must be narrowed to an exact width."""
    state = decoding(target, None, REPEATING, max_tokens=120, policy=FixedLength(9, "lookup"))
    state.widths, state.recall, asked = widths, LookupIndex(), []
    propose = state.recall.propose
    monkeypatch.setattr(state.recall, "propose", lambda length: asked.append(length + 1) or propose(length))
    steps = list(decode_speculative(state))
    assert tokens(iter(steps)) == tokens(decode_baseline(decoding(target, None, REPEATING, max_tokens=120)))
    used = {step.proposed + 1 for step in steps}
    assert used <= {1, *widths} and len(used) > 1
    assert set(asked) <= {1, *widths}, "more than can be used is not asked for"


def test_the_controller_chooses_among_exact_widths_only() -> None:
    curve = CostCurve((1, 2, 4, 8, 16), (1.0, 1.0, 1.0, 1.0, 1.0), (0.0, 0.01, 0.01, 0.01, 0.01))
    controller = Controller(curve, 16)
    for widths in ((2, 5), (3,)):
        controller.begin(widths)
        assert {controller.choose().length for _ in range(5)} <= set(widths)
    controller.begin()
    assert controller.choose().length > 5


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory, starter: ResolvedPair) -> Engine:
    folder, wide = tmp_path_factory.mktemp("pair"), {"vocab_size": 49152}
    copy_tokenizer(starter.target, write_target(folder / "target", **wide))
    return load(f"{folder / 'target'}+{write_draft(folder / 'draft', target_config(**wide))}")


def answer(engine: Engine, **settings: object) -> tuple[Finished, list[object]]:
    events = list(engine.generate(GenerationRequest.of("hello there", max_tokens=24, **settings)))  # type: ignore[arg-type]
    assert isinstance(events[-1], Finished)
    return events[-1], events


def test_an_exact_request_uses_the_widths_it_has_measured(pair: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert pair.measure_exactness() == pair.info.exact_widths
    monkeypatch.setattr(pair, "info", replace(pair.info, exact_widths=(2, 4)))
    end, events = answer(pair, mode="dflash", exact=True, block_length=6)
    widths = {event.proposed + 1 for event in events if isinstance(event, Cycle)}
    assert widths <= {1, 2, 4} and 4 in widths
    assert end.token_ids == answer(pair, mode="baseline")[0].token_ids
    loose = {event.proposed + 1 for event in answer(pair, mode="dflash", block_length=6)[1] if isinstance(event, Cycle)}
    assert 6 in loose, "without `exact` every width may be used"


def test_without_an_exact_width_an_exact_request_is_answered_plainly_and_says_why(
    pair: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pair, "info", replace(pair.info, exact_widths=()))
    end, events = answer(pair, mode="dflash", exact=True)
    reasons = [event.reason for event in events if isinstance(event, Fallback)]
    assert len(reasons) == 1 and "bit for bit" in reasons[0]
    assert (end.statistics.mode, end.statistics.proposed, end.statistics.fallback) == ("baseline", 0, reasons[0])
    assert not [event for event in answer(pair, mode="dflash")[1] if isinstance(event, Fallback)]


@pytest.fixture
def unmeasured(pair: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    """The pair before anything was measured for it."""
    monkeypatch.setattr(pair, "info", replace(pair.info, exact_widths=None))
    monkeypatch.setattr(pair, "_exactness", Exactness(pair._target, 4, tmp_path, ["new"]))
    return pair


def test_the_first_exact_answer_says_how_far_measuring_is_and_later_ones_measure_nothing(unmeasured: Engine) -> None:
    _, events = answer(unmeasured, mode="dflash", exact=True)
    shares = [event.fraction for event in events if isinstance(event, ExactnessProgress)]
    assert len(shares) > 20 and shares == sorted(shares) and shares[-1] == 1.0
    assert all(isinstance(event, ExactnessProgress) for event in events[: len(shares)]), "before anything else"
    assert unmeasured.info.exact_widths is not None
    assert not [event for event in answer(unmeasured, mode="dflash", exact=True)[1] if isinstance(event, ExactnessProgress)]


def test_plain_decoding_is_exact_without_measuring(unmeasured: Engine) -> None:
    events = answer(unmeasured, mode="baseline", exact=True)[1]
    assert not [event for event in events if isinstance(event, ExactnessProgress)] and unmeasured.info.exact_widths is None


def test_stop_ends_measuring_at_the_next_pass_and_nothing_of_it_is_kept(unmeasured: Engine, tmp_path: Path) -> None:
    cancel, events = threading.Event(), []
    for event in unmeasured.generate(GenerationRequest.of("hello", mode="dflash", max_tokens=8, exact=True), cancel):
        events.append(event)
        if len(events) == 3:
            cancel.set()
    assert [type(event) for event in events] == [ExactnessProgress] * 3 + [Finished]
    assert events[-1].reason == "cancelled" and events[-1].statistics.fallback is None
    assert unmeasured.info.exact_widths is None and not list(tmp_path.iterdir())
    with pytest.raises(Cancelled, match="stopped"):
        unmeasured.measure_exactness(cancel)
    told: list[float] = []
    assert unmeasured.measure_exactness(threading.Event(), told.append) and told[-1] == 1.0


def test_measuring_counts_in_no_figure_of_the_answer(unmeasured: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def slowly() -> Iterator[float]:
        time.sleep(2.0)
        unmeasured._exactness.widths = (2, 3)  # type: ignore[union-attr]
        yield 1.0

    monkeypatch.setattr(unmeasured._exactness, "measuring", slowly)
    end, events = answer(unmeasured, mode="dflash", exact=True)
    first = next(event for event in events if isinstance(event, PrefillProgress))
    assert first.at_s < 2.0 and end.statistics.ttft_s < 2.0


def test_the_starters_exact_widths_hold_on_a_real_answer(
    engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reference is the starter's own single steps: logits and text. Half the usual widths are probed, in half the time."""
    monkeypatch.setattr(engine, "_exactness", Exactness(engine._target, 8, tmp_path, ["a test"]))
    monkeypatch.setattr(engine, "info", replace(engine.info, exact_widths=None))
    widths = engine.measure_exactness()
    ids = engine.encode(GenerationRequest.of("Explain how rainbows form.").messages)
    target = engine._target
    for width in widths[:3]:
        block, wide, narrow = mx.array(ids[-width:]), target.make_cache(), target.make_cache()
        for cache in (wide, narrow):
            target.forward(mx.array(ids[:-width]), cache)
        logits = target.forward(block, wide).logits
        assert mx.array_equal(logits, mx.concatenate([target.forward(row, narrow).logits for row in mx.split(block, width)]))
        assert all(mx.array_equal(a, b) for a, b in zip(target.visible(wide), target.visible(narrow), strict=True))
    ends = [
        list(engine.generate(GenerationRequest.of("Explain how rainbows form.", mode=mode, max_tokens=40, exact=True)))[-1]
        for mode in ("baseline", "dflash")
    ]
    assert ends[0].token_ids == ends[1].token_ids
