"""How a draft's config.json is understood: each of these rules costs acceptance without an error when it is wrong."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine.drafters.dflash.convention import DraftConvention
from engine.errors import ModelError
from engine.targets.protocol import TargetShape
from tests.engine.tiny import draft_config, draft_weights, target_config

TARGET = target_config()
SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)
FULL, SLIDING = "full_attention", "sliding_attention"


@pytest.fixture
def read(tmp_path: Path):
    """Parses a two-layer draft whose config has the given changes; a change to None removes the key."""

    def parse(**changes: Any) -> DraftConvention:
        write(tmp_path, changes)
        return DraftConvention.read(tmp_path)

    return parse


def write(folder: Path, changes: dict[str, Any], dropped: tuple[str, ...] = (), added: dict[str, mx.array] | None = None) -> None:
    weights = {name: value for name, value in draft_weights(draft_config(TARGET)).items() if name not in dropped}
    mx.save_safetensors(str(folder / "model.safetensors"), weights | (added or {}))
    (folder / "config.json").write_text(json.dumps(draft_config(TARGET, **changes)), encoding="utf-8")


def nested(**values: Any) -> dict[str, Any]:
    return {"target_layer_ids": [0, 2], "mask_token_id": 5, **values}


def test_the_usual_config_is_read_whole(read) -> None:
    assert read() == DraftConvention(
        hidden_size=32,
        target_hidden_size=32,
        intermediate_size=40,
        num_layers=2,
        num_heads=4,
        num_kv_heads=2,
        head_dim=8,
        biased=frozenset(),
        norm_eps=1e-5,
        rope_theta=10000.0,
        rope_scaling=None,
        max_positions=2048,
        vocab_size=160,
        target_layers=4,
        block_length=6,
        first_slot=1,
        mask_token_id=5,
        taps=(0, 2),
        causal=(False, False),
        windows=(None, None),
        window_from_anchor=False,
        quantization=None,
        draft_vocab_size=None,
        embedding_rows=None,
        embedding_scale=1.0,
        head_rows=None,
        convolution=None,
        selector=None,
    )


def test_tap_ids_are_layers_counted_from_zero_and_never_shifted(read) -> None:
    assert read(dflash_config=nested(target_layer_ids=[0, 3])).taps == (0, 3)


@pytest.mark.parametrize(
    "changes",
    [
        {"block_size": 9, "rope_theta": 5e5, "mask_token_id": 7, "target_layer_ids": [1, 3], "dflash_config": {}},
        {
            "block_size": None,
            "rope_theta": None,
            "rope_parameters": {"rope_theta": 5e5, "rope_type": "default"},
            "dflash_config": {"block_size": 9, "mask_token_id": 7, "target_layer_ids": [1, 3]},
        },
        {
            "block_size": None,
            "rope_theta": None,
            "dflash_config": {"block_size": 9, "rope_theta": 500000, "mask_token_id": 7, "target_layer_ids": [1, 3]},
        },
    ],
    ids=["flat", "rope_parameters", "dflash_config"],
)
def test_flat_and_nested_spellings_mean_the_same(read, changes: dict[str, Any]) -> None:
    found = read(**changes)
    assert (found.block_length, found.rope_theta, found.mask_token_id, found.taps) == (9, 500000.0, 7, (1, 3))
    assert found.rope_scaling is None


@pytest.mark.parametrize(
    "changes",
    [
        {"rope_scaling": {"rope_type": "yarn", "factor": 4.0}},
        {"rope_theta": None, "rope_parameters": {"rope_theta": 10000.0, "rope_type": "yarn", "factor": 4.0}},
    ],
    ids=["rope_scaling", "rope_parameters"],
)
def test_position_scaling_is_found_in_both_places(read, changes: dict[str, Any]) -> None:
    scaling = read(**changes).rope_scaling
    assert (scaling["rope_type"], scaling["factor"]) == ("yarn", 4.0)


@pytest.mark.parametrize("scaling", [{"type": "default"}, {"rope_type": "default", "rope_theta": 1.0}])
def test_default_position_scaling_is_none(read, scaling: dict[str, Any]) -> None:
    assert read(rope_scaling=scaling).rope_scaling is None


@pytest.mark.parametrize(
    ("changes", "causal"),
    [
        ({"is_causal": True, "dflash_config": nested(is_causal=False, causal=False)}, (True, True)),
        ({"is_causal": False, "dflash_config": nested(is_causal=True, causal=True)}, (False, False)),
        ({"dflash_config": nested(is_causal=True, causal=False)}, (True, True)),
        ({"dflash_config": nested(is_causal=False, causal=True)}, (False, False)),
        ({"dflash_config": nested(causal=True)}, (True, True)),
        ({"dflash_config": nested(causal=False), "layer_types": [SLIDING, FULL], "sliding_window": 8}, (False, False)),
        ({"is_causal": False, "layer_types": [SLIDING, SLIDING], "sliding_window": 8}, (False, False)),
        ({"layer_types": [SLIDING, FULL], "sliding_window": 8}, (True, False)),
        ({"layer_types": [FULL, FULL]}, (False, False)),
    ],
)
def test_causality_inside_the_block_follows_its_order_of_precedence(read, changes: dict[str, Any], causal: tuple) -> None:
    assert read(**changes).causal == causal


def test_only_sliding_layers_have_a_window(read) -> None:
    assert read(layer_types=[FULL, SLIDING], sliding_window=8).windows == (None, 8)
    assert read(sliding_window=8, layer_types=None).windows == (None, None)
    assert read(sliding_window=8, layer_types=[FULL, FULL]).windows == (None, None)


@pytest.mark.parametrize(("layers", "drafts", "taps"), [(36, 5, (1, 9, 17, 25, 33)), (30, 4, (1, 10, 18, 27)), (30, 1, (15,))])
def test_absent_taps_are_spaced_as_the_draft_was_trained(tmp_path: Path, layers: int, drafts: int, taps: tuple) -> None:
    changes = {"dflash_config": {"mask_token_id": 5}, "num_target_layers": layers, "num_hidden_layers": drafts}
    write(tmp_path, changes, added={"fc.weight": mx.zeros((32, 32 * len(taps)))})
    assert DraftConvention.read(tmp_path).taps == taps


def test_sizes_come_from_the_tensors_where_the_config_disagrees(read) -> None:
    found = read(hidden_size=4096, head_dim=128)
    assert (found.hidden_size, found.head_dim) == (32, 8)


def test_a_reduced_vocabulary_is_as_long_as_its_tensor(tmp_path: Path) -> None:
    write(tmp_path, {"draft_vocab_size": 32000}, added={"d2t": mx.zeros((40,), dtype=mx.int64)})
    assert DraftConvention.read(tmp_path).draft_vocab_size == 40


def test_null_counts_as_absent(tmp_path: Path) -> None:
    write(tmp_path, {})
    config = draft_config(TARGET) | {"is_causal": None, "layer_types": None, "rope_scaling": None, "quantization": None}
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = DraftConvention.read(tmp_path)
    assert (found.causal, found.windows, found.rope_scaling, found.quantization) == ((False,) * 2, (None,) * 2, None, None)


@pytest.mark.parametrize(
    "key", ["num_hidden_layers", "num_attention_heads", "num_key_value_heads", "intermediate_size", "rms_norm_eps", "rope_theta"]
)
def test_a_missing_key_is_named(read, key: str) -> None:
    with pytest.raises(ModelError, match=f"lacks '{key}'"):
        read(**{key: None})


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"vocab_size": None}, "vocab_size"),
        ({"block_size": None}, "block_size"),
        ({"dflash_config": {"target_layer_ids": [0, 2]}}, "mask_token_id"),
        ({"dflash_config": {"mask_token_id": 5}, "num_target_layers": None}, "num_target_layers"),
        ({"layer_types": [SLIDING, FULL]}, "sliding_window"),
    ],
)
def test_a_key_missing_in_every_place_is_named(read, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelError, match=f"lacks '{key}'"):
        read(**changes)


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"num_hidden_layers": "2"}, "num_hidden_layers"),
        ({"num_hidden_layers": True}, "num_hidden_layers"),
        ({"block_size": 6.5}, "block_size"),
        ({"rope_theta": "big"}, "rope_theta"),
        ({"rms_norm_eps": [1]}, "rms_norm_eps"),
        ({"dflash_config": [1, 2]}, "dflash_config"),
        ({"dflash_config": nested(mask_token_id="5")}, "mask_token_id"),
        ({"dflash_config": nested(target_layer_ids="0,2")}, "target_layer_ids"),
        ({"is_causal": "yes"}, "is_causal"),
        ({"dflash_config": nested(causal=1)}, "is_causal"),
        ({"layer_types": "full_attention"}, "layer_types"),
        ({"quantization": 4}, "quantization"),
        ({"rope_scaling": "yarn"}, "rope_scaling"),
        ({"architectures": "DFlashDraftModel"}, "architectures"),
    ],
)
def test_a_value_of_the_wrong_type_is_named(read, changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ModelError, match=key):
        read(**changes)


@pytest.mark.parametrize("taps", [[2, 0], [0, 0], [], ["0", "2"], [0, 2.0], [True, 2], [[0], [2]]])
def test_taps_that_are_not_ascending_layer_numbers_are_refused(read, taps: list) -> None:
    with pytest.raises(ModelError, match="ascending"):
        read(dflash_config=nested(target_layer_ids=taps))


@pytest.mark.parametrize("kinds", [[FULL], [FULL] * 3, [FULL, "mamba"], [FULL, 3], [[FULL], FULL]])
def test_layer_types_that_do_not_describe_the_layers_are_refused(read, kinds: list) -> None:
    with pytest.raises(ModelError, match="layer_types"):
        read(layer_types=kinds)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"block_size": 1}, "block_size"),
        ({"block_size": -4}, "block_size"),
        ({"block_size": 2**31}, "block_size"),
        ({"num_hidden_layers": 4096}, "num_hidden_layers is 4096, with weights for fewer"),
        ({"num_hidden_layers": 2**31}, "'num_hidden_layers' is 2147483648, which cannot be"),
        ({"rms_norm_eps": 0}, "rms_norm_eps"),
        ({"rms_norm_eps": float("nan")}, "rms_norm_eps is nan"),
        ({"rope_theta": float("inf")}, "rope_theta is inf"),
        ({"rope_theta": -1}, "rope_theta"),
        ({"input_embedding_scale": 0}, "input_embedding_scale"),
        ({"num_attention_heads": 0}, "heads"),
        ({"num_key_value_heads": 0}, "heads"),
        ({"num_key_value_heads": 3}, "heads"),
        ({"num_hidden_layers": 0, "dflash_config": nested()}, "layers"),
        ({"layer_types": [SLIDING, FULL], "sliding_window": 0}, "sliding_window"),
    ],
)
def test_impossible_numbers_are_refused(read, changes: dict[str, Any], word: str) -> None:
    with pytest.raises(ModelError, match=word):
        read(**changes)


def test_a_dflash_section_is_enough_without_an_architecture(read) -> None:
    assert read(architectures=None).taps == (0, 2)


@pytest.mark.parametrize("name", ["norm.weight", "layers.0.self_attn.q_norm.weight"])
def test_a_draft_without_the_vectors_that_give_its_sizes_is_refused(tmp_path: Path, name: str) -> None:
    write(tmp_path, {}, dropped=(name,))
    with pytest.raises(ModelError, match=f"no vector {name}"):
        DraftConvention.read(tmp_path)


@pytest.mark.parametrize("name", ["norm.weight", "d2t"])
def test_a_tensor_that_should_be_a_vector_and_is_not_is_named(tmp_path: Path, name: str) -> None:
    write(tmp_path, {}, dropped=(name,), added={name: mx.array(1.0)})
    with pytest.raises(ModelError, match=f"no vector {name}"):
        DraftConvention.read(tmp_path)


@pytest.mark.parametrize("content", [b"", b"[1]", b"{", b"\xff\xfe{}"])
def test_a_damaged_config_gives_one_clear_error(tmp_path: Path, content: bytes) -> None:
    write(tmp_path, {})
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(ModelError, match="download the model again"):
        DraftConvention.read(tmp_path)


def test_a_missing_config_or_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no config\.json"):
        DraftConvention.read(tmp_path)
    with pytest.raises(ModelError, match="not a folder"):
        DraftConvention.read(tmp_path / "nowhere")


def test_the_draft_fits_the_target_it_was_made_for(read) -> None:
    read().check_fits(SHAPE, "draft")
    read(dflash_config=nested(target_layer_ids=[0, 3], mask_token_id=159)).check_fits(SHAPE, "draft")


@pytest.mark.parametrize(
    ("target", "changes", "mismatch"),
    [
        (replace(SHAPE, hidden_size=64), {}, "hidden size 32 against 64"),
        (replace(SHAPE, vocab_size=151_936), {}, "vocabulary 160 against 151,936"),
        (replace(SHAPE, num_layers=2), {"num_target_layers": None}, r"taps \[0, 2\] in a target of 2 layers"),
        (replace(SHAPE, num_layers=5), {}, "made for 4 layers, this target has 5"),
        (SHAPE, {"dflash_config": nested(target_layer_ids=[-1, 2])}, r"taps \[-1, 2\]"),
        (SHAPE, {"dflash_config": nested(mask_token_id=160)}, "mask token 160 outside"),
        (SHAPE, {"dflash_config": nested(mask_token_id=-1)}, "mask token -1 outside"),
    ],
)
def test_a_draft_for_another_target_is_refused_with_the_number_that_differs(
    read, target: TargetShape, changes: dict[str, Any], mismatch: str
) -> None:
    with pytest.raises(ModelError, match=rf"small-draft belongs to another target \({mismatch}"):
        read(**changes).check_fits(target, "small-draft")
