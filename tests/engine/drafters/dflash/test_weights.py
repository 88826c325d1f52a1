"""Tensors find their place whatever they are called on disk, and nothing is dropped that a forward pass would read."""

from __future__ import annotations

from pathlib import Path

import mlx.core as mx
import pytest
from mlx.utils import tree_flatten

from engine.drafters.dflash.loading import load_draft
from engine.errors import ModelError
from engine.targets.protocol import TargetShape
from tests.engine.drafters.dflash.packagings import KEPT, PACKAGINGS, Packed, offsets

SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)


def assert_refused(packed: Packed, folder: Path, match: str) -> None:
    with pytest.raises(ModelError, match=match) as caught:
        load_draft(packed.write(folder), SHAPE, None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", PACKAGINGS)
def test_every_packaging_loads_its_numbers_under_the_same_names(tmp_path: Path, name: str) -> None:
    packed = PACKAGINGS[name]()
    found = dict(tree_flatten(load_draft(packed.write(tmp_path), SHAPE, None).parameters()))
    expected = {f"{key}.weight" if key.endswith("codebook") else key: value for key, value in packed.weights.items()}
    if packed.ids is not None:
        expected["d2t"] = offsets(packed.ids)
    assert found.keys() == expected.keys()
    assert all(mx.array_equal(found[key], value) for key, value in expected.items())


@pytest.mark.parametrize("bits", [4, 8])
def test_a_packed_fused_projection_is_split_by_rows(tmp_path: Path, bits: int) -> None:
    packed = PACKAGINGS["fused projections"]()
    for layer in range(2):
        path = f"layers.{layer}.self_attn.qkv_proj."
        packed.files[path + "weight"], packed.files[path + "scales"], packed.files[path + "biases"] = mx.quantize(
            packed.files[path + "weight"], 32, bits
        )
    packed.config["quantization"] = {"bits": bits, "group_size": 32}
    model = load_draft(packed.write(tmp_path), SHAPE, None)
    attention = model.layers[1].self_attn
    rows = mx.random.normal((4, 32), key=mx.random.key(1))
    for name in ("q_proj", "k_proj", "v_proj"):
        plain = packed.weights[f"layers.1.self_attn.{name}.weight"]
        close = rows @ mx.dequantize(*mx.quantize(plain, 32, bits), 32, bits).T + packed.weights[f"layers.1.self_attn.{name}.bias"]
        assert mx.allclose(attention[name](rows), close, atol=1e-4)


@pytest.mark.parametrize("rows", [63, 65])
def test_a_fused_projection_of_another_height_is_refused(tmp_path: Path, rows: int) -> None:
    packed = PACKAGINGS["fused projections"]()
    packed.files["layers.0.self_attn.qkv_proj.weight"] = mx.zeros((rows, 32))
    assert_refused(packed, tmp_path, r"wrong shape .layers\.0\.self_attn\.qkv_proj\.weight")


@pytest.mark.parametrize(
    "name",
    ["verifier_norm.weight", "verifier_lm_head.weight", "layers.0.self_attn.rotary_emb.inv_freq", "model.rotary_emb.inv_freq"],
)
def test_what_training_leaves_behind_is_ignored(tmp_path: Path, name: str) -> None:
    packed = PACKAGINGS["flat"]()
    packed.files = packed.files | {name: mx.ones((32,))}
    found = dict(tree_flatten(load_draft(packed.write(tmp_path), SHAPE, None).parameters()))
    assert found.keys() == packed.weights.keys()


@pytest.mark.parametrize(
    "name", ["layers.0.self_attn.g_proj.weight", "aux_hidden_norms.0.weight", "layers.0.self_attn.attention_sink_bias", "verifier"]
)
def test_a_tensor_that_a_forward_pass_would_read_is_never_dropped(tmp_path: Path, name: str) -> None:
    packed = PACKAGINGS["fused projections"]()
    packed.files[name] = mx.ones((32,))
    assert_refused(packed, tmp_path, f"has unknown {name}")


@pytest.mark.parametrize("name", ["attention_conv.base_kernel", "mlp_conv.kernel_projection.weight"])
def test_a_missing_part_of_a_convolution_is_named(tmp_path: Path, name: str) -> None:
    packed = PACKAGINGS["second"]()
    packed.files = {key: value for key, value in packed.files.items() if not key.endswith(f"1.{name}")}
    assert_refused(packed, tmp_path, rf"lacks layers\.1\.{name}")


def test_a_first_draft_with_the_second_ones_parts_is_refused(tmp_path: Path) -> None:
    first, second = PACKAGINGS["flat"](), PACKAGINGS["second"]()
    first.files = second.files
    assert_refused(first, tmp_path, "has unknown candidate_selector")


def test_a_selector_for_another_vocabulary_is_refused(tmp_path: Path) -> None:
    packed = PACKAGINGS["second"]()
    packed.files["candidate_selector.successor_codebook"] = mx.zeros((159, 4))
    assert_refused(packed, tmp_path, "wrong shape.*successor_codebook")


def test_a_vocabulary_map_that_changes_nothing_is_no_reduction(tmp_path: Path) -> None:
    packed = PACKAGINGS["speculators plain"]()
    packed.files = packed.files | {"d2t": mx.zeros((160,), dtype=mx.int64), "t2d": mx.ones((160,), dtype=mx.bool_)}
    model = load_draft(packed.write(tmp_path), SHAPE, None)
    assert model.target_ids() is None and "d2t" not in model


@pytest.mark.parametrize(
    "allowed",
    [
        mx.array([token in KEPT[:-1] for token in range(160)]),
        mx.array([token in (*KEPT, 0) for token in range(160)]),
        mx.array([token in (0, *KEPT[1:]) for token in range(160)]),
        mx.ones((161,), dtype=mx.bool_),
    ],
    ids=["one less", "one more", "another", "too long"],
)
def test_vocabulary_maps_that_contradict_each_other_are_refused(tmp_path: Path, allowed: mx.array) -> None:
    packed = PACKAGINGS["speculators reduced"]()
    packed.files["t2d"] = allowed
    assert_refused(packed, tmp_path, "names other tokens in t2d than in d2t")


def test_a_vocabulary_map_of_full_length_that_moves_tokens_is_refused(tmp_path: Path) -> None:
    packed = PACKAGINGS["speculators plain"]()
    packed.files = packed.files | {"d2t": mx.array([1, -1] + [0] * 158, dtype=mx.int64)}
    assert_refused(packed, tmp_path, "outside the target's vocabulary")
