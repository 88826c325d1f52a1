"""From the engine's events to the pieces of an answer: thoughts, text, calls of tools, log probabilities, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from engine import Event, Finished, Notice, Started, TextDelta, ThinkingSplitter, TokenLogprob
from engine.request import ToolCall
from engine.text.tool_calls import ToolCallSplitter, ToolSplit


@dataclass(frozen=True, slots=True)
class Piece:
    """What one event adds to the answer."""

    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    logprobs: tuple[TokenLogprob, ...] = ()
    moved: bool = False  # all text so far was thought after all

    def __bool__(self) -> bool:
        return bool(self.text or self.thinking or self.calls or self.logprobs)


class AnswerReader:
    """Reads the events of one answer. ``split`` False leaves the text as it is; ``tools``: finds calls in what is said.

    ``enough`` is set once nothing more is wanted: the first call, where only one is.
    """

    def __init__(self, split: bool, tools: ToolCallSplitter | None, stop_ids: frozenset[int], one_call: bool = False):
        self._thoughts = ThinkingSplitter() if split else None
        self._tools, self._stop_ids, self._one_call = tools, stop_ids, one_call
        self.called: list[str] = []  # names of tools
        self.enough = False
        self.finished: Finished | None = None
        self.notices: list[str] = []

    def read(self, event: Event) -> Piece:
        """The piece that ``event`` makes certain."""
        if isinstance(event, Started) and self._thoughts is not None and event.open_tag:
            self._thoughts = ThinkingSplitter(event.open_tag)
        elif isinstance(event, Notice):
            self.notices.append(event.reason)
        elif isinstance(event, TextDelta) and not self.enough:
            return self._take(event.text, self._shown(event), final=False)
        elif isinstance(event, Finished):
            self.finished = event
            return Piece() if self.enough else self._take("", (), final=True)
        return Piece()

    @property
    def finish_reason(self) -> str:
        """As the OpenAI API has it, where an answer that somebody else ended was cut to a length."""
        assert self.finished is not None
        if self.called and (self.enough or self.finished.reason == "stop"):
            return "tool_calls"
        return "stop" if self.finished.reason == "stop" else "length"

    def _shown(self, delta: TextDelta) -> tuple[TokenLogprob, ...]:
        """The token that ends an answer is no part of it."""
        return tuple(entry for entry in delta.logprobs if entry.token_id not in self._stop_ids)

    def _take(self, text: str, logprobs: tuple[TokenLogprob, ...], final: bool) -> Piece:
        thinking, said, moved = "", text, False
        if self._thoughts is not None:
            part = self._thoughts.feed(text)
            rest = self._thoughts.finish() if final else None
            thinking, said, moved = part.thinking, part.answer, part.moved
            if rest is not None:
                thinking, said, moved = thinking + rest.thinking, said + rest.answer, moved or rest.moved
        calls = self._find_calls(said, final)
        if self._one_call and calls.calls:
            self.enough, calls = True, ToolSplit(calls.text, calls.calls[:1])
        self.called += [call.name for call in calls.calls]
        return Piece(calls.text, thinking, calls.calls, logprobs, moved)

    def _find_calls(self, said: str, final: bool) -> ToolSplit:
        if self._tools is None:
            return ToolSplit(said)
        found = self._tools.feed(said)
        last = self._tools.finish() if final else ToolSplit()
        return ToolSplit(found.text + last.text, found.calls + last.calls)


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """How tokens are spelled in log probabilities."""

    table: Mapping[int, bytes]

    def spell(self, token_id: int) -> bytes:
        return self.table.get(token_id, b"")

    def text(self, token_id: int) -> str:
        """With U+FFFD for what is part of a character only."""
        return self.spell(token_id).decode("utf-8", "replace")
