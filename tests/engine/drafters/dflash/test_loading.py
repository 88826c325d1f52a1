"""A draft loads strictly: every tensor named and shaped as it must be, or one clear error; quantised and reduced ones too."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx.utils import tree_flatten

from engine.drafters.dflash.drafter import DFlashDrafter
from engine.drafters.dflash.loading import load_draft
from engine.drafters.dflash.model import DFlashModel
from engine.errors import ModelError
from engine.models import ResolvedPair
from engine.targets.attention import AttentionTarget
from engine.targets.protocol import TargetShape
from tests.engine.tiny import build_target, draft_config, draft_weights, target_config, write_draft

TARGET = target_config()
SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)
KEPT = (3, 4, 9, 31, 77, 140, 159)  # the target ids of a reduced vocabulary
GROUP = 32


def write(folder: Path, weights: dict[str, mx.array], target: dict[str, Any] = TARGET, **changes: Any) -> Path:
    folder.mkdir(exist_ok=True)
    mx.save_safetensors(str(folder / "model.safetensors"), weights)
    (folder / "config.json").write_text(json.dumps(draft_config(target, **changes)), encoding="utf-8")
    return folder


@pytest.fixture
def weights() -> dict[str, mx.array]:
    return draft_weights(draft_config(TARGET))


def assert_refused(folder: Path, match: str) -> None:
    with pytest.raises(ModelError, match=match) as caught:
        load_draft(folder, SHAPE, None)
    assert "\n" not in str(caught.value)


def test_a_complete_draft_loads_with_its_own_numbers(tmp_path: Path, weights) -> None:
    model = load_draft(write_draft(tmp_path, TARGET), SHAPE, None)
    found = dict(tree_flatten(model.parameters()))
    assert found.keys() == weights.keys()
    assert all(mx.array_equal(found[name], weights[name]) for name in weights)


@pytest.mark.parametrize(
    "name", ["fc.weight", "hidden_norm.weight", "layers.1.self_attn.k_norm.weight", "layers.0.mlp.up_proj.weight"]
)
def test_a_missing_tensor_is_named(tmp_path: Path, weights, name: str) -> None:
    del weights[name]
    assert_refused(write(tmp_path, weights), f"lacks {name}")


@pytest.mark.parametrize(
    "name", ["lm_head.bias", "mask_hidden", "layers.2.mlp.up_proj.weight", "layers.0.self_attn.g_proj.weight", "t2v"]
)
def test_an_unexpected_tensor_is_named(tmp_path: Path, weights, name: str) -> None:
    assert_refused(write(tmp_path, weights | {name: mx.zeros((4, 4))}), f"has unknown {name}")


def test_missing_and_unexpected_are_named_together(tmp_path: Path, weights) -> None:
    weights["encoder.fc.weight"] = weights.pop("fc.weight")
    assert_refused(write(tmp_path, weights), "lacks fc.weight and has unknown encoder.fc.weight")


@pytest.mark.parametrize(
    ("name", "shape"),
    [("fc.weight", (32, 80)), ("layers.0.self_attn.k_proj.weight", (32, 32)), ("layers.1.input_layernorm.weight", (33,))],
)
def test_a_tensor_of_the_wrong_shape_is_refused(tmp_path: Path, weights, name: str, shape: tuple) -> None:
    assert_refused(write(tmp_path, weights | {name: mx.zeros(shape)}), f"wrong shape.*{name}")


@pytest.mark.parametrize("kept", [0, 5, 400, -1000, -1])
def test_a_file_cut_short_is_refused(tmp_path: Path, kept: int) -> None:
    file = write_draft(tmp_path, TARGET) / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    assert_refused(tmp_path, "damaged or incomplete.*download the model again")


def test_a_file_with_bytes_to_spare_is_refused(tmp_path: Path) -> None:
    file = write_draft(tmp_path, TARGET) / "model.safetensors"
    file.write_bytes(file.read_bytes() + b"0")
    assert_refused(tmp_path, "damaged or incomplete")


def test_a_draft_without_weights_is_refused(tmp_path: Path) -> None:
    (write_draft(tmp_path, TARGET) / "model.safetensors").unlink()
    assert_refused(tmp_path, "no model.safetensors")


def test_a_missing_part_of_a_split_draft_is_named(tmp_path: Path, weights) -> None:
    write(tmp_path, weights)
    (tmp_path / "model.safetensors").rename(tmp_path / "model-1.safetensors")
    index = {"weight_map": dict.fromkeys(weights, "model-1.safetensors")}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert load_draft(tmp_path, SHAPE, None).convention.num_layers == 2
    index["weight_map"]["fc.weight"] = "model-2.safetensors"
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))
    assert_refused(tmp_path, "model-2.safetensors is missing")


@pytest.mark.parametrize("index", ["{", "[]", "{}", '{"weight_map": {"fc.weight": 3}}'])
def test_a_damaged_index_is_refused(tmp_path: Path, index: str) -> None:
    (write_draft(tmp_path, TARGET) / "model.safetensors.index.json").write_text(index)
    assert_refused(tmp_path, "index.json cannot be read")


def test_weights_in_8_bit_floats_are_refused_instead_of_being_read_as_bytes(tmp_path: Path, weights) -> None:
    header, data = {}, b""
    for name, value in weights.items():
        kind, item = ("F8_E4M3", 1) if name == "fc.weight" else ("F32", 4)
        raw = bytes(value.size) if item == 1 else np.array(value).tobytes()
        header[name] = {"dtype": kind, "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (write(tmp_path, weights) / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    assert_refused(tmp_path, "fc.weight in a format MLX does not compute in")


@pytest.mark.parametrize("scaling", [{"rope_type": "spiral"}, {"rope_type": "yarn"}, {"rope_type": "linear"}])
def test_unusable_position_scaling_is_refused(tmp_path: Path, scaling: dict[str, Any]) -> None:
    assert_refused(write_draft(tmp_path, TARGET, rope_scaling=scaling), "position scaling cannot be used")


def test_position_scaling_reaches_the_rotation(tmp_path: Path) -> None:
    """Linear scaling by 4 at position 8 turns as plain RoPE does at position 2."""
    plain = load_draft(write_draft(tmp_path / "plain", TARGET), SHAPE, None)
    scaled = load_draft(write_draft(tmp_path / "scaled", TARGET, rope_scaling={"type": "linear", "factor": 4}), SHAPE, None)
    row = mx.ones((1, 32))
    keys = [model.layers[0].self_attn.keys_values(row, at)[0] for model, at in ((plain, 2), (scaled, 8))]
    assert mx.allclose(*keys, atol=1e-6)
    assert not mx.allclose(keys[0], plain.layers[0].self_attn.keys_values(row, 8)[0], atol=1e-2)


def quantised(weights: dict[str, mx.array], bits: int) -> dict[str, mx.array]:
    """``weights`` with every matrix whose rows divide into groups packed, as MLX stores it."""
    packed = dict(weights)
    for name, value in weights.items():
        if value.ndim == 2 and value.shape[1] % GROUP == 0:
            path = name.removesuffix("weight")
            packed[path + "weight"], packed[path + "scales"], packed[path + "biases"] = mx.quantize(value, GROUP, bits)
    return packed


def unpacked(weights: dict[str, mx.array], bits: int) -> dict[str, mx.array]:
    """What the numbers of a quantised checkpoint stand for."""
    plain = {name: value for name, value in weights.items() if not name.endswith((".scales", ".biases"))}
    for name in [name for name in weights if name.endswith(".scales")]:
        path = name.removesuffix("scales")
        plain[path + "weight"] = mx.dequantize(weights[path + "weight"], weights[name], weights[path + "biases"], GROUP, bits)
    return plain


@pytest.mark.parametrize("bits", [4, 5, 8])
def test_a_quantised_draft_means_the_same_packed_and_expanded(tmp_path: Path, weights, bits: int) -> None:
    packed = quantised(weights, bits)
    settings = {"quantization": {"bits": bits, "group_size": GROUP}}
    folder = write(tmp_path / "packed", packed, **settings)
    as_stored, expanded = load_draft(folder, SHAPE, None), load_draft(folder, SHAPE, mx.float32)
    plain = load_draft(write(tmp_path / "plain", unpacked(packed, bits)), SHAPE, None)
    assert isinstance(as_stored.fc, nn.QuantizedLinear) and isinstance(as_stored.layers[0].mlp.down_proj, nn.Linear)
    found = dict(tree_flatten(expanded.parameters()))
    assert found.keys() == weights.keys()
    assert all(mx.array_equal(found[name], value) for name, value in tree_flatten(plain.parameters()))
    states = [block_states(model) for model in (as_stored, expanded)]
    np.testing.assert_allclose(*states, rtol=0, atol=1e-3)


def block_states(model: DFlashModel) -> np.ndarray:
    taps = mx.random.normal((7, 64), key=mx.random.key(1))
    block = mx.random.normal((4, 32), key=mx.random.key(2))
    return np.array(model(block, model.features(taps), model.make_context(), 7))


@pytest.mark.parametrize(
    "settings", [{"bits": 4}, {"bits": "4", "group_size": 32}, {"group_size": 32}, {"bits": 4.0, "group_size": 32}]
)
def test_incomplete_quantisation_settings_are_refused(tmp_path: Path, weights, settings: dict[str, Any]) -> None:
    assert_refused(write(tmp_path, quantised(weights, 4), quantization=settings), "whole numbers for bits and group_size")


@pytest.mark.parametrize(
    "settings",
    [{"bits": 7, "group_size": 32}, {"bits": 4, "group_size": 17}, {"bits": 4, "group_size": 128}, {"bits": 0, "group_size": 0}],
)
def test_impossible_quantisation_settings_are_refused(tmp_path: Path, weights, settings: dict[str, Any]) -> None:
    assert_refused(write(tmp_path, quantised(weights, 4), quantization=settings), "cannot be used")


def test_packed_weights_at_another_width_than_the_config_says_are_refused(tmp_path: Path, weights) -> None:
    assert_refused(write(tmp_path, quantised(weights, 8), quantization={"bits": 4, "group_size": GROUP}), "wrong shape")


def test_packed_weights_without_settings_are_refused(tmp_path: Path, weights) -> None:
    assert_refused(write(tmp_path, quantised(weights, 4)), "has unknown")


def offsets(ids: tuple[int, ...]) -> mx.array:
    return mx.array([target - own for own, target in enumerate(ids)], dtype=mx.int64)


def test_reduced_proposals_are_the_targets_ids(tmp_path: Path, weights) -> None:
    folder = write(tmp_path, weights | {"d2t": offsets(KEPT)})
    model = load_draft(folder, SHAPE, mx.float32)
    assert model.target_ids().tolist() == list(KEPT)
    target = AttentionTarget(build_target(TARGET), "llama", SHAPE)
    drafter = DFlashDrafter(model, target, "draft", 6)
    hidden = mx.random.normal((40, 32), key=mx.random.key(3))
    logits = np.array(target.head(hidden))
    expected = [max(KEPT, key=lambda token: row[token]) for row in logits]
    assert drafter.choose(hidden, mx.array([9])).tolist() == expected
    assert len(set(expected)) > 3, "a test whose answer is always the same token protects nothing"
    proposals = drafter.session().propose(mx.array([9]), mx.random.normal((1, 64)), 1, 5, [])
    assert proposals.dtype == mx.array([9]).dtype and set(proposals.tolist()) <= set(KEPT)


@pytest.mark.parametrize("ids", [(-1, 3), (3, 160), (9, 3, 31), (3, 3, 4)])
def test_reduced_ids_out_of_range_or_order_are_refused(tmp_path: Path, weights, ids: tuple) -> None:
    assert_refused(write(tmp_path, weights | {"d2t": offsets(ids)}), "d2t")


def test_reduced_ids_that_are_no_whole_numbers_are_refused(tmp_path: Path, weights) -> None:
    assert_refused(write(tmp_path, weights | {"d2t": mx.array([0.5, 1.0])}), "d2t")


HEADS = [
    pytest.param(changes, packed, id=f"{'tied' if not changes else 'untied'}, {'packed' if packed else 'plain'}")
    for changes in ({}, {"tie_word_embeddings": False})
    for packed in (False, True)
]


@pytest.mark.parametrize(("changes", "packed"), HEADS)
def test_a_partial_head_gives_the_same_logits_as_those_rows_of_the_whole(changes: dict[str, Any], packed: bool) -> None:
    model = build_target(target_config(intermediate_size=64, **changes))
    if packed:
        nn.quantize(model, group_size=GROUP, bits=4)
    target = AttentionTarget(model, "llama", SHAPE)
    hidden = mx.random.normal((6, 32), key=mx.random.key(4))
    whole, part = target.head(hidden), target.partial_head(mx.array(KEPT))(hidden)
    assert part.shape == (6, len(KEPT))
    np.testing.assert_allclose(np.array(part), np.array(whole)[:, list(KEPT)], rtol=0, atol=1e-5)


def test_a_partial_head_keeps_the_bias_of_its_rows() -> None:
    model = build_target(target_config(tie_word_embeddings=False))
    model.lm_head = nn.Linear(32, 160, bias=True)
    model.lm_head.bias = mx.arange(160).astype(mx.float32)
    target, hidden = AttentionTarget(model, "llama", SHAPE), mx.random.normal((2, 32), key=mx.random.key(4))
    part = np.array(target.partial_head(mx.array(KEPT))(hidden))
    np.testing.assert_allclose(part, np.array(target.head(hidden))[:, list(KEPT)], rtol=0, atol=1e-5)


def test_the_starter_draft_loads_for_its_target_and_for_no_other(starter: ResolvedPair, tmp_path: Path) -> None:
    shape = TargetShape(hidden_size=576, vocab_size=49152, num_layers=30, context_length=8192)
    assert starter.draft is not None
    model = load_draft(starter.draft, shape, mx.float32)
    assert model.convention.causal == (False,) * model.convention.num_layers
    with pytest.raises(ModelError, match="belongs to another target"):
        load_draft(starter.draft, SHAPE, None)


def test_a_target_is_not_a_draft(starter: ResolvedPair) -> None:
    assert_refused(starter.target, "not a DFlash draft .found LlamaForCausalLM")
