"""Blaizzy/mlx-vlm PR#2112, ml-explore/mlx-examples#780: one file's end token was wrong, and the model talked to itself for ever."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from engine import Finished, GenerationRequest, LoadOptions, load
from engine.models import ResolvedPair
from tests.regressions.pairs import write_tiny_pair


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_the_end_that_only_one_file_names_ends_the_answer(tmp_path: Path, starter: ResolvedPair, file: str) -> None:
    target, _ = write_tiny_pair(tmp_path, starter)
    request = GenerationRequest.of("hello", mode="baseline", max_tokens=12, use_cache=False)
    engine = load(str(target), options=LoadOptions(prefix_disk_bytes=0))
    *_, endless = engine.generate(request)
    engine.close()
    assert isinstance(endless, Finished) and endless.reason == "length"
    named = endless.token_ids[5]
    path = target / file
    content = json.loads(path.read_text("utf-8")) if path.exists() else {}
    path.write_text(json.dumps({**content, "eos_token_id": [named]}), "utf-8")
    engine = load(str(target), options=LoadOptions(prefix_disk_bytes=0))
    *_, ended = engine.generate(request)
    engine.close()
    assert isinstance(ended, Finished) and ended.reason == "stop" and len(ended.token_ids) <= 6
