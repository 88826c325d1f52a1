"""The draft in resources/ is small enough for git and is what its config says; the script that made it works."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import mlx.core as mx
import numpy as np
import pytest

from engine.models import paths

ROOT = Path(__file__).parents[2]
DRAFT = paths.resources_folder() / "starter" / "draft"
script = runpy.run_path(str(ROOT / "packaging" / "quantise_draft.py"))


def test_the_draft_fits_into_git_and_brings_its_licence_note() -> None:
    assert sum(path.stat().st_size for path in DRAFT.iterdir()) <= 12_000_000
    assert "Apache-2.0" in (DRAFT / "README.md").read_text(encoding="utf-8")


def test_every_matrix_is_stored_at_the_width_of_the_config() -> None:
    config = json.loads((DRAFT / "config.json").read_text())
    bits, group = config["quantization"]["bits"], config["quantization"]["group_size"]
    weights = mx.load(str(DRAFT / "model.safetensors"))
    matrices = [name.removesuffix(".scales") for name in weights if name.endswith(".scales")]
    assert len(matrices) == 7 * config["num_hidden_layers"] + 1
    for name in matrices:
        packed, scales = weights[f"{name}.weight"], weights[f"{name}.scales"]
        columns = packed.shape[1] * 32 // bits
        assert (packed.dtype, scales.shape[1] * group) == (mx.uint32, columns), name
        assert weights[f"{name}.biases"].shape == scales.shape
    taps = config["dflash_config"]["target_layer_ids"]
    assert weights["fc.weight"].shape[1] * 32 // bits == len(taps) * config["hidden_size"]
    norms = [name for name in weights if "norm" in name]
    assert len(norms) == 4 * config["num_hidden_layers"] + 2
    assert {weights[name].dtype for name in norms} == {mx.bfloat16}


@pytest.mark.parametrize(("bits", "group_size"), [(4, 32), (5, 64), (6, 64)])
def test_the_script_quantises_matrices_and_keeps_norms(tmp_path: Path, bits: int, group_size: int) -> None:
    source, output = tmp_path / "bf16", tmp_path / "made here"
    source.mkdir()
    (source / "config.json").write_text('{"block_size": 16}')
    matrix = mx.random.normal((64, 128), key=mx.random.key(0)).astype(mx.bfloat16)
    norm = mx.arange(128).astype(mx.bfloat16)
    mx.save_safetensors(str(source / "model.safetensors"), {"fc.weight": matrix, "norm.weight": norm})
    arguments = [str(source), "--output", str(output), "--bits", str(bits), "--group-size", str(group_size)]
    assert script["main"](arguments) == 0
    config = json.loads((output / "config.json").read_text())
    assert config == {"block_size": 16, "quantization": {"bits": bits, "group_size": group_size}}
    made = mx.load(str(output / "model.safetensors"))
    parts = (made["fc.weight"], made["fc.scales"], made["fc.biases"])
    back = mx.dequantize(*parts, group_size=group_size, bits=bits).astype(mx.float32)
    steps = mx.repeat(mx.abs(made["fc.scales"].astype(mx.float32)), group_size, axis=1)
    errors = mx.abs(back - matrix.astype(mx.float32)) / steps
    # MLX moves a group so that zero is one of its values: the far end may then miss by up to a step, not by half.
    assert errors.max().item() < 1.1 and errors.mean().item() < 0.3
    np.testing.assert_array_equal(np.array(made["norm.weight"].astype(mx.float32)), np.arange(128))


def test_the_script_refuses_rows_that_groups_do_not_divide() -> None:
    with pytest.raises(ValueError, match="64 does not divide"):
        script["quantise"]({"fc.weight": mx.zeros((4, 96))}, 5, 64)
