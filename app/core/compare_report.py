"""The side-by-side report that goes to the clipboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from app.core.fence import fenced
from app.core.figures import percent, rate, seconds
from engine import PairInfo, Statistics, identity_reason

if TYPE_CHECKING:
    from app.core.compare import ArmRecorder, Comparison


def comparison_markdown(comparison: Comparison, pair: PairInfo, environment: Mapping[str, str]) -> str:
    """The whole comparison as Markdown, ending in one newline."""
    draft = f"{pair.draft_name}, block length {pair.block_length}" if pair.draft_name else "none"
    facts = {"Model": pair.name, "Draft": draft, "Device": f"{pair.device}, {pair.dtype}", **environment}
    lines = ["## Plain and DFlash side by side", "", f"**{comparison.verdict_line()}**", ""]
    lines += [f"- {name}: {value}" for name, value in facts.items()]
    if comparison.verdict is not None and comparison.verdict.complete:
        lines.append(f"- Identity: {identity_reason(comparison.verdict, pair, None)}")
    lines += ["", "| | Plain | DFlash |", "|---|---:|---:|", *_rows(comparison.baseline, comparison.dflash)]
    for name, arm in (("Plain", comparison.baseline), ("DFlash", comparison.dflash)):
        if arm.failure or arm.fallback:
            lines += ["", f"{name}: {arm.failure or arm.fallback}"]
    lines += ["", "### Prompt", "", fenced(comparison.prompt)]
    if comparison.verdict is not None and comparison.verdict.identical and comparison.verdict.complete:
        lines += ["", "### Answer of both", "", fenced(comparison.dflash.text)]
    else:
        lines += [
            "",
            "### Plain",
            "",
            fenced(comparison.baseline.text),
            "",
            "### DFlash",
            "",
            fenced(comparison.dflash.text),
        ]
    return "\n".join(lines) + "\n"


def _rows(baseline: ArmRecorder, dflash: ArmRecorder) -> list[str]:
    cells = [_cells(arm.statistics) for arm in (baseline, dflash)]
    return [f"| {name} | {cells[0][name]} | {cells[1][name]} |" for name in cells[0]]


def _cells(statistics: Statistics | None) -> dict[str, str]:
    """Row name to value; a dash where there is nothing to say."""
    cells = dict.fromkeys(("Speed", "Tokens", "Decoding", "First token", "Tokens per cycle", "Accepted", "Cycles"), "–")
    if statistics is None:
        return cells
    cells |= {
        "Speed": rate(statistics.decode_tok_s),
        "Tokens": f"{statistics.completion_tokens:,}",
        "Decoding": seconds(statistics.decode_s),
        "First token": seconds(statistics.ttft_s),
    }
    if statistics.acceptance_rate is not None:
        cells |= {
            "Tokens per cycle": f"{statistics.tokens_per_cycle:.2f}",
            "Accepted": f"{percent(statistics.acceptance_rate)} ({statistics.accepted:,} of {statistics.proposed:,})",
            "Cycles": f"{statistics.cycles:,}",
        }
    return cells
