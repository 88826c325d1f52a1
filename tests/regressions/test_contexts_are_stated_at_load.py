"""lmstudio-ai/lmstudio-bug-tracker#499, #2318, #2323: the draft ignored the context length, and nothing said so."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.core.load_report import load_report_text
from engine import LoadOptions, load
from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

SLIDING: dict[str, Any] = {"layer_types": ["sliding_attention"] * 2, "sliding_window": 512, "use_sliding_window": True}


@pytest.mark.parametrize(("changes", "seen"), [({}, 2048), (SLIDING, 511)], ids=["full attention", "windows"])
def test_the_report_of_a_load_names_the_context_of_target_and_draft(
    tmp_path: Path, starter: ResolvedPair, changes: dict[str, Any], seen: int
) -> None:
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", vocab_size=49152))
    draft = write_draft(tmp_path / "draft", target_config(vocab_size=49152), **changes)
    engine = load(f"{target}+{draft}", options=LoadOptions(prefix_disk_bytes=0))
    engine.close()
    assert (engine.info.context_length, engine.info.draft_context_length) == (2048, seen)
    assert f"2,048 tokens, of which the draft sees the last {seen:,}" in load_report_text(engine.info)


def test_a_model_without_a_draft_has_no_context_of_one(tmp_path: Path, starter: ResolvedPair) -> None:
    target = copy_tokenizer(starter.target, write_target(tmp_path / "target", vocab_size=49152))
    engine = load(str(target), options=LoadOptions(prefix_disk_bytes=0))
    engine.close()
    assert engine.info.draft_context_length is None and "Context: 2,048 tokens\n" in load_report_text(engine.info)
