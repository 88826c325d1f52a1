"""Says whether a pair can be loaded before another is given up for it: files, memory, names and shapes, no weights read."""

from __future__ import annotations

from engine.drafters.dflash.loading import open_draft, requantised
from engine.loading import read_tokenizer, refuse_draft_bits
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
        _open(pair, options or LoadOptions())
    finally:
        give_back()


def _open(pair: str, options: LoadOptions) -> None:
    resolved = resolve_pair(pair)
    refuse_draft_bits(resolved, options)
    unread = open_target(resolved.target)
    stop_token_ids(resolved.target, read_tokenizer(resolved.target))
    target = unread.adapted()
    if options.kv_bits is not None:
        target.kv_group(options.kv_bits)
    able = target.capabilities
    if resolved.draft is not None and able.taps and able.rollback:  # elsewhere it is not read either
        draft = open_draft(resolved.draft, unread.shape)
        if options.draft_bits is not None:
            requantised(draft, options.draft_bits, resolved.draft)  # of arrays that nothing evaluates
