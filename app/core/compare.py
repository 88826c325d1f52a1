"""A side-by-side run: what each mode did and when, and what the two have in common."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.compare_report import comparison_markdown
from engine import Event, Fallback, Finished, Mode, PairInfo, Started, Statistics, TextDelta, Verdict, compare_tokens

ArmName = Literal["baseline", "dflash"]
# Longest snippet shown where two answers part.
SNIPPET_LENGTH = 24


class ArmRecorder:
    """Records one mode's events. ``timeline`` holds (seconds since the request, characters of text so far)."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.timeline: list[tuple[float, int]] = []
        self.finished: Finished | None = None
        self.failure: str | None = None
        self.fallback: str | None = None
        self._parts: list[str] = []
        self._length = 0
        self._last_s = 0.0

    def feed(self, event: Event) -> None:
        """Takes the next event of this mode's request."""
        match event:
            case TextDelta():
                self._parts.append(event.text)
                self._length += len(event.text)
                self.timeline.append((event.at_s, self._length))
            case Started() if event.open_tag:
                self._parts.append(f"{event.open_tag}\n")
                self._length = len(self._parts[0])
            case Fallback():
                self.fallback = event.reason
            case Finished():
                self.finished = event
        if not isinstance(event, Fallback | Finished):
            self._last_s = event.at_s

    def fail(self, reason: str) -> None:
        """The request ended in an error, in words for the user."""
        self.failure = reason

    @property
    def text(self) -> str:
        """The text so far."""
        if len(self._parts) > 1:
            self._parts = ["".join(self._parts)]
        return self._parts[0] if self._parts else ""

    def text_at(self, t: float) -> str:
        """The text that stood there ``t`` seconds after the request."""
        index = bisect_right(self.timeline, t, key=lambda entry: entry[0])
        return self.text[: self.timeline[index - 1][1]] if index else ""

    @property
    def statistics(self) -> Statistics | None:
        """What the answer cost, None until finished."""
        return self.finished.statistics if self.finished else None

    @property
    def duration_s(self) -> float:
        """Seconds from the request to the last token or, while unfinished, the last event."""
        statistics = self.statistics
        return max(self._last_s, statistics.ttft_s + statistics.decode_s) if statistics else self._last_s

    @property
    def tok_s(self) -> float | None:
        """Decoding speed in tokens per second, None until finished."""
        return self.statistics.decode_tok_s if self.statistics else None

    @property
    def cut_short(self) -> str | None:
        """Why there is no whole answer, in a word: "running", "failed", "stopped"; None where it is whole."""
        if self.failure is not None:
            return "failed"
        if self.finished is None:
            return "running"
        return "stopped" if self.finished.reason == "cancelled" else None


@dataclass(frozen=True)
class Comparison:
    """Two arms of one prompt; may be read while they are still being recorded."""

    prompt: str
    baseline: ArmRecorder
    dflash: ArmRecorder

    @property
    def duration_s(self) -> float:
        """Seconds that a replay of both on one clock takes: the slower arm's."""
        return max(self.baseline.duration_s, self.dflash.duration_s)

    @property
    def speedup(self) -> float | None:
        """DFlash's decoding speed over plain's; None until both have one."""
        baseline, dflash = self.baseline.tok_s, self.dflash.tok_s
        return dflash / baseline if baseline and dflash else None

    @property
    def tokens_per_cycle(self) -> float | None:
        """Tokens per cycle of the DFlash arm, None until it is finished."""
        return self.dflash.statistics.tokens_per_cycle if self.dflash.statistics else None

    @property
    def acceptance_rate(self) -> float | None:
        """Acceptance rate (0..1) of the DFlash arm, None until it is finished or where nothing was proposed."""
        return self.dflash.statistics.acceptance_rate if self.dflash.statistics else None

    @property
    def verdict(self) -> Verdict | None:
        """Whether the answers are identical, token for token; None until both arms are finished."""
        baseline, dflash = self.baseline, self.dflash
        if baseline.finished is None or dflash.finished is None:
            return None
        complete = baseline.cut_short is None and dflash.cut_short is None
        return compare_tokens(baseline.finished.token_ids, dflash.finished.token_ids, complete)

    @property
    def texts_there(self) -> tuple[str, str] | None:
        """The first words that differ, (plain, DFlash); None where no token differs.

        Both are empty where only the tokens differ and the texts do not.
        """
        verdict = self.verdict
        if verdict is None or verdict.first_difference is None:
            return None
        assert self.baseline.finished and self.dflash.finished
        return words_that_differ(self.baseline.finished.text, self.dflash.finished.text)

    def text_at(self, arm: ArmName, t: float) -> str:
        """For replay: the text of ``arm`` at ``t`` seconds on the common clock."""
        return (self.baseline if arm == "baseline" else self.dflash).text_at(t)

    def verdict_line(self) -> str:
        """One line, like "3.1x · identical, 214 tokens", "differs from token 57: “ the” / “ a”" or
        "not comparable: stopped". Token 0 is the first."""
        verdict, there = self.verdict, self.texts_there
        if verdict is not None and verdict.first_difference is not None:
            line = f"differs from token {verdict.first_difference}"
            return f"{line}: {_quoted(there[0])} / {_quoted(there[1])}" if there and any(there) else line
        reasons = [arm.cut_short for arm in (self.baseline, self.dflash)]
        for reason in ("failed", "stopped", "running"):
            if reason in reasons:
                return "running" if reason == "running" else f"not comparable: {reason}"
        assert verdict is not None
        line = f"identical, {verdict.compared:,} {'token' if verdict.compared == 1 else 'tokens'}"
        return f"{self.speedup:.1f}x · {line}" if self.speedup else line

    def report_markdown(self, pair: PairInfo, environment: Mapping[str, str]) -> str:
        """The whole comparison as Markdown for the clipboard; ``environment`` maps names to values, as to be shown."""
        return comparison_markdown(self, pair, environment)


def words_that_differ(one: str, other: str) -> tuple[str, str]:
    """The word of each text in which they first differ, with the space before it; both "" for equal texts."""
    if one == other:
        return "", ""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    start, longer = at, max(one, other, key=len)
    if at == min(len(one), len(other)) and longer[at].isspace():
        return _word_from(one, at, at), _word_from(other, at, at)  # one ends where the other goes on with a new word
    # Back to the start of the word, so that "there" against "their" shows whole words.
    while start > 0 and at - start < SNIPPET_LENGTH and not one[start - 1].isspace():
        start -= 1
    if start > 0 and one[start - 1] == " ":
        start -= 1
    return _word_from(one, start, at), _word_from(other, start, at)


def _word_from(text: str, start: int, at: int) -> str:
    """The text from ``start`` to the end of the word that holds ``at``."""
    end = at + 1
    while end < len(text) and end - start < SNIPPET_LENGTH and not text[end].isspace():
        end += 1
    return text[start:end]


def _quoted(text: str) -> str:
    shown = text.replace("\n", "⏎").replace("\t", "⇥")
    return f"“{shown}”" if text else "the end"
