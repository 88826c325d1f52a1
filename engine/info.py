"""What is loaded, in plain data for the window and for reports. No MLX here."""

from __future__ import annotations

from dataclasses import dataclass

from engine.decoding.curve import CostCurve


@dataclass(frozen=True, slots=True)
class Learned:
    """A draft learned from the user's chats, with the tokens per cycle on held-out chats ``before`` and ``after``. ``in_use``: it
    drafts now."""

    before: float
    after: float
    in_use: bool


@dataclass(frozen=True, slots=True)
class PairInfo:
    """A loaded pair. ``block_length`` is 0 and ``draft_name`` None where there is no draft; ``no_draft_reason`` says why.

    ``context_length`` is in tokens; ``draft_context_length`` is how many tokens back the draft sees, None where there is none.
    ``dtype`` is what most of the weights are kept in: "float32", "bfloat16", or "4-bit" and the like where they are quantised.
    ``weights_bytes`` covers target and draft as they stand in memory.
    ``kv_bits`` and ``draft_bits`` are those it was loaded with.

    ``exact_widths``: the block lengths at which a verify pass equals plain steps bit for bit here; None: not measured.
    ``learned``: the draft learned from the user's chats, None where there is none or it was not asked for.
    ``thinking_switch``: the chat template can be told to think or not (``GenerationRequest.thinking``).
    ``reads_in_part``: a prompt can be read in part (``GenerationRequest.sparse``).
    ``costs``: what draft and verify passes were measured to take on this machine, None where nothing can be proposed.
    ``notices``: what a user should know of this pair, in words, such as a part that is missing from its files.
    """

    id: str
    name: str
    family: str
    device: str
    dtype: str
    context_length: int
    draft_name: str | None
    block_length: int
    no_draft_reason: str | None
    weights_bytes: int
    kv_bits: int | None = None
    draft_bits: int | None = None
    exact_widths: tuple[int, ...] | None = None
    learned: Learned | None = None
    notices: tuple[str, ...] = ()
    draft_context_length: int | None = None
    costs: CostCurve | None = None
    thinking_switch: bool = False
    reads_in_part: bool = True
