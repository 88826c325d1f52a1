"""What a config says of quantised keys and values is what the model itself says once it is built."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine.errors import ModelError
from engine.models import fits, refused_options
from engine.targets.protocol import TargetShape
from engine.targets.registry import make_target
from tests.engine.models.test_fit import CONFIGS
from tests.engine.targets.test_attention import DENSE, EXTRA
from tests.engine.tiny import VOCAB, build_target, target_config, write_draft, write_target

ROUND = {"hidden_size": 128, "num_attention_heads": 4, "num_key_value_heads": 2}  # heads of 32 also where a family computes them
EVERY = CONFIGS | {f"{family}, round": target_config(family, **ROUND | EXTRA.get(family, {}), head_dim=32) for family in DENSE}


def refused_by_the_model(config: dict) -> bool:
    target = make_target(build_target(config), config["model_type"], TargetShape(config.get("hidden_size", 0), VOCAB, 2, 2048))
    try:
        target.kv_group(8)
    except ModelError:
        return True
    return False


@pytest.mark.parametrize("name", EVERY)
def test_the_config_tells_what_the_model_refuses(name: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(EVERY[name]), encoding="utf-8")
    refused = refused_options(str(tmp_path))
    assert ("kv_bits" in refused) == refused_by_the_model(EVERY[name])
    assert "no draft" in refused["draft_bits"]


def test_both_answers_occur() -> None:
    assert {"llama, round", "qwen3, round"} <= {name for name in EVERY if not refused_by_the_model(EVERY[name])}


def test_a_pair_refuses_nothing_of_its_draft_and_takes_less_with_quantised_keys_and_values(tmp_path: Path) -> None:
    target = write_target(tmp_path / "target", **ROUND, head_dim=32)
    draft = write_draft(tmp_path / "draft", target_config(**ROUND, head_dim=32))
    assert refused_options(f"{target}+{draft}") == {}
    whole, half = (fits(str(target), 2048, 10**12, bits) for bits in (None, 8))
    assert whole is not None and half is not None and half.needed_bytes < whole.needed_bytes
    with pytest.raises(ModelError):
        refused_options(str(tmp_path / "gone"))
