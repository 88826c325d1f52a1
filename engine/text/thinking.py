"""Splits an answer as it streams into what the model thought and what it says.

Reasoning models put their thoughts between two tags, or into a channel of its own. The result depends only on the text, never on
how it was cut into pieces: text that may still become a tag is held back.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

TAGS: tuple[tuple[str, str], ...] = (
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<longcat_think>", "</longcat_think>"),
    ("<seed:think>", "</seed:think>"),
    ("<|think:start|>", "<|think:end|>"),
    ("<|START_THINKING|>", "<|END_THINKING|>"),
    ("[THINK]", "[/THINK]"),
    ("<|channel>thought", "<channel|>"),
)
_CHANNEL_MARKS = ("<|start|>", "<|channel|>", "<|constrain|>", "<|message|>", "<|end|>", "<|call|>", "<|return|>")
_SPOKEN_CHANNELS = ("final", "commentary")
_FENCE = re.compile(r"\s*(`{3,}|~{3,})(.*)")


@dataclass(frozen=True, slots=True)
class Split:
    """Text to append to the thoughts and to the answer.

    ``moved``: all of the answer given out before was thought after all (its closing tag came without an opening one).
    """

    thinking: str = ""
    answer: str = ""
    moved: bool = False


def opening_tag(prompt: str) -> str:
    """The tag by which a rendered prompt leaves thinking open for the answer, "" where it does not."""
    end = prompt.rstrip()
    return next((tag for tag, _ in TAGS if end.endswith(tag)), "")


def split_thinking(text: str) -> tuple[str, str]:
    """(thoughts, answer) of a whole text, without blank space around the thoughts."""
    splitter = ThinkingSplitter()
    thinking, answer = "", ""
    for part in (splitter.feed(text), splitter.finish()):
        if part.moved:
            thinking, answer = thinking + answer, ""
        thinking, answer = thinking + part.thinking, answer + part.answer
    return thinking.strip(), answer


class ThinkingSplitter:
    """Feed text; get what is certain. ``thinking``: the text is inside the thoughts now; ``thought``: there were some.

    A tag counts where models put it: the opening one at the start of the answer, later only alone on its line; the closing one
    anywhere outside code. Tags that a text merely mentions stay text.
    """

    def __init__(self, opened: str = "") -> None:
        """``opened`` is what ``opening_tag`` found at the prompt's end."""
        self._held = ""
        self._code = _Code()
        self._channels: _Channels | None = None
        self._tags = next((pair for pair in TAGS if pair[0] == opened), None)
        self._started = bool(opened)
        self._trim = bool(opened)  # line ends right after a tag belong to it
        self.thinking, self.thought = bool(opened), False

    def feed(self, text: str) -> Split:
        """Appends ``text`` and returns what it made certain."""
        return self._advance(text, final=False)

    def finish(self) -> Split:
        """No more text comes: what was held back is given out."""
        return self._advance("", final=True)

    def _advance(self, text: str, final: bool) -> Split:
        self._held += text
        if not self._started and not self._start(final):
            return Split()
        if self._channels is not None:
            held, self._held = self._held, ""
            part = self._channels.feed(held, final)
            self.thinking = self._channels.thinking
            self.thought = self.thought or bool(part.thinking.strip())
            return part
        thinking: list[str] = []
        answer: list[str] = []
        moved = False
        while True:
            inside, trim = self.thinking, self._trim
            piece, go_on, orphan = self._take_thought(final) if inside else self._take_answer(final)
            piece = piece.lstrip("\n") if trim else piece
            self._trim = (trim and not piece) or self.thinking != inside or orphan
            (thinking if inside else answer).append(piece)
            self.thought = self.thought or (inside and bool(piece.strip()))
            if orphan:
                thinking, answer, moved, self.thought = [*thinking, *answer], [], True, True
            if not go_on:
                return Split("".join(thinking), "".join(answer), moved)

    def _start(self, final: bool) -> bool:
        """Looks for an opening tag at the start of the answer; False: more text is needed."""
        begun = self._held.lstrip()
        marks = ("<|channel|>", "<|start|>", *(tag for tag, _ in TAGS))
        mark = next((mark for mark in marks if begun.startswith(mark)), None)
        if mark is None and not final and (not begun or any(mark.startswith(begun) for mark in marks)):
            return False
        self._started = True
        if mark in ("<|channel|>", "<|start|>"):
            self._channels, self._held = _Channels(), begun
        elif mark is not None:
            self._tags = next(pair for pair in TAGS if pair[0] == mark)
            self._held, self.thinking, self._trim = begun.removeprefix(mark), True, True
        return True

    def _take_thought(self, final: bool) -> tuple[str, bool, bool]:
        """Text up to the closing tag: (text, whether there may be more to take, False)."""
        assert self._tags is not None
        opening, closing = self._tags
        at = self._held.find(closing)
        if at < 0:
            return self._give_out(len(self._held) - (0 if final else _overlap(self._held, closing))), False, False
        before = self._held[:at]
        after = self._held[at + len(closing) :]
        rest, newline, _ = after.partition("\n")
        if not final and not newline and self._code.needs_more(before, rest):
            return self._give_out(at), False, False
        if self._code.mentions(before, rest, opening):
            return self._give_out(at + len(closing)), True, False
        self._code, self._held = _Code(), after
        self.thinking = False
        return before, True, False

    def _take_answer(self, final: bool) -> tuple[str, bool, bool]:
        """Text up to a line that is nothing but a tag: (text, whether there may be more, whether it closes what nothing opened)."""
        starts = [0] if self._code.at_line_start else []
        for start in [*starts, *(found.end() for found in re.finditer("\n", self._held))]:
            end = self._held.find("\n", start)
            tag = self._held[start : end if end >= 0 else None].strip()
            if end < 0 and not final:
                undecided = any(mark.startswith(tag) for pair in TAGS for mark in pair)
                return self._give_out(start if undecided else len(self._held)), False, False
            pair = next((pair for pair in TAGS if tag in pair), None)
            orphan = pair is not None and tag == pair[1]
            if pair is None or (orphan and self.thought) or self._code.fenced_after(self._held[:start]):
                continue
            text, self._held = self._held[:start], self._held[end:] if end >= 0 else ""
            self._tags, self._code = pair, _Code()
            self.thinking = not orphan
            return text, True, orphan
        return self._give_out(len(self._held)), False, False

    def _give_out(self, length: int) -> str:
        text, self._held = self._held[:length], self._held[length:]
        self._code.pass_over(text)
        return text


