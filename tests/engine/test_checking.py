"""``engine.check`` refuses what ``load`` would refuse, without reading weights, so that nothing is given up for it."""

from __future__ import annotations

import json
import shutil
import threading
from importlib.util import find_spec
from pathlib import Path

import mlx.core as mx
import pytest

import engine
from app.worker import EngineWorker, Failure, Loaded
from engine import ModelError, NotEnoughMemory
from engine.models import ResolvedPair
from engine.models.runnable import READ_FP8, refusal
from engine.targets.families import supported_families
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

WIDE = {"vocab_size": 49152}


@pytest.fixture
def pair(tmp_path: Path, starter: ResolvedPair) -> tuple[Path, Path]:
    """A target and its draft that load."""
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", **WIDE))
    return target, write_draft(tmp_path / "draft", target_config(**WIDE))


def change_config(folder: Path, **changes: object) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | changes))


def cut_projection(draft: Path) -> None:
    weights = mx.load(str(draft / "model.safetensors"))
    weights.pop("fc.weight")
    mx.save_safetensors(str(draft / "model.safetensors"), weights)


DAMAGE = {
    "family": (lambda target, draft: change_config(target, model_type="exotic"), "'exotic', which mlx-lm"),
    "shapes": (lambda target, draft: change_config(target, intermediate_size=64), "do not belong to its config.json"),
    "layers": (lambda target, draft: change_config(target, num_hidden_layers=3), "do not belong to its config.json"),
    "stop tokens": (lambda target, draft: change_config(target, eos_token_id="end"), "cannot be read"),
    "tokenizer": (lambda target, draft: (target / "tokenizer.json").write_text("{}"), "The tokenizer in"),
    "other draft": (lambda target, draft: write_draft(draft, target_config(**WIDE, hidden_size=48)), "another target"),
    "draft's kind": (lambda target, draft: change_config(draft, architectures=["Eagle3"]), "not a DFlash draft"),
    "draft's tensors": (lambda target, draft: cut_projection(draft), "lacks fc.weight"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_cannot_be_loaded_is_refused_by_the_check_with_the_same_words(pair: tuple[Path, Path], damage: str) -> None:
    names = f"{pair[0]}+{pair[1]}"
    engine.check(names)
    change, words = DAMAGE[damage]
    change(*pair)
    with pytest.raises(ModelError, match=words) as checked:
        engine.check(names)
    with pytest.raises(ModelError) as loaded:
        engine.load(names)
    assert str(checked.value) == str(loaded.value)


OPTIONS = {
    "heads": (engine.LoadOptions(kv_bits=8), lambda pair: str(pair[0]), r"cannot be kept in 8 bits: its heads of size \d+ do not"),
    "no draft": (engine.LoadOptions(draft_bits=4), lambda pair: str(pair[0]), "no draft to keep in 4 bits"),
    "rows": (engine.LoadOptions(draft_bits=4), lambda pair: f"{pair[0]}+{pair[1]}", "kept in 4 bits: its rows of .*40"),
}


@pytest.mark.parametrize("option", OPTIONS)
def test_an_option_that_a_pair_cannot_have_is_refused_before_another_is_given_up_for_it(
    pair: tuple[Path, Path], option: str
) -> None:
    write_draft(pair[1], target_config(**WIDE), intermediate_size=40)
    options, names, words = OPTIONS[option]
    engine.check(names(pair))
    with pytest.raises(ModelError, match=words) as checked:
        engine.check(names(pair), options)
    with pytest.raises(ModelError) as loaded:
        engine.load(names(pair), options=options)
    assert str(checked.value) == str(loaded.value)


def test_a_draft_that_would_not_be_used_is_no_reason_to_refuse(tmp_path: Path, starter: ResolvedPair) -> None:
    folder = write_target(tmp_path / "mamba", "mamba", state_size=8, conv_kernel=4, use_bias=False, use_conv_bias=True,
                          time_step_rank=4, intermediate_size=64, expand=2, **WIDE)  # fmt: skip
    draft = write_draft(tmp_path / "draft", target_config(**WIDE), architectures=["Eagle3"])
    engine.check(f"{copy_tokenizer(starter.target, folder)}+{draft}")


def test_an_unknown_family_is_told_before_the_memory_is_judged(pair: tuple[Path, Path]) -> None:
    change_config(pair[0], model_type="exotic")
    with pytest.raises(ModelError, match="'exotic'"):
        engine.check(str(pair[0]), engine.LoadOptions(memory_bytes=1000))


def test_the_check_reads_no_weights(pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    before = mx.get_active_memory()
    mx.reset_peak_memory()
    engine.check(f"{pair[0]}+{pair[1]}")
    size = sum((folder / "model.safetensors").stat().st_size for folder in pair)
    assert mx.get_peak_memory() - before < size / 10 and mx.get_active_memory() <= before + 1024
    with pytest.raises(NotEnoughMemory):
        engine.check(str(pair[0]), engine.LoadOptions(memory_bytes=1000))


@pytest.mark.parametrize("damage", ["draft's tensors"])
def test_the_thread_that_owns_the_engine_keeps_it_where_the_next_pair_is_refused(pair: tuple[Path, Path], damage: str) -> None:
    worker, other = EngineWorker(), [Path(shutil.copytree(folder, folder.with_name(f"other {folder.name}"))) for folder in pair]
    DAMAGE[damage][0](*other)
    worker.load(1, f"{pair[0]}+{pair[1]}", threading.Event())
    (info,) = [item.payload.info for item in worker.mailbox.take() if isinstance(item.payload, Loaded)]
    owned = worker._require()
    worker.load(2, f"{other[0]}+{other[1]}", threading.Event())
    told = [item.payload for item in worker.mailbox.take()]
    assert worker._require() is owned and [payload.info for payload in told if isinstance(payload, Loaded)] == [info]
    assert any(isinstance(payload, Failure) and not payload.is_bug for payload in told)
    owned.close()


def test_the_families_whose_8_bit_floats_are_read_are_those_of_mlx_lm() -> None:
    folder = Path(next(iter(find_spec("mlx_lm").submodule_search_locations))) / "models"
    sources = {family: folder / f"{family}.py" for family in supported_families()}
    reading = {family for family, file in sources.items() if file.is_file() and "weight_scale_inv" in file.read_text()}
    assert reading == READ_FP8


@pytest.mark.parametrize(
    ("config", "refused"),
    [
        ({"quantization": {"bits": 4}, "quantization_config": {"bits": 4}}, False),
        ({"quantization": {"bits": 4}, "quantization_config": {"quant_method": "fp8"}}, False),
        ({"quantization_config": {"quant_method": "gptq"}}, False),
        ({"quantization_config": {"quant_method": "mxfp4"}}, False),
        ({"quantization_config": {"quant_method": "fp8"}}, True),
        ({"quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [32, 32]}}, False),
        ({"model_type": "ministral3", "quantization_config": {"quant_method": "fp8"}}, False),
        ({"model_type": "deepseek_v3", "quantization_config": {"quant_method": "fp8"}}, False),
        ({"text_config": {"quantization_config": {"quant_method": "hqq"}}}, True),
        ({"quantization_config": {"quant_method": "compressed-tensors", "format": "pack-quantized"}}, False),
        ({"quantization_config": {"quant_method": "compressed-tensors", "format": "float-quantized"}}, True),
        ({"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4"}}, False),
        ({"quantization_config": {"quant_method": "modelopt", "quantization": {"quant_algo": "FP8"}}}, True),
        ({"quantization_config": "odd"}, False),
        ({"model_type": None}, True),
        ({"model_type": 7}, True),
    ],
)
def test_a_config_is_refused_exactly_for_encodings_that_are_not_read(config: dict, refused: bool) -> None:
    found = refusal({"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **config}, "org/name")
    assert (found is not None) == refused
    assert found is None or ("org/name" in found.what and found.action.endswith("."))
