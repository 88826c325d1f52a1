"""Says whether a pair can be loaded before another is given up for it: files, memory, names and shapes, no weights read."""

from __future__ import annotations

from engine.drafters.dflash.loading import open_draft
from engine.loading import read_tokenizer
from engine.memory import give_back
from engine.models import check_pair, resolve_pair
from engine.models.starter import STARTER_ID
from engine.options import LoadOptions
from engine.targets.loading import open_target
from engine.text.chat import stop_token_ids


def check(pair: str, options: LoadOptions | None = None) -> None:
    """See ``engine.check``."""
    check_pair(pair, options)
    if pair == STARTER_ID:
        return  # its files are compared with what was made from a pinned package
    try:
        _open(pair)
    finally:
        give_back()


def _open(pair: str) -> None:
    resolved = resolve_pair(pair)
    unread = open_target(resolved.target)
    stop_token_ids(resolved.target, read_tokenizer(resolved.target))
    able = unread.adapted().capabilities
    if resolved.draft is not None and able.taps and able.rollback:  # elsewhere it is not read either
        open_draft(resolved.draft, unread.shape)
