"""Which drafter answers a request."""

from __future__ import annotations

from collections.abc import Mapping

from engine.drafters.protocol import Drafter
from engine.events import Mode
from engine.info import PairInfo
from engine.request import GenerationRequest


def choose_drafter(
    request: GenerationRequest, drafters: Mapping[Mode, Drafter], info: PairInfo
) -> tuple[Drafter | None, str | None]:
    """The drafter to use, and the reason for a fallback."""
    if request.mode == "baseline":
        return None, None
    wanted: Mode = "dflash" if request.mode == "auto" else request.mode
    drafter, reason = drafters.get(wanted), None
    if drafter is None:
        drafter = drafters.get("lookup")
        why = info.no_draft_reason or "there is no such drafter"
        reason = f"{'Lookup drafting' if drafter else 'Plain decoding'}: {why}."
    widths = info.exact_widths  # None: measuring them was cancelled, and so is the answer
    if request.exact and drafter and widths is not None and not any(width <= drafter.block_length for width in widths):
        return None, "Plain decoding: on this machine no block length gives, bit for bit, what single steps give."
    return drafter, reason
