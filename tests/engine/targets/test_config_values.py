"""Whatever stands in a target's config: it loads, or there is one clear line. Nothing else escapes, nothing hangs."""

from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest

from engine.errors import ModelError
from engine.models.checkpoint import Config
from engine.models.fit import fits
from engine.models.memory_need import memory_need
from engine.models.runnable import folder_problem
from engine.targets.loading import load_target
from engine.text.chat import stop_token_ids
from tests.engine.drafters.dflash.test_config_values import changed, places
from tests.engine.targets.hybrids import HYBRIDS
from tests.engine.targets.sliding_families import BASE, FAMILIES
from tests.engine.tiny import write_target

DEEP = "a thousand lists inside each other"
VALUES: list[Any] = [None, -1, 0, 10**18, 10**400, float("inf"), float("nan"), "x", [], {}, DEEP]
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 1024}  # fmt: skip
ENCODED = {"quantization_config": {"quant_method": "fp8", "scale_fmt": "ue8m0", "weight_block_size": [32, 32], "format": "x"}}
MODELOPT = {"quantization_config": {"quant_method": "modelopt", "quantization": {"quant_algo": "NVFP4"}}}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", {"rope_scaling": LLAMA3}),
    **{name: HYBRIDS[name][1:] for name in ("qwen3_5_moe", "nemotron_h", "falcon_h1", "granitemoehybrid experts", "lfm2_moe")},
    **{name: (FAMILIES[name][0], BASE | FAMILIES[name][1]) for name in ("gemma3_text", "gemma4_text with experts", "gpt_oss")},
}
QUICK = ("llama",)


class Ends:
    """Sees calls end, well or with one line."""

    def __init__(self) -> None:
        self.refused = 0

    def see(self, call: Any, *arguments: Any) -> None:
        try:
            call(*arguments)
        except ModelError as error:
            self.refused += 1
            assert "\n" not in str(error) and len(str(error)) < 800, str(error)[:2000]


def text_of(config: dict[str, Any]) -> str:
    return json.dumps(config).replace(json.dumps(DEEP), "[" * 1000 + "]" * 1000)


@pytest.mark.parametrize("name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES])
def test_any_value_anywhere_loads_or_gives_one_line(tmp_path: Path, name: str) -> None:
    family, more = CASES[name]
    folder, ends = write_target(tmp_path / "target", family, **more), Ends()
    file, before = folder / "config.json", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    config = json.loads(file.read_text())
    load_target(folder, mx.float32)
    for place in places(config):
        for value in VALUES:
            file.write_text(text_of(changed(config, place, value)))
            ends.see(load_target, folder, mx.float32)
            ends.see(memory_need, folder, None, True)
            fits(str(folder))
    assert ends.refused > 100
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000, "kilobytes; on macOS bytes, and never so few"


@pytest.mark.parametrize("encoding", [ENCODED, MODELOPT])
def test_any_encoding_is_judged_without_an_error(tmp_path: Path, encoding: dict[str, Any]) -> None:
    config = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], **encoding}
    for place in places(config):
        for value in [*VALUES, [1], {"a": 1}, 7]:
            (tmp_path / "config.json").write_text(text_of(changed(config, place, value)))
            problem = folder_problem(tmp_path)
            assert problem is None or problem.endswith(".")


@pytest.mark.parametrize("count", ["num_hidden_layers", "num_experts", "altup_num_inputs"])
@pytest.mark.parametrize("section", [None, "text_config"])
def test_a_count_that_cannot_be_is_named_before_anything_is_made_of_it(tmp_path: Path, count: str, section: str | None) -> None:
    (tmp_path / "config.json").write_text(json.dumps({section: {count: 10**18}} if section else {count: 10**18}))
    with pytest.raises(ModelError, match=f"config.json: '{count}' is 10+, which cannot be"):
        Config.read(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "generation_config.json"])
@pytest.mark.parametrize("value", [*VALUES[1:], [[1]], [None], True])
def test_an_end_that_is_no_token_is_named_by_its_file(tmp_path: Path, name: str, value: Any) -> None:
    class Tokenizer:
        eos_token_ids = (1, None)

    (tmp_path / name).write_text(text_of({"eos_token_id": value}))
    if value in (-1, 0, 10**18, 10**400, []):
        assert stop_token_ids(tmp_path, Tokenizer()) >= {1}
        return
    with pytest.raises(ModelError, match=f"{name} cannot be read") as refused:
        stop_token_ids(tmp_path, Tokenizer())
    assert len(str(refused.value)) < 600
