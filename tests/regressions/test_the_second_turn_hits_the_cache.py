"""jundot/omlx#1441: with DFlash on, the prefix cache never hit, and every turn read the whole chat again for 45 to 85 s."""

from __future__ import annotations

import pytest

from engine import Finished, GenerationRequest, LoadOptions, Message, Mode, load
from engine.models import ResolvedPair


@pytest.mark.parametrize("mode", ["baseline", "dflash", "lookup"])
def test_the_second_turn_reads_only_what_is_new_in_every_mode(starter: ResolvedPair, mode: Mode) -> None:
    engine = load("starter", options=LoadOptions(prefix_disk_bytes=0))
    asked = Message("user", "Here is a note to remember. " + "The meeting moves to Friday at ten in the small room. " * 14)
    *_, first = engine.generate(GenerationRequest((asked,), mode=mode, max_tokens=8))
    assert isinstance(first, Finished) and first.statistics.cached_tokens == 0
    while engine.settle():
        pass
    chat = (asked, Message("assistant", first.text), Message("user", "When is it?"))
    *_, second = engine.generate(GenerationRequest(chat, mode=mode, max_tokens=8))
    assert isinstance(second, Finished)
    assert second.statistics.cached_tokens >= first.statistics.prompt_tokens - engine.prefill_chunk > 0
    engine.close()
