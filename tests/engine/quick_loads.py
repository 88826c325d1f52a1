"""Loading tiny pairs some hundred times without reading a tokenizer or timing passes each time."""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any

import pytest

from engine import loading
from engine.decoding.curve import CostCurve

# What the starter's passes were measured to take on an idle machine of two cores.
COSTS = CostCurve(
    (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64),
    (0.056, 0.063, 0.069, 0.069, 0.079, 0.079, 0.084, 0.094, 0.113, 0.136, 0.171, 0.216),
    (0.0, 0.011, 0.012, 0.012, 0.013, 0.015, 0.015, *[0.017] * 5),
)


@pytest.fixture(scope="session", autouse=True)
def quick_loads() -> Iterator[None]:
    """Each tokenizer is read once, and the passes of tiny targets are not timed; the starter's are."""
    read, measure, known = loading.load_tokenizer, loading.measure_costs, {}

    def read_once(folder: Path, settings: dict[str, Any]) -> Any:
        key = tokenizer_files(folder)
        if key not in known:
            known[key] = read(folder, settings)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "load_tokenizer", read_once)
        patch.setattr(
            loading, "measure_costs", lambda target, drafter: COSTS if target.shape.num_layers < 8 else measure(target, drafter)
        )
        yield


def tokenizer_files(folder: Path) -> Hashable:
    """All that a tokenizer is made of."""
    files = [file for file in sorted(folder.iterdir()) if file.suffix != ".safetensors" and file.name != "config.json"]
    family = json.loads((folder / "config.json").read_text()).get("model_type")
    return family, tuple((file.name, file.read_bytes()) for file in files if file.is_file())
