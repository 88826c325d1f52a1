"""The speculative loop against plain decoding on a tiny target, with a drafter that is right exactly as far as told."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Sequence
from itertools import pairwise

import mlx.core as mx
import pytest

from engine.decoding import speculative
from engine.decoding.baseline import decode_baseline
from engine.decoding.controller import Choice, FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.speculative import TIMED_EVERY, decode_speculative
from engine.decoding.steps import Decoding, Step, read_ids
from engine.drafters.lookup import LookupDrafter, LookupIndex
from engine.drafters.protocol import Foreseen
from engine.prefill.chunked import Prefilled, prefill
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import TargetShape
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.tiny import VOCAB, build_target, target_config

PROMPT = [7, 3, 19, 42, 99, 5, 120]
LENGTH = 90


@pytest.fixture(scope="module")
def target() -> AttentionTarget:
    return AttentionTarget(build_target(target_config("llama")), "llama", TargetShape(32, VOCAB, 4, 2048))


def decoding(target: AttentionTarget, drafter: object | None = None, prompt: list[int] = PROMPT, **changes: object) -> Decoding:
    """A loop's state right after prefill."""
    cache, session = target.make_cache(), drafter.session() if drafter else None
    taps = drafter.taps if drafter else ()
    (*_, ready) = prefill(target, cache, prompt, session, taps, 4, threading.Event())
    assert isinstance(ready, Prefilled)
    settings = {
        "target": target, "cache": cache, "sampler": Sampler(0.0, 0), "stop_ids": frozenset(), "max_tokens": LENGTH,
        "cancel": threading.Event(), "position": len(prompt), "session": session, "taps": taps, "tap_rows": ready.taps,
        "committed": list(prompt), "policy": FixedLength(drafter.block_length if drafter else 1),
    } | changes  # fmt: skip
    anchor = settings["sampler"].pick(ready.logits, len(prompt)).astype(mx.int32)
    return Decoding(anchor=anchor, **settings)


def tokens(steps: Generator[Step]) -> list[int]:
    return [token for step in steps for token in step.tokens]


@pytest.fixture(scope="module")
def plain(target: AttentionTarget) -> list[int]:
    return tokens(decode_baseline(decoding(target)))


@pytest.mark.parametrize("right", range(8))
def test_text_is_plain_text_at_every_accepted_length(target: AttentionTarget, plain: list[int], right: int) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: right, block_length=8)
    steps = list(decode_speculative(decoding(target, drafter)))
    assert tokens(iter(steps)) == plain
    assert all(step.accepted == min(right, step.proposed) for step in steps[1:]), "the oracle's right slots are all accepted"
    assert all(len(step.tokens) == step.accepted + 1 for step in steps[1:-1])


@pytest.mark.parametrize("prompt_length", [1, 3, 4, 5, 8, 9, 250, 255, 256, 257])
def test_text_is_plain_text_for_prompts_around_chunk_and_buffer_borders(target: AttentionTarget, prompt_length: int) -> None:
    prompt = [(11 * i + 5) % VOCAB for i in range(prompt_length)]
    answer = tokens(decode_baseline(decoding(target, prompt=prompt)))
    drafter = OracleDrafter(answer, prompt_length, lambda cycle: cycle % 6, block_length=6)
    assert tokens(decode_speculative(decoding(target, drafter, prompt))) == answer


def test_two_hundred_cycles_leave_the_cache_of_a_fresh_run(target: AttentionTarget) -> None:
    """The caches after many partly accepted blocks hold the same rows as one pass over the committed tokens."""
    answer = tokens(decode_baseline(decoding(target, max_tokens=700)))
    drafter = OracleDrafter(answer, len(PROMPT), lambda cycle: (cycle * 7) % 5, block_length=6)
    state = decoding(target, drafter, max_tokens=700)
    steps = list(decode_speculative(state))
    assert tokens(iter(steps)) == answer and len(steps) > 200
    fresh = target.make_cache()
    rows = len(PROMPT) + len(answer) - 1  # the last token was never run
    target.forward(mx.array((PROMPT + answer)[:rows]), fresh)
    for ours, reference in zip(state.cache, fresh, strict=True):
        assert ours.offset >= rows
        assert mx.allclose(ours.keys[..., :rows, :], reference.keys[..., :rows, :], atol=1e-4)


