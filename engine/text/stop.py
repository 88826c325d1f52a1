"""Stop strings that may span tokens and cycles: text that could still become one is held back."""

from __future__ import annotations


class StopStrings:
    """Feed text; get what is safe to show. After a match ``matched`` is set and nothing more comes out.

    The match that is complete first ends the answer, of several complete at the same character the longest: so the result
    never depends on how the text was cut into pieces.
    """

    def __init__(self, stops: tuple[str, ...]):
        self._stops = tuple(stop for stop in stops if stop)
        self._held = ""
        self.matched: str | None = None

    def push(self, text: str) -> str:
        """The part of all text so far that is certain not to belong to a stop string."""
        if self.matched is not None:
            return ""
        if not self._stops:
            return text
        self._held += text
        hits = [(at + len(stop), at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if hits:
            _, at, self.matched = min(hits)
            safe, self._held = self._held[:at], ""
            return safe
        keep = max(self._overlap(stop) for stop in self._stops)
        safe, self._held = self._held[: len(self._held) - keep], self._held[len(self._held) - keep :]
        return safe

    def flush(self) -> str:
        """What was held back, at the end of an answer without a match."""
        held, self._held = self._held, ""
        return held

    def _overlap(self, stop: str) -> int:
        """Length of the longest end of the held text that is a beginning of ``stop``."""
        longest = min(len(stop) - 1, len(self._held))
        return next((size for size in range(longest, 0, -1) if self._held.endswith(stop[:size])), 0)
