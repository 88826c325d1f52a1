"""The memory tier: branches share their beginning, the budget holds, the least recently used leaf goes first."""

from __future__ import annotations

from itertools import pairwise

import mlx.core as mx
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from engine.prefix.ram import RamTier
from engine.prefix.segment import Segment

ROOT = "00" * 32
BLOCK = 4  # tokens; each block has 4 bytes of rows a token
NBYTES = 16


def chain(*blocks: int, state: bool = False) -> list[Segment]:
    """One segment for each number; equal beginnings are equal prefixes."""
    segments: list[Segment] = []
    parent = ROOT
    for index, block in enumerate(blocks):
        segments.append(Segment(parent, index * BLOCK, (block,) * BLOCK, {"rows": mx.zeros((BLOCK,))}, {}))
        parent = segments[-1].key
    if state:
        segments.append(Segment(parent, len(blocks) * BLOCK, (), {}, {"state": mx.zeros((4,))}))
    return segments


def held(tier: RamTier, *blocks: int) -> int:
    """How many of the chain's blocks are there, from the first on."""
    found = [tier.get(segment.key) is not None for segment in chain(*blocks)]
    return found.index(False) if False in found else len(found)


def tier(blocks: int, short_tokens: int = 0) -> RamTier:
    return RamTier(ROOT, blocks * NBYTES, short_tokens)


def test_branches_share_their_beginning_in_memory_once() -> None:
    memory = tier(100)
    memory.add(chain(1, 2, 3))
    memory.add(chain(1, 2, 4))
    assert memory.nbytes == 4 * NBYTES and held(memory, 1, 2, 3) == held(memory, 1, 2, 4) == 3


def test_the_leaf_used_longest_ago_goes_first_and_a_shared_beginning_last() -> None:
    memory = tier(5)
    memory.add(chain(1, 2, 3))
    memory.add(chain(1, 4))
    memory.add(chain(5, 6))
    assert held(memory, 1, 2, 3) == 2, "of the oldest chat only its end went"
    assert held(memory, 1, 4) == 2 and held(memory, 5, 6) == 2


def test_use_keeps_a_whole_path_alive() -> None:
    memory = tier(4)
    memory.add(chain(1, 2))
    memory.add(chain(3, 4))
    memory.add(chain(1, 2))  # used again
    memory.add(chain(5))
    assert held(memory, 1, 2) == 2 and held(memory, 3, 4) == 1


def test_a_short_chat_never_costs_a_long_one_its_end() -> None:
    memory = tier(4, short_tokens=3 * BLOCK)
    memory.add(chain(1, 2, 3, 4))
    memory.add(chain(9, 8))
    assert held(memory, 1, 2, 3, 4) == 4 and held(memory, 9) == 0


def test_of_two_short_chats_the_newer_one_stays() -> None:
    memory = tier(6, short_tokens=3 * BLOCK)
    memory.add(chain(1, 2, 3, 4))
    memory.add(chain(9, 8))
    memory.add(chain(7, 6))
    assert held(memory, 7, 6) == 2 and held(memory, 9) == 0 and held(memory, 1, 2, 3, 4) == 4


def test_a_short_chat_stays_while_there_is_room_and_a_long_one_takes_its_place() -> None:
    memory = tier(6, short_tokens=3 * BLOCK)
    memory.add(chain(9, 8))
    memory.add(chain(1, 2, 3, 4))
    assert held(memory, 9, 8) == 2
    memory.add(chain(1, 2, 3, 4, 5))
    assert held(memory, 9, 8) == 1 and held(memory, 1, 2, 3, 4, 5) == 5


def test_a_state_inside_a_long_chat_is_not_short() -> None:
    memory = RamTier(ROOT, 6 * NBYTES, 3 * BLOCK)
    memory.add(chain(1, state=True))
    memory.add(chain(1, 2, 3, 4, 5))
    memory.add(chain(9))
    assert memory.get(chain(1, state=True)[-1].key) is not None and held(memory, 9) == 0


def test_of_a_chain_larger_than_the_budget_its_beginning_stays() -> None:
    memory = tier(3)
    memory.add(chain(1, 2, 3, 4, 5))
    assert held(memory, 1, 2, 3, 4, 5) == 3 and memory.nbytes == 3 * NBYTES


def test_what_has_no_parent_is_left_out() -> None:
    memory = tier(9)
    memory.add(chain(1, 2, 3)[1:])
    assert len(memory) == memory.nbytes == 0


class Machine(RuleBasedStateMachine):
    """Against the plainest model: a dict of paths to the time of their last use."""

    @initialize(budget=st.integers(0, 8))
    def begin(self, budget: int) -> None:
        self.budget, self.tier, self.used, self.clock = budget, tier(budget), {}, 0

    @rule(path=st.lists(st.integers(0, 2), min_size=1, max_size=5))
    def add(self, path: list[int]) -> None:
        self.clock += 1
        self.tier.add(chain(*path))
        for end in range(1, len(path) + 1):
            self.used[tuple(path[:end])] = self.clock
        while len(self.used) > self.budget:
            leaves = [path for path in self.used if not any(other[:-1] == path for other in self.used)]
            del self.used[min(leaves, key=lambda leaf: (self.used[leaf], -len(leaf)))]

    @invariant()
    def holds_exactly_the_most_recently_used(self) -> None:
        assert {chain(*path)[-1].key for path in self.used} == {
            chain(*path)[-1].key for path in self.used if self.tier.get(chain(*path)[-1].key) is not None
        }
        assert len(self.tier) == len(self.used) and self.tier.nbytes == len(self.used) * NBYTES <= self.budget * NBYTES


Machine.TestCase.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)
TestAgainstAModel = Machine.TestCase


def test_keys_follow_from_the_tokens_alone() -> None:
    assert [one.key for one in chain(1, 2)] == [two.key for two in chain(1, 2)]
    assert all(after.parent == before.key for before, after in pairwise(chain(1, 2, 3)))
