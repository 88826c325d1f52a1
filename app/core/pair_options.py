"""How a pair is kept in memory, chosen for each pair by itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from engine.options import BITS


@dataclass(frozen=True, slots=True)
class PairOptions:
    """``kv_bits`` for keys and values, ``draft_bits`` for the draft's weights: 8, 4, or None for as they come."""

    kv_bits: int | None = None
    draft_bits: int | None = None

    @classmethod
    def of(cls, values: Any) -> PairOptions:
        """What of ``values`` can be used; the rest is as it comes."""
        known = values if isinstance(values, Mapping) else {}
        return cls(*(bits if type(bits := known.get(name)) is int and bits in BITS else None for name in ("kv_bits", "draft_bits")))

    def values(self) -> dict[str, int]:
        """What differs from the defaults, as the settings keep it."""
        return {name: bits for name, bits in asdict(self).items() if bits is not None}
