"""Answers held to a form, on a tiny target: lossless in every kind of cycle, and always a beginning of something that fits."""

from __future__ import annotations

import json
import math
import threading
from typing import Any

import jsonschema
import mlx.core as mx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.constraint import Constraint, grammar, json_object, json_schema, regex
from engine.decoding.constrained import decode, decode_constrained
from engine.decoding.constraint import Guide
from engine.decoding.controller import Choice, FixedLength
from engine.decoding.sampling import Sampler
from engine.decoding.steps import Decoding, Step
from engine.drafters.lookup import LookupIndex
from engine.errors import ModelError
from engine.prefill.chunked import Prefilled, prefill
from engine.request import GenerationRequest
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import TargetOutput, TargetShape
from tests.engine.decoding.forms import BYTES, END, THOUGHT_END, VOCAB, Forms, closed, spelled
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.decoding.stand_in import Script
from tests.engine.tiny import build_target, target_config

PROMPT = [7, 3, 19, 42, 99, 5, 120]
FORMS = Forms()
PERSON = closed({
    "first_name": {"type": "string", "maxLength": 6},
    "colour": {"enum": ["red", "green", "blue"]},
    "born": closed({"year": {"type": "integer"}}),
})  # fmt: skip
SHORT = {"type": "string", "maxLength": 5}
DIGIT = {"type": "integer", "minimum": -9, "maximum": 9}
DAY = {"type": "string", "format": "date"}
SHARE = {"type": "number", "minimum": 0, "maximum": 1}
SCHEMAS: dict[str, dict[str, Any]] = {
    "nested": PERSON,
    "enum": {"enum": ["a", 1, None, {"b": [True]}]},
    "array with limits": {"type": "array", "items": DIGIT, "minItems": 2, "maxItems": 3},
    "unicode keys": closed({"größe": {"const": "süß"}, "名": {"type": "null"}}),
    "numbers": {"type": "array", "prefixItems": [SHARE, DIGIT | {"multipleOf": 3}], "items": False, "minItems": 2},
    "$ref": {"$defs": {"node": closed({"left": {"$ref": "#/$defs/node"}, "value": SHARE}, ["value"])}, "$ref": "#/$defs/node"},
    "anyOf": {"anyOf": [{"type": "boolean"}, {"type": "array", "items": SHORT, "minItems": 1, "maxItems": 2}]},
    "oneOf told apart": {"oneOf": [closed({"kind": {"const": kind}, "size": {"type": kind}}) for kind in ("null", "boolean")]},
    "pattern, format": closed({"code": {"type": "string", "pattern": "^[A-Z]{2}-[0-9]$"}, "day": DAY}),
    "optional keys": closed({"a": SHORT, "b": {"type": ["boolean", "null"]}, "c": {"const": 0}}, ["b"]),
}


class Watched(AttentionTarget):
    """Knows the width of every pass."""

    def __init__(self) -> None:
        super().__init__(build_target(target_config("llama") | {"vocab_size": VOCAB}), "llama", TargetShape(32, VOCAB, 4, 2048))
        self.widths: list[int] = []

    def forward(self, ids: mx.array, cache: Any, taps: tuple[int, ...] = ()) -> TargetOutput:
        self.widths.append(ids.shape[0])
        return super().forward(ids, cache, taps)


@pytest.fixture(scope="module")
def target() -> Watched:
    return Watched()


def decoding(
    target: AttentionTarget, guide: Guide, drafter: OracleDrafter | None = None, seed: int | None = None, **changes: Any
) -> Decoding:
    """A loop's state right after prefill; greedy without a ``seed``."""
    cache, session = target.make_cache(), drafter.session() if drafter else None
    (*_, ready) = prefill(target, cache, PROMPT, session, (), 4, threading.Event())
    assert isinstance(ready, Prefilled)
    request = GenerationRequest.of("x", constraint=json_object(), temperature=0.0 if seed is None else 1.0, seed=seed or 0)
    sampler = Sampler.of(request, PROMPT)
    everything = {
        "max_tokens": 90, "cancel": threading.Event(), "policy": FixedLength(drafter.block_length if drafter else 1)
    } | changes  # fmt: skip
    return Decoding(
        target=target, cache=cache, sampler=sampler, stop_ids=frozenset({END}), position=len(PROMPT), session=session,
        anchor=sampler.pick(guide.held(ready.logits), len(PROMPT)), committed=list(PROMPT), guide=guide, **everything,
    )  # fmt: skip


def plain(target: AttentionTarget, form: Constraint | dict[str, Any], **changes: Any) -> list[int]:
    return [token for step in decode(decoding(target, FORMS.of(form), **changes), plain=True) for token in step.tokens]


