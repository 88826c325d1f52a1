"""A tiny random pair with the real tokenizer, as folders: everything about it is real but the sense of what it says."""

from __future__ import annotations

from pathlib import Path

from engine.models import ResolvedPair
from tests.engine.tiny import copy_tokenizer, target_config, write_draft, write_target

VOCAB = 49152
CONTEXT = 512


def write_pair(folder: Path, starter: ResolvedPair) -> str:
    """Writes the pair and returns the text that names it on the command line."""
    target = write_target(folder / "target", vocab_size=VOCAB, max_position_embeddings=CONTEXT)
    copy_tokenizer(starter.target, target)
    draft = write_draft(folder / "draft", target_config(vocab_size=VOCAB))
    return f"{target}+{draft}"
