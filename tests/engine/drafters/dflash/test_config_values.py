"""Whatever stands in a draft's config: it loads, or there is one clear line. Nothing else escapes and memory stays small."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engine.drafters.dflash.loading import load_draft
from engine.errors import ModelError
from engine.targets.protocol import TargetShape
from tests.engine.drafters.dflash.packagings import PACKAGINGS

SHAPE = TargetShape(hidden_size=32, vocab_size=160, num_layers=4, context_length=2048)
VALUES: list[Any] = [None, -1, 0, 3, 2**31, 10**13, float("nan"), "x", [], [[1]], {"a": 1}, True]


def places(value: Any, prefix: tuple = ()) -> Iterator[tuple]:
    """The path of every key, and of every entry of a list that has keys itself."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        if isinstance(value, dict) or isinstance(inner, dict):
            yield (*prefix, key)
        yield from places(inner, (*prefix, key))


def changed(config: dict[str, Any], place: tuple, value: Any) -> dict[str, Any]:
    found = copy.deepcopy(config)
    inner: Any = found
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return found


@pytest.mark.parametrize("name", ["specforge", "speculators reduced", "speculators second", "second"])
def test_any_value_anywhere_loads_or_gives_one_line(tmp_path: Path, name: str) -> None:
    packed = PACKAGINGS[name]()
    packed.write(tmp_path)
    refused = 0
    for place in places(packed.config):
        for value in VALUES:
            (tmp_path / "config.json").write_text(json.dumps(changed(packed.config, place, value)), encoding="utf-8")
            try:
                load_draft(tmp_path, SHAPE, None)
            except ModelError as error:
                refused += 1
                assert "\n" not in str(error) and len(str(error)) < 600, (place, value)
    assert refused > 100