def place(guide: Guide) -> tuple[Any, ...]:
    return guide.follow([], 40)


def test_tokens_beyond_the_vocabulary_are_masked_and_rows_of_no_numbers_stay_so() -> None:
    guide = FORMS.of(SHORT)
    held = guide.held(mx.array([[0.0] * BYTES + [9.0] * (VOCAB - BYTES)]))
    assert mx.argmax(held).item() == ord('"') and mx.sum(held > -math.inf).item() == 1
    assert mx.all(mx.isnan(guide.held(mx.array([[1.0] * (VOCAB - 1) + [math.nan]])))).item()


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("right", [0, 1, 2, 3, 5, 7])
def test_text_is_plain_text_and_the_place_that_of_the_committed_tokens_at_every_accepted_length(
    target: Watched, right: int, seed: int | None
) -> None:
    answer = plain(target, PERSON, seed=seed)
    drafter = OracleDrafter(answer, len(PROMPT), lambda _cycle: right, block_length=8)
    guide = FORMS.of(PERSON)
    state = decoding(target, guide, drafter, seed)
    for _step in decode(state, plain=False):
        fresh = FORMS.of(PERSON)
        fresh.advance(state.committed[len(PROMPT) :])
        assert place(guide) == place(fresh)
    assert state.committed[len(PROMPT) :] == answer
    assert answer[-1] == END or len(answer) == 90


@pytest.mark.parametrize("name", SCHEMAS)
def test_answers_satisfy_their_schema_and_are_the_same_in_every_mode(target: Watched, name: str) -> None:
    schema = SCHEMAS[name]
    answer = plain(target, schema, seed=5, max_tokens=400)
    assert answer[-1] == END
    jsonschema.validate(json.loads(spelled(answer)), schema, format_checker=jsonschema.FormatChecker())
    drafter = OracleDrafter(answer, len(PROMPT), lambda cycle: cycle % 4, block_length=5)
    lookup = {"policy": FixedLength(8, "lookup"), "recall": LookupIndex({END})}
    both = {"drafter": drafter, "recall": LookupIndex({END}), "policy": Script(Choice(5), Choice(1, 3))}
    for way in (lookup, both):
        steps = decode(decoding(target, FORMS.of(schema), seed=5, max_tokens=400, **way), plain=False)
        assert [token for step in steps for token in step.tokens] == answer


def test_what_the_form_leaves_no_choice_of_costs_one_pass(target: Watched) -> None:
    form = closed({"a_long_and_certain_key": {"const": True}})
    target.widths.clear()
    steps = list(decode(decoding(target, FORMS.of(form), policy=FixedLength(8, "lookup"), recall=LookupIndex({END})), plain=False))
    assert spelled([token for step in steps for token in step.tokens]) == '{"a_long_and_certain_key":true}'
    assert [(step.proposed, step.accepted, len(step.tokens)) for step in steps] == [(0, 0, 1), (15, 15, 16), (15, 15, 15)]
    assert target.widths[-2:] == [16, 16] and {step.source for step in steps[1:]} == {"lookup"}


def test_plain_decoding_takes_one_token_a_pass(target: Watched) -> None:
    target.widths.clear()
    answer = plain(target, {"const": "certain"})
    assert spelled(answer) == '"certain"' and target.widths[-len(answer) + 1 :] == [1] * (len(answer) - 1)


def test_only_block_lengths_that_are_allowed_are_used(target: Watched) -> None:
    answer = plain(target, PERSON)
    drafter = OracleDrafter(answer, len(PROMPT), lambda cycle: cycle % 7, block_length=8)
    state = decoding(target, FORMS.of(PERSON), drafter, widths=(3, 6))
    target.widths.clear()
    assert [token for step in decode(state, plain=False) for token in step.tokens] == answer
    assert set(target.widths) <= {1, 3, 6} and 6 in target.widths


class Told(FixedLength):
    """Keeps what it is told of cycles and plain steps."""

    def __init__(self) -> None:
        super().__init__(6)
        self.cycles: list[tuple[int, int]] = []

    def observe(self, choice: Choice, proposed: int, accepted: int, seconds: float) -> None:
        assert math.isnan(seconds), "the form's work is in it"
        self.cycles.append((proposed, accepted))


def test_the_policy_is_told_of_the_draft_s_own_tokens_and_not_of_those_that_had_to_come(target: Watched) -> None:
    """A block of five: two right and the third wrong, each time; of the rest nothing is known."""
    answer = plain(target, PERSON)
    told, drafter = Told(), OracleDrafter(answer, len(PROMPT), lambda _cycle: 2, block_length=6)
    steps = list(decode(decoding(target, FORMS.of(PERSON), drafter, policy=told), plain=False))[1:]
    assert len(told.cycles) == len(steps) and all(accepted <= 2 for _, accepted in told.cycles)
    refused = [cycle for cycle in told.cycles[:-1] if cycle == (3, 2)]
    assert refused and sum(step.accepted for step in steps) > sum(accepted for _, accepted in told.cycles)


