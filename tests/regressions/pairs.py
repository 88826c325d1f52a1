"""A tiny random pair with the starter's tokenizer and template, for reports that need no real weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine import LoadOptions, load
from engine.engine import Engine
from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

CONTEXT = 400


def write_tiny_pair(folder: Path, starter: ResolvedPair) -> tuple[Path, Path]:
    """The folders of target and draft; the context holds ``CONTEXT`` tokens."""
    sizes = {"vocab_size": 49152, "max_position_embeddings": CONTEXT}
    target = copy_tokenizer(starter.target, write_target(folder / "target", **sizes))
    return target, write_draft(folder / "draft", target_config(**sizes))


@pytest.fixture
def tiny_engine(tmp_path: Path, starter: ResolvedPair) -> Iterator[Engine]:
    """The pair, loaded."""
    target, draft = write_tiny_pair(tmp_path, starter)
    engine = load(f"{target}+{draft}", options=LoadOptions(prefix_disk_bytes=0))
    yield engine
    engine.close()
