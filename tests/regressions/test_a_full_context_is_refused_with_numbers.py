"""lmstudio-ai/lmstudio-bug-tracker#1620, #1806: a chat beyond the context crashed, or went on as garbage."""

from __future__ import annotations

import pytest

from engine import ContextOverflow, Finished, GenerationRequest, Message
from engine.engine import Engine
from tests.regressions.pairs import CONTEXT, tiny_engine  # noqa: F401


@pytest.mark.parametrize("share", [0.99, 1.0, 1.01])
@pytest.mark.parametrize("mode", ["baseline", "dflash"])
def test_up_to_the_last_token_is_answered_and_more_is_refused(tiny_engine: Engine, share: float, mode: str) -> None:  # noqa: F811
    tokens = round(share * CONTEXT)
    frame = tiny_engine.count_tokens([Message("user", "word")]) - 1
    request = GenerationRequest.of(" ".join(["word"] * (tokens - frame)), mode=mode, max_tokens=50)
    if tokens < CONTEXT:
        *_, end = tiny_engine.generate(request)
        assert isinstance(end, Finished) and end.reason == "length" and end.statistics.completion_tokens == CONTEXT - tokens
        assert end.statistics.context_full
        return
    with pytest.raises(ContextOverflow, match=f"has {tokens} tokens and the model's context holds {CONTEXT}"):
        tiny_engine.generate(request)