def test_a_cycle_waits_for_the_device_once(target: AttentionTarget, plain: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    waits = []
    monkeypatch.setattr(speculative, "read_ids", lambda ids: waits.append(1) or read_ids(ids))
    monkeypatch.setattr(speculative, "_timed", forbid_after_first_timed := CountedTiming())
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 2, block_length=4)
    steps = list(decode_speculative(decoding(target, drafter)))
    assert len(waits) == len(steps), "the first token, then one wait a cycle"
    timed = sum(step.verify_s is not None for step in steps)
    assert forbid_after_first_timed.calls == 2 * timed
    assert timed == len([cycle for cycle in range(1, len(steps) - 1) if cycle % TIMED_EVERY == 1])


class CountedTiming:
    """Counts the loop's timed waits, which only the cycles timed part by part may use."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, array: mx.array) -> float:
        self.calls += 1
        mx.eval(array)
        return 0.001


def test_the_next_draft_is_launched_before_tokens_are_handed_out(target: AttentionTarget, plain: list[int]) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 1, block_length=4)
    for handed_out, step in enumerate(decode_speculative(decoding(target, drafter))):
        ended = len(drafter.positions) == handed_out
        timed_next = handed_out % TIMED_EVERY == 1
        assert len(drafter.positions) == handed_out + 1 or timed_next or ended, step
    assert handed_out > TIMED_EVERY


def test_positions_and_tap_rows_follow_the_committed_tokens(target: AttentionTarget, plain: list[int]) -> None:
    """The drafter is told absolute positions, and gets exactly the rows committed since its last call."""
    drafter = OracleDrafter(plain, len(PROMPT), lambda cycle: cycle % 4, block_length=5, taps=(0, 3))
    list(decode_speculative(decoding(target, drafter)))
    assert drafter.positions[0] == len(PROMPT) and drafter.tap_rows[0] == 1
    steps = [later - earlier for earlier, later in zip(drafter.positions, drafter.positions[1:], strict=False)]
    assert drafter.tap_rows[1:] == steps


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 9])
def test_the_token_limit_is_kept_exactly_and_nothing_beyond_it_is_proposed(
    target: AttentionTarget, plain: list[int], limit: int
) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 7, block_length=8)
    steps = list(decode_speculative(decoding(target, drafter, max_tokens=limit)))
    assert tokens(iter(steps)) == plain[:limit]
    produced = 0
    for step in steps:
        assert step.proposed <= max(0, limit - produced - 1)
        produced += len(step.tokens)


@pytest.mark.parametrize("make", [lambda t, d: decode_speculative(decoding(t, d)), None])
def test_a_stop_token_inside_a_block_ends_the_answer_there(
    target: AttentionTarget, plain: list[int], make: Callable | None
) -> None:
    place = next(i for i in range(20, LENGTH) if plain[i] not in plain[:i])
    stops = frozenset({plain[place]})
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 7, block_length=8)
    if make:
        steps = list(decode_speculative(decoding(target, drafter, stop_ids=stops)))
    else:
        steps = list(decode_baseline(decoding(target, stop_ids=stops)))
    assert tokens(iter(steps)) == plain[: place + 1]
    assert all(step.accepted <= len(step.tokens) for step in steps)


@pytest.mark.parametrize("speculative_mode", [True, False])
def test_cancel_ends_the_loop_within_one_cycle_and_keeps_what_was_given(
    target: AttentionTarget, plain: list[int], speculative_mode: bool
) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 2, block_length=4)
    state = decoding(target, drafter if speculative_mode else None)
    steps = decode_speculative(state) if speculative_mode else decode_baseline(state)
    given = [next(steps) for _ in range(4)]
    state.cancel.set()
    assert len(list(steps)) <= 1
    assert tokens(iter(given)) == plain[: sum(len(step.tokens) for step in given)]


def test_a_drafter_with_nothing_to_say_makes_plain_steps(target: AttentionTarget, plain: list[int]) -> None:
    drafter = OracleDrafter([], len(PROMPT), lambda _cycle: 0, block_length=4)
    steps = list(decode_speculative(decoding(target, drafter)))
    assert tokens(iter(steps)) == plain
    assert all(step.proposed == 0 and len(step.tokens) == 1 for step in steps)


def test_lookup_drafting_gives_plain_text_and_is_accepted_on_repetition(target: AttentionTarget) -> None:
    prompt = [3, 14, 15, 92, 65, 35] * 6
    answer = tokens(decode_baseline(decoding(target, prompt=prompt, max_tokens=400)))
    state = decoding(target, LookupDrafter(), prompt, max_tokens=400, recall=LookupIndex(), policy=FixedLength(8, "lookup"))
    steps = list(decode_speculative(state))
    assert tokens(iter(steps)) == answer
    assert sum(step.accepted for step in steps) > 0


class ScriptedPolicy(FixedLength):
    """Follows a list of choices again and again, and keeps what it is told."""

    def __init__(self, *choices: Choice):
        super().__init__(4)
        self._choices, self._turn = choices, 0
        self.cycles: list[tuple[int, int, int]] = []
        self.stretches: list[int] = []
        self.foreseen: list[tuple[Foreseen, bool]] = []

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        self._turn += 1
        return self._choices[(self._turn - 1) % len(self._choices)]

    def observe(self, choice: Choice, proposed: int, accepted: int, seconds: float) -> None:
        assert seconds > 0
        self.cycles.append((choice.length, proposed, accepted))

    def observe_plain(self, steps: int, seconds: float) -> None:
        self.stretches.append(steps)

    def observe_foreseen(self, outcomes: Sequence[tuple[Foreseen, bool]]) -> None:
        self.foreseen += outcomes


REPEATING = [3, 14, 15, 92, 65, 35] * 6


class Alternating(ScriptedPolicy):
    """Looks up wherever something is matched, every third time drafts all the same, and parks now and then."""

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        choice = super().choose(ahead)
        return Choice(9, source="lookup") if ahead and self._turn % 3 else choice

    def wakes(self, ahead: Sequence[Foreseen]) -> bool:
        return bool(ahead) and ahead[0].matched >= 2


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_beside_a_draft_lookup_keeps_the_text_and_the_draft_context(target: AttentionTarget, temperature: float) -> None:
    """Both sources in one answer: rows verified for a lookup reach the draft at its next turn, none twice and none lost."""
    sampler = Sampler(temperature, 3)
    answer = tokens(decode_baseline(decoding(target, prompt=REPEATING, max_tokens=300, sampler=sampler)))
    drafter = OracleDrafter(answer, len(REPEATING), lambda cycle: cycle % 4, block_length=6, taps=(0, 3))
    policy = Alternating(Choice(5), Choice(1, 6), Choice(3))
    state = decoding(target, drafter, REPEATING, max_tokens=300, policy=policy, recall=LookupIndex(), sampler=sampler)
    steps = list(decode_speculative(state))
    assert tokens(iter(steps)) == answer
    gaps = [later - earlier for earlier, later in pairwise(drafter.positions)]
    assert drafter.tap_rows[1:] == gaps
    sources = [step.source for step in steps]
    assert sources.count("lookup") > 5 and sources.count("draft") > 5
    assert all((step.source is None) == (step.proposed == 0) for step in steps)
    if temperature == 0:
        assert sum(step.accepted for step in steps if step.source == "lookup") > 20


class LookupOnly(Alternating):
    """Takes every match of two tokens and plain steps otherwise."""

    def choose(self, ahead: Sequence[Foreseen] = ()) -> Choice:
        return Choice(9, source="lookup") if self.wakes(ahead) else Choice(1, 500)


def test_a_plain_stretch_ends_one_step_after_something_to_look_up_appears(target: AttentionTarget) -> None:
    state = decoding(target, None, REPEATING, max_tokens=200, policy=LookupOnly(), recall=LookupIndex())
    steps, recall = list(decode_speculative(state)), LookupIndex()
    recall.extend(REPEATING)
    matched = [len(recall.extend(step.tokens)) >= 0 and LookupOnly().wakes(recall.ahead) for step in steps]
    waiting = [step.plain and known for step, known in zip(steps, matched, strict=True)]
    assert any(step.plain for step in steps[1:]) and sum(step.source == "lookup" for step in steps) > 5
    assert any(waiting), "a match appeared during a stretch"
    for number in range(len(steps) - 3):
        assert not (waiting[number] and waiting[number + 1] and steps[number + 2].plain)


def test_what_was_foreseen_is_told_to_the_policy_whoever_proposed(target: AttentionTarget) -> None:
    answer = tokens(decode_baseline(decoding(target, prompt=REPEATING)))
    for script in ((Choice(1, 4),), (Choice(5),), (Choice(6, source="lookup"),)):
        policy = ScriptedPolicy(*script)
        drafter = OracleDrafter(answer, len(REPEATING), lambda _cycle: 2, block_length=6)
        list(decode_speculative(decoding(target, drafter, REPEATING, policy=policy, recall=LookupIndex())))
        expected = LookupIndex()
        expected.extend(REPEATING)
        assert policy.foreseen == expected.extend(answer)


@pytest.mark.parametrize("seed", [0, 1, 12345])
def test_sampling_with_one_seed_gives_one_text_in_every_mode(target: AttentionTarget, seed: int) -> None:
    answer = tokens(decode_baseline(decoding(target, sampler=Sampler(0.9, seed))))
    drafter = OracleDrafter(answer, len(PROMPT), lambda cycle: cycle % 5, block_length=6)
    assert tokens(decode_speculative(decoding(target, drafter, sampler=Sampler(0.9, seed)))) == answer
    other = tokens(decode_baseline(decoding(target, sampler=Sampler(0.9, seed + 1))))
    assert other != answer


SCRIPTS = [
    (Choice(1, 3), Choice(4)),
    (Choice(4), Choice(1, 1)),
    (Choice(2), Choice(6), Choice(1, 7), Choice(3)),
    (Choice(1, 200),),
    (Choice(1, 5), Choice(1, 2), Choice(5)),
]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("right", [0, 2, 5])
def test_parking_and_changing_the_length_keep_the_text_and_the_draft_context(
    target: AttentionTarget, plain: list[int], script: tuple[Choice, ...], right: int
) -> None:
    """Rows committed while parked reach the drafter at its next turn, none twice and none lost."""
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: right, block_length=6, taps=(0, 3))
    policy = ScriptedPolicy(*script)
    steps = list(decode_speculative(decoding(target, drafter, policy=policy)))
    assert tokens(iter(steps)) == plain
    gaps = [later - earlier for earlier, later in zip(drafter.positions, drafter.positions[1:], strict=False)]
    assert drafter.tap_rows[1:] == gaps
    parked = [step for step in steps if step.plain]
    assert sum(policy.stretches) == len(parked) and all(step.verify_s is not None and len(step.tokens) == 1 for step in parked)
    assert [proposed for _, proposed, _ in policy.cycles] == [step.proposed for step in steps[1:] if not step.plain]


def test_the_first_parked_step_keeps_the_rows_of_the_prompt(target: AttentionTarget, plain: list[int]) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 0, block_length=4, taps=(1,))
    list(decode_speculative(decoding(target, drafter, policy=ScriptedPolicy(Choice(1, 3), Choice(4)))))
    assert drafter.tap_rows[0] == 1 + 3 and drafter.positions[0] == len(PROMPT) + 3


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 9])
def test_the_token_limit_ends_a_parked_stretch(target: AttentionTarget, plain: list[int], limit: int) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 1, block_length=4)
    policy = ScriptedPolicy(Choice(1, 4), Choice(3))
    assert tokens(decode_speculative(decoding(target, drafter, policy=policy, max_tokens=limit))) == plain[:limit]


def test_cancel_ends_a_parked_stretch_within_two_steps(target: AttentionTarget, plain: list[int]) -> None:
    drafter = OracleDrafter(plain, len(PROMPT), lambda _cycle: 1, block_length=4)
    state = decoding(target, drafter, policy=ScriptedPolicy(Choice(1, 50)))
    steps = decode_speculative(state)
    given = [next(steps) for _ in range(5)]
    state.cancel.set()
    rest = list(steps)
    assert len(rest) <= 2 and tokens(iter(given + rest)) == plain[: len(given + rest)]


def test_the_first_token_is_handed_out_before_anything_else_is_launched(
    target: AttentionTarget, plain: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pass that runs while the first token's clock still does would count for the wait and not for decoding."""
    launched, launch = [], speculative.Run.launch
    monkeypatch.setattr(speculative.Run, "launch", lambda *args, **named: launched.append(1) or launch(*args, **named))
    steps = decode_speculative(decoding(target, OracleDrafter(plain, len(PROMPT), lambda _cycle: 4, block_length=8)))
    assert next(steps).tokens == (plain[0],) and not launched
    assert next(steps).tokens == tuple(plain[1:6]) and launched
    steps.close()
