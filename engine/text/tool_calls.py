"""Finds the calls of tools in an answer as it streams; the syntaxes themselves are read by mlx-lm's parsers.

The result depends only on the text, never on how it was cut into pieces. What looks like a call and cannot be read stays text.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from engine.errors import ModelError
from engine.request import Message, ToolCall
from engine.text.chat import render_chat

PROBE = json.dumps({"type": "function", "function": {"name": "probe_of_tools", "parameters": {"type": "object", "properties": {}}}})


@dataclass(frozen=True, slots=True)
class ToolSyntax:
    """How a model writes a call: between ``start`` and ``end`` ("": up to the answer's end), in a form that ``parse`` reads."""

    start: str
    end: str
    parse: Callable[[str, Any], Any]


def tool_syntax(tokenizer: Any) -> ToolSyntax | None:
    """The syntax of a model whose template shows it the tools and whose calls can be read; None for any other."""
    if not (tokenizer.has_chat_template and tokenizer.has_tool_calling):
        return None
    try:
        shown = render_chat(tokenizer, [Message("user", "1")], tools=[PROBE])
    except ModelError:
        return None
    if "probe_of_tools" not in shown:
        return None
    return ToolSyntax(tokenizer.tool_call_start, tokenizer.tool_call_end or "", tokenizer.tool_parser)


@dataclass(frozen=True, slots=True)
class ToolSplit:
    """Text to append to the answer, and the calls that became complete."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


class ToolCallSplitter:
    """Feed text; get what is certain. Blank space around calls belongs to them. ``tools`` are the request's."""

    def __init__(self, syntax: ToolSyntax, tools: tuple[str, ...]):
        self._syntax, self._tools = syntax, [json.loads(tool) for tool in tools]
        self._held, self._inside, self._called = "", False, False
        self._space = ""  # blank space before the call that has begun

    def feed(self, text: str) -> ToolSplit:
        """Appends ``text`` and returns what it made certain."""
        return self._advance(text, final=False)

    def finish(self) -> ToolSplit:
        """No more text comes: what was held back is given out."""
        return self._advance("", final=True)

    def _advance(self, text: str, final: bool) -> ToolSplit:
        self._held += text
        said: list[str] = []
        calls: list[ToolCall] = []
        while True:
            mark = self._syntax.end if self._inside else self._syntax.start
            at = self._held.find(mark) if mark else -1
            if at < 0 and not (final and self._inside):
                said.append(self._certain(final))
                return ToolSplit("".join(said), tuple(calls))
            body, self._held = (self._held, "") if at < 0 else (self._held[:at], self._held[at + len(mark) :])
            if self._inside:
                read = self._read(body)
                calls += read
                self._called = self._called or bool(read)
                if not read:
                    said.append(self._space + self._syntax.start + body + (mark if at >= 0 else ""))
            else:
                said.append(body.rstrip())
                self._space = body[len(said[-1]) :]
            self._inside = not self._inside

    def _certain(self, final: bool) -> str:
        """Text outside a call that can be given out now."""
        if self._inside:
            return ""
        if final:
            text, self._held = self._held, ""
            return "" if self._called and not text.strip() else text
        start = self._syntax.start
        begun = next((size for size in range(len(start) - 1, 0, -1) if self._held.endswith(start[:size])), 0)
        kept = len(self._held[: len(self._held) - begun].rstrip())
        text, self._held = self._held[:kept], self._held[kept:]
        return text

    def _read(self, body: str) -> list[ToolCall]:
        """The calls in ``body``, none where it is something else."""
        try:
            found = self._syntax.parse(body, self._tools)
            return [_tool_call(call) for call in (found if isinstance(found, list) else [found])]
        except Exception:  # a model may write anything, and a parser fail on it in any way
            return []


def _tool_call(found: dict[str, Any]) -> ToolCall:
    """A parser's result as a call. Raises ``TypeError`` or ``KeyError`` where it is none."""
    name, arguments = found["name"], found.get("arguments", {})
    if not isinstance(name, str) or not name:
        raise TypeError("a call without a name")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(name, text, f"call_{secrets.token_hex(12)}")