def test_no_pass_is_launched_before_its_tokens_are_known(target: Watched) -> None:
    """A pass ahead would have been made without knowing what may follow."""
    state = decoding(target, FORMS.of(PERSON), policy=Script(Choice(1, 50)), recall=LookupIndex({END}))
    steps = decode(state, plain=False)
    for passes, step in enumerate(steps):
        if passes == 0:
            target.widths.clear()
        assert len(target.widths) == passes, step
        if step.plain:
            assert step.parked and step.verify_s is not None


def test_cancel_and_the_limit_end_an_answer_where_it_is(target: Watched) -> None:
    answer = plain(target, PERSON)
    state = decoding(target, FORMS.of(PERSON), recall=LookupIndex({END}), policy=FixedLength(8, "lookup"))
    for count, _step in enumerate(decode(state, plain=False)):
        if count == 2:
            state.cancel.set()
    got = state.committed[len(PROMPT) :]
    assert got == answer[: len(got)] and 2 < len(got) < len(answer)
    for limit in (1, 2, 9):
        assert plain(target, PERSON, max_tokens=limit) == answer[:limit]


def test_logits_that_are_no_numbers_end_the_answer_before_a_token_is_made_up(target: Watched) -> None:
    state = decoding(target, FORMS.of(PERSON), recall=LookupIndex({END}), policy=FixedLength(8, "lookup"))
    steps = decode_constrained(state, FORMS.of(PERSON))
    next(steps)
    broken = Watched()
    forward = broken.forward
    broken.forward = lambda *args: TargetOutput(forward(*args).logits * math.nan, None)  # type: ignore[method-assign]
    state.target = broken
    assert list(steps) == [Step((), 14, 0, source="lookup")] and state.broken
    with pytest.raises(ModelError, match="not a number"):
        state.check_numbers()


@pytest.mark.parametrize(("tag", "thought"), [("<think>", [*b"Hm, {", THOUGHT_END]), ("[THINK]", [*b"I [/ see[/THINK]"])])
def test_the_form_begins_behind_a_thought_that_the_prompt_opened(tag: str, thought: list[int]) -> None:
    for form, text in ((json_schema({"const": 7}), "7"), (regex("a+/b"), "aa/b"), (grammar('start: "x" Y\nY: /[0-9]/'), "x3")):
        guide = FORMS.of(form, tag)
        answer = [*thought, *b"\n\n", *text.encode()]
        for token in answer:
            assert guide.follow([token], 1).tokens == [token], spelled([token])
            assert guide.follow([END], 1).tokens != [END], "nothing ends before the form does"
            guide.advance([token])
        assert guide.follow([END], 1).tokens == [END]


PLAIN = [{"type": "integer"}, {"type": "boolean"}, {"const": "é"}, {"enum": ["on", "off", 0]}, SHORT, {"type": "null"}]
LEAVES = st.sampled_from(PLAIN)
KEYS = st.sampled_from(["a", "key", "key_2", "ключ"])


def _nested(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    objects = st.dictionaries(KEYS, inner, min_size=1, max_size=3).map(lambda found: closed(found, sorted(found)[:2]))
    return objects | inner.map(lambda items: {"type": "array", "items": items, "minItems": 1, "maxItems": 2})


@settings(max_examples=25)
@given(schema=st.recursive(LEAVES, _nested, max_leaves=4), seed=st.integers(0, 9), limit=st.integers(1, 30))
def test_whatever_the_limit_an_answer_is_a_beginning_of_one_that_fits(
    target: Watched, schema: dict[str, Any], seed: int, limit: int
) -> None:
    recall = {"recall": LookupIndex({END}), "policy": FixedLength(8, "lookup")}
    cut, whole = (decoding(target, FORMS.of(schema), seed=seed, max_tokens=size, **recall) for size in (limit, 600))
    beginning = [token for step in decode(cut, plain=False) for token in step.tokens]
    recall["recall"] = LookupIndex({END})
    answer = [token for step in decode(whole, plain=False) for token in step.tokens]
    assert len(beginning) == min(limit, len(answer)) and answer[: len(beginning)] == beginning
    if answer[-1] == END:
        jsonschema.validate(json.loads(spelled(answer)), schema)
    else:
        assert len(answer) == 600, "only digits of a number may go on and on"
