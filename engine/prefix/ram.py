"""The prefix cache's first tier: segments in memory as a tree, the least recently used leaves given up first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from engine.prefix.segment import Segment

SHORT_TOKENS = 512  # a prefix that never grew to so many is quickly made again


@dataclass(slots=True)
class _Node:
    """``used`` counts up with every use; ``reach`` is the end of the longest prefix it was ever part of, in tokens."""

    segment: Segment
    nbytes: int
    used: int = 0
    reach: int = 0
    children: int = 0


class RamTier:
    """At most ``budget_bytes`` of segments below ``root``, the key that the first segment of every chain names as its parent.

    Branches share their common beginning, which lives as long as any of them. What goes first: leaves of prefixes that never
    reached ``short_tokens``, which therefore live only while there is room; then leaves by last use.
    """

    def __init__(self, root: str, budget_bytes: int, short_tokens: int = SHORT_TOKENS):
        self._root, self._budget, self._short = root, budget_bytes, short_tokens
        self._nodes: dict[str, _Node] = {}
        self._clock = 0
        self.nbytes = 0

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, key: str) -> Segment | None:
        """The segment of that key. Not a use: ``add`` says what was used."""
        node = self._nodes.get(key)
        return None if node is None else node.segment

    def add(self, chain: Sequence[Segment]) -> None:
        """Marks a chain from the root on as used now and keeps what of it is new, as far as the budget goes.

        Several segments may name the same parent. One whose parent is not there is left out.
        """
        self._clock += 1
        reach = max((segment.end for segment in chain), default=0)
        for segment in chain:
            key = segment.key
            parent = self._nodes.get(segment.parent)
            if parent is None and segment.parent != self._root:
                continue
            node = self._nodes.get(key)
            if node is None:
                node = self._nodes[key] = _Node(segment, segment.nbytes)
                self.nbytes += node.nbytes
                if parent is not None:
                    parent.children += 1
            node.used, node.reach = self._clock, max(node.reach, reach)
        self._shrink()

    def clear(self) -> None:
        """Forgets everything."""
        self._nodes.clear()
        self.nbytes = 0

    def _shrink(self) -> None:
        if self.nbytes <= self._budget:
            return
        leaves = [node for node in self._nodes.values() if not node.children]
        while self.nbytes > self._budget:
            victim = min(leaves, key=self._worth)
            leaves.remove(victim)
            del self._nodes[victim.segment.key]
            self.nbytes -= victim.nbytes
            parent = self._nodes.get(victim.segment.parent)
            if parent is not None:
                parent.children -= 1
                leaves += [] if parent.children else [parent]

    def _worth(self, node: _Node) -> tuple[bool, int, int]:
        """What is given up first has the least; of two used together, the one that ends later."""
        return self._reach(node) >= self._short, node.used, -node.segment.end

    def _reach(self, node: _Node) -> int:
        """A state without tokens of its own belongs to whatever goes on after it."""
        parent = self._nodes.get(node.segment.parent)
        return parent.reach if parent is not None and not node.segment.token_ids else node.reach
