"""A draft means the same whatever packaging it comes in: block rows, logits and proposals against the NumPy definition."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.drafters.dflash.model import DFlashModel
from engine.targets.protocol import TargetShape
from tests.engine.drafters.dflash.packagings import KEPT, PACKAGINGS, Packed, wide
from tests.engine.drafters.dflash.reference import Reference
from tests.engine.drafters.dflash.test_model import CLOSE, VOCABULARY, random_taps
from tests.engine.tiny import draft_config, target_config

SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)
CYCLES = ((9, 1), (31, 6), (77, 1), (0, 3), (159, 6), (4, 2))  # anchor, rows committed since the last cycle


class Expected:
    """The definition's answers for one packaging."""

    def __init__(self, packed: Packed):
        self.packed = packed
        group = 8 if packed.second else 0
        config = draft_config(target_config())
        self.reference = Reference.of(
            config, packed.weights, packed.causal, packed.windows, from_anchor=packed.from_anchor, group=group
        )
        own = packed.weights
        self.table = wide(own["embed_tokens.weight"]) if "embed_tokens.weight" in own else VOCABULARY.table.astype(np.float64)
        rows = wide(own["lm_head.weight"])[:160] if "lm_head.weight" in own else VOCABULARY.rows.astype(np.float64)
        self.ids = np.array(packed.ids if packed.ids is not None else range(160))
        self.rows = rows if len(rows) == len(self.ids) else rows[self.ids]
        section = packed.config.get("dflash_config", packed.config)
        self.mask = section["mask_token_id"]

    def hidden(self, taps: np.ndarray, anchor: int, length: int) -> np.ndarray:
        block = self.table[[anchor] + [self.mask] * (length - 1 + self.packed.first_slot)]
        return self.reference.block(block, taps.astype(np.float64))[self.packed.first_slot :]

    def proposals(self, taps: np.ndarray, anchor: int, length: int) -> list[int]:
        hidden = self.hidden(taps, anchor, length)
        logits = hidden @ self.rows.T
        if self.packed.second:
            return self.reference.walk(logits, hidden, anchor, 5, **self.packed.scale)
        return self.ids[np.argmax(logits, axis=-1)].tolist()


def make(folder: Path, name: str) -> tuple[DFlashModel, Expected]:
    packed = PACKAGINGS[name]()
    return load_draft(packed.write(folder / "draft"), SHAPE, None), Expected(packed)