class _Code:
    """Whether the place a text has come to is inside Markdown code."""

    def __init__(self) -> None:
        self._line: list[str] = []  # pieces of the line so far
        self._fence = ""  # what opened the code block that is open
        self._block: list[str] = []  # its lines so far

    @property
    def at_line_start(self) -> bool:
        return not any(self._line)

    def pass_over(self, text: str) -> None:
        first, *rest = text.split("\n")
        self._line.append(first)
        for piece in rest:
            self._end_line("".join(self._line))
            self._line = [piece]

    def fenced_after(self, text: str) -> bool:
        """Whether a code block is open after ``text``."""
        return bool(self._after(text)._fence)

    def needs_more(self, before: str, after: str) -> bool:
        """Whether more of its line decides if a closing tag between ``before`` and ``after`` counts."""
        there = self._after(before)
        return bool(there._fence) or (there._in_span and "`" not in after)

    def mentions(self, before: str, after: str, opening: str) -> bool:
        """Whether a closing tag between ``before`` and the rest ``after`` of its line is only spoken of."""
        there = self._after(before)
        if not there._fence:
            return there._in_span and "`" in after
        # A model that forgot to close a code block still ends its thoughts with a tag alone on its line.
        alone = not "".join(there._line).strip() and not after.strip()
        return not alone or any(opening in earlier for earlier in there._block)

    @property
    def _in_span(self) -> bool:
        return len(re.findall("`+", "".join(self._line))) % 2 == 1

    def _after(self, text: str) -> _Code:
        there = _Code()
        there._line, there._fence, there._block = list(self._line), self._fence, list(self._block)
        there.pass_over(text)
        return there

    def _end_line(self, line: str) -> None:
        found = _FENCE.fullmatch(line)
        if not self._fence and found and not (found[1][0] == "`" and "`" in found[2]):
            self._fence, self._block = found[1], []
        elif self._fence and found and found[1].startswith(self._fence) and not found[2].strip():
            self._fence, self._block = "", []
        elif self._fence:
            self._block.append(line)


class _Channels:
    """The format of gpt-oss: messages in channels, of which "final" and "commentary" are said and the others thought."""

    def __init__(self) -> None:
        self._held, self._header, self._in_header = "", "", True
        self.thinking = False
        self._said = False

    def feed(self, text: str, final: bool) -> Split:
        self._held += text
        thinking: list[str] = []
        answer: list[str] = []
        while True:
            found = min(((at, mark) for mark in _CHANNEL_MARKS if (at := self._held.find(mark)) >= 0), default=None)
            keep = 0 if final else max(_overlap(self._held, mark) for mark in _CHANNEL_MARKS)
            end = len(self._held) - keep if found is None else found[0]
            piece, self._held = self._held[:end], self._held[end:]
            if self._in_header:
                self._header += piece
            else:
                (thinking if self.thinking else answer).append(piece)
            if found is None:
                return Split("".join(thinking), "".join(answer))
            self._held = self._held[len(found[1]) :]
            if self._pass(found[1]):
                (thinking if self.thinking else answer).append("\n\n")

    def _pass(self, mark: str) -> bool:
        """Goes past a mark; True where another message of the same kind goes before the one that begins."""
        if mark == "<|message|>":
            self._in_header = False
            self.thinking = not self._header.strip().startswith(_SPOKEN_CHANNELS)
            again = self._said and not self.thinking
            self._said = self._said or not self.thinking
            return again
        self._in_header = True
        if mark != "<|constrain|>":
            self._header = ""
        if mark in ("<|end|>", "<|call|>", "<|return|>"):
            self.thinking = False
        return False


def _overlap(text: str, mark: str) -> int:
    """Length of the longest end of ``text`` that is a beginning of ``mark``."""
    longest = min(len(mark) - 1, len(text))
    return next((size for size in range(longest, 0, -1) if text.endswith(mark[:size])), 0)
