"""The meter's details in words: what stands above its charts, and all of it as text for the clipboard."""

from __future__ import annotations

from app.core.cycle_log import CycleLog
from app.core.engine_words import engine_words
from app.core.figures import percent
from app.core.meter import MeterSnapshot
from app.core.words import number, tr, trn
from engine import CostCurve, PairInfo


def state_words(log: CycleLog, snapshot: MeterSnapshot) -> str:
    """Why speculation is on, parked or off, in a sentence or two."""
    if not log.cycles and snapshot.off_reason is None:
        return tr("No answer yet: these figures fill while one is written.")
    if log.parked and log.reason:
        return tr("Parked. {reason}.", reason=engine_words(log.reason))
    if snapshot.off_reason is not None:
        return tr("Off. {reason}", reason=engine_words(snapshot.off_reason))
    if log.reason:
        return tr("On. {reason}.", reason=engine_words(log.reason))
    right = log.next_right
    if right is None:
        return tr("On.")
    return tr("On. The draft's next token was right {share} of the time.", share=percent(right))


def cycle_words(log: CycleLog) -> str:
    """How many cycles there were, and from where their proposals came."""
    looked_up = sum(1 for cycle in log.cycles if cycle.source == "lookup")
    drafted, plain = len(log.drafted), sum(1 for cycle in log.cycles if not cycle.proposed)
    parts = [
        trn("{count} cycle with a draft", "{count} cycles with a draft", drafted),
        trn("{count} looked up", "{count} looked up", looked_up),
        trn("{count} plain step", "{count} plain steps", plain),
    ]
    return " · ".join(parts)


def slot_words(log: CycleLog) -> str:
    """Acceptance by slot in words."""
    return ", ".join(
        tr("slot {slot}: {share} of {count}", slot=figure.slot, share=percent(figure.share), count=figure.tried)
        for figure in log.slots()
    )


def cost_words(costs: CostCurve | None) -> str:
    """The machine's costs in words."""
    if costs is None:
        return ""
    return ", ".join(
        trn(
            "{count} slot: verify {verify}, draft {draft}",
            "{count} slots: verify {verify}, draft {draft}",
            width,
            verify=milliseconds(verify),
            draft=milliseconds(draft),
        )
        for width, verify, draft in zip(costs.widths, costs.verify_s, costs.draft_s, strict=True)
    )


def expected_words(log: CycleLog, pair: PairInfo | None) -> str:
    """What each block length would give in words, the one in use marked."""
    parts = []
    for each in log.expected(pair.costs if pair else None, pair.block_length if pair else 0):
        name = tr("plain") if each.length == 1 else tr("block {length}", length=each.length)
        text = tr("{name}: {rate} tok/s", name=name, rate=number(each.tok_s, ",.1f"))
        parts.append(tr("{text} (in use)", text=text) if each.length == in_use(log) else text)
    return ", ".join(parts)


def in_use(log: CycleLog) -> int | None:
    """The block length in use, 1 where nothing is proposed."""
    return None if log.length is None else max(log.length, 1)


def milliseconds(duration_s: float) -> str:
    """A pass's duration in words."""
    return tr("{time} ms", time=number(duration_s * 1000, ",.1f" if duration_s < 0.1 else ",.0f"))


def details_text(log: CycleLog, snapshot: MeterSnapshot, pair: PairInfo | None) -> str:
    """Everything as text, a line each."""
    figures = [tr("for another program")] if snapshot.lent else []
    if snapshot.tokens:
        figures.append(tr("{rate} tok/s", rate=number(snapshot.tok_s, ",.1f")))
    if snapshot.tokens_per_cycle is not None:
        figures.append(tr("{tokens} tokens per cycle", tokens=number(snapshot.tokens_per_cycle, ".2f")))
    if snapshot.acceptance_rate is not None:
        figures.append(tr("{share} accepted", share=percent(snapshot.acceptance_rate)))
    lines = [
        (tr("Model"), f"{pair.name} · {pair.device}, {pair.dtype}" if pair else ""),
        (tr("Options"), snapshot.options),
        (tr("State"), state_words(log, snapshot)),
        (tr("Answer"), " · ".join(figures)),
        (tr("Cycles"), cycle_words(log) if log.cycles else ""),
        (tr("Acceptance by slot"), slot_words(log)),
        (tr("Expected by block length"), expected_words(log, pair)),
        (tr("Cost of a pass on this machine"), cost_words(pair.costs if pair else None)),
    ]
    return "\n".join(f"{name}: {text}" for name, text in lines if text) + "\n"
