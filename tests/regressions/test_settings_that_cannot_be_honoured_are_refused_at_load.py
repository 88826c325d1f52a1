"""lmstudio-ai/lmstudio-bug-tracker#1519: drafting was refused late, and nothing named the settings that did not go together."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine import LoadOptions, ModelError, load
from engine.models import ResolvedPair
from tests.regressions.pairs import write_tiny_pair


def test_draft_settings_without_a_draft_are_refused_before_anything_is_answered_and_the_way_out_is_named(
    tmp_path: Path, starter: ResolvedPair
) -> None:
    target, _ = write_tiny_pair(tmp_path, starter)
    with pytest.raises(ModelError, match="has no draft to keep in 4 bits: load it without draft_bits"):
        load(str(target), options=LoadOptions(draft_bits=4, prefix_disk_bytes=0))
