"""A side-by-side run: what each arm did and when, and what the two have in common."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.core.arms import Arm
from app.core.compare_report import comparison_markdown
from app.core.words import number, tr, trn
from engine import Event, ExactnessProgress, Fallback, Finished, PairInfo, Started, Statistics, TextDelta, Verdict, compare_tokens

Side = Literal["left", "right"]
SIDES: tuple[Side, Side] = ("left", "right")
# Longest snippet shown where two answers part.
SNIPPET_LENGTH = 24


class ArmRecorder:
    """Records one arm's events. ``timeline`` holds (seconds since the request, characters of text so far)."""

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        self.timeline: list[tuple[float, int]] = []
        self.finished: Finished | None = None
        self.failure: str | None = None
        self.fallback: str | None = None
        self._parts: list[str] = []
        self._length = 0
        self._last_s = 0.0
        self._over = False

    def feed(self, event: Event) -> None:
        """Takes the next event of this arm's request."""
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
        if not isinstance(event, ExactnessProgress | Fallback | Finished):
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
            return "stopped" if self._over else "running"
        return "stopped" if self.finished.reason == "cancelled" else None

    def end(self) -> None:
        """Nothing more comes: what has no end by now was stopped, by another model that was loaded, say."""
        self._over = True

    def restore(self, text: str, timeline: list[tuple[float, int]], finished: Finished | None) -> None:
        """What was kept of an earlier recording."""
        self._over = True
        self._parts, self._length, self.timeline, self.finished = [text], len(text), timeline, finished
        self._last_s = timeline[-1][0] if timeline else 0.0


@dataclass(frozen=True)
class Comparison:
    """Two arms of one prompt; may be read while they are still being recorded.

    ``pair`` and ``environment`` are what it ran with and on, ``at`` when, in seconds since 1970. ``settings`` are, in words by
    name, what both arms were asked with; ``options`` those of the engine in short, "" where all are the defaults.
    """

    prompt: str
    left: ArmRecorder
    right: ArmRecorder
    pair: PairInfo | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    at: float = 0.0
    settings: Mapping[str, str] = field(default_factory=dict)
    options: str = ""

    def side(self, side: Side) -> ArmRecorder:
        """One of both."""
        return self.left if side == "left" else self.right

    @property
    def arms(self) -> tuple[ArmRecorder, ArmRecorder]:
        """Both, the one that ran first before the other."""
        return self.left, self.right

    @property
    def duration_s(self) -> float:
        """Seconds that a replay of both on one clock takes: the slower arm's."""
        return max(self.left.duration_s, self.right.duration_s)

    @property
    def speedup(self) -> float | None:
        """The right arm's decoding speed over the left's; None until both have one."""
        left, right = self.left.tok_s, self.right.tok_s
        return right / left if left and right else None

    @property
    def gains(self) -> Side | None:
        """The side whose speculation is known to have paid: the faster one of identical answers, if it guesses ahead."""
        verdict, speedup = self.verdict, self.speedup
        if verdict is None or not verdict.identical or not verdict.complete or speedup is None or speedup == 1:
            return None
        faster: Side = "right" if speedup > 1 else "left"
        return faster if self.side(faster).arm.speculative else None

    @property
    def verdict(self) -> Verdict | None:
        """Whether the answers are identical, token for token; None until both arms are finished."""
        left, right = self.left, self.right
        if left.finished is None or right.finished is None:
            return None
        complete = left.cut_short is None and right.cut_short is None
        return compare_tokens(left.finished.token_ids, right.finished.token_ids, complete)

    @property
    def texts_there(self) -> tuple[str, str] | None:
        """The first words that differ, (left, right); None where no token differs.

        Both are empty where only the tokens differ and the texts do not.
        """
        verdict = self.verdict
        if verdict is None or verdict.first_difference is None:
            return None
        assert self.left.finished and self.right.finished
        return words_that_differ(self.left.finished.text, self.right.finished.text)

    def verdict_line(self) -> str:
        """One line, like "3.1x · identical, 214 tokens", "differs from token 57: “ the” / “ a”" or
        "not comparable: stopped". Token 0 is the first."""
        verdict, there = self.verdict, self.texts_there
        if verdict is not None and verdict.first_difference is not None:
            place = number(verdict.first_difference)
            if not there or not any(there):
                return tr("differs from token {place}", place=place)
            one, other = _quoted(there[0]), _quoted(there[1])
            return tr("differs from token {place}: {one} / {other}", place=place, one=one, other=other)
        reasons = [arm.cut_short for arm in self.arms]
        if "failed" in reasons:
            return tr("not comparable: failed")
        if "stopped" in reasons:
            return tr("not comparable: stopped")
        if "running" in reasons:
            return tr("running")
        assert verdict is not None
        line = trn("identical, {count} token", "identical, {count} tokens", verdict.compared)
        return f"{number(self.speedup, '.1f')}x · {line}" if self.speedup else line

    def report_markdown(self) -> str:
        """The whole comparison as Markdown for the clipboard."""
        return comparison_markdown(self)


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
    return tr("“{text}”", text=shown) if text else tr("the end")