@pytest.fixture(params=PACKAGINGS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[DFlashModel, Expected]:
    return make(tmp_path, request.param)


@pytest.mark.parametrize("context", [1, 8, 23])
def test_block_rows_and_logits_equal_the_definition(pair, context: int) -> None:
    model, expected = pair
    taps, first = random_taps(context), expected.packed.first_slot
    drafter = DFlashDrafter(model, VOCABULARY, "draft", 6)
    masks = mx.full((4 + first,), expected.mask)
    rows = model(drafter.block(mx.array([9]), masks), model.features(mx.array(taps)), model.make_context(), context)
    hidden = expected.hidden(taps, 9, 5)
    np.testing.assert_allclose(np.array(rows)[first:], hidden, **CLOSE)
    np.testing.assert_allclose(np.array(drafter._head(rows[first:])), hidden @ expected.rows.T, rtol=0, atol=2e-3)


def test_proposals_equal_the_definition_cycle_after_cycle(pair) -> None:
    model, expected = pair
    taps, seen = random_taps(40), 11
    session = DFlashDrafter(model, VOCABULARY, "draft", 6).session()
    for start, stop in ((0, 4), (4, 11)):
        mx.eval(session.prefill(mx.array(taps[start:stop]), start))
    chosen = []
    for length, (anchor, committed) in enumerate(CYCLES, 1):
        seen += committed
        ids = session.propose(mx.array([anchor]), mx.array(taps[seen - committed : seen]), seen, length, [])
        assert ids is not None
        assert ids.tolist() == expected.proposals(taps[:seen], anchor, length)
        chosen += ids.tolist()
    assert len(set(chosen)) > 4, "a test whose answer is always the same token protects nothing"


def test_a_draft_proposes_as_many_tokens_as_it_has_predicting_slots(pair) -> None:
    model, expected = pair
    assert model.convention.block_length == 6 + 1 - expected.packed.first_slot


@pytest.mark.parametrize("name", ["own embedding and head", "speculators reduced", "fused projections", "second"])
def test_a_quantised_draft_with_parts_of_its_own_means_the_same_packed_and_expanded(tmp_path: Path, name: str) -> None:
    packed = PACKAGINGS[name]()
    for path in {name.removesuffix("weight") for name, value in packed.files.items() if packable(name, value)}:
        key = path if path + "weight" not in packed.files else path + "weight"
        packed.files[path + "weight"], packed.files[path + "scales"], packed.files[path + "biases"] = mx.quantize(
            packed.files[key], 32, 8
        )
    packed.config["quantization"] = {"bits": 8, "group_size": 32}
    folder = packed.write(tmp_path)
    models = [load_draft(folder, SHAPE, dtype) for dtype in (None, mx.float32)]
    if name != "fused projections":
        inner = models[0].candidate_selector.hidden_projection if name == "second" else models[0].embed_tokens
        assert isinstance(inner, nn.QuantizedLinear | nn.QuantizedEmbedding)
    assert isinstance(models[0].layers[0].self_attn.k_proj, nn.QuantizedLinear)
    drafters = [DFlashDrafter(model, VOCABULARY, "draft", 6) for model in models]
    hidden = mx.random.normal((5, 32), key=mx.random.key(3))
    np.testing.assert_allclose(*(np.array(drafter._head(hidden)) for drafter in drafters), rtol=0, atol=1e-3)
    blocks = [drafter.block(mx.array([9]), mx.array([5, 5])) for drafter in drafters]
    features = mx.random.normal((7, 64), key=mx.random.key(4))
    rows = [
        np.array(model(block, model.features(features), model.make_context(), 7))
        for model, block in zip(models, blocks, strict=True)
    ]
    np.testing.assert_allclose(*rows, rtol=0, atol=2e-3)


def packable(name: str, value: mx.array) -> bool:
    return value.ndim == 2 and value.shape[1] % 32 == 0 and not name.startswith("verifier")


def test_an_embedding_in_a_wider_type_does_not_widen_the_draft(tmp_path: Path) -> None:
    packed = PACKAGINGS["own embedding and head"]()
    for name in packed.files:
        if name != "embed_tokens.weight":
            packed.files[name] = packed.files[name].astype(mx.bfloat16)
    model = load_draft(packed.write(tmp_path), SHAPE, None)
    assert model.embed_tokens.weight.dtype == mx.float32
    block = DFlashDrafter(model, VOCABULARY, "draft", 6).block(mx.array([9]), mx.array([5]))
    assert block.dtype == mx.bfloat16


def test_an_embedding_scale_reaches_the_block(tmp_path: Path) -> None:
    packed = PACKAGINGS["flat"]()
    packed.config["dflash_config"]["input_embedding_scale"] = 3
    drafter = DFlashDrafter(load_draft(packed.write(tmp_path), SHAPE, None), VOCABULARY, "draft", 6)
    ids = mx.array([9, 5])
    assert mx.allclose(drafter.block(ids[:1], ids[1:]), 3 * VOCABULARY.embed(ids))


def test_a_draft_with_embedding_and_head_of_its_own_may_be_narrower_than_its_target(tmp_path: Path) -> None:
    packed = PACKAGINGS["own embedding and head"]()
    packed.config["target_hidden_size"] = 64
    packed.files["fc.weight"] = mx.random.normal((32, 128), key=mx.random.key(5))
    folder = packed.write(tmp_path)
    shape = TargetShape(hidden_size=64, vocab_size=160, num_layers=4, context_length=2048)
    session = DFlashDrafter(load_draft(folder, shape, None), VOCABULARY, "draft", 6).session()
    ids = session.propose(mx.array([9]), mx.random.normal((3, 128), key=mx.random.key(6)), 3, 5, [])
    assert ids is not None and ids.shape == (5,)


class Unborrowable:
    """A target whose embedding and head must not be asked."""

    def embed(self, ids: mx.array) -> mx.array:
        raise AssertionError

    def head(self, hidden: mx.array) -> mx.array:
        raise AssertionError

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        raise AssertionError


def test_a_draft_with_embedding_and_head_of_its_own_borrows_nothing(tmp_path: Path) -> None:
    model, _ = make(tmp_path, "speculators reduced")
    session = DFlashDrafter(model, Unborrowable(), "draft", 6).session()
    ids = session.propose(mx.array([9]), mx.array(random_taps(3)), 3, 5, [])
    assert ids is not None and set(ids.tolist()) <= set(KEPT)


class Typed:
    """The borrowed embedding and head in one type, which rows must have too: its product would widen the whole head first."""

    def __init__(self, dtype: mx.Dtype):
        self.dtype = dtype

    def embed(self, ids: mx.array) -> mx.array:
        return VOCABULARY.embed(ids).astype(self.dtype)

    def head(self, hidden: mx.array) -> mx.array:
        assert hidden.dtype == self.dtype
        return hidden @ mx.array(VOCABULARY.rows).astype(self.dtype).T

    def partial_head(self, ids: mx.array) -> Callable[[mx.array], mx.array]:
        return lambda hidden: self.head(hidden)[..., ids]


@pytest.mark.parametrize("theirs", [mx.bfloat16, mx.float16, mx.float32])
@pytest.mark.parametrize("name", PACKAGINGS)
def test_a_draft_in_bf16_computes_in_bf16_throughout_whatever_the_target_does(tmp_path: Path, name: str, theirs: mx.Dtype) -> None:
    packed = PACKAGINGS[name]()
    floats = {key: value for key, value in packed.files.items() if mx.issubdtype(value.dtype, mx.floating)}
    packed.files = packed.files | {key: value.astype(mx.bfloat16) for key, value in floats.items()}
    model = load_draft(packed.write(tmp_path), SHAPE, None)
    drafter = DFlashDrafter(model, Typed(theirs), "draft", 6)
    taps = mx.array(random_taps(20)).astype(theirs)
    context = model.make_context()
    rows = model(drafter.block(mx.array([9]), mx.array([5, 5])), model.features(taps), context, 20)
    assert {array.dtype for array in (rows, *context.arrays())} == {mx.bfloat16}
    session = drafter.session()
    mx.eval(session.prefill(taps, 0))
    ids = session.propose(mx.array([9], dtype=mx.int32), taps[:3], 23, 5, [])
    assert ids is not None and ids.dtype == mx.int32 and all(0 <= token < 160 for token in ids.tolist())
