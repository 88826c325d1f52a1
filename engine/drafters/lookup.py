"""Lookup drafting: what followed the same tokens earlier in prompt or answer is proposed again. Needs no draft model."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import mlx.core as mx

from engine.drafters.protocol import Draw, Foreseen
from engine.events import Mode

PLACES = 64  # how many earlier places are looked at, the latest first
LONGEST = 64  # a match of so many tokens counts as no longer
FAITH = 4  # after a match of so many tokens, one that comes differently may have been changed on purpose
_BY_LENGTH = [Foreseen(min(length, LONGEST)) for length in range(2 * LONGEST)]  # made once: this is asked for in every step


class LookupDrafter:
    """Stands for lookup where a drafter is asked for. Works with any target that can roll back."""

    mode: Mode = "lookup"
    name = "lookup"
    taps: tuple[int, ...] = ()
    block_length = LONGEST

    def session(self, draw: Draw | None = None) -> None:
        return None

    def features(self, taps: mx.array) -> None:
        return None


class LookupIndex:
    """The memory of one request. A token costs at most ``PLACES`` comparisons and about 200 bytes.

    Nothing is proposed behind a token of ``ends``, which end the answer.

    Of the latest ``PLACES`` places where the newest two tokens stood, the one with the longest match counts, the latest of equals;
    where there is none, the latest place of the newest token. What came as foreseen is followed without looking again. Where a
    match of ``FAITH`` tokens ends in another token, as an edit makes, the passage is followed behind that token.
    """

    def __init__(self, ends: Collection[int] = ()) -> None:
        self._ends = frozenset(ends)
        self._wrong: set[tuple[int, int]] = set()  # two tokens behind which something else came than was foreseen
        self._tokens: list[int] = []
        self._single: dict[int, int] = {}  # the place behind each token's latest occurrence
        self._pair: dict[tuple[int, int], int] = {}  # the same of each two tokens
        self._earlier: list[int] = []  # for the place behind token i, the place of the same two tokens before; -1 for none
        self._source = -1  # the place whose token is foreseen next
        self._length = 0

    @property
    def ahead(self) -> list[Foreseen]:
        """What speaks for each of at most ``LONGEST - 1`` tokens to propose; a match counts up to ``LONGEST``."""
        tokens = self._following(LONGEST - 1)
        if not tokens:
            return []
        earlier, newest = self._newest()
        foreseen = _BY_LENGTH[self._length : self._length + len(tokens)]
        for index, before in enumerate(zip([earlier, newest, *tokens], [newest, *tokens[:-1]], strict=False)):
            if before in self._wrong:
                foreseen[index] = Foreseen(foreseen[index].matched, doubtful=True)
        return foreseen

    def extend(self, tokens: Sequence[int]) -> list[tuple[Foreseen, bool]]:
        """Takes the next committed ``tokens``. For each that was foreseen: what spoke for it, and whether it came so."""
        outcomes = []
        for token in tokens:
            right = self._source >= 0 and self._tokens[self._source] == token
            if self._source >= 0:
                before = self._newest()
                outcomes.append((Foreseen(self._length, before in self._wrong), right))
                if not right:
                    self._wrong.add(before)
            candidate, single = self._file(token)
            if right:
                self._source, self._length = self._source + 1, min(self._length + 1, LONGEST)
            else:
                self._search(candidate, single)
        return outcomes

    def propose(self, length: int) -> list[int]:
        """The next ``length`` tokens, fewer where one ends the answer. Where they reach the newest, it goes round again."""
        return self._following(length)

    def _following(self, length: int) -> list[int]:
        if self._source < 0:
            return []
        following = self._tokens[self._source : self._source + length]
        while len(following) < length:
            following += following[: length - len(following)]
        end = next((place for place, token in enumerate(following) if token in self._ends), length)
        return following[: end + 1]

    def _newest(self) -> tuple[int, int]:
        """The two newest tokens, -1 for one that is not there."""
        return (self._tokens[-2] if len(self._tokens) > 1 else -1), self._tokens[-1]

    def _file(self, token: int) -> tuple[int, int]:
        """Appends ``token``; returns the latest earlier places of the two newest tokens and of ``token`` alone, -1 for none."""
        self._tokens.append(token)
        place, pair = len(self._tokens), -1
        if place > 1:
            key = (self._tokens[-2], token)
            pair, self._pair[key] = self._pair.get(key, -1), place
        self._earlier.append(pair)
        single, self._single[token] = self._single.get(token, -1), place
        return pair, single

    def _search(self, place: int, single: int) -> None:
        """Finds the best earlier place for the newest tokens."""
        broken, following = self._length, self._source + 1
        self._source, self._length = single, 1
        for _ in range(PLACES):
            if place < 0:
                break
            length = self._common(place)
            if length > self._length:
                self._source, self._length = place, length
            place = self._earlier[place - 1]
        if self._length == 1 and broken >= FAITH:
            self._source, self._length = following, 0

    def _common(self, place: int) -> int:
        """How many tokens before ``place`` equal the newest ones, at most ``LONGEST``."""
        tokens, end, length = self._tokens, len(self._tokens), 2
        while length < min(place, LONGEST) and tokens[place - 1 - length] == tokens[end - 1 - length]:
            length += 1
        return length
