"""Targets with weights in 4 and 8 bits, run as they are stored: rollback is exact and the text is plain decoding's."""

from __future__ import annotations

import mlx.core as mx
import mlx.nn as nn
import pytest

from engine.decoding.baseline import decode_baseline
from engine.decoding.speculative import decode_speculative
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import TargetShape
from engine.targets.registry import make_target
from tests.engine.decoding.oracle import OracleDrafter
from tests.engine.targets.test_attention import EXTRA
from tests.engine.targets.test_hybrids import decoding, prompt_of, tokens
from tests.engine.tiny import VOCAB, build_target, target_config

BLOCK = [11, 22, 33, 44, 55, 66]
WIDE = {"hidden_size": 128, "intermediate_size": 128, "head_dim": 32, "num_hidden_layers": 2, "moe_intermediate_size": 128}


def quantised(family: str, bits: int, group: int) -> AttentionTarget:
    config = target_config(family, **EXTRA.get(family, {}) | WIDE)
    model = build_target(config)
    nn.quantize(model, group_size=group, bits=bits)
    packed = [module for module in model.modules() if "scales" in module]
    assert len(packed) >= 15 and all(module.bits == bits and module.group_size == group for module in packed)
    return make_target(model, family, TargetShape(128, VOCAB, 2, 2048))


@pytest.mark.parametrize("family", ["llama", "qwen3_moe"])
@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize("group", [32, 64, 128])
def test_text_is_plain_text_and_rollback_exact_at_every_accepted_length(family: str, bits: int, group: int) -> None:
    target, prompt = quantised(family, bits, group), prompt_of(9)
    plain = tokens(decode_baseline(decoding(target, prompt, 24, 4)))
    for right in range(6):
        drafter = OracleDrafter(plain, len(prompt), lambda _cycle, right=right: right, block_length=6, taps=(0, 1))
        steps = list(decode_speculative(decoding(target, prompt, 24, 4, drafter)))
        assert tokens(iter(steps)) == plain
        assert all(step.accepted == min(right, step.proposed) for step in steps[1:])
        caches = []
        for block in (BLOCK, BLOCK[:right] + [80 + token for token in BLOCK[right:]]):
            cache = target.make_cache()
            target.forward(mx.array(prompt), cache)
            target.forward(mx.array(block), cache)
            target.rollback(cache, 6 - right)
            caches.append(cache)
        assert all(mx.array_equal(a, b) for a, b in zip(*map(target.visible, caches), strict=True))
    head = mx.array([0, 3, VOCAB - 1])
    hidden = mx.random.normal((2, 128), key=mx.random.key(0))
    assert mx.allclose(target.partial_head(head)(hidden), target.head(hidden)[:, head], atol=1e-4)
