"""Event sequences as the engine gives them, for tests of what is computed from events."""

from __future__ import annotations

from collections.abc import Sequence

from engine import (
    Cycle,
    Event,
    Fallback,
    Finished,
    FinishReason,
    Mode,
    PairInfo,
    PrefillProgress,
    Started,
    Statistics,
    TextDelta,
)

PAIR = PairInfo(
    id="starter", name="Starter", family="llama", device="cpu", dtype="float32", context_length=8192,
    draft_name="draft",
    block_length=8, no_draft_reason=None, weights_bytes=600_000_000,
)  # fmt: skip
PAIR_WITHOUT_DRAFT = PairInfo(
    id="x", name="X", family="llama", device="cpu", dtype="float32", context_length=8192, draft_name=None,
    block_length=0, no_draft_reason="No draft was trained for X.", weights_bytes=1,
)  # fmt: skip


def answer(
    cycles: Sequence[tuple[int, int, int, float]],
    mode: Mode = "dflash",
    reason: FinishReason = "stop",
    ttft_s: float = 0.25,
    words: Sequence[str] | None = None,
    fallback: str | None = None,
) -> list[Event]:
    """The events of one answer. A cycle is (proposed, accepted, committed, seconds it took).

    Token n has the id n and the text of ``words[n]`` ("t<n> " by default).
    """
    count = 1 + sum(committed for _, _, committed, _ in cycles)
    texts = list(words) if words is not None else [f"t{n} " for n in range(count)]
    assert len(texts) == count
    events: list[Event] = [PrefillProgress(10, 20, ttft_s / 2), PrefillProgress(20, 20, ttft_s)]
    events += [Fallback(fallback)] if fallback else []
    events.append(Started(mode, 20, 0, 8 if mode == "dflash" else 0, ttft_s))
    events.append(TextDelta(texts[0], (0,), ttft_s))
    now, done = ttft_s, 1
    for index, (proposed, accepted, committed, took_s) in enumerate(cycles):
        now += took_s
        events.append(Cycle(index, proposed, accepted, committed, now))
        if committed:
            ids = tuple(range(done, done + committed))
            events.append(TextDelta("".join(texts[done : done + committed]), ids, now))
        done += committed
    statistics = Statistics(
        mode=mode, prompt_tokens=20, cached_tokens=0, completion_tokens=count, ttft_s=ttft_s, decode_s=now - ttft_s,
        cycles=len(cycles), proposed=sum(c[0] for c in cycles), accepted=sum(c[1] for c in cycles), draft_s=0.1,
        verify_s=0.2, parked_cycles=0, fallback=fallback,
    )  # fmt: skip
    events.append(Finished(reason, "".join(texts), tuple(range(count)), statistics))
    return events


# A run of the starter pair: 7 proposals a cycle, the last cycle cut by the token limit (5 accepted, 2 of 6 committed).
CUT_BY_LIMIT = answer([(7, 3, 4, 0.061), (7, 7, 8, 0.060), (7, 0, 1, 0.064), (7, 2, 3, 0.062), (7, 5, 2, 0.061)], reason="length")
ENDED = answer([(7, 3, 4, 0.06), (7, 7, 8, 0.06), (7, 1, 2, 0.06), (7, 4, 5, 0.06)])
STOPPED = answer([(7, 3, 4, 0.06), (7, 2, 3, 0.06)], reason="cancelled")
PLAIN = answer([(0, 0, 1, 0.03)] * 30, mode="baseline")
FELL_BACK = answer([(0, 0, 1, 0.03)] * 5, mode="baseline", fallback="The draft does not fit this target.")
ONE_TOKEN = answer([], reason="length")
