"""What was loaded and how, as labelled lines: for the window that shows it and for a bug report."""

from __future__ import annotations

from app.core.engine_words import engine_words
from app.core.figures import size
from app.core.words import tr
from engine import PairInfo


def load_report(info: PairInfo) -> list[tuple[str, str]]:
    """Label and text of each line, the most important first. A pair without a draft says why it has none."""
    lines = [
        (tr("Model"), info.name),
        (tr("Draft"), _draft(info)),
        (tr("Context"), _context(info)),
        (tr("Family"), info.family),
        (tr("Runs on"), tr("{device}, in {dtype}", device=info.device, dtype=info.dtype)),
        (tr("Weights in memory"), size(info.weights_bytes)),
    ]
    if info.kv_bits is not None:
        lines.append((tr("Keys and values"), tr("{bits} bit", bits=info.kv_bits)))
    if info.learned is not None:
        lines.append((tr("Learned draft"), tr("in use") if info.learned.in_use else tr("not in use")))
    lines.extend((tr("Note"), engine_words(notice)) for notice in info.notices)
    return lines


def load_report_text(info: PairInfo) -> str:
    """The same as plain text, a line each."""
    return "\n".join(f"{label}: {text}" for label, text in load_report(info))


def _context(info: PairInfo) -> str:
    words = tr("{count} tokens", count=info.context_length)
    if info.draft_context_length is None:
        return words
    return tr("{words}, of which the draft sees the last {count}", words=words, count=info.draft_context_length)


def _draft(info: PairInfo) -> str:
    if info.draft_name is None:
        return tr("None, so nothing is guessed ahead by a draft: {reason}", reason=engine_words(info.no_draft_reason or ""))
    words = tr("{name}, up to {count} tokens a block", name=info.draft_name, count=info.block_length)
    return words if info.draft_bits is None else tr("{words}, {bits} bit", words=words, bits=info.draft_bits)
