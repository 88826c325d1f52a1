"""Two thousand tokens of every family, decoded speculatively with all kinds of outcomes: the text is plain decoding's.

The sliding-window families have theirs beside their other texts.
"""

from __future__ import annotations

import pytest

from engine.decoding.baseline import decode_baseline
from engine.decoding.speculative import decode_speculative
from engine.targets.attention import AttentionTarget
from engine.targets.registry import FAMILIES, make_target
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.targets.hybrids import HYBRIDS, hybrid
from tests.engine.targets.test_contract import tiny_model
from tests.engine.targets.test_hybrids import decoding, prompt_of, tokens

TOKENS = 2000
PATTERN = (0, 3, 1, 7, 2, 0, 5, 4, 6)  # proposals that are right, cycle by cycle, of 7


def check_two_thousand(target: AttentionTarget) -> None:
    prompt = prompt_of(21)
    plain = tokens(decode_baseline(decoding(target, prompt, TOKENS, 8)))
    assert len(plain) == TOKENS
    drafter = OracleDrafter(plain, len(prompt), lambda cycle: PATTERN[cycle % len(PATTERN)], block_length=8, taps=(0, 2))
    steps = list(decode_speculative(decoding(target, prompt, TOKENS, 8, drafter)))
    assert tokens(iter(steps)) == plain
    assert {step.accepted for step in steps} == set(range(8)) and len(steps) > 400


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES[AttentionTarget])
def test_two_thousand_tokens_of_every_attention_family_are_plain_text(family: str) -> None:
    model, shape = tiny_model(AttentionTarget, family)
    check_two_thousand(make_target(model, family, shape))


@pytest.mark.slow
@pytest.mark.parametrize("name", HYBRIDS)
def test_two_thousand_tokens_of_every_recurrent_hybrid_are_plain_text(name: str) -> None:
    check_two_thousand(hybrid(name))
