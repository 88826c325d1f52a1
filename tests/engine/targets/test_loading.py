"""A target that cannot be used is refused in one line that says what is wrong, before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import mlx.core as mx
import pytest

from engine.errors import Cancelled, ModelError
from engine.models import ResolvedPair
from engine.models.checkpoint import tensor_shapes
from engine.targets.loading import load_target
from engine.targets.registry import supported_families
from tests.engine.tiny import write_target


def one_line(folder: Path) -> str:
    with pytest.raises(ModelError) as caught:
        load_target(folder, mx.float32)
    text = str(caught.value)
    assert "\n" not in text and ":" in text, "one line that ends in the next action"
    return text


def change_config(folder: Path, **changes: object) -> None:
    path = folder / "config.json"
    config = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in config.items() if value is not None}))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_target(tmp_path / "target")


def test_a_whole_target_loads(folder: Path) -> None:
    target = load_target(folder, mx.float32)
    assert target.family == "llama" and target.shape.num_layers == 4
    assert target.forward(mx.array([1, 2]), target.make_cache()).logits.shape == (2, 160)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    assert "not a folder" in one_line(tmp_path / "nowhere")


def test_missing_weights_are_named(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    assert "no model.safetensors" in one_line(folder)


@pytest.mark.parametrize("keep", [0, 4, 200, -1])
def test_truncated_weights_are_refused_before_they_are_read(folder: Path, keep: int) -> None:
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:keep])
    assert "damaged or incomplete" in one_line(folder)


def test_a_shard_missing_from_the_index_is_named(folder: Path) -> None:
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"a": "model-2.safetensors"}}))
    assert "model-2.safetensors is missing" in one_line(folder)


@pytest.mark.parametrize("key", ["model_type", "hidden_size", "vocab_size", "num_hidden_layers"])
def test_a_missing_config_key_is_named(folder: Path, key: str) -> None:
    change_config(folder, **{key: None})
    assert repr(key) in one_line(folder)


@pytest.mark.parametrize("key", ["hidden_size", "vocab_size", "num_hidden_layers", "max_position_embeddings"])
@pytest.mark.parametrize("value", ["many", 1.5, True, [3]])
def test_a_config_value_of_the_wrong_type_is_named(folder: Path, key: str, value: object) -> None:
    change_config(folder, **{key: value})
    text = one_line(folder)
    assert repr(key) in text and "expected int" in text


def test_a_key_that_only_mlx_lm_needs_is_reported_too(folder: Path) -> None:
    change_config(folder, intermediate_size=None)
    assert "intermediate_size" in one_line(folder)


def test_weights_that_do_not_fit_the_config_are_refused(folder: Path) -> None:
    change_config(folder, intermediate_size=64)
    assert "do not belong to its config.json (Expected shape" in one_line(folder)


def test_a_config_that_is_no_json_is_refused(folder: Path) -> None:
    (folder / "config.json").write_text("{broken")
    assert "cannot be read" in one_line(folder)


def test_a_config_that_asks_for_its_own_code_is_refused(folder: Path) -> None:
    change_config(folder, model_file="evil.py")
    (folder / "evil.py").write_text("raise SystemExit('ran')")
    assert "code of its own (evil.py), which is not run" in one_line(folder)


@pytest.mark.parametrize("scaled", [True, False], ids=["with scales", "bare"])
def test_8_bit_floats_are_named_and_never_taken_for_numbers(folder: Path, scaled: bool) -> None:
    file, name = folder / "model.safetensors", "model.layers.0.mlp.up_proj.weight"
    weights = mx.load(str(file))
    weights[name] = mx.to_fp8(weights[name])
    if scaled:
        weights[f"{name}_scale_inv"] = mx.ones((1, 1))
    mx.save_safetensors(str(file), weights)
    whole = file.read_bytes()  # MLX writes what it holds, bytes: the type has to be named afterwards
    assert whole.count(b'"U8"') == 1
    header = int.from_bytes(whole[:8], "little") + len("F8_E4M3") - len("U8")
    file.write_bytes(header.to_bytes(8, "little") + whole[8:].replace(b'"U8"', b'"F8_E4M3"', 1))
    text = one_line(folder)
    assert "stored as 8-bit floats (fp8)" in text and text.endswith("choose an MLX conversion of the model, in 4 or 8 bits.")


def test_a_quantised_target_run_as_stored_agrees_with_its_expansion(starter: ResolvedPair) -> None:
    """The repacked blocks are exact, so the two forms of the starter differ by rounding only."""
    ids = mx.arange(1000, 1024)
    stored, expanded = (load_target(starter.target, dtype) for dtype in (None, mx.float32))
    quantised = stored.forward(ids, stored.make_cache(), (1,))
    reference = expanded.forward(ids, expanded.make_cache(), (1,))
    assert quantised.taps is not None and reference.taps is not None
    assert mx.allclose(quantised.logits, reference.logits, atol=0.05)
    assert mx.allclose(quantised.taps, reference.taps, atol=0.05)
    rows = mx.array([5, 77, 4000])
    hidden = mx.random.normal((2, 576), key=mx.random.key(0))
    assert mx.allclose(stored.partial_head(rows)(hidden), expanded.head(hidden)[:, rows], atol=0.01)


def test_a_header_is_read_once_for_a_file_and_again_after_it_changed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, opened = folder / "model.safetensors", []
    real = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *args, **kwargs: opened.append(path) or real(path, *args, **kwargs))
    first = tensor_shapes(file)
    first.clear()  # what a caller does to its copy changes nothing
    assert tensor_shapes(file) and opened.count(file) == 1
    monkeypatch.undo()
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ModelError, match="damaged or incomplete"):
        tensor_shapes(file)


def test_an_unknown_family_is_named_with_some_that_work(folder: Path) -> None:
    change_config(folder, model_type="llama99")
    text = one_line(folder)
    assert "'llama99'" in text and len(text) < 300  # it stands in a banner: not all of them
    assert {"llama", "qwen3", "gemma3"} < set(supported_families()) and "such as llama, qwen3 or gemma3." in text


@pytest.mark.parametrize("dtype", [None, mx.float32], ids=["as stored", "expanded"])
def test_reading_weights_can_be_stopped_in_the_middle(
    tmp_path: Path, dtype: mx.Dtype | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.targets.loading.STEP_BYTES", 4096)
    fractions: list[float] = []

    def step(fraction: float) -> None:
        fractions.append(fraction)
        if fraction > 0.3:
            raise Cancelled("stopped")

    folder = write_target(tmp_path / "target")
    with pytest.raises(Cancelled):
        load_target(folder, dtype, step=step)
    assert 0.3 < fractions[-1] < 0.9
    fractions.clear()
    load_target(folder, dtype, step=lambda fraction: fractions.append(fraction))
    assert fractions == sorted(fractions) and fractions[-1] == 1.0 and len(fractions) > 3
