"""The ways of decoding that can stand side by side: a mode, and for DFlash a block length if it is fixed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.words import tr
from engine import GenerationRequest, Mode, PairInfo

BLOCK_LENGTHS = (2, 3, 4, 6, 8, 12, 16)
MODES: tuple[Mode, ...] = ("baseline", "dflash", "lookup")


@dataclass(frozen=True, slots=True)
class Arm:
    """``block_length``: every draft pass proposes that many slots, the anchor included; None: the engine chooses."""

    mode: Mode
    block_length: int | None = None

    @property
    def id(self) -> str:
        """How it is kept: "baseline", "dflash" or "dflash:8"."""
        return self.mode if self.block_length is None else f"{self.mode}:{self.block_length}"

    @property
    def name(self) -> str:
        """In words."""
        if self.block_length is not None:
            return tr("DFlash, block {length}", length=self.block_length)
        return {"baseline": tr("Plain"), "lookup": tr("Lookup")}.get(self.mode, "DFlash")

    @property
    def speculative(self) -> bool:
        """Whether anything is guessed ahead."""
        return self.mode != "baseline"

    def request(self, base: GenerationRequest) -> GenerationRequest:
        """``base`` decoded this way; it neither starts from what an earlier answer left nor leaves anything."""
        return replace(base, mode=self.mode, block_length=self.block_length, use_cache=False)


PLAIN, DFLASH, LOOKUP = Arm("baseline"), Arm("dflash"), Arm("lookup")
STANDARD = (PLAIN, DFLASH)


def arm_of(identity: str) -> Arm | None:
    """The arm with this id, None where there is no such arm."""
    mode, _, length = identity.partition(":")
    if mode not in MODES or (length and (mode != "dflash" or not length.isdecimal())):
        return None
    return Arm(mode, int(length) if length else None)


def offered(pair: PairInfo | None) -> tuple[Arm, ...]:
    """What ``pair`` can do; without a draft there is plain decoding and lookup."""
    if pair is None or not pair.draft_name:
        return PLAIN, LOOKUP
    lengths = sorted({length for length in BLOCK_LENGTHS if length < pair.block_length} | {pair.block_length})
    return (*STANDARD, LOOKUP, *(Arm("dflash", length) for length in lengths))


def chosen(identities: tuple[str, str], pair: PairInfo | None) -> tuple[Arm, Arm]:
    """The arms that were chosen, each replaced where ``pair`` cannot do it."""
    possible = offered(pair)
    wanted = [arm_of(identity) for identity in identities]
    left, right = (arm if arm in possible else None for arm in wanted)
    return left or PLAIN, right or (DFLASH if DFLASH in possible else LOOKUP)
