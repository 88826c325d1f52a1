"""The side-by-side report that goes to the clipboard."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from app.core.engine_words import engine_words
from app.core.fence import fenced
from app.core.figures import percent, rate, seconds
from app.core.words import number, tr
from engine import PairInfo, Statistics, identity_reason

if TYPE_CHECKING:
    from app.core.compare import Comparison


def comparison_markdown(comparison: Comparison) -> str:
    """The whole comparison as Markdown, ending in one newline."""
    names = [arm.arm.name for arm in comparison.arms]
    title = tr("{one} and {other} side by side", one=names[0], other=names[1])
    lines = [f"## {title}", "", f"**{comparison.verdict_line()}**", ""]
    lines += [f"- {name}: {value}" for name, value in _facts(comparison).items()]
    lines += ["", f"| | {names[0]} | {names[1]} |", "|---|---:|---:|", *_rows(comparison)]
    for name, arm in zip(names, comparison.arms, strict=True):
        if arm.failure or arm.fallback:
            lines += ["", f"{name}: {engine_words(arm.failure or arm.fallback or '')}"]
    prompt, both = tr("Prompt"), tr("Answer of both")
    lines += ["", f"### {prompt}", "", fenced(comparison.prompt)]
    if comparison.verdict is not None and comparison.verdict.identical and comparison.verdict.complete:
        lines += ["", f"### {both}", "", fenced(comparison.right.text)]
    else:
        for name, arm in zip(names, comparison.arms, strict=True):
            lines += ["", f"### {name}", "", fenced(arm.text)]
    return "\n".join(lines) + "\n"


def _facts(comparison: Comparison) -> dict[str, str]:
    """What it ran with and on."""
    facts = {}
    pair = comparison.pair
    if comparison.at:
        facts[tr("Date")] = f"{datetime.fromtimestamp(comparison.at).astimezone():%Y-%m-%d %H:%M %Z}".strip()
    if pair is not None:
        facts |= {tr("Model"): pair.name, tr("Draft"): _draft(pair), tr("Device"): f"{pair.device}, {pair.dtype}"}
    facts |= {**comparison.settings, **comparison.environment}
    verdict = comparison.verdict
    if pair is not None and verdict is not None and verdict.complete:
        facts[tr("Identity")] = engine_words(identity_reason(verdict, pair, None))
    return facts


def _draft(pair: PairInfo) -> str:
    if not pair.draft_name:
        return tr("none")
    return tr("{name}, block length {length}", name=pair.draft_name, length=pair.block_length)


def _rows(comparison: Comparison) -> list[str]:
    cells = [_cells(arm.statistics) for arm in comparison.arms]
    return [f"| {name} | {cells[0][name]} | {cells[1][name]} |" for name in cells[0]]


def _cells(statistics: Statistics | None) -> dict[str, str]:
    """Row name to value; a dash where there is nothing to say."""
    accepted = tr("Accepted")
    names = (tr("Speed"), tr("Tokens"), tr("Decoding"), tr("First token"), tr("Tokens per cycle"), accepted, tr("Cycles"))
    cells = dict.fromkeys(names, "–")
    if statistics is None:
        return cells
    cells |= {
        tr("Speed"): rate(statistics.decode_tok_s),
        tr("Tokens"): number(statistics.completion_tokens),
        tr("Decoding"): seconds(statistics.decode_s),
        tr("First token"): seconds(statistics.ttft_s),
    }
    share = statistics.acceptance_rate
    if share is not None:
        counts = tr("{accepted} of {proposed}", accepted=statistics.accepted, proposed=statistics.proposed)
        cells |= {
            tr("Tokens per cycle"): number(statistics.tokens_per_cycle, ".2f"),
            accepted: f"{percent(share)} ({counts})",
            tr("Cycles"): number(statistics.cycles),
        }
    return cells
